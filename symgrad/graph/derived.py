"""Rules that follow from the partial derivatives of an elementwise op, which a carrier may record as values of ops; see `symgrad.engine.slopes`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def _scale(xp: Any, g: Any, partial: Any, y: Any, args: tuple) -> Any:
    """`g` times one partial derivative, without a call for a constant partial."""
    if callable(partial):
        return g * partial(xp, y, *args)
    if partial == 1:
        return g
    return -g if partial == -1 else g * partial


def elementwise_vjp(partials: tuple[Any, ...], parameters: bool) -> Rule:
    """The pullback g * partial for each argument, with the `partials` as an attribute. The engine sums over broadcast dimensions."""
    rule = _unrolled(partials, parameters)
    rule.partials = partials  # type: ignore[attr-defined]
    return rule


def _unrolled(partials: tuple[Any, ...], parameters: bool) -> Rule:
    """The pullback, unrolled for one and two arguments."""
    if len(partials) == 1:
        (partial,) = partials
        if not callable(partial):
            if partial == -1:
                return lambda xp, g, y, args, needs: (-g,)
            if partial == 1:
                return lambda xp, g, y, args, needs: (g,)
            return (lambda xp, g, y, args, needs: (None,)) if partial in (None, 0) else lambda xp, g, y, args, needs: (g * partial,)
        if parameters:
            return lambda xp, g, y, args, needs: (g * partial(xp, y, *args),)
        return lambda xp, g, y, args, needs: (g * partial(xp, y, args[0]),)

    if len(partials) == 2 and all(callable(partial) for partial in partials) and not parameters:
        first, second = partials

        def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
            a, b = args
            try:
                return None if needs[0] is None else g * first(xp, y, a, b), None if needs[1] is None else g * second(xp, y, a, b)
            except ArithmeticError:
                return vjp(xp, g, y, _without_numbers(xp, y, args), needs)

        return vjp

    if partials == (1, 1):
        return lambda xp, g, y, args, needs: (g, g)
    if partials == (1, -1):
        return lambda xp, g, y, args, needs: (g, None if needs[1] is None else -g)

    def vjp_each(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        try:
            return tuple([None if need is None or _is_zero(partial) else _scale(xp, g, partial, y, args) for partial, need in zip(partials, needs)])
        except ArithmeticError:
            return vjp_each(xp, g, y, _without_numbers(xp, y, args, len(partials)), needs)

    return vjp_each


NUMBERS = (int, float, complex, bool)


def _without_numbers(xp: Any, y: Any, args: tuple, count: int = 2) -> tuple:
    """The arguments of a rule with Python numbers as arrays, whose division by zero and overflow give infinities instead of exceptions.

    Re-raises the current exception if none of the first `count` arguments is a Python number.
    """
    if not any([type(a) in NUMBERS for a in args[:count]]):
        raise  # noqa: PLE0704  the error that is handled
    return tuple([xp.ones_like(y) * a if type(a) in NUMBERS else a for a in args[:count]]) + args[count:]


def _is_zero(partial: Any) -> bool:
    return partial is None or (not callable(partial) and partial == 0)


def elementwise_jvp(partials: tuple[Any, ...]) -> Rule:
    """The sum of tangent * partial over the arguments that have a tangent."""
    def jvp(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
        out = None
        for partial, t in zip(partials, tangents):
            if t is not None and not _is_zero(partial):
                try:
                    term = _scale(xp, t, partial, y, args)
                except ArithmeticError:
                    term = _scale(xp, t, partial, y, _without_numbers(xp, y, args, len(partials)))
                out = term if out is None else out + term
        return out

    return jvp


RECORDERS: dict[type, Callable[[Any, Any, int, Any, tuple], Any]] = {}  # of carriers that record: (carrier, op, i, y, args) -> partial derivative i


def with_recorded_slopes(op: Callable[[], Any], vjp: Rule, jvp: Rule) -> tuple[Rule, Rule]:
    """The rules of an elementwise op, which record slopes where the carrier records. `op` returns the op, which is made of the rules."""
    def pull(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> Any:
        return (_recorded_rules(op())[0] if type(xp) in RECORDERS else vjp)(xp, g, y, args, needs)

    def push(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
        return (_recorded_rules(op())[1] if type(xp) in RECORDERS else jvp)(xp, tangents, y, args)

    pull.partials = vjp.partials  # type: ignore[attr-defined]
    return pull, push


@functools.cache
def _recorded_rules(op: Any) -> tuple[Rule, Rule]:
    """The pullback and the pushforward with slopes that are values of ops."""
    partials = tuple([functools.partial(_recorded, op, i) if callable(partial) else partial for i, partial in enumerate(op.partials)])
    return elementwise_vjp(partials, bool(op.parameters)), elementwise_jvp(partials)


def _recorded(op: Any, i: int, xp: Any, y: Any, *args: Any) -> Any:
    return RECORDERS[type(xp)](xp, op, i, y, args)
