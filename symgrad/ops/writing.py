"""Ops of in-place writes: replacing the elements of a view in its base, and reading the view from the base."""

from symgrad.graph.op import linear
from symgrad.layouts.strides import Geometry

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
for _name, _node in {"fill": "FillBackward3", "fill_number": "FillBackward2"}.items():
    linear(_name, lambda xp, input, value: xp.copy(xp.broadcast_to(value, input.shape)),
           lambda xp, g, shape: xp.zeros_like(g), lambda xp, g, shape: g, public=False, node_name=_node, shapes=((3, 4), ()),
           doc="The second argument, a scalar, in the shape of the first.")
linear("zero", lambda xp, input: xp.zeros_like(input), lambda xp, g, shape: xp.zeros_like(g), public=False, node_name="ZeroBackward0",
       doc="Zeros in the shape of the input.")
