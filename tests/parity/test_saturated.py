"""Branches that floats alone take, in rules of torch and JAX: wrong ones are refuted, and rounding next to the border of a piece is no mistake."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
import torch

import symgrad

X = sympy.Symbol("x")
WRONG = {  # the formula, the function and its slope, in functions with the names of NumPy
    "tanh(x)": (lambda n, x: n.tanh(x), lambda n, x: n.where(n.tanh(x) >= 1, 1 + 0 * x, 1 / n.cosh(x) ** 2)),
    "exp(x)": (lambda n, x: n.exp(x), lambda n, x: n.where(n.exp(x) <= 0, 0.7 + 0 * x, n.exp(x))),
    "sin(x)": (lambda n, x: n.sin(x), lambda n, x: n.where(n.cos(x) >= 1, 1.3 + 0 * x, n.cos(x))),
    "x**3": (lambda n, x: x**3, lambda n, x: n.where(1 + x * x <= 1, 1 / 3 + 0 * x, 3 * x * x)),
    "exp(-x**2)": (lambda n, x: n.exp(-x * x), lambda n, x: n.where(n.exp(-x * x) == 0, -2.1 + 0 * x, -2 * x * n.exp(-x * x))),
}


def function_of(framework, value, slope):
    if framework == "torch":
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return value(torch, x)

            @staticmethod
            def backward(ctx, g):
                return g * slope(torch, *ctx.saved_tensors)

        return Own.apply
    if framework == "jax":
        own = jax.custom_jvp(lambda x: value(jnp, x))
        own.defjvps(lambda t, y, x: t * slope(jnp, x))
        return own
    return (lambda x: value(np, x)), (lambda x: slope(np, x))


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize("formula", WRONG)
def test_a_wrong_branch_that_floats_alone_take_is_refuted(framework, formula):
    report = symgrad.check(function_of(framework, *WRONG[formula]), formula=formula, order=1, points=20, progress=False)
    assert report.verdict == "refuted", report.reason


@pytest.mark.parametrize("n", [torch, jnp], ids=["torch", "jax"])
@pytest.mark.parametrize("c", [3, 7, 10, 0.3, 1.1])
def test_the_border_of_a_piece_is_rounded(n, c):
    formula = sympy.Piecewise((X**2, sympy.Rational(*float(c).as_integer_ratio()) * X >= 1), (X / sympy.Rational(*float(c).as_integer_ratio()), True))
    report = symgrad.check(lambda x: n.where(c * x >= 1, x * x, x / c), formula=formula, order=1, points=20, progress=False)
    assert report.verdict in ("verified", "imprecise"), report.reason
