"""`identical`: a corpus of identities, randomly rewritten and changed expressions, refused input and undecided cases."""

import threading
import time
from dataclasses import replace
from fractions import Fraction
from random import Random

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Abs, Function, I, Interval, Matrix, Max, Piecewise, Rational, S, cos, exp, log, sin, sqrt, tanh
from sympy.codegen import cfunctions  # noqa: F401  the texts name it

from symgrad.algebra import comparison, limits, zero_test
from symgrad.algebra.effort import Effort
from symgrad.algebra.evaluating import Evaluator
from symgrad.algebra.identity import identical
from symgrad.algebra.ranges import Range, points_in, ranges_of
from symgrad.algebra.stable_functions import sigmoid, softplus  # noqa: F401  the texts name them
from symgrad.algebra.stochastic import Arithmetic, Sample
from symgrad.carriers.digits import Undecided
from symgrad.graph.domains import BOOLEAN, COMPLEX, INTEGER, NONZERO, POSITIVE, REAL, UNIT_OPEN  # noqa: F401  the texts name them
from symgrad.sampling.domain_reader import Piece
from tests.support.identities import ELEMENTARY, FALSE, TRUE
from tests.support.lines import lines

x, y = sympy.symbols("x y", real=True)
p = sympy.Symbol("p", positive=True)
n = sympy.Symbol("n", integer=True)
N = sympy.Symbol("N", integer=True, nonnegative=True)
z = sympy.Symbol("z", complex=True)
t = sympy.Symbol("t")
f = Function("f")
TINY = Rational(1, 10**12)


def fields(cases):
    return [pytest.param([case for case in cases if case.field == field], id=field) for field in dict.fromkeys(case.field for case in cases)]


# ---------------------------------------------------------------------- the corpus


def test_the_corpus_is_large_and_without_duplicates():
    assert len(TRUE) >= 200 and len(FALSE) >= 200
    for cases in (TRUE, FALSE):
        claims = [(case.a, case.b, str(case.assumptions)) for case in cases]
        assert sorted(map(str, (c for c in claims if claims.count(c) > 1))) == []


ANSWERS = {}  # so that no test asks twice


def verdict_of(case):
    """The result of `identical` for a case of the corpus, cached."""
    if id(case) not in ANSWERS:
        ANSWERS[id(case)] = identical(case.a, case.b, case.assumptions)
    return ANSWERS[id(case)]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", fields(TRUE))
def test_true_identities_are_proved_or_verified(cases):
    for case in cases:
        found = verdict_of(case)
        assert found.verdict in ("proved", "verified"), f"{case.a} == {case.b}: {found}"
        assert found and found.points > 0 and found.digits >= 50


@pytest.mark.sweep
def test_most_true_identities_are_proved():
    assert sum(verdict_of(case).verdict == "proved" for case in TRUE) >= 0.95 * len(TRUE)


@pytest.mark.sweep
def test_identities_of_elementary_functions_are_proved_in_the_default_time():
    cases = ELEMENTARY[0]
    weaker = [(case.a, case.b) for case in cases if identical(case.a, case.b, case.assumptions).verdict != "proved"]
    assert len(weaker) <= 0.1 * len(cases), weaker


@pytest.mark.sweep
@pytest.mark.parametrize("cases", fields(FALSE))
def test_false_identities_are_refuted(cases):
    for case in cases:
        found = identical(case.a, case.b, case.assumptions)
        assert found.verdict == "refuted", f"{case.a} == {case.b}: {found}"
        assert not found and found.values[0] != found.values[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cases", fields(FALSE))
def test_no_false_identity_is_proved_by_the_decision_procedure_alone(cases, monkeypatch):
    """The decision procedure must be correct without the numeric comparison."""
    monkeypatch.setattr(zero_test, "_by_sympy", lambda *args: False)
    for case in cases:
        a, b = sympy.sympify(case.a), sympy.sympify(case.b)
        symbols = sorted(a.free_symbols | b.free_symbols, key=str)
        ranges = ranges_of(symbols, case.assumptions)
        known = {s: sympy.Dummy(s.name, **r.assumptions) for s, r in zip(symbols, ranges)}
        a, b = (e.xreplace(known).xreplace({f: Rational(*float(f).as_integer_ratio()) for f in e.atoms(sympy.Float)}) for e in (a, b))
        assert not zero_test.vanishes(a, b, dict(zip(known.values(), ranges))), f"{case.a} == {case.b}"


# ---------------------------------------------------------------------- rewritten and changed expressions

LEAVES = st.sampled_from([x, y, x + 1, x - y, sympy.Integer(2), Rational(-1, 3)])


def _grown(children):
    one = st.sampled_from([
        sin, cos, tanh, sympy.atan, Abs, lambda e: e**2, lambda e: sqrt(1 + e**2), lambda e: log(1 + e**2), lambda e: exp(-(e**2)),
        lambda e: Max(e, 0), lambda e: 1 / (1 + e**2), sympy.sinh, sympy.erf])
    two = st.sampled_from([lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, Max, lambda a, b: a / (1 + b**2)])
    return st.builds(lambda f, e: f(e), one, children) | st.builds(lambda f, a, b: f(a, b), two, children, children)


EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=4)

REWRITINGS = [eval(f"lambda e: ({a}, {b})") for a, b in lines("rewritings")]  # each to two expressions of the same function


@pytest.mark.sweep
@given(EXPRESSIONS, st.sampled_from(REWRITINGS), st.integers(0, 3))
def test_rewritten_expressions_are_never_refuted(e, rewriting, seed):
    a, b = rewriting(e)
    found = identical(a, b, points=12, seed=seed)
    assert found.verdict in ("proved", "verified"), str(found)


@pytest.mark.sweep
@given(EXPRESSIONS, st.sampled_from(REWRITINGS), st.sampled_from([lambda e: e + TINY, lambda e: e * (1 + TINY) + TINY * (3 + sin(e)),
                                                                  lambda e: e + Max(TINY, x), lambda e: e + TINY / (1 + x**2)]))
def test_changed_expressions_are_always_refuted(e, rewriting, spoiled):
    a, b = rewriting(e)
    found = identical(a, spoiled(b))
    assert found.verdict == "refuted", str(found)
    at = {s: value for s, value in found.point.items()}
    exact = [sympy.N(f.doit().xreplace(at), 60, maxn=2000) for f in (a, spoiled(b))]  # doit: exp(2*log(x)) that rewrite left is x**2
    assert abs(exact[0] - found.values[0]) <= abs(exact[0]) * Rational(1, 10**40) + Rational(1, 10**60)
    assert abs(exact[1] - found.values[1]) <= abs(exact[1]) * Rational(1, 10**40) + Rational(1, 10**60)


@pytest.mark.sweep
@given(EXPRESSIONS, st.randoms(use_true_random=False))
def test_the_error_of_a_value_is_never_larger_than_measured(e, rng):
    symbols = [x, y]
    program = Evaluator([e], symbols)
    point = next(points_in([Range(), Range()], [], Random(rng.random())))
    rough, fine = Arithmetic(20), Arithmetic(200)
    [a], [b] = program.at(point, rough), program.at(point, fine)
    if isinstance(a, ArithmeticError) or isinstance(b, ArithmeticError):
        return
    if not isinstance(a, Sample):
        assert fine.apart(a, b) is False
        return
    with mpmath.workdps(250):
        off = abs(mpmath.mp.make_mpf(a.value._mpf_) - mpmath.mp.make_mpf(fine.sample(b).value._mpf_))
        assert off <= mpmath.ldexp(1, max(rough.error(a), -(10**6)))


ONE = sin(x) ** 2 + cos(x) ** 2


@pytest.mark.parametrize("e", [sympy.sign(1 - tanh(x) ** 2 - 1 / sympy.cosh(x) ** 2), sympy.floor(ONE), sympy.Heaviside(ONE - 1),
                               log(-1 + I * (ONE - 1)), sqrt(-1 + I * (ONE - 1)), sympy.Eq(exp(-x) + ONE, 1), 1 / (ONE - 1)])
def test_decisions_within_the_error_are_undecided(e):
    """The sign of a zero by cancellation, the floor of an integer with an error and the logarithm next to a branch cut are undecided."""
    [found] = Evaluator([e], [x]).at([Fraction(1000)], Arithmetic(50))
    assert isinstance(found, Undecided), found


def test_the_measured_error_after_cancellation_is_not_zero():
    """Both computations of tanh(1000) give exactly 1, so that only the random change measures the error of 1 - tanh(1000)."""
    fifty = Arithmetic(50)
    [found] = Evaluator([1 - tanh(x)], [x]).at([Fraction(1000)], fifty)
    assert -170 < fifty.error(found) < -120 and not fifty.apart(found, Fraction(0))


# ---------------------------------------------------------------------- wrong symbolic zeros


def test_a_wrong_symbolic_zero_is_refuted_numerically(monkeypatch):
    monkeypatch.setattr(comparison, "vanishes", lambda *args: True)
    assert identical(x, x + TINY).verdict == "refuted"
    assert identical(sin(x), sin(x) * (1 + Rational(1, 10**60))).verdict == "refuted"
    assert identical(exp(x), exp(x) + Piecewise((1, x < -1), (0, True))).verdict == "refuted"


@pytest.mark.sweep
@pytest.mark.parametrize("e", [
    sympy.sign(sqrt((x**2 - 2) ** 2 + 1) - 1), sympy.sign(1 + sin(x)), sympy.sign(2 + sin(x) - cos(2 * x)),
    sympy.Heaviside(1 + cos(sqrt(2) * x), 0),
    sympy.sign(log((x**2 - 2) ** 2 + 1)), sympy.sign(2 - sqrt(2 + 2 * cos(x))),
    sympy.sign(sqrt(x**4 - 4 * x**2 + 5) + sqrt(1 + (x**2 - 2) ** 2) - 2)])
def test_a_number_that_may_be_0_is_not_positive(e):
    """The number is 0 at irrational points only, which are never sampled, so that the algebra must detect it."""
    assert not zero_test.vanishes(e, sympy.Integer(1), {x: Range()})


@pytest.mark.sweep
@pytest.mark.parametrize("e", [sympy.atan(sympy.tan(x)), sympy.atan(sympy.cot(x)), sympy.asin(sin(x)), sympy.acos(cos(x)),
                               sympy.atan2(sin(x), cos(x)), sympy.I * log(exp(-I * x))])
def test_a_derivative_and_one_value_are_no_proof_across_a_jump(e):
    inside = {x: Range((Piece(Fraction(0), Fraction(1571, 1000)),))}  # just beyond half of pi
    assert not zero_test.vanishes(e, e.xreplace({x: Rational(1)}) + sympy.diff(e, x).subs(x, 1).simplify() * (x - 1),
                                 {x: Range((Piece(Fraction(-4), Fraction(4)),))})
    assert not zero_test.vanishes(sympy.atan(sympy.tan(x)), x, inside)
    assert not zero_test.vanishes(Abs(cos(x)), cos(x), inside)


def test_no_proof_without_numbers(monkeypatch):
    monkeypatch.setattr(comparison, "vanishes", lambda *args: True)
    nowhere = log(sympy.Mul(0, x, evaluate=False))
    assert identical(nowhere, x).verdict == "not checkable"


def test_without_algebra_the_verdict_is_verified_with_the_number_of_points(monkeypatch):
    monkeypatch.setattr(comparison, "vanishes", lambda *args: False)
    found = identical(sin(2 * x), 2 * sin(x) * cos(x), points=17)
    assert found.verdict == "verified" and found.points == found.planned == 17 and found.digits >= 50
    assert "17 of 17 planned points" in found.reason


# ---------------------------------------------------------------------- the answer


def test_a_refutation_has_a_simple_point_both_values_and_the_difference():
    found = identical(sqrt((x - 3) ** 2 * y**2), (x - 3) * y)
    assert found.verdict == "refuted" and not found
    assert set(found.point) == {x, y}
    assert all(abs(value) <= 5 and value.is_integer for value in found.point.values())
    assert found.values[0] == -found.values[1] > 0
    assert identical(found.difference, sqrt((x - 3) ** 2 * y**2) - (x - 3) * y)
    text = str(found)
    assert text.startswith("refuted: ") and "x = " in text and "difference = " in text


def test_the_difference_is_simplified():
    found = identical((x + 1) ** 2, x**2 + 1)
    assert found.difference == 2 * x and found.point == {x: 1}


def test_a_removable_singularity_is_noted():
    found = identical(sympy.sinc(x), sin(x) / x)
    assert found.verdict == "proved" and found.notes == ("only the first is defined at x = 0",)
    assert "only the first is defined at x = 0" in str(found)
    assert not identical(x, x).notes


def test_the_same_seed_gives_the_same_answer():
    one, other = (identical(Max(x, y), Max(x, y + TINY), seed=5) for _ in range(2))
    assert one.point == other.point and one.values == other.values


# ---------------------------------------------------------------------- arguments


@pytest.mark.sampled(12)
@pytest.mark.parametrize("verdict, a, b, assumptions", [(*line, "None")[:4] for line in lines("verdicts")])
def test_verdicts(verdict, a, b, assumptions):
    found = identical(*map(eval, (a, b, assumptions)))
    assert found.verdict == verdict or verdict == "shown" and found, str(found)


def test_a_float_is_the_number_that_it_is():
    found = identical(0.1 * x, x / 10)
    assert found.verdict == "refuted" and "binary" in found.reason and found.difference != 0


def test_conditions_and_matrices_are_refuted_at_a_point_and_an_element():
    found = identical(x > 0, x >= 0)
    assert found.verdict == "refuted" and found.point == {x: 0} and found.values == (False, True)
    assert identical(Matrix([x - x, 0])).verdict == "proved"
    found = identical(Matrix([[x, 0], [y, 1]]), Matrix([[x, 0], [y + TINY, 1]]))
    assert found.verdict == "refuted" and found.index == (1, 0)
    with pytest.raises(ValueError, match=r"\(2, 1\) and \(3, 1\)"):
        identical(Matrix([x, y]), Matrix([x, y, x]))


def test_expressions_without_numbers_are_not_checkable():
    for a, b, words in ((sympy.Integral(exp(-Abs(sin(x)) ** x), (x, 0, sympy.oo)), 1, ("Integral",)), (f(x), Function("g")(x) + f(y), ("f", "g")),
                        (1 / sympy.Add(x, -x, evaluate=False), x, ("defined",))):
        found = identical(a, b)
        assert found.verdict == "not checkable" and all(word in found.reason for word in words)


@pytest.mark.parametrize("bad", ["x**2", b"x", "0"])
def test_strings_are_never_evaluated(bad):
    with pytest.raises(TypeError, match="symgrad.formulas.parsing"):
        identical(bad, x)
    with pytest.raises(TypeError, match="symgrad.formulas.parsing"):
        identical(x, bad)
    with pytest.raises(TypeError, match="symgrad.formulas.parsing"):
        identical(np.array([bad], dtype=object), x)


def test_other_objects_are_refused():
    for bad in (object(), None, {1: 2}, lambda: 1, [x], S.Reals):
        with pytest.raises(TypeError, match="expected"):
            identical(bad, x)


# ---------------------------------------------------------------------- ranges of symbols


@pytest.mark.parametrize("given_range", [POSITIVE, Interval.open(0, S.Infinity), "positive", ["positive", "real"], {"positive": True}, Interval(1, 2),
                                         sympy.FiniteSet(1, Rational(5, 2)), S.Naturals, Interval(1, 2) + Interval(5, 6), sympy.Range(1, 9)])
def test_assumptions_are_domains_sets_or_words(given_range):
    assert identical(sqrt(t**2), t).verdict == "refuted"
    assert identical(sqrt(t**2), t, {t: given_range}).verdict == "proved"
    assert identical(sqrt(t**2), -t, {t: given_range}).verdict == "refuted"


def test_an_empty_range_is_not_checkable():
    found = identical(x, x + 1, {x: S.EmptySet})
    assert found.verdict == "not checkable" and "range of x is empty" in found.reason


@pytest.mark.parametrize("assumptions", [{x: "large"}, {x: 3}, {"x": "positive"}, {x: sympy.ConditionSet(x, sin(x) > 0)}, {x + 1: "positive"}])
def test_invalid_assumptions_are_refused(assumptions):
    with pytest.raises(TypeError, match="expected|must be|map"):
        identical(x, 2 * x, assumptions)


RANGES = [REAL, POSITIVE, UNIT_OPEN, NONZERO, INTEGER, BOOLEAN,
          Interval(-3, Rational(1, 3)), Interval.open(0, sympy.pi), S.Naturals0, "odd", "negative",
          "prime", "complex", "imaginary", Interval(-S.Infinity, -2) + Interval.Ropen(5, 7) - sympy.FiniteSet(6)]


@given(st.sampled_from(RANGES), st.integers(0, 99))
def test_points_are_inside_the_range(given_range, seed):
    [r] = ranges_of([t], {t: given_range})
    source = points_in([r], [Fraction(1, 2), Fraction(-7)], Random(seed))
    assert all(next(source)[0] in r for _ in range(40))


# ---------------------------------------------------------------------- time and threads


def test_identical_works_in_other_threads():
    found = []
    thread = threading.Thread(target=lambda: found.extend([identical(sin(2 * x), 2 * sin(x) * cos(x)), identical(sin(2 * x), 2 * sin(x)),
                                                           identical(sympy.besselj(Rational(1, 2), p), sin(p) * sqrt(2 / (sympy.pi * p)))]))
    thread.start()
    thread.join()
    assert [identity.verdict for identity in found] == ["proved", "refuted", "proved"]


REPORTED = [(sin(2 * x), 2 * sin(x) * cos(x)), (Max(x, y), (x + y + Abs(x - y)) / 2), (sympy.zeta(x), sympy.zeta(x) + TINY), (exp(exp(x)), exp(x)),
            (sympy.acos(x) / 2, sympy.atan(sqrt((1 - x) / (1 + x)))), (sympy.asinh(sympy.tan(x)), sympy.atanh(sin(x))),
            (Piecewise((1, x**2 > 2), (0, True)), 1)]


@pytest.mark.parametrize("pair", REPORTED, ids=str)
def test_the_report_is_the_same_in_a_thread_and_under_any_clock(pair, monkeypatch):
    reports = [identical(*pair, seed=3)]
    thread = threading.Thread(target=lambda: reports.append(identical(*pair, seed=3)))
    thread.start()
    thread.join()
    for speed in (0.01, 1000):
        monkeypatch.setattr(limits, "clock", lambda speed=speed: speed * time.process_time())
        reports.append(identical(*pair, seed=3, seconds=1e6))
    assert len({repr(replace(report, seconds=0.0)) for report in reports}) == 1


@pytest.mark.parametrize("pair", [(sympy.expand((x + y + 1) ** 12), (x + y + 1) ** 12), (sympy.expand((x + y + 1) ** 12) + TINY, (x + y + 1) ** 12),
                                  (sympy.zeta(x), sympy.zeta(x) + TINY), (sin(2 * x), 2 * sin(x) * cos(x)), (Max(x, y), x)], ids=str)
def test_what_is_aborted_has_no_verdict(pair):
    found = identical(*pair, seconds=0.0)
    assert found.verdict == "not checkable" and not found
    assert found.reason == f"aborted after 0 seconds: {found.points} of {found.planned} planned points were compared"


def test_an_abort_around_it_is_not_caught():
    with pytest.raises(limits.OutOfTime), limits.abort_after(0.0):
        identical(sin(2 * x), 2 * sin(x) * cos(x))


def test_less_effort_gives_a_weaker_verdict_but_not_a_wrong_one():
    hard = sympy.expand((sin(x) + cos(y) + x + 1) ** 6), (sin(x) + cos(y) + x + 1) ** 6
    assert identical(*hard).verdict == "proved" and identical(hard[0] + TINY, hard[1], effort=1e-3).verdict == "refuted"
    assert not zero_test.vanishes(*hard, {x: Range(), y: Range()}, Effort(20))
    assert not zero_test.vanishes(sympy.acos(cos(x)), x, {x: Range((Piece(Fraction(0), Fraction(3)),))}, Effort(300))
    assert zero_test.vanishes(sympy.acos(cos(x)), x, {x: Range((Piece(Fraction(0), Fraction(3)),))}, Effort(30000))
