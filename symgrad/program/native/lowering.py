"""Programs in primitive operations: words that move elements become strides, compound words become several operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import PROTOCOL
from symgrad.carriers.structure import is_basic
from symgrad.program.native import elementwise
from symgrad.program.native.elementwise import Elementwise
from symgrad.program.native.indexing import einsum, has_recorded, recorded_positions
from symgrad.program.native.nodes import (
    C_TYPES,
    FLOAT32,
    FLOAT64,
    INT64,
    KernelGraph,
    Ref,
    Unsupported,
    broadcast,
    filling,
    is_zeros,
    permuted,
    row_major,
    selections,
    view,
)
from symgrad.program.program import LISTS, Program, arguments

EMPTY = {"sum": 0, "prod": 1, "all": True, "any": False, "norm": 0}


def lower(program: Program) -> tuple[KernelGraph, list[Ref]]:
    """The graph of the primitive operations of a program, and its outputs."""
    graph = KernelGraph()
    values = [graph.add("input", (), (i,), tuple(x.shape), np.dtype(x.dtype)) for i, x in enumerate(program.inputs)]
    words = _Words(graph)
    for i, x in enumerate(program.constants):
        number = filling(x)
        values.append(words.value(x) if number is None else graph.full(number, x.shape, x.dtype))
        node = values[-1].node
        if node.op == "constant":
            graph.numbers[node.params[0]], graph.selections[node] = i, selections(x)
    for step in program.steps:
        function = words.table.get(step.name)
        if function is None:
            raise Unsupported(f"the word {step.name}")
        words.dtype, words.shape = step.dtype, step.shape
        if words.dtype not in C_TYPES:
            raise Unsupported(f"the dtype {step.dtype}")
        operands = [values[i] for i in step.ins]
        out = function(*(arguments(step, operands) if step.params or step.name in LISTS else operands))
        if out.shape != words.shape:
            raise Unsupported(f"{step.name} of the shape {step.shape}, where {out.shape} was expected")
        values.append(out if out.node.dtype is words.dtype else words.astype(out, words.dtype))
    return graph, [values[i] for i in program.outputs]


class _Words(Elementwise):
    """The words that move, combine and reduce elements."""

    def __init__(self, graph: KernelGraph):
        super().__init__(graph)
        self.shape: tuple[int, ...] = ()
        self.table = elementwise.words(self) | {name: getattr(self, name) for name in dir(self) if name in PROTOCOL}
        for kind in ("sum", "prod", "amax", "amin", "all", "any", "argmax", "argmin", "norm"):
            self.table[kind] = functools.partial(self._reduce, kind)
        for kind in ("cumsum", "cumprod"):
            self.table[kind] = functools.partial(self._cumulate, kind)
        self.table["view"] = self.reshape
        self.table["mm"] = self.table["mv"] = self.table["dot"] = self.matmul

    # Views

    def copy(self, x: Ref, order: Any = "K") -> Ref:
        return x

    def reshape(self, x: Ref, shape: Any) -> Ref:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if -1 in shape:
            shape = tuple(x.size // math.prod(m for m in shape if m != -1) if n == -1 else n for n in shape)
        if shape == x.shape:
            return x
        if x.is_contiguous:
            return Ref(x.node, x.offset, shape, row_major(shape))
        if x.is_uniform:
            return Ref(x.node, x.offset, shape, (0,) * len(shape))
        return view(x, lambda a: a.reshape(shape)) or self.reshape(self.materialized(x), shape)

    def permute(self, x: Ref, dims: Sequence[int]) -> Ref:
        return permuted(x, dims)

    def broadcast_to(self, x: Ref, shape: tuple[int, ...]) -> Ref:
        return broadcast(x, tuple(shape))

    def getitem(self, x: Ref, index: Any) -> Ref:
        if has_recorded(index):
            return self._take(x, recorded_positions(self, index, x.shape, x.positions()))
        if is_basic(index):
            out = view(x, lambda a: a[(*index, ...) if isinstance(index, tuple) and ... not in [i for i in index if i is ...] else
                                      index if isinstance(index, tuple) else (index, ...)])
            if out is not None:
                return out
        return self._take(x, x.positions()[index])

    def _take(self, x: Ref, positions: Any) -> Ref:
        """The elements at positions in the memory of a value."""
        at = self._positions(positions)
        return self.graph.add("take", (Ref(x.node, 0, x.node.shape, row_major(x.node.shape)), at), (), at.shape, x.dtype)

    def _positions(self, positions: Any) -> Ref:
        return self._contiguous(positions) if type(positions) is Ref else self.graph.constant(np.asarray(positions, np.int64))

    def _indexed(self, index: Any, shape: tuple[int, ...]) -> Ref:
        """The positions that an index selects, in row-major memory of a shape."""
        places = np.arange(math.prod(shape)).reshape(shape)
        return self._positions(recorded_positions(self, index, shape, places) if has_recorded(index) else places[index])

    def flip(self, x: Ref, dims: Any) -> Ref:
        axes = {d % x.ndim for d in ((dims,) if isinstance(dims, int) else dims)} if x.ndim else ()
        steps = tuple(-s if i in axes else s for i, s in enumerate(x.strides))
        start = sum((n - 1) * s for i, (n, s) in enumerate(zip(x.shape, x.strides)) if i in axes and n)
        return Ref(x.node, x.offset + start, x.shape, steps)

    def diagonal(self, x: Ref, offset: int, dim1: int, dim2: int) -> Ref:
        return view(x, lambda a: a.diagonal(offset, dim1, dim2)) or x

    def diag(self, x: Ref, diagonal: int = 0) -> Ref:
        return self.diagonal(x, diagonal, 0, 1) if x.ndim == 2 else self.diagonal_place(x, diagonal, None)

    def unfold(self, x: Ref, dimension: int, size: int, step: int) -> Ref:
        x = x if x.ndim else Ref(x.node, x.offset, (1,), (1,))
        shape, strides = list(x.shape), list(x.strides)
        shape[dimension], strides[dimension] = (shape[dimension] - size) // step + 1, step * strides[dimension]
        return Ref(x.node, x.offset, (*shape, size), (*strides, x.strides[dimension]))

    def unbatch(self, x: Ref, dim: int, level: int, count: int) -> Ref:
        out = broadcast(x, (count, *x.shape))
        return self.permute(out, [*range(1, dim + 1), 0, *range(dim + 1, out.ndim)])

    def zeros_like(self, x: Ref, shape: Any = None) -> Ref:
        return self.graph.full(0, self.shape, self.dtype)

    def ones_like(self, x: Ref, shape: Any = None) -> Ref:
        return self.graph.full(1, self.shape, self.dtype)

    def eye_like(self, x: Ref, n: int) -> Ref:
        return self.diagonal_place(self.graph.full(1, (n,), self.dtype), 0, (n, n))

    # Arrays put together from pieces

    def _assemble(self, base: Ref | None, shape: tuple[int, ...], pieces: Sequence[tuple[Ref, Callable[[np.ndarray], np.ndarray]]],
                  tiled: bool = False) -> Ref:
        """`base`, or zeros, with pieces written to views of it; without zeros if the pieces are `tiled`: they fill the array."""
        operands, places = [] if base is None else [base], []
        for piece, where in pieces:
            at = _view_of_whole(shape, where)
            piece = broadcast(_without_leading_ones(self.astype(piece, self.dtype), len(at.shape)), at.shape)
            if piece.size:
                operands.append(piece)
                places.append((at.offset, at.strides))
        start = "base" if base is not None else "tiled" if tiled else "zeros"
        return self.graph.add("assemble", tuple(operands), (start, *places), shape, self.dtype)

    def cat(self, xs: Sequence[Ref], dim: int = 0) -> Ref:
        pieces, start = [], 0
        for x in xs:
            n = x.shape[dim]
            pieces.append((x, functools.partial(_along, dim=dim, part=slice(start, start + n))))
            start += n
        shape = list(xs[0].shape)
        shape[dim] = start
        return self._assemble(None, tuple(shape), pieces, True)

    def stack(self, xs: Sequence[Ref], dim: int = 0) -> Ref:
        return self._assemble(None, self.shape, [(x, functools.partial(_along, dim=dim, part=i)) for i, x in enumerate(xs)], True)

    def roll(self, x: Ref, shifts: Any, dims: Any) -> Ref:
        if dims is None:
            return self.reshape(self.roll(self.reshape(x, (x.size,)), shifts, 0), self.shape)
        shifts, dims = np.broadcast_arrays(np.asarray(shifts), np.asarray(dims))
        for shift, dim in zip(shifts.ravel().tolist(), dims.ravel().tolist()):
            n = x.shape[dim]
            shift = shift % n if n else 0
            if shift and x.size:
                parts = [view(x, functools.partial(_along, dim=dim, part=cut)) for cut in (slice(n - shift, n), slice(0, n - shift))]
                x = self.cat([part for part in parts if part is not None], dim)
        return x

    def place(self, g: Ref, index: Any, shape: tuple[int, ...]) -> Ref:
        shape = tuple(shape)
        if is_basic(index):
            return self._assemble(None, shape, [(g, lambda a: _read(a, index))])
        at = self._indexed(index, shape)
        g = self._contiguous(broadcast(_without_leading_ones(self.astype(g, self.dtype), at.ndim), at.shape))
        return self.graph.add("add_at", (g, at), (), shape, self.dtype)

    def put(self, x: Ref, values: Ref, index: Any, accumulate: bool = False) -> Ref:
        values = self.value(values)
        if accumulate:
            return self.to("add", x, self.place(values, index, x.shape))
        base = () if is_zeros(x) else (x,)
        if is_basic(index):
            return self._assemble(base[0] if base else None, x.shape, [(values, lambda a: _read(a, index))])
        at = self._indexed(index, x.shape)
        values = self._contiguous(broadcast(_without_leading_ones(self.astype(values, self.dtype), at.ndim), at.shape))
        return self.graph.add("put", (*base, values, at), (), x.shape, self.dtype)

    def strided(self, x: Ref, geometry: Any) -> Ref:
        return self._take(x, self.reshape(x, (x.size,)).positions()[geometry.positions] if x.is_contiguous
                          else x.positions().reshape(-1)[geometry.positions])

    def strided_put(self, x: Ref, piece: Ref, geometry: Any) -> Ref:
        return self.reshape(self.put(self.reshape(x, (x.size,)), piece, geometry.positions), x.shape)

    def strided_add(self, g: Ref, geometry: Any, shape: tuple[int, ...]) -> Ref:
        return self.reshape(self.place(g, geometry.positions, (geometry.size,)), tuple(shape))

    def diagonal_place(self, g: Ref, diagonal: int, shape: Any) -> Ref:
        n, side = g.shape[0], g.shape[0] + abs(diagonal)
        shape = tuple(shape or (side, side))
        return self._assemble(None, shape, [(g, lambda a: a.diagonal(diagonal)[:n])])

    def trace(self, x: Ref) -> Ref:
        return self._reduce("sum", self.diagonal(x, 0, 0, 1))

    def tril(self, x: Ref, diagonal: int = 0) -> Ref:
        return self.where(self.graph.constant(np.tri(x.shape[-2], x.shape[-1], diagonal, bool)), x, 0)

    def triu(self, x: Ref, diagonal: int = 0) -> Ref:
        return self.where(self.graph.constant(np.tri(x.shape[-2], x.shape[-1], diagonal - 1, bool)), 0, x)

    def _contiguous(self, x: Ref) -> Ref:
        return x if x.is_contiguous else self.materialized(x)

    # Reductions

    def _reduce(self, kind: str, x: Ref, dim: Any = None, keepdim: bool = False) -> Ref:
        """A reduction; its operand has the kept dimensions first."""
        x = self.truth(x) if kind in ("all", "any") else x if kind in ("argmax", "argmin") else self.astype(x, self.dtype)
        axes = range(x.ndim) if dim is None else [d % x.ndim if x.ndim else 0 for d in ((dim,) if isinstance(dim, int) else dim)]
        axes = [a for a in axes if x.ndim]
        kept = [i for i in range(x.ndim) if i not in axes]
        if kind in ("argmax", "argmin", "norm"):
            rows = self.reshape(self.permute(x, [*kept, *axes]), (*[x.shape[i] for i in kept], math.prod(x.shape[i] for i in axes)))
        else:
            rows = self.permute(x, [*kept, *axes])
        shape = tuple(x.shape[i] for i in kept)
        count = math.prod(x.shape[i] for i in axes)
        if not count and 0 not in shape:
            if kind not in EMPTY:
                raise Unsupported(f"{kind} of no elements")
            out = self.graph.full(EMPTY[kind], shape, x.dtype)
        elif count == 1 and kind not in ("argmax", "argmin", "norm"):
            out = self.reshape(x, shape)
            if kind == "sum" and x.dtype.kind == "f" and axes:  # NumPy begins with 0, to which it adds -0
                out = self.primitive("add", (out, self.graph.literal(0.0, x.dtype)), x.dtype)
        else:
            out = self.graph.add("reduce", (rows,), (kind, len(kept)), shape, INT64 if kind.startswith("arg") else x.dtype)
        return self.reshape(out, tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdim else out

    def sum_to_size(self, g: Ref, shape: tuple[int, ...]) -> Ref:
        extra = g.ndim - len(shape)
        axes = (*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1])
        return self.reshape(self._reduce("sum", g, axes), shape)

    def _cumulate(self, kind: str, x: Ref, dim: int) -> Ref:
        x = self.astype(x, self.dtype)
        return self.graph.add("cumulate", (self._contiguous(x),), (kind, dim % x.ndim), x.shape, x.dtype) if x.ndim else x

    # What the composite words are made of

    def word(self, name: str, *xs: Ref) -> Ref:
        """An elementwise word in the dtype of the step."""
        return self.table[name](*xs)

    def exp_below_zero(self, x: Ref, decay: Ref) -> Ref:
        """exp(min(x, 0)), where exp(-|x|) is `decay`."""
        return self.where(self.compare("lt", x, 0), decay, 1)

    def cast(self, x: Ref) -> Ref:
        """A truth value as a number."""
        return self.astype(x, self.dtype)

    def shape_of(self, x: Ref) -> tuple[int, ...]:
        return x.shape

    def in_own_shape(self, x: Ref) -> Ref:
        """A value in the shape of the step."""
        return self.reshape(x, self.shape)

    def reduced(self, kind: str, x: Ref, dim: Any) -> Ref:
        """The result of a reduction that keeps its axes."""
        return self._reduce(kind, x, dim, True)

    constant = Elementwise.value

    def reference(self, g: Ref, y: Ref, dim: Any) -> Ref:
        if not y.size or not y.ndim:
            return self.zeros_like(g)
        dim = [d % y.ndim for d in ((dim,) if isinstance(dim, int) else dim)]
        kept = [i for i in range(y.ndim) if i not in dim]
        count = math.prod(y.shape[i] for i in dim)
        rows = self._contiguous(self.reshape(self.permute(g, [*kept, *dim]), (g.size // count, count)))
        best = self._reduce("argmax", self.reshape(self.permute(y, [*kept, *dim]), (y.size // count, count)), 1, False)
        return self.reshape(self.graph.add("pick", (rows, best), (), best.shape, g.dtype), tuple(1 if i in dim else n for i, n in enumerate(y.shape)))

    # Products

    def matmul(self, a: Ref, b: Ref) -> Ref:
        if self.dtype not in (FLOAT64, FLOAT32):
            raise Unsupported("a matrix product of integers")
        left, right = self.astype(a, self.dtype), self.astype(b, self.dtype)
        left = left if a.ndim > 1 else self.reshape(left, (1, left.size))
        right = right if b.ndim > 1 else self.reshape(right, (right.size, 1))
        return self.reshape(self._product(left, right), self.shape)

    def _product(self, a: Ref, b: Ref) -> Ref:
        """The product of two stacks of matrices."""
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (broadcast(self._for_blas(x), (*lead, *x.shape[-2:])) for x in (a, b))
        shape = *lead, a.shape[-2], b.shape[-1]
        for x, right in ((a, False), (b, True)):
            at = self._selection(x, right)
            if at is not None:
                return self.graph.add("selected", (a, b, self._positions(at)), (right,), shape, self.dtype)
        return self.graph.add("product", (a, b), (), shape, self.dtype)

    def _selection(self, x: Ref, right: bool) -> Any:
        """The rows of the other operand, or the columns of one on the left, that a product with a constant matrix selects; None if it does not."""
        rows, columns = self.graph.selections.get(x.node, (None, None))
        if x.offset or set(x.shape[-2:]) == {1}:
            return None
        if x.shape[-2:] == x.node.shape and x.strides[-2:] == row_major(x.node.shape):
            return columns if right else rows
        return (rows if right else columns) if x.shape[-2:] == x.node.shape[::-1] and x.strides[-2:] == (1, x.node.shape[1]) else None

    def _for_blas(self, x: Ref) -> Ref:
        """A stack of matrices whose rows or columns are adjacent in memory."""
        (m, n), (s, t) = x.shape[-2:], x.strides[-2:]
        fits = (n == 1 or t == 1) and (m == 1 or s >= n) or (m == 1 or s == 1) and (n == 1 or t >= m)
        return x if fits else self.materialized(x)

    def einsum(self, equation: str, xs: Sequence[Ref]) -> Ref:
        return einsum(self, equation, [self.astype(x, self.dtype) for x in xs])


def _along(a: np.ndarray, dim: int, part: Any) -> np.ndarray:
    out: np.ndarray = a[(slice(None),) * (dim % a.ndim) + (part, ...)]
    return out


def _read(a: np.ndarray, index: Any) -> np.ndarray:
    """The view of the elements at a basic index, of a single element too."""
    parts = index if isinstance(index, tuple) else (index,)
    out: np.ndarray = a[parts if any(part is Ellipsis for part in parts) else (*parts, ...)]
    return out


def _view_of_whole(shape: tuple[int, ...], where: Callable[[np.ndarray], np.ndarray]) -> Ref:
    """The offset and the strides of a view of an array in row-major order."""
    base = np.empty(max(1, math.prod(shape)), np.int8)
    out = where(base[:math.prod(shape)].reshape(shape))
    start = out.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Ref(None, start if out.size else 0, out.shape, out.strides)  # type: ignore[arg-type]


def _without_leading_ones(x: Ref, ndim: int) -> Ref:
    """A value that is written to a place of fewer dimensions."""
    extra = max(0, x.ndim - ndim)
    return Ref(x.node, x.offset, x.shape[extra:], x.strides[extra:]) if set(x.shape[:extra]) <= {1} else x
