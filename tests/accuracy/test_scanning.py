"""The accuracy report: known losses are found in their region, with their operation and a better form; mpmath checks the numbers."""

import builtins
import math
from typing import ClassVar

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad import log
from symgrad.graph.domains import POSITIVE
from symgrad.sampling.floats import Floats
from symgrad.scanning import accuracy
from symgrad.scanning.scanner import ScanReferences
from symgrad.scanning.subject import Subject
from tests.support.lines import lines


def naive_softplus(x):
    return log(1 + x.exp())


def naive_logistic(x):
    return 1 / (1 + (-x).exp())


def slope_of_logistic(x):
    return naive_logistic(x) * (1 - naive_logistic(x))


def root(x):
    return (x + 1).sqrt() - x.sqrt()


def squares(x, y):
    return x**2 - y**2


LOSSES = {
    "softplus": (naive_softplus, (-60.0, 800.0), 2, {"log", "exp"}, "softplus", lambda x: mpmath.log1p(mpmath.exp(x))),
    "tanh": (lambda x: 1 - x.tanh() ** 2, (-40.0, 40.0), 0, {"sub"}, "sech_squared", lambda x: mpmath.sech(x) ** 2),
    "expm1": (lambda x: x.exp() - 1, (-1.0, 1.0), 0, {"sub"}, "expm1", mpmath.expm1),
    "roots": (root, (0.0, 1e12), 2, {"sub"}, "difference of roots", lambda x: mpmath.sqrt(x + 1) - mpmath.sqrt(x)),
    "squares": (squares, (0.5, 4.0), 0, {"sub"}, "difference of squares", lambda x, y: x**2 - y**2),
    "slope": (slope_of_logistic, (-30.0, 60.0), 0, {"sub"}, "sigmoid", lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2),
    "cosine": (lambda x: (1 - x.cos()) / x**2, (1e-12, 10.0), 0, {"sub"}, "half-angle", lambda x: (1 - mpmath.cos(x)) / x**2),
    "sinc": (lambda x: x.sin() / x, (1e-6, 4.0), 3, {"add"}, None, lambda x: mpmath.sin(x) / x),
}


class Reports(dict):
    """The reports of the functions that lose digits, each made when a test first asks for it."""

    def __missing__(self, name):
        fn, domain, order, *_ = LOSSES[name]
        self[name] = accuracy(fn, domain, order=order, points=8, seconds=60.0)
        return self[name]


@pytest.fixture(scope="module")
def reports():
    return Reports()


def error_by_mpmath(function, worst, dtype=np.float64):
    """The error in ULP at a reported point, by an independent formula and differences with thousands of digits."""
    variables = [int(part[1:] == "y") for part in worst.where.partition("/")[2].split()] if worst.order else []
    with mpmath.workdps(3000):
        x = list(map(mpmath.mpf, worst.point))
        if not worst.order:
            true = function(*x)
        elif len(x) == 1:
            true = mpmath.diff(function, x[0], worst.order, h=mpmath.mpf(10) ** -800)
        else:
            true = mpmath.diff(function, tuple(x), tuple(variables.count(i) for i in range(len(x))), h=mpmath.mpf(10) ** -800)
        unit = np.spacing(dtype(abs(float(true))))
        return float(abs(mpmath.mpf(worst.value) - true) / mpmath.mpf(float(unit))), float(true)


@pytest.mark.sweep
@pytest.mark.parametrize("name", LOSSES)
def test_the_worst_errors_are_those_of_an_independent_computation(reports, name):
    true = LOSSES[name][-1]
    for order in range(LOSSES[name][2] + 1):
        worst = max((w for w in reports[name].worst if w.order == order and np.isfinite(w.value)), key=lambda w: w.ulp)
        ulp, value = error_by_mpmath(true, worst)
        assert ulp == pytest.approx(worst.ulp, rel=1e-6, abs=1e-9), worst
        assert value == worst.truth


@pytest.mark.sweep
@pytest.mark.parametrize("name", LOSSES)
def test_the_operation_and_the_form(reports, name):
    report, ops, form = reports[name], LOSSES[name][3], LOSSES[name][4]
    assert not report.ok or name == "squares"  # next to each other x² and y² lose digits by their condition
    assert ops <= {loss.op for loss in report.losses}
    assert (form in {b.name for b in report.better}) == (form is not None)
    for better in report.better:
        assert any(better.after[k] < better.before[k] / 4 for k in better.after)


def lost_regions(report, order):
    return {w.region for w in report.lost() if w.order == order}


@pytest.mark.sweep
def test_the_regions(reports):
    assert lost_regions(reports["softplus"], 0) == {"ordinary, negative", "large, negative", "large, positive", "just above -60", "just below 800"}
    assert {"large, positive", "large, negative"} <= lost_regions(reports["tanh"], 0)
    assert not any("small" in r or "tiny" in r for r in lost_regions(reports["tanh"], 0))
    assert {"small, negative", "tiny, negative", "small, positive", "tiny, positive"} <= lost_regions(reports["expm1"], 0)
    assert lost_regions(reports["expm1"], 0).isdisjoint({"just below 1", "just above -1"})
    assert {"large", "huge"} <= lost_regions(reports["roots"], 0) and "small" not in lost_regions(reports["roots"], 0)
    assert "arguments close to each other" in lost_regions(reports["squares"], 0)
    assert "small" in lost_regions(reports["sinc"], 3) and not lost_regions(reports["sinc"], 0)


@pytest.mark.sweep
def test_a_loss_has_its_operands_its_line_and_its_reason(reports):
    loss = next(x for x in reports["roots"].losses if x.op == "sub")
    assert loss.formula == "a - b" and loss.reason.startswith("cancellation")
    assert loss.operands["a"] - loss.operands["b"] == loss.value
    assert "test_scanning.py" in loss.line and "return (x + 1).sqrt() - x.sqrt()" in loss.line
    assert sympy.simplify(loss.expression - sympy.sqrt(sympy.Symbol("x", real=True) + 1) + sympy.sqrt(sympy.Symbol("x", real=True))) == 0
    overflow = next(x for x in reports["softplus"].losses if x.op == "exp")
    assert overflow.reason == "it overflows" and overflow.value == math.inf


def test_a_loss_of_the_backward_pass_names_the_node_it_comes_from(reports):
    backward = [x for x in reports["softplus"].losses if x.orders == (2,)]
    assert backward and backward[0].backward_of.endswith("Backward0") and "naive_softplus" not in backward[0].line
    assert "return log(1 + x.exp())" in backward[0].line


@pytest.mark.sweep
def test_roots_are_suggested_for_points_where_they_are_real():
    report = accuracy(root, points=8, seconds=3.0, order=1)
    assert report.outside > 0
    assert [b.name for b in report.better] == ["difference of roots"]
    assert max(report.better[0].after.values()) < 16


def test_a_suggestion_is_measured_and_not_made_where_it_is_no_better():
    report = accuracy(lambda x: log(1 + x.exp()), (0.0, 10.0), order=0, points=16)
    assert report.ok and not report.better and not report.losses


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float16", symgrad.float32, np.float32])
def test_other_dtypes(dtype):
    report = accuracy(lambda x: x.exp() - 1, (-1.0, 1.0), order=1, points=16, dtype=dtype)
    kind = np.float16 if dtype == "float16" else np.float32
    worst = report.of_order(0)
    assert report.dtype == np.dtype(kind).name and worst.ulp > 100 and report.of_order(1).verdict == "accurate"
    assert all(float(kind(x)) == x for w in report.worst for x in w.point)
    assert error_by_mpmath(mpmath.expm1, worst, kind)[0] == pytest.approx(worst.ulp, rel=1e-6)


@pytest.mark.sweep
def test_zeros_and_poles_get_regions():
    report = accuracy(lambda x: (x - 3) / (x**2 - 7), (1.0, 10.0), points=8, order=0)
    names = {s.region for s in report.samples}
    assert {"just below 3, a zero", "just above 3, a zero"} <= names
    assert sum("a pole" in name for name in names) == 2 and any("2.64575" in name for name in names)
    worst = report.of_order(0)
    assert worst.verdict == "ill-conditioned" and worst.point[0] == pytest.approx(math.sqrt(7), rel=1e-3)


@pytest.mark.sweep
def test_the_errors_are_drawn_evenly_and_refined_around_the_worst():
    report = accuracy(lambda x: x.exp() - 1, (-1.0, 1.0), order=0, points=16)
    sample = next(s for s in report.samples if s.region == "small, positive")
    assert sample.points.shape[1] > sample.drawn >= 16
    assert report.points == sum(s.points.shape[1] for s in report.samples)
    assert 0.0 < report.above[0][10**6] < report.above[0][1] < 1.0


@pytest.mark.sweep
def test_a_function_with_branches_is_called_point_by_point():
    def branchy(x):
        if x > 1:
            return x.exp() - 1
        return x * x if x > 0 else 0.0

    report = accuracy(branchy, (-2.0, 3.0), points=8, order=2)
    assert report.ok and report.of_order(0).ulp < 8 and report.outside == 0
    assert any("branch where" in note for note in report.notes)


def test_reference_values_below_every_float_are_not_lost_digits():
    """The second derivative is left over from terms 620 powers of ten apart: fewer digits may give exactly 0, and so may twice as many."""
    subject, points = Subject(naive_softplus), np.linspace(690.0, 740.0, 64)[None]
    found = ScanReferences(subject, Floats("float64"), 2).at(points, subject.floats(points, 2))
    with mpmath.workdps(1000):
        for x, true in zip(points[0].tolist(), found[0, 0]):
            assert abs(true / (mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2) - 1) < 1e-20


class TestFormulas:
    @pytest.mark.sweep
    def test_of_sympy(self):
        x = sympy.Symbol("x")
        report = accuracy(naive_softplus, (-40.0, 5.0), formula=sympy.log(1 + sympy.exp(x)), points=8, order=1)
        assert "differentiated by SymPy" in report.truth and report.of_order(0).verdict == "digits are lost" and report.of_order(1).ulp < 8
        assert {x.op for x in report.losses} == {"log"}

    def test_of_a_symbol_without_assumptions(self):
        """The derivative of |x| is that of a real x, though SymPy takes a bare symbol for complex."""
        report = accuracy(abs, formula=sympy.Abs(sympy.Symbol("x")), points=8, order=1)
        assert report.ok and report.of_order(1).ulp == 0

    @pytest.mark.sweep
    def test_as_text_and_as_a_function(self):
        for formula in ("expm1(x)", symgrad.expm1):
            report = accuracy(lambda x: x.exp() - 1, (1e-9, 1.0), formula=formula, points=8, order=0)
            assert report.of_order(0).ulp > 1e6

    def test_of_another_function(self):
        report = accuracy(lambda x: x.sin(), (0.5, 1.0), formula="sin(x) + x**30 / 10**12", points=8, order=0)
        assert not report.ok

    @pytest.mark.sweep
    def test_for_a_function_of_plain_floats(self):
        report = accuracy(lambda x: math.exp(x) - 1, (-1.0, 1.0), formula="expm1(x)", points=8)
        assert report.order == 0 and report.of_order(0).verdict == "digits are lost" and any("only values" in n for n in report.notes)

    @pytest.mark.sweep
    def test_for_a_pair_with_its_gradient(self):
        pair = math.tanh, lambda x: 1 - math.tanh(x) ** 2
        report = accuracy(pair, (0.0, 30.0), formula="tanh(x)", points=8)
        assert report.order == 1 and report.of_order(0).ulp < 8 and report.of_order(1).verdict == "digits are lost"


RNG = np.random.default_rng(0)


def unlucky(error):
    def broken(x):
        raise error

    return broken


@pytest.mark.parametrize("error, said, call", lines("refused_scans"))
def test_bad_input(error, said, call):
    with pytest.raises(getattr(builtins, error), match=said):
        eval(call)


def test_a_function_that_raises_somewhere():
    def half(x):
        if x < 0:
            raise OverflowError("too far")
        return x.exp()

    report = accuracy(half, (-1.0, 1.0), points=8, order=0)
    assert report.outside and any("half raises OverflowError at x = -" in note and "too far" in note for note in report.notes)


@pytest.mark.sweep
def test_domains():
    for domain in ((1.0, 2.0), [(1.0, 1.5), (1.5, 2.0)], sympy.Interval(1, 2), {"x": (1, 2)}):
        report = accuracy("log", domain, points=4, order=0)
        assert all(1.0 <= w.point[0] <= 2.0 for w in report.worst)
    report = accuracy(lambda x: x.log(), POSITIVE, points=4, order=0)
    assert all(w.point[0] > 0 for w in report.worst) and report.outside == 0
    report = accuracy(lambda x: 1 / x, sympy.Interval(-1, 1) - sympy.FiniteSet(0), points=4, order=0)
    assert not any(s.region == "zero" for s in report.samples)


@pytest.mark.sweep
def test_several_arguments():
    report = accuracy(lambda a, b: a / b, {"a": (1.0, 2.0), "b": (-4.0, -2.0)}, points=8, order=2)
    assert report.names == ["a", "b"] and report.ok
    assert {i for s in report.samples for i in s.errors} == {(), (0,), (1,), (0, 0), (0, 1), (1, 1)}
    for w in report.worst:
        assert 1.0 <= w.point[0] <= 2.0 and -4.0 <= w.point[1] <= -2.0
    assert {"all arguments anywhere", "a: ordinary", "b: ordinary, negative"} <= {s.region for s in report.samples}


@pytest.mark.sweep
def test_a_scan_keeps_its_time_and_is_repeatable():
    report = accuracy(naive_softplus, seconds=1.5)
    assert report.points > 50
    first, second = (accuracy("tanh", (-1.0, 1.0), points=8, order=0, seconds=60.0, seed=3) for _ in range(2))
    assert [w.point for w in first.worst] == [w.point for w in second.worst]


def test_two_zeros_with_few_digits_do_not_decide_a_reference_value():
    class Nothing:
        """A source of numbers that are 0 with few digits."""

        asked: ClassVar[list[int]] = []

        def spread(self, points, order):
            return np.zeros(points.shape[1])

        def exact(self, points, digits, order, beside=None):
            self.asked.append(digits)
            return {(): [mpmath.mpf(0)] * points.shape[1]}

    truth = ScanReferences(Nothing(), Floats("float64"), 0)
    assert truth.at(np.ones((1, 2)), {(): np.array([0.0, 1.0])}) == {(): [0, 0]} and Nothing.asked == [60, 120, 240, 480]
