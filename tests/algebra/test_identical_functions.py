"""`identical` for all of SymPy's functions, at integers, and where mpmath and SymPy differ."""

import inspect
from fractions import Fraction

import pytest
import sympy
from sympy import Rational, binomial, factorial, hermite, hyper, polygamma, rf, symbols, zeta  # noqa: F401  the texts name them

from symgrad.algebra.evaluating import Evaluator, Unknown
from symgrad.algebra.identity import identical
from symgrad.algebra.stochastic import Arithmetic
from tests.support.lines import lines

x, y = symbols("x y", real=True)
t = sympy.Symbol("t")
n, m, k, j = symbols("n m k j", integer=True)
N = sympy.Symbol("N", integer=True, nonnegative=True)
FIRST = (sympy.Integer(2), sympy.Integer(1), Rational(1, 2), Rational(1, 3), Rational(1, 4))  # arguments before the last

# Functions that need a special call: they are not functions of numbers, or their arguments are integers.
CALLS = {
    "hyper": [sympy.hyper([1, Rational(1, 2)], [Rational(3, 2)], x)], "meijerg": [sympy.meijerg([[1], [2]], [[Rational(1, 2)], [0]], x)],
    "motzkin": [sympy.motzkin(5) * x], "chebyshevt_root": [sympy.chebyshevt_root(5, 2) * x], "chebyshevu_root": [sympy.chebyshevu_root(5, 2) * x],
    "Piecewise": [sympy.Piecewise((x, x > 1), (sympy.airyaiprime(x), True))], "lerchphi": [sympy.lerchphi(Rational(1, 2), 2, x)],
    "LeviCivita": [sympy.LeviCivita(1, 2, n)],
    "KroneckerDelta": [sympy.KroneckerDelta(2, n), sympy.KroneckerDelta(1, x), sympy.KroneckerDelta(2, n, (1, 2))],
    "bell": [sympy.bell(N), sympy.bell(3, x)], "multigamma": [sympy.multigamma(x, 3)], "SingularityFunction": [sympy.SingularityFunction(x, 1, 2)],
    "carmichael": [sympy.carmichael(n)]}
HAVE_NO_NUMBERS = {"exp_polar", "polar_lift", "periodic_argument", "principal_branch", "mathieus", "mathieuc", "mathieusprime", "mathieucprime",
                   "carmichael"}
SLOW = ("stieltjes", "elliptic_pi", "appellf1")  # mpmath needs minutes at some points
CATALOGUE = [name for name in sympy.functions.__all__ if inspect.isclass(getattr(sympy.functions, name))]


def calls(name):
    """Applications of a function to x, one for each number of arguments that it takes."""
    if name in CALLS:
        return CALLS[name]
    f = getattr(sympy.functions, name)
    counts = [1, 2] if f.nargs is None or f.nargs == sympy.S.Naturals0 else sorted(map(int, f.nargs))
    made = []
    for count in counts:
        before = (*FIRST, *FIRST)[:count - 1]
        try:
            made.append(f(*before, x))
        except (TypeError, ValueError):
            continue
    return made


@pytest.mark.sweep
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_function_of_sympy_evaluates_or_is_refused(name):
    made = calls(name)
    assert made
    for e in made:
        same, other = identical(e, e, points=4), identical(e + 1, e, points=4)
        if name in HAVE_NO_NUMBERS:
            assert same.verdict == other.verdict == "not checkable" and name in other.reason and "has no value" in other.reason
        elif name in SLOW:
            assert same.verdict in ("proved", "not checkable") and other.verdict in ("refuted", "not checkable") and other.reason
        else:
            assert same.verdict == "proved", f"{e}: {same}"
            assert other.verdict == "refuted", f"{e}: {other}"


SPHERICAL = ("jn", "yn", "hn1", "hn2")  # of a negative argument evalf has the other branch of a square root than SymPy's own expand_func
NOT_BY_EVALF = ("erf2inv",)
POINTS = [Fraction(3), Fraction(1), Fraction(5, 7), Fraction(-7, 3), Fraction(1, 9), Fraction(21, 2)]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in HAVE_NO_NUMBERS])
def test_the_values_are_those_of_sympy(name):
    """SymPy's own evalf, wherever it has a finite number."""
    compared = 0
    for e in calls(name):
        [symbol] = e.free_symbols or {x}
        program = Evaluator([e], [symbol])
        for point in [Fraction(3)] if name == "stieltjes" else [Fraction(1, 9)] if name in SLOW else POINTS:
            if point.denominator > 1 and (symbol.is_integer or name == "stieltjes") or point < 0 and name in SPHERICAL:
                continue
            try:
                true = e.subs(symbol, Rational(point.numerator, point.denominator)).evalf(50)
            except Exception:  # SymPy's functions raise all kinds of exceptions outside their domain
                continue
            if not true.is_number or true.atoms(sympy.Function, sympy.Integral, sympy.Sum) or not true.is_finite:
                continue
            arithmetic = Arithmetic(40)
            [found] = program.at([point], arithmetic)
            assert not isinstance(found, ArithmeticError), f"{e} at {point}: {found!r}, not {true}"
            value = arithmetic.sample(found).value
            number = sympy.Float(value.real._mpf_ if hasattr(value, "_mpc_") else value, 40) + sympy.I * sympy.Float(value.imag, 40)
            assert abs(number - true) <= Rational(1, 10**25) * (abs(true) + Rational(1, 10**10)), f"{e} at {point}: {number}, not {true}"
            compared += 1
    assert compared or name in NOT_BY_EVALF


def test_the_inverse_of_a_difference_of_error_functions():
    assert identical(sympy.erf2(Rational(1, 2), sympy.erf2inv(Rational(1, 2), x)), x, {x: sympy.Interval.open(-1, Rational(1, 4))})


# ---------------------------------------------------------------------- errors and other conventions of mpmath


def test_conventions_are_those_of_sympy():
    found = identical(binomial(n, m), binomial(n, n - m))
    assert found.verdict == "refuted" and found.values == tuple(e.xreplace(dict(found.point)) for e in (binomial(n, m), binomial(n, n - m)))
    assert identical(binomial(N, m), binomial(N, N - m)).verdict == "proved"
    for row, column in ((-1, 1), (-1, -1), (-1, -2), (-3, -5), (4, -1), (4, 5)):
        [value] = Evaluator([binomial(n, m)], [n, m]).at([Fraction(row), Fraction(column)], Arithmetic(30))
        assert value == int(binomial(row, column))


@pytest.mark.sweep
@pytest.mark.parametrize("pair", [tuple(map(eval, pair)) for pair in lines("hard_identities")], ids=str)
def test_true_identities_at_which_mpmath_has_wrong_digits(pair):
    found = identical(*pair)
    assert found.verdict in ("proved", "verified"), str(found)
    assert identical(pair[0], pair[1] + Rational(1, 10**30)).verdict == "refuted"


@pytest.mark.sweep
def test_a_wrong_value_of_mpmath_refutes_nothing_and_proves_nothing():
    at = Rational(-765, 2)
    direct = sum((at + i) ** -2 for i in range(400)) + zeta(2, at + 400)
    assert identical(zeta(2, at), direct).verdict in ("proved", "verified")
    assert identical(zeta(2, at), Rational(-261096457416721, 10**17)).verdict == "refuted"


# ---------------------------------------------------------------------- integers


@pytest.mark.sweep
@pytest.mark.parametrize("pair", [tuple(map(eval, pair)) for pair in lines("integer_identities")], ids=str)
def test_sums_and_functions_of_integers_are_compared_at_integers(pair):
    found = identical(*pair)
    assert found.verdict in ("proved", "verified") and found.points >= 10, str(found)
    assert identical(pair[0], pair[1] + Rational(1, 10**9)).verdict == "refuted"


def test_a_bound_is_an_integer_only_where_the_sum_needs_it():
    found = identical(sympy.Sum(k, (k, 1, t)), t * (t + 1) / 2)
    assert any("integer" in note for note in found.notes)
    assert identical(sympy.Sum(1, (k, 1, sympy.floor(x))), x).verdict == "refuted"
    assert identical(sympy.Sum(1, (k, 1, 2 * x)), 2 * sympy.floor(x)).verdict == "refuted"
    assert identical(sympy.Sum(k, (k, 1, N)), N * (N + 1) / 2 + sympy.sin(sympy.pi * N)).verdict == "proved"


def test_the_numbers_of_a_sum_are_those_of_its_terms():
    """Karr's convention: the sum from 1 to -3 is minus the sum from -2 to 0; an undefined function of the index has no value."""
    e = sympy.Sum(k**2, (k, 1, n))
    assert Evaluator([e], [n]).at([Fraction(-3)], Arithmetic(30)) == [Fraction(-5)]
    assert Evaluator([sympy.Product(k, (k, 2, n))], [n]).at([Fraction(5)], Arithmetic(30)) == [Fraction(120)]
    f = sympy.Function("f")
    assert identical(sympy.Sum(f(k), (k, 1, N)), N * f(k)).verdict == "not checkable"
    with pytest.raises(Unknown, match="no certain value was found of Sum"):
        Evaluator([sympy.Sum(sympy.sin(k) / 2**k, (k, 1, sympy.oo))], [])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("e", [sympy.bernoulli(n), sympy.euler(n, x), sympy.laguerre(n, x), sympy.totient(n), sympy.LeviCivita(n, m, 2)], ids=str)
def test_sequences_are_not_evaluated_at_huge_whole_numbers(e):
    """SymPy computes all primes below n for the n-th Bernoulli number: at 10**9 it would take all memory."""
    one = sympy.sin(y) ** 2 + sympy.cos(y) ** 2
    assert identical(e, e * one).verdict == "proved"
    assert identical(e, e + sympy.Rational(1, 1000)).verdict == "refuted"
