"""`symgrad.check`: right rules are proved or verified, functions that cannot be checked have a reason, and inputs of every documented form."""

import runpy
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from tests.support.lines import lines

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
FUNCTIONS = {"anharmonic_oscillator": "ground_state", "black_scholes": "price", "burgers": "potential", "challenger": "negative_log_likelihood",
             "finite_elements": "energy", "gamma_regression": "negative_log_likelihood", "gaussian_process": "negative_log_likelihood",
             "helmholtz": "helmholtz", "kalman": "negative_log_likelihood", "lennard_jones": "energy", "spectral_energy": "energy",
             "van_der_waals": "pressure"}
CANCELS = {"black_scholes": "far out of the money the price is a difference of nearly equal terms",
           "gamma_regression": "ψ(k) and log k are nearly equal",
           "gaussian_process": "a trace and a trace of a square are nearly equal where the amplitude is far above the noise",
           "kalman": "the spread after a flow is a difference of nearly equal terms",
           "spectral_energy": "terms of a transform cancel", "anharmonic_oscillator": "the lowest energy is small beside the largest one"}
AT = {"gaussian_process": ((8.75, -1.0, 1.0),)}
"""Arguments at which terms cancel: how many points the search sees depends on its time."""


# Right rules

@pytest.mark.sweep
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_proved_or_verified(path):
    function = runpy.run_path(str(path))[FUNCTIONS[path.stem]]
    report = symgrad.check(function, *AT.get(path.stem, ()), points=6)
    assert report.verdict in ("proved", "verified"), report
    assert report.points.random == 6 and report.points.digits >= 45
    assert [e.order for e in report.errors] == [0, 1, 2] and all(e.within for e in report.errors) == (path.stem not in CANCELS), report


FUNCTIONS_OF = {name: (names, eval(f"lambda {names}: {text}")) for name, names, text in lines("checked")}
PROVABLE, ARRAYS = ({name: function for name, (given, function) in FUNCTIONS_OF.items() if given == names} for names in ("x, y", "x"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROVABLE)
def test_a_right_derivative_with_a_short_formula_is_proved(name):
    report = symgrad.check(PROVABLE[name], 0.7, 1.9, points=5)
    assert report.verdict == "proved", report
    assert report.counterexample is None and report.points.compared > 5 and report.points.digits >= 45


@pytest.mark.sweep
def test_arguments_with_the_same_gradient_have_each_their_part_of_a_direction():
    report = symgrad.check(lambda x, y, z: ((x + y).sin() ** 2).sum() + z.sum(), np.arange(6) / 8, np.arange(6) / 4, np.zeros(0), points=3)
    assert report.verdict == "proved", report


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ARRAYS)
def test_functions_of_arrays_are_proved_or_verified(name):
    report = symgrad.check(ARRAYS[name], [0.3, -1.25, 2.0], points=3)
    assert report.ok and report.points.compared > 3, report


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["softmax", "prod", "clamp", "norm"])
def test_third_derivatives_of_arrays_are_proved_or_verified(name):
    report = symgrad.check(ARRAYS[name], [0.3, -1.25], order=3, points=3)
    assert report.ok and report.third.shape == (2, 2, 2) and report.errors[-1].order == 3, report


@pytest.mark.sweep
def test_the_numbers_and_formulas_of_a_report_are_right():
    report = symgrad.check(lambda x, y: (x * y).sin() + y**2, 0.5, 2.0, order=3)
    c, s = np.cos(1.0), np.sin(1.0)
    assert report.value == pytest.approx(s + 4, rel=1e-15)
    assert report.gradient == {"x": pytest.approx(2 * c, rel=1e-14), "y": pytest.approx(0.5 * c + 4, rel=1e-14)}
    np.testing.assert_allclose(report.hessian, [[-4 * s, c - s], [c - s, 2 - s / 4]], rtol=1e-14)
    np.testing.assert_allclose(report.third[0, 0], [-8 * c, -4 * s - 2 * c], rtol=1e-14)
    x, y = sympy.symbols("x y", real=True)
    assert report.names == ["x", "y"] and report.formula == sympy.sin(x * y) + y**2
    for index, formula in report.formulas.items():
        assert sympy.simplify(formula - sympy.diff(report.formula, *(( x, y)[i] for i in index))) == 0
    assert set(report.formulas) >= {(0,), (1,), (0, 0), (0, 1), (1, 1)}


@pytest.mark.sweep
def test_an_array_result_is_weighted_and_summed():
    report = symgrad.check(lambda x: x**2, [1.0, 2.0, 3.0])
    assert report.shape == (3,) and report.value == 1 + 2 * 4 + 3 * 9
    np.testing.assert_array_equal(report.gradient["x"], [2.0, 8.0, 18.0])
    assert symgrad.check(lambda x: {"a": x, "b": (x * 2, None)}, 3.0).value == 3 + 2 * 6


@pytest.mark.sweep
def test_a_long_formula_is_given_as_assignments():
    def chain(x):
        for _ in range(12):
            x = (x * x + 0.1).tanh() * x
        return x

    report = symgrad.check(chain, 0.9, points=3)
    assert report.verdict == "verified" and report.formula is None and 30 < len(report.assignments) < 60
    assert any("not proved" in note for note in report.notes)


def test_branches_are_reported_and_other_branches_are_checked_too(declare):
    cube = declare("cube_of_left", lambda xp, x: x * x * x, lambda xp, y, x: 2 * x * x)

    def branching(x):
        return x**2 if x > -1 else cube(x)

    report = symgrad.check(branching, 2.0)
    assert [str(c) for c in report.conditions] == ["x > -1"]
    assert report.verdict == "refuted" and report.counterexample.point["x"] <= -1 and report.counterexample.op == "cube_of_left"


def test_kinks_and_poles_are_distinguished_from_errors():
    report = symgrad.check(lambda x: x.relu(), 0.0)
    assert report.ok and report.points.kinks and any("kink" in note for note in report.notes)
    report = symgrad.check(lambda x: x.sqrt(), 0.0)
    assert report.ok and report.points.singular and any("does not exist" in note for note in report.notes)
    report = symgrad.check(lambda x: x.log(), 2.0)
    assert report.ok and report.points.outside


@pytest.mark.parametrize("x", [30.1, 300.3, 5000.0, 1e5 / 3, 1e300])
def test_points_that_need_thousands_of_digits_are_compared(x):
    """tanh(5000) is 1 to 4342 digits: SymPy's 1 - tanh² has none of the derivative's, which is below every float."""
    report = symgrad.check(symgrad.tanh, x, points=3)
    assert report.verdict == "proved" and not report.points.singular and not report.notes, report


def huge_multiple(x):
    """(1 - tanh(x)) 1e10500, whose floats are 0 while it is large."""
    y = 1 - x.tanh()
    for _ in range(35):
        y = y * 1e300
    return y


def test_points_that_need_too_many_digits_are_left_out():
    report = symgrad.check(huge_multiple, 12000.0, points=3)
    assert report.ok and report.points.singular and any("too many digits" in note for note in report.notes), report


@pytest.mark.sweep
def test_float32_is_measured_in_its_own_units():
    report = symgrad.check(lambda x: x.sin() * x, np.float32(0.7))
    assert report.ok and all(e.within for e in report.errors)


@pytest.mark.sweep
def test_an_inaccurate_formula_is_a_loss_of_accuracy_and_not_refuted():
    report = symgrad.check(lambda x: (1 - x.cos()) / x**2, 1e-6)
    assert report.ok and not all(e.within for e in report.errors)
    assert any("loses accuracy at order 0" in note for note in report.notes)


@pytest.mark.sweep
def test_tails_of_accurate_rules_are_not_called_a_loss():
    for function, x in ((symgrad.tanh, 20.0), (symgrad.sigmoid, 40.0), (symgrad.expm1, -40.0)):
        report = symgrad.check(function, x, points=4)
        assert report.ok and all(e.within for e in report.errors), report


# Nothing to check

@pytest.mark.parametrize("what, reason, inputs, function", lines("not_checkable"))
def test_not_checkable_functions_have_a_reason(what, reason, inputs, function):
    report = symgrad.check(eval(function), *eval(inputs))
    assert report.verdict == "not checkable" and not report.ok and reason in report.reason, report
    assert report.reason in str(report)


def test_an_op_without_a_symbolic_form_cannot_be_checked(declare):
    import math

    numbers_only = declare("numbers_only", lambda xp, x: x * math.sin(x), lambda xp, y, x: xp.cos(x))
    report = symgrad.check(lambda x: numbers_only(x), 1.0)
    assert report.verdict == "not checkable" and "numbers_only has no symbolic form" in report.reason


def test_an_op_whose_rule_is_only_for_numbers_cannot_be_checked(declare):
    numbers_only = declare("rule_of_numbers", lambda xp, x: xp.sin(x), lambda xp, y, x: np.cos(x))
    report = symgrad.check(lambda x: numbers_only(x), 1.0, order=1)
    assert report.verdict == "not checkable" and "write it with the functions of xp" in report.reason


def test_a_function_that_raises_raises():
    with pytest.raises(ZeroDivisionError):
        symgrad.check(lambda x: x / (1 // 0), 1.0)


# Inputs

@pytest.mark.sweep
def test_inputs_are_floats_lists_and_arrays_and_the_rest_is_passed_on():
    def simple(x, n: int, scale=2, *more):
        assert isinstance(n, int) and isinstance(scale, int)
        return (x**n).sum() * scale * more[0]

    report = symgrad.check(simple, [1, 2], 3, 4, 2.0)
    assert report.names == ["x_0", "x_1", "more0"] and report.value == 72.0


def test_wrt_limits_the_inputs():
    report = symgrad.check(lambda x, y: x * y, 2.0, 3.0, wrt=["y"])
    assert report.names == ["y"] and report.gradient == {"y": 2.0}
    with pytest.raises(TypeError, match="z is not a real argument; those are x, y"):
        symgrad.check(lambda x, y: x * y, 2.0, 3.0, wrt=["z"])


@pytest.mark.sweep
def test_an_example_and_defaults_are_inputs():
    @symgrad.example(2.0, y=3.0)
    def product(x, y, z=1.0):
        return x * y * z

    assert symgrad.check(product).value == 6.0
    assert symgrad.check(product, 1.0, 1.0).value == 1.0
    assert symgrad.check(lambda x=2.0, y=[1.0, 3.0]: (x * y).sum()).value == 8.0
    with pytest.raises(TypeError, match="product.*missing a required argument: 'y'"):
        symgrad.example(1.0)(product)


@pytest.mark.parametrize("order", [0, 4, 1.0, "2", True, None])
def test_another_order_is_refused(order):
    with pytest.raises(ValueError, match="order must be 1, 2 or 3"):
        symgrad.check(lambda x: x, 1.0, order=order)


def test_something_that_is_no_function_is_refused():
    with pytest.raises(TypeError, match="check needs a function, not int"):
        symgrad.check(3, 1.0)


def test_the_inputs_are_not_changed():
    x = np.array([1.0, 2.0])
    t = symgrad.tensor([1.0, 2.0], requires_grad=True)
    symgrad.check(lambda x, t: (x * t).sum(), x, t, points=2)
    assert x.tolist() == [1.0, 2.0] and t.tolist() == [1.0, 2.0] and t.grad is None


def test_a_check_leaves_the_modes_and_the_precision_as_they_were():
    from symgrad.carriers import precise

    before = precise.context.dps, mpmath.mp.dps
    with symgrad.no_grad():
        assert symgrad.check(lambda x: x**2, 1.0, points=2).ok
        assert not symgrad.is_grad_enabled()
    assert (precise.context.dps, mpmath.mp.dps) == before


@pytest.mark.sweep
def test_the_same_seed_gives_the_same_report():
    first, second = (symgrad.check(lambda x: x.sin().exp(), 0.3, points=4, seed=7).to_dict() for _ in range(2))
    first.pop("seconds"), second.pop("seconds")
    assert first == second


def test_a_function_that_uses_vmap_is_not_checkable():
    report = symgrad.check(lambda x: symgrad.func.vmap(lambda row: row.sin().sum())(x).sum(), [[0.5, 1.0], [2.0, 3.0]])
    assert report.verdict == "not checkable" and "vmap" in report.reason
