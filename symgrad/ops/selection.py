"""Selecting elements by index and by order. The selection is linear in the input: its transpose adds to the selected positions."""

import math

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_range
from symgrad.graph import return_types
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.indices import (
    check_bounds,
    check_index_shape,
    element_index,
    first_outside,
    gather_index,
    index_array,
    integer_index,
    mask_indices,
    middle,
    most_frequent,
    order,
    running_extremes,
    slice_index,
    unravelled,
)
from symgrad.layouts.strides import row_major, with_torch_layout
from symgrad.ops.rules import axis, equal_or_nan

SAMPLE = ((([[2], [0], [2]], [[1, 0], [3, 3], [2, 0]]),),)


def _define_selection(name, prepare=None, usage="", doc="", node_name=None, layout="rows"):
    """An op that selects the elements at an index; public if it has a `prepare` that computes the index.

    The index consists of arrays, if only 0-d ones, so that the result is never a view.
    """
    linear(name, lambda xp, input, index: xp.getitem(input, index), lambda xp, g, shape, index: xp.place(g, index, shape), prepare=prepare,
           public=prepare is not None, usage=usage, node_name=node_name, examples=SAMPLE, layout=layout, doc=doc)


def _gather_arguments(xp, input, dim, index, *, sparse_grad=False):
    dim = axis(dim, input.ndim)
    index = integer_index(index, "gather") if index_array(index).size else index_array(index).astype(int)
    if not index.size:
        return xp.reshape(input, (-1,)), (index,)
    check_index_shape("gather", index, input, dim)
    return _elements_at(xp, input, dim, check_bounds(index, input.shape[dim] if input.ndim else 1, dim))


def _elements_at(xp, input, dim, index, keepdim=True):
    """The input and the positions of the elements of an index with its dimensions; a scalar is a vector of one element."""
    return (input, gather_index(index, dim, keepdim)) if input.ndim else (xp.reshape(input, (1,)), (index,))


def _take_arguments(xp, input, index):
    index, count = integer_index(index, "take", ("int64",)), input.numel()
    wrong = first_outside(index, -count, count)
    if wrong is not None:
        raise IndexError(f"take: index {wrong} is out of range of {count} elements")
    return input if input.ndim else xp.reshape(input, (1,)), unravelled(index % max(count, 1), tuple(input.shape) or (1,))


def _index_select_arguments(xp, input, dim, index):
    dim = axis(dim, input.ndim)
    index = integer_index(index, "index_select")
    if index.ndim > 1:
        raise IndexError(f"index_select: the index must be a vector, but it has {index.ndim} dimensions")
    size = input.shape[dim] if input.ndim else 1
    if not input.ndim and index.size != 1:
        raise RuntimeError(f"index_select: the index of a tensor without dimensions must have one element, not {index.size}")
    check_bounds(index, size, dim, IndexError)
    if not input.ndim:
        return xp.clone(input)
    return input, slice_index(index.reshape(-1), dim)


def _masked_select_arguments(xp, input, mask):
    shape, index = mask_indices(mask, tuple(input.shape), "masked_select")
    if not shape:
        return xp.reshape(input, (1,)), (index[0].reshape(1).nonzero()[0],)
    return xp.broadcast_to(input, shape) if shape != input.shape else input, index


_define_selection("gather", _gather_arguments, "symgrad.gather(a, 1, symgrad.tensor([[0, 0], [2, 1]]))",
                  "The elements that an index names along `dim`; the other positions are those of the index.")
_define_selection("take", _take_arguments, "symgrad.take(a, symgrad.tensor([0, 5]))",
                  "The elements at positions in the flattened input, in the shape of the index.")
_define_selection("index_select", _index_select_arguments, "symgrad.index_select(a, 1, symgrad.tensor([0, 2]))",
                  "The slices of the input along `dim` that a vector of "
                                                                                          "integers names.")
_define_selection("masked_select", _masked_select_arguments, "symgrad.masked_select(a, a > 2)",
                  "The elements where `mask` holds, as a vector; shapes broadcast.")


@composite("take_along_dim", usage="symgrad.take_along_dim(a, symgrad.argsort(a), 1)")
def take_along_dim(xp, input, indices, dim=None):
    """The elements at indices along `dim`, with the other dimensions broadcast; without `dim`, those of the flattened input."""
    index = integer_index(indices, "take_along_dim", ("int64",))
    if dim is None:
        return xp.gather(xp.reshape(input, (-1,)), 0, index_array(indices).reshape(-1))
    check_least_rank("take_along_dim", input, 1, kind=IndexError)
    dim = axis(dim, input.ndim)
    check_dims("take_along_dim", index, input.ndim, word="indices")
    others = [max(n, m) if i != dim else n for i, (n, m) in enumerate(zip(index.shape, input.shape))]
    stretched = [max(n, m) if i != dim else m for i, (n, m) in enumerate(zip(index.shape, input.shape))]
    size = input.shape[dim]
    check_bounds(index, size, dim, low=-size)
    if first_outside(index, 0, size) is not None:
        indices = input.new_tensor(index % size, dtype=int)
    return xp.gather(xp.expand(input, stretched), dim, index_array(xp.expand(indices, others)))


# By order


for _name, _node in {"sort": "Sort", "stable_sort": "SortBackward1", "topk": "Topk", "kthvalue": "Kthvalue", "median": "MedianBackward1",
                     "nanmedian": "NanmedianBackward1", "mode": "Mode", "cummax": "Cummax", "cummin": "Cummin"}.items():
    _define_selection(f"{_name}_elements", node_name=_node, layout="" if "sort" in _name else "rows", doc=f"The elements selected by `{_name}`.")


def _tie_share(xp, y, x):
    """Each element's share of the gradient of a value that it equals."""
    at = equal_or_nan(xp, x, y)
    return at / xp.sum(at, None, False)


for _name in ("median", "nanmedian"):
    primitive(f"{_name}_of_all", lambda xp, input, index: xp.copy(xp.getitem(input, index)), vjp=lambda xp, g, y, x, index: g * _tie_share(xp, y, x),
              public=False, jvp=lambda xp, t, y, x, index: xp.sum(t * _tie_share(xp, y, x), None, False), node_name=_name.capitalize(),
              examples=(((1, 2),),),
              selects=True, doc="The median of all elements; elements equal to it share the gradient.")


def _values_and_indices(xp, kind, pick, input, dim, index, keepdim=True):
    """The elements at an index with all dimensions, and the index, as a pair of a kind."""
    index = with_torch_layout(index, (xp.numbers(input),)) if kind is return_types.sort else row_major(index)
    values = pick(*_elements_at(xp, input, dim, index, keepdim))
    return kind((values, input.new_tensor(index if keepdim or not input.ndim else index.squeeze(dim), dtype=int)))


@composite("sort", kinks=(([1.0, 1.0],),), usage="symgrad.sort(a, descending=True).values")
def sort(xp, input, dim=-1, descending=False, *, stable=None):
    """The pair (values, indices) of the input sorted along `dim`; equal elements stay in order, and NaN is the largest."""
    dim = axis(dim, input.ndim)
    pick = xp.sort_elements if stable is None else xp.stable_sort_elements
    return _values_and_indices(xp, return_types.sort, pick, input, dim, order(xp.numbers(input), dim, bool(descending)))


@composite("msort", kinks=(([1.0, 1.0],),), usage="symgrad.msort(a)")
def msort(xp, input):
    """The input sorted along its first dimension."""
    return sort(xp, input, 0).values


@composite("argsort", usage="symgrad.argsort(a)")
def argsort(xp, input, dim=-1, descending=False, *, stable=False):
    """The indices that sort the input along `dim`; equal elements stay in order."""
    return input.new_tensor(with_torch_layout(order(xp.numbers(input), axis(dim, input.ndim), bool(descending)), (xp.numbers(input),)), dtype=int)


@composite("topk", kinks=(([1.0, 1.0, 0.0], 1),), usage="symgrad.topk(a, 2).values")
def topk(xp, input, k, dim=-1, largest=True, sorted=True):
    """The pair (values, indices) of the `k` largest (or smallest) elements along `dim`, the most extreme first."""
    dim = axis(dim, input.ndim)
    check_range("topk", "k", k, 0, input.shape[dim] if input.ndim else 1)
    check_kind("topk", input, "fciu")
    by = order(xp.numbers(input), dim, bool(largest))
    return _values_and_indices(xp, return_types.topk, xp.topk_elements, input, dim, by[slice_index(slice(0, k), dim)] if input.ndim else by)


@composite("kthvalue", kinks=(([1.0, 1.0, 2.0], 1),), usage="symgrad.kthvalue(a, 2)")
def kthvalue(xp, input, k, dim=-1, keepdim=False):
    """The pair (values, indices) of the `k`-th smallest element along `dim`, counted from 1."""
    dim = axis(dim, input.ndim)
    check_range("kthvalue", "k", k, 1, input.shape[dim] if input.ndim else 1)
    by = order(xp.numbers(input), dim)
    return _values_and_indices(xp, return_types.kthvalue, xp.kthvalue_elements, input, dim,
                               by[slice_index(slice(k - 1, k), dim)] if input.ndim else by, keepdim)


def _median(xp, input, dim, keepdim, kind, pick, pick_of_all, missing):
    """The lower median along `dim`, or of all elements; NaN if there is one, unless `missing`, which ignores NaN."""
    if dim is None:
        if not input.numel():
            return input.new_tensor(math.nan)
        numbers = xp.numbers(input).reshape(-1)
        at = middle(numbers)
        at = _median_index(numbers, 0, missing) if at is None else at
        return pick_of_all(input, element_index(unravelled(at, tuple(input.shape) or (1,)))[:input.ndim])
    dim = axis(dim, input.ndim)
    if input.ndim and not input.shape[dim]:
        raise IndexError(f"{kind.__name__}: the dimension {dim} of shape {list(input.shape)} has no elements")
    return _values_and_indices(xp, kind, pick, input, dim, _median_index(xp.numbers(input), dim, missing), keepdim)


def _median_index(value, dim, missing):
    """The position of the median in sorted order: the middle of the elements that are not NaN, or the first NaN after them."""
    by = order(value, dim)
    if not by.ndim:
        return by
    count = (value == value).sum(dim, keepdims=True)
    middle = (count - 1) // 2 * (count > 0)
    whole = (count == by.shape[dim]) | missing
    return by[gather_index(middle * whole + count * ~whole, dim)]


@composite("median", kinks=(([1.0, 1.0, 2.0],), ([1.0, 1.0, 2.0], 0)), usage="symgrad.median(a, dim=1).values")
def median(xp, input, dim=None, keepdim=False):
    """The lower median of all elements; with `dim`, the pair (values, indices). The median is NaN if an element is."""
    return _median(xp, input, dim, keepdim, return_types.median, xp.median_elements, xp.median_of_all, False)


@composite("nanmedian", kinks=(([1.0, 1.0, 2.0],),), usage="symgrad.nanmedian(a)")
def nanmedian(xp, input, dim=None, keepdim=False):
    """The lower median of the elements that are not NaN; with `dim`, the pair (values, indices)."""
    return _median(xp, input, dim, keepdim, return_types.nanmedian, xp.nanmedian_elements, xp.nanmedian_of_all, True)


@composite("mode", kinks=(([1.0, 1.0, 2.0],),), usage="symgrad.mode(a, dim=1)")
def mode(xp, input, dim=-1, keepdim=False):
    """The pair (values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
    dim = axis(dim, input.ndim)
    at = most_frequent(xp.numbers(input), dim)
    at = at.reshape((*at.shape[:dim], 1, *at.shape[dim:])) if input.ndim else at
    return _values_and_indices(xp, return_types.mode, xp.mode_elements, input, dim, at, keepdim)


@composite("cummax", kinks=(([1.0, 1.0], 0),), usage="symgrad.cummax(a, dim=1).values")
def cummax(xp, input, dim):
    """The pair (values, indices) of the largest element so far along `dim`, at its last position."""
    dim = axis(dim, input.ndim)
    return _values_and_indices(xp, return_types.cummax, xp.cummax_elements, input, dim, running_extremes(xp.numbers(input), dim, True))


@composite("cummin", kinks=(([1.0, 1.0], 0),), usage="symgrad.cummin(a, dim=1).values")
def cummin(xp, input, dim):
    """The pair (values, indices) of the smallest element so far along `dim`, at its last position."""
    dim = axis(dim, input.ndim)
    return _values_and_indices(xp, return_types.cummin, xp.cummin_elements, input, dim, running_extremes(xp.numbers(input), dim, False))
