"""What the corpus is made of: ops that are wrong, or right but difficult, with what is claimed of them.

An op of elements is stated once, as `Rules`, in words that symgrad, torch and JAX share, so that each framework's own checker can be asked about
the same op. An op of another kind is made by a function, afresh each time, so that one that remembers something starts anew. A function that takes
an argument is given the library, symgrad or torch, whose names are the same.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import symgrad
from symgrad.methods import extending

WRONG = {}
RIGHT = {}


@dataclass(frozen=True)
class Rules:
    """A function `forward(xp, *xs)` with its partial derivatives `(xp, y, *xs)`, None for one without, or with a `pullback(xp, g, y, *xs)`."""

    forward: Callable[..., Any]
    partials: tuple[Callable[..., Any] | None, ...] = ()
    pullback: Callable[..., Any] | None = None

    def made(self, xp):
        """The function in the framework whose namespace `xp` is, with these derivatives."""
        if xp.__name__ == "jax.numpy":
            from tests.power.twins_jax import built

            return built(self)
        return self.function(xp).apply

    def __call__(self, xp, *xs):
        return self.made(xp)(*xs)

    def partial(self, xp, y, *xs):
        """The function as a partial derivative of another."""
        return self(xp, *xs)

    def function(self, m):
        """The rules as a `Function` of symgrad or of torch."""
        class UnderAttack(m.autograd.Function):
            @staticmethod
            def forward(ctx, *xs):
                y = self.forward(m, *xs)
                ctx.save_for_backward(*xs, y)
                ctx.save_for_forward(*xs, y)
                return y

            @staticmethod
            def backward(ctx, g):
                *xs, y = ctx.saved_tensors
                if self.pullback is not None:
                    return self.pullback(m, g, y, *xs)
                return tuple(None if p is None else g * p(m, y, *xs) for p in self.partials)

        if self.pullback is None:
            def jvp(ctx, *tangents):
                *xs, y = ctx.saved_for_forward
                terms = [t * p(m, y, *xs) for t, p in zip(tangents, self.partials) if t is not None and p is not None]
                return sum(terms[1:], terms[0]) if terms else m.zeros_like(y)

            UnderAttack.jvp = staticmethod(jvp)
        return UnderAttack


@dataclass(frozen=True)
class Entry:
    """One op: what is wrong with it (or difficult about it), how it is made, and what is claimed of it.

    `rules` is None for an op that is not stated as rules, and `library` for one that is not made in any library with torch's names; `point` says
    where a framework's own checker customarily draws the one point it looks at.
    """

    name: str
    category: str
    says: str
    make: Callable[[], Any]
    claims: Mapping[str, Any] = field(default_factory=dict)
    rules: Rules | None = None
    point: str = "normal"
    library: Callable[[Any], Any] | None = None


def unregistered(constructor, *rules, **rest):
    """An op declared with `symgrad.elementwise` or its like, which the registry does not keep."""
    try:
        return constructor("op_under_attack", *rules, **rest).op
    finally:
        extending._unregister("op_under_attack")


def stopped(x):
    """The same numbers, of which no derivative is taken, in any framework."""
    if type(x).__module__.startswith("jax"):
        import jax

        return jax.lax.stop_gradient(x)
    return x.detach() if hasattr(x, "detach") else x


def one_where(xp, x):
    """1 where a number is positive and 0 elsewhere, in its dtype."""
    return xp.where(x > 0, xp.ones_like(x), xp.zeros_like(x))


def torch_library():
    """torch, on one thread, since the arrays are small."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    return torch


def ruled(m, forward, backward, vmap=None):
    """A `Function` of a library, of a forward `(*xs)`, a backward `(ctx, g, *xs)` and perhaps a rule for vmap."""
    class Ruled(m.autograd.Function):
        @staticmethod
        def forward(*xs):
            return forward(*xs)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g, *ctx.saved_tensors)

    if vmap is not None:
        Ruled.vmap = staticmethod(lambda info, in_dims, *xs: vmap(info, in_dims, *xs))
    return Ruled


def sine(m, backward):
    """sin with a backward `(g, x)` of its own."""
    return ruled(m, m.sin, lambda ctx, g, x: backward(g, x))


def once(m):
    """sinh, which is differentiable once."""
    return ruled(m, lambda x: x.sinh(), m.autograd.function.once_differentiable(lambda ctx, g, x: g * x.cosh()))


def _enter(table, entry):
    assert entry.name not in table, entry.name
    table[entry.name] = entry


def rules_of(table, name, category, says, forward, *partials, form="op",
             pullback=None, point="normal", **claims):
    """Enter an op of rules, as an op of elements or (form "function", or with a pullback) as a `Function`; the rules are returned."""
    rules = Rules(forward, partials, pullback)
    if form == "function" or pullback is not None:
        make = functools.partial(rules.function, symgrad)
    else:
        make = functools.partial(unregistered, symgrad.elementwise, forward, *partials)
    _enter(table, Entry(name, category, says, make, claims, rules, point))
    return rules


def made(table, name, category, says, point="normal", **claims):
    """Enter, as a decorator, an op that a function makes, in a library where it takes one."""
    def enter(make):
        of_library = len(inspect.signature(make).parameters) == 1
        own = functools.partial(make, symgrad) if of_library else make
        _enter(table, Entry(name, category, says, own, claims, None, point, make if of_library else None))
        return make

    return enter


def wrong(name, category, says, *rules, **rest):
    """Enter a wrong op: of rules where they are given, else as a decorator of what makes it."""
    return (rules_of if rules else made)(WRONG, name, category, says, *rules, **rest)


def right(name, category, says, *rules, **rest):
    """Enter an op that is right: of rules where they are given, else as a decorator of what makes it."""
    return (rules_of if rules else made)(RIGHT, name, category, says, *rules, **rest)
