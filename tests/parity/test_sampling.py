"""Interpolation, sampling at points of a grid, and pooling by functions beside torch: value, gradients, warnings, and what is refused."""

import itertools
import warnings

import numpy as np
import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")

RNG = np.random.default_rng(0)
LINES, IMAGES, VOLUMES = RNG.normal(size=(2, 2, 7)), RNG.normal(size=(2, 2, 5, 6)), RNG.normal(size=(1, 2, 3, 4, 3))
SIZES = [{"size": 3}, {"size": 11}, {"size": 1}, {"scale_factor": 1.7}, {"scale_factor": 0.6}, {"scale_factor": 1.7, "recompute_scale_factor": True}]
SMOOTH = ("linear", "bilinear", "bicubic", "trilinear")
INTERPOLATIONS = [(data, mode, align, False) for data, modes in ((LINES, ("nearest", "nearest-exact", "area", "linear")),
                                                               (IMAGES, ("nearest", "nearest-exact", "area", "bilinear", "bicubic")),
                                                               (VOLUMES, ("nearest", "nearest-exact", "area", "trilinear")))
                  for mode in modes for align in ((False, True) if mode in SMOOTH else (None,))]
INTERPOLATIONS += [(IMAGES, mode, align, True) for mode in ("bilinear", "bicubic", "lanczos") for align in (False, True)[:2 - (mode == "lanczos")]]


def derivatives(m, function, arrays, order):
    """The value, and all gradients up to an order."""
    xs = [m.tensor(a.tolist(), dtype=m.float64, requires_grad=True) for a in arrays]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = function(m, *xs)
    out, total = [y], (y * y.detach().cos()).sum() + (y * y).sum()
    for _ in range(order):
        found = m.autograd.grad(total, xs, create_graph=True)
        out += found
        total = sum((g * g).sum() for g in found)
    return [w.category for w in caught], [np.array(v.detach().tolist()) for v in out]


def agree(function, *arrays, order=2):
    (ours, a), (theirs, b) = (derivatives(m, function, arrays, order) for m in (symgrad, torch))
    assert ours == theirs
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("data, mode, align, smooth", INTERPOLATIONS, ids=lambda x: str(x.ndim) if hasattr(x, "ndim") else str(x))
def test_interpolation(data, mode, align, smooth):
    for size in SIZES:
        agree(lambda m, x, size=size: m.nn.functional.interpolate(x, mode=mode, align_corners=align, antialias=smooth, **size) * x.sum(), data)


MODES, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


@pytest.mark.parametrize("mode, border, align", list(itertools.product(MODES, BORDERS, (False, True))))
def test_points_of_a_grid(mode, border, align):
    """torch has no second gradients of it."""
    for data, grid in ((IMAGES, RNG.uniform(-1.6, 1.6, (2, 3, 4, 2))), (VOLUMES, RNG.uniform(-1.6, 1.6, (1, 2, 3, 2, 3))))[:1 + (mode != "bicubic")]:
        agree(lambda m, x, g: m.nn.functional.grid_sample(x, g, mode, border, align), data, grid, order=1)
        agree(lambda m, x, g: m.grid_sampler(x, g, MODES.index(mode), BORDERS.index(border), align), data, grid, order=1)


def test_second_gradients_at_points_of_a_grid():
    """Bilinear interpolation between four elements, written out."""
    def written_out(m, image, grid):
        x, y = (grid[..., 0] + 1) / 2 * 2, (grid[..., 1] + 1) / 2
        i, j = x.detach().floor().long(), y.detach().floor().long()
        s, t, rows = x - i, y - j, image[0, 0]
        return (rows[j, i] * (1 - s) * (1 - t) + rows[j, i + 1] * s * (1 - t) + rows[j + 1, i] * (1 - s) * t + rows[j + 1, i + 1] * s * t)[:, None]

    image, grid = RNG.normal(size=(1, 1, 2, 3)), RNG.uniform(-0.9, 0.9, (1, 2, 4, 2))
    (_, ours), (_, theirs) = (derivatives(symgrad, f, (image, grid), 2) for f in (
        lambda m, x, g: m.nn.functional.grid_sample(x, g, align_corners=True), written_out))
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_points_that_are_no_numbers():
    grid = [[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, 0.0]]]]
    for mode in ("bilinear", "nearest"):
        for border in BORDERS:
            ours, theirs = (m.nn.functional.grid_sample(m.arange(1.0, 5.0).reshape(1, 1, 2, 2), m.tensor(grid), mode, border, False)
                            for m in (symgrad, torch))
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 4), (2, 3, 2, 3, 2)])
@pytest.mark.parametrize("align", [None, False, True])
def test_affine_grids(size, align):
    rank = len(size) - 2
    agree(lambda m, theta: m.nn.functional.affine_grid(theta, size, align), RNG.normal(size=(2, rank, rank + 1)))


def test_deprecated_names_warn():
    for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
        agree(lambda m, x, name=name: getattr(m.nn.functional, name)(x, 3), IMAGES)


def test_the_format_of_images_is_kept():
    for text in ("F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)", "F.adaptive_avg_pool2d(x, 3)", "F.adaptive_max_pool2d(x, 3)", "F.interpolate(x, 4)",
                 "F.interpolate(x, 4, mode='bicubic')"):
        ours, theirs = (eval(text, {"F": m.nn.functional, "x": m.tensor(IMAGES.tolist()).to(memory_format=m.channels_last)})
                        for m in (symgrad, torch))
        assert ours.stride() == theirs.stride(), text
