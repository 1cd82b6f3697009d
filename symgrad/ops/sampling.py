"""Sums of weighted neighbours along the axes of images, and the elements of windows that were selected."""

from symgrad.graph.op import linear

AVERAGES = ((("mean", 4, 2, 2, 1, 1, False, False), ("mean", 3, 2, 2, 2, 1, True, False)), False)
RANKS = {2: "2D", 3: "3D"}


def _pool_name(node):
    """The name of a mean over windows in torch."""
    kinds, rank = {spec[0] for spec in node.args[1] if spec is not None}, RANKS.get(len(node.args[1]), "2D")
    return f"{'AdaptiveAvgPool' if kinds == {'adaptive'} else 'AvgPool'}{rank}Backward0"


linear("resample", lambda xp, input, specs, transposed: xp.resample(input, specs, transposed),
       lambda xp, g, shape, specs, transposed: xp.resample(g, specs, not transposed), public=False, names=_pool_name, layout="rows",
       shapes=((2, 4, 3),), examples=(AVERAGES, ((("adaptive", 4, 3), None), False), ((None, ("cubic", 3, 5, False, None)), False)),
       doc="Sums of few weighted elements along each of the last axes, or the transpose of that.")


def _elements(xp, input, index):
    return xp.getitem(xp.reshape(input, (-1,)), index)


def _elements_transpose(xp, g, shape, index):
    count = 1
    for n in shape:
        count *= n
    return xp.reshape(xp.place(g, index, (count,)), shape)


for _name, _node in {"max_pool2d_elements": "MaxPool2DWithIndices", "max_pool3d_elements": "MaxPool3DWithIndices",
                     "adaptive_max_pool2d_elements": "AdaptiveMaxPool2D", "adaptive_max_pool3d_elements": "AdaptiveMaxPool3D",
                     "fractional_max_pool2d_elements": "FractionalMaxPool2D", "fractional_max_pool3d_elements": "FractionalMaxPool3D"}.items():
    linear(_name, _elements, _elements_transpose, public=False, node_name=_node, layout="rows", shapes=((2, 3, 4),),
           examples=((([[1, 5], [5, 23]],),),), doc="The elements at positions in the flattened input.")
