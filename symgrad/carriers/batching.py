"""NumPy's functions on batched values: indexing, products, and functions grouped by their effect on the axes of a member."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import FUNCTIONS, Batched, aligned_data, batch_size, data_axes, data_of_members, highest_level, raw
from symgrad.carriers.contracting import contract

# Elements


def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, list, Batched)) and not (isinstance(part, np.ndarray) and not part.ndim and part.dtype.kind in "iu")


def _data_index(index: Any) -> tuple[Any, ...]:
    """An index of each member as an index of the data; the index is equal for all members."""
    return (slice(None), *index) if isinstance(index, tuple) else (slice(None), index)


def _written_data(value: Any, target: Batched, index: Any) -> Any:
    """A value in the layout in which it is written at an index of the data; the index is equal for all members."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [k for k, part in enumerate(parts) if _is_array(part)]
    array_axes = _array_ndim(parts, arrays) if arrays and _are_separated(parts, arrays) else 0
    ndim = target.ndim + sum(1 if part is None else 0 if part is Ellipsis or isinstance(part, slice) else -1 for part in parts)
    if arrays:
        ndim += _array_ndim(parts, arrays) - sum(np.ndim(parts[k]) - 1 for k in arrays if _is_mask(parts[k]))
    if type(value) is Batched and value.level == target.level:
        return np.moveaxis(aligned_data(value, target.level, ndim), 0, array_axes) if array_axes else aligned_data(value, target.level, ndim)
    return np.expand_dims(np.reshape(value, (1,) * (ndim - np.ndim(value)) + tuple(np.shape(value))), array_axes) if array_axes else value


def _ufunc_at(ufunc: Any, target: Batched, index: Any, *values: Any) -> None:
    """Apply a ufunc at an index of all members, without buffering."""
    ufunc.at(target.data, _data_index(index), *(_written_data(v, target, index) for v in values))


def _setitem(target: Batched, index: Any, value: Any) -> None:
    """Write a value at an index of all members."""
    target.data[_data_index(index)] = _written_data(value, target, index)


def _array_ndim(parts: Sequence[Any], arrays: Sequence[int]) -> int:
    """The number of dimensions of the result that come from the arrays of an index."""
    return max(1 if _is_mask(parts[k]) else np.ndim(parts[k]) for k in arrays)


def take(x: Any, index: Any) -> Any:
    """The elements of each member at an index; the index may itself be batched."""
    parts = index if isinstance(index, tuple) else (index,)
    inside = [part for part in parts if type(part) is Batched]
    level = highest_level(x, *inside)
    if not any(part.level == level for part in inside):
        arrays = [k for k, part in enumerate(parts) if _is_array(part)]
        result = _read(x.data, (slice(None), *parts))
        if arrays and _are_separated(parts, arrays):  # NumPy moves the axes of separated index arrays in front of the batch axis
            result = np.moveaxis(result, _array_ndim(parts, arrays), 0)
        return Batched(result, level)
    if any(part.dtype == bool for part in inside):
        raise RuntimeError("vmap: a mask that differs between the members of the batch depends on the data of each and selects different numbers of "
                           "elements; use symgrad.where")
    parts = [p for part in parts for p in (np.nonzero(part) if _is_mask(part) else (part,))]
    arrays = [k for k, part in enumerate(parts) if _is_array(part)]
    count = batch_size([x, *inside], level)
    width = max(np.ndim(parts[k]) for k in arrays)
    numbers = np.arange(count).reshape((count,) + (1,) * width)
    at = tuple(aligned_data(part, level, width) if type(part) is Batched else part for part in parts)
    rest = x.ndim - sum(1 for part in parts if part is not None and part is not Ellipsis)
    before = 0 if _are_separated(parts, arrays) else _result_ndim(parts[:arrays[0]], rest)
    result = _read(data_of_members(x, level, count), (numbers, *at))
    if before:  # move the index axes behind the slices that precede them
        result = np.moveaxis(result, tuple(range(1, width + 1)), tuple(range(1 + before, 1 + before + width)))
    return Batched(result, level)


def _read(x: Any, index: tuple[Any, ...]) -> Any:
    return take(x, index) if any(type(part) is Batched for part in index) else x[index]


def _is_mask(part: Any) -> bool:
    return _is_array(part) and np.asarray(part).dtype == bool if not isinstance(part, Batched) else False


def scatter(x: Any, index: Any, values: Any, add: bool) -> Any:
    """A copy of a value with other values written or added at an index; the index may be batched."""
    size = math.prod(x.shape)
    at = take(np.arange(size).reshape(tuple(x.shape)), index)
    values = np.broadcast_to(values, tuple(at.shape))
    out = _repeated_copy(x.reshape((size,)), at, values)
    _put(out, (at,), values, at.ndim, add)
    return out.reshape(tuple(x.shape))


def _repeated_copy(x: Any, *others: Any) -> Any:
    """A copy of the value, repeated for each member of the batches of the other values."""
    counts = {}
    for other in (x, *others):
        while type(other) is Batched:
            counts[other.level] = other.count
            other = other.data

    def within(x: Any, level: int, count: int) -> Batched:
        if type(x) is Batched and x.level >= level:
            return x if x.level == level else Batched(within(x.data, level, count), x.level)
        return Batched(np.broadcast_to(x, (count, *np.shape(x))), level)

    for level in sorted(counts):
        x = within(x, level, counts[level])
    return x.copy()


def _put(out: Any, at: tuple[Any, ...], values: Any, ndim: int, add: bool) -> None:
    """Write or add values at an index that consists of arrays with `ndim` dimensions."""
    if type(out) is Batched:
        level, count = out.level, out.count
        numbers = np.arange(count).reshape((count,) + (1,) * ndim)
        return _put(out.data, (numbers, *(aligned_data(part, level, ndim) for part in at)), aligned_data(values, level, ndim), ndim + 1, add)
    if add:
        np.add.at(out, at, values)
    else:
        out[at] = values


def _are_separated(parts: Sequence[Any], arrays: Sequence[int]) -> bool:
    """Whether the arrays of an index are separated by slices; integers beside arrays count as arrays."""
    at = [k for k, part in enumerate(parts) if k in arrays or isinstance(part, (int, np.integer)) and not isinstance(part, bool)]
    return at[-1] - at[0] + 1 != len(at)


def _result_ndim(parts: Sequence[Any], rest: int) -> int:
    """The number of dimensions that a part of an index has in the result."""
    return sum(rest if part is Ellipsis else 0 if isinstance(part, (int, np.integer)) else 1 for part in parts)


def each(function: Any, args: Any, kwargs: Any) -> Any:
    """A NumPy function without a batched form, applied to each member in a loop."""
    flat = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (tuple, list)) else (a,))]
    level = highest_level(*flat)
    count = batch_size(flat, level)

    def member(a: Any, i: int) -> Any:
        if isinstance(a, (tuple, list)):
            return type(a)(member(b, i) for b in a)
        return a.data[i] if type(a) is Batched and a.level == level else a

    result = [function(*(member(a, i) for a in args), **{k: member(a, i) for k, a in kwargs.items()}) for i in range(count)]
    if not result:
        raise RuntimeError(f"vmap: the result of {function.__name__} for an empty batch is unknown")
    try:
        return tuple(Batched(np.stack(ys), level) for ys in zip(*result)) if isinstance(result[0], tuple) else Batched(np.stack(result), level)
    except ValueError:
        raise RuntimeError(f"vmap: the shape of the result of {function.__name__} depends on the data of each member; take it outside of "
                           f"vmap") from None


# Products


def matmul(a: Any, b: Any) -> Any:
    """The products of vectors, matrices and stacks of them, as one large product where one factor is shared."""
    level = highest_level(a, b)
    x, z = (type(v) is Batched and v.level == level for v in (a, b))
    for v, other in ((b, a), (a, b)) if x != z else ():
        if type(v) is Batched and v.level == level and v.unit is not None and v.ndim == 1 and other.ndim <= 2:
            axis = -1 if v is b else 0  # a product with unit vectors picks slices
            picked = other if v.data.shape[0] == other.shape[axis] else other[(slice(None),) * (axis % other.ndim) + (
                slice(v.unit, v.unit + v.data.shape[0]),)]
            return Batched(picked if other.ndim == 1 or not axis else np.swapaxes(picked, 0, 1), level)
    if x and not z:
        data = a.data
        if a.ndim == 1:
            return Batched(np.matmul(data, b), level) if b.ndim <= 2 else Batched(np.matmul(data[:, None], b[None])[..., 0, :], level)
        if a.ndim == 2 and b.ndim <= 2 and type(data) is np.ndarray:
            return Batched(np.matmul(data.reshape(math.prod(data.shape[:-1]), data.shape[-1]), b).reshape((*data.shape[:-1], *b.shape[1:])), level)
        return Batched(np.matmul(data, b), level) if b.ndim <= 2 else Batched(np.matmul(aligned_data(a, level, b.ndim), b), level)
    if z and not x:
        data = b.data
        if b.ndim == 1:
            if a.ndim <= 2:
                return Batched(np.matmul(data, a if a.ndim == 1 else np.swapaxes(a, 0, 1)), level)
            return Batched(np.matmul(a, data.reshape((data.shape[0], *(1,) * (a.ndim - 2), data.shape[1], 1)))[..., 0], level)
        if a.ndim == 1:
            return Batched(np.matmul(a, data), level)
        return Batched(np.matmul(a, aligned_data(b, level, a.ndim)), level)
    left, right = a.data, b.data
    if a.ndim == 1 and b.ndim == 1:
        return Batched(np.matmul(left[:, None, :], right[:, :, None])[:, 0, 0], level)
    if b.ndim == 1:
        return Batched(np.matmul(left, right.reshape((right.shape[0], *(1,) * (a.ndim - 2), right.shape[1], 1)))[..., 0], level)
    if a.ndim == 1:
        return Batched(np.matmul(left.reshape((left.shape[0], *(1,) * (b.ndim - 2), 1, left.shape[1])), right)[..., 0, :], level)
    ndim = max(a.ndim, b.ndim)
    return Batched(np.matmul(aligned_data(a, level, ndim), aligned_data(b, level, ndim)), level)


def _einsum(equation: str, *xs: Any, optimize: Any = False) -> Any:
    level = highest_level(*xs)
    left, _, right = equation.partition("->")
    letter = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in equation)
    terms = [letter + term if type(x) is Batched and x.level == level else term for term, x in zip(left.split(","), xs)]
    return Batched(contract(",".join(terms) + "->" + letter + right, [aligned_data(x, level, None) for x in xs]), level)


# NumPy's functions, grouped by their effect on the axes of a member


def _where(condition: Any, a: Any, b: Any) -> Any:
    level = highest_level(condition, a, b)
    ndim = max(getattr(x, "ndim", 0) for x in (condition, a, b))
    return Batched(np.where(*(aligned_data(x, level, ndim) for x in (condition, a, b))), level)


def _like(function: Any) -> Any:
    def like(x: Any, *rest: Any, shape: Any = None, **kwargs: Any) -> Batched:
        data_shape = None if shape is None else (x.data.shape[0], *((shape,) if isinstance(shape, int) else shape))
        return Batched(function(x.data, *rest, shape=data_shape, **kwargs), x.level)

    return like


def _along(function: Any) -> Any:
    def along(x: Any, axis: Any = None, **rest: Any) -> Batched:
        if axis is None and rest.get("keepdims"):
            return along(x.reshape((x.size,)), 0, **{**rest, "keepdims": False}).reshape((1,) * x.ndim)
        if x.ndim == 0 and axis in (0, -1):  # numbers have this dimension for NumPy, too
            return along(x.reshape((1,)), 0, **rest).reshape(())
        data, axis = (x.data.reshape((x.data.shape[0], x.size)), 1) if axis is None else (x.data, axis % max(x.ndim, 1) + 1)
        return Batched(function(data, axis=axis, **rest), x.level)

    return along


def _joining(function: Any, new_axes: int) -> Any:
    def join(xs: Sequence[Any], axis: int = 0) -> Batched:
        level = highest_level(*xs)
        count = batch_size(xs, level)
        ndim = xs[0].ndim + new_axes
        return Batched(function([data_of_members(x, level, count) for x in xs], axis=axis % ndim + 1), level)

    return join


def _roll(x: Any, shift: Any, axis: Any = None) -> Batched:
    if axis is None:
        return Batched(np.roll(x.data.reshape((x.data.shape[0], x.size)), shift, 1).reshape(x.data.shape), x.level)
    return Batched(np.roll(x.data, shift, data_axes(axis, x.ndim)), x.level)


def _broadcast_to(x: Any, shape: Any, subok: bool = False) -> Batched:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    data = aligned_data(x, x.level, len(shape))
    return Batched(np.broadcast_to(data, (data.shape[0], *shape)), x.level)


def _diag(x: Any, k: int = 0) -> Batched:
    if x.ndim == 2:
        return x.diagonal(k)
    n = x.shape[0]
    out = np.zeros_like(x, shape=(n + abs(k),) * 2)
    at = np.arange(n)
    out[at + max(-k, 0), at + max(k, 0)] = x
    return out


def _take_along_axis(x: Any, indices: Any, axis: int = -1) -> Batched:
    level = highest_level(x, indices)
    count = batch_size((x, indices), level)
    return Batched(np.take_along_axis(data_of_members(x, level, count), data_of_members(indices, level, count), axis % indices.ndim + 1), level)


def _broadcast_arrays(*xs: Any, subok: bool = False) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*(tuple(np.shape(x)) for x in xs))
    return tuple(np.broadcast_to(x, shape) for x in xs)


def _choose(which: Any, choices: Sequence[Any]) -> Any:
    out = choices[-1]
    for k in reversed(range(len(choices) - 1)):
        out = np.where(which == k, choices[k], out)
    return out


def _repeat(x: Any, repeats: Any, axis: Any = None) -> Batched:
    if type(repeats) is Batched:
        raise RuntimeError("vmap: how often elements are repeated depends on the data of each member of the batch; take it outside of vmap")
    data, axis = (x.data.reshape((x.count, x.size)), 1) if axis is None else (x.data, axis % x.ndim + 1)
    return Batched(np.repeat(data, repeats, axis), x.level)


FUNCTIONS |= {
    operator.getitem: take, operator.setitem: _setitem, np.matmul: matmul, "at": _ufunc_at, "each": each,
    np.where: _where, np.einsum: _einsum, np.zeros_like: _like(np.zeros_like), np.ones_like: _like(np.ones_like), np.empty_like: _like(np.empty_like),
    np.full_like: _like(np.full_like), np.concatenate: _joining(np.concatenate, 0), np.stack: _joining(np.stack, 1),
    np.flip: lambda x, axis=None: Batched(np.flip(x.data, data_axes(axis, x.ndim)), x.level), np.roll: _roll,
    np.broadcast_to: _broadcast_to, np.diag: _diag, np.take_along_axis: _take_along_axis,
    np.moveaxis: lambda x, source, destination: Batched(np.moveaxis(x.data, data_axes(source, x.ndim), data_axes(destination, x.ndim)), x.level),
    np.unravel_index: lambda flat, shape, order="C": tuple(Batched(at, flat.level) for at in np.unravel_index(flat.data, shape)),
    np.broadcast_arrays: _broadcast_arrays, np.choose: _choose, np.repeat: _repeat,
    np.cumsum: _along(np.cumsum), np.cumprod: _along(np.cumprod), np.argmax: _along(np.argmax), np.argmin: _along(np.argmin),
    np.argsort: _along(np.argsort), np.sort: _along(np.sort),
    np.tril: lambda x, k=0: Batched(np.tril(x.data, k), x.level), np.triu: lambda x, k=0: Batched(np.triu(x.data, k), x.level),
    np.all: lambda x, axis=None, keepdims=False: x.all(axis, keepdims), np.any: lambda x, axis=None, keepdims=False: x.any(axis, keepdims),
    np.transpose: lambda x, axes=None: x.transpose(*(() if axes is None else (tuple(axes),))), np.reshape: lambda x, shape: x.reshape(shape),
    np.swapaxes: lambda x, a, b: Batched(np.swapaxes(x.data, a % x.ndim + 1, b % x.ndim + 1), x.level),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size, np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *xs: np.result_type(*(x.dtype if type(x) is Batched else x for x in xs)),
    np.may_share_memory: lambda a, b: np.may_share_memory(raw(a), raw(b)), np.shares_memory: lambda a, b: np.shares_memory(raw(a), raw(b)),
}
