"""`symgrad.check` of functions as frameworks write them: every wrong version of four functions is refuted, and no right version is.

The functions are torch's `logsumexp`, `log_softmax` and `layer_norm`, and `norm` of JAX.
"""

import jax
import jax.numpy as jnp
import pytest
import torch
import torch.nn.functional as F

import symgrad

WRONG, RIGHT = {}, {}
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


WRONG["logsumexp"] = {
    "a term is missing": lambda x: logsumexp(x[:-1]),
    "along the columns": lambda x: torch.logsumexp(x, 0),
    "the sign of the logarithm": lambda x: (largest(x) - (x - largest(x)).exp().sum(-1).log()).sum(),
    "the shift is not added again": lambda x: (x - largest(x)).exp().sum(-1).log(),
    "only the shift outside is detached": lambda x: (x - x.max()).exp().sum().log() + x.max().detach(),
    "a mean for a sum": lambda x: x.exp().mean().log(),
    "eps beside the sum": lambda x: ((x - largest(x)).exp().sum() + 1e-6).log() + x.max(),
    "eps beside the exponentials": lambda x: (x.exp().sum() + 1e-6).log(),
    "doubled for ties": ruled(logsumexp, lambda g, x: g * torch.softmax(x, -1) * ties(x)),
    "the largest alone beyond 50": lambda x: torch.where(x.max() > 50, x.max(), logsumexp(x)),
    "clamped at 80": lambda x: logsumexp(x.clamp(max=80.0)),
    "the gradient of the largest": ruled(logsumexp, lambda g, x: g * (x == x.max()).to(x.dtype)),
}
RIGHT["logsumexp"] = {
    "torch.logsumexp": logsumexp,
    "of the rows of a matrix": lambda x: torch.logsumexp(x, 1),
    "as it is defined": lambda x: x.exp().sum().log(),
    "with a detached shift": lambda x: (x - x.max().detach()).exp().sum().log() + x.max().detach(),
    "with a shift that is differentiated": lambda x: (x - x.max()).exp().sum().log() + x.max(),
    "with the mean for a shift": lambda x: (x - x.mean()).exp().sum().log() + x.mean(),
    "two by two": lambda x: torch.logaddexp(torch.logaddexp(x[0], x[1]), x[2]),
    "by log_softmax": lambda x: x[0] - torch.log_softmax(x, 0)[0],
    "the last of a cumulative sum": lambda x: torch.logcumsumexp(x, 0)[2],
    "with a backward pass by softmax": ruled(logsumexp, lambda g, x: g * torch.softmax(x, -1)),
}

WRONG["log_softmax"] = {
    "a term is missing": lambda x: x - logsumexp(x[1:]),
    "along the columns": lambda x: torch.log_softmax(x, 0),
    "the sign": lambda x: logsumexp(x) - x,
    "the normaliser is detached": lambda x: x - logsumexp(x).detach(),
    "the shift is taken once": lambda x: x - (x - x.max()).exp().sum().log(),
    "eps beside the probability": lambda x: (torch.softmax(x, 0) + 1e-8).log(),
    "a mean for a sum": lambda x: x - x.exp().mean().log(),
    "doubled for ties": ruled(lambda x: torch.log_softmax(x, 0), lambda g, x: g - torch.softmax(x, 0) * g.sum() * ties(x)),
    "the sum of the cotangent is left out": ruled(lambda x: torch.log_softmax(x, 0), lambda g, x: g - torch.softmax(x, 0) * g),
    "by the largest beyond 30": lambda x: torch.where(x.max() > 30, x - x.max(), torch.log_softmax(x, 0)),
    "clamped at -20": lambda x: torch.log_softmax(x, 0).clamp(min=-20.0),
    "broadcast along the other axis": lambda x: x - torch.logsumexp(x, 1),
}
RIGHT["log_softmax"] = {
    "torch.log_softmax": lambda x: torch.log_softmax(x, 0),
    "of the rows of a matrix": lambda x: torch.log_softmax(x, 1),
    "minus the logsumexp": lambda x: x - logsumexp(x),
    "as it is defined": lambda x: x - x.exp().sum().log(),
    "the logarithm of softmax": lambda x: torch.softmax(x, 0).log(),
    "with a detached shift": lambda x: x - x.max().detach() - (x - x.max().detach()).exp().sum().log(),
    "by cross entropies": lambda x: torch.stack([-F.cross_entropy(x[None], torch.tensor([k])) for k in range(3)]),
    "minus the logarithm of differences": lambda x: -(x[None] - x[:, None]).exp().sum(1).log(),
    "the logarithm of a quotient": lambda x: (x.exp() / x.exp().sum()).log(),
    "with its own backward pass": ruled(lambda x: torch.log_softmax(x, 0), lambda g, x: g - torch.softmax(x, 0) * g.sum()),
}


def normalised(x, variance, eps=1e-5):
    return (x - x.mean()) / (variance + eps).sqrt()


def spread(x):
    return ((x - x.mean()) ** 2).mean()


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


WRONG["layer_norm"] = {
    "the variance is divided by n - 1": lambda x: normalised(x, x.var()),
    "the variance is not divided": lambda x: normalised(x, ((x - x.mean()) ** 2).sum()),
    "eps outside the root": lambda x: (x - x.mean()) / (spread(x).sqrt() + 1e-5),
    "another eps": lambda x: F.layer_norm(x, (3,), eps=1e-6),
    "the mean is detached": lambda x: (x - x.mean().detach()) / (spread(x) + 1e-5).sqrt(),
    "the variance is detached": lambda x: normalised(x, spread(x).detach()),
    "the mean is left in the variance": lambda x: normalised(x, (x * x).mean()),
    "the sign": lambda x: -layer_norm(x),
    "along the columns": lambda x: layer_norm(x.T).T,
    "the mean is broadcast along the other axis": lambda x: (x - x.mean(1)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt(),
    "no slope where all are equal": lambda x: torch.where(spread(x) == 0, 0 * x, normalised(x, torch.where(spread(x) == 0, 1.0, spread(x)))),
    "clamped variance": lambda x: normalised(x, spread(x).clamp(max=1e6)),
}
RIGHT["layer_norm"] = {
    "torch's layer_norm": layer_norm,
    "of the rows of a matrix": lambda x: layer_norm(x),
    "as it is defined": lambda x: normalised(x, spread(x)),
    "the mean of squares minus the square of the mean": lambda x: normalised(x, (x * x).mean() - x.mean() ** 2),
    "by var": lambda x: normalised(x, x.var(unbiased=False)),
    "by rsqrt": lambda x: (x - x.mean()) * (spread(x) + 1e-5).rsqrt(),
    "by batch_norm": lambda x: F.batch_norm(x[:, None], None, None, training=True)[:, 0],
    "by group_norm": lambda x: F.group_norm(x[None, :], 1)[0],
    "by standard deviations": lambda x: (x - x.mean()) / torch.hypot(x.std(unbiased=False), torch.tensor(1e-5, dtype=x.dtype).sqrt()),
    "by the sum of squares": lambda x: (x - x.mean()) * 3**0.5 / (((x - x.mean()) ** 2).sum() + 3e-5).sqrt(),
}


def norm(x):
    return jnp.sqrt((x * x).sum())


def scale(x):
    return jnp.where(jnp.abs(x).max() > 0, jnp.abs(x).max(), 1.0)


WRONG["norm"] = {
    "a term is missing": lambda x: norm(x[:-1]),
    "without the root": lambda x: (x * x).sum(),
    "the sum of absolute values": lambda x: jnp.linalg.norm(x, 1),
    "along the columns": lambda x: jnp.linalg.norm(x, axis=0),
    "the sign of the gradient": pulled(lambda x: jnp.linalg.norm(x), lambda g, x: -g * x / jnp.linalg.norm(x)),
    "the gradient is not divided": pulled(lambda x: jnp.linalg.norm(x), lambda g, x: g * x),
    "the root of a mean": lambda x: jnp.sqrt((x * x).mean()),
    "eps in the root": lambda x: jnp.sqrt((x * x).sum() + 1e-12),
    "eps beside the root": lambda x: norm(x) + 1e-9,
    "doubled for ties": pulled(lambda x: jnp.linalg.norm(x), lambda g, x: g * x / jnp.linalg.norm(x) * (
        1 + (x[0] == x[1]) + (x[1] == x[2]))),
    "clamped squares": lambda x: jnp.sqrt(jnp.minimum(x * x, 1e8).sum()),
    "the scale is a constant outside": lambda x: norm(x / jnp.abs(x).max()) * jax.lax.stop_gradient(jnp.abs(x).max()),
}
RIGHT["norm"] = {
    "jnp.linalg.norm": lambda x: jnp.linalg.norm(x),
    "of the rows of a matrix": lambda x: jnp.linalg.norm(x, axis=1),
    "as it is defined": norm,
    "by hypot": lambda x: jnp.hypot(jnp.hypot(x[0], x[1]), x[2]),
    "by a product": lambda x: jnp.sqrt(x @ x),
    "with a scale": lambda x: norm(x / scale(x)) * scale(x),
    "with a constant scale": lambda x: norm(x / jax.lax.stop_gradient(scale(x))) * jax.lax.stop_gradient(scale(x)),
    "by a logarithm": lambda x: jnp.exp(jnp.log((x * x).sum()) / 2),
    "with its own backward pass": pulled(lambda x: jnp.linalg.norm(x), lambda g, x: g * x / jnp.linalg.norm(x)),
    "guarded at 0": lambda x: jnp.where((x * x).sum() > 0, jnp.sqrt(jnp.where((x * x).sum() > 0, (x * x).sum(), 1.0)), 0.0),
}
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
