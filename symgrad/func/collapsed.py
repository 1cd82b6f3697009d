"""The pass behind Laplacians: values, first derivatives along directions, and the sum of the second derivatives along each of them.

For a path with first derivatives t_d and second derivatives s_d, an op f gives Σ s_d(y) = ∂f · Σ s_d + Σ ∂²f(t_d, t_d). The sum is linear in the
sums of the arguments, so the single second derivatives are never computed. The terms of an op are derived from its declaration.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, sum_out
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.guarding import guarded, has_nan
from symgrad.carriers.recorded import Recorded
from symgrad.engine.saved import read, read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.engine.unmoved import drops, plus_zeros_by_factors, stilled, unmoved, unmoved_by, without
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import gradient_tangents
from symgrad.graph.common import OutputNode
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import in_mode
from symgrad.graph.node import PACKED, Node
from symgrad.graph.op import Op
from symgrad.program.passes import PassProgram, recording
from symgrad.system.errorstate import computed_outside, quietly

Read = Callable[[Node], tuple[Any, tuple]]
# Ops that are linear in each of these arguments if the others are constant, with the positions of the arguments.
LINEAR_ALONE = {"mul": (0, 1), "div": (0,)}
# Ops that act on each row of their first argument, so that a tangent that is equal for all rows may stay a single row.
BY_ROWS = {"mm", "batched_matmul"}


def sums_of_second_derivatives(ev: Evaluation, tangents: Sequence[Tensor], weights: Tensor | None, level: int, count: int) -> list[Any]:
    """Σ_d w_d · ∂²y/∂x²(t_d, t_d) for every output y, None where it is zero: NumPy values, or Tensors if the evaluation is tracked.

    The tangents of the inputs are batched at a level, with `count` members. They may have length 1 along axes where they are all alike.
    """
    if any([node.op.kind == "function" or getattr(getattr(node.value, "dtype", None), "kind", None) == "c" for node in ev.path]):
        return _sums_by_pullbacks(ev, tangents, weights, level, count)
    with in_mode(grad=ev.tracked), contextlib.suppress(NotImplementedError):  # raised by a custom function without a pushforward
        if ev.tracked:
            return _CollapsedPass(traced, weights, level, count).outputs(ev, dict(zip(ev.nodes, tangents)), read_traced)
        starts = {node: t._value for node, t in zip(ev.nodes, tangents)}
        return _CollapsedPass(numeric, None if weights is None else weights._value, level, count).outputs(ev, starts, read)
    return _sums_by_pullbacks(ev, tangents, weights, level, count)


def _sums_by_pullbacks(ev: Evaluation, tangents: Sequence[Tensor], weights: Tensor | None, level: int, count: int) -> list[Any]:
    """The sums from products with the Hessian of each element of each output, for custom functions without a pushforward."""
    out: list[Any] = []
    for y in ev.outputs:
        if y._node not in ev.between:
            out.append(None)
            continue
        with in_mode(grad=True):
            flat, total = traced.reshape(y, (-1,)), []
            along = [traced.expand(t, tuple(x.shape)) for t, x in zip(tangents, ev.inputs)]
            for k in range(flat.shape[0]):
                element = traced.select(flat, 0, k)
                products = gradient_tangents(ev.with_outputs([element]), element, along)
                s: Any = sum([traced.sum(t * h) for t, h in zip(along, products)])
                total.append(traced.sum(traced.unbatch(s if weights is None else s * weights, 0, level, count), (0,)))
            found = traced.reshape(traced.stack(total), tuple(y.shape))
        out.append(found if ev.tracked else found._value)
    return out


class _CollapsedPass:
    """One pass: the tangents of each node, batched over the directions, and the sum of its second derivatives. None is a symbolic zero."""

    def __init__(self, xp: Any, weights: Any, level: int, count: int):
        self.xp, self.dual, self.tracked = xp, DualCarrier(xp), xp is traced
        self.weights, self.level, self.count = weights, level, count
        self.ones: dict[Any, Any] = {}
        self.selects = False
        self.stays: Any = None  # the elements that do not move, in a guarded pass

    def outputs(self, ev: Evaluation, tangents: Mapping[Node, Any], read: Read) -> list[Any]:
        """The sum of the second derivatives of each output."""
        found = self.sums(ev, dict(tangents), read)
        if any([s is not None and not isinstance(s, tuple) and has_nan(self.xp, s) for s in found]):
            self.stays, self.selects = quietly(unmoved, ev.path, dict.fromkeys(ev.nodes)), any([node.selects for node in ev.path])
            found = self.sums(ev, dict(tangents), read)
        return [s if s is None else self.broadcast(s, y) for s, y in zip(found, ev.outputs)]

    def sums(self, ev: Evaluation, tangents: dict[Any, Any], read: Read) -> list[Any]:
        """The sums of the outputs, before they are broadcast; guarded, if the elements that stay are known."""
        sums: dict[Any, Any] = {}
        computed_outside(self._add_sums(sums, ev, tangents, read))
        return [sums.get(y._node) for y in ev.outputs]

    def _add_sums(self, sums: dict[Any, Any], ev: Evaluation, tangents: dict[Any, Any], read: Read) -> Generator[Callable[[], Any], Any, None]:
        wanted = _nodes_with_tangents(ev)
        for node in ev.path:
            parents = node.parents
            ts, ss = [tangents.get(p) for p in parents], [sums.get(p) for p in parents]
            if any([x is not None for x in ts]) or any([x is not None for x in ss]):
                call = functools.partial(self.guarded, node, ts, ss, node in wanted, read)
                tangents[node], sums[node] = (yield call) if node.outside or node.flags & PACKED else call()

    def guarded(self, node: Node, ts: Sequence[Any], ss: Sequence[Any], wanted: bool, read: Read) -> Sequence[Any]:
        """What `propagate` finds; in a guarded pass, without the products of elements that stay."""
        found: Any = self.propagate(node, ts, ss, wanted, read)
        if self.stays is None:
            return found
        count, mask = len(ts), self.stays.get(node)
        if node.op.kind == "function" or any([isinstance(x, tuple) for x in found]):
            return found
        if self.selects and drops(node.op, [t is not None or s is not None for t, s in zip(ts, ss)]):
            found = guarded(self.xp, lambda given: self.propagate(node, given[:count], given[count:], wanted, read), [*ts, *ss], found)
        if node.op.kind == "elementwise" and any([x is not None and has_nan(self.xp, x) for x in found]):
            masks = [None if t is None and s is None else unmoved_by(node, i, self.stays) for i, (t, s) in enumerate(zip(ts, ss))]
            if any([m is not None for m in masks]):
                still_ts, still_ss = ([stilled(self.xp, x, m) for x, m in zip(xs, masks)] for xs in (ts, ss))
                others: Sequence[Any] = self.propagate(node, still_ts, still_ss, wanted, read)
                still = [i for i, m in enumerate(masks) if m is not None]
                others = [plus_zeros_by_factors(self.xp, node, still, x, read(node)[1], self.stays) for x in others]
                found = [x if x is None else self.xp.where(self.xp.isnan(x), other, x) for x, other in zip(found, others)]
        return found if mask is None else [None if x is None else without(self.xp, self.broadcast(x, node.value), mask) for x in found]

    def propagate(self, node: Node, ts: Sequence[Any], ss: Sequence[Any], wanted: bool, read: Read) -> tuple[Any, Any]:
        """The tangents of a node, if they are needed, and its sum, from those of its arguments."""
        op = node.op
        if type(node) is DerivativeNode:
            return ts[0], ss[0]
        if type(node) is OutputNode:
            k = node.output_nr
            return None if ts[0] is None else ts[0][k], None if ss[0] is None else ss[0][k]
        if op.jvp is None:
            return None, None
        y, args = read(node)
        rows = op.name in BY_ROWS and ts[1] is None and ss[1] is None
        if rows and op.name == "mm" and not self.tracked:
            t = self.product(ts[0], args[1]) if wanted and ts[0] is not None else None
            return t, None if ss[0] is None else op.jvp(self.xp, ss, y, args)
        ts = [t.product() if type(t) is _DeferredProduct else t for t in ts]
        if op.kind == "elementwise":
            return self.elementwise(op, y, args, ts, ss, wanted)
        if not rows:
            ts, ss = [self.broadcast(t, x) for t, x in zip(ts, args)], [self.broadcast(s, x) for s, x in zip(ss, args)]
        curved = op.kind not in ("linear", "multilinear")
        t = op.jvp(self.xp, ts, y, args) if wanted or curved else None
        s = op.jvp(self.xp, ss, y, args) if any([s is not None for s in ss]) else None
        if op.kind == "multilinear":
            s = self.add_mixed_terms(op, args, ts, s)
        elif curved:
            along = tuple([a if d is None else Dual(a, d) for a, d in zip(args, ts)]) + args[len(ts):]
            s = self.add_dual(s, op.jvp(self.dual, ts, y if t is None else Dual(y, t), along))
        return t, s

    def elementwise(self, op: Op, y: Any, args: tuple, ts: Sequence[Any], ss: Sequence[Any], wanted: bool) -> tuple[Any, Any]:
        """Σ ∂ᵢ tᵢ, and Σ ∂ᵢ sᵢ + Σ ∂ᵢ∂ⱼ Σ_d tᵢ tⱼ; the second partials are computed as first partials of dual values."""
        partials, slopes = op.partials, {}
        t_out = s_out = None
        for i, (partial, t, s) in enumerate(zip(partials, ts, ss)):
            if (t is None and s is None) or partial is None or not callable(partial) and partial == 0:
                continue
            if callable(partial):
                slopes[i] = partial(self.xp, y, *args)
            if wanted and t is not None:
                lazy = len(partials) == 1 and not self.tracked and self.stays is None and _is_one_row(t, slopes.get(i))
                t_out = _DeferredProduct(t, slopes[i]) if lazy else _add(t_out, _scale(t, slopes.get(i, partial)))
            if s is not None:
                s_out = _add(s_out, _scale(s, slopes.get(i, partial)))
        for i in slopes:
            for j in slopes:
                if i > j or ts[i] is None or ts[j] is None:
                    continue
                one = self.one(args[j])
                c = partials[i](self.dual, Dual(y, slopes[j]), *args[:j], Dual(args[j], one), *args[j + 1:])
                if type(c) is Dual:
                    q = self.weighted_sum(ts[i], ts[j])
                    q = q if i == j else q + q
                    s_out = _add(s_out, q if c.tangent is one else _scale(q, c.tangent))
        return t_out, s_out

    def add_mixed_terms(self, op: Op, args: tuple, ts: Sequence[Any], s: Any) -> Any:
        """The mixed term of a multilinear op for two arguments with tangents: 2 Σ f(.., tᵢ, .., tⱼ, ..)."""
        count = len(ts)
        live = [i for i, t in enumerate(ts) if t is not None]
        for at, i in enumerate(live):
            for j in live[at + 1:]:
                replaced = tuple([ts[k] if k in (i, j) else args[k] for k in range(count)])
                term = self.weighted_sum(op.forward(self.xp, *((replaced,) if op.arity is None else replaced), *args[count:]))
                s = _add(s, term + term)
        return s

    # Parts of the rules

    def product(self, t: Any, matrix: Any) -> Any:
        """The tangents t of the rows of a matrix, times a constant matrix."""
        if type(t) is Batched and t.unit == 0 and t.shape[0] == 1 and t.count == matrix.shape[0]:
            return self.products_with_units(matrix)
        if type(t) is _DeferredProduct and t.slope.shape[0] >= matrix.shape[1]:
            return self.product_of_one_row(t.tangent, t.slope, matrix)
        return self.xp.mm(t.product() if type(t) is _DeferredProduct else t, matrix)

    def products_with_units(self, matrix: np.ndarray) -> Batched:
        """The products of a matrix with all unit vectors on its left."""
        return Batched(matrix[:, None], self.level)

    def product_of_one_row(self, t: Batched, slope: np.ndarray, matrix: np.ndarray) -> Batched:
        """(t ⊙ slope) matrix, for a tangent t of one row, as slope (tᵀ ⊙ matrix), which takes fewer multiplications."""
        return Batched(np.matmul(slope, t.data.transpose(0, 2, 1) * matrix), self.level)

    def one(self, x: Any) -> Any:
        """The number 1 in the dtype of an argument."""
        dtype = x._value.dtype if isinstance(x, Tensor) else getattr(x, "dtype", np.float64)
        if dtype not in self.ones:
            value = np.ones((), dtype)
            self.ones[dtype] = wrap(value) if self.tracked else value
        return self.ones[dtype]

    def broadcast(self, t: Any, x: Any) -> Any:
        """A tangent or a sum broadcast to the shape of its value."""
        return t if t is None or isinstance(t, tuple) or tuple(t.shape) == tuple(x.shape) else self.xp.broadcast_to(t, tuple(x.shape))

    def add_dual(self, s: Any, found: Any) -> Any:
        """A sum plus the tangents of a partial that was computed with dual values."""
        if isinstance(found, tuple):
            return tuple(self.add_dual(a, b) for a, b in zip(s or (None,) * len(found), found))
        return _add(s, self.weighted_sum(found.tangent)) if type(found) is Dual else s

    def weighted_sum(self, a: Any, b: Any = None) -> Any:
        """Σ_d w_d a_d b_d."""
        if not self.tracked and b is not None and self.weights is None:
            return self.contract(a, b)
        u = a if b is None else a * b
        u = u if self.weights is None else u * self.weights
        if self.tracked:
            return traced.sum(traced.unbatch(u, 0, self.level, self.count), (0,), False)
        return self.sum_directions(u)

    def sum_directions(self, u: Any) -> Any:
        """The sum over the directions; an unbatched value is equal for all directions and is multiplied by their number."""
        known = type(u) is Batched and u.level == self.level
        return sum_out(u if known else numeric.batch(numeric.unbatch(u, 0, self.level, self.count), 0, self.level), self.level)

    def contract(self, a: Any, b: Any) -> Any:
        """The sum of products over the directions, as one contraction where possible."""
        if type(a) is type(b) is Batched and a.level == b.level == self.level and "V" not in (a.data.dtype.kind, b.data.dtype.kind):
            x, z = a.data, b.data  # einsum has no bfloat16
            if type(x) is not Batched and type(z) is not Batched and x.ndim == z.ndim:
                return np.einsum("d...,d...->...", x, z)
            if type(x) is type(z) is Batched and x.level == z.level and type(x.data) is type(z.data) is np.ndarray and x.ndim == z.ndim:
                return Batched(np.einsum("bd...,bd...->b...", x.data, z.data), x.level)
        return self.sum_directions(a * b)


class _DeferredProduct:
    """The deferred product of a tangent of one row and a slope of many rows: a following matrix product is cheaper if it comes first."""

    __slots__ = ("tangent", "slope", "_product")

    def __init__(self, tangent: Any, slope: Any):
        self.tangent, self.slope, self._product = tangent, slope, None

    def product(self) -> Any:
        """The computed product."""
        if self._product is None:
            self._product = self.tangent * self.slope
        return self._product


def _is_one_row(t: Any, slope: Any) -> bool:
    """Whether a tangent has one row and its slope several rows."""
    plain = np.ndarray, Recorded
    alike = type(t) is Batched and type(t.data) in plain and type(slope) in plain and t.ndim == slope.ndim == 2
    return alike and t.shape[0] == 1 < slope.shape[0] and t.shape[1] == slope.shape[1]


def _scale(t: Any, slope: Any) -> Any:
    return t * slope if not isinstance(slope, int) else t if slope == 1 else -t if slope == -1 else t * slope


def _add(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _nodes_with_tangents(ev: Evaluation) -> set[Node]:
    """The nodes whose tangents are needed: those upstream of an op that is not linear in its changing arguments."""
    out: set[Node] = set()
    between = ev.between
    for node in reversed(ev.path):
        parents = [p for p in node.parents if p in between]
        if node in out or not is_linear(node, parents):
            out.update(parents)
    return out


def is_linear(node: Node, parents: Sequence[Node]) -> bool:
    """Whether an op is linear in its changing arguments, which are these parents in the order of the arguments."""
    op = node.op
    if op.kind == "linear" or type(node) is OutputNode:
        return True
    alone = len(parents) == 1
    if op.kind == "multilinear":
        return alone
    if op.kind == "elementwise":
        return not any(map(callable, op.partials)) or alone and op.name in LINEAR_ALONE and node.parents.index(parents[0]) in LINEAR_ALONE[op.name]
    return False


class CollapsedProgram(PassProgram):
    """The pass along fixed directions as a program, for every graph with one signature."""

    def __init__(self, ev: Evaluation, tangents: Sequence[Batched]):
        once = _CollapsedPass(recording, None, tangents[0].level, tangents[0].count)
        super().__init__(ev.path, lambda read, vectors, ends: [once.outputs(ev, dict(zip(ev.nodes, tangents)), read)])
