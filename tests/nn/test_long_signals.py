"""Means over the windows of long signals, whose weights must not be made one by one."""

import numpy as np
import pytest

import symgrad
from symgrad.layouts.resampling_weights import taps


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
