"""Indices of the C back end: those whose arrays are values of the program, and the named ones of `einsum`, as products of stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.program.native.nodes import INT64, Ref, Unsupported


def einsum(words: Any, equation: str, xs: Sequence[Ref]) -> Ref:
    """The sum of products that an equation such as "ij,jk->ik" names, of two operands at a time."""
    equation = equation.replace(" ", "")
    left, arrow, out = equation.partition("->")
    names = left.split(",")
    if "..." in equation:
        raise Unsupported("an ellipsis in einsum")
    if not arrow:
        out = "".join(sorted(i for i in set(left) - {","} if left.count(i) == 1))
    sizes = {i: n for name, x in zip(names, xs) for i, n in zip(name, x.shape)}
    terms = [_with_distinct_indices(name, x) for name, x in zip(names, xs)]
    order: list[tuple[int, ...]] = [(0, 1)] * (len(terms) - 1)
    if len(terms) > 2:
        order = np.einsum_path(equation, *[np.broadcast_to(0.0, x.shape) for x in xs], optimize="greedy")[0][1:]
        order = [pair for path in order for pair in ([tuple(path)] if len(path) == 2 else [(0, 1)] * (len(path) - 1))]
    for pair in order:
        second, first = terms.pop(max(pair)), terms.pop(min(pair))
        later = set(out).union(*[name for name, _ in terms])
        terms.append(_pair(words, first, second, later, sizes))
    name, x = _summed(words, *terms[0], set(out))
    return words.permute(x, [name.index(i) for i in out])


def _with_distinct_indices(name: str, x: Ref) -> tuple[str, Ref]:
    """The diagonal over indices that occur twice."""
    kept = "".join(dict.fromkeys(name))
    shape = tuple(x.shape[name.index(i)] for i in kept)
    strides = tuple(sum(s for j, s in zip(name, x.strides) if i == j) for i in kept)
    return kept, Ref(x.node, x.offset, shape, strides)


def _summed(words: Any, name: str, x: Ref, needed: set[str]) -> tuple[str, Ref]:
    """The sum over the indices that are not needed."""
    axes = tuple(a for a, i in enumerate(name) if i not in needed)
    return ("".join(i for i in name if i in needed), words._reduce("sum", x, axes, False)) if axes else (name, x)


def _pair(words: Any, first: tuple[str, Ref], second: tuple[str, Ref], later: set[str], sizes: dict[str, int]) -> tuple[str, Ref]:
    """The product of two terms, summed over the indices that occur nowhere else."""
    (p, a), (q, b) = _summed(words, *first, later | set(second[0])), _summed(words, *second, later | set(first[0]))
    stacked = [i for i in p if i in q and i in later]
    inner = [i for i in p if i in q and i not in later]
    rows, columns = [i for i in p if i not in q], [i for i in q if i not in p]
    if not inner:  # an elementwise product, that NumPy adds to zeros
        name = "".join((*stacked, *rows, *columns))
        return name, words.to("add", words.to("mul", _spread(words, p, a, name), _spread(words, q, b, name)), 0.0)
    count = {id(part): math.prod(sizes[i] for i in part) for part in (rows, inner, columns)}
    lead = tuple(sizes[i] for i in stacked)
    a = words.reshape(words.permute(a, [p.index(i) for i in (*stacked, *rows, *inner)]), (*lead, count[id(rows)], count[id(inner)]))
    b = words.reshape(words.permute(b, [q.index(i) for i in (*stacked, *inner, *columns)]), (*lead, count[id(inner)], count[id(columns)]))
    name = "".join((*stacked, *rows, *columns))
    return name, words.reshape(words._product(a, b), tuple(sizes[i] for i in name))


def _spread(words: Any, name: str, x: Ref, whole: str) -> Ref:
    """A term with its axes in the order of `whole`, and axes of size 1 for the other indices."""
    x = words.permute(x, [name.index(i) for i in whole if i in name])
    shape, strides = iter(x.shape), iter(x.strides)
    return Ref(x.node, x.offset, tuple(next(shape) if i in name else 1 for i in whole), tuple(next(strides) if i in name else 0 for i in whole))


def has_recorded(index: Any) -> bool:
    """Whether an index has parts that are values of the program."""
    return type(index) is Ref or type(index) in (tuple, list) and any(map(has_recorded, index))


def recorded_positions(words: Any, index: Any, shape: tuple[int, ...], places: np.ndarray) -> Ref:
    """The positions that an index selects from `places`, an array of the positions of all elements of `shape`, which are linear in each index.

    The selection by zeros in place of the recorded parts gives the start. To it each recorded part adds its elements times the step of its axis.
    """
    parts = _expanded(index if type(index) in (tuple, list) else (index,), len(shape))
    axes = np.cumsum([0, *[_consumed(part) for part in parts]]).tolist()
    zeros = [np.zeros(part.shape, np.intp) if type(part) is Ref else part for part in parts]
    out: Any = None
    if places.size:
        out = words.graph.constant(np.asarray(places[tuple(zeros)], np.int64))
    for i, (part, axis) in enumerate(zip(parts, axes)):
        if type(part) is not Ref:
            continue
        if part.dtype.kind != "i":
            raise Unsupported("a mask that depends on the inputs")
        if out is None:
            raise Unsupported("an index into no elements")
        # which element of the part each element of the selection reads: an array that counts along the axis, selected with counting numbers
        count = math.prod(part.shape)
        counting = np.arange(count).reshape((count, *(1,) * (len(shape) - axis - 1)))
        counting = np.broadcast_to(counting, (*shape[:axis], count, *shape[axis + 1:]))
        readers = counting[tuple([np.arange(count).reshape(part.shape) if j == i else z for j, z in enumerate(zeros)])]
        step = int(np.take(places, 1, axis).flat[0] - places.flat[0]) if shape[axis] > 1 else 0
        checked = words.graph.add("wrapped", (words._contiguous(words.astype(part, INT64)),), (shape[axis],), part.shape, INT64)
        read = checked if readers.shape == part.shape else words._take(checked, readers)
        before, words.dtype = words.dtype, INT64
        out = words.to("add", out, words.to("mul", read, step))
        words.dtype = before
    return out


def _expanded(parts: Any, ndim: int) -> list[Any]:
    """The parts of an index, with slices for an ellipsis."""
    parts = [np.asarray(part) if isinstance(part, list) else part for part in parts]
    rest = ndim - sum(_consumed(part) for part in parts)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * rest, *parts[at + 1:]]


def _consumed(part: Any) -> int:
    """The number of axes that a part of an index selects from."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1
