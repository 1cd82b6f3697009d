"""Selecting elements by index and by order, and writing to an index. Both are linear, each is the transpose of the other; with the views of slices
and diagonals, and the ops of in-place writes.
"""

import math
import operator

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_range
from symgrad.graph import return_types
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.indices import (
    check_bounds,
    check_index_shape,
    diagonal,
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
    selecting,
    slice_index,
    unravelled,
    window_indices,
)
from symgrad.layouts.strides import Geometry, row_major, with_torch_layout
from symgrad.ops.rules import axis, equal_or_nan, inverse_permutation

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


# An index of integers, slices and None gives a view, whose node has the name of the last of them as in torch.
for _item, _of_node in {"getitem": "Index", "select_item": "Select", "slice_item": "Slice", "unsqueeze_item": "Unsqueeze",
                     "alias_item": "Alias"}.items():
    linear(_item, lambda xp, input, index: xp.getitem(input, index), lambda xp, g, shape, index: xp.place(g, index, shape), public=False,
           node_name=_of_node, view=True, examples=((0,), ((slice(None), 1),), ((..., None),), ([0, 2, 0],)), doc="input[index].",
           saves=_item == "getitem", saved=("index",) if _item == "getitem" else None)
linear("place", lambda xp, input, index, shape: xp.place(input, index, shape), lambda xp, g, shape, index, whole: xp.getitem(g, index),
       public=False, node_name="IndexPut", examples=(((slice(1, 4), slice(0, 4)), (5, 6)),), doc="Zeros of `shape` with the input added at `index`.")


def _put(xp, input, values, index, accumulate):
    return xp.put(input, values, index, accumulate)


def _put_transpose_input(xp, g, shape, index, accumulate):
    return g if accumulate else xp.put(g, 0, index, False)


def _put_transpose_values(xp, g, shape, index, accumulate):
    return xp.getitem(g, index)


linear("put", _put, _put_transpose_input, _put_transpose_values, public=False, node_name="IndexPut", layout="first", shapes=((3, 4), (4,)),
       examples=((0, False), (1, True)), doc="A copy of the input with `values` at `index`.")


@composite("index_put", usage="symgrad.index_put(x, (symgrad.tensor([0, 2]),), symgrad.tensor([8.0, 9.0]))")
def index_put(xp, input, indices, values, accumulate=False):
    """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
    index = tuple(selecting(index_array(i)) if hasattr(i, "numpy") else i for i in indices)
    if hasattr(values, "shape"):
        check_one_dtype("index_put", input, values)
    else:
        values = input.new_tensor(values)  # a number does not widen the input
    return xp.put(input, values, index, bool(accumulate))


@composite("select", view=True, usage="symgrad.select(a, 1, 0)")
def select(xp, input, dim, index):
    """One slice of the input along `dim`: a view."""
    check_least_rank("select", input, 1, kind=IndexError)
    dim, index = axis(dim, input.ndim), operator.index(index)
    check_range("select", "index", index, -input.shape[dim], input.shape[dim] - 1, IndexError)
    return xp.select_item(input, (slice(None),) * dim + (index,))


@composite("narrow", view=True, usage="symgrad.narrow(a, 1, 0, 2)")
def narrow(xp, input, dim, start, length):
    """The `length` slices of the input along `dim` from `start` on: a view."""
    check_least_rank("narrow", input, 1)
    dim = axis(dim, input.ndim)
    if hasattr(start, "dtype"):
        check_dims("narrow", start, 0, word="start")
        check_kind("narrow", start, "iu", "start")
    start = operator.index(start)
    n = input.shape[dim]
    check_range("narrow", "start", start, -n, n, IndexError)
    start += n * (start < 0)
    check_range("narrow", "length", length, 0, n - start)
    return xp.slice_item(input, (slice(None),) * dim + (slice(start, start + length),))


def _order_with_last(dims, ndim):
    """The permutation of dimensions that moves the given ones to the end."""
    return (*(i for i in range(ndim) if i not in dims), *dims)


def _distinct_axes(dim1, dim2, ndim):
    first, second = axis(dim1, ndim), axis(dim2, ndim)
    if first == second:
        raise RuntimeError(f"the dimensions {dim1} and {dim2} of a diagonal must be different")
    return first, second


def _diagonal_transpose(xp, g, shape, offset, dim1, dim2):
    order = _order_with_last((dim1, dim2), len(shape))
    target = tuple(shape[i] for i in order)
    return xp.permute(xp.place(g, diagonal(target, offset), target), inverse_permutation(order))


linear("diagonal", lambda xp, input, offset, dim1, dim2: xp.diagonal(input, offset, dim1, dim2), _diagonal_transpose, view=True,
       prepare=lambda xp, input, offset=0, dim1=0, dim2=1: (input, offset, *_distinct_axes(dim1, dim2, input.ndim)), shapes=((2, 3, 4),),
       examples=((1, 0, 1), (-1, 2, 1)), usage="symgrad.diagonal(a, 1)", doc="The diagonal of two dimensions as a new last dimension: a view.")


def _diag_embed(xp, input, offset, dim1, dim2):
    n = input.shape[-1] + abs(offset)
    target = (*input.shape[:-1], n, n)
    return xp.permute(xp.place(input, diagonal(target, offset), target), inverse_permutation(_order_with_last((dim1, dim2), len(target))))


linear("diag_embed", _diag_embed, lambda xp, g, shape, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2), layout="rows",
       examples=((1, 0, 2), (0, 1, 2)),
       prepare=lambda xp, input, offset=0, dim1=-2, dim2=-1: (input, offset, *_distinct_axes(dim1, dim2, input.ndim + 1)), shapes=((2, 3),),
       usage="symgrad.diag_embed(a)", doc="Zeros with the last dimension of the input on a diagonal of two new ones: the transpose of `diagonal`.")


@composite("diagflat", usage="symgrad.diagflat(a)")
def diagflat(xp, input, offset=0):
    """The matrix with all elements of the input on a diagonal."""
    return xp.diag_embed(xp.reshape(input, (-1,)), offset)


def _unfold_arguments(xp, input, dimension, size, step):
    dim, n = axis(dimension, input.ndim), input.shape[axis(dimension, input.ndim)] if input.ndim else 1
    check_range("unfold", "size", size, 0, n)
    check_range("unfold", "step", step, 1)
    if not input.ndim:  # the window is the element, without another dimension
        return xp.slice_item(xp.reshape(input, (1,)), (slice(0, size),))
    return input, dim, size, step


def _unfold_transpose(xp, g, shape, dim, size, step):
    order = (*range(dim + 1), len(shape), *range(dim + 1, len(shape)))
    return xp.place(xp.permute(g, order), (slice(None),) * dim + (window_indices(shape[dim], size, step),), shape)


linear("unfold", lambda xp, input, dimension, size, step: xp.unfold(input, dimension, size, step), _unfold_transpose, prepare=_unfold_arguments,
       view=True, examples=((1, 2, 1), (0, 3, 2)), usage="a.unfold(1, 2, 1)",
       doc="The windows of `size` slices along `dimension`, `step` apart, as a new last dimension: a view.")


_diagonal = Geometry((3,), 12, (5,), 0)


def _strided_transpose(xp, g, shape, geometry):
    return xp.strided_add(g, geometry, shape) if geometry.overlaps else xp.strided_put(xp.zeros_like(g, shape), g, geometry)


linear("strided", lambda xp, input, geometry: xp.strided(input, geometry), _strided_transpose, public=False, node_name="AsStridedBackward0",
       examples=((_diagonal,), (Geometry((2, 3), 12, (0, 4), 1),)), doc="The elements of the input in a view of it.")
linear("strided_put", lambda xp, input, piece, geometry: xp.strided_put(input, piece, geometry),
       lambda xp, g, shape, geometry: xp.strided_put(g, xp.zeros_like(g, geometry.shape), geometry),
       lambda xp, g, shape, geometry: xp.strided(g, geometry), public=False, node_name="CopySlices",
       shapes=((3, 4), (3,)), examples=((_diagonal,),), doc="A copy of the input with `piece` written to a view of it.")
linear("strided_add", lambda xp, input, geometry, shape: xp.strided_add(input, geometry, shape),
       lambda xp, g, whole, geometry, shape: xp.strided(g, geometry), public=False, shapes=((2, 3),),
       examples=((Geometry((2, 3), 12, (0, 4), 1), (3, 4)),), doc="Zeros of `shape` with the input added to a view of them.")
linear("overwrite", lambda xp, input, values: xp.copy(xp.broadcast_to(values, input.shape)), lambda xp, g, shape: xp.zeros_like(g),
       lambda xp, g, shape: g, public=False, node_name="CopyBackwards", shapes=((3, 4), (4,)),
       doc="The second argument in the shape of the first: what `copy_` computes.")
for _word, _class in {"fill": "FillBackward3", "fill_number": "FillBackward2"}.items():
    linear(_word, lambda xp, input, value: xp.copy(xp.broadcast_to(value, input.shape)),
           lambda xp, g, shape: xp.zeros_like(g), lambda xp, g, shape: g, public=False, node_name=_class, shapes=((3, 4), ()),
           doc="The second argument, a scalar, in the shape of the first.")
linear("zero", lambda xp, input: xp.zeros_like(input), lambda xp, g, shape: xp.zeros_like(g), public=False, node_name="ZeroBackward0",
       doc="Zeros in the shape of the input.")
