"""Derivatives by definition: a kink is a property of the function, and where a formula is 0/0 the limit of difference quotients decides."""

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.autograd import Function
from symgrad.checks.definition import Definition
from symgrad.frameworks.differentiation_task import DifferentiationTask
from symgrad.reference.oracle import Oracle
from symgrad.sampling.points import as_point, flat

S = symgrad


def check(function, *inputs, **options):
    return symgrad.check(function, *inputs, points=3, progress=False, **options)


def own(forward, slope):
    """A Function of one tensor with a value and a derivative."""
    class Own(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            return g * slope(*ctx.saved_tensors)

    return Own.apply


def derivatives(function, *inputs, order=2):
    """The kinds of the derivatives by definition, and the numbers of those that exist."""
    task = DifferentiationTask(function, inputs)
    point = flat(task.point)

    def program(vector):
        run = task.run(as_point(task.point, vector), named=True)
        return Oracle(run.root, run.nodes)

    found = Definition(point, program).derivatives(order)
    return {"".join(map(str, index)): round(float(limit.value), 9) if limit.kind in ("exists", "one-sided") else limit.kind for index, limit in found}


LIMITS = {
    "a root of 0 on an interval": (lambda x: S.sqrt(S.relu(x)), [-1 / 3], {"0": 0, "00": 0}),
    "a norm, squared": (lambda x: S.linalg.norm(x) ** 2, [[0.0, 0.0]], {"0": 0, "1": 0, "00": 2, "01": 0, "10": 0, "11": 2}),
    "a power of a sum of squares": (lambda a, b: (a * a + b * b) ** 1.5, [0.0, 0.0], {"0": 0, "1": 0, "00": 0, "01": 0, "10": 0, "11": 0}),
    "sin(x)/x with a value at 0": (lambda x: S.where(x == 0, 1.0, S.sin(x) / x), [0.0], {"0": 0, "00": round(-1 / 3, 9)}),
    "W at 0": (lambda x: S.special.lambertw(x), [0.0], {"0": 1, "00": -2}),
    "the square of relu": (lambda x: S.relu(x - 1.7) ** 2, [1.7], {"0": 0, "00": "kink"}),
    "x |x|": (lambda x: S.abs(x) * x * 3, [0.0], {"0": 0, "00": "kink"}),
    "a tie of equal functions": (lambda x: S.maximum(x, 2 * x - x) / 3, [1.3], {"0": round(1 / 3, 9), "00": 0}),
    "a maximum": (lambda x: S.maximum(x, S.tensor(5.0)) * x, [5.0], {"0": "kink"}),
    "a branch of Python": (lambda x: x * x if x > 0.75 else 1.5 * x - 0.5625, [0.75], {"0": 1.5, "00": "kink"}),
    "a jump": (lambda x: S.where(x > 1, S.sin(x) + 1, S.sin(x)), [1.0], {"0": "jump"}),
    "floor": (lambda x: S.floor(x / 3), [6.0], {"0": "jump"}),
    "the end of the domain": (lambda x: S.sqrt(x) ** 3, [0.0], {"0": 0}),
    "a cube root": (lambda x: S.cbrt(x), [0.0], {"0": "infinite"}),
    "a cusp": (lambda x: S.sqrt(S.abs(x)), [0.0], {"0": "kink"}),
    "a power between 2 and 3": (lambda x: S.abs(x) ** 2.3, [0.0], {"0": 0, "00": 0}),
    "a slow power": (lambda x: S.abs(x) ** 1.1, [0.0], {"0": 0, "00": "infinite"}),
    "x² log|x|": (lambda x: S.xlogy(x * x, S.abs(x)), [0.0], {"0": 0, "00": "infinite"}),
    "Peano's function": (lambda x, y: S.where((x == 0) & (y == 0), 0.0, x * y * (x * x - y * y) / (x * x + y * y)), [0.0, 0.0],
                         {"0": 0, "1": 0, "00": 0, "01": -1, "10": 1, "11": 0}),
    "a small scale": (lambda x, y: S.sqrt(x * x + y * y), [0.0, 1e-200], {"0": 0, "1": 1}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_derivatives_by_definition(name):
    function, inputs, expected = LIMITS[name]
    assert derivatives(function, *inputs, order=1 if name == "a small scale" else 2) == expected


# The library's own functions: what is printed at the given point is right, or the verdict says what is a convention.


@pytest.mark.parametrize("function, inputs", [
    (lambda x: S.linalg.norm(x) ** 2, [[0.0, 0.0]]), (lambda a, b: (a * a + b * b) ** 1.5, [0.0, 0.0]), (lambda x: S.special.lambertw(x), [0.0]),
    (lambda x: (x * x) ** 1.7, [0.0]), (lambda x: S.linalg.norm(x) ** 4 / 3, [[0.0, 0.0, 0.0]])])
def test_points_where_the_formula_is_0_over_0_are_compared_and_not_left_out(function, inputs):
    report = check(function, *inputs)
    assert report.ok and report.points.measured and "is a convention" not in report.reason, str(report)
    assert not any("the derivative does not exist" in note for note in report.notes)
    assert "by the limits of difference quotients (measured)" in report.reason


@pytest.mark.parametrize("function, at, wrong", [
    (lambda x: S.where(x == 0, 1.0, S.sin(x) / x), 0.0, "d2f/dx dx"),
    (lambda x: S.where(x == 0.75, 0.5625, x * x), 0.75, "df/dx"),
    (lambda x: S.where(x == 0, 0.0, S.sin(x) ** 2 / x), 1 / 3, "df/dx"),
    (lambda x: S.where(x == 0, 0.5, (1 - S.cos(x)) / x**2), 2.0, "d2f/dx dx"),
    (lambda x: 3.0 * x if x == 1.3 else 2 * x + 1.3, 1.3, "df/dx")])
def test_a_branch_at_one_point_has_the_derivatives_of_that_branch_which_are_wrong(function, at, wrong):
    report = check(function, at)
    assert report.verdict == "refuted" and report.counterexample.where == wrong, str(report)
    assert "the limit of its difference quotients gives" in report.reason


@pytest.mark.parametrize("function, at, where", [
    (lambda x: S.relu(x) ** 2, 0.0, "d2f/dx dx (it is 0 and 2 from different sides)"),
    (lambda x: S.abs(x - 0.3) / 3, 0.3, "df/dx (it is -0.3333333333 and 0.3333333333 from different sides)"),
    (lambda x: S.maximum(x, S.tensor(5.0)), 5.0, "df/dx (it is 0 and 1 from different sides)"),
    (lambda x: 2 * x if x > 0.1 else 3 * x - 0.1, 0.1, "df/dx (it is 2 and 3 from different sides)"),
    (lambda x: S.floor(x), 3.0, "df/dx (it is none, since the value jumps)")])
def test_the_verdict_names_what_is_a_convention_at_the_given_point(function, at, where):
    report = check(function, at)
    assert report.ok and f"; at the given point {where} is a convention" in report.reason, str(report)
    assert "is a convention" not in check(function, at + 0.77).reason


# Rules of one's own


def relu2(x):
    return S.relu(x) ** 2


WRONG = {
    "a value at a kink of the program": (own(relu2, lambda x: S.where(x == 0, 1.0, 2 * S.relu(x))), "df/dx", 0.0),
    "x |x|": (own(lambda x: x * S.abs(x), lambda x: S.where(x == 0, 1 / 3, 2 * S.abs(x))), "df/dx", 0.0),
    "a tie": (own(lambda x: S.maximum(x, S.tensor(5.0)) ** 2 - S.relu(x - 5) * (x + 5), lambda x: S.where(x == 5, 0.1, 0 * x)), "df/dx", 5.0),
    "a whole interval": (own(lambda x: S.sqrt(S.relu(x)), lambda x: S.where(x <= 0, 1.0, 0.5 / S.sqrt(S.where(x <= 0, 1.0, x)))), "df/dx", -1.0),
    "a second derivative": (own(lambda x: S.relu(x) ** 3, lambda x: 3 * S.relu(x) ** 2 + 0.3 * S.where(x > -1e-9, x, 0.0)), None, None),
    "a jump": (own(lambda x: S.where(x > 1, S.sin(x) + 1, S.sin(x)), lambda x: S.cos(x)), "df/dx", 1.0),
    "a small jump": (own(lambda x: S.where(x > 0.3, x + 1e-3, x), lambda x: S.ones_like(x)), "df/dx", 0.3),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_at_a_kink_of_the_program_or_a_jump_is_refuted(name):
    function, where, at = WRONG[name]
    report = check(lambda x: function(x), 0.9)
    assert report.verdict == "refuted", str(report)
    if where is not None:
        assert report.counterexample.where == where and float(report.counterexample.point["x"]) == at, str(report)
    assert ("jump" in name) == ("the value jumps there" in report.reason)


RIGHT = {
    "relu squared": own(relu2, lambda x: 2 * S.relu(x)),
    "x |x|": own(lambda x: x * S.abs(x), lambda x: 2 * S.abs(x)),
    "the root of relu, cubed": own(lambda x: S.sqrt(S.relu(x)) ** 3, lambda x: 1.5 * S.sqrt(S.relu(x))),
    "a kink": own(lambda x: S.abs(x - 0.3), lambda x: S.sign(x - 0.3)),
    "two branches": own(lambda x: S.where(x > 1, x * x, 2 * x - 1), lambda x: S.where(x > 1, 2 * x, 2.0)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_rules_with_kinks_of_the_program_are_not_refuted(name):
    report = check(lambda x: RIGHT[name](x), 0.9, order=1)
    assert report.ok, str(report)


def test_the_digits_of_sympys_formula_may_cancel_where_the_rule_is_right():
    """At the least number W″ by SymPy's formula is a difference of terms with 600 digits before the point."""
    task = DifferentiationTask(lambda x: S.special.lambertw(x), (5e-324,))
    from symgrad.checks.comparing import compare_at

    run = task.run(task.point, named=True)
    found = compare_at(flat(task.point), run, 2, np.ones(1), None, lambda v: task.run(as_point(task.point, v), named=True))
    assert found.culprit is None and (found.measured or found.digits > 48)


def test_a_limit_that_does_not_converge_is_not_decided():
    def program(signs):
        class Slow:
            def at(self, values):
                self.x = mpmath.mpf(int(values[0].p)) / int(values[0].q)
                return self

            def evaluate(self, digits):
                self.value = abs(self.x) ** mpmath.mpf("1.01") if self.x else mpmath.mpf(0)
                return self

        return Slow()

    assert [limit.kind for _, limit in Definition(np.zeros(1), program).derivatives(1)] == ["undecided"]


# Functions of other frameworks, here pairs of a function and its gradient


def sinc_slope(x):
    far = np.where(np.abs(x) < 0.01, 1.0, x)
    return np.where(np.abs(x) < 0.01, -x / 3 + x**3 / 30 - x**5 / 840, (far * np.cos(far) - np.sin(far)) / far**2)


X = sympy.Symbol("x", real=True)
SINC = sympy.Piecewise((1, sympy.Eq(X, 0)), (sympy.sin(X) / X, True))
PAIRS = {
    "sin(x)/x": (lambda x: np.sinc(x / np.pi), lambda wrong: lambda x: np.where(x == 0, wrong, sinc_slope(x)), SINC, 0.0, 1 / 3),
    "relu squared": (lambda x: np.maximum(x, 0) ** 2, lambda wrong: lambda x: np.where(x == 0, wrong, 2 * np.maximum(x, 0)),
                     sympy.Max(X, 0) ** 2, 0.0, 1.0),
    "x |x|": (lambda x: x * np.abs(x), lambda wrong: lambda x: np.where(x == 0, wrong, 2 * np.abs(x)), X * sympy.Abs(X), 0.0, -0.1),
    "a power of |x|": (lambda x: np.abs(x) ** 1.7, lambda wrong: lambda x: np.where(x == 0, wrong, 1.7 * np.abs(x) ** 0.7 * np.sign(x)),
                       sympy.Abs(X) ** sympy.Rational(17, 10), 0.0, 0.7),
    "a root of relu": (lambda x: np.sqrt(np.maximum(x, 0)) ** 3, lambda wrong: lambda x: np.where(x == 0, wrong, 1.5 * np.sqrt(np.maximum(x, 0))),
                       sympy.sqrt(sympy.Max(X, 0)) ** 3, 0.0, np.nan),
    "two pieces": (lambda x: np.where(x > 1, x * x, 2 * x - 1), lambda wrong: lambda x: np.where(x == 1, wrong, np.where(x > 1, 2 * x, 2.0)),
                   sympy.Piecewise((X**2, X > 1), (2 * X - 1, True)), 2.0, 1 / 3),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_gradient_where_the_formula_of_the_derivative_is_0_over_0_or_ends_is_compared(name):
    function, slope, formula, right, wrong = PAIRS[name]
    options = {"formula": formula, "order": 1, "points": 4, "progress": False, "domain": (-9, 9)}
    report = symgrad.check((function, slope(right)), **options)
    assert report.verdict != "refuted" and not report.points.singular and not report.points.kinks and not report.notes, str(report)
    report = symgrad.check((function, slope(wrong)), **options)
    assert report.verdict == "refuted" and report.counterexample.order == 1, str(report)
    assert report.counterexample.truth == right and report.agreements[1].wrong <= 2, str(report)  # at 0 and -0


@pytest.mark.parametrize("function, slope, formula, text", [
    (lambda x: np.abs(x) / 3, lambda x: np.sign(x) / 3, sympy.Abs(X) / 3, "at x = 0 df/dx is a convention, it is -0.3333333333 and 0.3333333333"),
    (lambda x: np.maximum(x, 2.7), lambda x: np.where(x > 2.7, 1.0, 0.4), sympy.Max(X, sympy.Rational(27, 10)), None),
    (lambda x: np.maximum(x, 2.5), lambda x: np.where(x == 2.5, 0.4, np.where(x > 2.5, 1.0, 0.0)), sympy.Max(X, sympy.Rational(5, 2)),
     "at x = 2.5 df/dx is a convention, it is 0 and 1 from different sides"),
    (lambda x: np.sqrt(np.abs(x)), lambda x: np.sign(x) / 2 / np.sqrt(np.abs(x) + (x == 0)), sympy.sqrt(sympy.Abs(X)),
     "at x = 0 df/dx is a convention, it is -inf and inf from different sides"),
    (lambda x: np.where(x > 1, np.sin(x) + 1, np.sin(x)), lambda x: np.cos(x), sympy.Piecewise((sympy.sin(X) + 1, X > 1), (sympy.sin(X), True)),
     "at x = 1 df/dx is a convention, it is none, since the value jumps")])
def test_a_kink_of_the_formula_is_a_convention_that_is_named(function, slope, formula, text):
    report = symgrad.check((function, slope), formula=formula, order=1, points=4, progress=False, domain=(-9, 9))
    assert report.verdict == ("verified" if text else "refuted"), str(report)
    assert text is None or any(text in note for note in report.notes) and report.points.kinks, report.notes
