"""Functions of `nn.functional`: results lie as PyTorch's do, derivatives by every argument are right, and windows of long signals are slices."""

import math

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.layouts.resampling_weights import taps
from symgrad.nn import functional as F
from tests.support.tables import table

SHAPE = 2, 4, 6, 6
BY_ROWS = table(globals(), "BY_ROWS")
IN_IMAGES = "rms_norm", "group_norm", "batch_norm", "batch_norm with statistics", "pixel_shuffle"
FRESH = table(globals(), "FRESH")


def inputs():
    """The same elements in several layouts."""
    plain = symgrad.tensor(np.random.default_rng(5).normal(size=SHAPE))
    order = (3, 1, 0, 2)
    yield "contiguous", plain
    yield "transposed", plain.mT.contiguous().mT
    yield "permuted", plain.permute(order).contiguous().permute(tuple(order.index(i) for i in range(4)))
    yield "sliced", symgrad.stack([plain, -plain], -1).flatten(-2)[..., ::2]
    yield "images", plain.contiguous(memory_format=symgrad.channels_last)


@pytest.mark.parametrize("name", BY_ROWS)
def test_results_can_be_viewed(name):
    expected = None
    for layout, x in inputs():
        y = BY_ROWS[name](x)
        expected = y if expected is None else expected
        assert symgrad.allclose(y, expected, rtol=1e-12, atol=1e-12), layout
        if layout == "images" and name in IN_IMAGES:
            assert y.is_contiguous(memory_format=symgrad.channels_last)
        else:
            assert y.view(-1).shape == (math.prod(y.shape),), layout


@pytest.mark.parametrize("name", FRESH)
def test_results_are_new_memory(name):
    for layout, x in inputs():
        y = FRESH[name](x)
        before = x.clone()
        y.zero_()
        assert (x == before).all(), layout
        assert not y._is_view()


def test_view_copy_needs_no_view():
    x = symgrad.arange(6.0).reshape(2, 3)
    assert symgrad.view_copy(x.t(), (6,)).tolist() == symgrad.view_copy(x.t(), 6).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def test_normalize_and_glu_keep_the_order_of_their_argument():
    for _, x in inputs():
        if all(s for s in x.stride()):
            assert F.normalize(x).stride() == symgrad.exp(x).stride()
            assert np.argsort(F.glu(x, 1).stride(), kind="stable").tolist() == np.argsort(symgrad.exp(x[:, :2]).stride(), kind="stable").tolist()


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(4, 4, 0), (3, 2, 1), (5, 1, 2), (2, 5, 1)])
def test_the_taps_of_windows_are_slices(kernel, stride, padding, border):
    n = 97
    count = (n + 2 * padding - kernel) // stride + 1
    for transposed in (False, True):
        length, found = taps(("mean", n, count, kernel, stride, padding, border, False), transposed)
        assert length == (n if transposed else count) and len(found) == kernel
        assert all(type(tap.elements) is slice and type(tap.results) in (slice, type(None)) for tap in found)
    x = symgrad.tensor(np.arange(n) ** 2.0, requires_grad=True)
    y = symgrad.nn.functional.avg_pool1d(x[None], kernel, stride, padding, count_include_pad=border)
    windows = [range(max(i * stride - padding, 0), min(i * stride - padding + kernel, n)) for i in range(count)]
    sizes = [kernel if border else len(window) for window in windows]
    np.testing.assert_allclose(y[0].detach().numpy(), [sum(j**2 for j in window) / size for window, size in zip(windows, sizes)], rtol=1e-15)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [sum(1 / size for window, size in zip(windows, sizes) if j in window) for j in range(n)], rtol=1e-15)


tensor = symgrad.tensor
X, Y = tensor([[0.31, -0.72, 1.13], [1.24, 0.43, -0.58]]), tensor([[0.17, 0.93, 0.41], [0.66, 0.29, 0.84]])
CLASSES, PER_CLASS, NUMBER, ONE = tensor([2, 0]), tensor([0.61, 1.43, 0.87]), tensor(1.7), tensor([1.7])
IMAGE = symgrad.linspace(-1.03, 1.21, 36).reshape(1, 4, 3, 3)
MEAN, VARIANCE = tensor([0.1, -0.2, 0.3, 0.07]), tensor([1.1, 0.7, 1.9, 0.83])

CALLS = table(globals(), "CALLS")


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_by_every_argument(name):
    call, *xs = CALLS[name]
    outer = tensor(np.random.default_rng(3).uniform(0.5, 1.5, call(*xs).shape))
    f = lambda *xs: (call(*xs) * outer).sum()  # noqa: E731
    found = {
        "grad": func.grad(f, tuple(range(len(xs))))(*xs), "jacfwd": func.jacfwd(f, tuple(range(len(xs))))(*xs),
        "compile": symgrad.compile(func.grad(f, tuple(range(len(xs)))))(*xs), "one at a time": [func.grad(f, i)(*xs) for i in range(len(xs))],
        "vmap": [g[1] for g in func.vmap(func.grad(f, tuple(range(len(xs)))))(*[symgrad.stack([x, x]) for x in xs])],
        "create_graph": symgrad.autograd.grad(f(*(leaves := [x.clone().requires_grad_() for x in xs])), leaves, create_graph=True),
    }
    for i, x in enumerate(xs):
        direction = tensor(np.random.default_rng(i).uniform(-1, 1, x.shape))
        step = 1e-5 * direction
        true = (f(*xs[:i], x + step, *xs[i + 1:]) - f(*xs[:i], x - step, *xs[i + 1:])).item() / 2e-5
        for route, gradients in found.items():
            assert (gradients[i] * direction).sum().item() == pytest.approx(true, rel=2e-8, abs=2e-9), f"{route}, argument {i}"
