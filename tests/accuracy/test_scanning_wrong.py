"""Wrong numbers are told from imprecise ones: by a constant, by a factor, on an interval, at the second order, in one dtype, by every route."""

import math

import numpy as np
import pytest

import symgrad
from symgrad.scanning import accuracy

THIRD, ROOT = 1 / 3, math.sqrt(2)
SLOPES = {  # wrong derivatives of sin
    "by a constant": lambda x: np.cos(x) + 0.1, "by a small one": lambda x: np.cos(x) + THIRD * 1e-9, "by a factor": lambda x: 1.0001 * np.cos(x),
    "by an irrational factor": lambda x: np.cos(x) * ROOT, "on an interval": lambda x: np.where(x > 3, 1.0, np.cos(x)),
    "on a narrow interval": lambda x: np.where((x > ROOT) & (x < 5 * THIRD), np.cos(x) * 1.7, np.cos(x)), "its sign": lambda x: -np.cos(x),
    "beside lost digits": lambda x: np.sin(2 * x) / (2 * np.sin(x)) * np.where(x < 0.7, 1 + THIRD, 1)}


@pytest.mark.parametrize("kind", SLOPES)
def test_a_wrong_gradient_is_called_wrong(kind):
    report = accuracy((np.sin, SLOPES[kind]), (0.1, 10.0), formula="sin(x)", order=1, points=8)
    assert report.verdict == "refuted" and not report.ok and {w.order for w in report.wrong} == {1}
    for w in report.wrong:
        assert float(SLOPES[kind](np.float64(w.point[0]))) == pytest.approx(w.value, rel=1e-9) and w.truth == pytest.approx(math.cos(w.point[0]))
        assert w.verdict == "wrong" and abs(w.value - w.truth) > 1e-10
    assert any(f"df/dx is wrong: at x = {w.point[0]!r} it is {w.value!r}, but the true one is" in str(report) for w in report.wrong)
    assert "the numbers are wrong in" in report.summary


RULES = {  # of an op that is sin
    "by a constant": lambda xp, y, x: xp.cos(x) + 0.1, "by a factor": lambda xp, y, x: xp.cos(x) * 1.01,
    "on an interval": lambda xp, y, x: xp.where(x > 3, 0 * x + 1, xp.cos(x)), "by a term": lambda xp, y, x: xp.cos(x) + x / 7**5,
    "beyond a root": lambda xp, y, x: xp.where(x * x > 2, xp.sin(x), xp.cos(x))}


@pytest.mark.parametrize("formula", [None, "sin(x)"])
@pytest.mark.parametrize("kind", RULES)
def test_a_wrong_rule_is_called_wrong_with_and_without_a_formula(kind, formula):
    op = symgrad.elementwise(f"wrong_{kind.replace(' ', '_')}_{formula is None}".lower(), lambda xp, x: xp.sin(x), RULES[kind])
    report = accuracy(op, (0.1, 10.0), formula=formula, order=2, points=4)
    assert report.verdict == "refuted" and 1 in {w.order for w in report.wrong} and report.of_order(0).verdict == "accurate"


def power(n, backward):
    """x to the power of n, with a pullback."""
    class Power(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**n

        @staticmethod
        def backward(ctx, g):
            return g * backward(*ctx.saved_tensors)

    return Power.apply


def half(x):
    return 1.01 if x.dtype == symgrad.float32 else 1


class TestOrdersAndDtypes:
    @pytest.mark.parametrize("second", [lambda x: 0.7 * np.exp(x), lambda x: np.exp(x) + THIRD, lambda x: np.where(x > ROOT, 0, np.exp(x))])
    def test_a_wrong_hessian(self, second):
        report = accuracy((np.exp, np.exp, second), (-3.0, 3.0), formula="exp(x)", points=8)
        assert report.verdict == "refuted" and {w.order for w in report.wrong} == {2}

    @pytest.mark.parametrize("n, backward", [(3, lambda x: 3 * x.detach() * x), (3, lambda x: 3 * (x * x).detach()), (2, lambda x: 2 * x.detach())])
    def test_a_wrong_second_derivative_of_a_function(self, n, backward):
        report = accuracy(power(n, backward), (0.1, 10.0), points=4)
        assert report.verdict == "refuted" and {w.order for w in report.wrong} == {2}

    @pytest.mark.parametrize("slope", [
        lambda x: np.cos(x) * (1.01 if x.dtype == np.float32 else 1), lambda x: np.cos(x) + (0.001 if np.asarray(x).itemsize == 4 else 0)])
    def test_wrong_in_one_dtype_of_arrays(self, slope):
        right, wrong = (accuracy((np.sin, slope), (0.1, 10.0), formula="sin(x)", order=1, points=4, dtype=dtype) for dtype in ("float64", "float32"))
        assert (right.verdict, wrong.verdict) == ("accurate", "refuted")

    def test_wrong_in_one_dtype_of_tensors(self):
        function = power(3, lambda x: 3 * x * x * half(x))
        right, wrong = (accuracy(function, (0.1, 10.0), order=1, points=4, dtype=dtype) for dtype in ("float64", "float32"))
        assert (right.verdict, wrong.verdict) == ("accurate", "refuted")

    def test_a_wrong_value(self):
        report = accuracy(lambda x: x.sin(), (0.5, 1.0), formula="sin(x) + x**30 / 10**12", points=8, order=0)
        assert report.verdict == "refuted" and report.wrong[0].order == 0 and "the value is wrong: at x = " in str(report)


LOSSY = {  # right derivatives that lose digits, of functions with their formulas and domains
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, "tanh(x)", (-30.0, 30.0)),
    "plain": (math.tanh, lambda x: 1 - math.tanh(x) ** 2, "tanh(x)", (0.0, 30.0)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), lambda x: (1 - 1 / (1 + np.exp(-x))) / (1 + np.exp(-x)), "sigmoid(x)", (-40.0, 60.0)),
    "roots": (lambda x: np.sqrt(x + 1) - np.sqrt(x), lambda x: (1 / np.sqrt(x + 1) - 1 / np.sqrt(x)) / 2, "sqrt(x + 1) - sqrt(x)", (1.0, 1e12)),
    "term": (np.log, lambda x: (1 / x + THIRD) - THIRD, "log(x)", (1.0, 1e12)),
    "overflow": (lambda x: np.log(1 + np.exp(x)), lambda x: np.exp(x) / (1 + np.exp(x)), "log(1 + exp(x))", (600.0, 800.0))}


@pytest.mark.parametrize("name", LOSSY)
@pytest.mark.filterwarnings("ignore")
def test_lost_digits_are_not_called_wrong(name):
    value, slope, formula, domain = LOSSY[name]
    report = accuracy((value, slope), domain, formula=formula, order=1, points=8)
    assert report.verdict == "imprecise" and not report.wrong and "digits are lost" in report.summary


def test_numbers_of_a_program_that_cannot_be_followed_may_be_wrong():
    report = accuracy(lambda x: (1 - math.cos(x)) / float(x) ** 2, (1e-9, 1.0), formula="2*sin(x/2)**2/x**2", order=0, points=8)
    assert report.verdict == "imprecise" and any("the steps of <lambda> cannot be followed" in note for note in report.notes)
    gross = accuracy((math.sin, lambda x: 1.0 if x > 3 else math.cos(x)), (0.0, 10.0), formula="sin(x)", order=1, points=8)
    assert gross.verdict == "refuted"
