"""Slopes that jump, as nodes of a graph that is differentiated again.

The derivative of relu is 0 or 1. As a constant of the graph, the 0 at the kink could not be told from that of a region, where a product with it
does not depend on the other factor. So the slope is recorded as the value of an op of the same arguments.
"""

from __future__ import annotations

import functools
from typing import Any

from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.graph.derived import RECORDERS, elementwise_jvp, elementwise_vjp, with_recorded_slopes
from symgrad.graph.op import Op


def slope_op(op: Op, i: int) -> Op:
    """The op of partial derivative `i` of an elementwise op that selects. Its own derivatives are 0 if it is constant on regions."""
    of, indices = op.slope or (op, ())
    return _slope_op(of, (*indices[:1], *sorted((*indices[1:], i))))


@functools.cache
def _slope_op(op: Op, indices: tuple[int, ...]) -> Op:
    """The derivative of an op by several arguments, one after the other."""
    def forward(xp: Any, *args: Any) -> Any:
        return _derivative(op, indices, xp, args)

    constant: Any = op.piecewise_linear
    partials = tuple([0 if constant else functools.partial(_by_one_more, op, indices, j) for j in range(len(op.partials))])
    pull, push = elementwise_vjp(partials, bool(op.parameters)), elementwise_jvp(partials)
    if not constant:
        pull, push = with_recorded_slopes(lambda: found, pull, push)
    found = op.but(name=f"slope_of_{op.name}_{'_'.join(map(str, indices))}", forward=forward, partials=partials, node_name="SlopeBackward0",
                    slope=(op, indices), saved=None, inverse=None, names=None, vjp=pull, jvp=push)
    return found


def _of_duals(xp: DualCarrier, op: Op, i: int, y: Any, args: tuple) -> Any:
    """A partial derivative of dual values, of which the values are recorded if their carrier records."""
    if (record := RECORDERS.get(type(xp.base))) is None:
        partial: Any = op.partials[i]
        return partial(xp, y, *args)
    return xp.apply(slope_op(op, i), args[:op.arity], args[op.arity:], lambda *values: record(xp.base, op, i, None, values))


RECORDERS[DualCarrier] = _of_duals


def _by_one_more(op: Op, indices: tuple[int, ...], j: int, xp: Any, y: Any, *args: Any) -> Any:
    return _derivative(op, (*indices, j), xp, args)


def _derivative(op: Op, indices: tuple[int, ...], xp: Any, args: tuple) -> Any:
    """A derivative of an op: the partial derivative of dual numbers of dual numbers, one level for each further argument.

    Every array is dual at every level, as it may be a dual number of the carrier itself; what is none is constant.
    """
    count = len(op.partials)
    value, arrays, rest, carrier = op.forward(xp, *args), args[:count], args[count:], xp
    y = value
    for j in indices[1:]:
        slope: Any = op.partials[j]
        y = Dual(y, slope(carrier, y, *arrays, *rest) if callable(slope) else carrier.ones_like(y) * slope)
        units = [carrier.ones_like if i == j else carrier.zeros_like for i in range(count)]
        arrays = tuple([Dual(x, unit(x)) if hasattr(x, "shape") else x for x, unit in zip(arrays, units)])
        carrier = DualCarrier(carrier)
    partial: Any = op.partials[indices[0]]
    found = partial(carrier, y, *arrays, *rest)
    for _ in indices[1:]:
        if type(found) is not Dual:
            return xp.zeros_like(value)
        found = found.tangent
    # a slope that does not read every argument has the shape of those it reads
    return found if getattr(found, "shape", None) == value.shape else found * xp.ones_like(value)
