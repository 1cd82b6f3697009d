"""Images at other points, with torch's names: interpolation to another size, and sampling at the points of a grid."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.convolution import flat_index
from symgrad.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from symgrad.nn.validation import check_dtypes, check_floating, check_nonempty, check_shape
from symgrad.ops.rules import constant

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_interpolated, _elements = core(REGISTRY["interpolated"]), core(REGISTRY["grid_elements"])
MODES = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,), "lanczos": (4,), "area": (3, 4, 5),
         "nearest-exact": (3, 4, 5)}
SMOOTH = ("bilinear", "bicubic", "lanczos")


def _new_size(input: Tensor, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The size after interpolation, and the factors that scale coordinates, unless that is done by the sizes. Raises ValueError."""
    rank, before = input.ndim - 2, list(input.shape[2:])
    if (size is None) is (scale_factor is None):
        raise ValueError(f"interpolate: give either size or scale_factor, not {size} and {scale_factor}")
    given = size if scale_factor is None else scale_factor
    several = isinstance(given, (tuple, list))
    if several and len(given) != rank or recompute and scale_factor is None:
        raise ValueError(f"interpolate: size={size} and scale_factor={scale_factor} and recompute_scale_factor={recompute} do not fit an input of "
                         f"shape {list(input.shape)}")
    each = tuple(given) if several else (given,) * rank
    if scale_factor is not None:
        factors = tuple([f if type(f) is float else float(constant("interpolate", "scale_factor", f)) for f in each])
        return tuple([math.floor(n * f) for n, f in zip(before, factors)]), None if recompute else factors
    if not all(hasattr(n, "__index__") for n in each):
        raise TypeError(f"interpolate: size must be an integer, or a tuple of {rank}, not {size}")
    return tuple(n.__index__() for n in each), None


@taking_tensors
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """The image at the points of another size: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of which the last dimensions become `size`.

    Either the size or its factor is given. Modes: "nearest", "nearest-exact", "area" (means), and for one, two and three dimensions "linear",
    "bilinear" and "bicubic", and "trilinear". With `align_corners` the outer points are the centers of the outer elements. A factor is used for the
    coordinates, too, unless `recompute_scale_factor`. `antialias` ("bilinear", "bicubic", "lanczos") widens the kernel where images shrink.

    Raises ValueError for sizes and options that do not fit, NotImplementedError for another mode or number of dimensions.

    >>> import symgrad
    >>> interpolate(symgrad.tensor([[[0.0, 4.0]]]), scale_factor=2.0, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None or mode == "lanczos" and align_corners:
        raise ValueError(f"interpolate: align_corners has no meaning for mode {mode!r}")
    after, scales = _new_size(input, size, scale_factor, recompute_scale_factor)
    if antialias and (mode not in SMOOTH or input.ndim != 4):
        raise ValueError(f"interpolate: antialias is for images (N, C, H, W) and {', '.join(SMOOTH)}, not for mode {mode!r} and {list(input.shape)}")
    check_option("interpolate", "mode", mode, tuple(MODES), NotImplementedError)
    check_dims("interpolate", input, *MODES[mode], error=NotImplementedError)
    if mode == "lanczos" and not antialias:
        raise ValueError("interpolate: mode 'lanczos' needs antialias=True")
    before = tuple(input.shape[2:])
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.ndim - 3](input, after)
    if min(*before, *after, input.shape[1]) < 1:
        raise RuntimeError(f"interpolate: neither an input of shape {list(input.shape)} nor the new size {list(after)} may be empty")
    check_floating("interpolate", input, "uint8")
    whole = input.dtype.name == "uint8"
    factors: Any = scales[0] if scales is not None and len(scales) == 1 else scales
    out = _interpolated(input.double() if whole else input, after, bool(align_corners), factors, mode, bool(antialias))
    return traced.clamp(traced.round(out), 0, 255).to(input.dtype) if whole else out


def _deprecated(name: str) -> None:
    warnings.warn(f"nn.functional.{name} is deprecated; use interpolate", UserWarning, stacklevel=3)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """`interpolate`, deprecated."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest elements, deprecated."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with aligned corners, bilinear, deprecated."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


# Points of a grid


GRID_MODES, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _aligned(name: str, align_corners: bool | None) -> bool:
    """Whether corners are aligned, by default not, with a warning."""
    if align_corners is None:
        warnings.warn(f"{name}: align_corners is False since torch 1.3; pass it to say so", UserWarning, stacklevel=4)
    return bool(align_corners)


def _inside(x: Any, n: int, border: str, align_corners: bool) -> Any:
    """Coordinates that are brought into an axis of n elements: to its border, or by reflection there; NaN, which has no place, to 0."""
    if border == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span:
            distance = traced.abs(x - low)
            turns = wrap(np.floor(distance.value / span))
            part = distance - turns * span
            x = traced.where(wrap(turns.value % 2 == 0), part, span - part) + low
        else:
            x = x * 0
    return x if border == "zeros" else traced.clamp(traced.where(x == x, x, 0.0), 0, n - 1)


def _whole(value: Any) -> Any:
    """Coordinates as integers; those that are none, or far outside, as -100."""
    return np.where(np.abs(value) < 2.0**31, value, -100.0).astype(np.int64)


def _at(input: Tensor, index: Sequence[Any], weight: Any) -> Any:
    """The elements at integer coordinates times weights, with zeros outside: (N, C, *out)."""
    shape, rank = list(input.shape), len(index)
    inside: Any = True
    places: Any = 0
    for each, n in zip(index, shape[2:]):
        inside = inside & (each >= 0) & (each < n)
        places = places * n + np.minimum(np.maximum(each, 0), n - 1)
    every = np.broadcast_to(places[:, None], (places.shape[0], shape[1], *places.shape[1:]))
    values = _elements(input, (flat_index(every, rank, math.prod(shape[2:])),))
    return values * traced.unsqueeze(weight * wrap(inside.astype(weight.value.dtype)), 1)


def _cubic_weights(t: Any) -> tuple[Any, ...]:
    """The weights of the four neighbours of a point at a distance t behind the second."""
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _check_grid(input: Tensor, grid: Tensor, mode: str) -> None:
    check_dims("grid_sample", input, *((4,) if mode == "bicubic" else (4, 5)))
    check_dims("grid_sample", grid, input.ndim, word="grid")
    check_shape("grid_sample", (input.shape[0], *grid.shape[1:-1], input.ndim - 2), grid=grid)
    check_nonempty("grid_sample", input, input.ndim - 2)
    check_dtypes("grid_sample", input, grid=grid)


@taking_tensors
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """The image at points in [-1, 1]²: (N, C, H, W) at a grid (N, h, w, 2) of x and y gives (N, C, h, w); volumes likewise, with x, y and z.

    Modes: "bilinear", "nearest", "bicubic" (images). Outside the image are zeros, the elements of its "border", or its "reflection". -1 and 1 are the
    centers of the outer elements with `align_corners`, else their outer edges.

    Raises ValueError for an unknown mode, RuntimeError for shapes that do not fit.
    """
    check_option("grid_sample", "mode", mode, GRID_MODES, ValueError)
    check_option("grid_sample", "padding_mode", padding_mode, BORDERS, ValueError)
    align_corners = _aligned("grid_sample", align_corners)
    _check_grid(input, grid, mode)
    size = tuple(input.shape[2:])
    points = [grid[..., len(size) - 1 - i] for i in range(len(size))]
    points = [(x + 1) / 2 * (n - 1) if align_corners else ((x + 1) * n - 1) / 2 for x, n in zip(points, size)]
    if mode == "bicubic":
        low = [np.floor(x.value) for x in points]
        along = [_cubic_weights(x - wrap(m)) for x, m in zip(points, low)]
        shifted = [[_whole(_inside(wrap(m + (j - 1)), n, padding_mode, align_corners).value) for j in range(4)] for m, n in zip(low, size)]
    else:
        points = [_inside(x, n, padding_mode, align_corners) for x, n in zip(points, size)]
        if mode == "nearest":
            constant = sum(traced.sign(traced.nan_to_num(x)) * 0 for x in points) + 1  # the derivative by the grid is 0
            return _at(input, [_whole(np.rint(x.value)) for x in points], constant)
        low = [np.floor(x.value) for x in points]
        parts = [x - wrap(m) for x, m in zip(points, low)]
        along, shifted = [(1 - t, t) for t in parts], [[_whole(m), _whole(m) + 1] for m in low]
    out: Any = None
    for at in itertools.product(*[range(len(weights)) for weights in along]):
        weight = math.prod(weights[j] for weights, j in zip(along[1:], at[1:])) * along[0][at[0]]
        term = _at(input, [index[j] for index, j in zip(shifted, at)], weight)
        out = term if out is None else out + term
    return out


@taking_tensors
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points of `grid_sample` to which affine maps (N, 2, 3) carry those of images of a size (N, C, H, W); volumes likewise, with (N, 3, 4).

    Raises ValueError for matrices or sizes that do not fit, NotImplementedError for another number of dimensions.

    >>> import symgrad
    >>> affine_grid(symgrad.tensor([[[2.0, 0.0, 0.0], [0.0, 1.0, 0.5]]]), (1, 1, 1, 2), align_corners=False)
    tensor([[[[-1.0000,  0.5000],
              [ 1.0000,  0.5000]]]])
    """
    align_corners, shape = _aligned("affine_grid", align_corners), tuple(size)
    check_floating("affine_grid", theta, error=ValueError)
    if len(shape) not in (4, 5):
        raise NotImplementedError(f"affine_grid: size must have 4 or 5 elements, but it is {shape}")
    rank = len(shape) - 2
    check_dims("affine_grid", theta, 3, word="theta", error=ValueError)
    check_shape("affine_grid", (theta.shape[0], rank, rank + 1), ValueError, theta=theta)
    if align_corners and min(shape[2:]) == 1:
        warnings.warn(f"affine_grid: with align_corners a dimension of size 1, as in {shape}, has its point at 0", UserWarning, stacklevel=3)
    elif min(shape) <= 0:
        raise ValueError(f"affine_grid: size must be positive, but it is {shape}")
    check_shape("affine_grid", (shape[0], rank, rank + 1), theta=theta)
    ends = [np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1) for n in shape[2:]]
    ends = ends if align_corners else [x * (n - 1) / n for x, n in zip(ends, shape[2:])]
    base = np.stack([*np.meshgrid(*ends, indexing="ij")[::-1], np.ones(shape[2:])], -1).reshape(-1, rank + 1)
    out = traced.matmul(wrap(base.astype(theta.value.dtype)), traced.transpose(theta, 1, 2))
    return traced.reshape(out, (shape[0], *shape[2:], rank))


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`affine_grid`, with `align_corners` given."""
    return affine_grid(theta, size, align_corners)


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`grid_sample` with numbers of the modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    check_option("grid_sampler", "interpolation_mode", interpolation_mode, (0, 1, 2), ValueError)
    check_option("grid_sampler", "padding_mode", padding_mode, (0, 1, 2), ValueError)
    return grid_sample(input, grid, GRID_MODES[interpolation_mode], BORDERS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler
