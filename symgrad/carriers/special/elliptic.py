"""The elliptic integrals of Legendre and their derivatives of every order, from Carlson's integrals (DLMF 19.25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.arb import arb_module
from symgrad.carriers.special.carlson import Duplication
from symgrad.carriers.special.expansions import PI
from symgrad.system.restoring import workprec

__all__ = ["ROWS"]

CLOSE = 2.0**-9  # deviations from the mean whose eighth power is below the rounding of a long double


def _first(rules: Any, s: Any, c: Any, delta: Any, n: int) -> Any:
    """The derivative of F by m of order n, at |φ| <= π/2 with this sine, cosine and Δ² = 1 - m sin²φ; the first is ∫ sin²θ/(2Δ³). DLMF 19.25.5."""
    if n == 0:
        return s * rules(1).rf([c * c], [delta], [1 + 0 * s])[0]
    series = rules(n).rd([c * c], [1 + 0 * s], [delta, -s * s] if n > 1 else [delta])
    return factorial(n - 1) * s * s * s * series[n - 1] / 6


def _second(rules: Any, s: Any, c: Any, delta: Any, n: int) -> Any:
    """The derivative of E by m of order n > 0: that of -∫ sin²θ/(2Δ). DLMF 19.25.9, 19.4.6."""
    series = rules(n).rd([c * c], [delta, -s * s] if n > 1 else [delta], [1 + 0 * s])
    return -factorial(n - 1) * s * s * s * series[n - 1] / 6


def _above(rules: Any, s: Any, c: Any, delta: Any, m: Any, p: Any) -> Any:
    """E for m > 0 as a sum of positive terms; p = 1 - m. DLMF 19.25.10."""
    one, squares = 1 + 0 * s, [c * c]
    first, second = rules(1).rf(squares, [delta], [one])[0], rules(1).rd(squares, [one], [delta])[0]
    return p * s * first + m * p * s * s * s * second / 3 + m * s * c / rules(1).sqrt(delta)


def _below(rules: Any, s: Any, c: Any, delta: Any, m: Any, p: Any) -> Any:
    """E for m <= 0 as a sum of positive terms. DLMF 19.25.9."""
    one, squares = 1 + 0 * s, [c * c]
    return s * rules(1).rf(squares, [delta], [one])[0] - m * s * s * s * rules(1).rd(squares, [delta], [one])[0] / 3


# Derivatives by φ are elementary: sums of terms f sinᵃφ cosᵇφ mʲ Δ⁻ᶜ


@cache
def _terms(kind: int, k: int, n: int) -> tuple[tuple[int, int, int, int, int, int], ...]:
    """The terms (a, b, c, j, numerator, denominator) of the derivative of order k > 0 by φ and n by m of F (kind 0) or E."""
    top = 1
    for i in range(n):
        top *= 2 * i + 1 if kind == 0 else 2 * i - 1
    found = {(2 * n, 0, 2 * n + 1 if kind == 0 else 2 * n - 1, 0): top}
    for _ in range(k - 1):
        new: dict[tuple[int, int, int, int], int] = {}
        for (a, b, c, j), f in found.items():
            for key, g in (((a - 1, b + 1, c, j), a), ((a + 1, b - 1, c, j), -b), ((a + 1, b + 1, c + 2, j + 1), c)):
                if g:
                    new[key] = new.get(key, 0) + f * g
        found = new
    return tuple((*key, f, 2**n) for key, f in found.items() if f)


def _wave(s: Any, c: Any, m: Any, root: Any, kind: int, k: int, n: int) -> Any:
    return sum((s**a * c**b * m**j * root**-d * f / g for a, b, d, j, f, g in _terms(kind, k, n)), 0 * s)


# Arrays of long doubles


def _wide(count: int) -> Duplication:
    return Duplication(np.sqrt, count, CLOSE)


def _complete(p: Any, m: Any, kind: int, n: int) -> Any:
    """The derivative of K (kind 0) or E by m of order n from p = 1 - m; the limit at p = 0, and NaN below."""
    inside = (p > 0) & (p < np.inf)
    p, m, at_zero = np.where(inside, p, 1), np.where(inside, m, 0), p == 0
    one, zero = np.ones_like(p), np.zeros_like(p)
    if kind == 0 or n:
        y = (_second if kind else _first)(_wide, one, zero, p, n)
    else:
        y = np.where(m > 0, _above(_wide, one, zero, p, m, p), _below(_wide, one, zero, p, m, p))
    return np.where(inside, y, np.where(at_zero, np.inf if kind == 0 else -np.inf if n else 1, np.nan))


def _real(*xs: Any) -> list[Any]:
    if any(np.iscomplexobj(x) for x in xs):
        raise TypeError("elliptic integrals are defined here for real numbers, got complex ones; pass the real part")
    return [np.asarray(x, np.longdouble) for x in xs]


def _of_parameter(kind: int) -> Any:
    def call(special: Any, m: Any, n: int = 0) -> Any:
        (wide,) = _real(m)
        with np.errstate(all="ignore"):
            return _complete(1 - wide, wide, kind, n).astype(np.asarray(m).dtype)[()]

    return call


def _of_complement(special: Any, p: Any, n: int = 0) -> Any:
    (wide,) = _real(p)
    with np.errstate(all="ignore"):
        return ((-1) ** n * _complete(wide, 1 - wide, 0, n)).astype(np.asarray(p).dtype)[()]


def _incomplete(kind: int) -> Any:
    def call(special: Any, phi: Any, m: Any, k: int = 0, n: int = 0) -> Any:
        with np.errstate(all="ignore"):
            angle, wide = np.broadcast_arrays(*_real(phi, m))
            p = 1 - wide
            inside = (p >= 0) & np.isfinite(angle) & np.isfinite(wide)
            s, c = np.sin(angle), np.cos(angle)
            delta = c * c + p * s * s
            if k:
                y = _wave(s, c, wide, np.sqrt(delta), kind, k, n)
            else:
                y = _integral(kind, n, angle, s, c, np.where(inside, delta, 1), np.where(inside, wide, 0), np.where(inside, p, 1))
            return np.where(inside, y, np.nan).astype(np.result_type(phi, m))[()]

    return call


def _integral(kind: int, n: int, angle: Any, s: Any, c: Any, delta: Any, m: Any, p: Any) -> Any:
    """The integral up to φ = jπ + r: 2j complete ones, and that up to r, |r| <= π/2."""
    turns = angle / PI
    j = np.rint(turns)
    sign = np.where(np.fmod(j, 2) == 0, 1, -1)
    wrong = sign * c < 0  # rounded to the other side of a multiple of π/2
    j = np.where(wrong, j + np.where(turns > j, 1, -1), j)
    sign = np.where(wrong, -sign, sign)
    flat = (delta == 0) | (p == 0) & (n == 0) & (kind == 1)
    safe, size, sine = np.where(flat, 1, delta), np.abs(c), sign * s
    if kind == 0 or n:
        y = (_second if kind else _first)(_wide, sine, size, safe, n)
    else:
        y = np.where(m > 0, _above(_wide, sine, size, safe, m, p), _below(_wide, sine, size, safe, m, p))
    y = np.where(flat, np.copysign(np.inf, sine) if kind == 0 else sine if n == 0 else -np.copysign(np.inf, sine), y)
    return y + np.where(j == 0, 0, 2 * j * _complete(p, m, kind, n)) if np.any(j) else y


# Many digits: numbers of Arb where it is installed, since they are faster, else of mpmath


class ByArb:
    """Carlson's integrals of numbers of Arb, without series, in the place of `Duplication`."""

    def __init__(self, flint: Any):
        self.acb = flint.acb

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return x.sqrt()

    def rf(self, *xs: list[Any]) -> list[Any]:
        """R_F."""
        return [self.acb.elliptic_rf(*(self.acb(x[0]) for x in xs)).real]

    def rd(self, *xs: list[Any]) -> list[Any]:
        """R_D."""
        return [self.acb.elliptic_rd(*(self.acb(x[0]) for x in xs)).real]


class Numbers:
    """The conversions between numbers of mpmath and those that are computed with, and the rules for these."""

    def __init__(self, mp: Any):
        self.mp, self.flint = mp, arb_module()
        close = mp.ldexp(1, -(mp.prec // 8) - 1)
        self.sqrt = (lambda x: x.sqrt()) if self.flint else mp.sqrt
        self.close = self.number(close)

    def number(self, x: Any) -> Any:
        if not self.flint:
            return x
        sign, mantissa, exponent, _ = x._mpf_
        return self.flint.arb((int(-mantissa if sign else mantissa), exponent))

    def rules(self, count: int) -> Any:
        return ByArb(self.flint) if self.flint and count == 1 else Duplication(self.sqrt, count, self.close)

    def call(self, function: Any, xs: Sequence[Any], *params: Any) -> Any:
        """A function of these rules, numbers and parameters."""
        if not self.flint:
            return function(self.rules, *xs, *params)
        with workprec(self.flint.ctx, self.mp.prec):
            found = function(self.rules, *map(self.number, xs), *params).mid()
            return self.mp.mpf(tuple(map(int, found.man_exp())))


def _exact_complete(mp: Any, p: Any, m: Any, kind: int, n: int) -> Any:
    if not (p > 0 and mp.isfinite(p)):
        return mp.nan if p else (mp.one if n == 0 else -mp.inf) if kind else mp.inf
    if kind == 0 and n == 0:
        return mp.pi / 2 / mp.agm(1, mp.sqrt(p))
    numbers, start = Numbers(mp), (mp.one, mp.zero, p)
    if kind == 0 or n:
        return numbers.call(_second if kind else _first, start, n)
    return numbers.call(_above if m > 0 else _below, (*start, m, p))


def _with_digits(function: Any) -> Any:
    """The function with guard digits; its last results are kept."""
    @lru_cache(4096)
    def kept(mp: Any, bits: int, *args: Any) -> Any:
        with workprec(mp, bits):
            return function(mp, *args)

    def call(mp: Any, *args: Any) -> Any:
        return +kept(mp, mp.prec + 40, *args)

    return call


def _complement(mp: Any, m: Any) -> Any:
    """1 - m, exactly where m is not tiny."""
    return mp.fsub(1, m, exact=True) if mp.isfinite(m) and mp.mag(m) > -mp.prec else 1 - m


def _exact_of_parameter(kind: int) -> Any:
    return _with_digits(lambda mp, m, n=0: _exact_complete(mp, _complement(mp, m), m, kind, n))


_exact_of_complement = _with_digits(lambda mp, p, n=0: (-1) ** n * _exact_complete(mp, p, _complement(mp, p), 0, n))


def _exact_incomplete(kind: int) -> Any:
    def call(mp: Any, phi: Any, m: Any, k: int = 0, n: int = 0) -> Any:
        if not (m <= 1 and mp.isfinite(m) and mp.isfinite(phi)):
            return mp.nan
        with mp.extraprec(max(0, mp.mag(phi)) + 20):
            p, s, c = _complement(mp, m), mp.sin(phi), mp.cos(phi)
            delta = c * c + p * s * s
            if k:
                return _wave(s, c, m, mp.sqrt(delta), kind, k, n)
            j = int(mp.nint(phi / mp.pi))
            s, c = (-s if j % 2 else s), abs(c)
            if not delta or not p and kind and not n:
                y = mp.sign(s) * (mp.inf if kind == 0 else abs(s) if n == 0 else -mp.inf)
            elif kind == 0 or n:
                y = Numbers(mp).call(_second if kind else _first, (s, c, delta), n)
            else:
                y = Numbers(mp).call(_above if m > 0 else _below, (s, c, delta, m, p))
            return y + 2 * j * _exact_complete(mp, p, m, kind, n) if j else y

    return _with_digits(call)


# Formulas


def _rising(start: Any, n: int) -> Any:
    product = start / start
    for i in range(n):
        product = product * (start + i)
    return product


def _formula(kind: int) -> Any:
    def call(sp: Any, m: Any, n: int = 0) -> Any:
        function = sp.elliptic_e if kind else sp.elliptic_k
        if n == 0:
            return function(m)
        half = sp.Rational(-1 if kind else 1, 2)
        limit = sp.pi / 2 * _rising(half, n) * _rising(sp.Rational(1, 2), n) / sp.factorial(n)
        if m == 0:
            return limit
        variable = sp.Dummy(real=True)
        found = sp.diff(function(variable), variable, n).xreplace({variable: m})
        return found

    return call


def _formula_of_complement(sp: Any, p: Any, n: int = 0) -> Any:
    if n == 0:
        return sp.elliptic_k(1 - p)
    limit = (-1) ** n * sp.pi / 2 * _rising(sp.Rational(1, 2), n) ** 2 / sp.factorial(n)
    if p == 1:
        return limit
    variable = sp.Dummy(real=True)
    found = sp.diff(sp.elliptic_k(1 - variable), variable, n).xreplace({variable: p})
    return found


def _formula_of_incomplete(kind: int) -> Any:
    def call(sp: Any, phi: Any, m: Any, k: int = 0, n: int = 0) -> Any:
        function = sp.elliptic_e if kind else sp.elliptic_f
        if k:
            s, c = sp.sin(phi), sp.cos(phi)
            return _wave(s, c, m, sp.sqrt(1 - m * s**2), kind, k, n)
        if n == 0:
            return function(phi, m)
        moment = phi  # the integral of sin²ⁿ
        for i in range(1, n + 1):
            moment = ((2 * i - 1) * moment - sp.cos(phi) * sp.sin(phi) ** (2 * i - 1)) / (2 * i)
        limit = _rising(sp.Rational(-1 if kind else 1, 2), n) * moment
        if m == 0:
            return limit
        one, two = sp.Dummy(real=True), sp.Dummy(real=True)
        found = sp.diff(function(one, two), two, n).xreplace({one: phi, two: m})
        return found

    return call


# Balls


def _ball(kind: int) -> Any:
    """The derivatives of K or E as hypergeometric functions. DLMF 19.5.1, 19.5.2, 15.5.2."""
    def call(m: Any, n: int = 0) -> Any:
        ball = type(m)
        half, other = ball(0.5), ball(-0.5 if kind else 0.5)
        return ball.pi() / 2 * _rising(other, n) * _rising(half, n) / factorial(n) * m.hypgeom_2f1(other + n, half + n, ball(1 + n))

    return call


def _ball_of_incomplete(kind: int) -> Any:
    def call(phi: Any, m: Any, k: int = 0, n: int = 0) -> Any:
        flint = arb_module()
        if k:
            s, c = phi.sin_cos()
            return _wave(s, c, m, (c * c + (1 - m) * s * s).sqrt(), kind, k, n)
        if n:  # the integral of a derivative of (1 - m sin²θ)^∓½, over t for θ = φ t, so that nothing underflows next to φ = 0
            def slope(t: Any, analytic: bool) -> Any:
                ratio = t * (phi * t).sinc()
                delta = 1 - m * (phi * ratio) ** 2
                return ratio ** (2 * n) * delta.rsqrt(analytic) * delta ** (kind - n)

            integral = flint.acb.integral(slope, 0, 1, abs_tol=flint.arb(2) ** (-2 * flint.ctx.prec)).real
            return _rising(flint.arb(-0.5 if kind else 0.5), n) * phi ** (2 * n + 1) * integral
        return (flint.acb.elliptic_e_inc if kind else flint.acb.elliptic_f)(phi, m).real

    return call


IN_NUMPY = """
def _ellip{0}inc_derivative1(phi, m):
    turns = np.rint(phi / np.pi)
    s, c = np.sin(phi - turns * np.pi), np.cos(phi - turns * np.pi)
    within = s**3 * scipy.special.elliprd(c * c, {1}) / 6
    return {3}(within + turns * scipy.special.elliprd(0, {2}) / 3)
"""
OF_FIRST = IN_NUMPY.format("k", "1, c * c + (1 - m) * s * s", "1, 1 - m", "")
OF_SECOND = IN_NUMPY.format("e", "c * c + (1 - m) * s * s, 1", "1 - m, 1", "-")
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ellipk": (_of_parameter(0), _exact_of_parameter(0), _formula(0), _ball(0), 1, {"NumPy": "scipy.special.ellipk"}),
    "ellipe": (_of_parameter(1), _exact_of_parameter(1), _formula(1), _ball(1), 1, {"NumPy": "scipy.special.ellipe"}),
    "ellipkm1": (_of_complement, _exact_of_complement, _formula_of_complement, lambda p: _ball(0)(1 - p), 1, {"NumPy": "scipy.special.ellipkm1"}),
    "ellipk_derivative": (_of_parameter(0), _exact_of_parameter(0), _formula(0), _ball(0), 1,
                          {"NumPy 1": "5 scipy.special.elliprd(0, 1, 1 - {0:5}) / 6"}),  # that of order one, which alone has a name
    "ellipe_derivative": (_of_parameter(1), _exact_of_parameter(1), _formula(1), _ball(1), 1,
                          {"NumPy 1": "6 -scipy.special.elliprd(0, 1 - {0:5}, 1) / 6"}),
    "ellipkm1_derivative": (_of_complement, _exact_of_complement, _formula_of_complement, lambda p, n: (-1) ** n * _ball(0)(1 - p, n), 1,
                            {"NumPy 1": "6 -scipy.special.elliprd(0, 1, {0}) / 6"}),
    "ellipkinc": (_incomplete(0), _exact_incomplete(0), _formula_of_incomplete(0), _ball_of_incomplete(0), 2, {"NumPy": "scipy.special.ellipkinc"}),
    "ellipeinc": (_incomplete(1), _exact_incomplete(1), _formula_of_incomplete(1), _ball_of_incomplete(1), 2, {"NumPy": "scipy.special.ellipeinc"}),
    "ellipkinc_derivative": (_incomplete(0), _exact_incomplete(0), _formula_of_incomplete(0), _ball_of_incomplete(0), 2, {"NumPy 0 1": OF_FIRST}),
    "ellipeinc_derivative": (_incomplete(1), _exact_incomplete(1), _formula_of_incomplete(1), _ball_of_incomplete(1), 2, {"NumPy 0 1": OF_SECOND}),
}
