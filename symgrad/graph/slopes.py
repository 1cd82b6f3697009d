"""Where the partial derivatives of an op that selects are recorded as values of ops of their own; see `symgrad.engine.slopes`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.graph.derived import elementwise_jvp, elementwise_vjp

Rule = Callable[..., Any]
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
