"""Compiled sums of narrow floats: as accurate as eager ones along long axes in any position, of the same dtype, by both back ends."""

import itertools

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.nn import functional as F
from symgrad.program.native import find_compiler

BACKENDS = ["numpy", "interpreter", pytest.param("c", marks=pytest.mark.skipif(not find_compiler(), reason="no C compiler"))]
LONG = 30_011
REDUCTIONS = {
    "sum": lambda x, dim: x.sum(dim), "mean": lambda x, dim: x.mean(dim), "var": lambda x, dim: x.var(dim),
    "std": lambda x, dim: (x + x * x).std(dim), "norm": lambda x, dim: x.norm(dim=dim), "logsumexp": lambda x, dim: x.logsumexp(dim),
    "softmax": lambda x, dim: (x.softmax(dim) * x.exp()).sum(dim), "log_softmax": lambda x, dim: x.log_softmax(dim),
    "kept": lambda x, dim: (x * x).sum(dim, keepdim=True) * x,
    "gradient": lambda x, dim: func.grad(lambda s: ((x * s).sin() ** 2).sum())(x.mean(dim, keepdim=True)),
    "loss": lambda x, dim: F.mse_loss(x.sum(dim), x.mean(dim)),
}


def of(x, backend, function):
    """The error of a compiled result, that of the eager one, and both."""
    compiled = symgrad.compile(lambda x: function(x), derivatives="value", backend=backend)
    with np.errstate(all="ignore"):
        found, expected, truth = compiled(x), function(x), function(x.to(symgrad.float64)).numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape
    size = np.abs(truth).max(initial=1e-30)
    return [np.abs(y.to(symgrad.float64).numpy() - truth).max(initial=0) / size for y in (found, expected)]


def steps(dtype):
    return {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("layout", ["rows", "permuted", "two axes", "slice"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_long_axes(backend, name, dtype, layout):
    shape = {"rows": (LONG, 3), "permuted": (2, 3, LONG // 2), "two axes": (LONG // 2, 2, 3), "slice": (LONG, 4)}[layout]
    values = np.random.default_rng(3).uniform(0.05, 0.15, shape)
    x, axis = symgrad.tensor(values).to(getattr(symgrad, dtype)), (0, 2) if layout == "two axes" else (0,)

    def function(x):
        return REDUCTIONS[name](x.permute(2, 0, 1) if layout == "permuted" else x[:, ::2] if layout == "slice" else x, axis)

    found, eager = of(x, backend, function)
    assert found <= 3 * eager + 20 * steps(dtype), (found, eager)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("axes", [axes for k in (1, 2, 3) for axes in itertools.combinations(range(3), k)], ids=str)
@pytest.mark.parametrize("order", [*itertools.permutations((0, 1, 2))], ids=str)
def test_eager_sums_of_any_layout(order, axes):
    """Of equal elements, whose rounding errors all have one sign."""
    x = symgrad.full((LONG, 2, 3), 0.1, dtype=symgrad.float32).permute(*order)
    for y in (x, x[..., ::2], x.expand(2, *x.shape)[1], x.flip(0)):
        found = y.sum(axes).numpy()
        np.testing.assert_allclose(found, y.to(symgrad.float64).sum(axes).numpy(), rtol=1e-6 * 4)
    batched = func.vmap(lambda y: y.sum([a - 1 for a in axes if a] or [0]))(x).numpy()
    truth = x.to(symgrad.float64).numpy().sum(tuple(a for a in axes if a) or 1)
    np.testing.assert_allclose(batched, truth, rtol=1e-6 * 4)


POOLS = {
    "avg_pool1d": lambda x: F.avg_pool1d(x[0], 3, 2, 1), "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "lp_pool2d": lambda x: F.lp_pool2d(x.abs(), 2, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (2, 3)), "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "conv": lambda x: F.conv2d(x, x[:1, :, :2, :2]),
    **{f"interpolate, {mode}": lambda x, mode=mode: F.interpolate(x, (5, 7), mode=mode) for mode in ("nearest", "bilinear", "bicubic", "area")},
    "einsum": lambda x: symgrad.einsum("nchw,mchv->nmwv", x, x), "matmul": lambda x: x @ x.transpose(2, 3), "cumsum": lambda x: x.cumsum(3),
    "layer_norm": lambda x: F.layer_norm(x, (8,)), "unfold": lambda x: F.unfold(x, 3), "outer": lambda x: symgrad.outer(x[0, 0, 0], x[0, 1, 1]),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_pools_and_products(backend, name, dtype):
    x = symgrad.tensor(np.random.default_rng(1).uniform(-1, 1, (2, 3, 8, 8))).to(getattr(symgrad, dtype))
    for function in (POOLS[name], func.grad(lambda x: (POOLS[name](x) ** 2).sum().to(symgrad.float64))):
        found, eager = of(x, backend, function)
        assert found <= 3 * eager + 4 * steps(dtype), (found, eager)
