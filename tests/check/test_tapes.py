"""Certain comparisons by balls: as by many digits, at every branch, with rules of now, and without python-flint as before."""

import dataclasses
import sys
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.algebra.evaluating import Evaluator
from symgrad.algebra.stochastic import Arithmetic
from symgrad.carriers import ball
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.frameworks.differentiation_task import DifferentiationTask
from symgrad.graph.op import REGISTRY
from symgrad.proofs.balls import BallProgram
from symgrad.proofs.tape import Tape
from symgrad.reference import certify
from symgrad.reference.exact import OracleComparison, agreement


def exact(function, *point, order=2, direction=None):
    values = [np.asarray(x, float) for x in point]
    run = DifferentiationTask(function, values, None).run(values)
    n = sum(v.size for v in values)
    return OracleComparison(run, order, np.linspace(0.3, 1.1, n) if direction is None else direction, replay=True)


def by_digits(function, *point, **options):
    found = exact(function, *point, **options)
    found.__dict__["certified"] = None
    return found


SMOOTH = {
    "elementary": (lambda x: (x.sin() * x.exp() / (1 + x**2)).sum(), [1 / 3, -0.7]),
    "powers": (lambda x: (x ** (1 / 3) + x**2.5 - x**-0.1).sum(), [1 / 7, 2.3]),
    "special": (lambda x: (symgrad.special.gammaln(x) * symgrad.erf(x) + symgrad.special.digamma(x)).sum(), [1 / 3, 2.6]),
    "Bessel": (lambda x: symgrad.special.bessel_j0(x).sum() + symgrad.special.i0(x).sum(), [0.37, 2.1]),
    "matrices": (lambda x: symgrad.linalg.det(x @ x.T + symgrad.eye(2)) + symgrad.linalg.inv(x).sum(), [[1.1, 0.3], [-0.2, 0.7]]),
    "triangles": (lambda x: symgrad.linalg.cholesky(x @ x.T + symgrad.eye(2)).diagonal().log().sum(), [[1.1, 0.3], [-0.2, 0.7]]),
    "complex numbers": (lambda x: (symgrad.complex(x[0], x[1]) ** 2).exp().abs(), [0.3, 1 / 7]),
    "Fourier": (lambda x: (symgrad.fft.fft(x).abs() ** 2 * symgrad.tensor([1.0, 0.3, 0.1])).sum(), [0.3, 1 / 7, -0.4]),
    "selections": (lambda x: symgrad.where(x > 0.5, x.sin(), x**3).sum() + x.max() * x.min() + symgrad.relu(x - 0.1).sum(), [0.3, 1.7]),
    "softmax": (lambda x: (x.softmax(0) * symgrad.tensor([1.0, 2.0, 0.5])).sum() + x.logsumexp(0), [0.3, 1 / 7, -0.4]),
    "small differences": (lambda x: (1 - x.cos()).sum() + (x + 1e16 - 1e16).sum(), [1e-9, 1e-7 / 3])}


@pytest.mark.parametrize("name", SMOOTH)
def test_balls_and_many_digits_give_the_same_numbers(name):
    function, point = SMOOTH[name]
    found, plain = exact(function, point, order=3), by_digits(function, point, order=3)
    assert agreement(found) == agreement(plain) == (50.0, None) and found.rigorous and not plain.rigorous
    for a, b in zip(found.entries(), plain.entries(), strict=True):
        assert (a.order, a.index, a.directional) == (b.order, b.index, b.directional)
        assert a.rule == pytest.approx(b.rule, rel=1e-14) and a.reference == pytest.approx(b.reference, rel=1e-14)


WITHOUT_FORMULA = {
    "eigenvalues": lambda x: symgrad.linalg.eigvalsh(x + x.T)[0], "eigenvectors": lambda x: symgrad.linalg.eigh(x + x.T).eigenvectors[0, 0] ** 2,
    "singular values": lambda x: symgrad.linalg.svdvals(x).prod(), "exponential": lambda x: symgrad.linalg.matrix_exp(x).sum(),
    "pseudo-inverse": lambda x: symgrad.linalg.pinv(x)[0, 1]}


@pytest.mark.parametrize("name", WITHOUT_FORMULA)
def test_functions_of_matrices_without_a_formula_are_compared_with_quotients(name):
    """Their values are balls, and a quotient is not certain."""
    point = [[1.1, 1 / 3], [-0.2, 0.7]]
    found, plain = (make(WITHOUT_FORMULA[name], point) for make in (exact, by_digits))
    plain.programs = None
    assert agreement(found)[1] is agreement(plain)[1] is None and not found.rigorous and found.replayed and found.programs.found
    for a, b in zip(found.entries(), plain.entries(), strict=True):
        assert a.rule == pytest.approx(b.rule, rel=1e-14) and a.reference == pytest.approx(b.reference, rel=1e-14)


@pytest.mark.parametrize("name, function, point", [
    ("zeta", lambda x: symgrad.special.zeta(x, 1.5), 2.3), ("incomplete elliptic", lambda x: symgrad.special.ellipkinc(x, 0.3), 0.7),
    ("softplus", lambda x: symgrad.nn.functional.softplus(x, beta=2.5), 1 / 3), ("erfinv", symgrad.erfinv, 0.3), ("lgamma", symgrad.lgamma, 0.7),
    ("polygamma", lambda x: symgrad.polygamma(2, x), 1.3), ("sinc", symgrad.sinc, 1 / 3)])
def test_special_functions_have_enclosures(name, function, point):
    found = exact(function, point)
    assert agreement(found) == (50.0, None) and found.rigorous


WRONG = {
    "by a factor": (lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) * 1.001, 1),
    "by the last digits": (lambda xp, x: xp.exp(x), lambda xp, y, x: y + y * 1e-30, 1),
    "a rounded constant": (lambda xp, x: x**3 / 3, lambda xp, y, x: x**2 * (1 / 3) * 3, 1),
    "for large numbers": (lambda xp, x: xp.tanh(x), lambda xp, y, x: xp.where(xp.gt(x, 2), 0 * x, 1 / xp.cosh(x) ** 2), 1),
    "a second derivative": (lambda xp, x: x**4, lambda xp, y, x: 4 * x**3 + 0 * xp.floor(x), None)}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_refuted_by_disjoint_balls(name, declare):
    forward, partial, order = WRONG[name]
    op = declare("mine", forward, partial)
    results = []
    for make in (exact, by_digits):
        found = make(lambda x: op(x), 2.3)
        results.append((agreement(found)[1] and agreement(found)[1].order, found.rigorous))
    assert results == [(order, True), (order, False)]


def test_threads_do_not_change_the_precision_of_each_other():
    """Arb's precision is one for all threads: the digits and the bits are those of one thread alone."""
    def found(name):
        function, point = SMOOTH[name]
        compared = exact(function, point, order=3)
        return agreement(compared), compared.certified.bits, [(e.rule, e.reference) for e in compared.entries()]

    def disturb():
        while not done.is_set():
            with ball.precision(40):
                sum(range(1000))

    alone, done, interval = list(map(found, SMOOTH)), threading.Event(), sys.getswitchinterval()
    other = threading.Thread(target=disturb)
    sys.setswitchinterval(1e-5)
    try:
        other.start()
        assert list(map(found, SMOOTH)) == alone
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(interval)


def test_a_program_is_traced_once_for_a_branch():
    def function(x):
        return (symgrad.maximum(x[0], x[1]) * x.sin().sum())

    certify.enclosed()._programs.clear()
    for point in ([0.1, 0.2], [0.3, 0.7], [0.9, 1 / 3], [1.1, 0.2], [0.4, 2.0]):
        found = exact(function, point)
        assert agreement(found) == (50.0, None) and found.rigorous
    (programs,) = certify.enclosed()._programs.values()
    assert len(programs.found) in (1, 2)


def test_the_programs_that_are_kept_have_a_bounded_size(monkeypatch):
    module = certify.enclosed()
    module._programs.clear()
    for n in range(1, module.KEPT + 4):
        agreement(exact(lambda x: (x.sin() ** 2).sum(), [0.1 * k for k in range(1, n + 1)], order=1))
    assert len(module._programs) == module.KEPT
    monkeypatch.setattr(module, "STEPS", 300)
    agreement(exact(lambda x: x.cos().sum(), [0.3]))
    assert 1 <= len(module._programs) < module.KEPT and sum(p.size for p in module._programs.values()) <= 300


def test_a_rule_that_is_declared_again_is_traced_again(monkeypatch):
    right = REGISTRY["cos"]
    assert agreement(exact(symgrad.sin, 0.7))[1] is None
    monkeypatch.setitem(REGISTRY, "cos", dataclasses.replace(right, vjp=lambda xp, g, y, args, needs: (-g * xp.sin(args[0]) * (1 + 1e-9),)))
    assert agreement(exact(symgrad.sin, 0.7))[1].order == 2
    monkeypatch.undo()
    assert agreement(exact(symgrad.sin, 0.7))[1] is None


@pytest.mark.parametrize("function, point", [
    (abs, 0.0), (symgrad.relu, 0.0), (lambda x: symgrad.maximum(x, 2 - x), 1.0), (lambda x: (x - 1 / 3).abs(), 1 / 3), (lambda x: x.sign() * x, 0.0),
    (lambda x: x.clamp(min=0.7), 0.7)])
def test_a_kink_is_known_where_the_equality_is_exact(function, point):
    found = exact(function, point)
    agreement(found)
    assert found.kink and found.rigorous


@pytest.mark.parametrize("function, point", [
    (lambda x: (x.sqrt() ** 2 - 2).abs(), 2.0), (lambda x: (x.exp().log() - x).abs(), 1 / 3),
    (lambda x: symgrad.relu(x.sin() ** 2 + x.cos() ** 2 - 1), 0.7), (lambda x: symgrad.maximum(x.log().exp(), x), 1 / 7),
    (lambda x: (x.tan() - x.sin() / x.cos()).abs(), 0.1)])
def test_an_equality_that_is_not_exact_is_undecided_and_not_a_kink(function, point):
    with pytest.raises(Undecided):
        agreement(exact(function, point))


@pytest.mark.parametrize("function, point", [
    (lambda x: x.sqrt(), 0.0), (lambda x: x.sin() / x, 0.0), (lambda x: x.log(), 0.0), (lambda x: (x**2).sqrt(), 0.0), (lambda x: 1 / (x - 1), 1.0)])
def test_a_derivative_that_does_not_exist_is_undefined_and_not_undecided(function, point):
    with pytest.raises(Undefined) as caught:
        agreement(exact(function, point))
    assert not isinstance(caught.value, Undecided)


@pytest.mark.parametrize("name", SMOOTH)
def test_without_python_flint_many_digits_decide(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    function, point = SMOOTH[name]
    found = exact(function, point)
    assert agreement(found) == (50.0, None) and not found.rigorous and not found.kink


T, U = sympy.symbols("t u", real=True)
FORMULAS = {
    "elementary": sympy.exp(sympy.sin(3 * T) - U / 3) / (1 + T**2) + sympy.sqrt(U) * sympy.log(U + T**2) + U ** sympy.Rational(-2, 3) + U**T,
    "functions": sympy.erf(T) * sympy.gamma(U) + sympy.loggamma(U) - sympy.digamma(U) + sympy.besselj(1, U) + sympy.atan2(T, U),
    "selections": sympy.Piecewise((T**3, sympy.And(T < U / 3, T > -1)), (U, sympy.Or(T >= 2, sympy.Not(sympy.Eq(U, 2)))), (1, True)),
    "switches": sympy.Abs(T) * sympy.sign(T) + sympy.Heaviside(U - T) + sympy.Max(T, U, 1) - sympy.Min(T, U),
    "steps": sympy.Add(*(sympy.cos(k * T) * sympy.exp(-U / k) for k in range(1, 12)))}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_a_proof_have_the_same_values_in_balls(name):
    """At points with thirds on both sides of the borders; where a ball is at a kink or does not decide a condition, there is no value."""
    tape = Tape()
    expressions = [tape.cut(FORMULAS[name]), *tape.gradient(tape.cut(FORMULAS[name]), [T])] if name in ("elementary", "steps") else [FORMULAS[name]]
    program, by_digits = BallProgram(tape, expressions, [T, U]), Evaluator(expressions, [T, U], tape.steps)
    arithmetic = Arithmetic(60)
    for point in ((1, 3), 2), ((-1, 3), (1, 7)), ((5, 3), (9, 7)), ((-4, 3), (22, 7)), ((7, 3), 2):
        at = [Fraction(*x) if isinstance(x, tuple) else Fraction(x) for x in point]
        found = program.at(at, 50)
        assert found is not None
        for (value, error), other in zip(found, by_digits.at(at, arithmetic), strict=True):
            assert error < -150
            with mpmath.workdps(60):
                assert abs(value - mpmath.mp.convert(arithmetic.sample(other).value)) <= mpmath.mpf(10) ** -44 * (1 + abs(value))


@pytest.mark.parametrize("e, point", [
    (sympy.Piecewise((T, 3 * T < 1), (U, True)), (Fraction(1, 3), Fraction(1, 3))), (sympy.sign(T), (Fraction(0), Fraction(1))),
    (sympy.Heaviside(T - U), (Fraction(2), Fraction(2))), (sympy.log(T), (Fraction(-1), Fraction(1))), (T**-2, (Fraction(0), Fraction(1))),
    (sympy.DiracDelta(T), (Fraction(0), Fraction(1))), (sympy.Heaviside(3 * T - U), (Fraction(1, 3), Fraction(1)))], ids=str)
def test_a_formula_has_no_ball_at_a_kink_or_where_it_is_undecided(e, point):
    assert BallProgram(Tape(), [e], [T, U]).at(point, 50) is None
    away = BallProgram(Tape(), [e], [T, U]).at((Fraction(7, 2), Fraction(1, 2)), 50)
    assert away is not None and away[0][0] == pytest.approx(float(e.subs({T: 3.5, U: 0.5})))
