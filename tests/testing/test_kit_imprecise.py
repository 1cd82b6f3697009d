"""Lost digits in the testing kit: `imprecise` if the formula's own rounded steps lose as much, else `failed`."""

import json
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad.testing import CheckFailure, check_op, check_pullback, check_value
from tests.check.test_imprecise import sigmoid, slope, softplus

pytest_plugins = "pytester"


def root(x):
    return np.sqrt(x * x + 1)


def attack(function, formula, **claims):
    return check_op(function, formula=formula, raise_exception=False, **claims)


IMPRECISE = {
    "overflow of a square": (root, "sqrt(x**2 + 1)", dict(gradient=lambda x: x / root(x)), "where |x| > "),
    "overflow of exp": (softplus, "log(1 + exp(x))", dict(gradient=sigmoid), "points, x from "),
    "cancellation in the value": (lambda x: 1 - np.cos(x), "1 - cos(x)", dict(gradient=np.sin), "points, x from -0.0"),
    "cancellation in the gradient": (np.tanh, "tanh(x)", dict(gradient=slope), "points, x from "),
    "cancellation in the second derivative": (lambda x: symgrad.sqrt(x * x + 1), "sqrt(x**2 + 1)", {}, "where |x| > "),
    "a function as the formula": (lambda x: 1 - symgrad.cos(x), lambda x: 1 - symgrad.cos(x), dict(elementwise=True), "points, x from -0.0"),
    "a function of a namespace as the formula": (lambda x: 1 - symgrad.cos(x), lambda xp, x: 1 - xp.cos(x), dict(elementwise=True),
                                                 "points, x from -0.0"),
    "an array in a narrow type": (lambda x: symgrad.log(symgrad.exp(x).sum()), "log(exp(x[0]) + exp(x[1]))", dict(shapes=((2,),)), "for float"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", IMPRECISE)
def test_lost_digits_are_imprecise_in_a_region(what):
    function, formula, claims, region = IMPRECISE[what]
    report = attack(function, formula, **claims)
    assert report.verdict == "imprecise" and not report and report.failures, str(report)
    for failure in report.failures:
        assert failure.verdict == "imprecise" and ": imprecise: digits are lost in the " in failure.headline and "at worst" in failure.headline
    assert any(region in failure.headline for failure in report.failures), [f.headline for f in report.failures]
    assert {r.verdict for r in report.results} == {"passed", "imprecise", "not applicable"}


@pytest.mark.sweep
@pytest.mark.parametrize("what", ["overflow of a square", "an array in a narrow type"])
def test_a_claim_allows_lost_digits_and_the_result_lists_them(what):
    function, formula, claims, _ = IMPRECISE[what]
    report = attack(function, formula, imprecise=True, **claims)
    assert report and any("digits are lost" in r.reason for r in report.results if r.verdict == "passed")


WRONG = {
    "a factor": (softplus, "log(1 + exp(x))", lambda x: 1.5 * sigmoid(x)),
    "a factor on one side of a cancellation": (np.tanh, "tanh(x)", lambda x: slope(x) * np.where(x < -1, 1.1, 1.0)),
    "a small factor": (np.tanh, "tanh(x)", lambda x: slope(x) * (1 + 1e-9)),
    "another slope at large numbers": (root, "sqrt(x**2 + 1)", lambda x: np.where(np.abs(x) > 1e7, 2.0, 1.0) * x / root(x)),
    "no slope near a cancellation": (lambda x: 1 - np.cos(x), "1 - cos(x)", lambda x: np.where(np.abs(x) < 1e-2, 0.0, np.sin(x))),
}


@pytest.mark.sweep
@pytest.mark.parametrize("claims", [{}, {"imprecise": True}])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_results_are_reported_before_lost_digits(what, claims):
    function, formula, gradient = WRONG[what]
    report = attack(function, formula, gradient=gradient, **claims)
    assert report.verdict == "failed" and not report
    first = report.failures[0]
    assert first.verdict == "failed" and first.check == "pullback" and first.wrong.what == "the gradient is wrong", str(first)
    if what != "another slope at large numbers":
        assert 1e-3 <= abs(float(first.inputs["x"])) <= 10
    with pytest.raises(CheckFailure, match="the gradient is wrong"):
        check_op(function, formula=formula, gradient=gradient, **claims)


@pytest.mark.sweep
def test_an_error_at_every_ordinary_point_is_wrong_in_a_type_whose_rounding_would_explain_it():
    def function(x):
        return np.where(x.dtype == np.float16, np.sin(x) * np.asarray(1.1, x.dtype), np.sin(x)).astype(np.promote_types(x.dtype, np.float16))

    report = attack(function, "sin(x)", gradient=np.cos, domain=(-3, 3))
    assert report.verdict == "failed" and report.failures[0].wrong.what == "the value for float16 is wrong", str(report)


def test_a_given_input_has_the_same_verdict():
    with pytest.raises(CheckFailure, match="pullback: imprecise: digits are lost in the gradient"):
        check_pullback(np.tanh, gradient=slope, formula="tanh(x)", inputs=[np.array(10.0)])
    with pytest.raises(CheckFailure, match="pullback: the gradient is wrong"):
        check_pullback(np.tanh, gradient=lambda x: 1.1 * slope(x), formula="tanh(x)", inputs=[np.array(10.0)])
    assert check_value(root, formula="sqrt(x**2 + 1)", inputs=[np.array(1e200)], imprecise=True).verdict == "passed"


FILE = """
import numpy as np
from symgrad.testing import op

@op(formula="sqrt(x**2 + 1)"{claim})
def root(x):
    return np.sqrt(x * x + 1)
"""


@pytest.mark.sweep
def test_pytest_counts_imprecise_checks(pytester):
    pytester.makepyfile(test_ops=FILE.format(claim=""))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--symgrad-checks=value", "--symgrad-report=said.json")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["symgrad: 1 op, 1 check, 0 failed, 1 imprecise (profile dev, seed 0)"])
    data = json.loads(Path("said.json").read_text())
    assert data["total"]["imprecise"] == 1 and data["ops"][0]["verdict"] == data["ops"][0]["checks"][0]["verdict"] == "imprecise"
    pytester.makepyfile(test_ops=FILE.format(claim=", imprecise=True"))
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "--symgrad-checks=value").assert_outcomes(passed=1)
