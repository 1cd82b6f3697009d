"""NumPy's functions that arrange, select, split and join elements, on Tensors: for the table of `numpy_arguments`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.methods.numpy_arguments import FUNCTIONS_OF_NUMPY, as_tensor, floats, of_numpy
from symgrad.system.errorstate import quietly


def _plain(x: Any) -> Any:
    """An array of the values, for what is not differentiated."""
    return np.asarray(as_value(x.detach() if isinstance(x, Tensor) else x))


def _taken(x: Any, axis: int, at: Any) -> Any:
    """The elements at positions along an axis; a number, or an array of any shape."""
    at = np.asarray(at)
    shape = tuple(x.shape)
    y = traced.index_select(x, axis, wrap(at.reshape(-1)))
    return traced.reshape(y, (*shape[:axis], *at.shape, *shape[axis + 1:]))


def _along(a: Any, axis: Any) -> tuple[Any, int]:
    """The tensor and the axis, both flattened without an axis."""
    x = as_tensor(a)
    return (traced.reshape(x, (-1,)), 0) if axis is None else (x, _axis(axis, x.ndim))


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


@of_numpy(np.take)
def _take(a: Any, indices: Any, axis: Any, mode: str) -> Any:
    x, axis = _along(a, axis)
    return _taken(x, axis, np.take(np.arange(x.shape[axis]), _plain(indices), mode=mode))  # type: ignore[call-overload]


def _by_positions(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that selects along an axis, by what it does to the positions."""
    def select(a: Any, what: Any, axis: Any = None) -> Any:
        x, axis = _along(a, axis)
        return _taken(x, axis, function(np.arange(x.shape[axis]), _plain(what) if not isinstance(what, slice) else what))

    return select


of_numpy(np.repeat, names="a repeats axis")(_by_positions(np.repeat))
of_numpy(np.delete, names="arr obj axis")(_by_positions(np.delete))
of_numpy(np.compress)(lambda condition, a, axis=None: _by_positions(lambda places, wanted: np.compress(wanted, places))(a, condition, axis))
of_numpy(np.extract)(lambda condition, arr: _by_positions(lambda places, wanted: places[wanted.ravel().astype(bool)])(arr, condition))


@of_numpy(np.append)
def _append(arr: Any, values: Any, axis: Any) -> Any:
    (x, at), (y, _) = _along(arr, axis), _along(values, axis)
    return traced.cat([x, y], at)


@of_numpy(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any) -> Any:
    """The elements and the new ones in one row, in the order that NumPy gives to their positions."""
    x, axis = _along(arr, axis)
    n, new = x.shape[axis], as_tensor(values)
    given = obj if isinstance(obj, slice) else _plain(obj)
    count = len(np.arange(n)[given]) if isinstance(given, slice) or given.dtype == bool else given.size
    if new.ndim < x.ndim or new.ndim == 0:
        new = traced.reshape(new, (*(1,) * (x.ndim - new.ndim), *new.shape))
    if not isinstance(given, slice) and not given.ndim:  # one position takes all of the values
        new = traced.movedim(new, 0, axis)
        count = new.shape[axis]
        given = np.full(count, given)
    new = traced.broadcast_to(new.to(x.dtype), (*x.shape[:axis], count, *x.shape[axis + 1:]))
    order = np.insert(np.arange(n), given, np.arange(n, n + count))
    return _taken(traced.cat([x, new], axis), axis, order)


def _split(strict: bool) -> Callable[..., Any]:
    def split(ary: Any, indices_or_sections: Any, axis: int) -> list[Any]:
        axis = _axis(axis, ary.ndim)
        places = (np.split if strict else np.array_split)(np.arange(ary.shape[axis]), indices_or_sections)
        return [traced.narrow(ary, axis, int(p[0]) if p.size else 0, p.size) for p in places]

    return split


def _split_along(axis: int) -> Callable[..., Any]:
    split = _split(True)

    def along(ary: Any, indices_or_sections: Any) -> list[Any]:
        if ary.ndim <= axis and not (axis == 1 and ary.ndim == 1):
            raise ValueError(f"{('vsplit', 'hsplit', 'dsplit')[axis]} only works on arrays of {(2, 1, 3)[axis]} or more dimensions")
        return split(ary, indices_or_sections, 0 if ary.ndim == 1 else axis)

    return along


for _function, _split_of in {np.split: _split(True), np.array_split: _split(False), np.vsplit: _split_along(0), np.hsplit: _split_along(1),
                             np.dsplit: _split_along(2)}.items():
    of_numpy(_function)(_split_of)


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    vectors, n = [traced.reshape(as_tensor(x), (-1,)) for x in xi], len(xi)
    axes = [1 - i if indexing == "xy" and i < 2 <= n else i for i in range(n)]
    shaped = [traced.reshape(x, tuple(-1 if d == axis else 1 for d in range(n))) for x, axis in zip(vectors, axes)]
    return tuple(shaped) if sparse else _broadcast_arrays(*shaped)


def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    xs = [as_tensor(x) for x in args]
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in xs))
    return tuple(traced.broadcast_to(x, shape) for x in xs)


@of_numpy(np.block)
def _block(arrays: Any) -> Any:
    """Nested lists of blocks: the innermost are joined along the last axis, the outermost along the first of these."""
    def depth(part: Any) -> int:
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def joined(part: Any, level: int) -> Any:
        if not isinstance(part, list):
            x = as_tensor(part)
            return traced.reshape(x, (*(1,) * (ndim - x.ndim), *x.shape))
        return traced.cat([joined(each, level + 1) for each in part], ndim - levels + level)

    def leaves(part: Any) -> list[Any]:
        return [leaf for each in part for leaf in leaves(each)] if isinstance(part, list) else [part]

    levels = depth(arrays)
    ndim = max(levels, *(as_tensor(leaf).ndim for leaf in leaves(arrays)))
    return joined(arrays, 0)


@of_numpy(np.select)
def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    out = as_tensor(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        out = traced.where(as_tensor(condition), as_tensor(choice), out)
    return out


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """The functions of all elements, of which each element takes one; a function sees the elements of its piece."""
    x = as_tensor(x)
    conditions = [_plain(c).astype(bool) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    if len(funclist) == len(conditions) + 1:
        conditions = [*conditions, ~np.any(conditions, axis=0)]
    if len(funclist) != len(conditions):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected")
    out = traced.zeros_like(x)
    for condition, function in zip(conditions, funclist):
        mask = wrap(np.broadcast_to(condition, x.shape).copy())
        piece = function(traced.masked_select(x, mask), *args, **kw) if callable(function) else as_tensor(function)
        out = traced.masked_scatter(out, mask, traced.broadcast_to(piece.to(x.dtype), (int(mask.sum()),)))
    return out


@of_numpy(np.choose)
def _choose(a: Any, choices: Any, mode: str) -> Any:
    xs = choices if isinstance(choices, Tensor) else [as_tensor(c) for c in choices]
    at = _plain(a)
    count = len(xs)
    if mode == "raise" and ((at < 0) | (at >= count)).any():
        raise ValueError("invalid entry in choice array")
    at = at % count if mode == "wrap" else at.clip(0, count - 1)
    *rows, places = _broadcast_arrays(*xs, wrap(at))
    return traced.squeeze(traced.gather(traced.stack(rows, 0), 0, traced.unsqueeze(places, 0)), 0)


@of_numpy(np.partition)
def _partition(a: Any, kth: Any, axis: Any, kind: str) -> Any:
    x, axis = _along(a, axis)
    return traced.gather(x, axis, wrap(np.argpartition(_plain(x), kth, axis, kind)))  # type: ignore[arg-type]


@of_numpy(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, axis = _along(arr, axis)
    at, n = _plain(indices).astype(np.int64), x.shape[axis]
    return traced.take_along_dim(x, wrap(np.where((-n <= at) & (at < 0), at + n, at)), axis)


@of_numpy(np.unique)
def _unique(ar: Any, return_index: bool, return_inverse: bool, return_counts: bool, axis: Any, equal_nan: bool, sorted: bool = True) -> Any:
    """The distinct elements: each is the first one of its value, and gets its gradient."""
    x, at = _along(ar, axis)
    _, first, inverse, counts = np.unique(_plain(x), True, True, True, None if axis is None else at, equal_nan=equal_nan)
    rest = [part for part, wanted in ((first, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    values = _taken(x, at, first)
    return (values, *rest) if rest else values


@of_numpy(np.linspace)
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> Any:
    start, stop = floats(start), floats(stop)
    parts = num - 1 if endpoint else num
    at = wrap(np.arange(num) / max(parts, 1))
    at = traced.reshape(at, (-1, *(1,) * max(start.ndim, stop.ndim)))
    y = traced.movedim(traced.lerp(*_broadcast_arrays(start, stop), at), 0, axis)
    y = y if dtype is None else y.to(dtype)
    return (y, (stop - start) / parts if parts else np.nan) if retstep else y


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_tensor(arr)
    axis = _axis(axis, x.ndim)
    moved = traced.movedim(x, axis, -1)
    rows = traced.unbind(traced.reshape(moved, (-1, moved.shape[-1])), 0)
    found = traced.stack([as_tensor(func1d(row, *args, **kwargs)) for row in rows], 0)
    rest, size = tuple(moved.shape[:-1]), found.ndim - 1
    y = traced.reshape(found, (*rest, *found.shape[1:]))
    kept = [*range(axis), *range(len(rest), len(rest) + size), *range(axis, len(rest))]
    return traced.permute(y, kept)


def _assign(a: Tensor, index: Any, values: Any) -> None:
    a[index] = values if isinstance(values, Tensor) or np.ndim(values) == 0 else as_tensor(values)


@of_numpy(np.fill_diagonal, convert=lambda x: x)
def _fill_diagonal(a: Any, val: Any, wrap: bool) -> Any:
    if wrap or not isinstance(a, Tensor):
        return NotImplemented
    _assign(a, np.diag_indices(min(a.shape), a.ndim), val)
    return None


@of_numpy(np.put_along_axis, convert=lambda x: x)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    if axis is None or not isinstance(arr, Tensor):
        return NotImplemented
    grids = list(np.indices(_plain(indices).shape, sparse=True))
    grids[axis % arr.ndim] = _plain(indices)
    _assign(arr, tuple(grids), values)
    return None


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    if not isinstance(dst, Tensor):
        return NotImplemented
    new = traced.broadcast_to(as_tensor(src), dst.shape)
    dst.copy_(new if where is True else traced.where(as_tensor(where), new, dst))
    return None


def _on_values(function: Any) -> Callable[..., Any]:
    """A function without a derivative, which gets arrays."""
    def plain(x: Any) -> Any:
        return _plain(x) if isinstance(x, Tensor) else type(x)(map(plain, x)) if type(x) in (list, tuple) else x

    return lambda *args, **words: quietly(functools.partial(function, **{key: plain(value) for key, value in words.items()}), *map(plain, args))


def _histograms(function: Any) -> Callable[..., Any]:
    """A function of NumPy for histograms, which gives arrays: a warning says that there is no derivative by the bins, their range or the weights.

    Bins that are not given lie between the smallest and the largest of the numbers.
    """
    def counted(*args: Any, **words: Any) -> Any:
        bins, limits = (args[k] if len(args) > k else words.get(word) for k, word in ((1, "bins"), (2, "range")))
        of_data = limits is None and not isinstance(bins, (list, tuple, np.ndarray, Tensor))
        given: list[Any] = [*args[0 if of_data else 1:], *[x for word, x in words.items() if of_data or word != "a"]]
        for x in [x for part in given for x in (part if type(part) in (tuple, list) else (part,))]:
            if isinstance(x, Tensor):
                constant_made(x, f"numpy.{function.__name__}()", always=True)
        return plain(*args, **words)

    plain = _on_values(function)
    return counted


NOT_DIFFERENTIABLE = (
    np.allclose, np.isclose, np.array_equal, np.array_equiv, np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere, np.searchsorted, np.digitize,
    np.lexsort, np.argpartition, np.nanargmax, np.nanargmin, np.isin, np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.triu_indices_from,
    np.tril_indices_from, np.diag_indices_from, np.histogram, np.histogram_bin_edges, np.result_type, np.can_cast, np.common_type,
    np.min_scalar_type, np.array_repr, np.array_str, np.array2string)
FUNCTIONS_OF_NUMPY.update({
    **{function: _on_values(function) for function in NOT_DIFFERENTIABLE},
    **{function: _histograms(function) for function in (np.histogram, np.histogram_bin_edges)},
    **{getattr(np, name): lambda *xs, name=name: FUNCTIONS[name](*map(as_tensor, xs)) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    np.meshgrid: _meshgrid, np.broadcast_arrays: _broadcast_arrays, np.piecewise: _piecewise, np.apply_along_axis: _apply_along_axis,
    np.copyto: _copyto})


@of_numpy(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int) -> Any:
    start = start if start >= 0 else start + a.ndim
    return traced.movedim(a, axis, start - (axis % a.ndim < start))
