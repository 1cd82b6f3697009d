"""Slopes that jump, as nodes of a graph that is differentiated again.

The derivative of relu is 0 or 1. As a constant of the graph, the 0 at the kink could not be told from that of a region, where a product with it
does not depend on the other factor. So the slope is recorded as the value of an op of the same arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.graph.derived import elementwise_jvp, elementwise_vjp
from symgrad.graph.op import Op
from symgrad.graph.slopes import RECORDERS, with_recorded_slopes

__all__ = ["slope_op"]


@functools.cache
def slope_op(op: Op, i: int) -> Op:
    """The op of partial derivative `i` of an elementwise op that selects. Its own derivatives are 0 if it is constant on regions."""
    partial: Any = op.partials[i]

    def forward(xp: Any, *args: Any) -> Any:
        return partial(xp, op.forward(xp, *args), *args)

    partials = (0,) * len(op.partials) if op.piecewise_linear else tuple([_mixed(op, partial, j) for j in range(len(op.partials))])
    pull, push = elementwise_vjp(partials, bool(op.parameters)), elementwise_jvp(partials)
    if not op.piecewise_linear:
        pull, push = with_recorded_slopes(lambda: found, pull, push)
    found = replace(op, name=f"slope_of_{op.name}_{i}", forward=forward, partials=partials, node_name="SlopeBackward0", slope=True, saved=None,
                    inverse=None, names=None, vjp=pull, jvp=push)
    return found


def _of_duals(xp: DualCarrier, op: Op, i: int, y: Any, args: tuple) -> Any:
    """A partial derivative of dual values, of which the values are recorded if their carrier records."""
    if (record := RECORDERS.get(type(xp.base))) is None:
        partial: Any = op.partials[i]
        return partial(xp, y, *args)
    return xp.apply(slope_op(op, i), args[:op.arity], args[op.arity:], lambda *values: record(xp.base, op, i, None, values))


RECORDERS[DualCarrier] = _of_duals


def _mixed(op: Op, partial: Callable[..., Any], j: int) -> Callable[..., Any]:
    """The derivative by argument `j` of a partial derivative."""
    count, slope = len(op.partials), cast(Any, op.partials[j])

    def derivative(xp: Any, y: Any, *args: Any) -> Any:
        value = op.forward(xp, *args)
        # every array is dual, as it may be a dual number of the carrier itself
        along = [Dual(x, xp.ones_like(x) if i == j else xp.zeros_like(x)) if hasattr(x, "shape") else x for i, x in enumerate(args[:count])]
        found = partial(DualCarrier(xp), Dual(value, slope(xp, value, *args)), *along, *args[count:])
        return found.tangent if type(found) is Dual else xp.zeros_like(value)

    return derivative
