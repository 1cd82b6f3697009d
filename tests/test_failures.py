"""Reports of failures: everything stands in them, the input is the simplest, and the code in them makes the same failure happen again."""

import io
import json
import pickle
import re
import threading
import time

import ml_dtypes
import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

import symgrad
from symgrad.domains import POSITIVE, Domain, Interval
from symgrad.testing import CheckFailure, check_linearity, check_op, check_pullback, check_pushforward, check_value, shrinking
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS
from symgrad.testing.checks.base import Check, attempt, run
from symgrad.testing.drawing import Example
from symgrad.testing.failure import Failure, NotApplicable, OpReport, Result, Wrong, digits, shown
from symgrad.testing.shrinking import simplest
from symgrad.testing.snippets import Code

# Ops that a snippet imports from here


def sine(x):
    return np.sin(x)


def slope(x):
    return np.cos(x)


def slope_below(x):
    return np.where(x < -1, 1.000001, 1.0) * np.cos(x)


def product(x, y):
    return x * y


def product_back(g, x, y):
    return g * y + 1e-3 * (x > 2), g * x


def product_forward(ts, x, y):
    return ts[0] * y - ts[1] * x


def multiply(a, b):
    return a @ b


def multiply_back(g, a, b):
    return g @ b.T, (a.T @ g) * (1.001 if abs(a[0, 1]) > 1 else 1.0)


def multiply_formula(xp, a, b):
    return xp.matmul(a, b)


def raises_above(x):
    if np.any(np.asarray(x) > 3):
        raise ValueError("too large:\nthe second line")
    return np.sin(x)


def loses_an_equal_pair(x):
    out = np.sin(x)
    if x.ndim and len(np.unique(x)) < x.size:
        out = out + 1
    return out


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * x * g


def tensors(x):
    return symgrad.sin(x) + 1e-6 * x


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(shrinking, "SECONDS", 60.0)


def failure_of(check, op, **claims):
    with pytest.raises(CheckFailure) as caught:
        check(op, **claims)
    return caught.value.failure


def body_check(body, draws="points", name="own"):
    return Check(name, body, draws, lambda attack: "", None, check_value)


def failed(body, op=sine, draws="points", **claims):
    claims = {"framework": "numpy", **claims}
    return run(body_check(body, draws), Attack(op, **claims)).failure


def values(failure):
    return [x.tolist() for x in failure.inputs.values()]


# The snippet

SNIPPETS = {
    "gradient": (check_pullback, (sine, slope_below), {"formula": "sin(x)", "domain": "real"}),
    "pullback": (check_pullback, product, {"formula": "x*y", "pullback": product_back}),
    "pushforward": (check_pushforward, product, {"formula": "x*y", "pullback": product_back, "pushforward": product_forward}),
    "linearity": (check_linearity, product, {"formula": "x*y", "pullback": product_back}),
    "matrices": (check_pullback, multiply, {"formula": multiply_formula, "shapes": ((1, 2), (2, 1)), "pullback": multiply_back}),
    "raises": (check_value, raises_above, {"formula": "sin(x)"}),
    "Function": (check_pullback, Cube, {"formula": "x^3"}),
    "tensors": (check_pullback, tensors, {"formula": sympy.sin(sympy.Symbol("x")), "domain": POSITIVE}),
    "wrong formula of an op": (check_value, symgrad.exp, {"formula": "exp(input) + 1e-6", "domain": {"input": (-3, 3)}}),
    "value": (check_value, loses_an_equal_pair, {"formula": "sin(x)", "profile": "ci", "ulp": 4}),
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_the_snippet_runs_as_printed_and_fails_in_the_same_way(name):
    check, op, claims = SNIPPETS[name]
    first = failure_of(check, op, **claims)
    assert "# define" not in first.snippet and first.snippet in textwrap_dedented(str(first))
    with pytest.raises(CheckFailure) as caught:
        exec(compile(first.snippet, "snippet", "exec"), {})
    again = caught.value.failure
    assert (again.check, again.wrong.what, again.wrong.order, again.wrong.wrt) == (first.check, first.wrong.what, first.wrong.order, first.wrong.wrt)
    assert again.inputs.keys() == first.inputs.keys()
    assert all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(again.inputs.values(), first.inputs.values()))
    assert shown(again.wrong.returned) == shown(first.wrong.returned) and again.wrong.ulp == first.wrong.ulp
    assert again.snippet == first.snippet


def textwrap_dedented(text):
    return "\n".join(line[4:] if line.startswith("    ") else line for line in text.splitlines())


def test_what_cannot_be_imported_is_said():
    found = failure_of(check_pullback, (lambda x: np.sin(x), lambda x: np.cos(x) + 1), formula=lambda xp, x: xp.sin(x))
    assert found.snippet.splitlines()[2:5] == [f"# define {name} here; it cannot be imported" for name in ("op", "formula", "gradient")]
    names = {"op": np.sin, "gradient": lambda x: np.cos(x) + 1, "formula": lambda xp, x: xp.sin(x)}
    with pytest.raises(CheckFailure, match="the gradient is wrong"):
        exec(compile(found.snippet, "snippet", "exec"), names)


def test_cotangent_and_tangents_stand_in_it_only_where_they_are_not_ones():
    assert "cotangent" not in failure_of(check_pullback, (sine, slope_below), formula="sin(x)").snippet
    g, t = np.array([0.5, -0.0]), np.array([3.0, 1.0])
    found = failure_of(check_pushforward, product, formula="x*y", pullback=product_back, pushforward=product_forward, inputs=[g, t], cotangent=g,
                       tangents=[(g, t)] * 3)
    assert "cotangent=np.array([0.5, -0.0])" in found.snippet
    assert "tangents=[(np.array([0.5, -0.0]), np.array([3.0, 1.0]))" in found.snippet


@pytest.mark.parametrize("value", [
    np.array(-0.0), np.array([np.nan, np.inf, -np.inf, 5e-324]), np.array([[0.1, 1 / 3]], np.float32), np.array([0.1, 65504], np.float16),
    np.array([0.1, 3.0], ml_dtypes.bfloat16), np.array([True, False]), np.array([1, -2]), np.array([1, 2], np.int32), np.zeros((0, 3)),
    np.zeros((2, 0), np.float32), np.array([complex(-0.0, np.nan), 1e-300j]), np.array(2 + 0j, np.complex64), np.float32(0.1), 1e-300, -0.0,
    float("inf"), 1 - 2j, True, None, "a'b", (1.0,), [1, (2, slice(None, 3))], {"x": (0, 1)}, ..., np.dtype("float32"), POSITIVE,
    Domain("odd", (Interval(-1.0, 0.0, True), Interval(2.0, 3.0)), (2.5,)), Domain("[0, 1]", (Interval(0.0, 1.0),)), sympy.Symbol("x") / 3,
    sympy.besselj(0, sympy.Symbol("y", positive=True)), sympy.Interval(0, 1), sympy.Matrix([1, sympy.pi])],
    ids=[f"value{i}" for i in range(32)])
def test_a_value_is_written_so_that_it_comes_back_to_the_last_bit(value):
    code = Code()
    text = code.of(value)
    names = {}
    exec("\n".join([*code.imports, *(f"from {m} import {', '.join(sorted(names))}" for m, names in code.names.items())]), names)
    back = eval(text, names)
    assert code.undefined == []
    if isinstance(value, (np.ndarray, np.generic)):
        assert type(back) is type(value) and back.dtype == value.dtype and back.shape == value.shape and back.tobytes() == value.tobytes()
    elif isinstance(value, Domain):
        from symgrad.checking.foreign.domains import domain_of

        assert [getattr(domain_of(back), f) for f in ("intervals", "excluded", "integer")] == [value.intervals, value.excluded, value.integer]
    elif isinstance(value, (float, complex)):
        assert repr(back) == repr(value)
    elif isinstance(back, str) and isinstance(value, sympy.Expr):
        assert back == str(value) == "x/3"
    else:
        assert back == value


# The simplest input

def test_an_element_of_a_long_vector_becomes_a_number():
    x = np.linspace(-2.7, 9.3, 100)
    attack = Attack((sine, slope_below), formula="sin(x)")
    example = Example((x,), np.linspace(0.3, 1.7, 100), ((np.full(100, 0.3),),) * 3)
    wrong = attempt(CHECKS["pullback"], attack, example)
    found = simplest(CHECKS["pullback"], attack, example, wrong)
    assert found.inputs["x"].shape == () and found.inputs["x"] == -2.0 and found.given["cotangent"] == 1.0
    assert "inputs=[np.array(-2.0)])" in found.snippet and "cotangent" not in found.snippet


def test_two_arguments_become_simple_together():
    found = failure_of(check_pullback, product, formula="x*y", pullback=product_back)
    assert values(found) == [3.0, 1.0] and found.given["cotangent"].tolist() == 1.0


def test_a_number_in_a_tail_becomes_a_round_one():
    def far(attack, example):
        if np.any(np.abs(example.xs[0]) > 71):
            raise Wrong("far")

    assert values(failed(far)) == [100.0]
    (x,) = values(failed(far, domain=(-80, -3)))
    assert -80 <= x < -71 and x.is_integer()


def test_what_only_shows_in_arrays_keeps_the_smallest():
    def equal_pair(attack, example):
        if len(np.unique(example.xs[0])) < example.xs[0].size:
            raise Wrong("two are equal")

    def long(attack, example):
        if example.xs[0].size > 4:
            raise Wrong("long")

    def square(attack, example):
        if example.xs[0].ndim > 1:
            raise Wrong("two axes")

    assert values(failed(equal_pair)) == [[1.0, 1.0]]
    assert values(failed(long)) == [[1.0] * 5]
    assert values(failed(square)) == [[[1.0]]]


def test_broadcasting_stays_what_it_is():
    def both(attack, example):
        x, y = example.xs
        if x.shape != y.shape and x.size > 1 and y.size > 1:
            raise Wrong("both are spread")

    found = failed(both, product, "broadcast", pullback=product_back)
    x, y = found.inputs.values()
    assert x.shape != y.shape and max(x.size, y.size) <= 4 and set(x.ravel()) | set(y.ravel()) == {1.0}
    assert np.broadcast_shapes(x.shape, y.shape)


def test_matrices_are_made_simple_by_hypothesis_which_says_how_to_find_them_again():
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((2, 2), (2, 3)), pullback=multiply_back)
    a, b = found.inputs.values()
    assert abs(a[0, 1]) > 1 and sum(len(repr(v)) for v in a.ravel().tolist()) <= 16 and np.all(found.given["cotangent"] == 1)
    assert "@reproduce_failure(" in found.seed and "@hypothesis.seed(0); seed=0" in found.seed


def test_numbers_stay_in_their_domain():
    def always_wrong(attack, example):
        raise Wrong("always")

    (x,) = values(failed(always_wrong, domain=(20, 30)))
    assert 20 <= x <= 30 and x.is_integer()
    assert values(failed(always_wrong, domain="positive")) == [1.0]
    assert values(failed(always_wrong, draws="empty"))[0] == []


def test_complex_numbers_become_simple():
    def off_the_axis(attack, example):
        if np.any(np.imag(example.xs[0]) < 0):
            raise Wrong("below")

    assert values(failed(off_the_axis, draws="complex")) == [-1j]


def test_another_failure_is_not_taken_for_the_same():
    def two(attack, example):
        if np.any(example.xs[0] > 1.5):
            raise Wrong("large", order=1)
        raise ZeroDivisionError("small")

    x = np.array([0.25, 3.7])
    attack, example = Attack(sine, framework="numpy"), Example((x,), np.ones(2), ((np.ones(2),),) * 3)
    found = simplest(body_check(two), attack, example, attempt(body_check(two), attack, example))
    assert (found.wrong.what, values(found)) == ("large", [2.0])


def test_given_inputs_are_reported_as_they_are():
    x = np.array([-3.7, 0.25])
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)", inputs=[x])
    assert np.array_equal(found.inputs["x"], x) and found.wrong.index == (0,)


def test_without_shrinking_the_first_example_is_reported():
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)", shrink=False)
    assert found.inputs["x"].size > 1


# What is random, has a state, or is interrupted

def test_what_does_not_fail_again_is_said_and_not_searched():
    calls = []

    def third(attack, example):
        calls.append(1)
        if len(calls) == 3:
            raise Wrong("the third time")

    found = failed(third)
    assert found.wrong.what == "the third time" and "did not fail again at the same input" in found.note and "note: it did" in str(found)
    assert len(calls) == 4


def test_what_fails_by_chance_never_breaks_the_report():
    rng = np.random.default_rng(0)

    def sometimes(attack, example):
        if rng.random() < 0.5:
            raise Wrong("by chance")

    for _ in range(5):
        assert failed(sometimes).wrong.what == "by chance"
        assert failed(sometimes, multiply, shapes=((2, 2), (2, 2))).wrong.what == "by chance"


def test_an_interrupt_goes_through():
    seen = []

    def interrupted(attack, example):
        seen.append(1)
        if len(seen) > 3:
            raise KeyboardInterrupt
        raise Wrong("wrong")

    for claims in ({}, {"op": multiply, "shapes": ((2, 2), (2, 2))}):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            failed(interrupted, **claims)


def test_a_check_that_does_not_apply_says_so():
    def refuses(attack, example):
        raise NotApplicable("because")

    result = run(body_check(refuses), Attack(sine))
    assert (result.verdict, result.reason) == ("not applicable", "because") and result


@settings(max_examples=1, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 3))
def test_inside_a_test_of_hypothesis_all_is_as_outside(n):
    assert values(failure_of(check_pullback, (sine, slope_below), formula="sin(x)")) == [-2.0]
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((1, 2), (2, 1)), pullback=multiply_back)
    assert "Flaky" not in str(found)


def test_in_threads_all_is_as_outside():
    found = []
    threads = [threading.Thread(target=lambda: found.append(failed(lambda a, e: attempt_below(e), sine))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [values(f) for f in found] == [[-2.0]] * 3


def attempt_below(example):
    if np.any(example.xs[0] < -1):
        raise Wrong("below")


# What stands in a report

def sample(wrong=None):
    with mpmath.workdps(50):
        third = mpmath.mpf(1) / 3
    wrong = wrong or Wrong("the gradient is wrong", np.float64(0.5), third, order=1, ulp=1.5e15, exact="the formula x/3", wrt=(1,))
    parts = {"difference": sympy.Symbol("y") / 6, "snippet": "import symgrad\n\nf(1)", "seed": "seed 0", "command": "pytest x::y"}
    return Failure("op", "pullback", wrong, {"x": np.array(-2.0), "y": np.array([1.0, 2.0], np.float32)}, (3,), {"cotangent": np.array(1.0)}, **parts)


TEXT = """op: pullback: the gradient is wrong

At
  x          float64 ()    -2.0
  y          float32 (2,)  [1.0, 2.0]
  cotangent  float64 ()    1.0
  further                  3

Derivative of order 1, by y
  returned  0.5
  true      0.333333333333333333333
  error     1.5e+15 ULP
exact is the formula x/3
returned - true = y/6
to see it again:
    import symgrad

    f(1)
or: pytest x::y
seed 0"""


def test_everything_stands_in_the_text():
    assert str(sample()) == TEXT


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
    assert re.fullmatch(r"raised in test_failures\.py, line \d+, in raises_above", lines[2])
    assert values(found) == [4.0]


def test_the_test_that_was_running_is_named(monkeypatch):
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)")
    assert found.command == "pytest tests/test_failures.py::test_the_test_that_was_running_is_named"
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
    assert shown(np.array([[0.1, -0.0], [np.inf, 1e-300]])) == "[[0.1, -0.0], [inf, 1e-300]]"
    assert shown(np.float16(0.1)) == "0.1" and shown(2.5) == "2.5" and "..." in shown(np.zeros(1000))
    with mpmath.workdps(40):
        assert digits(mpmath.mpf(1) / 3) == "0.333333333333333333333"
        assert digits(np.array([mpmath.mpf(1) / 7, None], dtype=object)) == "[0.142857142857142857143, None]"


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
    odd = sample(wrong=Wrong("x", np.array([np.nan, np.inf]), 1 + 2j, ulp=np.inf)).as_dict()
    assert json.loads(json.dumps(odd, allow_nan=False))["returned"]["values"] == ["nan", "inf"] and odd["ulp"] == "inf"
    assert json.loads(Result("value", "passed", examples=3).to_json())["failure"] is None
    assert OpReport("op", "dev", 0).verdict == "not checkable"


def test_a_search_ends_in_time(monkeypatch):
    monkeypatch.setattr(shrinking, "SECONDS", 0.0)
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((2, 2), (2, 3)), pullback=multiply_back)
    assert found.inputs["a"].shape == (2, 2) and not found.note


def test_a_failure_can_be_pickled():
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    again = pickle.loads(pickle.dumps(CheckFailure(found)))
    assert str(again) == str(found) and again.failure.wrong.ulp == found.wrong.ulp


def test_the_difference_is_given_time_and_may_fail(monkeypatch):
    from symgrad.testing import truths

    def slow(attack, wrong):
        time.sleep(30)

    for find, expected in ((lambda attack, wrong: sympy.Symbol("x") / 7, "returned - true = x/7"), (lambda attack, wrong: 1 / 0, None), (slow, None)):
        monkeypatch.setattr(truths, "difference", find, raising=False)
        monkeypatch.setattr(shrinking, "SYMBOLIC", 0.2)
        text = str(failure_of(check_pullback, (sine, slope_below), formula="sin(x)"))
        assert expected in text if expected else "returned - true" not in text
