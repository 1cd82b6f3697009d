"""Copies with elements replaced or added: linear in the input and in the source, whose cotangent is read at the written positions."""

import math

from symgrad.arguments import check_dims, check_kind, check_one_dtype, check_option, check_range
from symgrad.graph.op import composite, linear
from symgrad.layouts.indices import (
    check_bounds,
    check_index_shape,
    diagonal_positions,
    distinct_index,
    flat_positions,
    gather_index,
    index_array,
    integer_index,
    mask_indices,
    members,
    slice_index,
)
from symgrad.ops.rules import axis, in_float32

DISTINCT_INDEX = (([[0], [1], [2]], [[1, 0], [3, 2], [2, 0]]),)  # an index of shape 3 by 2 into 3 by 4 elements, without repetitions
REPEATED_INDEX = (([[0], [1], [0]], [[1, 0], [3, 2], [1, 0]]),)


def _define_replacement(name, prepare=None, usage="", doc="", node_name=None, layout="rows", **rest):
    """An op that replaces the elements at an index; public if it has a `prepare` that computes the index."""
    linear(name, lambda xp, input, src, index: xp.put(input, src, index, False), lambda xp, g, shape, index: xp.put(g, 0, index, False),
           lambda xp, g, shape, index: xp.getitem(g, index), prepare=prepare, public=prepare is not None, usage=usage, node_name=node_name,
           shapes=((3, 4), (3, 2)), examples=(DISTINCT_INDEX,), layout=layout, doc=doc, **rest)


def _times(src, alpha):
    """src * alpha; -1 wraps around for unsigned integers."""
    return -src if alpha == -1 else src * alpha


def _define_addition(name, prepare, usage="", doc=""):
    """An op that adds to the elements at an index, which may repeat elements."""
    linear(name, lambda xp, input, src, index, alpha: xp.put(input, src if alpha == 1 else _times(src, alpha), index, True),
           lambda xp, g, shape, index, alpha: g, lambda xp, g, shape, index, alpha: xp.getitem(g, index) * alpha, prepare=prepare, usage=usage,
           saved=("", "index"),
           shapes=((3, 4), (3, 2)), examples=((*REPEATED_INDEX, 1), (*REPEATED_INDEX, -2)), layout="rows", doc=doc)


# At an index along a dimension


SCALAR, NO_PLACES = (Ellipsis,), ()  # the index of the element of a tensor without dimensions, and what stands for an index without elements


def _elements_index(name, input, dim, index, src):
    dim, empty = axis(dim, input.ndim), not index_array(index).size  # without elements the dtype of an index does not count
    index = index_array(index) if empty else integer_index(index, name)
    if src is not None:
        check_one_dtype(name, input, src)
    if empty:
        return NO_PLACES
    check_index_shape(name, index, input, dim)
    if src is not None:
        check_index_shape(name, index, src, None, "src")
    places = gather_index(check_bounds(index, input.shape[dim] if input.ndim else 1, dim), dim)
    return places if input.ndim else SCALAR


def _written(xp, src, places, add=False):
    """What is written at the places: all of `src`, or, into a tensor without dimensions, its last element or the sum of its elements."""
    if places is not SCALAR or not src.ndim:
        return src
    return xp.sum(src) if add else xp.getitem(xp.reshape(src, (-1,)), (-1,))


def _matching_part(xp, src, index):
    """The elements of `src` at the positions of the index's own elements."""
    shape = tuple(index_array(index).shape)
    if len(shape) != src.ndim:  # one of both has no dimensions
        return xp.reshape(src, (1,)) if shape else xp.reshape(xp.getitem(src, (slice(1),)), ())
    return src if tuple(src.shape) == shape else xp.getitem(src, tuple(slice(n) for n in shape))


def _unchanged(xp, input, src):
    """A copy of the input for an index without elements: nothing of `src` is sent, and yet the graph has both."""
    if not hasattr(src, "shape") or src.dtype is not input.dtype:
        return xp.clone(input)
    nothing = xp.getitem(xp.reshape(src, (-1,)), (slice(0, 0),))
    return xp.clone(xp.reshape(xp.cat([xp.reshape(input, (-1,)), nothing], 0), tuple(input.shape)))


_define_replacement("scatter_tensor", node_name="Scatter", doc="A copy of the input with the elements at an index replaced by a tensor's.")
_define_replacement("scatter_number", node_name="ScatterBackward1", doc="A copy of the input with the elements at an index replaced by a number.")


@composite("scatter", usage="symgrad.scatter(a, 1, symgrad.tensor([[0], [2]]), 9.0)")
def scatter(xp, input, dim, index, src=None, *, value=None, reduce=None):
    """A copy of the input with elements of `src`, or a number, at the positions of an index along `dim`."""
    given = value if src is None else src
    if reduce is not None:
        return _scattered(xp, input, dim, index, given, reduce)
    whole = hasattr(given, "shape")
    places = _elements_index("scatter", input, dim, index, given if whole else None)
    if places is NO_PLACES:
        return _unchanged(xp, input, given)
    if whole:
        return xp.scatter_tensor(input, _written(xp, _matching_part(xp, given, index), places), places)
    return xp.scatter_number(input, input.new_tensor(given), places)


def _scattered(xp, input, dim, index, given, reduce):
    """`scatter` with elements added to those of the input, or multiplied with them."""
    axis(dim, input.ndim)
    check_option("scatter", "reduce", reduce, ("add", "multiply"))
    if not hasattr(given, "shape"):
        given = xp.ones_like(input, tuple(index.shape)) * input.new_tensor(given)
    return xp.scatter_reduce(input, dim, index, given, {"add": "sum", "multiply": "prod"}[reduce])


def _scatter_add_arguments(xp, input, dim, index, src):
    places = _elements_index("scatter_add", input, dim, index, src)
    if places is NO_PLACES:
        return _unchanged(xp, input, src)
    return input, _written(xp, _matching_part(xp, src, index), places, True), places, 1


_define_addition("scatter_add", _scatter_add_arguments, "symgrad.scatter_add(a, 1, symgrad.tensor([[0, 0], [2, 1]]), symgrad.ones(2, 2))",
                 "A copy of the input with the elements of `src` added at the positions of an index along `dim`.")


# Whole slices


def _integers(name, index):
    """The index of slices as an array. Raises RuntimeError for another dtype, `index_fill` IndexError."""
    return integer_index(index, name, ("int64",) if name in ("index_copy", "index_fill") else ("int64", "int32"),
                         IndexError if name == "index_fill" else RuntimeError)


def _slices_index(name, xp, input, dim, index, source=None):
    """The dimension and the index of slices, and a source with one slice for each."""
    dim, copies = axis(dim, input.ndim), name == "index_copy"
    if index_array(index).ndim > 1:
        raise (RuntimeError if name == "index_fill" else IndexError)(f"{name}: the index must be a vector, but it has {index.ndim} dimensions")
    index = _integers(name, index).reshape(-1)
    if source is not None:
        check_one_dtype(name, input, source)
        count = (source.shape[dim] if dim < source.ndim else None) if source.ndim else 1
        vector = copies and input.ndim + source.ndim == 1  # torch takes one for the other
        alike = vector or source.ndim == input.ndim and (not input.ndim or _around(source, dim) == _around(input, dim))
        if not alike or count != len(index):
            mixed = source.ndim != input.ndim > 0 if source.ndim else len(index) != 1
            kind = IndexError if copies and (alike or mixed) else RuntimeError
            raise kind(f"{name}: a source of shape {list(source.shape)} does not have {len(index)} slices of an input of shape {list(input.shape)} "
                       f"along dim {dim}")
    kind = RuntimeError if name == "index_add" else IndexError
    places = slice_index(check_bounds(index, input.shape[dim] if input.ndim else 1, dim, kind), dim)
    return places if input.ndim else SCALAR


def _around(x, dim):
    """The sizes of all dimensions but one."""
    shape = x.shape
    return shape[:dim] + shape[dim + 1:]


def _at_slices(name, xp, input, dim, index, source, *alpha):
    """The arguments of an op at slices, or its result for a tensor without dimensions, which is one slice."""
    places = _slices_index(name, xp, input, dim, index, source)
    if input.ndim:
        return input, source, places, *alpha
    named = {"alpha": alpha[0]} if alpha else {}
    return xp.clone(xp.reshape(getattr(xp, name)(xp.reshape(input, (1,)), dim, index, xp.reshape(source, (1,)), **named), ()))


_define_addition("index_add",
                 lambda xp, input, dim, index, source, *, alpha=1: _at_slices("index_add", xp, input, dim, index, source, alpha),
                 "symgrad.index_add(a, 1, symgrad.tensor([0, 0]), symgrad.ones(2, 2))",
                 "A copy of the input with alpha times the slices of `source` added to those along `dim` that a vector of integers names.")


def _index_copy_arguments(xp, input, dim, index, source):
    if input.ndim == 1 and not source.ndim:
        source = xp.reshape(source, (1,))
    prepared = _at_slices("index_copy", xp, input, dim, index, source)
    return (input, _written(xp, source, prepared[2]), prepared[2]) if input.ndim else prepared


_define_replacement("index_copy", _index_copy_arguments,
                    "symgrad.index_copy(a, 1, symgrad.tensor([2, 0]), symgrad.ones(2, 2))",
           "A copy of the input with the slices of `source` in place of those along `dim` that a vector of integers names.", "IndexCopyBackward0")
_define_replacement("index_fill_number", node_name="IndexFill", layout="first",
                    doc="A copy of the input with the elements at an index replaced by a number.")
_define_replacement("index_fill_tensor", node_name="IndexFillBackward1", layout="first",
                    doc="A copy of the input with the elements at an index replaced by a tensor.")


@composite("index_fill", usage="symgrad.index_fill(a, 1, symgrad.tensor([0]), 7.0)")
def index_fill(xp, input, dim, index, value):
    """A copy of the input with a number, or a tensor without dimensions, in the slices along `dim` at a vector of integers."""
    if not input.ndim:
        return xp.clone(xp.reshape(index_fill(xp, xp.reshape(input, (1,)), dim, index, value), ()))
    if hasattr(value, "shape"):
        check_dims("index_fill", value, 0, word="value")
    places = _slices_index("index_fill", xp, input, dim, distinct_index(_integers("index_fill", index), input.shape[axis(dim, input.ndim)]))
    if isinstance(value, complex) or hasattr(value, "is_complex") and value.is_complex():
        check_kind("index_fill", input, "c", "input of a complex value")
    if not hasattr(value, "shape"):
        return xp.index_fill_number(input, input.new_tensor(value), places)
    return xp.index_fill_tensor(input, value.to(input.dtype), places)


# Reductions of the elements that are sent to one position


REDUCTIONS = "sum", "prod", "mean", "amax", "amin"


@in_float32
def _mean_at(xp, flat, sent, added):
    whole = not (flat.is_floating_point() or flat.is_complex())
    return xp.div(added(flat, sent), added(xp.ones_like(flat), xp.ones_like(sent)), rounding_mode="floor" if whole else None)


def _reduce_at(xp, input, src, places, reduce, include_self):
    """The input with the reductions of its own element (if `include_self`) and of the elements of `src` sent to one place."""
    if reduce == "prod" and str(input.dtype) == "torch.bool":
        reduce = "amin"
    flat, sent, shape = xp.reshape(input, (-1,)), xp.reshape(src, (-1,)), tuple(input.shape)
    positions = flat_positions(places, shape)
    if not len(positions):
        return _unchanged(xp, input, src)

    def added(x, others):
        return xp.index_add(x if include_self else xp.index_fill(x, 0, positions, 0), 0, positions, others)

    if reduce == "mean":
        return xp.reshape(_mean_at(xp, flat, sent, added), shape)
    if reduce == "sum":
        return xp.reshape(added(flat, sent), shape)
    distinct, rows, filled = members(positions, input.numel(), include_self)
    found = xp.getitem(xp.cat([flat, sent], 0), (rows,))
    if reduce == "prod" or input.is_floating_point():  # an integer extreme is that of repeated elements, too
        found = xp.where(input.new_tensor(filled), found, {"prod": 1, "amax": -math.inf, "amin": math.inf}[reduce])
    return xp.reshape(xp.scatter_tensor(flat, getattr(xp, reduce)(found, -1).to(input.dtype), (distinct,)), shape)


@composite("scatter_reduce", usage="symgrad.scatter_reduce(a, 1, symgrad.tensor([[0, 0], [2, 1]]), symgrad.ones(2, 2), 'mean')")
def scatter_reduce(xp, input, dim, index, src, reduce, *, include_self=True):
    """A copy of the input with the sum, product, mean, largest or smallest of the elements that an index along `dim` sends to one place."""
    axis(dim, input.ndim)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    check_option("scatter_reduce", "reduce", reduce, REDUCTIONS)
    places = _elements_index("scatter_reduce", input, dim, index, src)
    if places is NO_PLACES:
        return _unchanged(xp, input, src)
    part = _matching_part(xp, src, index)
    places = places if input.ndim else (integer_index(index, "").reshape(-1),)
    return _reduce_at(xp, input, part, places, reduce, include_self)


@composite("index_reduce", usage="symgrad.index_reduce(a, 1, symgrad.tensor([0, 0]), symgrad.ones(2, 2), 'prod')")
def index_reduce(xp, input, dim, index, source, reduce, *, include_self=True):
    """A copy of the input with the product, mean, largest or smallest of the slices that a vector of integers sends to one place along `dim`."""
    check_option("index_reduce", "reduce", reduce, REDUCTIONS[1:])
    _slices_index("index_reduce", xp, input, dim, index, source)
    dim = axis(dim, input.ndim)
    every = xp.expand(xp.reshape(index, (-1, *(1,) * (input.ndim - dim - 1))), tuple(source.shape)) if input.ndim else xp.reshape(index, ())
    places = _elements_index("index_reduce", input, dim, every, source)
    if places is NO_PLACES:
        return _unchanged(xp, input, source)
    places = places if input.ndim else (integer_index(index, "").reshape(-1),)
    return _reduce_at(xp, input, source, places, reduce, include_self)


def check_size(src, shape):
    if tuple(src.shape) != tuple(shape):
        raise RuntimeError(f"src has the shape {list(src.shape)}, but the slice of the input has {list(shape)}")


def _select_arguments(xp, input, src, dim, index):
    dim = axis(dim, input.ndim)
    check_range("select_scatter", "index", index, -input.shape[dim], input.shape[dim] - 1, IndexError)
    check_size(src, (*input.shape[:dim], *input.shape[dim + 1:]))
    return input, src.to(input.dtype), (slice(None),) * dim + (index,)


def _slice_arguments(xp, input, src, dim=0, start=None, end=None, step=1):
    dim = axis(dim, input.ndim)
    piece = slice(start, end, step)
    check_size(src, (*input.shape[:dim], len(range(*piece.indices(input.shape[dim]))), *input.shape[dim + 1:]))
    return input, src.to(input.dtype), (slice(None),) * dim + (piece,)


def _diagonal_arguments(xp, input, src, offset=0, dim1=0, dim2=1):
    places = diagonal_positions(tuple(input.shape), offset, axis(dim1, input.ndim), axis(dim2, input.ndim))
    check_size(src, places[0].shape)
    return input, src.to(input.dtype), places


_define_replacement("select_scatter", _select_arguments, "symgrad.select_scatter(a, symgrad.zeros(2), 1, 0)",
                    "A copy of the input with `src` as one slice "
                                                                                                  "along `dim`.", layout="first")
_define_replacement("slice_scatter", _slice_arguments, "symgrad.slice_scatter(a, symgrad.zeros(2, 2), 1, 0, 2)",
                    "A copy of the input with `src` in place of the slices from `start` to `end` along `dim`.", layout="first")
_define_replacement("diagonal_scatter", _diagonal_arguments, "symgrad.diagonal_scatter(a, symgrad.zeros(2))",
                    "A copy of the input with `src` on a diagonal.", layout="first", saves=False)


# Where a mask is true


def _masked_fill_transpose_input(xp, g, shape, mask):
    return xp.where(mask, xp.zeros_like(g), g)


def _masked_fill_transpose_value(xp, g, shape, mask):
    return xp.where(mask, g, xp.zeros_like(g))


for _name, _node in {"masked_fill_number": "MaskedFill", "masked_fill_tensor": "MaskedFillBackward1"}.items():
    linear(_name, lambda xp, input, value, mask: xp.where(mask, value, input), _masked_fill_transpose_input, _masked_fill_transpose_value,
           public=False, node_name=_node, selects=True, saves=True, saved=("mask", "mask"), layout="rows",
           shapes=((2, 2), ()), examples=((index_array([[True, False], [False, True]]),),), doc="The input with a value where a mask is true.")


@composite("masked_fill", usage="symgrad.masked_fill(a, a > 2, 0.0)")
def masked_fill(xp, input, mask, value):
    """A copy of the input with a number, or a tensor without dimensions, where `mask` is true; shapes broadcast."""
    if isinstance(value, (list, tuple)):
        raise TypeError(f"masked_fill: value must be a number or a tensor, not {value!r}")
    if hasattr(value, "shape"):
        check_dims("masked_fill", value, 0, word="value")
    if not input.is_complex() and (isinstance(value, complex) or hasattr(value, "shape") and value.is_complex()):
        part = value if isinstance(value, complex) else value.item()
        if part.imag and input.dtype.name != "bool":
            raise RuntimeError(f"masked_fill: {part} has an imaginary part, but the input is {input.dtype}")
        value = (part != 0 if part.imag else part.real) if isinstance(value, complex) or part.imag else xp.real(value)
    truth = index_array(mask)
    check_kind("masked_fill", truth, "b", "mask")
    if hasattr(value, "shape"):
        return xp.masked_fill_tensor(input, value.to(input.dtype), truth.copy())
    return xp.masked_fill_number(input, input.new_tensor(value), truth.copy())


_define_replacement("masked_scatter_elements", node_name="MaskedScatter", doc="A copy of the input with the elements at a mask replaced.")


@composite("masked_scatter", usage="symgrad.masked_scatter(a, a > 2, symgrad.zeros(6))")
def masked_scatter(xp, input, mask, source):
    """A copy of the input with the elements of `source`, in order, where `mask` is true."""
    shape, places = mask_indices(mask, tuple(input.shape), "masked_scatter")
    count = len(places[0]) if shape else int(places[0])
    check_one_dtype("masked_scatter", input, source)
    check_range("masked_scatter", "the number of elements of source", source.numel(), count)
    whole = xp.broadcast_to(input, shape) if shape != tuple(input.shape) else input
    return xp.masked_scatter_elements(whole, xp.reshape(source, (-1,))[:count], places)
