"""Reports of failures: they are complete as text, Markdown, HTML, in a terminal, and as JSON."""

import io
import json
import pickle
import re

import mpmath
import numpy as np
import pytest
import sympy
from rich.console import Console

from symgrad.testing import CheckFailure, check_op, check_pullback, check_value, shrinking
from symgrad.testing.failure import Failure, OpReport, Result, Wrong, digits, exact_text
from tests.support.failing import failure_of, raises_above, sine, slope_below, values


def sample(wrong=None):
    with mpmath.workdps(50):
        third = mpmath.mpf(1) / 3
    wrong = wrong or Wrong("the gradient is wrong", np.float64(0.5), third, order=1, ulp=1.5e15, exact="the formula x/3", wrt=(1,))
    parts = {"difference": sympy.Symbol("y") / 6, "snippet": "import symgrad\n\nf(1)", "seed": "seed 0", "command": "pytest x::y"}
    return Failure("op", "pullback", wrong, {"x": np.array(-2.0), "y": np.array([1.0, 2.0], np.float32)}, (3,), {"cotangent": np.array(1.0)}, **parts)


def test_a_report_is_markdown_html_and_rich_too():
    found = sample()
    markdown, page = found._repr_markdown_(), found._repr_html_()
    assert markdown.startswith("### op: pullback: the gradient is wrong") and "```python\nimport symgrad\n\nf(1)\n```" in markdown
    assert r"\frac{y}{6}" in markdown and "| returned | 0.5 |" in markdown
    assert "<pre><code>import symgrad\n\nf(1)</code></pre>" in page and "<td>0.333333333333333333333</td>" in page
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    assert "    import symgrad" in text and "1.5e+15 ULP" in text


def test_two_sides_of_which_neither_is_exact_are_expected_not_true():
    text = str(sample(wrong=Wrong("they differ", np.ones(2), np.zeros(2), index=(1,), order=2)))
    assert "  returned at [1]  1.0\n  expected at [1]  0.0" in text and "Derivative of order 2\n" in text and "exact is" not in text


def test_an_exception_is_shown_with_its_place_and_all_its_lines():
    found = failure_of(check_value, raises_above, formula="sin(x)")
    lines = str(found).splitlines()
    assert lines[0] == "raises_above: value: raised ValueError: too large:" and lines[1] == "    the second line"
    assert re.fullmatch(r"raised in failing\.py, line \d+, in raises_above", lines[2])
    assert values(found) == [4.0]


@pytest.mark.sweep
def test_the_test_that_was_running_is_named(monkeypatch):
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)")
    assert found.command == "pytest tests/testing/test_failures.py::test_the_test_that_was_running_is_named"
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "a.py::t[x y] (call)")
    assert failure_of(check_pullback, (sine, slope_below), formula="sin(x)").command == "pytest 'a.py::t[x y]'"
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert failure_of(check_pullback, (sine, slope_below), formula="sin(x)").command == ""


def test_a_real_report_has_both_sides_with_digits_and_ulp():
    text = str(failure_of(check_pullback, (sine, slope_below), formula="sin(x)"))
    assert "returned  -0.4161472526939" in text and f"true      {mpmath.nstr(mpmath.cos(2), 15)}"[:-1] in text
    assert len(re.search(r"true\s+(\S+)", text)[1].replace("-0.", "")) >= 20
    assert re.search(r"error +[\d.e+]+ ULP", text) and "exact is the formula sin(x)" in text and "Derivative of order 1, by x" in text
    assert "x          float64 ()  -2.0" in text


def test_numbers_are_shown_as_they_are_typed():
    assert exact_text(np.array([[0.1, -0.0], [np.inf, 1e-300]])) == "[[0.1, -0.0], [inf, 1e-300]]"
    assert exact_text(np.float16(0.1)) == "0.1" and exact_text(2.5) == "2.5" and "..." in exact_text(np.zeros(1000))
    with mpmath.workdps(40):
        assert digits(mpmath.mpf(1) / 3) == "0.333333333333333333333"
        assert digits(np.array([mpmath.mpf(1) / 7, None], dtype=object)) == "[0.142857142857142857143, None]"


@pytest.mark.sweep
def test_a_report_of_all_checks_has_a_line_for_each_and_the_failures_in_full():
    report = check_op((sine, slope_below), formula="sin(x)", checks=["value", "pullback", "third"], raise_exception=False)
    lines = str(report).splitlines()
    assert lines[0] == "sine: failed" and lines[1].startswith("1 checks passed, 1 failed, 1 do not apply (profile dev, seed 0, ")
    assert "exact is the formula sin(x)" in lines[2]
    assert [line.split()[:2] for line in lines[5:9]] == [["check", "examples"], ["value", "passed"], ["pullback", "failed"], ["third", "not"]]
    assert "sine: pullback: the gradient is wrong" in lines and not report and report.verdict == "failed" and len(report.failures) == 1
    with pytest.raises(CheckFailure, match="sine: pullback: the gradient is wrong"):
        check_op((sine, slope_below), formula="sin(x)", checks=["value", "pullback"])


def test_reports_are_json():
    report = check_op((sine, slope_below), formula="sin(x)", checks=["value", "pullback"], raise_exception=False)
    data = json.loads(report.to_json(indent=2))
    assert [r["check"] for r in data["results"]] == ["value", "pullback"] and data["verdict"] == "failed" and data["op"] == "sine"
    failure = data["results"][1]["failure"]
    assert failure == json.loads(report.failures[0].to_json()) and failure["inputs"] == {"x": {"dtype": "float64", "shape": [], "values": [-2.0]}}
    assert failure["order"] == 1 and failure["by"] == ["x"] and failure["true"].startswith("-0.41614683654714238699") and failure["ulp"] > 1e8
    odd = sample(wrong=Wrong("x", np.array([np.nan, np.inf]), 1 + 2j, ulp=np.inf)).to_dict()
    assert json.loads(json.dumps(odd, allow_nan=False))["returned"]["values"] == ["nan", "inf"] and odd["ulp"] == "inf"
    assert json.loads(Result("value", "passed", examples=3).to_json())["failure"] is None
    assert OpReport("op", "dev", 0).verdict == "not checkable"


def test_a_failure_can_be_pickled():
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    again = pickle.loads(pickle.dumps(CheckFailure(found)))
    assert str(again) == str(found) and again.failure.wrong.ulp == found.wrong.ulp


@pytest.mark.sweep
def test_the_difference_may_fail(monkeypatch):
    for find, expected in ((lambda attack, wrong: sympy.Symbol("x") / 7, "returned - true = x/7"), (lambda attack, wrong: 1 / 0, None)):
        monkeypatch.setattr(shrinking, "difference", find)
        text = str(failure_of(check_pullback, (sine, slope_below), formula="sin(x)"))
        assert expected in text if expected else "returned - true" not in text
