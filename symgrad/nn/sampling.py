"""Images at other points, with torch's names: interpolation to another size, and sampling at the points of a grid."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from symgrad.nn.windows import flat_index
from symgrad.ops.rules import constant

__all__ = ["affine_grid", "affine_grid_generator", "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d",
           "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_interpolated, _elements = core(REGISTRY["interpolated"]), core(REGISTRY["grid_elements"])
MODES = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,), "lanczos": (4,), "area": (3, 4, 5),
         "nearest-exact": (3, 4, 5)}
SMOOTH, ALIGNED = ("bilinear", "bicubic", "lanczos"), ("linear", "bilinear", "bicubic", "trilinear")
AXES = ("D", "H", "W")


def _new_size(input: Tensor, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The size after interpolation, and the factors that scale coordinates, unless that is done by the sizes. Raises ValueError."""
    rank, before = input.ndim - 2, list(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    word, given = ("output size", size) if scale_factor is None else ("scale_factor", scale_factor)
    several = isinstance(given, (tuple, list))
    if several and len(given) != rank:
        name, letter = ("output", "o") if scale_factor is None else ("scale_factor", "s")
        raise ValueError(f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of {before} and "
                         f"{word} of {'shape ' * (letter == 's')}{given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and {word} in "
                         f"({letter}1, {letter}2, ...,{letter}K) format.")
    each = tuple(given) if several else (given,) * rank
    if scale_factor is not None:
        factors = tuple([f if type(f) is float else float(constant("interpolate", "scale_factor", f)) for f in each])
        return tuple([math.floor(n * f) for n, f in zip(before, factors)]), None if recompute else factors
    if recompute:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if not all(hasattr(n, "__index__") for n in each):
        raise TypeError(f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                        f"{[type(n) for n in each]}")
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
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    after, scales = _new_size(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in SMOOTH and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if input.ndim not in MODES.get(mode, ()):
        if mode in ("linear", "bilinear", "trilinear") and input.ndim in (3, 4, 5):
            raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {MODES[mode][0]}D input")
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: nearest | linear | "
                                  f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    before = tuple(input.shape[2:])
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.ndim - 3](input, after)
    if min(*before, *after) < 1:
        words = (" ".join(f"{axis}: {n}," for axis, n in zip(AXES[5 - input.ndim:], sizes))[:-1] for sizes in (before, after))
        raise RuntimeError("Input and output sizes should be greater than 0, but got input ({}) output ({})".format(*words))
    if not input.shape[1]:
        raise RuntimeError(f"Non-empty {input.ndim}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    whole = input.dtype.name == "uint8"
    if not (input.is_floating_point() or whole):
        raise NotImplementedError(f"\"upsample_{mode}\" not implemented for '{input.dtype.scalar_type}'; convert the input with .to()")
    factors: Any = scales[0] if scales is not None and len(scales) == 1 else scales
    out = _interpolated(input.double() if whole else input, after, bool(align_corners), factors, mode, bool(antialias))
    return traced.clamp(traced.round(out), 0, 255).to(input.dtype) if whole else out


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """`interpolate`, deprecated."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest elements, deprecated."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with aligned corners, bilinear, deprecated."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# Points of a grid


GRID_MODES, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
CHANGED = ("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the "
           "old behavior is desired. See the documentation of grid_sample for details.")


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
    shape, places, start = list(input.shape), list(grid.shape), "grid_sampler(): expected"
    if places[0] != shape[0]:
        raise RuntimeError(f"{start} grid and input to have same batch size, but got input with sizes {shape} and grid with sizes {places}")
    if places[-1] != input.ndim - 2:
        raise RuntimeError(f"{start} grid to have size {input.ndim - 2} in last dimension, but got grid with sizes {places}")
    for i, n in enumerate(shape[2:], 2):
        if not n:
            raise RuntimeError(f"{start} input to have non-empty spatial dimensions, but input has sizes {shape} with dimension {i} being empty")
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        wanted = f"{input.ndim}D" if input.ndim in (4, 5) else "4D or 5D"
        raise RuntimeError(f"{start} {wanted} input and grid with same number of dimensions, but got input with sizes {shape} and grid with sizes "
                           f"{places}")
    if mode == "bicubic" and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_type} but found {grid.dtype.scalar_type}")


@taking_tensors
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """The image at points in [-1, 1]²: (N, C, H, W) at a grid (N, h, w, 2) of x and y gives (N, C, h, w); volumes likewise, with x, y and z.

    Modes: "bilinear", "nearest", "bicubic" (images). Outside the image are zeros, the elements of its "border", or its "reflection". -1 and 1 are the
    centers of the outer elements with `align_corners`, else their outer edges.

    Raises ValueError for an unknown mode, RuntimeError for shapes that do not fit.
    """
    for word, given, known, last in (("mode", mode, GRID_MODES, "'bilinear', 'nearest' or 'bicubic'"),
                                     ("padding_mode", padding_mode, BORDERS, "'zeros', 'border', or 'reflection'")):
        if given not in known:
            raise ValueError(f"nn.functional.grid_sample(): expected {word} to be {last}, but got: '{given}'")
    if align_corners is None:
        warnings.warn(CHANGED, UserWarning, stacklevel=3)
        align_corners = False
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
    if align_corners is None:
        warnings.warn(CHANGED, UserWarning, stacklevel=3)
        align_corners = False
    shape = tuple(size)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(shape) not in (4, 5):
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}.")
    rank = len(shape) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. Got torch.Size("
                         f"{list(theta.shape)}).")
    if align_corners and min(shape[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended "
                      "use case of affine_grid. See the documentation of affine_grid for details.", UserWarning, stacklevel=3)
    elif min(shape) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if theta.shape[0] != shape[0]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{shape[0]}, {rank + 1}] but got: [{theta.shape[0]}, "
                           f"{rank + 1}].")
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
    for word, given in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if given not in (0, 1, 2):
            raise ValueError(f"grid_sampler(): expected {word} to be 0, 1 or 2, but got: {given}")
    return grid_sample(input, grid, GRID_MODES[interpolation_mode], BORDERS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler
