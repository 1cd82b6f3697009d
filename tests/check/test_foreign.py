"""Cross-checks of functions of other frameworks, by stand-ins that need none of them: findings, regions and texts."""

import io
import json
import math

import numpy as np
import pytest
import sympy
from rich.console import Console

import symgrad
from symgrad.checks.cross import cross_check


def sine(x):
    return np.sin(x)


def tanh(x):
    return np.tanh(x)


TANH = tanh, lambda x: 1 - np.tanh(x) ** 2
SINE = sine, np.cos


def check(function, formula=None, points=15, **options):
    return cross_check(function, options.pop("inputs", ()), formula=formula, points=points, **options)


# What is verified and what is refuted

def test_a_pair_with_the_right_gradient_is_verified_at_so_many_points():
    report = check(SINE, "sin(x)", order=1)
    assert report.verdict == "verified" and report.ok and report.points.random == 15 and report.points.special > 30
    assert "at 15 random and" in report.reason and "within 1000 ULP" in report.reason
    assert [(a.order, a.wrong, a.agrees) for a in report.agreements] == [(0, 0, True), (1, 0, True)]
    assert all(a.worst.ulp < 2 and a.compared == report.points.compared for a in report.agreements)


def test_digits_lost_in_a_tail_are_distinguished_from_a_wrong_derivative():
    report = check(TANH, "tanh(x)", order=1)
    assert report.verdict == "imprecise" and report.counterexample.where == "df/dx" and report.counterexample.order == 1
    value, gradient = report.agreements
    assert value.agrees and not gradient.agrees and gradient.worst.ulp > 1e15
    assert gradient.region.startswith("|x| > ") and gradient.hint == f"digits are lost where {gradient.region}: all of 16, by sub"
    x = report.counterexample.point["x"]
    assert x == round(x) and 4 < abs(x) <= 40  # a simple point
    assert report.counterexample.truth == pytest.approx(1 / math.cosh(x) ** 2, rel=1e-12)


@pytest.mark.sweep
def test_a_gradient_that_is_wrong_everywhere_is_called_wrong():
    report = check((np.sin, lambda x: np.cos(x) * (1 + 1e-7)), "sin(x)", order=1)
    assert report.verdict == "refuted" and "by a relative 1e-07: the derivative itself is wrong" in report.agreements[1].hint
    assert report.counterexample.point == {"x": 0.0} and f"{report.counterexample.value:.9f}" == "1.000000100"


@pytest.mark.sweep
def test_a_gradient_that_is_wrong_in_a_region_is_reported_with_the_region():
    report = check((np.sin, lambda x: np.where(x < -1, 0.5 * x, np.cos(x))), "sin(x)", order=1, points=40)
    hint = report.agreements[1].hint
    assert report.verdict == "refuted" and hint.startswith("the derivative is wrong where x < -1 (from -1.") or "(from -1)" in hint, hint
    assert report.counterexample.point["x"] < -1


@pytest.mark.sweep
def test_the_region_may_be_that_of_a_part_of_the_formula():
    def loss(x, y):
        return np.logaddexp(0, -x * y)

    def gradient(x, y):
        slope = 1 / (1 + np.exp(-x * y)) - 1  # loses its digits for large x*y
        return y * slope, x * slope

    report = check((loss, gradient), "log(1 + exp(-x*y))", order=1, points=60)
    assert report.verdict == "imprecise" and report.agreements[1].region.startswith(("-x*y < -", "x*y > ")), report.agreements[1].region
    assert report.agreements[1].hint.startswith("digits are lost where ")  # though ordinary points are among them


@pytest.mark.sweep
def test_overflow_is_reported_where_the_reference_value_is_finite():
    report = check(lambda x: np.log(1 + np.exp(x)), "log(1 + exp(x))", order=1, framework="numpy", domain=(0, 1000))
    assert report.verdict == "imprecise" and report.counterexample.kind == "not finite" and report.counterexample.order == 0
    assert report.counterexample.truth == pytest.approx(report.counterexample.point["x"]) and "is inf, where the true one is" in report.reason
    assert check((np.exp, np.exp), "exp(x)", order=1).verdict == "verified"  # exp(1000) overflows in truth


def test_numbers_below_the_smallest_normal_one_may_be_zero():
    def flushed(x):
        y = np.exp(x)
        return np.where(y < 2.3e-308, 0.0, y)

    report = check((flushed, flushed), "exp(x)", order=1, domain=(-745, -700))
    assert report.verdict == "verified" and all(a.worst.ulp < 100 for a in report.agreements), str(report)
    assert check((lambda x: np.where(x < -600, 0.0, np.exp(x)), np.exp), "exp(x)", order=1, domain=(-745, 0)).verdict == "refuted"


@pytest.mark.sweep
def test_a_function_that_raises_where_the_formula_has_a_value_is_refuted():
    report = check(lambda x: math.log(1 + math.exp(x)), "log(1 + exp(x))", framework="numpy", domain=(-10, 800))
    assert report.verdict == "refuted" and report.counterexample.kind == "raises"
    assert report.counterexample.message == "OverflowError: math range error" and report.agreements[0].hint.startswith("raises where x > ")
    assert "raises OverflowError" in report.reason


def test_a_function_that_raises_at_every_point_is_not_checkable():
    def broken(x):
        raise RuntimeError("no backend\nmore")

    report = check(broken, "x**2", framework="numpy")
    assert report.verdict == "not checkable" and report.reason == "the function raises at every point, RuntimeError: no backend"
    report = check((np.sin, broken), "sin(x)", order=1)
    assert report.verdict == "not checkable" and "its derivative of order 1 raises at every point" in report.reason
    assert "the value agrees" in report.reason
    assert check(broken).reason.startswith("broken raises RuntimeError: no backend, at x = 1")


@pytest.mark.sweep
def test_a_hessian_that_comes_along_is_compared():
    right = (lambda x, y: x**2 * y, lambda x, y: (2 * x * y, x**2), lambda x, y: [[2 * y, 2 * x], [2 * x, 0]])
    wrong = (*right[:2], lambda x, y: [[2 * y, 2 * x], [2 * y, 0]])
    assert check(right, "x**2*y").verdict == "verified"
    report = check(wrong, "x**2*y")
    assert report.verdict == "refuted" and report.counterexample.where == "d2f/dy dx" and report.agreements[1].agrees
    assert report.agreements[2].method == "the Hessian that comes with it"


@pytest.mark.sweep
def test_the_order_above_the_given_derivatives_is_by_finite_differences():
    report = check(SINE, "sin(x)", order=2)
    assert report.verdict == "verified" and report.agreements[2].method == "finite differences of the gradient"
    assert "order 2 by finite differences of the gradient" in report.reason and report.agreements[2].compared > 10
    report = check(tanh, "tanh(x)", order=2)
    assert [a.method for a in report.agreements] == ["the function", "finite differences of the function"]
    assert "order 2 was not compared" in report.notes[0]


@pytest.mark.sweep
def test_a_function_that_returns_a_pair():
    def both(x, y):
        return x * np.exp(y), (np.exp(y), x * np.exp(y))

    assert check(both, "x*exp(y)", order=1, returns="pair", domain=(-5, 5)).verdict == "verified"
    report = check(lambda x, y: (x * y, (y, 2 * x)), "x*y", order=1, returns="pair")
    assert report.verdict == "refuted" and report.counterexample.where == "df/dy"
    report = check(lambda x: x, "x", returns="pair", framework="numpy")
    assert report.verdict == "not checkable" and "expected (value, gradient)" in report.reason


def test_a_gradient_of_another_size_is_reported():
    report = check((lambda x, y: x * y, lambda x, y: y), "x*y", order=1)
    assert report.verdict == "not checkable"
    assert "has 1 part for 2 arguments; expected one array for each; limit the arguments by wrt" in report.reason
    report = check((lambda x: (x**2).sum(), lambda x: x[:1]), "x[0]**2 + x[1]**2", order=1)
    assert report.verdict == "not checkable" and "by argument 1 has 1 element, but 2 are expected" in report.reason
    assert check((lambda x, y: x * y, lambda x, y: y), "x*y", order=1, wrt=["x"], inputs={"y": 3.0}).verdict == "verified"


@pytest.mark.sweep
def test_numbers_of_few_bits_are_judged_in_their_own_ulp():
    def half(x):
        return np.float32(np.sin(x))

    report = check((half, lambda x: np.float32(np.cos(x))), "sin(x)", order=1, domain=(-3, 3))
    assert report.verdict == "verified" and 0.1 < report.agreements[0].worst.ulp < 1
    assert check((lambda x: np.float64(half(x)), np.cos), "sin(x)", order=1, domain=(-3, 3)).verdict == "refuted"
    seen = []
    report = check((lambda x: seen.append(x.dtype) or np.sin(x), np.cos), "sin(x)", order=1, inputs=[np.float32(1.0)])
    assert report.verdict == "verified" and set(seen) == {np.dtype(np.float32)}


@pytest.mark.sweep
def test_the_bound_can_be_chosen():
    def rough(x):
        return np.exp(x) * (1 + 3e-13)

    assert check((rough, rough), "exp(x)", order=1, ulp=1e4, domain=(-1, 1)).verdict == "verified"
    assert check((rough, rough), "exp(x)", order=1, domain=(-1, 1)).verdict == "refuted"


@pytest.mark.sweep
def test_the_condition_of_a_point_increases_the_allowed_error():
    report = check((lambda x: np.sin(x), np.cos), "sin(x)", order=1, domain=(1e6, 1e9))
    assert report.verdict == "verified" and max(a.worst.condition for a in report.agreements) >= 1
    shifted = (lambda x: np.sin(x * (1 + 1e-15)), lambda x: np.cos(x * (1 + 1e-15)))
    assert check(shifted, "sin(x)", order=1, domain=(1e6, 1e9)).verdict == "verified"  # as if the argument had been rounded a few times
    assert check(shifted, "sin(x)", order=1, domain=(1e6, 1e9), ulp=1).verdict == "refuted"


def test_on_a_kink_only_the_value_is_compared():
    report = check((np.abs, lambda x: 99.0 if x == 0 else np.sign(x)), "abs(x)", order=1)
    assert report.verdict == "verified" and report.points.kinks >= 1
    assert check((lambda x: np.abs(x) + (x == 0), np.sign), "abs(x)", order=1).verdict == "refuted"


def test_points_without_a_derivative_are_counted_and_their_value_is_compared():
    report = check((np.sqrt, lambda x: 0.5 / np.sqrt(x)), "sqrt(x)", order=1, domain="nonnegative")
    assert report.verdict == "verified" and report.points.singular >= 1
    report = check((lambda x: np.sqrt(x) + (x == 0), lambda x: 0.5 / np.sqrt(x)), "sqrt(x)", order=1, domain="nonnegative")
    assert report.counterexample.point == {"x": 0.0} and report.counterexample.order == 0


# Random and stateful functions

@pytest.mark.sweep
def test_a_random_function_is_distinguished_from_one_with_a_state():
    report = check(lambda x: x + np.random.rand(), "x", framework="numpy")
    assert report.verdict == "not checkable" and "two calls at the same point gave the value" in report.reason and "is random" in report.reason
    report = check(lambda x: x + symgrad.rand(()), "x")
    assert report.framework == "symgrad" and "is random: with the same seed it gives the same" in report.reason
    calls = []

    def counting(x):
        calls.append(x)
        return x * len(calls)

    report = check(counting, "x", framework="numpy")
    assert report.verdict == "not checkable" and "counting keeps a state that its calls change" in report.reason
    before = np.random.get_state()[1].tolist()
    check((np.sin, lambda x: np.cos(x) + np.random.rand() * 0), "sin(x)", order=1, points=1)
    check(lambda x: x + np.random.rand() * 0, "x", framework="numpy", points=1)
    state = np.random.get_state()[1].tolist()
    check(lambda x: x + np.random.standard_normal(), "x", framework="numpy", points=1)
    assert len(before) == len(state)


@pytest.mark.sweep
def test_chance_with_few_outcomes_is_found_where_some_calls_agree():
    """Of twenty coins two throws have the same number of heads in one case of eight."""
    try:
        for seed in range(40):
            np.random.seed(seed)
            report = check(lambda x: (np.random.rand(20) < 0.5).sum() * x, "10*x", framework="numpy", points=1)
            assert report.verdict == "not checkable" and "is random" in report.reason, (seed, str(report))
    finally:
        np.random.seed(None)


@pytest.mark.sweep
def test_a_state_that_changes_late_is_found_at_the_end():
    calls = []

    def tired(x):
        calls.append(x)
        return np.sin(x) + (len(calls) > 40)

    report = check((tired, np.cos), "sin(x)", order=1)
    assert report.verdict == "not checkable" and "keeps a state" in report.reason
    report = check((np.sin, lambda x: np.cos(x) * np.random.rand()), "sin(x)", order=1)
    assert "gave the gradient" in report.reason and "is random" in report.reason


# What it is compared with

@pytest.mark.sweep
def test_a_formula_is_text_or_sympy_or_a_function():
    x = sympy.Symbol("x")
    for formula in ("sin(x)", sympy.sin(x), sympy.Lambda(x, sympy.sin(x)), sympy.sin(sympy.Symbol("x", positive=True)), lambda x: symgrad.sin(x),
                    lambda t: t.sin(), symgrad.sin):
        report = check(SINE, formula, order=1, points=4)
        assert report.verdict == "verified", (formula, str(report))
        assert check((np.sin, lambda x: np.cos(2 * x)), formula, order=1, points=4).verdict == "refuted"
    assert check(SINE, "sin(x)", order=1).formula == sympy.sin(sympy.Symbol("x", real=True))


@pytest.mark.sweep
def test_a_symgrad_function_with_a_branch_is_a_formula():
    def huber(x, width=1.0):
        return x * x / 2 if abs(x) <= width else width * (abs(x) - width / 2)

    def value(x):
        return x * x / 2 if abs(x) <= 1 else abs(x) - 0.5

    assert check((value, lambda x: np.clip(x, -1, 1)), huber, order=1).verdict == "verified"
    report = check((value, lambda x: x), huber, order=1)
    assert report.verdict == "refuted" and report.against == "the function huber"


@pytest.mark.sweep
def test_integer_arguments_keep_their_values_and_may_be_in_the_formula():
    def power(x, n: int = 3, scale=2.0, label="none", flag=False):
        return scale * x**n

    report = check((power, lambda x, n, scale: n * scale * x ** (n - 1)), "2*x**n", order=1, inputs={"scale": 2.0, "x": 1.5}, wrt=["x"])
    assert report.verdict == "verified" and report.names == ["x"], str(report)
    assert check(power, "2*x**n", framework="numpy", order=1).names == ["x"]
    assert check(power, "scale*x**n", framework="numpy", order=1, domain=(-3, 3)).names == ["x", "scale"]


@pytest.mark.sweep
def test_functions_of_arrays_are_compared_element_by_element_or_by_their_elements():
    elementwise = np.tanh, lambda x: 1 / np.cosh(x) ** 2
    report = check(elementwise, "tanh(x)", order=1, inputs=[[0.5, 1.0, 2.0]], domain=(-20, 20))
    assert report.verdict == "verified" and report.names == ["x_0", "x_1", "x_2"], str(report)
    report = check((lambda x: (x**2).sum(), lambda x: 2 * x), "x[0]**2 + x[1]**2", order=2)
    assert report.verdict == "verified" and report.agreements[2].compared > 0
    x = sympy.IndexedBase("x")
    assert check((lambda x: x[0] ** 2 * x[1], lambda x: np.array([2 * x[0] * x[1], x[0] ** 2])), x[0] ** 2 * x[1], order=1).verdict == "verified"
    report = check((lambda x: x[0] ** 2 * x[1], lambda x: np.array([2 * x[0] * x[1], x[0] ** 3])), x[0] ** 2 * x[1], order=1)
    assert report.verdict == "refuted" and report.counterexample.where == "df/dx_1" and len(report.counterexample.point["x"]) == 2
    assert check((lambda x: x**2, lambda x: 2 * x), sympy.Matrix(sympy.symbols("x_0:2")).applyfunc(lambda e: e**2), order=1,
                 inputs=[[1.0, 2.0]]).verdict == "verified"


@pytest.mark.sweep
def test_many_inputs_are_compared_along_a_direction():
    n = 9
    formula = lambda x: (x**2 * symgrad.arange(1.0, n + 1)).sum()  # noqa: E731
    weights = np.arange(1.0, n + 1)
    pair = (lambda x: (x**2 * weights).sum(), lambda x: 2 * x * weights)
    report = check((*pair, lambda x: np.diag(2 * weights)), formula, inputs=[np.ones(n)], points=8)
    assert report.verdict == "verified" and report.agreements[2].worst.where.endswith("du"), str(report)
    assert check(pair, formula, inputs=[np.ones(n)], points=8, domain=(-9, 9)).verdict == "verified"
    report = check((*pair, lambda x: np.diag(2 * weights[::-1])), formula, inputs=[np.ones(n)], points=8)
    assert report.verdict == "refuted" and report.counterexample.order == 2


@pytest.mark.sweep
def test_without_a_formula_the_function_is_its_own_where_symgrad_can_run_it():
    report = check(TANH, order=1)
    assert report.verdict == "imprecise" and report.against == "its own formula, which symgrad recorded" and report.counterexample.where == "df/dx"
    assert check(SINE).verdict == "verified"


@pytest.mark.sweep
def test_without_a_formula_each_order_is_compared_with_differences_of_the_one_below():
    def sine(x):
        return math.sin(float(x))

    report = check((sine, lambda x: math.cos(float(x))), order=1)
    assert report.verdict == "verified" and "finite differences" in report.against and "within their error bounds" in report.reason
    assert [a.order for a in report.agreements] == [1] and "there is no formula" in report.notes[0]
    report = check((sine, lambda x: math.cos(float(x)) * 1.0001), order=1)
    assert report.verdict == "refuted" and report.counterexample.order == 1
    assert check((lambda x: abs(float(x)), lambda x: math.copysign(1, float(x))), order=1).verdict == "verified"  # no differences across a kink


@pytest.mark.sweep
def test_a_symgrad_function_can_be_compared_with_a_formula(declare):
    wrong = declare("wrong_sine", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) * (1 + 1e-6))
    assert symgrad.check(lambda x: symgrad.sin(x), formula="sin(x)", points=5).framework == "symgrad"
    report = symgrad.check(lambda x: wrong(x), formula="sin(x)", points=5)
    assert report.verdict == "refuted" and report.framework == "symgrad" and report.counterexample.order == 1
    assert symgrad.check(lambda x: x * x, domain={"x": (1, 2)}, points=5).verdict == "verified"
    assert symgrad.check(lambda x: x**3, formula="x**3", order=3, points=5).verdict == "verified"


# Reports

KEYS = {"schema", "function", "framework", "verdict", "reason", "order", "against", "formula", "domains", "names", "agreements", "points",
        "counterexample", "notes", "seconds"}
FINDING = {"order", "where", "point", "value", "truth", "ulp", "bound", "condition", "kind", "message", "explained", "by",
           "operation"}


@pytest.mark.sweep
def test_a_report_is_text_json_markdown_html_and_rich():
    def raising(x):
        return math.log(1 + math.exp(x))

    for report in (check(SINE, "sin(x)", points=3), check(TANH, "tanh(x)", points=3), check(raising, "log(1+exp(x))", framework="numpy", points=3),
                   check(lambda x: x + np.random.rand(), "x", framework="numpy"), check((np.sqrt, np.sqrt), "sqrt(x)", domain="negative")):
        data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert set(data) == KEYS and data["schema"] == 1 and data["verdict"] == report.verdict
        for a in data["agreements"]:
            assert set(a) == {"order", "method", "compared", "wrong", "imprecise", "agrees", "worst", "first", "region", "hint"}
            assert set(a["worst"]) == FINDING
            assert (a["first"] is None) == a["agrees"]
        assert data["counterexample"] is None or set(data["counterexample"]) == FINDING
        console = Console(width=160, record=True, file=io.StringIO())
        console.print(report)
        for form in (str(report), report._repr_markdown_(), report._repr_html_(), console.export_text()):
            assert report.verdict in form and report.function.strip("<>") in form
        assert repr(report) == f"<CrossReport {report.function}: {report.verdict}>"


@pytest.mark.sweep
def test_a_report_shows_as_many_digits_as_it_takes_to_see_the_difference():
    report = check((np.sin, lambda x: np.cos(x) * (1 + 1e-11)), "sin(x)", order=1, points=5)
    assert "df/dx is 1.00000000001, but the true one is 1:" in report.reason


@pytest.mark.sweep
def test_the_same_seed_gives_the_same_report():
    first, second, other = (check(TANH, "tanh(x)", order=1, seed=seed).to_dict() for seed in (3, 3, 4))
    for report in (first, second, other):
        report.pop("seconds")
    assert first == second and first != other


@pytest.mark.sweep
def test_progress_is_reported(capsys):
    told = []
    check(TANH, "tanh(x)", order=1, points=2, progress=lambda *what: told.append(what))
    assert told[0][0] == "reading the formula" and "comparing points" in {what for what, *_ in told}
    assert "simplifying the counterexample" in {what for what, *_ in told} and capsys.readouterr() == ("", "")
    check((lambda x: print("hello") or np.sin(x), np.cos), "sin(x)", points=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""


# Arrays: a formula of each element is compared for several shapes


class OfNumbers:
    """A pair of NumPy functions of single numbers, whose `if` raises for arrays."""

    def __call__(self, x):
        return np.sin(x) if x > -1e300 else x


def ones(x):
    return np.ones(np.shape(x))


ARRAYS = {
    "the size of the array as a factor": ((np.sin, lambda x: np.cos(x) * np.size(x) ** 0.5), "sin(x)", (2,)),
    "exactly seven elements": ((np.exp, lambda x: np.exp(x) * (1.001 if np.size(x) == 7 else 1)), "exp(x)", (7,)),
    "matrices": ((lambda x: x**3 / 3, lambda x: x**2 if np.ndim(x) < 2 else x**2 + 1e-3), "x**3/3", (2, 3)),
    "the first element for all": ((lambda x: x * x, lambda x: 2 * np.ravel(x)[0] * ones(x)), "x*x", (2,)),
    "a sum over the other argument": ((lambda x, y: x * y / 3, lambda x, y: (y / 3, np.sum(x) / 3 + 0 * y)), "x*y/3", (2,)),
    "one element in an array": ((np.sin, lambda x: np.cos(x) if np.ndim(x) == 0 else 2 * np.cos(x)), "sin(x)", (1,)),
    "the value of arrays": ((lambda x: np.tanh(x) if np.ndim(x) == 0 else np.tanh(x[::-1]), lambda x: 1 - np.tanh(x) ** 2), "tanh(x)", (2,)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_gradient_that_is_wrong_for_arrays_only_is_refuted(name):
    function, formula, shape = ARRAYS[name]
    report = check(function, formula, order=1, domain=(0.1, 2.0), points=4)
    assert report.verdict == "refuted" and report.reason.startswith(f"for arrays of shape {list(shape)}, "), str(report)
    assert np.shape(report.counterexample.point["x"]) == shape and report.sizes[-1] == shape


def test_arrays_are_compared_where_the_formula_is_one_of_each_element():
    report = check(SINE, "sin(x)", order=1, points=4)
    assert report.sizes == [(1,), (2,), (3,), (7,), (2, 3)]
    assert report.reason.endswith("; arrays of the shapes [1], [2], [3], [7], [2, 3] agree, too")
    assert check(SINE, "sin(x)", inputs=[[0.5, 1.0]], order=1, points=4).sizes == [(1,), (3,), (7,), (2, 3)]
    assert check(SINE, lambda x: x.sin(), order=1, points=4).sizes == [(1,), (2,), (3,), (7,), (2, 3)]
    assert check((OfNumbers(), np.cos), "sin(x)", order=1, points=4, domain=(-3, 3)).sizes == [(1,)]  # the `if` raises for more elements
    assert check((math.sin, math.cos), "sin(x)", order=1, points=4, domain=(-3, 3)).sizes in ([], [(1,)])
    of_elements = check((lambda x: x[0] * x[1], lambda x: np.array([x[1], x[0]])), "x[0]*x[1]", inputs=[[1.0, 2.0]], order=1, points=4)
    assert of_elements.verdict == "verified" and not of_elements.sizes
