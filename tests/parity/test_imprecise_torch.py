"""Lost digits and wrong derivatives of programs of torch, whose steps are followed in many digits."""

import pytest
import torch

import symgrad
from tests.check.test_imprecise import check


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["log_softmax", "layer_norm", "norm", "logsumexp"])
def test_functions_of_torch_are_not_refuted_for_their_digits(name):
    mean = "(x[0] + x[1] + x[2])/3"
    variance = " + ".join(f"(x[{i}] - {mean})**2" for i in range(3))
    function, formula = {
        "logsumexp": (lambda x: torch.logsumexp(x, 0), "log(exp(x[0]) + exp(x[1]) + exp(x[2]))"),
        "log_softmax": (lambda x: torch.log_softmax(x, 0)[0], "x[0] - log(exp(x[0]) + exp(x[1]) + exp(x[2]))"),
        "norm": (lambda x: torch.linalg.norm(x), "sqrt(x[0]**2 + x[1]**2)"),
        "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, (3,), eps=0.0)[0], f"(x[0] - {mean})/sqrt(({variance})/3)"),
    }[name]
    assert check(function, formula, framework="torch").verdict in ("verified", "imprecise")


@pytest.fixture
def inverse():
    """log(exp(x)) with a custom backward."""
    def with_backward(backward):
        class Inverse(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.log(torch.exp(x))

            @staticmethod
            def backward(ctx, g):
                return g * backward(ctx.saved_tensors[0])

        return lambda x: Inverse.apply(x)

    return with_backward


def test_programs_of_torch(inverse):
    for function in (lambda x: torch.log(torch.exp(x)), inverse(lambda x: torch.exp(x) / torch.exp(x))):
        report = check(function, "x", framework="torch", points=30)
        assert report.verdict == "imprecise" and report.counterexample.operation == "exp(1000)", str(report)


def test_writes_and_views_of_torch_are_followed():
    def function(x):
        y = x.clone()
        y[:1] += 1
        y.sub_(torch.tensor([1.0, 0.0]))
        return y.sum() * 2

    report = check(function, "2*x[0] + 2*x[1]", framework="torch", points=30)
    assert report.verdict == "imprecise" and report.counterexample.operation.startswith("sub("), str(report)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("factor", [lambda x: 1.000001, lambda x: (x < 30) * 1.0])
def test_a_wrong_backward_of_torch_is_refuted(inverse, factor):
    report = check(inverse(lambda x: factor(x) * torch.ones_like(x)), "x", framework="torch", points=30)
    assert report.verdict == "refuted" and report.counterexample.order == 1 and 0 <= report.counterexample.point["x"] <= 100


@pytest.mark.sweep
def test_second_derivatives_without_a_formula():
    report = symgrad.check(lambda x: torch.tanh(x).atanh(), torch.tensor(2.0, dtype=torch.float64), progress=False, points=6)
    assert report.verdict == "imprecise" and report.counterexample.operation.startswith("add("), str(report)
    assert symgrad.check(lambda x: 1 - torch.cos(x), torch.tensor(0.5), progress=False, points=2).verdict == "verified"
