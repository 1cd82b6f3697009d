"""Ball arithmetic: every ball contains the reference value, and so do the intervals of a check with `rigorous=True`."""

import json
import math
import sys

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad.carriers import MATRIX_WORDS, PROTOCOL, ball, precise
from symgrad.frameworks.differentiation_task import DifferentiationTask
from symgrad.graph.op import REGISTRY
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.rigorous import carrier, enclosures
from tests.support.points import arrays, examples, of_numbers, points

ENTRANCE = {"Balls", "ELEMENTS", "Maybe", "MAYBE", "Undecided", "lift_value", "precision", "arb", "acb", "ctx"}
IMPORTED = {"annotations", "builtins", "operator", "threading", "Iterator", "contextmanager", "np", "sys", "Any", "Cells", "fold", "workprec"}
ELEMENTWISE = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
               if op.kind == "elementwise" and of_numbers(op) for parameters in examples(op)]
SHAPED = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
          if op.kind in ("linear", "multilinear", "primitive") and op.differentiable and of_numbers(op) for parameters in examples(op)]
DIGITS = 600  # the working precision of the truth, of which about twice 50 digits are left where the most cancel
WIDE = {"fmod_number", "fmod_tensor", "remainder", "floor_divide", "rounded_quotient"}  # which ask for all digits before the point of a quotient


def exactly(x):
    """A many-digit float as a ball without radius."""
    sign, mantissa, exponent, _ = x._mpf_
    return ball.arb(int(mantissa)) * ball.arb(2) ** int(exponent) * (-1 if sign else 1)


def holds(b, true):
    """Whether a ball contains the reference value, all but the last hundred of whose digits are correct."""
    if isinstance(b, (bool, ball.Maybe)):
        return b is ball.MAYBE or b == true
    if not b.is_finite() or not precise.context.isfinite(true):
        return not b.is_finite()
    with ball.precision(4 * DIGITS):
        near = exactly(true)
        return b.overlaps(near + abs(near) * ball.arb(0, 1) * ball.arb(10) ** -(DIGITS - 100))


def everything(op, carrier, xs, parameters):
    """The value and every partial (or cotangent, of 1, 2, 3, ...) of an op in a carrier, element by element."""
    cells = [carrier.lift_value(x) for x in xs]
    y = op.forward(carrier, *((tuple(cells),) if op.arity is None else cells), *parameters)
    if op.kind == "elementwise":
        parts = [y, *(p(carrier, y, *cells, *parameters) for p in op.partials if callable(p))]
    else:
        pulled = op.vjp(carrier, carrier.lift_value(np.arange(1.0, 1 + y.size).reshape(y.shape)), y, (*cells, *parameters), (True,) * len(cells))
        parts = [y, *(c for c in pulled if c is not None)]
    return [e for part in parts for e in part.ravel().tolist()]


def truths(op, xs, parameters):
    with precise.working_precision(DIGITS):
        return everything(op, precise, xs, parameters)


def check_holds(op, parameters, xs, bits=256):
    """The balls of an op. Raises AssertionError with the op, the point and both numbers if one does not contain the reference value."""
    true = truths(op, xs, parameters)
    with ball.precision(bits):
        found = everything(op, ball, xs, parameters)
        assert len(found) == len(true)
        for b, t in zip(found, true):
            assert holds(b, t), f"{op.name}{parameters} at {xs}: {b} does not hold {t}"
    return found


def test_the_carrier_has_the_names_of_the_protocol():
    assert {name for name in vars(ball) if not name.startswith("_")} - ENTRANCE - IMPORTED == PROTOCOL


@pytest.mark.sampled(5)
@pytest.mark.parametrize("op, parameters", ELEMENTWISE)
def test_every_ball_of_an_elementwise_op_contains_the_reference_value(op, parameters):
    rng, narrow, all_ = np.random.default_rng(0), 0, 0
    for x in points(op, rng, ordinary=8, limit=12):
        for b in check_holds(op, parameters, x):
            all_ += 1
            narrow += isinstance(b, bool) or b is not ball.MAYBE and b.is_finite() and (b.is_exact() or b.rel_accuracy_bits() > 150)
    assert narrow >= (0.4 if op.name in WIDE else 0.85) * all_  # an interval from minus to plus infinity holds everything, and says nothing


@pytest.mark.sampled(40)
@pytest.mark.parametrize("op, parameters", SHAPED)
def test_every_ball_of_an_op_on_arrays_contains_the_reference_value(op, parameters):
    found = check_holds(op, parameters, arrays(op, np.random.default_rng(0)))
    assert all(isinstance(b, bool) or b.is_finite() and (b.is_exact() or b.rel_accuracy_bits() > 150) for b in found)


@pytest.mark.sampled(25)
@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("op, parameters", [case for case in SHAPED if case.values[0].name in MATRIX_WORDS])
def test_balls_of_functions_of_matrices_of_any_size(op, parameters, size):
    check_holds(op, parameters, arrays(op, np.random.default_rng(1), [(size,) * len(shape) for shape in op.docs.shapes]))


@pytest.mark.parametrize("name, matrix, reason", [
    ("matrix_inverse", [[1.0, 2.0], [2.0, 4.0]], "singular"), ("hermitian_eigenvalues", [[2.0, 0.0], [0.0, 2.0]], "separated"),
    ("hermitian_eigenvectors", [[2.0, 1.0], [1.0, 2.0]], "sign"), ("eigenvalues", [[1.0, 1.0], [0.0, 1.0]], "separated"),
    ("eigenvectors", [[2.0, 1.0], [1.0, 2.0]], "sign")])
def test_no_ball_is_given_where_a_function_of_matrices_is_not_decided(name, matrix, reason):
    with pytest.raises(ball.Undecided, match=reason):
        getattr(ball, name)(ball.lift_value(np.array(matrix)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["eigenvalues", "eigenvectors"])
@pytest.mark.parametrize("complex", [False, True])
def test_balls_of_the_spectrum_of_a_general_matrix(name, complex):
    """Also of a matrix with an element that is not known exactly, whose spectra for both ends are inside."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 3, 4):
        a = rng.normal(size=(2, n, n)) + (1j * rng.normal(size=(2, n, n)) if complex else 0)
        wide = ball.lift_value(a)
        ends = [a] if not n else [a, a + 1e-9 * np.eye(n)]
        if n:
            wide = wide + ball.lift_value(np.eye(n)) * ball.arb(0.5e-9, 0.6e-9)
        with ball.precision(256):
            found = getattr(ball, name)(wide).ravel().tolist()
            narrow = getattr(ball, name)(ball.lift_value(a)).ravel().tolist()
        assert all(x.real.rad() < 1e-60 for x in narrow)
        for end in ends:
            with precise.working_precision(DIGITS):
                true = getattr(precise, name)(precise.lift_value(end)).ravel().tolist()
            assert len(found) == len(true) and (not n or all(x.real.rad() < 1e-4 for x in found))
            for b, t in zip(found, true):
                t = precise.context.mpc(t)
                assert b.real.overlaps(exactly(t.real)) and b.imag.overlaps(exactly(t.imag))


def test_a_ball_that_contains_an_indefinite_matrix_has_no_bounded_cholesky_factor():
    wide = ball.lift_value(np.eye(2))
    wide[1, 1] = ball.arb(0, 1)
    assert not ball.cholesky_factor(wide)[1, 1].item().is_finite()


@pytest.mark.sampled(28)
@pytest.mark.parametrize("op, parameters", [case for case in ELEMENTWISE if case.values[0].docs.special])
def test_balls_at_special_points(op, parameters):
    for x in op.docs.special:
        check_holds(op, parameters, x)


def too_narrow(function):
    """The function with every digit beyond a float's cut off, and no radius."""
    return np.frompyfunc(lambda x: ball.arb(float(function(x).mid())), 1, 1)


@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "asinh"])
def test_a_function_that_is_too_narrow_is_caught(name, monkeypatch):
    op = REGISTRY[name]
    check_holds(op, (), [2.3])
    monkeypatch.setattr(ball, name, too_narrow(getattr(ball, name)))
    with pytest.raises(AssertionError, match=f"{name}.* does not hold"):
        check_holds(op, (), [2.3])


def test_undecided_conditions_of_balls_are_maybe():
    with ball.precision(64):
        root = ball.lift_value(2.0)
        near = ball.square(ball.sqrt(root))
        assert ball.eq(near, root).item() is ball.MAYBE and ball.lt(near, root).item() is ball.MAYBE
        assert ball.eq(near, near).item() is True and ball.lt(near, 3.0).item() is True and ball.ge(near, 3.0).item() is False
        assert ball.logical_and(ball.eq(near, root), ball.lt(near, 1.0)).item() is False
        both = ball.where(ball.lt(near, root), ball.lift_value(-1.0), ball.lift_value(5.0)).item()
        assert both.contains(-1) and both.contains(5) and both.is_finite()
        assert ball.indicator(ball.lt(near, root), root).item().contains(0) and ball.indicator(ball.lt(near, root), root).item().contains(1)
        assert not ball.log(ball.lift_value(-1.0)).item().is_finite()
        with pytest.raises(ball.Undecided, match="too close"):
            bool(ball.lt(near, root).item())
    assert ball.ctx.prec == 53


def test_choices_are_certain_where_an_element_is_compared_with_itself():
    with ball.precision(128):
        x = ball.sqrt(ball.lift_value(np.array([[2.0, 3.0, 5.0], [7.0, 1.0, 0.5]])))
        largest = ball.amax(x, 1, True)
        assert ball.eq(x, largest).tolist() == [[False, False, True], [True, False, False]]
        assert [float(k) for k in ball.argmax(x, 1).tolist()] == [2, 0] and [float(k) for k in ball.argmin(x, 1).tolist()] == [0, 2]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("radius", [1e-3, 1 / 3, 2.5, 1e200, 1e-300])
def test_a_whole_power_of_a_ball_around_zero_is_finite(n, radius):
    """Also where the midpoint is 0, of which Arb takes the logarithm."""
    around = ball.arb(0, radius)
    out = ball.pow(ball.lift_value(around), float(n)).item()
    assert out.is_finite() and out.contains(ball.arb(radius) ** n) and out.contains(ball.arb(-radius) ** n)
    assert out.abs_upper() < 1.1 * ball.arb(radius) ** n and not ball.pow(ball.lift_value(around), -float(n)).item().is_finite()


def test_rounding_is_to_even_and_contains_both_integers_if_undecided():
    with ball.precision(64):
        assert [float(v) for v in ball.round(ball.lift_value(np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.2, 1e300])))] == [0, 2, 2, 0, -2, 3, 1e300]
        half = ball.square(ball.sqrt(ball.lift_value(0.5)))
        assert ball.round(half).item().contains(0) and ball.round(half).item().contains(1)


# Reports


def helmholtz(x):
    return (x * (x / (1 - x.sum())).log()).sum() - (x @ x) / (1 + x.sum()) ** 0.5


def the_truth(function, inputs, order):
    """Value and derivatives by mpmath's differences of many digits, by index."""
    with mpmath.workdps(120):
        n = len(inputs)
        xs = [mpmath.mpf(v) for v in inputs]
        out = {}
        for k in range(order + 1):
            for index in np.ndindex((n,) * k):
                out[index] = mpmath.diff(function, xs, tuple(index.count(i) for i in range(n))) if k else function(*xs)
        return out


def by_mpmath(*x):
    total = sum(x)
    return sum(v * mpmath.log(v / (1 - total)) for v in x) - sum(v * v for v in x) / mpmath.sqrt(1 + total)


@pytest.mark.sweep
def test_enclosures_contain_value_gradient_hessian_and_third_derivatives():
    at = [0.1, 0.2]
    report = symgrad.check(helmholtz, at, order=3, points=4, rigorous=True)
    true = the_truth(by_mpmath, at, 3)
    assert [e.order for e in report.enclosures] == [0] + [1] * 2 + [2] * 3 + [3] * 4
    shown = [index for index in true if list(index) == sorted(index)]
    run = DifferentiationTask(helmholtz, (at,), None).run([np.array(at)])
    with ball.precision(128):
        balls = dict(enclosures_of(run, 3))
    for e, index in zip(report.enclosures, shown):
        assert e.narrow and e.lower <= true[index] <= e.upper and math.nextafter(e.lower, math.inf) >= e.upper
        assert e.ulp < 600 and (e.inside or e.ulp > 0)
        with mpmath.workdps(60), ball.precision(300):
            near = exactly(true[index])
            assert balls[index].overlaps(near + ball.arb(0, 1) * ball.arb(10) ** -45)


def enclosures_of(run, order):
    found = run.read(RecordingCarrier(ball, ball.lift_value), [leaf.value for leaf in run.leaves], order)
    return [(index, box.value.ravel()[place].item()) for index, box, place in found]


@pytest.mark.sweep
@pytest.mark.parametrize("function, at", [
    (lambda x: 1 - x.tanh() ** 2, 20.0), (lambda x: (x + 1) - x, 1e20), (lambda x: ((x * x + 1).sqrt() - x), 1e9), (lambda x: x.sin(), 1e22)])
def test_precision_is_raised_until_the_interval_is_narrow(function, at):
    value, first, second = symgrad.check(function, at, points=4, rigorous=True).enclosures
    for e in (value, first, second):
        assert e.narrow and not e.reason and math.nextafter(e.lower, math.inf) >= e.upper


@pytest.mark.sweep
def test_a_float_without_digits_is_far_from_its_enclosure():
    value = symgrad.check(lambda x: 1 - x.tanh() ** 2, 20.0, points=4, rigorous=True).enclosures[0]
    assert value.value == 0 and not value.inside and value.ulp > 1e15 and value.lower <= 1.6993417021166356e-17 <= value.upper and value.bits > 128


@pytest.mark.sweep
def test_an_enclosure_at_a_possible_kink_is_wide_with_a_reason():
    report = symgrad.check(lambda x: (x.sqrt() ** 2 - 2).abs(), 2.0, points=4, rigorous=True)
    value, first, _ = report.enclosures
    assert value.narrow and value.lower <= 0 <= value.upper and not value.inside and value.ulp == math.inf
    assert not first.narrow and first.inside and first.lower <= -1 and first.upper >= 1 and "kink" in first.reason
    assert any("df/dx stays wide" in note for note in report.notes)


@pytest.mark.sweep
def test_an_undecided_branch_of_a_rule_has_no_enclosure():
    report = symgrad.check(lambda x: (symgrad.stack([x.sqrt() ** 2, 0 * x + 2]).max(0).values), 2.0, points=4, rigorous=True)
    assert report.enclosures[0].narrow  # the value of a tie is known, its derivative is not
    assert report.enclosures[0].lower <= 2 <= report.enclosures[0].upper and not report.enclosures[1].narrow


def test_a_value_that_is_not_finite_is_not_enclosed():
    report = symgrad.check(lambda x: x.sqrt(), 0.0, points=4, rigorous=True)
    assert report.enclosures[0].narrow and report.enclosures[0].inside
    assert not report.enclosures[1].narrow and (report.enclosures[1].lower, report.enclosures[1].upper) == (-math.inf, math.inf)


def test_single_precision_is_measured_in_its_own_ulps():
    report = symgrad.check(lambda x: x.exp(), symgrad.tensor(0.3, dtype=symgrad.float32), points=4, rigorous=True)
    assert all(e.narrow and e.ulp < 8 for e in report.enclosures)
    exact = math.exp(float(np.float32(0.3)))
    assert report.enclosures[0].lower <= exact <= math.nextafter(report.enclosures[0].upper, math.inf)


def test_the_four_formats_and_json_show_the_enclosures():
    report = symgrad.check(lambda x: x.exp(), 0.3, points=4, rigorous=True)
    shown = "[1.3498588075760031040 +/- 1.68e-20]"
    interval = report.enclosures[0].interval
    assert interval.startswith(shown[:18]) and "+/-" in interval
    assert "Enclosures (certain to hold the true number)" in str(report) and interval in str(report)
    assert interval in report._repr_markdown_() and interval in report._repr_html_()
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as captured:
        console.print(report)
    assert interval in captured.get()
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))["enclosures"]
    assert [e["where"] for e in data] == ["f", "df/dx", "d2f/dx dx"]
    assert data[0].keys() == {"order", "where", "interval", "lower", "upper", "value", "inside", "ulp", "bits", "narrow", "reason"}
    assert data[0]["lower"] < math.exp(0.3) <= data[0]["upper"]


def test_without_the_option_there_are_no_enclosures():
    report = symgrad.check(lambda x: x.exp(), 0.3, points=4)
    assert report.enclosures == [] and "Enclosures" not in str(report) and "enclosures" not in report.to_dict()


@pytest.mark.parametrize("most, bits", [(128, 128), (1000, 512), (8192, 8192)])
def test_the_search_for_more_digits_ends_with_a_number_of_bits(most, bits):
    run = DifferentiationTask(lambda x: (x.sqrt() ** 2 - 2).abs(), (2.0,), None).run([np.array(2.0)])
    assert {e.bits for e in enclosures(run, {0: np.array(0.0), 1: np.array([0.0])}, ["x"], most)} == {bits}


@pytest.mark.sweep
def test_many_inputs_have_an_enclosed_gradient_and_a_short_table():
    report = symgrad.check(lambda x: x.sin().sum(), np.linspace(0.1, 3, 70), points=1, rigorous=True)
    assert len(report.enclosures) == 71 and all(e.narrow for e in report.enclosures)
    assert "47 more; all are in report.enclosures" in str(report)


def test_without_python_flint_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.delitem(sys.modules, "symgrad.carriers.ball")
    with pytest.raises(ImportError, match="pip install python-flint"):
        carrier()
    with pytest.raises(ImportError, match="python-flint"):
        symgrad.check(lambda x: x.exp(), 0.3, rigorous=True)
    assert symgrad.check(lambda x: x.exp(), 0.3, points=4).verdict == "proved"


def test_a_rule_without_a_form_for_balls_is_named(declare):
    lookup = declare("lookup", lambda xp, x: xp.exp(x), lambda xp, y, x: xp.gamma_of_nothing(x) if xp.__class__.__name__ == "RecordingCarrier" else y)
    report = symgrad.check(lambda x: lookup(x), 0.3, points=4, rigorous=True)
    assert report.verdict == "not checkable" and "gamma_of_nothing" in report.reason
