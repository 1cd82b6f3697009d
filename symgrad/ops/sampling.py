"""Sums of weighted neighbours along the axes of images, and the elements of windows that were selected."""

from symgrad.graph.op import linear
from symgrad.layouts.resampling_weights import interpolation

AVERAGES = ((("mean", 4, 2, 2, 1, 1, False, False), ("mean", 3, 2, 2, 2, 1, True, False)), False)
RANKS = {2: "2D", 3: "3D"}


def _pool_name(node):
    """The name of a mean over windows in torch."""
    kinds, rank = {spec[0] for spec in node.args[1] if spec is not None}, RANKS.get(len(node.args[1]), "2D")
    return f"{'AdaptiveAvgPool' if kinds == {'adaptive'} else 'AvgPool'}{rank}Backward0"


linear("resample", lambda xp, input, specs, transposed: xp.resample(input, specs, transposed),
       lambda xp, g, shape, specs, transposed: xp.resample(g, specs, not transposed), public=False, names=_pool_name, layout="images",
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
                     "fractional_max_pool2d_elements": "FractionalMaxPool2D", "fractional_max_pool3d_elements": "FractionalMaxPool3D",
                     "grid_elements": "Gather"}.items():
    linear(_name, _elements, _elements_transpose, public=False, node_name=_node, layout="rows" if _node == "Gather" else "images",
           shapes=((2, 3, 4),), examples=((([[1, 5], [5, 23]],),),), doc="The elements at positions in the flattened input.")


def _interpolation_name(node):
    """The name of an interpolation in torch."""
    size, _, _, mode, antialias = node.args[1:]
    word = {"nearest": "Nearest", "nearest-exact": "NearestExact"}.get(mode, mode.capitalize())
    return f"Upsample{word}{len(size)}D{'Aa' * antialias}Backward0"


linear("interpolated", lambda xp, input, output_size, align_corners, scales, mode, antialias:
       xp.resample(input, interpolation(tuple(input.shape), output_size, align_corners, scales, mode, antialias), False),
       lambda xp, g, shape, output_size, align_corners, scales, mode, antialias:
       xp.resample(g, interpolation(tuple(shape), output_size, align_corners, scales, mode, antialias), True), public=False, layout="images",
       names=_interpolation_name, shapes=((2, 2, 3),),
       examples=(((4, 2), False, None, "bilinear", False), ((3, 5), True, None, "bicubic", False), ((3, 4), False, (1.5, 1.4), "nearest", False)),
       doc="The image at other points, by interpolation along each of its last axes.")
