"""Ops whose forward keeps a residual for the derivative, a shared exponential, on large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.dual import Dual
from symgrad.engine.operands import Lifted
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.classes import derived
from symgrad.graph.freed import freed
from symgrad.graph.modes import special, thread
from symgrad.graph.node import GRADIENT, NAMED, RELEASED, TRACKED, Node, node_class
from symgrad.graph.op import Op
from symgrad.system.errorstate import quietly

LARGE = 256  # elements from which sharing an exponential is worth its overhead


def _node_with_residual(op: Op, slope: Lifted, bend: Lifted) -> type[Node]:
    """The node class of an op whose derivative is computed from a residual of the forward."""

    def vjp(self: Any, xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        if xp is numeric:
            partial = slope(self.residual)
            return (np.multiply(g, partial, out=partial),)
        (x,) = args
        if type(x) is Dual and xp.base is numeric:
            partial = slope(self.residual)
            return (g * Dual(partial, x.tangent * bend(x.value, self.value, partial)),)
        return op.vjp(xp, g, y, args, needs)  # type: ignore[misc]

    def residual_jvp(self: Any, tangent: Any) -> Any:
        return tangent * slope(self.residual)

    def release(self: Any) -> None:
        self.flags |= RELEASED
        if not self.flags & NAMED:
            self.args, self.value, self.residual = None, freed, None

    return derived(node_class(op), __slots__=("residual",), vjp=vjp, residual_jvp=residual_jvp, release=release, saves=None)


def with_residual(op: Op, plain: Lifted, pair: Lifted, slope: Lifted, bend: Lifted) -> Lifted:
    """The function of a unary op: `plain`, except on large arrays that require grad, where `pair` computes value and residual."""
    make = _node_with_residual(op, slope, bend)

    def function(input: Any, out: Any = None) -> Tensor:
        if not isinstance(input, Tensor) or input._node_slot is None or out is not None:
            return plain(input, out)
        x, p = input._value, input._node_slot
        if type(x) is not np.ndarray or x.size < LARGE or x.dtype.kind != "f" or not p.flags & GRADIENT or special and not thread.modes.plain:
            return plain(input)
        y, residual = quietly(pair, x)
        node = make((x,), (p,), y, p.flags & TRACKED)
        node.residual = residual  # type: ignore[attr-defined]
        return wrap(y, node)

    return function
