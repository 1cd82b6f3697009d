"""The check of complex numbers: the mistakes that it finds, right ops that pass, and ops to which it does not apply."""

import time

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.testing import CheckFailure, check_complex, check_op
from symgrad.testing.attack import Attack, Check
from symgrad.testing.checks import CHECKS, run
from tests.power.power_entries import ruled
from tests.support.functions import saving
from tests.support.lines import lines

QUICK = {"elementwise": True, "framework": "numpy", "shrink": False, "complex": True}
conj = np.conj


def real_like(x, y):
    """A gradient for an argument: its real part where that is real."""
    return y if np.iscomplexobj(x) else np.real(y)


RIGHT = {name: tuple(map(eval, rules)) for name, *rules in lines("complex_rules")}


@pytest.mark.parametrize("name", RIGHT)
def test_right_complex_functions(name):
    function, pullback, pushforward = RIGHT[name]
    assert check_complex(function, pullback=pullback, pushforward=pushforward, **QUICK).verdict == "passed"


WRONG = {name: (of, eval(changes)) for name, of, changes in lines("wrong_complex_rules")}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("forward", [True, False], ids=["with a pushforward", "without"])
def test_wrong_complex_functions(name, forward):
    of, changes = WRONG[name]
    function, pullback, pushforward = RIGHT[of]
    claims = {"pullback": pullback, "pushforward": pushforward, **changes}
    function = claims.pop("function", function)
    if not forward:
        if set(changes) == {"pushforward"}:
            return
        del claims["pushforward"]
    with pytest.raises(CheckFailure):
        check_complex(function, **claims, **QUICK)


def test_derivatives_that_conjugate_symmetry_alone_gives_away():
    with pytest.raises(CheckFailure, match="f\\(conj z\\) is not conj f"):
        check_complex(lambda x: x * x + 1e-3 * (np.imag(x) < 0), pullback=lambda g, x: g * conj(2 * x), **QUICK)


def test_a_second_derivative_without_a_conjugate():
    Field = saving(lambda z: z * z, lambda g, z: Factor.apply(z.conj() if z.is_complex() else z, g), "Field")
    Factor = saving(lambda w, g: 2 * w * g, lambda h, w, g: (2 * g * h, 2 * w.conj() * h if w.is_complex() else 2 * w * h), "Factor")

    with pytest.raises(CheckFailure, match="the second derivative is not what finite differences say"):
        check_complex(Field, elementwise=True, shrink=False, complex=True)


def test_when_it_does_not_apply():
    assert "it takes no complex numbers" in check_complex(REGISTRY["floor"]).reason
    with pytest.raises(CheckFailure, match="floor"):
        check_complex(np.floor, **QUICK)
    assert check_complex(symgrad.exp, complex=False).reason == "it is not claimed for complex numbers"
    assert check_complex(np.sin, **QUICK).verdict == "passed"  # the value on the real axis is all there is to see


def of_complex(m, forward, backward):
    return ruled(m, forward, lambda ctx, g, z: backward(g, z))


# Right: every op with its formula, as the only number of its domain and as a claim
FORMULAS = {"square over 3": (lambda z: z * z / 3, lambda g, z: 2 * g * z.conj() / 3, "z**2/3"),
            "exponential": (lambda z: (0.7 * z).exp(), lambda g, z: 0.7 * g * (0.7 * z).exp().conj(), "exp(0.7*z)"),
            "sine times z": (lambda z: z.sin() * z, lambda g, z: g * (z.cos() * z + z.sin()).conj(), "z*sin(z)"),
            "logarithm": (lambda z: (z + 12).log(), lambda g, z: g / (z + 12).conj(), "log(z + 12)"),
            "squared length": (lambda z: (z * z.conj()).real.clone(), lambda g, z: 2 * g * z, lambda xp, z: xp.abs(z) ** 2),
            "of SymPy": (lambda z: z * z * z, lambda g, z: 3 * g * (z * z).conj(), sympy.Symbol("z") ** 3)}
LIMITS = {"domain": COMPLEX, "elementwise": True}


@pytest.mark.parametrize("name", FORMULAS)
def test_complex_ops_that_are_right_are_compared_with_their_formula(name):
    forward, backward, formula = FORMULAS[name]
    report = check_op(of_complex(symgrad, forward, backward), formula=formula, raise_exception=False, **LIMITS)
    assert report.verdict == "passed", str(report)
    complex_check = next(r for r in report.results if r.check == "complex")
    assert complex_check.verdict == "passed" and complex_check.compared > 500
    assert not any(r.verdict == "passed" and not r.compared for r in report.results)


MISTAKES = {"value": lambda f, b: (lambda z: f(z) * (1 + 1e-9), lambda g, z: b(g, z) * (1 + 1e-9)),
            "value conjugated": lambda f, b: (lambda z: f(z).conj(), lambda g, z: b(g.conj(), z)),
            "gradient not conjugated": lambda f, b: (f, lambda g, z: b(g.conj(), z).conj()),
            "gradient off by a millionth": lambda f, b: (f, lambda g, z: b(g, z) * (1 + 1e-6)),
            "gradient of the real part": lambda f, b: (f, lambda g, z: b(g, z).real + 0j),
            "second derivative": lambda f, b: (f, lambda g, z: b(g, z.detach())),
            "complex64": lambda f, b: (lambda z: f(z) * (1 if z.dtype == symgrad.complex128 else 1.001), b),
            "gradient of complex64": lambda f, b: (f, lambda g, z: b(g, z) * (1 if z.dtype == symgrad.complex128 else 1j)),
            "second derivative of complex64": lambda f, b: (f, lambda g, z: b(g, z if z.dtype == symgrad.complex128 else z.detach()))}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "squared length"])
@pytest.mark.parametrize("what", MISTAKES)
def test_complex_ops_that_are_wrong_are_found_by_their_formula(name, what):
    *right, formula = FORMULAS[name]
    found = attacked_by(of_complex(symgrad, *MISTAKES[what](*right)), formula=formula, **LIMITS)
    assert found.verdict == "failed"


def attacked_by(op, **claims):
    return run(CHECKS["complex"], Attack(op, shrink=False, **claims))


def test_a_value_that_is_wrong_for_complex_numbers_of_numpy():
    """There is no derivative and no real number, so that the formula is all that it can be compared with."""
    report = check_op(lambda z: np.sin(z) * (1 + 1e-7), formula="sin(z)", domain=COMPLEX, framework="numpy", raise_exception=False)
    assert report.verdict == "failed" and "the value is not that of the formula" in str(report)
    assert check_op(lambda z: np.sin(z), formula="sin(z)", domain=COMPLEX, framework="numpy", raise_exception=False).verdict == "passed"


def test_a_check_that_compares_nothing_has_not_passed():
    def nothing(attack, example):
        np.sin(example.xs[0])

    result = run(Check("own", nothing, "points", lambda attack: "", None, check_complex), Attack(np.sin, formula="sin(x)"))
    assert result.verdict == "not applicable" and result.reason.startswith("nothing could be compared at ") and result.compared == 0
    for check in CHECKS.values():
        found = run(check, Attack(lambda x: x * np.nan, elementwise=True, framework="numpy"))
        assert found.verdict != "passed" or found.compared


def test_an_aborted_check_is_not_checkable():
    report = check_op(lambda x: symgrad.sin(x), formula="sin(x)", seconds=0.0, raise_exception=False)
    assert report.verdict == "not checkable" and {r.verdict for r in report.results} == {"not checkable"}
    assert len(report.results) == len(CHECKS) and "not begun" in report.results[-1].reason

    def endless(x):
        if x.size == 4:
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
        return np.sin(x)

    partly = check_op(endless, checks=["value", "errors"], formula="sin(x)", framework="numpy", seconds=2.0, raise_exception=False)
    first = partly.results[0]
    assert partly.verdict == "not checkable" and " planned examples were compared" in first.reason and 0 < first.examples < 60
