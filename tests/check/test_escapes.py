"""Numbers that leave the graph: a recorded graph that is not the function is neither proved nor verified, and has no formula."""

import copy
import math
import pickle

import numpy as np
import pytest

import symgrad
from symgrad.matrixcalc import matrix_gradient
from tests.support.functions import saving


def _detached(v):
    with symgrad.no_grad():
        c = v * 2
    return c * v


def _inner(v):
    x = v.detach().requires_grad_()
    return symgrad.autograd.grad(x**3, x)[0] * v


ESCAPES = {
    "math": (lambda v: math.exp(v) * v, "float()", math.exp(1.3) * 2.3),
    "float": (lambda v: float(v) * v, "float()", 2.6),
    "item": (lambda v: v.item() * v, "item()", 2.6),
    "numpy": (lambda v: np.sin(v.detach().numpy()) * v, "detach()", math.sin(1.3) + 1.3 * math.cos(1.3)),
    "asarray": (lambda v: symgrad.tensor(np.asarray(v.detach())) * v, "detach()", 2.6),
    "detach": (lambda v: v.detach() * v, "detach()", 2.6),
    "data": (lambda v: v.data * v, ".data", 2.6),
    "tolist": (lambda v: symgrad.tensor(v.tolist()) * v, "tolist()", 2.6),
    "tensor": (lambda v: symgrad.tensor(float(v)).exp() * v, "float()", math.exp(1.3) * 2.3),
    "copy": (lambda v: copy.deepcopy(v).detach() * v if v.is_leaf else v, "deepcopy()", 2.6),
    "pickle": (lambda v: pickle.loads(pickle.dumps(v)).detach() * v, "pickle", 2.6),
    "exponent": (lambda v: v ** float(v), "float()", 1.3**1.3 * (math.log(1.3) + 1)),
    "parameter": (lambda v: v.clamp(max=float(v)) * 1.0 + v * 0, "float()", 1.0),
    "no_grad": (_detached, "without grad mode", 5.2),
    "inner": (_inner, "detach()", 9 * 1.3**2),
    "branch": (lambda v: v * float(v) if v > 0 else v * 0, "float()", 2.6),
}


@pytest.mark.parametrize("name", [name for name in ESCAPES if name != "parameter"])
def test_a_graph_with_a_number_that_escaped_is_refuted(name):
    function, conversion, derivative = ESCAPES[name]
    report = symgrad.check(function, 1.3, points=5)
    assert report.verdict == "refuted" and not report
    assert conversion in report.reason
    if name != "no_grad":
        assert __file__ in report.reason
    assert report.counterexample.truth == pytest.approx(derivative, rel=1e-8)
    assert report.counterexample.where == "df/dv"


@pytest.mark.parametrize("name", ESCAPES)
def test_such_a_function_has_no_formula(name):
    function, conversion, _ = ESCAPES[name]
    if name != "branch":
        with pytest.raises((ValueError, RuntimeError)) as caught:
            symgrad.to_sympy(function, at=[1.3])
        assert isinstance(caught.value, RuntimeError) or conversion in str(caught.value) or name == "no_grad"
    with pytest.raises(TypeError, match="recorded graph"):
        symgrad.accuracy(function, domain=(0.5, 2.0))
    report = symgrad.kinks(function, inputs=(1.3,))
    assert report.verdict == "undecided" and "recorded graph" in report.reason
    with pytest.raises(ValueError, match="recorded graph"):
        matrix_gradient(lambda A, x: (A @ x).sum() * function(x.sum() + 0.0 * x.sum()) if name not in ("copy", "parameter") else
                        (A @ x).sum() * float(x.sum()), "x", A="n m", x="m")


@pytest.mark.sweep
def test_formulas_with_integers_hold_near_the_point_only():
    for function in (lambda v: int(v) * v, lambda v: [1.0, 2.0, 5.0][min(abs(int(v)), 2)] * v, lambda v: float(f"{v.item():.3f}") * v):
        report = symgrad.check(function, 1.3, points=8)
        assert report.verdict == "verified"
        assert any("not proved: the formula is that near the given point" in note and __file__ in note for note in report.notes)
        with pytest.raises(ValueError, match="has no one formula"):
            symgrad.to_sympy(function)
    assert str(symgrad.to_sympy(lambda v: int(v) * v, at=[2.5])) == "2*v"


@pytest.mark.sweep
def test_an_if_on_a_plain_number_is_not_proved():
    report = symgrad.check(lambda v: v * v if float(v) > 1 else v * 3, 1.3)
    assert report.verdict == "verified" and any("float()" in note for note in report.notes)
    assert symgrad.check(lambda v: v * v if v > 1 else v * 3, 1.3).verdict == "proved"


@pytest.mark.sweep
def test_numbers_that_are_only_read_do_not_change_the_verdict():
    seen = []

    def function(v):
        seen.append(float(v))
        assert np.isfinite(v.item())
        return v.sin() * v if repr(v) else v

    assert symgrad.check(function, 1.3).verdict == "proved"
    assert str(symgrad.to_sympy(function)) == "v*sin(v)"


def test_a_right_gradient_of_another_graph_is_not_verified():
    report = symgrad.check(lambda v: v * float(v) / float(v), 1.3)
    assert report.verdict == "not checkable" and "float()" in report.reason


def test_the_second_derivative_of_a_stopped_gradient_is_refuted():
    report = symgrad.check(lambda v: (v - v.detach()) ** 2 + v, 1.3)
    assert report.verdict == "refuted" and report.counterexample.where == "d2f/dv dv"
    assert (report.counterexample.rule, round(report.counterexample.truth, 6)) == (2.0, 0.0)


def test_an_escape_at_other_points_alone_is_found():
    report = symgrad.check(lambda v: v * v if v < 3 else v * float(v), 1.3)
    assert report.verdict == "refuted" and "float()" in report.reason


@pytest.mark.sweep
def test_arrays_and_several_inputs():
    report = symgrad.check(lambda x, w: (x * w).sum() * x.detach().numpy().max(), [1.0, 2.0], [3.0, 4.0])
    assert report.verdict == "refuted" and "detach()" in report.reason
    report = symgrad.check(lambda x, w: (x * w).sum() * w.sum() + x.amax(0), [1.0, 2.0], [3.0, 4.0])
    assert report.verdict in ("proved", "verified")


@pytest.mark.sweep
def test_a_function_as_formula_of_another_has_to_be_its_graph():
    pair = lambda v: np.sin(v) * v, lambda v: np.cos(v) * v + np.sin(v)  # noqa: E731
    with pytest.raises(ValueError, match="recorded graph"):
        symgrad.check(pair, 1.0, formula=lambda v: v.sin() * float(v))
    wrong = symgrad.check((lambda v: float(v) * v, lambda v: float(v)), 1.5)
    assert wrong.verdict == "refuted"


@pytest.mark.sweep
def test_custom_functions_and_inner_gradients_are_still_proved():
    Cube = saving(lambda x: x * x * x, lambda g, x: g * 3 * x * x, "Cube")

    assert symgrad.check(lambda v: Cube.apply(v), 1.3).verdict == "proved"
    assert symgrad.check(lambda v: symgrad.autograd.grad(v**3, v, create_graph=True)[0] * v, 1.3).verdict == "proved"


def test_a_constant_that_is_not_a_number_is_the_same_everywhere():
    where = lambda v: symgrad.where(v.detach() < 0, math.nan, v * v)  # noqa: E731
    assert symgrad.check(where, 1.3, points=3).verdict != "refuted"
    assert str(matrix_gradient(symgrad.logdet, "input", input="n n")) == "input⁻ᵀ"
