"""Repeating, joining, splitting and rotating: functions composed of the ops in `shape` and `selection`, and a few separate ops."""

import warnings

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_option, check_range
from symgrad.dtypes.dtype import common
from symgrad.graph.op import composite, linear
from symgrad.layouts.indices import index_array, integer_index, repeated_indices
from symgrad.ops.rules import axis, check_not_empty, sizes


def _repeat_arguments(xp, input, *repeats):
    times = sizes(repeats)
    if len(times) < input.ndim or min(times, default=0) < 0:
        raise RuntimeError(f"repeat: a tensor of shape {list(input.shape)} needs at least {input.ndim} repeats from 0, not {list(times)}")
    return input, times


def _interleave_shape(shape, times):
    """The shape of alternating repetitions and sizes, and the axes of the repetitions."""
    whole = (1,) * (len(times) - len(shape)) + tuple(shape)
    return tuple(n for pair in zip(times, whole) for n in pair), tuple(range(0, 2 * len(times), 2)), whole


def _repeat(xp, input, repeats):
    pairs, _, whole = _interleave_shape(input.shape, repeats)
    ones = tuple(n for m in whole for n in (1, m))
    return xp.reshape(xp.copy(xp.broadcast_to(xp.reshape(input, ones), pairs), "C"), tuple(n * m for n, m in zip(repeats, whole)))


def _repeat_transpose(xp, g, shape, repeats):
    pairs, at, _ = _interleave_shape(shape, repeats)
    return xp.reshape(xp.sum(xp.reshape(g, pairs), at, False) if at else g, shape)


linear("repeat", _repeat, _repeat_transpose, prepare=_repeat_arguments, examples=(((2, 3),), ((2, 1, 2),)), usage="a.repeat(2, 1)",
       doc="The input repeated along each dimension, and along new leading ones.")


@composite("tile", usage="symgrad.tile(a, (2, 1))")
def tile(xp, input, *dims):
    """The input repeated along its last dimensions, and along new leading ones."""
    times = sizes(dims)
    return xp.repeat(input, (1,) * (input.ndim - len(times)) + times)


@composite("repeat_interleave", usage="symgrad.repeat_interleave(x, 2)")
def repeat_interleave(xp, input, repeats=None, dim=None, *, output_size=None):
    """Each slice along `dim`, by default each element, repeated consecutively; with `repeats` alone, the indices of these slices."""
    if repeats is None:
        return input.new_tensor(repeated_indices(index_array(input)), dtype=int)
    if dim is None:
        input, dim = xp.reshape(input, (-1,)), 0
    dim = axis(dim, input.ndim)
    counts = index_array(repeats)
    check_kind("repeat_interleave", counts, "iub", "repeats")
    if counts.size:
        check_range("repeat_interleave", "the least of repeats", counts.min(), 0)
    total = int(counts.sum()) * (input.shape[dim] if counts.size == 1 else 1)
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size is {output_size}, but the repeats have the sum {total}")
    if not counts.ndim or counts.shape == (1,):
        count = int(counts.reshape(()))
        shape = tuple(input.shape)
        wide = xp.expand(xp.unsqueeze(input, dim + 1), (*shape[:dim + 1], count, *shape[dim + 1:]))
        wide = xp.clone(wide, memory_format="torch.contiguous_format")
        return xp.reshape(wide, (*shape[:dim], shape[dim] * count, *shape[dim + 1:]))
    if len(counts) != input.shape[dim]:
        raise RuntimeError(f"repeat_interleave: {len(counts)} repeats are given for the size {input.shape[dim]} of dim {dim}")
    return xp.index_select(input, dim, repeated_indices(counts))


def _unflatten_arguments(xp, input, dim, sizes):
    dim, parts = axis(dim, input.ndim), list(sizes)
    known = 1
    for n in parts:
        known *= n if n != -1 else 1
    if -1 in parts and known and not input.shape[dim] % known:
        parts[parts.index(-1)] = input.shape[dim] // known
        known = input.shape[dim]
    if known != input.shape[dim] or -1 in parts or not parts:
        raise RuntimeError(f"unflatten: the product of the sizes {list(sizes)} must be {input.shape[dim]}, the size of dim {dim}")
    return input, (*input.shape[:dim], *parts, *input.shape[dim + 1:])


for _name, _node, _prepare in (("unflatten", "View", _unflatten_arguments), ("unsafe_view", "UnsafeView", None)):
    linear(_name, lambda xp, input, shape: xp.reshape(input, shape), lambda xp, g, shape, size: xp.reshape(g, shape), node_name=_node,
           prepare=_prepare, view=True, public=_prepare is not None, examples=(((3, 2, 2),),), usage="symgrad.unflatten(x, 0, (1, 3))",
           doc="One dimension split into several with the same product of sizes; one size may be -1.")


@composite("ravel", view=True, usage="symgrad.ravel(a)")
def ravel(xp, input):
    """The elements as a vector, a view if possible."""
    return xp.reshape(input.contiguous(), (-1,))


# Joining


@composite("atleast_1d", view=True, arity=None, usage="symgrad.atleast_1d(x)", method=False)
def atleast_1d(xp, *tensors):
    """The tensors, where tensors of no dimensions become vectors of one element."""
    return _map_tensors(tensors, lambda x: x if x.ndim else xp.reshape(x, (1,)))


@composite("atleast_2d", view=True, arity=None, usage="symgrad.atleast_2d(x)", method=False)
def atleast_2d(xp, *tensors):
    """The tensors, where vectors become matrices of one row."""
    return _map_tensors(tensors, lambda x: x if x.ndim > 1 else xp.unsqueeze(x, 0) if x.ndim else xp.reshape(x, (1, 1)))


@composite("atleast_3d", view=True, arity=None, usage="symgrad.atleast_3d(x)", method=False)
def atleast_3d(xp, *tensors):
    """The tensors with at least three dimensions: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1)."""
    def lifted(x):
        if x.ndim > 2:
            return x
        if x.ndim == 2:
            return xp.unsqueeze(x, -1)
        return xp.unsqueeze(xp.unsqueeze(x, 0), -1) if x.ndim else xp.reshape(x, (1, 1, 1))

    return _map_tensors(tensors, lifted)


def _map_tensors(tensors, change):
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return change(tensors[0])
    return tuple(change(x) for x in (tensors[0] if len(tensors) == 1 else tensors))


@composite("hstack", arity=None, usage="symgrad.hstack([a, a])", method=False)
def hstack(xp, tensors):
    """Tensors joined along their second dimension, vectors along their only dimension."""
    parts = [atleast_1d(xp, x) for x in check_not_empty("hstack", tensors)]
    return xp.cat(parts, 0 if parts[0].ndim == 1 else 1)


@composite("vstack", arity=None, usage="symgrad.vstack([x, x])", method=False, aliases=("row_stack",))
def vstack(xp, tensors):
    """Tensors joined along their first dimension, vectors as rows."""
    return xp.cat([atleast_2d(xp, x) for x in check_not_empty("vstack", tensors)], 0)


@composite("dstack", arity=None, usage="symgrad.dstack([a, a])", method=False)
def dstack(xp, tensors):
    """Tensors joined along their third dimension."""
    return xp.cat([atleast_3d(xp, x) for x in check_not_empty("dstack", tensors)], 2)


@composite("column_stack", arity=None, usage="symgrad.column_stack([x, x])", method=False)
def column_stack(xp, tensors):
    """Tensors joined along their second dimension, vectors as columns."""
    return xp.cat([x if x.ndim > 1 else xp.reshape(x, (x.numel(), 1)) for x in check_not_empty("column_stack", tensors)], 1)


def _block_diagonal(xp, tensors):
    rows, columns = sum(x.shape[0] for x in tensors), sum(x.shape[1] for x in tensors)
    out, row, column = xp.zeros_like(tensors[0], (rows, columns)), 0, 0
    for x in tensors:
        out = xp.put(out, x, (slice(row, row + x.shape[0]), slice(column, column + x.shape[1])), False)
        row, column = row + x.shape[0], column + x.shape[1]
    return out


def _block_diagonal_transpose(xp, g, shapes):
    out, row, column = [], 0, 0
    for n, m in shapes:
        out.append(xp.getitem(g, (slice(row, row + n), slice(column, column + m))))
        row, column = row + n, column + m
    return out


linear("block_diagonal", _block_diagonal, _block_diagonal_transpose, variadic=True, public=False, layout="rows", node_name="BlockDiag",
       doc="Matrices along the diagonal of zeros.")


@composite("block_diag", arity=None, usage="symgrad.block_diag(a, a)", method=False)
def block_diag(xp, *tensors):
    """The matrix with the given matrices along its diagonal, and zeros elsewhere; vectors are rows."""
    for x in tensors:
        check_dims("block_diag", x, 0, 1, 2)
    dtype = common(*check_not_empty("block_diag", tensors))  # one without dimensions does not widen the others
    return xp.block_diagonal([atleast_2d(xp, x if x.dtype is dtype else x.to(dtype)) for x in tensors])


# Splitting


@composite("tensor_split", view=True, usage="symgrad.tensor_split(a, 2, dim=1)")
def tensor_split(xp, input, indices_or_sections, dim=0):
    """The pieces of a tensor along `dim` as views: a number of nearly equal ones, or those between indices."""
    check_least_rank("tensor_split", input, 1)
    dim = axis(dim, input.ndim)
    n, given = input.shape[dim], indices_or_sections
    if hasattr(given, "shape"):
        check_dims("tensor_split", given, 0, 1, word="indices_or_sections")
        given = integer_index(given, "tensor_split", ("int64",)).tolist()
    if isinstance(given, int):
        check_range("tensor_split", "the number of sections", given, 1)
        small, more = divmod(n, given)
        ends = [small * (i + 1) + min(i + 1, more) for i in range(given)]
        starts = [0, *ends[:-1]]
    else:
        starts, ends = [0, *given], [*given, n]
    pieces = (slice(start, end) for start, end in zip(starts, ends))
    return tuple(xp.slice_item(input, (slice(None),) * dim + (slice(*piece.indices(n)[:2]),)) for piece in pieces)


def _define_split(name, dim, least):
    def split(xp, input, indices_or_sections):
        check_least_rank(name, input, least)
        at = 0 if input.ndim == 1 else dim
        if hasattr(indices_or_sections, "shape") and not indices_or_sections.ndim:
            indices_or_sections = indices_or_sections.item()
        if isinstance(indices_or_sections, int) and (indices_or_sections <= 0 or input.shape[at] % indices_or_sections):
            raise RuntimeError(f"{name}: the size {input.shape[at]} of dimension {at} is not divisible by {indices_or_sections}")
        return tensor_split(xp, input, indices_or_sections, at)

    split.__doc__ = f"The pieces of a tensor along dimension {dim}: so many equal ones, or those between indices; views."
    composite(name, view=True, usage="symgrad.dsplit(a[None], 3)" if name == "dsplit" else f"symgrad.{name}(a, [1])")(split)


for _arguments in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    _define_split(*_arguments)


# Rotations and reversals


def _rot90_arguments(xp, input, k=1, dims=(0, 1)):
    check_least_rank("rot90", input, 2)
    plane = tuple(axis(d, input.ndim) for d in dims)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise RuntimeError(f"rot90: dims must be two different dimensions, not {tuple(dims)}")
    return input, k % 4, plane


def _rot90(xp, input, k, dims):
    order = list(range(input.ndim))
    order[dims[0]], order[dims[1]] = dims[1], dims[0]
    if k % 2:
        return xp.permute(xp.flip(input, (dims[k == 1],)), tuple(order))
    return xp.flip(input, dims) if k else xp.copy(input, "C")


linear("rot90", _rot90, lambda xp, g, shape, k, dims: _rot90(xp, g, -k % 4, dims), prepare=_rot90_arguments,
       examples=((1, (0, 1)), (2, (0, 1)), (3, (1, 0))), usage="symgrad.rot90(a)",
       doc="The input rotated by `k` quarter turns in the plane of two dimensions, from the first towards the second.")


@composite("fliplr", usage="symgrad.fliplr(a)")
def fliplr(xp, input):
    """The order of the columns reversed."""
    check_least_rank("fliplr", input, 2)
    return xp.flip(input, (1,))


@composite("flipud", usage="symgrad.flipud(a)")
def flipud(xp, input):
    """The order of the rows reversed."""
    check_least_rank("flipud", input, 1)
    return xp.flip(input, (0,))


# Grids


def _meshgrid_arguments(xp, tensors, indexing):
    check_option("meshgrid", "indexing", indexing, (None, "ij", "xy"))
    for x in check_not_empty("meshgrid", tensors):
        check_dims("meshgrid", x, 0, 1)
    check_one_dtype("meshgrid", *tensors)
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[:2] = 1, 0
    shape = tuple(tensors[i].numel() for i in order)
    return tuple(xp.expand(xp.reshape(x, tuple(x.numel() if k == i else 1 for k in order)), shape) for i, x in enumerate(tensors))


@composite("meshgrid", view=True, arity=None, usage='symgrad.meshgrid(x, x, indexing="ij")', method=False)
def meshgrid(xp, *tensors, indexing=None):
    """The coordinates of a grid, from vectors of coordinates for each axis: one tensor per axis, which varies along the dimension of that axis."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if indexing is None:
        warnings.warn("meshgrid: without `indexing` it is 'ij', as in PyTorch, where that is deprecated. Give `indexing`", UserWarning, stacklevel=3)
    return _meshgrid_arguments(xp, given, indexing)


@composite("cartesian_prod", view=True, arity=None, usage="symgrad.cartesian_prod(x, x)", method=False)
def cartesian_prod(xp, *tensors):
    """All tuples of one element of each vector, as rows."""
    for x in tensors:
        check_dims("cartesian_prod", x, 1)
    if len(tensors) == 1:
        return tensors[0]
    return xp.stack([xp.reshape(x, (-1,)) for x in _meshgrid_arguments(xp, tensors, "ij")], 1)


@composite("combinations", usage="symgrad.combinations(x)", method=False)
def combinations(xp, input, r=2, with_replacement=False):
    """All sets of `r` elements of a vector, as rows; with replacement also those that repeat an element."""
    check_dims("combinations", input, 1)
    check_range("combinations", "r", r, 0)
    rows = _subsets(len(input), r, 0, with_replacement)
    return xp.stack([xp.index_select(input, 0, [row[k] for row in rows]) for k in range(r)], 1) if r else input[:0]


def _subsets(n, r, start, again):
    if r == 0:
        return [()]
    return [(i, *rest) for i in range(start, n) for rest in _subsets(n, r - 1, i + (not again), again)]


@composite("adjoint", view=True, usage="symgrad.adjoint(a)")
def adjoint(xp, input):
    """The last two dimensions exchanged, conjugated."""
    if not input.ndim:
        return xp.conj(input)
    check_least_rank("adjoint", input, 2)
    return xp.conj(xp.transpose(input, -2, -1))
