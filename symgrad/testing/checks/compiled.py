"""The check of compiled calls: programs give what the op gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.compiled.function import CompiledFunction, compile
from symgrad.engine.tensor import Tensor, wrap
from symgrad.frameworks.adapter import Array, Arrays, is_active
from symgrad.func.transforms import grad
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.checks.calls import size_of
from symgrad.testing.checks.comparing import Sides, agree_at
from symgrad.testing.examples import Example
from symgrad.trees import flatten

__all__ = ["check_compiled", "compiled_derivatives"]

KINDS = ("points", "broadcast", "scalars", "empty")


def compiled_derivatives(attack: Attack, example: Example, backend: str = "numpy", order: int = 2) -> list[tuple[str, int, Any, CompiledFunction]]:
    """The op at an example, its gradient and its second derivative: each with its name, its order, as a function of the arguments, and compiled."""
    places = tuple(i for i, x in enumerate(example.xs) if is_active(x))
    weights = wrap(example.cotangent)

    def value(*tensors: Tensor) -> Any:
        return attack.subject.call(list(tensors))

    def weighted(*tensors: Tensor) -> Any:
        return (value(*tensors) * weights).sum()

    def of_gradient(*tensors: Tensor) -> Any:
        return sum([c.sum() for c in grad(weighted, places)(*tensors)], wrap(np.zeros((), example.cotangent.dtype)))

    functions = [("value", value), ("gradient", grad(weighted, places)), ("second derivative", grad(of_gradient, places))]
    real = places and all(x.dtype.kind != "c" for x in (*example.xs, example.cotangent))
    return [(name, k, function, compile(function, derivatives="value", backend=backend))
            for k, (name, function) in enumerate(functions[:1 + min(attack.order, order) if real else 1])]


@check("compiled", most=2, when=lambda attack: "it is no function of symgrad" if attack.subject.framework != "symgrad" else
       "it is random" if attack.claims.random else "")
def check_compiled(attack: Attack, example: Example) -> None:
    """The op and its first two derivatives give the same when they are compiled, at other arguments of the shapes, too.

    The check does not apply to random ops, and to other frameworks. Raises CheckFailure where a compiled result differs.

    >>> import symgrad
    >>> check_compiled(symgrad.exp).verdict
    'passed'
    """
    others = [e for kind in KINDS for e in attack.examples(kind)[:1]]
    for at in (example, *others):
        for name, order, function, compiled in compiled_derivatives(attack, at):
            compiled(*map(wrap, at.xs))  # so that the next call runs what this one has recorded

            def sides(xs: Arrays, name: str = name, order: int = order, function: Any = function, compiled: Any = compiled) -> list[Sides]:
                pairs = zip(_arrays(compiled(*map(wrap, xs))), _arrays(function(*map(wrap, xs))))
                return [Sides(f"the compiled {name} is not that of the op", a, b, size_of(attack, b), order, (), True) for a, b in pairs]

            agree_at(at, lambda xs, *rest, sides=sides: sides(xs))


def _arrays(tree: Any) -> Sequence[Array]:
    return [np.asarray(y._value if isinstance(y, Tensor) else y) for y in flatten(tree)[0]]

