"""Counts and Python numbers beside float16 and bfloat16: no number is rounded to the dtype before it is used, in values and derivatives.

float16 has no number above 65,504 and skips integers from 2,049 on, bfloat16 from 257 on. Everything is compared with float64, rounded once.
"""

import numpy as np
import pytest

import symgrad
from symgrad import bfloat16, float16, float64
from symgrad.func import grad, jvp, vmap
from symgrad.nn import functional

RNG = np.random.default_rng(65504)
NARROW = {float16: 2.0**-11, bfloat16: 2.0**-8}
MANY = 65_707  # above the largest number of float16; 259 elements are more than bfloat16 counts


def numbers(*shape):
    return RNG.normal(size=shape) + 1.37


def classes(n):
    return symgrad.tensor(np.arange(n) * 7 % 3)


def weights(x):
    return symgrad.tensor([0.7, 1.3, 2.1]).to(x.dtype)


def bags(x):
    return functional.embedding_bag(symgrad.tensor(np.arange(MANY) % 3), x, symgrad.tensor([0]), mode="mean")


def by_places(name):
    return lambda x: getattr(x.new_zeros(2), name)(0, symgrad.tensor(np.arange(len(x)) % 2), x, "mean", include_self=False)


def loss(name, **words):
    return lambda x: getattr(functional, name)(x, x.detach() * 0 - 5.3, **words)


ONE = {  # of a vector
    "mean": lambda x: x.mean(), "mean along": lambda x: x.reshape(1, -1).mean(1), "nanmean": lambda x: x.nanmean(), "var": lambda x: x.var(),
    "std": lambda x: x.std(0), "var_mean": lambda x: symgrad.stack(symgrad.var_mean(x)), "std_mean": lambda x: symgrad.stack(symgrad.std_mean(x)),
    "cov": lambda x: symgrad.cov(x), "scatter_reduce": by_places("scatter_reduce"), "index_reduce": by_places("index_reduce"),
    "segment_reduce": lambda x: symgrad.segment_reduce(x, "mean", lengths=symgrad.tensor([len(x)])),
    "mse_loss": loss("mse_loss"), "l1_loss": loss("l1_loss"), "huber_loss": loss("huber_loss"), "smooth_l1_loss": loss("smooth_l1_loss"),
    "weighted mse_loss": lambda x: functional.mse_loss(x, x.detach() * 0.7, weight=x.detach() * 0 + 1.3),
    "poisson_nll_loss": loss("poisson_nll_loss"), "soft_margin_loss": loss("soft_margin_loss"),
    "binary_cross_entropy_with_logits": lambda x: functional.binary_cross_entropy_with_logits(x, x.detach() * 0 + 0.3),
}
ROWS = {  # of rows of three
    "nll_loss": lambda x: functional.nll_loss(x, classes(len(x))), "weighted nll_loss": lambda x: functional.nll_loss(x, classes(len(x)), weights(x)),
    "cross_entropy": lambda x: functional.cross_entropy(x, classes(len(x))),
    "weighted cross_entropy": lambda x: functional.cross_entropy(x, classes(len(x)), weights(x)),
    "smoothed": lambda x: functional.cross_entropy(x, classes(len(x)), weights(x), label_smoothing=0.3),
    "probabilities": lambda x: functional.cross_entropy(x, x.detach() * 0 + 1 / 3),
    "multi_margin_loss": lambda x: functional.multi_margin_loss(x, classes(len(x)), margin=9.0),
}
IMAGES = {
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 257), "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, 1),
    "area": lambda x: functional.interpolate(x, (1, 1), mode="area"), "lp_pool2d": lambda x: functional.lp_pool2d(x, 2, 257),
    "divisor_override": lambda x: functional.avg_pool2d(x, 257, divisor_override=70_001),
}
CASES = {**{name: (f, (MANY,)) for name, f in ONE.items()}, **{name: (f, (MANY, 3)) for name, f in ROWS.items()},
         **{f"{name} of some": (f, (259,)) for name, f in ONE.items()}, **{f"{name} of some": (f, (259, 3)) for name, f in ROWS.items()},
         **{name: (f, (1, 1, 257, 257)) for name, f in IMAGES.items()}, "embedding_bag": (bags, (3, 2))}


def agree(found, expected, dtype, ulps=24):
    found, expected = (t.detach().to(float64).numpy() for t in (found, expected.to(dtype)))
    unit = NARROW[dtype] * max(np.abs(expected).max(), 2.0**-13)  # of the largest: small ones are subnormal in float16
    np.testing.assert_allclose(found, expected, rtol=0, atol=ulps * unit)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("dtype, name", [(bfloat16 if "some" in name else float16, name) for name in CASES])
def test_counts_are_not_rounded(name, dtype):
    f, shape = CASES[name]
    x = symgrad.tensor(numbers(*shape)).to(dtype)

    def total(x):
        return f(x).sum()

    agree(f(x), f(x.to(float64)), dtype)
    expected = grad(total)(x.to(float64))
    small = expected.abs().max().item() < 2.0**-14
    for gradient in (grad(total), *([symgrad.compile(grad(total))] if shape[0] < 300 else [])):
        found = gradient(x)
        assert found.dtype is dtype
        if small:  # in float16 a subnormal number, a multiple of 2**-24
            unit = 2.0**-24 if dtype is float16 else NARROW[dtype] * expected.abs().max().item()
            np.testing.assert_allclose(found.to(float64).numpy(), expected.numpy(), rtol=0, atol=max(4 * unit, 0.1 * expected.abs().max().item()))
        else:
            agree(found, expected, dtype)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_means_in_every_mode(dtype):
    x = symgrad.tensor(numbers(2, MANY)).to(dtype)
    t = symgrad.tensor(numbers(2, MANY)).to(dtype)
    wide = x.to(float64)
    agree(symgrad.compile(lambda x: x.mean(1))(x), wide.mean(1), dtype, 1)
    agree(jvp(lambda x: x.mean(1), (x,), (t,))[1], t.to(float64).mean(1), dtype, 1)
    agree(vmap(lambda x: x.mean())(x), wide.mean(1), dtype, 1)
    agree(vmap(grad(lambda x: x.mean()))(x), symgrad.full((2, MANY), 1 / MANY, dtype=float64), dtype, 1)
    leaf = x.clone().requires_grad_()
    (first,) = symgrad.autograd.grad(leaf.mean(1).square().sum(), leaf, create_graph=True)
    agree(first, (2 * wide.mean(1, True) / MANY).expand(2, MANY), dtype, 2)
    agree(symgrad.autograd.grad((first / 700).sum(), leaf)[0], symgrad.full((2, MANY), 2 / MANY / 700, dtype=float64), dtype, 2)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("number", [70_000, 1e5 / 3, 257, 1e-9, -71_003.7, 1 / 3])
def test_python_numbers_are_not_rounded(number, dtype):
    x = symgrad.tensor(numbers(5) * (1e-3 if abs(number) > 1e4 else 1)).to(dtype)
    functions = {"mul": lambda x: x * number, "rmul": lambda x: number * x, "div": lambda x: x / number,
                 "alpha": lambda x: symgrad.add(x, x, alpha=number),
                 "addcmul": lambda x: symgrad.addcmul(x, x, x, value=number), "rdiv": lambda x: 1e-3 * number / (x / x.detach()),
                 "sub": lambda x: number * 1e-3 - x}
    for f in functions.values():
        for compute in (f, symgrad.compile(f)):
            found, expected = compute(x), f(x.to(float64)).to(dtype)
            assert found.dtype is dtype
            np.testing.assert_allclose(found.to(float64).numpy(), expected.to(float64).numpy(), rtol=3 * NARROW[dtype], atol=2.0**-23)
        expected = grad(lambda x, f=f: f(x).sum())(x.to(float64))
        if expected.to(dtype).isfinite().all():
            agree(grad(lambda x, f=f: f(x).sum())(x), expected, dtype, 8)
    assert ((x * 0 + 0.1) == 0.1).all() and ((x * 0 + 0.1) <= 0.1).all()  # a number that is compared is rounded, as in torch
