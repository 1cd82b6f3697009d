"""The carrier of index sets: it computes the inputs that each element of a value depends on, and the pairs of inputs that interact.

All of `PROTOCOL` is implemented: elementwise functions are of one of three kinds, and structural functions move the sets like elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from symgrad.carriers import MATRIX_WORDS, numeric
from symgrad.carriers.blocks import LIMIT, broadcast_block, compact
from symgrad.carriers.convolving import of_carrier as _convolutions
from symgrad.carriers.resampling import of_carrier as _resampling
from symgrad.carriers.sets import (
    MANY,
    Dependence,
    broadcast,
    constant,
    divide,
    elements_at,
    getitem,
    multiply,
    positions,
    power,
    smooth,
    union,
    with_levels,
)
from symgrad.carriers.special.table import SPECIAL


def _dispatch(rule: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that uses `rule` if an argument has dependence sets, and the numeric carrier otherwise."""
    plain = getattr(numeric, name)

    def read(*args: Any, **kwargs: Any) -> Any:
        first = args[0]
        for x in first if type(first) in (list, tuple) else args:
            if type(x) is Dependence:
                return rule(*args, **kwargs)
        return plain(*args, **kwargs)

    return read


PIECEWISE_CONSTANT = ("sign", "floor", "ceil", "round", "trunc", "floor_divide", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
                      "logical_not", "isfinite", "isnan", "isinf")
PIECEWISE_LINEAR = ("add", "sub", "neg", "conj", "abs", "relu", "maximum", "minimum", "remainder", "fmod")
SMOOTH = ("exp", "exp2", "exp2_derivative", "expm1", "log", "log2", "log10", "log_derivative", "log1p", "sqrt", "rsqrt", "square", "reciprocal",
          "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech", "sech_square", "asinh", "acosh", "atanh", "sigmoid",
          "sigmoid_slope", "logsigmoid", "softplus", "sinc_derivative", "one_minus_square", "atan2", "hypot", "direction", "logaddexp", *SPECIAL)


# Structure: functions that move elements act on all blocks


def scatter(x: Dependence, targets: np.ndarray, shape: tuple[int, ...]) -> Dependence:
    """Zeros of a shape with the elements added at positions of the flattened array, which may be repeated."""
    x, size, flattened = broadcast(x, targets.shape), math.prod(shape), targets.ravel()
    counts = np.bincount(flattened, minlength=size)
    most = counts.max(initial=0)
    if most > 8 * MANY:
        return x.inputs.all_dependent(x.members(), shape)
    order = np.argsort(flattened, kind="stable")
    rank = np.arange(flattened.size) - np.repeat(np.cumsum(counts) - counts, counts)
    out = Dependence(x.inputs, (), shape)
    for layer in range(most):
        places = np.full(size, -1)
        chosen = order[rank == layer]
        places[flattened[chosen]] = chosen
        out = union(out, elements_at(x, places.reshape(shape)))
    return out


def with_written(x: Any, values: Any, targets: np.ndarray, accumulate: bool = False) -> Dependence:
    """`x` with values written or added at positions of the flattened array."""
    if type(x) is Dependence and not accumulate:
        places = np.arange(x.size)
        places[targets.ravel()] = -1
        x = elements_at(x, places.reshape(x.shape))
    return union(x, scatter(values, targets, x.shape)) if type(values) is Dependence else x


def reshape(x: Dependence, shape: tuple[int, ...]) -> Dependence:
    """The elements in another shape."""
    shape = tuple(shape)
    if -1 in shape:
        shape = tuple(x.size // -math.prod(shape) if n == -1 else n for n in shape)
    nd = len(x.shape)
    for b in x.blocks:
        if math.prod(b.shape) > LIMIT and b.base is not x.inputs.numbers:
            return x.inputs.all_dependent(x.members(), shape)
    return x.map(lambda b: b.reshape((*b.shape[:b.ndim - nd], *shape)), shape)


def permute(x: Dependence, dims: tuple[int, ...]) -> Dependence:
    """The axes in another order."""
    nd = len(x.shape)
    return x.map(lambda b: b.transpose(*range(b.ndim - nd), *(b.ndim - nd + d for d in dims)), tuple(x.shape[d] for d in dims))


def cat(xs: Sequence[Any], dim: int) -> Dependence:
    """Arrays joined along an axis: the first blocks of all in one, the second ones in another."""
    levels: dict[tuple[int, int], None] = {}
    for x in xs:
        if type(x) is Dependence:
            inputs = x.inputs
            levels.update(dict.fromkeys(x.levels))
    first, counts = xs[0].shape, tuple(n for _, n in levels)
    shape = (*counts, *first[:dim], sum(x.shape[dim] for x in xs), *first[dim + 1:])
    parts, at, before = [], 0, (slice(None),) * (len(counts) + dim)
    for x in xs:
        end = at + x.shape[dim]
        if type(x) is Dependence:
            x = with_levels(x, tuple(levels)) if levels else x
            parts.append((slice(at, end), [b.reshape((-1, *b.shape[b.ndim - len(shape):])) for b in x.blocks]))
        at = end
    blocks = []
    for k in range(max(len(some) for _, some in parts)):
        here = [(piece, some[k]) for piece, some in parts if k < len(some)]
        count = max(len(b) for _, b in here)
        if count * math.prod(shape) > LIMIT:
            return inputs.all_dependent(inputs.inputs_in([b for _, some in parts for b in some]), shape[len(counts):])
        out = np.full((count, *shape), -1)
        for piece, b in here:
            out[(slice(len(b)), *before, piece)] = b
        blocks.append(out)
    return Dependence(inputs, tuple(blocks), shape[len(counts):], tuple(levels))


def stack(xs: Sequence[Any], dim: int) -> Dependence:
    """Arrays of one shape joined along a new axis."""
    shape = xs[0].shape
    longer = (*shape[:dim], 1, *shape[dim:])
    return cat([reshape(x, longer) if type(x) is Dependence else np.broadcast_to(0.0, longer) for x in xs], dim)


def reduced(x: Dependence, dim: Any = None, keepdim: bool = False) -> Dependence:
    """The dependence of a sum over axes: axes along which the sets differ become member axes."""
    nd = len(x.shape)
    dims = set(range(nd)) if dim is None else {d % nd if nd else 0 for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    if not nd:
        return x
    if len(dims) == nd and not keepdim and not x.levels:
        return Dependence(x.inputs, tuple([compact(b) for b in x.blocks]), ())
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
    kept = tuple([i for i in range(nd) if i not in dims])
    blocks = []
    for b in x.blocks:
        lead = b.ndim - nd
        members = lead - len(x.levels)
        dropped = [i for i in dims if not b.strides[lead + i] or b.shape[lead + i] == 1]
        new = [lead + i for i in dims if i not in dropped]
        found = b.transpose((*range(members), *new, *range(members, lead), *(lead + i for i in kept), *(lead + i for i in dropped)))
        found = found[(..., *(0,) * len(dropped))]
        if keepdim:
            found = found[(..., *(None if i in dims else slice(None) for i in range(nd)))]
        blocks.append(found)
    return Dependence(x.inputs, tuple(blocks), shape, x.levels)


def reduced_along(x: Dependence, dim: Any) -> Dependence:
    """An array of the same shape in which every element depends on all elements along some axes."""
    return broadcast(reduced(x, dim, True), x.shape)


def with_interactions(x: Dependence) -> Dependence:
    """The same array, computed by a function that is not linear."""
    x.inputs.clique(x)
    return x


def sum_to_size(x: Dependence, shape: tuple[int, ...]) -> Dependence:
    """A broadcast undone."""
    extra = len(x.shape) - len(shape)
    return reshape(reduced(x, (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1))), shape)


def contract(terms: Sequence[str], right: str, xs: Sequence[Any]) -> Dependence:
    """Products summed over letters: the factors are broadcast over all letters, multiplied, and summed."""
    sizes: dict[str, int] = {}
    for term, x in zip(terms, xs):
        for c, n in zip(term, x.shape):
            sizes[c] = max(sizes.get(c, n), n) if n else 0
    letters = right + "".join(c for c in sizes if c not in right)
    shape = tuple(sizes[c] for c in letters)
    operands = []
    for term, x in zip(terms, xs):
        if type(x) is Dependence:
            if len(set(term)) < len(term):
                once = "".join(dict.fromkeys(term))
                x = elements_at(x, np.einsum(f"{term}->{once}", positions(x.shape)))
                term = once
            lengths = iter((x := permute(x, tuple(term.index(c) for c in letters if c in term))).shape)
            operands.append(broadcast(reshape(x, tuple(next(lengths) if c in term else 1 for c in letters)), shape))
    for i, x in enumerate(operands):
        for y in operands[i + 1:]:
            x.inputs.cross(x, y)
    return reduced(union(*operands), tuple(range(len(right), len(letters))))


def nonzero_columns(matrix: np.ndarray) -> np.ndarray | None:
    """The nonzero columns of each row of a constant matrix, as an array (most, rows) padded with -1; None if the matrix is mostly nonzero."""
    rows, columns = matrix.shape
    for i in {0, rows // 2, rows - 1} if rows else ():  # a cheap test that most dense matrices fail
        if 2 * np.count_nonzero(matrix[i]) > columns:
            return None
    at, where = matrix.nonzero()
    counts = np.bincount(at, minlength=rows)
    most = counts.max(initial=0)
    if 2 * most > columns:
        return None
    out = np.full((most, rows), -1)
    out[np.arange(at.size) - np.repeat(np.cumsum(counts) - counts, counts), at] = where
    return out


def matmul(a: Any, b: Any) -> Dependence:
    """A product of matrices, of stacks of them, or of vectors; zeros of a constant matrix remove dependence."""
    if type(a) is np.ndarray and a.ndim == 2 and b.ndim <= 2 and b.size * len(a) <= LIMIT and (places := nonzero_columns(a)) is not None:
        b.inputs.for_any_constants = False
        found = getitem(b, places)
        return reduced(found.masked(places.reshape(*places.shape, *(1,) * (b.ndim - 1)) >= 0), 0)
    if type(b) is np.ndarray and b.ndim == 2 and a.ndim <= 2 and a.size * b.shape[1] <= LIMIT:
        if (places := nonzero_columns(b.T)) is not None:
            a.inputs.for_any_constants = False
            found = getitem(permute(a, (1, 0)) if a.ndim == 2 else a, places)
            out = reduced(found.masked(places.reshape(*places.shape, *(1,) * (a.ndim - 1)) >= 0), 0)
            return permute(out, (1, 0)) if a.ndim == 2 else out
    if a.ndim <= 2 and b.ndim <= 2 and (type(a) is not Dependence or type(b) is not Dependence):
        shape = (*a.shape[:-1], *b.shape[1:])
        if type(b) is Dependence:
            return broadcast(reduced(b, 0), shape)
        out = reduced(a, a.ndim - 1)
        return broadcast(reshape(out, (*out.shape, 1)) if len(shape) == 2 else out, shape)
    lead = max(a.ndim, b.ndim) - 2
    stacks = "abcdefghijklmnopqrst"[:max(lead, 0)]
    left = "z" if a.ndim == 1 else stacks[len(stacks) - a.ndim + 2:] + "yz"
    right = "z" if b.ndim == 1 else stacks[len(stacks) - b.ndim + 2:] + "zx"
    return contract((left, right), stacks + "y" * (a.ndim > 1) + "x" * (b.ndim > 1), (a, b))


def einsum(equation: str, xs: Sequence[Any]) -> Dependence:
    """Sums of products over the letters of an equation."""
    left, _, right = equation.partition("->")
    return contract(left.split(","), right, xs)


def _by_positions(name: str) -> Callable[..., Dependence]:
    """A function that moves elements or inserts zeros, from its result for the numbers 1, 2, ..."""
    move = getattr(numeric, name)
    return lambda x, *args: elements_at(x, move(positions(x.shape) + 1, *args) - 1)


def _constants(name: str) -> Callable[..., Dependence]:
    make = getattr(numeric, name)
    return lambda x, *args: Dependence(x.inputs, (), make(np.broadcast_to(0.0, x.shape), *args).shape)


def _diagonal(x: Dependence, offset: int, dim1: int, dim2: int) -> Dependence:
    shape = np.broadcast_to(0, x.shape).diagonal(offset, dim1, dim2).shape
    return x.map(lambda b: b.diagonal(offset, dim1 % x.ndim - x.ndim, dim2 % x.ndim - x.ndim), shape)


def _batch(x: Dependence, dim: int, level: int) -> Dependence:
    nd, count = len(x.shape), x.shape[dim]
    members = nd + len(x.levels)  # the end of the member axes, counted from the last axis
    return Dependence(x.inputs, tuple([np.moveaxis(b, b.ndim - nd + dim % nd, b.ndim - members) for b in x.blocks]),
                      tuple(n for i, n in enumerate(x.shape) if i != dim % nd), ((level, count), *x.levels))


def _unbatch(x: Dependence, dim: int, level: int, count: int) -> Dependence:
    dim %= x.ndim + 1
    shape = (*x.shape[:dim], count, *x.shape[dim:])
    found = [i for i, (which, _) in enumerate(x.levels) if which == level]
    if not found:
        return broadcast(reshape(x, (*x.shape[:dim], 1, *x.shape[dim:])), shape)
    at = len(x.shape) + len(x.levels) - found[0]  # the axis of the level, counted from the last axis
    return Dependence(x.inputs, tuple([np.moveaxis(b, b.ndim - at, b.ndim - len(x.shape) - 1 + dim) for b in x.blocks]), shape,
                      tuple(pair for pair in x.levels if pair[0] != level))


def _plain_matrix(x: Any, rank: int) -> np.ndarray:
    """A nonsingular matrix, or a vector of different numbers, of the shape of `x`."""
    return np.broadcast_to(np.eye(*x.shape[-2:]) if rank == 2 else np.arange(float(x.shape[-1])), x.shape)


def _of_matrices(name: str) -> Callable[..., Any]:
    """The rule of a function of matrices: every element of a result depends on all elements of the matrices."""
    rank = 1 if name == "eigenvalue_gaps" else 2

    def rule(*args: Any) -> Dependence:
        parts = [x for x in args if type(x) is Dependence]
        whole = with_interactions(functools.reduce(union, [reduced(x, tuple(range(x.ndim - rank, x.ndim)), True) for x in parts]))
        given = [_plain_matrix(x, rank) if hasattr(x, "shape") else x for x in args]
        shape = getattr(numeric, name)(*given).shape
        front = tuple(whole.shape[:-rank])
        return broadcast(reshape(whole, front + (1,) * (len(shape) - len(front))), shape)

    return rule


RULES: dict[str, Callable[..., Any]] = {
    **{name: _of_matrices(name) for name in MATRIX_WORDS},
    **dict.fromkeys(PIECEWISE_CONSTANT, constant), **dict.fromkeys(PIECEWISE_LINEAR, union), **dict.fromkeys(SMOOTH, smooth),
    "add": union, "sub": union, "mul": multiply, "div": divide, "pow": power,
    "indicator": lambda condition, like: constant(like) if type(like) is Dependence else constant(condition),
    "where": lambda condition, x, y: union(union(x, y), constant(condition) if type(condition) is Dependence else condition),
    "copy": lambda x, *order: x, "astype": lambda x, *dtypes: x,
    "sum": reduced, "amax": reduced, "amin": reduced, "trace": lambda x: reduced(_diagonal(x, 0, 0, 1)), "cumsum": reduced_along,
    "dft": lambda x, dim, inverse: reduced_along(x, dim),
    **dict.fromkeys(("prod", "logsumexp", "norm"), lambda *args, **kwargs: with_interactions(reduced(*args, **kwargs))),
    **dict.fromkeys(("softmax", "log_softmax", "cumprod"), lambda x, dim: with_interactions(reduced_along(x, dim))), "centred": reduced_along,
    **dict.fromkeys(("all", "any", "argmax", "argmin"), lambda *args, **kwargs: constant(reduced(*args, **kwargs))),
    "reference": lambda x, y, dim: constant(reduced(x if type(x) is Dependence else y, dim, True)),
    "reshape": reshape, "view": reshape, "permute": permute, "broadcast_to": broadcast, "sum_to_size": sum_to_size, "getitem": getitem,
    "place": lambda x, index, shape: scatter(x, positions(shape)[index], shape), "cat": cat, "stack": stack,
    "put": lambda x, values, index, accumulate=False: with_written(x, values, positions(x.shape)[index], accumulate),
    "flip": lambda x, dims: getitem(x, tuple(slice(None, None, -1) if i in dims else slice(None) for i in range(x.ndim))),
    **{name: _by_positions(name) for name in ("roll", "diag", "diagonal_place", "tril", "triu", "unfold")}, "diagonal": _diagonal,
    "matmul": matmul, "mm": matmul, "mv": matmul, "dot": matmul, "view_as_real": lambda x: broadcast(reshape(x, (*x.shape, 1)), (*x.shape, 2)),
    "view_as_complex": lambda x: union(x[..., 0], x[..., 1]), **{name: _constants(name) for name in ("zeros_like", "ones_like", "eye_like")},
    "batch": _batch, "unbatch": _unbatch,
    "strided": lambda x, geometry: elements_at(x, geometry.positions),
    "strided_put": lambda x, piece, geometry: with_written(x, piece, geometry.positions),
    **_convolutions(lambda x, y: dependence), "resample": _resampling(lambda x: dependence),
    "strided_add": lambda x, geometry, shape: reshape(scatter(x, geometry.positions, (geometry.size,)), shape),
}


# Ops whose rule is one of these functions with the same arguments, at least one of which is a Dependence
DIRECT: dict[str, Callable[..., Any]] = {
    **{name: RULES[name] for name in (*PIECEWISE_CONSTANT, *PIECEWISE_LINEAR, *SMOOTH, "mul", "div", "pow", "where", "sum", "reshape", "view",
                                      "permute", "broadcast_to", "getitem", "mm", "mv", "dot")},
    **dict.fromkeys(("select_item", "slice_item", "unsqueeze_item", "alias_item", "gather", "index_select"), getitem),
    **dict.fromkeys(("transpose", "t", "movedim"), permute), "expand": broadcast,
    "batched_matmul": matmul, "vm": matmul, "mean": reduced, "unsqueeze": reshape,
}


def _einsum(equation: str, xs: Sequence[Any]) -> Any:
    return einsum(equation, xs) if any(type(x) is Dependence for x in xs) else numeric.einsum(equation, xs)


dependence: Any = SimpleNamespace(**{name: _dispatch(rule, name) for name, rule in RULES.items()}, einsum=_einsum)
