"""Sums of arrays along axes, and of products over named indices (einsum).

NumPy adds in pairs along the axes that are adjacent in memory, and along all others one row after the other; here the rounding errors of a sum do not
grow with the number of elements. Large sums of products are computed as products of matrices, two operands at a time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

ROWS, BLOCK = 128, 32  # the most rows that are added one after the other, and how many of more rows are


def added(x: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """The sum along axes; of float16 and bfloat16 in float32, and of many rows by blocks."""
    if x.dtype.char in "eE":
        return added(x.astype(np.float32), axis, keepdims).astype(x.dtype)
    if axis is not None and type(x) is np.ndarray and x.size > 1024 and (x.size > ROWS * x.shape[-1] or not x.flags.c_contiguous):
        x = _shortened(x, {i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))})
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def _shortened(x: np.ndarray, axes: set[int]) -> np.ndarray:
    """An array with the same sums along some axes, of which NumPy adds at most `ROWS` rows one after the other."""
    if len(axes) == x.ndim:
        return x
    rows, step = set(axes), 0
    for stride, i in sorted([(abs(s), -i) for i, (s, n) in enumerate(zip(x.strides, x.shape)) if n > 1]):
        if -i not in axes or not stride or step and stride != step:
            break
        rows.discard(-i)  # it is added in pairs
        step = stride * x.shape[-i]
    shape = [*x.shape]
    for i in sorted(rows):
        if i + 1 in rows and x.strides[i] == x.strides[i + 1] * x.shape[i + 1]:  # as one long axis
            shape[i], shape[i + 1] = 1, shape[i] * shape[i + 1]
    x = x.reshape(shape)
    while math.prod([x.shape[i] for i in rows]) > ROWS:
        longest = max(rows, key=x.shape.__getitem__)
        x = _in_blocks(x, longest)
    return x


def _in_blocks(x: np.ndarray, axis: int) -> np.ndarray:
    """The sums of blocks along an axis, and what is left over."""
    count, before = x.shape[axis], (slice(None),) * axis
    if count <= BLOCK:
        return np.add.reduce(x, axis=axis, keepdims=True)
    end = count // BLOCK * BLOCK
    blocks = x[(*before, slice(end))].reshape((*x.shape[:axis], end // BLOCK, BLOCK, *x.shape[axis + 1:]))
    sums = np.add.reduce(blocks, axis=axis + 1)
    return np.concatenate([sums, x[(*before, slice(end, None))]], axis) if end < count else sums


FEW = 4096  # multiplications, up to which NumPy's loop takes less time than the transpositions
Names = tuple[str, ...]
Step = tuple[int, int, Callable[[Any, Any], Any]]


def contract(equation: str, xs: Sequence[Any]) -> Any:
    """The sum of products of arrays that an explicit equation such as "ij,jk->ik" names."""
    if len(xs) > 1 and all(type(x) is np.ndarray and x.dtype.kind in "fc" for x in xs):
        steps = _plan(equation, tuple(x.shape for x in xs))
        if steps is not None:
            terms = list(xs)
            for i, j, product in steps:
                second, first = terms.pop(j), terms.pop(i)
                terms.append(product(first, second))
            return terms[0]
    if len(xs) == 1 and type(xs[0]) is np.ndarray:
        return _alone(equation, xs[0])
    return np.einsum(equation, *xs, optimize=len(xs) > 2)


def _alone(equation: str, x: np.ndarray) -> Any:
    """The sum of one array along some axes, and diagonals and other orders of axes; NumPy's loop adds one number after the other."""
    term, arrow, out = equation.partition("->")
    if arrow and "." not in equation and x.size > FEW and len(term) == x.ndim and x.dtype.kind in "fc":
        axes = tuple(k for k, letter in enumerate(term) if letter not in out and term.count(letter) == 1)
        if axes:
            x, equation = added(x, axes), "".join(letter for k, letter in enumerate(term) if k not in axes) + "->" + out
    return np.array(np.einsum(equation, x))  # a diagonal would be a view


@functools.lru_cache(1024)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[Step, ...] | None:
    """The operands that are multiplied in each step, from the list that is left, and their product; None if NumPy's loop is to be used."""
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or [len(term) for term in terms] != [len(shape) for shape in shapes]:
        return None  # axes without a name, and an equation of other operands, which NumPy's loop refuses
    sizes = {letter: n for term, shape in zip(terms, shapes) for letter, n in zip(term, shape)}
    known = all(tuple(sizes[letter] for letter in term) == shape for term, shape in zip(terms, shapes)) and sizes.keys() >= set(out)
    if not known or any(len(set(term)) < len(term) for term in (*terms, out)) or prod(sizes.values()) <= FEW:
        return None  # axes that are repeated or broadcast, a result that the operands do not determine, and few numbers
    pairs = [(0, 1)] if len(terms) == 2 else _pairs(equation, shapes)
    steps: list[Step] = []
    for i, j in pairs:
        second, first = terms.pop(j), terms.pop(i)
        later = set(out).union(*terms)
        last = not terms
        kept = out if last else "".join(letter for letter in dict.fromkeys(first + second) if letter in later)
        steps.append((i, j, _product(first, second, kept, sizes)))
        terms.append(kept)
    return tuple(steps)


def _pairs(equation: str, shapes: tuple[tuple[int, ...], ...]) -> list[tuple[int, int]]:
    """The places, in the list that is left, of the operands that are multiplied in each step; the product goes to its end."""
    found: list[tuple[int, int]] = []
    count = len(shapes)
    for group in np.einsum_path(equation, *[np.broadcast_to(0.0, shape) for shape in shapes], optimize="greedy")[0][1:]:
        places = sorted(group)
        while len(places) > 1:
            i, j, *rest = places
            found.append((i, j))
            count -= 1
            places = [*(k - 2 for k in rest), count - 1]
    return found


def _product(p: str, q: str, out: str, sizes: dict[str, int]) -> Callable[[Any, Any], Any]:
    """The product of two arrays with the axes `p` and `q`, with the axes `out`."""
    stacked = [c for c in out if c in p and c in q]
    rows, columns = [c for c in out if c in p and c not in q], [c for c in out if c in q and c not in p]
    inner = [c for c in p if c in q and c not in out]
    alone = [tuple(k for k, c in enumerate(name) if c not in other and c not in out) for name, other in ((p, q), (q, p))]
    if not inner or not rows and not columns or any(alone):
        equation = f"{p},{q}->{out}"
        return lambda a, b: _added_in_double(equation, a, b)
    if rows and columns and out.index(rows[0]) > out.index(columns[0]):  # so that the product has the order of the result, if it can
        swapped = _product(q, p, out, sizes)
        return lambda a, b: swapped(b, a)
    count = {id(part): prod(sizes[c] for c in part) for part in (rows, inner, columns)}
    lead, order = tuple(sizes[c] for c in stacked), [*stacked, *rows, *columns]
    left, right = tuple(p.index(c) for c in (*stacked, *rows, *inner)), tuple(q.index(c) for c in (*stacked, *inner, *columns))
    m, k, n = count[id(rows)], count[id(inner)], count[id(columns)]
    shape, back = tuple(sizes[c] for c in order), tuple(order.index(c) for c in out)
    sorted_out = back == tuple(range(len(out)))

    def product(a: Any, b: Any) -> Any:
        y = np.matmul(_matrices(a, left, (*lead, m, k)), _matrices(b, right, (*lead, k, n))).reshape(shape)
        return y if sorted_out else y.transpose(back).copy()

    return product


def _added_in_double(equation: str, a: Any, b: Any) -> Any:
    """The result of NumPy's loop, which adds one product after the other; of numbers of single precision in double precision."""
    wide = {"f": np.float64, "F": np.complex128}.get(np.result_type(a, b).char)
    return np.einsum(equation, a, b) if wide is None else np.einsum(equation, a, b, dtype=wide).astype(np.result_type(a, b))


def _matrices(x: Any, order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """An array with its axes in another order, as a stack of matrices that the product of matrices takes as it is."""
    out = x.transpose(order).reshape(shape)
    return out if x.itemsize in out.strides[-2:] and 0 not in out.strides else np.ascontiguousarray(out)
