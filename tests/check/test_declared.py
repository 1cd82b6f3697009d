"""A formula that is declared for a function of arrays is a claim: `check` compares it with the values that the function computes."""

import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad.checks.comparing import node_of_another_formula
from symgrad.frameworks.differentiation_task import DifferentiationTask
from symgrad.func import foreign

S = symgrad


def declared(kernel, formula, *slopes):
    """A foreign function with its partial derivatives and the function that is declared as its formula."""
    kernel.__name__ = "kernel"
    function = foreign(kernel)
    function.defjvps(*[lambda t, y, *xs, slope=slope: t * slope(*xs) for slope in slopes])
    function.defformula(formula)
    return function


def check(function, *inputs, **options):
    return symgrad.check(function, *inputs, points=4, order=1, progress=False, **options)


WRONG = {
    "a constant": (declared(lambda x: np.sin(x), lambda x: S.sin(x) + 1 / 3, lambda x: S.cos(x)), [0.7]),
    "another power": (declared(lambda x: x**3, lambda x: x**2, lambda x: 3 * x * x), [1.7]),
    "a factor near 1": (declared(lambda x: np.exp(x), lambda x: S.exp(x) * 1.0000003, lambda x: S.exp(x)), [0.7]),
    "another function below 0.3": (declared(lambda x: np.where(x < 0.3, x, x * x), lambda x: x * x, lambda x: S.where(x < 0.3, 1.0, 2 * x)), [0.7]),
    "the other sign of negative numbers": (declared(lambda x: np.abs(x), lambda x: x, lambda x: S.sign(x)), [0.7]),
    "no upper end": (declared(lambda x: np.minimum(x, 2.7), lambda x: x, lambda x: S.where(x < 2.7, 1.0, 0.0)), [0.7]),
    "arguments in another order": (declared(lambda x, y: x * x - y, lambda x, y: y * y - x, lambda x, y: 2 * x, lambda x, y: -1.0), [0.7, 1.1]),
    "another element of an array": (declared(lambda x: x * x, lambda x: x * x * S.tensor([1.0, 1.0, 1.001]), lambda x: 2 * x), [[0.3, 0.7, 1.3]]),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_a_declared_formula_of_another_function_is_refuted(name, inside):
    function, inputs = WRONG[name]
    report = check((lambda *xs: S.sin(function(*xs) * xs[0])) if inside else lambda *xs: function(*xs), *inputs)
    assert report.verdict == "refuted" and report.counterexample.op == "kernel", str(report)
    assert "kernel declares a formula with another value than its forward computes" in report.reason


RIGHT = {
    "the same": (declared(lambda x: np.sin(x), lambda x: S.sin(x), lambda x: S.cos(x)), [0.7]),
    "another order of roundings": (declared(lambda x: x * x - 1 / 3, lambda x: (x - 3**-0.5) * (x + 3**-0.5), lambda x: 2 * x), [0.7]),
    "a series of few digits": (declared(lambda x: np.float64(np.float32(1)) * x * (1 + 1e-13), lambda x: x, lambda x: 1.0), [0.7]),
    "a special function": (declared(lambda x: scipy.special.expit(x), lambda x: 1 / (1 + S.exp(-x)),
                                    lambda x: S.sigmoid(x) * S.sigmoid(-x)), [0.7]),
    "two arguments": (declared(lambda x, y: x / (1 + y * y), lambda x, y: x * (y**2 + 1) ** -1, lambda x, y: 1 / (1 + y * y),
                               lambda x, y: -2 * x * y / (1 + y * y) ** 2), [0.7, -1.1]),
    "an array": (declared(lambda x: np.tanh(x), lambda x: S.tanh(x), lambda x: 1 / S.cosh(x) ** 2), [[0.3, -0.7, 1.3]]),
    "a formula with a domain": (declared(lambda x: np.log(np.abs(x)), lambda x: S.log(x), lambda x: 1 / x), [3.0]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_formulas_are_not_refuted(name):
    function, inputs = RIGHT[name]
    report = check(lambda *xs: S.sin(function(*xs) * xs[0]), *inputs)
    assert report.ok, str(report)


def test_a_formula_that_loses_digits_at_one_point_is_not_another_one():
    function = declared(lambda x: np.expm1(x), lambda x: S.exp(x) - 1, lambda x: S.exp(x))
    for at, digits in ((1e-12, 5), (0.7, 15)):
        run = DifferentiationTask(lambda x: function(x), (at,)).run([np.array(at)], named=True)
        assert node_of_another_formula(run) is None
        assert abs(function.formula(S.tensor(at)).item() / np.expm1(at) - 1) < 10.0**-(digits - 1)


def test_a_formula_that_raises_elsewhere_is_compared_where_it_runs():
    def formula(x):
        if x.detach().item() < 0:
            raise ArithmeticError("negative")
        return S.sqrt(x)

    right, wrong = (declared(kernel, formula, lambda x: 0.5 / S.sqrt(x)) for kernel in (lambda x: np.sqrt(x), lambda x: np.sqrt(x) + 0.1))
    assert check(lambda x: right(x), 1.7).verdict != "refuted"
    assert check(lambda x: wrong(x), 1.7).verdict == "refuted"
