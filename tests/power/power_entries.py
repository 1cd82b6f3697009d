"""What the corpus is made of: ops that are wrong, or right but difficult, with what is claimed of them.

An op of elements is stated once, as `Rules`, in words that symgrad, torch and JAX share, so that each framework's own checker can be asked about
the same op; an op of another kind is made by a function, afresh each time, so that one that remembers something starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import symgrad
from symgrad.autograd import Function
from symgrad.graph.op import Op
from symgrad.methods import extending

__all__ = ["BUILD", "Entry", "RIGHT", "Rules", "WRONG", "function_of", "made", "of_complex", "one_where", "right", "rules_of", "stopped",
           "unregistered", "wrong"]

WRONG: dict[str, Entry] = {}
RIGHT: dict[str, Entry] = {}


@dataclass(frozen=True)
class Rules:
    """A function `forward(xp, *xs)` with its partial derivatives `(xp, y, *xs)`, None for one without, or with a `pullback(xp, g, y, *xs)`."""

    forward: Callable[..., Any]
    partials: tuple[Callable[..., Any] | None, ...] = ()
    pullback: Callable[..., Any] | None = None

    def __call__(self, xp: Any, *xs: Any) -> Any:
        """The function in the framework whose namespace `xp` is, with these derivatives."""
        return BUILD[xp.__name__](self)(*xs)

    def partial(self, xp: Any, y: Any, *xs: Any) -> Any:
        """The function as a partial derivative of another."""
        return self(xp, *xs)


@dataclass(frozen=True)
class Entry:
    """One op: what is wrong with it (or difficult about it), how it is made, and what is claimed of it.

    `rules` is None for an op that is not stated as rules; `point` says where a framework's own checker customarily draws the one point it looks at.
    """

    name: str
    category: str
    says: str
    make: Callable[[], Any]
    claims: Mapping[str, Any] = field(default_factory=dict)
    rules: Rules | None = None
    point: str = "normal"


def unregistered(constructor: Callable[..., Any], *rules: Any, **rest: Any) -> Op:
    """An op declared with `symgrad.elementwise` or its like, which the registry does not keep."""
    try:
        return constructor("op_under_attack", *rules, **rest).op
    finally:
        extending._unregister("op_under_attack")


def stopped(x: Any) -> Any:
    """The same numbers, of which no derivative is taken, in any framework."""
    if type(x).__module__.startswith("jax"):
        import jax

        return jax.lax.stop_gradient(x)
    return x.detach() if hasattr(x, "detach") else x


def one_where(xp: Any, x: Any) -> Any:
    """1 where a number is positive and 0 elsewhere, in its dtype."""
    return xp.where(x > 0, xp.ones_like(x), xp.zeros_like(x))


def function_of(rules: Rules) -> Any:
    """The rules as a `Function` of symgrad."""
    class UnderAttack(Function):
        @staticmethod
        def forward(ctx, *xs):
            y = rules.forward(symgrad, *xs)
            ctx.save_for_backward(*xs, y)
            ctx.save_for_forward(*xs, y)
            return y

        @staticmethod
        def backward(ctx, g):
            *xs, y = ctx.saved_tensors
            if rules.pullback is not None:
                return rules.pullback(symgrad, g, y, *xs)
            return tuple(None if p is None else g * p(symgrad, y, *xs) for p in rules.partials)

    if rules.pullback is None:
        def jvp(ctx, *tangents):
            *xs, y = ctx.saved_for_forward
            terms = [t * p(symgrad, y, *xs) for t, p in zip(tangents, rules.partials) if t is not None and p is not None]
            return sum(terms[1:], terms[0]) if terms else symgrad.zeros_like(y)

        UnderAttack.jvp = staticmethod(jvp)
    return UnderAttack


BUILD: dict[str, Callable[[Rules], Callable[..., Any]]] = {"symgrad": lambda rules: function_of(rules).apply}


def _enter(table: dict[str, Entry], entry: Entry) -> None:
    assert entry.name not in table, entry.name
    table[entry.name] = entry


def rules_of(table: dict[str, Entry], name: str, category: str, says: str, forward: Callable[..., Any], *partials: Any, form: str = "op",
             pullback: Any = None, point: str = "normal", **claims: Any) -> Rules:
    """Enter an op of rules, as an op of elements or (form "function", or with a pullback) as a `Function`; the rules are returned."""
    rules = Rules(forward, partials, pullback)
    if form == "function" or pullback is not None:
        def make() -> Any:
            return function_of(rules)
    else:
        def make() -> Any:
            return unregistered(symgrad.elementwise, forward, *partials)

    _enter(table, Entry(name, category, says, make, claims, rules, point))
    return rules


def made(table: dict[str, Entry], name: str, category: str, says: str, point: str = "normal", **claims: Any) -> Callable[[Callable], Callable]:
    """Enter, as a decorator, an op that a function makes."""
    def enter(make: Callable[[], Any]) -> Callable[[], Any]:
        _enter(table, Entry(name, category, says, make, claims, None, point))
        return make

    return enter


def wrong(name: str, category: str, says: str, *rules: Any, **rest: Any) -> Any:
    """Enter a wrong op: of rules where they are given, else as a decorator of what makes it."""
    return (rules_of if rules else made)(WRONG, name, category, says, *rules, **rest)


def right(name: str, category: str, says: str, *rules: Any, **rest: Any) -> Any:
    """Enter an op that is right: of rules where they are given, else as a decorator of what makes it."""
    return (rules_of if rules else made)(RIGHT, name, category, says, *rules, **rest)


def of_complex(forward, backward):
    """A Function of one complex argument, from its forward and backward."""
    class Complex(Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return forward(z)

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    return Complex
