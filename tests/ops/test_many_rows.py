"""Sums over many rows: their errors must not grow with the number of rows, and those of float16 must not stop at 2048."""

import numpy as np
import pytest

import symgrad

ROWS = np.random.default_rng(0).uniform(size=(20_001, 3))


@pytest.mark.parametrize("shape, dim", [((20_001, 3), 0), ((1, 20_001, 3), 1), ((20_001, 3), (0,)), ((59, 113, 3, 3), (0, 1, 2)), ((3, 6667, 3), -2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_of_many_rows(shape, dim, keepdim):
    x = np.resize(ROWS, shape).astype(np.float32)
    found = symgrad.tensor(x).sum(dim, keepdim)
    expected = x.astype(float).sum(dim, keepdims=keepdim)
    assert found.shape == expected.shape and found.dtype is symgrad.float32
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-7)
    np.testing.assert_allclose(symgrad.tensor(x).mean(dim, keepdim).numpy(), x.astype(float).mean(dim, keepdims=keepdim), rtol=3e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_floats(dtype):
    x = symgrad.ones(5120, 2, dtype=getattr(symgrad, dtype))
    for found, expected in ((x.sum(0), 5120), (x.T.sum(1), 5120), (x.mean(0), 1), (x.softmax(0).sum(0), 1), (x.var_mean(0)[1], 1)):
        assert found.dtype is x.dtype and found.tolist() == [expected] * 2
    large = symgrad.full((70_000, 2), 40.0, dtype=x.dtype, requires_grad=True)  # whose sum float16 does not have
    for found in (large.mean(), *large.mean(0), symgrad.func.vmap(lambda z: z.mean(0))(large.T)[0], symgrad.compile(lambda z: z.mean())(large)):
        assert found.dtype is x.dtype and found.item() == 40
    at = symgrad.zeros(5120, dtype=symgrad.int64)
    for found in (symgrad.einsum("ij->j", x), symgrad.einsum("ij,ij->j", x, x), (x[:2] * 0).index_add(0, at, x)[0],
                  (x[:2] * 0).index_put((at,), x, accumulate=True)[0], (x[:2] * 0).scatter_add(0, at[:, None].expand(-1, 2), x)[0]):
        assert found.dtype is x.dtype and found.tolist() == [5120] * 2


def test_the_gradient_of_a_bias_of_many_rows():
    bias = symgrad.zeros(3, dtype=symgrad.float32, requires_grad=True)
    g = ROWS.astype(np.float32)
    (bias + symgrad.zeros(20_001, 3, dtype=symgrad.float32)).backward(symgrad.tensor(g))
    np.testing.assert_allclose(bias.grad.numpy(), g.astype(float).sum(0), rtol=3e-7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape, kernel", [((1, 1, 5003), 5003), ((1, 1, 5003), 3001), ((1, 2, 3001, 3), (3001, 3))])
def test_means_of_long_windows(shape, kernel):
    """Pools, their gradients and area interpolation."""
    F = symgrad.nn.functional
    x = np.resize(ROWS, shape).astype(np.float32)
    rank, axes = len(shape) - 2, tuple(range(2, len(shape)))
    last = (..., *[slice(k) for k in (kernel if isinstance(kernel, tuple) else (kernel,))])
    exact = x[last].astype(float).mean(axes, keepdims=True)
    found = getattr(F, f"avg_pool{rank}d")(symgrad.tensor(x), kernel, 1)
    np.testing.assert_allclose(found[(..., *[slice(1)] * rank)].numpy(), exact, rtol=3e-7)
    whole = x.astype(float).mean(axes, keepdims=True)
    for found in (getattr(F, f"adaptive_avg_pool{rank}d")(symgrad.tensor(x), 1), F.interpolate(symgrad.tensor(x), (1,) * rank, mode="area")):
        np.testing.assert_allclose(found.numpy(), whole, rtol=3e-7)


@pytest.mark.sweep
def test_the_gradient_of_a_pool_of_long_windows():
    """The gradient of an element is the sum over the windows that hold it."""
    x = symgrad.zeros(1, 1, 6001, dtype=symgrad.float32, requires_grad=True)
    y = symgrad.nn.functional.avg_pool1d(x, 2501, 1)
    g = np.resize(ROWS, y.shape).astype(np.float32)
    y.backward(symgrad.tensor(g))
    exact = np.convolve(g[0, 0].astype(float), np.ones(2501)) / 2501
    np.testing.assert_allclose(x.grad[0, 0].numpy(), exact, rtol=6e-7)  # of about a hundred elements that are added one after the other
