"""Numeric values of SymPy's special functions, by mpmath in SymPy's conventions, or by SymPy itself at short rational numbers.

mpmath is wrong at some arguments (the Hurwitz zeta function at negative ones, at every precision), and has too few digits at others. So each function
is computed twice, the second time with more digits and, if a recurrence is known, at a shifted argument; the difference is the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import sympy

from symgrad.carriers.digits import Undefined
from symgrad.carriers.special.gammas import lgamma_digits, psi_digits
from symgrad.carriers.special.table import SPECIAL
from symgrad.system.restoring import workprec

SMALL = 100  # the largest numerators and denominators of arguments at which SymPy computes an exact value
FARTHEST, IMAGINARY = 2000, 100  # the most steps of a recurrence, and the largest imaginary part of an argument of Arb's zeta function
DIGITS = 20000  # the most bits after the point
STEP = 128  # bits: constants such as Bernoulli's numbers are kept for each precision, so there are few
SHIFT = 7  # the additional recurrence steps of the second computation

# Definitions by other functions.
DEFINITIONS: dict[Any, Callable[..., Any]] = {
    sympy.sec: lambda x: 1 / sympy.cos(x), sympy.csc: lambda x: 1 / sympy.sin(x), sympy.cot: lambda x: 1 / sympy.tan(x),
    sympy.sech: lambda x: 1 / sympy.cosh(x), sympy.csch: lambda x: 1 / sympy.sinh(x), sympy.coth: lambda x: 1 / sympy.tanh(x),
    sympy.asec: lambda x: sympy.acos(1 / x), sympy.acsc: lambda x: sympy.asin(1 / x), sympy.asech: lambda x: sympy.acosh(1 / x),
    sympy.acsch: lambda x: sympy.asinh(1 / x), sympy.acoth: lambda x: sympy.atanh(1 / x),
    sympy.acot: lambda x: sympy.Piecewise((sympy.pi / 2, sympy.Eq(x, 0)), (sympy.atan(1 / x), True)),
    sympy.sinc: lambda x: sympy.Piecewise((1, sympy.Eq(x, 0)), (sympy.sin(x) / x, True)),
    sympy.Mod: lambda x, y: x - y * sympy.floor(x / y), sympy.frac: lambda x: x - sympy.floor(x),
    sympy.Rem: lambda x, y: x - y * sympy.sign(x / y) * sympy.floor(sympy.Abs(x / y)),
    sympy.KroneckerDelta: lambda i, j, *ends: sympy.Piecewise((1, sympy.And(sympy.Eq(i, j), *(c for a, b in ends for c in (a <= i, i <= b)))),
                                                             (0, True)),
    sympy.erf2inv: lambda x, y: sympy.erfinv(y + sympy.erf(x)), sympy.Li: lambda x: sympy.li(x) - sympy.li(2),
}

# Functions without numeric values, with the reason.
REFUSED = dict.fromkeys(("exp_polar", "polar_lift", "periodic_argument", "principal_branch"),
                        "it stands for a point of the Riemann surface of the logarithm") | dict.fromkeys(
    ("mathieus", "mathieuc", "mathieusprime", "mathieucprime", "carmichael"), "SymPy and mpmath cannot evaluate it")


def _away(c: Any, x: Any, more: int) -> int:
    """The number of steps up to an argument whose real part is at least 1."""
    steps = max(0, int(c.ceil(1 - c.re(x)))) + more
    if steps > FARTHEST:
        raise Undefined("too far from 0")
    return steps


def _zeta(c: Any, s: Any, a: Any = 1, more: int = 0) -> Any:
    """ζ(s, a) = ζ(s, a + n) + Σ (a + k)⁻ˢ; by balls, which have an error bound and are faster, where they do not take long."""
    if s == 1 or c.isint(a) and c.re(a) <= 0:
        raise Undefined("a pole")
    if a == 1 and c.isint(s) and c.re(s) < 0 and c.re(s) % 2 == 0:
        return c.zero
    if abs(c.im(s)) <= IMAGINARY and (a == 1 or abs(s) <= FARTHEST and abs(a) <= FARTHEST):
        try:
            from symgrad.algebra.quadrature import value  # which needs python-flint

            return value(c, lambda x, y: x.zeta(y) if a != 1 else x.zeta(), s, a)
        except ImportError:
            pass
    if a == 1 and not more:
        return c.zeta(s)
    if c.re(s) < -FARTHEST:
        raise mpmath.libmp.NoConvergence("the reflection of a zeta function has too many terms")
    if isinstance(s, c.mpf) and isinstance(a, c.mpf) and s > 1 and a > 0:
        return _zeta_derivative(c, s, a, 0, more)
    n = _away(c, a, more)
    with c.extraprec(min(DIGITS, max(0, int(c.re(s)) * c.mag(a + n)))):  # mpmath has an absolute precision here, also for tiny numbers
        return c.zeta(s, a + n) + c.fsum([(a + k) ** -s for k in range(n)])


def _zeta_derivative(c: Any, s: Any, a: Any, n: Any, more: int = 0) -> Any:
    """The derivative of ζ(s, a) by s of order n, of real s > 1 and a > 0."""
    if not (isinstance(s, c.mpf) and isinstance(a, c.mpf) and s > 1 and a > 0 and c.isint(n) and n >= 0):
        raise Undefined("this derivative of the zeta function is computed for real s > 1 and a > 0")
    first = c.fsum([(-c.log(a + k)) ** int(n) * (a + k) ** -s for k in range(more)])
    return first + SPECIAL["zeta_derivative"].digits(c, s, c.fadd(a, more, exact=True), int(n), 0)


def _polygamma(c: Any, m: Any, x: Any, more: int = 0) -> Any:
    """ψ⁽ᵐ⁾(x) = ψ⁽ᵐ⁾(x + n) - (-1)ᵐ m! Σ (x + k)^(-m-1)."""
    if not c.isint(m) or c.re(m) < 0:
        raise Undefined("the order of a polygamma function is a nonnegative integer")
    m = int(c.re(m))
    if c.isint(x) and c.re(x) <= 0:
        raise Undefined("a pole")
    n = _away(c, x, more) if more else 0
    return psi_digits(c, x + n, m) - (-1) ** m * c.factorial(m) * c.fsum([(x + k) ** (-m - 1) for k in range(n)])


def _eta(c: Any, s: Any, a: Any = 1) -> Any:
    one = (c.psi(0, (a + 1) / 2) - c.psi(0, a / 2)) / 2 if s == 1 and a != 1 else None
    return c.altzeta(s) if a == 1 else one if one is not None else _zeta(c, s, a) - 2 ** (1 - s) * _zeta(c, s, (a + 1) / 2)


def _bessel(letter: str) -> Callable[..., Any]:
    """A Bessel function whose value at a whole order mpmath takes for a limit of others: by the series of the carriers where they have it."""
    return lambda c, order, x: SPECIAL[f"bessel_{letter}"].digits(c, x, int(c.re(order))) if \
        isinstance(x, c.mpf) and 0 < x < c.inf and c.isint(order) else getattr(c, f"bessel{letter}")(order, x)


# The functions of mpmath, by SymPy's names: a name, or a function of a context and numbers.
FUNCTIONS: dict[str, Any] = {name: name for name in (
    "gamma factorial digamma erfi erfinv expint beta besselj besseli airyai airybi fresnels fresnelc "
    "polylog harmonic legendre hermite appellf1 lerchphi stieltjes").split()} | {
    "Si": "si", "Ci": "ci", "Ei": "ei", "li": "li", "Shi": "shi", "Chi": "chi", "LambertW": "lambertw", "RisingFactorial": "rf",
    "FallingFactorial": "ff", "factorial2": "fac2", "chebyshevt": "chebyt", "chebyshevu": "chebyu", "elliptic_k": "ellipk",
    "elliptic_e": "ellipe", "elliptic_f": "ellipf", "elliptic_pi": "ellippi", "zeta": _zeta, "polygamma": _polygamma,
    "bessely": _bessel("y"), "besselk": _bessel("k"),
    "zeta_derivative": _zeta_derivative, "loggamma": lgamma_digits, "dirichlet_eta": _eta,
    "riemann_xi": lambda c, s: s * (s - 1) * c.gamma(s / 2) * c.zeta(s) / (2 * c.pi ** (s / 2)),
    "uppergamma": lambda c, s, x: c.gammainc(s, x), "lowergamma": lambda c, s, x: c.gammainc(s, 0, x),
    "erfcinv": lambda c, x: c.erfinv(1 - x), "catalan": lambda c, n: c.binomial(2 * n, n) / (n + 1),
    "binomial": lambda c, n, k: c.zero if c.isint(k) and c.re(k) < 0 else c.binomial(n, k),
    "airyaiprime": lambda c, x: c.airyai(x, derivative=1), "airybiprime": lambda c, x: c.airybi(x, derivative=1),
    "betainc": lambda c, p, q, x, y: c.betainc(p, q, x, y), "betainc_regularized": lambda c, p, q, x, y: c.betainc(p, q, x, y, regularized=True)}

COMPARING = ("KroneckerDelta", "LeviCivita")  # functions of whole numbers that need no terms
MANY_TERMS = 2000  # the largest whole number up to which SymPy may compute all terms of a sequence or a polynomial

# Second computations of the same value.
SECOND: dict[str, Callable[..., Any]] = {"zeta": lambda c, s, a=1: _zeta(c, s, a, SHIFT), "polygamma": lambda c, m, x: _polygamma(c, m, x, SHIFT),
                                         "zeta_derivative": lambda c, s, a, n: _zeta_derivative(c, s, a, n, SHIFT)}


def operands(e: Any) -> tuple[Any, ...]:
    """The arguments of a function, those in tuples one by one."""
    return tuple(x for arg in e.args for x in (operands(arg) if isinstance(arg, sympy.Tuple) else (arg,)))


def _rebuilt(args: Sequence[Any], values: Iterator[Any]) -> list[Any]:
    return [sympy.Tuple(*_rebuilt(arg.args, values)) if isinstance(arg, sympy.Tuple) else next(values) for arg in args]


def special(e: Any) -> Callable[..., Any]:
    """The step that computes a function of SymPy from the numbers of its `operands`."""
    name = type(e).__name__
    first = FUNCTIONS.get(name)
    second = SECOND.get(name, first)
    if hasattr(e, "digits"):  # a function of the carriers, whose name may be that of another one here
        first = second = e.digits

    def applied(values: Sequence[Any]) -> Any:
        return e.func(*_rebuilt(e.args, iter(values)))

    def with_precision(a: Any, function: Any, bits: int) -> Callable[..., Any]:
        def call(*xs: Any) -> Any:
            c = a.context
            with workprec(c, -(-a.bits // STEP) * STEP + bits):
                found = (_by_evalf(c, applied, xs, name in COMPARING) if function is None else
                         getattr(c, function)(*xs) if isinstance(function, str) else function(c, *xs))
            return +c.convert(found)
        return call

    def step(a: Any, *xs: Any) -> Any:
        exact = _exact(applied, xs)
        return a.exact_or_sample(exact) if exact is not None else a.function(with_precision(a, first, 10), xs, with_precision(a, second, 50))

    return step


def _exact(applied: Callable[..., Any], xs: Sequence[Any]) -> Fraction | None:
    """SymPy's own value at short rational numbers if it is rational, else None. Raises Undefined where SymPy has no value."""
    if not all(isinstance(x, Fraction) and abs(x.numerator) <= SMALL and x.denominator <= SMALL for x in xs):
        return None
    try:
        found = applied([sympy.Rational(x.numerator, x.denominator) for x in xs])
    except Exception:  # SymPy's functions raise all kinds of exceptions outside their domain
        raise Undefined("outside the domain") from None
    if found in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise Undefined(str(found))
    return Fraction(int(found.p), int(found.q)) if isinstance(found, sympy.Rational) else None


def _by_evalf(c: Any, applied: Callable[..., Any], values: Sequence[Any], compares: bool) -> Any:
    """The value of a function that mpmath does not have, by SymPy's evalf; a function that only `compares` takes large whole numbers.

    Raises NoConvergence for another function of a large whole number, for which SymPy computes all terms of a sequence or of a polynomial.
    """
    def number(x: Any) -> Any:
        x = c.convert(x)
        if c.isint(x) and not c.im(x):
            if abs(x) > MANY_TERMS and not compares:
                raise mpmath.libmp.NoConvergence(f"SymPy computes too many terms at {x}")
            return sympy.Integer(int(c.re(x)))
        real, imag = (sympy.Float._new(part._mpf_, c.prec) for part in (c.re(x), c.im(x)))
        return real + sympy.I * imag if c.im(x) else real

    try:
        found = applied([number(x) for x in values]).evalf(c.dps)
    except (mpmath.libmp.NoConvergence, MemoryError):
        raise
    except Exception:  # SymPy's functions raise all kinds of exceptions outside their domain
        raise Undefined("outside the domain") from None
    if not found.is_number or found.has(sympy.nan, sympy.zoo, sympy.oo) or found.atoms(sympy.Function, sympy.Sum, sympy.Integral, sympy.Product):
        raise Undefined(str(found))
    real, imag = (c.make_mpf(sympy.Float(part, c.dps)._mpf_) for part in found.as_real_imag())
    return c.mpc(real, imag) if imag else real
