"""Convolutions over any number of dimensions, with the bilinear maps that are their derivatives; sums of weighted neighbours in images; and
discrete Fourier transforms, of which the functions of `symgrad.fft` are made.

The adjoint of a transform of complex numbers is its inverse without the factor. A spectrum of real numbers is the first half of that of complex ones,
since the rest is its conjugate; so real numbers are the real part of the transform of a half whose inner terms are doubled.
"""

from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import linear, multilinear, primitive
from symgrad.layouts.resampling_weights import interpolation
from symgrad.layouts.strides import is_plain


def _cut(xp, x, size):
    """The first places along each dimension of an image."""
    return x if tuple(x.shape[2:]) == tuple(size) else xp.getitem(x, (slice(None), slice(None), *[slice(0, n) for n in size]))


def _places(shape, kernel, stride, padding, dilation, output_padding=None):
    """The sizes of a transposed convolution of images of a shape."""
    more = output_padding or (0,) * len(kernel)
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + m for n, k, s, p, d, m in zip(shape[2:], kernel, stride, padding, dilation, more))


PLACED = ((2, 1), (1, 0), (1, 1), 2)

multilinear("convolve", lambda xp, input, weight, stride, padding, dilation, groups: xp.convolve(input, weight, stride, padding, dilation, groups),
            lambda xp, g, x, w, *place: xp.convolve_input(g, w, tuple(x.shape[2:]), *place),
            lambda xp, g, x, w, *place: xp.convolve_weight(x, g, tuple(w.shape[2:]), *place), public=False, node_name="ConvolutionBackwardBackward0",
            shapes=((2, 4, 4, 3), (2, 2, 2, 2)), examples=(PLACED, ((1, 2), (0, 1), (2, 1), 2)),
            doc="The sums of products of each kernel with the elements of the images under it, at the places that a stride and a border give.")
multilinear("convolve_input", lambda xp, cotangent, weight, size, stride, padding, dilation, groups:
            xp.convolve_input(cotangent, weight, size, stride, padding, dilation, groups),
            lambda xp, g, c, w, size, *place: _cut(xp, xp.convolve(g, w, *place), c.shape[2:]),
            lambda xp, g, c, w, size, *place: xp.convolve_weight(g, c, tuple(w.shape[2:]), *place), public=False,
            node_name="ConvolutionBackwardBackward0", shapes=((2, 2, 3, 2), (2, 2, 2, 2)), examples=(((4, 3), *PLACED), ((5, 3), *PLACED)),
            doc="The transpose of a convolution by its images, whose size is given.")
multilinear("convolve_weight", lambda xp, input, cotangent, kernel, stride, padding, dilation, groups:
            xp.convolve_weight(input, cotangent, kernel, stride, padding, dilation, groups),
            lambda xp, g, x, c, kernel, *place: xp.convolve_input(c, g, tuple(x.shape[2:]), *place),
            lambda xp, g, x, c, kernel, *place: _cut(xp, xp.convolve(x, g, *place), c.shape[2:]), public=False,
            node_name="ConvolutionBackwardBackward0", shapes=((2, 4, 4, 3), (2, 2, 3, 2)), examples=(((2, 2), *PLACED),),
            doc="The transpose of a convolution by its kernels, whose size is given.")


def _product(xp, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        size = _places(input.shape, weight.shape[2:], stride, padding, dilation, output_padding)
        return xp.convolve_input(input, weight, size, stride, padding, dilation, groups)
    return xp.convolve(input, weight, stride, padding, dilation, groups)


def _with_bias(xp, y, bias):
    if isinstance(bias, int):  # 0 in the place of none
        return y
    bias = xp.reshape(bias, (*bias.shape, *(1,) * (len(y.shape) - 2)))
    if is_plain(y) and is_plain(bias):
        y += bias
        return y
    return y + bias


def _input_cotangent(xp, g, y, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        return _cut(xp, xp.convolve(g, w, stride, padding, dilation, groups), x.shape[2:])
    return xp.convolve_input(g, w, tuple(x.shape[2:]), stride, padding, dilation, groups)


def _weight_cotangent(xp, g, y, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    image, cotangent = (g, x) if transposed else (x, g)
    return xp.convolve_weight(image, cotangent, tuple(w.shape[2:]), stride, padding, dilation, groups)


primitive("convolution", lambda xp, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups:
          _with_bias(xp, _product(xp, input, weight, stride, padding, dilation, transposed, output_padding, groups), bias), arity=3, public=False,
          vjp=(_input_cotangent, _weight_cotangent, lambda xp, g, y, x, w, bias, *place: xp.sum(g, (0, *range(2, len(g.shape))), False)),
          jvp=lambda xp, t, tw, tb, y, x, w, bias, *place: _with_bias(xp, _product(xp, t, w, *place) + _product(xp, x, tw, *place),
                                                                      bias if isinstance(bias, int) else tb),
          saved=("weight", "input", ""), integers=True, shapes=((2, 4, 4, 3), (4, 2, 2, 2), (4,)),
          examples=(((2, 1), (1, 0), (1, 1), False, (0, 0), 2),), doc="The convolution of images with kernels, or its transpose, plus a bias.")


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


def _transformed(xp, x, dims, inverse, divisor):
    for dim in dims:
        x = xp.dft(x, dim, inverse)
    return x if divisor == 1 else x / divisor


def _part(x, dim, start, stop):
    """The index of slices of `x` along a dimension."""
    return (slice(None),) * dim + (slice(start, stop),)


def _real(xp, x):
    return xp.copy(xp.getitem(xp.view_as_real(x), (..., 0)))


def _as_complex(xp, g):
    """Real numbers as complex ones, with their tangents, which a sum with 0j leaves real."""
    return g + 0j if is_plain(g) else xp.view_as_complex(xp.stack((g, xp.zeros_like(g)), -1))


def _of_real(xp, x, dims, inverse, divisor, half):
    *others, last = dims
    if not half:
        return _transformed(xp, x + 0j, dims, inverse, divisor)
    out = xp.getitem(xp.dft(x + 0j, last, inverse), _part(x, last, 0, x.shape[last] // 2 + 1))
    return _transformed(xp, out, others, inverse, divisor)


def _of_real_transpose(xp, g, shape, dims, inverse, divisor, half):
    *others, last = dims
    g = _transformed(xp, g, others, not inverse, divisor)
    g = xp.place(g, _part(g, last, 0, g.shape[last]), tuple(shape)) if half else g
    return _real(xp, xp.dft(g, last, not inverse))


def _doubled(xp, x, last, n):
    """A half of a spectrum of n numbers with the terms doubled that have a conjugate in the other half."""
    inner = _part(x, last, 1, (n + 1) // 2)
    return x + xp.place(xp.getitem(x, inner), inner, tuple(x.shape)) if n > 2 else x


def _to_real(xp, x, dims, inverse, divisor, n):
    *others, last = dims
    x = _doubled(xp, _transformed(xp, x, others, inverse, divisor), last, n)
    whole = tuple(n if i == last else size for i, size in enumerate(x.shape))
    return _real(xp, xp.dft(xp.place(x, _part(x, last, 0, x.shape[last]), whole), last, inverse))


def _to_real_transpose(xp, g, shape, dims, inverse, divisor, n):
    *others, last = dims
    half = xp.getitem(xp.dft(_as_complex(xp, g), last, not inverse), _part(g, last, 0, shape[last]))
    return _transformed(xp, _doubled(xp, half, last, n), others, not inverse, divisor)


linear("dft", lambda xp, input, dim, inverse: xp.dft(input, dim, inverse), lambda xp, g, shape, dim, inverse:
       xp.dft(g, dim, not inverse),  # the adjoint, since the coefficients are complex
       public=False, node_name="FftC2C", domain=COMPLEX, examples=((0, False), (1, True)), layout="rows",
       doc="The sums over j of exp(∓2πi jk/n) x_j along `dim`, where + is that of `inverse`; no factor.")
linear("fourier", lambda xp, input, dims, inverse, divisor: _transformed(xp, input, dims, inverse, divisor),
       lambda xp, g, shape, dims, inverse, divisor: _transformed(xp, g, dims, not inverse, divisor), public=False, node_name="FftC2C",
       domain=COMPLEX, examples=(((0,), False, 1), ((1, 0), True, 6)), layout="rows",
       doc="The transform of complex numbers along `dims`, divided by a number.")
linear("fourier_of_real", _of_real, _of_real_transpose, public=False, node_name="FftR2C", domain=COMPLEX, layout="rows",
       examples=(((0,), False, 1, False), ((0, 1), True, 6, True)),
       doc="The transform of real numbers along `dims`, or with `half` the first half of it along the last of these.")
linear("fourier_to_real", _to_real, _to_real_transpose, public=False, node_name="FftC2R", domain=COMPLEX, layout="rows",
       examples=(((0,), False, 1, 4), ((0, 1), True, 6, 7)), doc="The n real numbers whose transform has this first half along the last of `dims`.")
