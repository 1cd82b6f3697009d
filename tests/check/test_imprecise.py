"""Lost digits and wrong derivatives: `imprecise` if the formula's own rounded steps lose as much, else `refuted`."""

import os
import subprocess
import sys

import numpy as np
import pytest

import symgrad


def check(function, formula, **options):
    return symgrad.check(function, formula=formula, order=1, progress=False, **options)


def softplus(x):
    return np.log(1 + np.exp(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slope(x):
    return 1 - np.tanh(x) ** 2


IMPRECISE = {
    "absorption": ((softplus, sigmoid), "log(1 + exp(x))"),
    "cancellation in the value": ((lambda x: 1 - np.cos(x), np.sin), "1 - cos(x)"),
    "cancellation in the gradient": ((np.tanh, slope), "tanh(x)"),
    "overflow": ((sigmoid, lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2), "1/(1 + exp(-x))"),
    "underflow of squares": ((lambda x: np.sqrt(np.sum(x * x)), lambda x: x / np.sqrt(np.sum(x * x))), "sqrt(x[0]**2 + x[1]**2)"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", IMPRECISE)
def test_a_right_function_that_loses_digits_is_imprecise(what):
    report = check(*IMPRECISE[what])
    assert report.verdict == "imprecise" and not report and report.counterexample.explained, str(report)
    assert "wherever floats can show it" in report.reason and not any(a.wrong for a in report.agreements)
    assert all("digits are lost" in a.hint or "not finite" in a.hint for a in report.agreements if a.imprecise)


WRONG = {
    "no slope in the tail": ((softplus, lambda x: np.where(x < -40, 0.0, sigmoid(x))), "log(1 + exp(x))"),
    "another slope where exp does not overflow": ((softplus, lambda x: np.where(x > 200, 2.0, sigmoid(x))), "log(1 + exp(x))"),
    "no slope in a band around a cancellation": ((lambda x: 1 - np.cos(x), lambda x: np.where(abs(x) < 1e-6, 0.0, np.sin(x))), "1 - cos(x)"),
    "a factor beside a cancellation": ((np.tanh, lambda x: slope(x) * (1 + 1e-9)), "tanh(x)"),
    "a factor on one side": ((np.tanh, lambda x: slope(x) * np.where(x < -1, 1.1, 1.0)), "tanh(x)"),
    "a slope at large numbers": ((lambda x: x**2, lambda x: np.where(abs(x) > 1e7, 3 * x, 2 * x)), "x**2"),
    "no slope at tiny numbers": ((lambda x: x**2, lambda x: np.where(abs(x) < 1e-100, 0 * x, 2 * x)), "x**2"),
    "not a number at an ordinary point": ((np.tanh, lambda x: np.where(x == 1.0, np.nan, slope(x))), "tanh(x)"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_derivative_is_refuted_whether_digits_are_lost_elsewhere_or_not(what):
    report = check(*WRONG[what])
    assert report.verdict == "refuted" and not report.counterexample.explained and report.counterexample.order == 1, str(report)


@pytest.mark.sweep
def test_a_wrong_derivative_is_named_before_lost_digits_with_an_ordinary_point():
    report = check((softplus, lambda x: sigmoid(x) * 1.5), "log(1 + exp(x))")
    found = report.counterexample
    assert report.agreements[0].imprecise and not report.agreements[0].wrong
    assert report.verdict == "refuted" and found.where == "df/dx" and abs(found.point["x"]) <= 10 and report.reason.startswith("df/dx is ")
    assert found.value == pytest.approx(1.5 * found.truth)


def mean_of_squares(x):
    return (x * x).mean() - x.mean() ** 2


MEAN = "(x[0] + x[1] + x[2])/3"
VARIANCE = " + ".join(f"(x[{i}] - {MEAN})**2/3" for i in range(3))
OTHERWISE = {
    "a sum and a difference": (lambda x: (1 + x) - 1, lambda x: 1.0 + 0 * x, "x", "sub(", "|x| from 1e-300 to "),
    "a root": (lambda x: np.sqrt(1 + x) - 1, lambda x: 0.5 / np.sqrt(1 + x), "x/(sqrt(1 + x) + 1)", "sub(", "|x| "),
    "an inverse": (lambda x: np.log(np.exp(x)), lambda x: np.exp(x) / np.exp(x), "x", "exp(1000)", "by log, and it is not finite at "),
    "a variance": (mean_of_squares, lambda x: 2 * (x - x.mean()) / 3, VARIANCE, "sub(", ""),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", OTHERWISE)
def test_a_program_that_computes_the_formula_otherwise_is_imprecise_with_the_operation_that_loses_the_digits(what):
    function, gradient, formula, operation, region = OTHERWISE[what]
    report = check((function, gradient), formula, points=40)
    assert report.verdict == "imprecise" and report.counterexample.operation.startswith(operation), str(report)
    assert f"digits are lost in {report.counterexample.operation}: " in report.reason
    assert region in report.agreements[0].hint and ", by " in report.agreements[0].hint, report.agreements[0].hint


OTHERWISE_WRONG = {
    "a millionth": ((OTHERWISE["a sum and a difference"][0], lambda x: 1 + 1e-6 + 0 * x), "x"),
    "a millionth of a root": ((OTHERWISE["a root"][0], lambda x: 0.5 * (1 + 1e-6) / np.sqrt(1 + x)), "x/(sqrt(1 + x) + 1)"),
    "beyond a number": ((OTHERWISE["an inverse"][0], lambda x: np.where(x > 20, 1.0001, 1.0) * np.exp(x) / np.exp(x)), "x"),
    "on one side": ((mean_of_squares, lambda x: 2 * (x - x.mean()) / 3 * np.where(x > 3, 1.01, 1.0)), VARIANCE),
    "where the value has no digits": ((OTHERWISE["a sum and a difference"][0], lambda x: np.where(abs(x) < 1e-20, 0.0, 1.0)), "x"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", OTHERWISE_WRONG)
def test_a_wrong_derivative_of_such_a_program_is_refuted(what):
    report = check(*OTHERWISE_WRONG[what], points=40)
    assert report.verdict == "refuted" and report.reason.startswith("df/dx") and not report.counterexample.explained, str(report)
    assert what == "where the value has no digits" or np.all(np.abs(report.counterexample.point["x"]) <= 100)


@pytest.mark.sweep
def test_own_functions_and_narrow_types_are_imprecise():
    assert check(lambda x: symgrad.log(symgrad.exp(x)), "x").verdict == "imprecise"
    report = symgrad.check(lambda x: (1 + x) - 1, np.float32(0.5), formula="x", progress=False)
    assert report.verdict == "imprecise" and report.counterexample.point["x"] == np.float32(report.counterexample.point["x"])


@pytest.mark.sweep
def test_tolerances_and_the_range_of_the_points():
    pair, formula = IMPRECISE["cancellation in the value"]
    assert check(pair, formula, atol=1e-12).verdict == "verified"
    assert check(pair, formula, range=(0.1, 1e10)).verdict == "verified"
    assert check((np.tanh, slope), "tanh(x)", ulp=1e18).verdict == "verified"
    assert check((np.sin, lambda x: np.cos(x) * (1 + 1e-7)), "sin(x)", rtol=1e-6).verdict == "verified"
    assert check((np.sin, lambda x: np.cos(x) * (1 + 1e-5)), "sin(x)", rtol=1e-6).verdict == "refuted"
    for options in ({"atol": -1.0}, {"rtol": float("nan")}, {"range": (2.0, 1.0)}, {"range": (1.0,)}):
        with pytest.raises(ValueError, match="check: (atol|rtol|range) is"):
            check(pair, formula, **options)


FILE = """
import numpy as np
def loss(x):
    return 1 - np.cos(x), np.sin(x)
def wrong(x):
    return np.sin(x), np.cos(x) * 1.1
"""


def run(tmp_path, *arguments, shell=""):
    (tmp_path / "model.py").write_text(FILE)
    command = f"{sys.executable} -m symgrad check {' '.join(arguments)} --quiet {shell}"
    return subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=dict(os.environ))


@pytest.mark.sweep
def test_lost_digits_are_exit_code_0_with_a_line_on_standard_error_and_3_where_strict(tmp_path):
    arguments = "model.py:loss", "--returns pair --order 1", "--formula '1-cos(x)'"
    done = run(tmp_path, *arguments)
    assert done.returncode == 0 and done.stdout.startswith("loss (numpy): imprecise") and "digits are lost" in done.stderr
    assert run(tmp_path, *arguments, "--strict").returncode == 3
    for allowed in ("--atol 1e-12", "--range 0.1,1e10", "--rtol 2"):
        done = run(tmp_path, *arguments, "--strict", allowed)
        assert done.returncode == 0 and not done.stderr, done.stderr
    assert run(tmp_path, *arguments, "--range x").returncode == 2
