"""`symgrad.check` of functions as frameworks write them: every wrong version of four functions is refuted, and no right version is.

The functions are torch's `logsumexp`, `log_softmax` and `layer_norm`, and `norm` of JAX.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import torch
import torch.nn.functional as F

import symgrad

SUM = "exp(x[0]) + exp(x[1]) + exp(x[2])"
LOGSUMEXP = f"log({SUM})"
LOG_SOFTMAX = [f"x[{i}] - log({SUM})" for i in range(3)]
MEAN = "(x[0] + x[1] + x[2])/3"
VARIANCE = "(" + " + ".join(f"(x[{i}] - {MEAN})**2" for i in range(3)) + ")/3"
LAYER_NORM = [f"(x[{i}] - {MEAN})/sqrt({VARIANCE} + 1e-5)" for i in range(3)]
NORM = "sqrt(x[0]**2 + x[1]**2 + x[2]**2)"
ROWS = {  # the same of the rows of a matrix of two by two
    "logsumexp": [f"log(exp(x[{i},0]) + exp(x[{i},1]))" for i in range(2)],
    "log_softmax": [[f"x[{i},{j}] - log(exp(x[{i},0]) + exp(x[{i},1]))" for j in range(2)] for i in range(2)],
    "layer_norm": [[f"(x[{i},{j}] - (x[{i},0] + x[{i},1])/2)/sqrt((x[{i},0] - x[{i},1])**2/4 + 1e-5)" for j in range(2)] for i in range(2)],
    "norm": [f"sqrt(x[{i},0]**2 + x[{i},1]**2)" for i in range(2)],
}


def verdict(function, formula, framework):
    report = symgrad.check(function, formula=formula, order=1, framework=framework, progress=False)
    return report.verdict, str(report)


def ruled(forward, backward):
    """A `Function` of torch from a forward `(x)` and a backward `(g, x)`."""
    def function(x):
        class Ruled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return forward(x)

            @staticmethod
            def backward(ctx, g):
                return backward(g, *ctx.saved_tensors)

        return Ruled.apply(x)

    return function


def pulled(forward, backward):
    """A `custom_vjp` of JAX from a forward `(x)` and a backward `(g, x)`."""
    def function(x):
        f = jax.custom_vjp(forward)
        f.defvjp(lambda x: (forward(x), x), lambda x, g: (backward(g, x),))
        return f(x)

    return function


def ties(x):
    """2 where two elements of a vector are equal, else 1."""
    return 2.0 if len(set(x.tolist())) < len(x) else 1.0


def logsumexp(x):
    return torch.logsumexp(x, -1)


def largest(x):
    return x.amax(-1, keepdim=True)


def normalised(x, variance, eps=1e-5):
    return (x - x.mean()) / (variance + eps).sqrt()


def spread(x):
    return ((x - x.mean()) ** 2).mean()


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def norm(x):
    return jnp.sqrt((x * x).sum())


def scale(x):
    return jnp.where(jnp.abs(x).max() > 0, jnp.abs(x).max(), 1.0)


VERSIONS = {}
TEXT = Path(__file__).with_name("wrong_versions.txt").read_text(encoding="utf-8")
for kind, name, lines in re.findall(r"^\[(\w+): (\w+)\]\n((?:.+\n)*)", TEXT, re.MULTILINE):
    VERSIONS[kind, name] = {line.partition(": ")[0]: eval(line.partition(": ")[2]) for line in lines.splitlines()}
WRONG, RIGHT = ({name: found for (kind, name), found in VERSIONS.items() if kind == which} for which in ("wrong", "right"))
FORMULAS = {"logsumexp": LOGSUMEXP, "log_softmax": LOG_SOFTMAX, "layer_norm": LAYER_NORM, "norm": NORM}
OF_ROWS = ("along the columns", "of the rows of a matrix", "broadcast along the other axis", "the mean is broadcast along the other axis")


def cases(table):
    return [pytest.param(name, what, id=f"{name}, {what}") for name, versions in table.items() for what in versions]


def checked(table, name, what):
    return verdict(table[name][what], ROWS[name] if what in OF_ROWS else FORMULAS[name], "jax" if name == "norm" else "torch")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name, what", cases(WRONG))
def test_a_wrong_version_is_refuted(name, what):
    found, report = checked(WRONG, name, what)
    assert found == "refuted", report


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name, what", cases(RIGHT))
def test_a_right_version_is_not_refuted(name, what):
    found, report = checked(RIGHT, name, what)
    assert found in ("verified", "imprecise"), report


def test_there_are_eight_of_each():
    assert {name: min(len(WRONG[name]), len(RIGHT[name])) >= 8 for name in FORMULAS} == dict.fromkeys(FORMULAS, True)
