"""Sums of products over named indices, as products of stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.program.native.nodes import Ref, Unsupported

__all__ = ["einsum"]


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
