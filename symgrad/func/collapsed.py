"""The pass behind Laplacians: values, first derivatives along directions, and the sum of the second derivatives along each of them.

For a path with first derivatives t_d and second derivatives s_d, an op f gives Σ s_d(y) = ∂f · Σ s_d + Σ ∂²f(t_d, t_d): the sum is linear in the sum of
the arguments', so that no second derivative is ever known by itself. What an op adds is read from its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.bundles import Output
from symgrad.autograd.engine import read_traced
from symgrad.carriers import ELEMENTWISE, numeric
from symgrad.carriers.batched import Batched, sum_out
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import second
from symgrad.graph import FREED, Link, Node, board, record
from symgrad.lift import traced
from symgrad.op import Op
from symgrad.saved import verify
from symgrad.tensor import Tensor, wrap

__all__ = ["collapsed", "is_linear"]

# Ops that are linear in one argument while the others are constant, with the places of those arguments.
LINEAR_ALONE = {"mul": (0, 1), "div": (0,)}
# Ops whose rows are those of their first argument, so that a tangent which is the same for every row may stay one row.
BY_ROWS = {"mm", "batched_matmul"}
SLOPES = {"tanh": "sech_square"}  # where the derivative of an op that keeps a residual has a name


def collapsed(ev: Evaluation, tangents: Sequence[Tensor], weights: Tensor | None, level: int, count: int) -> list[Any]:
    """Σ_d w_d · ∂²y/∂x²(t_d, t_d) for every output y, None where it is zero: values, or Tensors where the evaluation is tracked.

    The tangents of the inputs are batched at a level, with `count` members. They may have length 1 along axes where they are all alike.
    """
    if any([node.op.kind == "function" for node in ev.path]):
        return _by_pullbacks(ev, tangents, weights, level, count)
    before = record(ev.tracked)
    try:
        starts = {node: t if ev.tracked else t._value for node, t in zip(ev.nodes, tangents)}
        found = _Collapsed(ev.tracked, weights if ev.tracked or weights is None else weights._value, level, count).carried(ev, starts)
        return [None if s is None else s if tuple(s.shape) == tuple(y.shape) else ev.xp.broadcast_to(s, tuple(y.shape))
                for y, s in zip(ev.outputs, (found.get(y._node) for y in ev.outputs))]  # type: ignore[arg-type]
    finally:
        record(before)


def _by_pullbacks(ev: Evaluation, tangents: Sequence[Tensor], weights: Tensor | None, level: int, count: int) -> list[Any]:
    """The same from products with the Hessian of each element of each output, where custom Functions say only how cotangents are pulled back."""
    from symgrad.func.evaluation import _between

    out = []
    for y in ev.outputs:
        if y._node not in ev.between:
            out.append(None)
            continue
        before = record(True)
        try:
            flat = traced.reshape(y, (-1,))
            elements = [traced.select(flat, 0, k) for k in range(flat.shape[0])]
            along = [traced.expand(t, tuple(x.shape)) for t, x in zip(tangents, ev.inputs)]
            total = []
            for element in elements:
                between, path, _ = _between([element._node], ev.nodes)
                import dataclasses

                alone = dataclasses.replace(ev, outputs=[element], between=between, path=path)
                products = second(alone, element, along)
                terms = [traced.sum(t * h) for t, h in zip(along, products)]
                s = terms[0]
                for term in terms[1:]:
                    s = s + term
                s = s if weights is None else s * weights
                total.append(traced.sum(traced.unbatch(s, 0, level, count), (0,)))
            s = traced.reshape(traced.stack(total), tuple(y.shape))
        finally:
            record(before)
        out.append(s if ev.tracked else s._value)
    return out


class _Remembering:
    """The numeric carrier, which computes a function of one array once: what a rule of second order asks for, that of first order has computed."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], Any] = {}
        self.held: list[Any] = []  # so that no array is another one's successor in memory

    def note(self, name: str, x: Any, y: Any) -> None:
        """Remember that a function of `x` is `y`."""
        self.known[name, id(x)] = y
        self.held.append(x)

    def __getattr__(self, name: str) -> Any:
        function = getattr(numeric, name)
        if name in ELEMENTWISE:
            plain, known = function, self.known

            def function(*args: Any) -> Any:
                if len(args) > 1 or type(args[0]) not in (np.ndarray, Batched):
                    return plain(*args)
                found = known.get((name, id(args[0])))
                if found is None:
                    found = plain(*args)
                    self.note(name, args[0], found)
                return found

        self.__dict__[name] = function
        return function


class _Collapsed:
    """One pass: for each node its tangents, batched over the directions, and the sum of its second derivatives. None stands for zero."""

    def __init__(self, tracked: bool, weights: Any, level: int, count: int):
        self.xp: Any = traced if tracked else _Remembering()
        self.dual = DualCarrier(self.xp)
        self.tracked, self.weights, self.level, self.count = tracked, weights, level, count
        self.ones: dict[Any, Any] = {}

    def carried(self, ev: Evaluation, tangents: dict[Node, Any]) -> dict[Node, Any]:
        """The sum of the second derivatives at each node that has one."""
        sums: dict[Node, Any] = {}
        wanted = _wanted(ev)
        for node in ev.path:
            parents = node.parents
            ts, ss = [tangents.get(p) for p in parents], [sums.get(p) for p in parents]  # type: ignore[arg-type]
            if not any([x is not None for x in ts]) and not any([x is not None for x in ss]):
                continue
            t, s = self.through(node, ts, ss, node in wanted)
            if t is not None:
                tangents[node] = t
            if s is not None:
                sums[node] = s
        return sums

    def through(self, node: Node, ts: Sequence[Any], ss: Sequence[Any], wanted: bool) -> tuple[Any, Any]:
        """The tangents of a node, where they are wanted, and its sum, from those of its arguments."""
        op = node.op
        if type(node) is Link:
            return ts[0], ss[0]
        if type(node) is Output:
            k = node.output_nr
            return None if ts[0] is None else ts[0][k], None if ss[0] is None else ss[0][k]
        if op.jvp is None:
            return None, None
        if node.args is None:
            raise RuntimeError(FREED)
        if self.tracked:
            y, args = read_traced(node)
        else:
            if node.sequence_nr < board.written:
                verify(node, node.parents)
            y, args = node.value, node.args
        if op.kind == "elementwise":
            return self.elementwise(node, op, y, args, ts, ss, wanted)
        if not (op.name in BY_ROWS and ts[1] is None and ss[1] is None):
            ts, ss = [self.fitted(t, x) for t, x in zip(ts, args)], [self.fitted(s, x) for s, x in zip(ss, args)]
        linear = op.kind == "linear"
        t = op.jvp(self.xp, ts, y, args) if wanted or not linear and op.kind != "multilinear" else None
        s = op.jvp(self.xp, ss, y, args) if any([s is not None for s in ss]) else None
        if op.kind == "multilinear":
            s = self.crossed(op, args, ts, s)
        elif not linear:
            along = tuple([a if d is None else Dual(a, d) for a, d in zip(args, ts)]) + args[len(ts):]
            s = self.joined(s, op.jvp(self.dual, ts, y if t is None else Dual(y, t), along))
        return t, s

    def elementwise(self, node: Node, op: Op, y: Any, args: tuple, ts: Sequence[Any], ss: Sequence[Any], wanted: bool) -> tuple[Any, Any]:
        """Σ ∂ᵢ tᵢ, and Σ ∂ᵢ sᵢ + Σ ∂ᵢ∂ⱼ Σ_d tᵢ tⱼ: each second partial from a partial that is read with a dual value."""
        xp, partials, slopes = self.xp, op.partials, {}
        if not self.tracked:
            if len(ts) == len(args) == 1:
                xp.note(op.name, args[0], y)
            if (residual := getattr(node, "residual", None)) is not None and op.name in SLOPES:
                xp.note(SLOPES[op.name], args[0], numeric.WITH_RESIDUAL[op.name][1](residual))
        t_out = s_out = None
        for i, (partial, t, s) in enumerate(zip(partials, ts, ss)):
            if (t is None and s is None) or partial is None or partial.__class__ is int and not partial:
                continue
            slope = partial
            if callable(partial):
                slope = slopes[i] = partial(xp, y, *args)
            if wanted and t is not None:
                t_out = _sum(t_out, _scaled(t, slope))
            if s is not None:
                s_out = _sum(s_out, _scaled(s, slope))
        for i in slopes:
            for j in slopes:
                if i > j or ts[i] is None or ts[j] is None:
                    continue
                one = self.one(args[j])
                c = partials[i](self.dual, Dual(y, slopes[j]), *args[:j], Dual(args[j], one), *args[j + 1:])
                if type(c) is Dual:
                    q = self.total(ts[i], ts[j])
                    q = q if i == j else q + q
                    s_out = _sum(s_out, q if c.tangent is one else q * c.tangent)
        return t_out, s_out

    def crossed(self, op: Op, args: tuple, ts: Sequence[Any], s: Any) -> Any:
        """What two arguments of a multilinear op that both change add: 2 Σ f(.., tᵢ, .., tⱼ, ..)."""
        count = len(ts)
        live = [i for i, t in enumerate(ts) if t is not None]
        for at, i in enumerate(live):
            for j in live[at + 1:]:
                replaced = tuple([ts[k] if k in (i, j) else args[k] for k in range(count)])
                term = self.total(op.forward(self.xp, *((replaced,) if op.arity is None else replaced), *args[count:]))
                s = _sum(s, term + term)
        return s

    # The pieces

    def one(self, x: Any) -> Any:
        """The number 1 in the dtype of an argument."""
        dtype = x._value.dtype if isinstance(x, Tensor) else getattr(x, "dtype", np.float64)
        if dtype not in self.ones:
            value = np.ones((), dtype)
            self.ones[dtype] = wrap(value) if self.tracked else value
        return self.ones[dtype]

    def fitted(self, t: Any, x: Any) -> Any:
        """A tangent or a sum in the shape of its value."""
        return t if t is None or isinstance(t, tuple) or tuple(t.shape) == tuple(x.shape) else self.xp.broadcast_to(t, tuple(x.shape))

    def joined(self, s: Any, found: Any) -> Any:
        """A sum with the tangents of a derivative that was read with dual values."""
        if isinstance(found, tuple):
            return tuple(self.joined(a, b) for a, b in zip(s or (None,) * len(found), found))
        return _sum(s, self.total(found.tangent)) if type(found) is Dual else s

    def total(self, a: Any, b: Any = None) -> Any:
        """Σ_d w_d a_d b_d."""
        if self.tracked:
            u = a if b is None else a * b
            u = u if self.weights is None else u * self.weights
            return traced.sum(traced.unbatch(u, 0, self.level, self.count), (0,), False)
        if b is None or self.weights is not None:
            u = a if b is None else a * b
            u = u if self.weights is None else u * self.weights
            if type(u) is not Batched or u.level != self.level:
                u = numeric.batch(numeric.unbatch(u, 0, self.level, self.count), 0, self.level)
            return sum_out(u, self.level)
        if type(a) is Batched and type(b) is Batched and a.level == b.level == self.level:
            x, z = a.data, b.data
            if x.ndim == z.ndim:
                if type(x) is np.ndarray and type(z) is np.ndarray:
                    return np.einsum("d...,d...->...", x, z)
                if type(x) is Batched and type(z) is Batched and x.level == z.level and type(x.data) is type(z.data) is np.ndarray:
                    return Batched(np.einsum("bd...,bd...->b...", x.data, z.data), x.level)
        return self.total(a * b)


def _scaled(t: Any, slope: Any) -> Any:
    return t if slope.__class__ is int and slope == 1 else -t if slope.__class__ is int and slope == -1 else t * slope


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _wanted(ev: Evaluation) -> set[Node]:
    """The nodes whose tangents somebody uses: some op after them, in which they meet or are curved."""
    out: set[Node] = set()
    between = ev.between
    for node in reversed(ev.path):
        parents = [p for p in node.parents if p in between]
        if node in out or not is_linear(node, parents):
            out.update(parents)
    return out


def is_linear(node: Node, parents: Sequence[Node]) -> bool:
    """Whether an op is linear in what changes of its arguments."""
    op = node.op
    if op.kind == "linear" or type(node) is Output:
        return True
    alone = len(parents) == 1
    if op.kind == "multilinear":
        return alone
    if op.kind == "elementwise":
        return not any(map(callable, op.partials)) or alone and op.name in LINEAR_ALONE and node.parents.index(parents[0]) in LINEAR_ALONE[op.name]
    return False


