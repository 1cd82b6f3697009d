"""Ops that rearrange elements; all of them are linear."""

import functools
import math
import operator

from symgrad.arguments import check_dims, check_least_rank, check_range
from symgrad.dtypes.dtype import DType
from symgrad.errors import RESHAPE
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.strides import IMAGE_AXES, order_of_format
from symgrad.ops.rules import axes, axis, check_expandable, check_not_empty, inverse_permutation, sizes


@functools.lru_cache(1024)
def _infer_shape(name, shape, size):
    """The shape in which -1 is replaced by the size that it stands for."""
    if -1 not in size and math.prod(size) == math.prod(shape) and min(size, default=0) >= 0:
        return size
    known, total, requested = math.prod(n for n in size if n != -1), math.prod(shape), list(size)
    if size.count(-1) > 1 or min(size, default=0) < -1 or -1 in size and not known:
        raise RuntimeError(f"{name}: the shape {requested} of {total} elements is ambiguous or has a negative size. At most one size may be -1")
    if -1 in size:
        size = tuple(total // known if n == -1 else n for n in size)
    if math.prod(size) != total:
        raise RuntimeError(f"{RESHAPE.format(requested, total)}: {name} of the shape {list(shape)}")
    return size


def _reshape_transpose(xp, g, shape, size):
    return xp.reshape(g, shape)


def _reshape_node_name(node):
    x = node.args[0]
    if not hasattr(x, "flags") or x.flags.c_contiguous:
        return None
    base = node.value.base
    return "ReshapeAliasBackward0" if base is not None and (base is x or base is x.base) else "UnsafeViewBackward0"


linear("reshape", lambda xp, input, shape: xp.reshape(input, shape), _reshape_transpose, node_name="View", view=True, names=_reshape_node_name,
       examples=(((4, 3),), ((12,),)), prepare=lambda xp, input, *shape: (input, _infer_shape("reshape", input.shape, sizes(shape))),
       usage="symgrad.reshape(a, (3, -1))", doc="The same elements in another shape; one size may be -1.")


def _view_arguments(xp, input, *size, dtype=None):
    if dtype is not None:
        if not size:
            return input._view_as_dtype(dtype)
        raise TypeError("view: sizes and a dtype are given; call it with one of them")
    if len(size) == 1 and type(size[0]) is not int and isinstance(size[0], (DType, type)):
        return input._view_as_dtype(size[0])
    return input, _infer_shape("view", input.shape, sizes(size))


linear("view", lambda xp, input, shape: xp.view(input, shape), _reshape_transpose, view=True, examples=(((4, 3),), ((12,),)),
       jvp=lambda xp, tangents, y, args: xp.reshape(tangents[0], args[1]), prepare=_view_arguments, usage="a.view(3, 2)",
       doc="The same elements in another shape, or the same bytes as elements of a dtype, sharing memory; raises if that needs a copy.")


@composite("view_as", view=True, usage="a.view_as(a.reshape(-1))")
def view_as(xp, input, other):
    """The same elements in the shape of another tensor, sharing memory."""
    return xp.view(input, tuple(other.shape))


@composite("reshape_as", view=True, usage="a.reshape_as(a.t())")
def reshape_as(xp, input, other):
    """The same elements in the shape of another tensor."""
    return xp.reshape(input, tuple(other.shape))


@composite("expand_as", view=True, usage="x.expand_as(a)")
def expand_as(xp, input, other):
    """The input expanded to the shape of another tensor."""
    return xp.expand(input, tuple(other.shape))


@composite("flatten", view=True, usage="symgrad.flatten(a)")
def flatten(xp, input, start_dim=0, end_dim=-1):
    """The axes from `start_dim` to `end_dim` merged into one."""
    start, end = axis(start_dim, input.ndim), axis(end_dim, input.ndim)
    check_range("flatten", "start_dim", start, high=end)
    if start == end and input.ndim:
        return input
    shape = input.shape or (1,)
    return xp.reshape(input, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


def _squeeze_arguments(xp, input, dim=None):
    dims = axes(dim, input.ndim) if dim != () else ()
    return input, tuple(n for i, n in enumerate(input.shape) if n != 1 or i not in dims), dim


linear("squeeze", lambda xp, input, shape, dim: xp.reshape(input, shape), lambda xp, g, shape, size, dim: xp.reshape(g, shape),
       prepare=_squeeze_arguments, view=True, examples=(((12,), None),),
       names=lambda node: f"SqueezeBackward{0 if node.args[2] is None else 1 if isinstance(node.args[2], int) else 4}",
       usage="symgrad.squeeze(a[:1], 0)", doc="The axes of size 1 removed: all of them, or those in `dim`.")


def _unsqueeze_arguments(xp, input, dim):
    at = axis(dim, input.ndim + 1)
    return input, (*input.shape[:at], 1, *input.shape[at:])


linear("unsqueeze", lambda xp, input, shape: xp.reshape(input, shape), _reshape_transpose, prepare=_unsqueeze_arguments, view=True,
       examples=(((1, 3, 4),),), usage="symgrad.unsqueeze(a, -1)", doc="A new axis of size 1 at `dim`.")


def _permute_transpose(xp, g, shape, dims):
    return xp.permute(g, inverse_permutation(dims))


def _permute_arguments(xp, input, *dims):
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = axes(given, input.ndim) if given else ()
    if len(order) != input.ndim:
        raise RuntimeError(f"permute: a tensor of {input.ndim} dimensions has an order of {input.ndim}, not of {len(order)}")
    return input, order


def _transpose_arguments(xp, input, dim0, dim1):
    order, a, b = list(range(input.ndim)), axis(dim0, input.ndim), axis(dim1, input.ndim)
    if order:
        order[a], order[b] = order[b], order[a]
    return input, tuple(order)


def _t_arguments(xp, input):
    check_dims("t", input, 0, 1, 2)
    return input, (1, 0)[2 - input.ndim:]


def _movedim_arguments(xp, input, source, destination):
    given = [source] if isinstance(source, int) else source, [destination] if isinstance(destination, int) else destination
    if len(given[0]) != len(given[1]):
        raise RuntimeError(f"movedim: source {list(given[0])} and destination {list(given[1])} must have one length")
    from_, to = axes(tuple(given[0]), input.ndim), axes(tuple(given[1]), input.ndim)
    rest = iter(i for i in range(input.ndim) if i not in from_)
    placed = dict(zip(to, from_))
    return input, tuple(placed[i] if i in placed else next(rest) for i in range(input.ndim))


for _name, _prepare, _usage, _doc in (
    ("permute", _permute_arguments, "a.permute(1, 0)", "The axes in another order."),
    ("transpose", _transpose_arguments, "symgrad.transpose(a, 0, 1)", "Two axes exchanged."),
    ("t", _t_arguments, "symgrad.t(a)", "The transpose of a matrix; vectors and scalars as they are."),
    ("movedim", _movedim_arguments, "symgrad.movedim(a, 0, -1)", "Axes moved to other positions; the others keep their order."),
):
    linear(_name, lambda xp, input, dims: xp.permute(input, dims), _permute_transpose, prepare=_prepare, view=True, examples=(((1, 0),),),
           usage=_usage, doc=_doc, node_name="Permute" if _name == "movedim" else None,
           aliases={"transpose": ("swapaxes", "swapdims"), "movedim": ("moveaxis",)}.get(_name, ()))


def _expand_arguments(xp, input, *size):
    size, shape = sizes(size), input.shape
    extra = len(size) - len(shape)
    out = tuple([shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(size)])
    if min(out, default=0) < 0:
        raise RuntimeError(f"expand: the sizes {list(size)} of a tensor of shape {list(shape)} have a negative one. -1 keeps the size of a dimension")
    check_expandable("expand", input, out)
    return input, out


for _name in ("expand", "broadcast_to"):
    linear(_name, lambda xp, input, size: xp.broadcast_to(input, size), lambda xp, g, shape, size: xp.sum_to_size(g, shape),
           prepare=_expand_arguments, view=True, node_name="Expand", examples=(((2, 3, 4),),),
           usage="a.expand(4, 2, 3)" if _name == "expand" else "symgrad.broadcast_to(x, (2, 3))",
           doc="The input expanded along axes of size 1 and along new leading axes, without a copy.")


def _sum_to_size_arguments(xp, input, *size):
    size, shape = sizes(size), input.shape
    extra = len(shape) - len(size)
    if extra < 0 or any(n not in (1, shape[i + extra]) for i, n in enumerate(size)):
        raise RuntimeError(f"sum_to_size: the size {list(size)} does not expand to the shape {list(shape)}")
    return input if size == tuple(shape) else (input, size)


linear("sum_to_size", lambda xp, input, size: xp.copy(input) if input.shape == size else xp.sum_to_size(input, size),
       lambda xp, g, shape, size: xp.broadcast_to(g, shape), prepare=_sum_to_size_arguments, layout="rows", node_name="Sum",
       examples=(((1, 4),), ((3, 1),)),
       usage="symgrad.sum_to_size(a, (1, 3))", doc="The sum over the axes along which `size` would be broadcast: the transpose of `expand`.")


def _cat_arguments(xp, tensors, dim=0):
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise (ValueError if isinstance(tensors, (tuple, list)) else TypeError)("cat: the tensors must be a list of one or more")
    shapes = [t.shape for t in tensors]
    if shapes[0] and shapes.count(shapes[0]) == len(shapes):
        return tensors, axis(dim, len(shapes[0]))
    for i, t in enumerate(tensors):
        check_least_rank("cat", t, 1, f"tensor {i} (use stack)")
    first = next((t.shape for t in tensors if tuple(t.shape) != (0,)), tensors[0].shape)
    dim = axis(dim, len(first))
    if len(first) > 1:  # vectors without elements go with tensors of every shape, as in torch
        tensors = [xp.reshape(t, (*first[:dim], 0, *first[dim + 1:])) if tuple(t.shape) == (0,) else t for t in tensors]
    for i, t in enumerate(tensors):
        if t.ndim != len(first) or any(n != m for k, (n, m) in enumerate(zip(t.shape, first)) if k != dim):
            raise RuntimeError(f"cat: tensor number {i} of shape {list(t.shape)} must have the shape {list(first)} except in dimension {dim}")
    return tensors, dim


def _cat_transpose(xp, g, shapes, dim):
    out, at = [], 0
    for shape in shapes:
        out.append(xp.getitem(g, (slice(None),) * dim + (slice(at, at + shape[dim]),)))
        at += shape[dim]
    return out


linear("cat", lambda xp, tensors, dim: xp.cat(tensors, dim), _cat_transpose, variadic=True, layout="images", prepare=_cat_arguments,
       aliases=("concat", "concatenate"), method=False, examples=((0,), (1,)), usage="symgrad.cat([a, a], dim=1)",
       doc="Tensors joined along an existing axis.")


def _stack_arguments(xp, tensors, dim=0):
    check_not_empty("stack", tensors)
    first = tensors[0].shape
    for i, t in enumerate(tensors):
        if t.shape != first:
            raise RuntimeError(f"stack: tensor {i} has the shape {list(t.shape)}, and tensor 0 {list(first)}; they must be equal")
    return tensors, axis(dim, len(first) + 1)


linear("stack", lambda xp, tensors, dim: xp.stack(tensors, dim),
       lambda xp, g, shapes, dim: [xp.getitem(g, (slice(None),) * dim + (i,)) for i in range(len(shapes))],
       variadic=True, layout="rows", prepare=_stack_arguments, method=False, examples=((0,), (1,)),
       usage="symgrad.stack([a, a])", doc="Tensors of one shape joined along a new axis.")


def _piece_transpose(xp, g, shape, index, output_nr):
    return xp.place(g, index, shape)


for _name in ("split", "split_with_sizes", "unbind"):
    linear(f"{_name}_piece", lambda xp, input, index, output_nr: xp.getitem(input, index), _piece_transpose, public=False, view="many",
           node_name="".join(part.capitalize() for part in _name.split("_")) + "Backward0", examples=(((slice(None), 1), 1), ((slice(0, 2),), 0)),
           doc=f"One of the views returned by `{_name}`.")


def _pieces(piece, input, dim, sizes):
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(piece(input, (slice(None),) * dim + (slice(at, at + size),), i) for i, (at, size) in enumerate(zip(starts, sizes)))


@composite("split_with_sizes", view=True, joined="SplitWithSizesBackward0", usage="symgrad.split_with_sizes(a, [1, 2], dim=1)")
def split_with_sizes(xp, input, split_sizes, dim=0):
    """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
    dim, split_sizes = axis(dim, input.ndim), list(split_sizes)
    n = input.shape[dim]
    if sum(split_sizes) != n or min(split_sizes, default=0) < 0:
        raise RuntimeError(f"split_with_sizes: the sizes {split_sizes} must have the sum {n}, the size of dimension {dim}")
    return _pieces(xp.split_with_sizes_piece, input, dim, split_sizes)


@composite("split", view=True, joined="SplitBackward0", usage="symgrad.split(a, [1, 2], dim=1)")
def split(xp, tensor, split_size_or_sections, dim=0):
    """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return xp.split_with_sizes(tensor, split_size_or_sections, dim)
    dim, size = axis(dim, tensor.ndim), operator.index(split_size_or_sections)
    n = tensor.shape[dim]
    check_range("split", "split_size", size, int(n > 0))
    return _pieces(xp.split_piece, tensor, dim, [min(size, n - at) for at in range(0, n, size or 1)] or [0])


@composite("chunk", view=True, usage="symgrad.chunk(a, 3, dim=1)")
def chunk(xp, input, chunks, dim=0):
    """The input cut into at most `chunks` pieces along `dim`."""
    check_range("chunk", "chunks", chunks, 1)
    check_least_rank("chunk", input, 1)
    n = input.shape[axis(dim, input.ndim)]
    return xp.split(input, -(-n // chunks) if n else [0] * chunks, dim)


@composite("unbind", view=True, joined="UnbindBackward0", usage="symgrad.unbind(a, 1)")
def unbind(xp, input, dim=0):
    """The slices of a tensor along `dim`, as views that cannot be written in place."""
    before = (slice(None),) * axis(dim, input.ndim)
    return tuple(xp.unbind_piece(input, (*before, i), i) for i in range(input.shape[axis(dim, input.ndim)]))


def _flip_arguments(xp, input, *dims):
    if not dims:
        raise TypeError("flip: dims is missing")
    given = dims[0] if len(dims) == 1 else dims
    return input, () if given in ((), []) else axes(given, input.ndim)


linear("flip", lambda xp, input, dims: xp.flip(input, dims), lambda xp, g, shape, dims: xp.flip(g, dims), examples=(((0,),), ((0, 1),)),
       prepare=_flip_arguments, usage="symgrad.flip(a, (0, 1))", doc="The order reversed along `dims`.")


def _roll_arguments(xp, input, shifts, dims=None):
    shifts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    for shift in shifts:
        if isinstance(shift, bool) or not hasattr(shift, "__index__"):
            raise TypeError(f"roll: shifts must be integers, not {shift!r}")
    shifts = tuple(shift.__index__() for shift in shifts)
    if (dims is None or dims == ()) and len(shifts) == 1:
        return input, shifts[0], None
    dims = () if dims is None else dims
    dims = tuple(axis(d, input.ndim) for d in (dims if isinstance(dims, (tuple, list)) else (dims,)))
    if len(shifts) != len(dims) or not shifts:
        raise RuntimeError(f"roll: {len(shifts)} shifts are given for {len(dims)} dims; there must be one for each")
    return input, shifts, dims


def _negated(shifts):
    return tuple(-s for s in shifts) if isinstance(shifts, tuple) else -shifts


linear("roll", lambda xp, input, shifts, dims: xp.roll(input, shifts, dims),
       lambda xp, g, shape, shifts, dims: xp.roll(g, _negated(shifts), dims), prepare=_roll_arguments, examples=((1, None), ((1,), (1,))),
       layout="rows",
       usage="symgrad.roll(a, 1, 0)", doc="The elements shifted cyclically along `dims`, or over the flattened input.")


def _clone_arguments(xp, input, *, memory_format=None):
    name = str(memory_format)
    if name in IMAGE_AXES:
        return input, order_of_format(input.shape, memory_format)
    return input, "C" if name == "torch.contiguous_format" else "K"


linear("clone", lambda xp, input, order: xp.copy(input, order), lambda xp, g, shape, order: g, prepare=_clone_arguments,
       examples=(("K",), ("C",), ((1, 0),)), usage="symgrad.clone(a)",
       doc="A differentiable copy, in the memory order of the input, or in that of `memory_format`.")
linear("batch", lambda xp, input, dim, level: xp.batch(input, dim, level),
       lambda xp, g, shape, dim, level: xp.unbatch(g, dim, level, shape[dim]), public=False, examples=((0, 0), (1, 0)),
       doc="The slices along `dim` as the members of a batch of vmap.")


def _unbatch_arguments(xp, input, dim, level, count):
    """The arguments of `unbatch`, or the input repeated if it is not batched."""
    if level in getattr(xp.numbers(input).shape, "levels", ()):
        return input, dim, level, count
    return xp.expand(xp.unsqueeze(input, dim), (*input.shape[:dim], count, *input.shape[dim:]))


linear("unbatch", lambda xp, input, dim, level, count: xp.unbatch(input, dim, level, count),
       lambda xp, g, shape, dim, level, count: xp.batch(g, dim, level), prepare=_unbatch_arguments, public=False, examples=((0, 0, 2), (1, 0, 3)),
       doc="The members of a batch as a dimension.")
primitive("to_copy", lambda xp, input, dtype, source=None: xp.astype(input, dtype, source),
          vjp=lambda xp, g, y, x, dtype, source=None: xp.astype(g, source or x.dtype, dtype),
          jvp=lambda xp, t, y, x, dtype, source=None: xp.astype(t, dtype, source), saves=False, public=False, node_name="ToCopyBackward0",
          examples=(("float64",),), doc="The input in another dtype; `source` is the dtype of the input, which formulas do not have.")
