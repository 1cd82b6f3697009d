"""Reading and writing through an index: two linear ops, each the transpose of the other."""

from symgrad.op import composite, linear
from symgrad.ops.rules import axis

# What an index of integers, slices and None gives is a view, named after the last of them as torch names it.
for _name, _node in {"getitem": "Index", "select_item": "Select", "slice_item": "Slice", "unsqueeze_item": "Unsqueeze", "alias_item": "Alias"}.items():
    linear(_name, lambda xp, input, index: xp.getitem(input, index), lambda xp, g, shape, index: xp.place(g, index, shape), public=False,
           node_name=_node, view=True, examples=((0,), ((slice(None), 1),), ((..., None),), ([0, 2, 0],)), doc="input[index].")
linear("place", lambda xp, input, index, shape: xp.place(input, index, shape), lambda xp, g, shape, index, whole: xp.getitem(g, index),
       public=False, node_name="IndexPut", examples=(((slice(1, 4), slice(0, 4)), (5, 6)),), doc="Zeros of `shape` with the input added at `index`.")


def _write(xp, input, values, index, accumulate):
    return xp.put(input, values, index, accumulate)


def _kept(xp, g, shape, index, accumulate):
    return g if accumulate else xp.put(g, 0, index, False)


def _written(xp, g, shape, index, accumulate):
    return xp.getitem(g, index)


linear("put", _write, _kept, _written, public=False, node_name="IndexPut", shapes=((3, 4), (4,)), examples=((0, False), (1, True)),
       doc="A copy of the input with `values` at `index`.")


@composite("index_put", usage="symgrad.index_put(x, (symgrad.tensor([0, 2]),), symgrad.tensor([8.0, 9.0]))")
def index_put(xp, input, indices, values, accumulate=False):
    """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
    index = tuple(i.numpy() if hasattr(i, "numpy") else i for i in indices)
    return xp.put(input, values, index, bool(accumulate))


@composite("index_select", usage="symgrad.index_select(a, 1, symgrad.tensor([0, 2]))")
def index_select(xp, input, dim, index):
    """The slices of the input along `dim` that a vector of integers names."""
    return input[(slice(None),) * axis(dim, input.ndim) + (index,)]


@composite("select", usage="symgrad.select(a, 1, 0)")
def select(xp, input, dim, index):
    """One slice of the input along `dim`."""
    return input[(slice(None),) * axis(dim, input.ndim) + (index,)]


@composite("masked_select", arity=2, usage="symgrad.masked_select(a, a > 2)")
def masked_select(xp, input, mask):
    """The elements where `mask` holds, as a vector."""
    return xp.broadcast_to(input, mask.shape)[mask] if input.shape != mask.shape else input[mask]


@composite("masked_fill", arity=2, usage="symgrad.masked_fill(a, a > 2, 0.0)")
def masked_fill(xp, input, mask, value):
    """The input with `value` where `mask` holds."""
    return xp.where(mask, value, input)


