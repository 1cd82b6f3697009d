"""Reading and writing through an index: two linear ops, each the transpose of the other; the views of slices and diagonals; and in-place writes."""

import operator

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_range
from symgrad.graph.op import composite, linear
from symgrad.layouts.indices import diagonal, index_array, selecting, window_indices
from symgrad.layouts.strides import Geometry
from symgrad.ops.rules import axis, inverse_permutation

# An index of integers, slices and None gives a view, whose node has the name of the last of them as in torch.
for _name, _node in {"getitem": "Index", "select_item": "Select", "slice_item": "Slice", "unsqueeze_item": "Unsqueeze",
                     "alias_item": "Alias"}.items():
    linear(_name, lambda xp, input, index: xp.getitem(input, index), lambda xp, g, shape, index: xp.place(g, index, shape), public=False,
           node_name=_node, view=True, examples=((0,), ((slice(None), 1),), ((..., None),), ([0, 2, 0],)), doc="input[index].",
           saves=_name == "getitem", saved=("index",) if _name == "getitem" else None)
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
