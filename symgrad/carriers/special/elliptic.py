"""The elliptic integrals of Legendre and their derivatives of every order, from Carlson's integrals (DLMF 19.25)."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import PI
from symgrad.system.restoring import workprec

CLOSE = 2.0**-9  # deviations from the mean whose eighth power is below the rounding of a long double


class Jet:
    """A truncated power series: its Taylor coefficients, which are arrays or numbers of mpmath."""

    __array_ufunc__ = None  # so that arrays use these operators

    def __init__(self, rows: list[Any]):
        self.rows = rows

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet([a + b for a, b in zip(self.rows, other.rows)])
        return Jet([self.rows[0] + other, *self.rows[1:]])

    def __neg__(self) -> Jet:
        return self * -1

    def __sub__(self, other: Any) -> Jet:
        return self + -other

    def __rsub__(self, other: Any) -> Jet:
        return -self + other

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet([sum(self.rows[i] * other.rows[k - i] for i in range(k + 1)) for k in range(len(self.rows))])
        return Jet([a * other for a in self.rows])

    def __truediv__(self, other: Any) -> Jet:
        return self * (1 / other) if isinstance(other, Jet) else Jet([a / other for a in self.rows])

    def __rtruediv__(self, other: Any) -> Jet:
        rows = [1 / self.rows[0]]
        for k in range(1, len(self.rows)):
            rows.append(-sum(self.rows[i] * rows[k - i] for i in range(1, k + 1)) * rows[0])
        return Jet(rows) * other

    def sqrt(self, root: Any) -> Jet:
        """The square root, by that of its first coefficient."""
        rows = [root(self.rows[0])]
        for k in range(1, len(self.rows)):
            rows.append((self.rows[k] - sum(rows[i] * rows[k - i] for i in range(1, k))) / (2 * rows[0]))
        return Jet(rows)

    __radd__, __rmul__ = __add__, __mul__


def _carlson(root: Any, close: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """R_F and R_D, of arguments that are halved towards each other until the eighth power of their deviations is `close`⁸. DLMF 19.36.1, 19.36.2."""
    def sqrt(x: Any) -> Any:
        return x.sqrt(root) if isinstance(x, Jet) else root(x)

    total, factor = 0 * z, 3.0
    extra = max(len(x.rows) if isinstance(x, Jet) else 1 for x in (x, y, z))  # steps more, until the last coefficients are close, too
    while extra:
        u, v, w = (x.rows[0] if isinstance(x, Jet) else x for x in (x, y, z))
        mean = (u + v + 3 * w) / 5
        extra -= not np.any((abs(mean - u) > close * mean) | (abs(mean - v) > close * mean))
        a, b, c = sqrt(x), sqrt(y), sqrt(z)
        shift = a * b + b * c + c * a
        total, factor = total + factor / (c * (z + shift)), factor / 4
        x, y, z = (x + shift) / 4, (y + shift) / 4, (z + shift) / 4
    equal, mean = (x + y + z) / 3, (x + y + 3 * z) / 5
    a, b = 1 - x / equal, 1 - y / equal
    c = -(a + b)
    e2, e3 = a * b - c * c, a * b * c
    square = e2 * e2
    first = (1 - e2 / 10 + e3 / 14 + square / 24 - 3 * e2 * e3 / 44 - 5 * square * e2 / 208 + 3 * e3 * e3 / 104 + square * e3 / 16) / sqrt(equal)
    a, b = 1 - x / mean, 1 - y / mean
    c = -(a + b) / 3
    squares, product = c * c, a * b
    e2, e3, e4, e5 = product - 6 * squares, (3 * product - 8 * squares) * c, 3 * (product - squares) * squares, product * c * squares
    square = e2 * e2
    second = 1 - 3 * e2 / 14 + e3 / 6 + 9 * square / 88 - 3 * e4 / 22 - 9 * e2 * e3 / 52 + 3 * e5 / 26 - square * e2 / 16 + 3 * e3 * e3 / 40
    second = second + 3 * e2 * e4 / 20 + 45 * square * e3 / 272 - 9 * (e3 * e4 + e2 * e5) / 68
    return first, total + factor / 3 * second / (mean * sqrt(mean))


def _first(rules: Any, s: Any, c: Any, delta: Any, n: int) -> Any:
    """The derivative of F by m of order n, at |φ| <= π/2 with this sine, cosine and Δ² = 1 - m sin²φ; the first is ∫ sin²θ/(2Δ³). DLMF 19.25.5."""
    one = 1 + 0 * s
    return s * rules(c * c, delta, one)[0] if n == 0 else _higher(s, n, rules(c * c, one, _moving(s, delta, n))[1])


def _second(rules: Any, s: Any, c: Any, delta: Any, n: int) -> Any:
    """The derivative of E by m of order n > 0: that of -∫ sin²θ/(2Δ). DLMF 19.25.9, 19.4.6."""
    return -_higher(s, n, rules(c * c, _moving(s, delta, n), 1 + 0 * s)[1])


def _moving(s: Any, delta: Any, n: int) -> Any:
    """Δ² as a series of m, with n coefficients."""
    return Jet([delta, -s * s, *[0 * s] * (n - 2)]) if n > 1 else delta


def _higher(s: Any, n: int, found: Any) -> Any:
    """A derivative of order n from R_D, of which the first is a part."""
    return factorial(n - 1) * s * s * s * (found.rows[n - 1] if n > 1 else found) / 6


def _above(rules: Any, s: Any, c: Any, delta: Any, m: Any, p: Any) -> Any:
    """E for m > 0 as a sum of positive terms; p = 1 - m. DLMF 19.25.10."""
    first, second = rules(c * c, 1 + 0 * s, delta)
    return p * s * first + m * p * s * s * s * second / 3 + m * s * c / rules.args[0](delta)


def _below(rules: Any, s: Any, c: Any, delta: Any, m: Any, p: Any) -> Any:
    """E for m <= 0 as a sum of positive terms. DLMF 19.25.9."""
    first, second = rules(c * c, delta, 1 + 0 * s)
    return s * first - m * s * s * s * second / 3


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


_wide = partial(_carlson, np.sqrt, CLOSE)


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


def _of_parameter(kind: int, complement: bool = False) -> Any:
    """The function of m, or of 1 - m."""
    def call(special: Any, x: Any, n: int = 0) -> Any:
        (wide,) = _real(x)
        with np.errstate(all="ignore"):
            y = (-1) ** n * _complete(wide, 1 - wide, kind, n) if complement else _complete(1 - wide, wide, kind, n)
            return y.astype(np.asarray(x).dtype)[()]

    return call


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


# Many digits


def _rules(mp: Any) -> Any:
    return partial(_carlson, mp.sqrt, mp.ldexp(1, -(mp.prec // 8) - 1))


def _exact_complete(mp: Any, p: Any, m: Any, kind: int, n: int) -> Any:
    if not (p > 0 and mp.isfinite(p)):
        return mp.nan if p else (mp.one if n == 0 else -mp.inf) if kind else mp.inf
    if kind == 0 and n == 0:
        return mp.pi / 2 / mp.agm(1, mp.sqrt(p))
    if kind == 0 or n:
        return (_second if kind else _first)(_rules(mp), mp.one, mp.zero, p, n)
    return (_above if m > 0 else _below)(_rules(mp), mp.one, mp.zero, p, m, p)


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


def _exact_of_parameter(kind: int, complement: bool = False) -> Any:
    if complement:
        return _with_digits(lambda mp, p, n=0: (-1) ** n * _exact_complete(mp, p, _complement(mp, p), kind, n))
    return _with_digits(lambda mp, m, n=0: _exact_complete(mp, _complement(mp, m), m, kind, n))


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
                y = (_second if kind else _first)(_rules(mp), s, c, delta, n)
            else:
                y = (_above if m > 0 else _below)(_rules(mp), s, c, delta, m, p)
            return y + 2 * j * _exact_complete(mp, p, m, kind, n) if j else y

    return _with_digits(call)


# Formulas


def _rising(start: Any, n: int) -> Any:
    product = start / start
    for i in range(n):
        product = product * (start + i)
    return product


def _formula(kind: int, complement: bool = False) -> Any:
    def call(sp: Any, x: Any, n: int = 0) -> Any:
        function, variable = sp.elliptic_e if kind else sp.elliptic_k, sp.Dummy(real=True)
        if n and x == int(complement):  # where m is 0
            half = sp.Rational(-1 if kind else 1, 2)
            return (-1) ** (n * complement) * sp.pi / 2 * _rising(half, n) * _rising(sp.Rational(1, 2), n) / sp.factorial(n)
        return sp.diff(function(1 - variable if complement else variable), variable, n).xreplace({variable: x})

    return call


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
        return sp.diff(function(one, two), two, n).xreplace({one: phi, two: m})

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
        import flint  # optional

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
OF_COMPLEMENT = [of(0, True) for of in (_of_parameter, _exact_of_parameter, _formula)]
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ellipk": (_of_parameter(0), _exact_of_parameter(0), _formula(0), _ball(0), 1, {"NumPy": "scipy.special.ellipk"}),
    "ellipe": (_of_parameter(1), _exact_of_parameter(1), _formula(1), _ball(1), 1, {"NumPy": "scipy.special.ellipe"}),
    "ellipkm1": (*OF_COMPLEMENT, lambda p: _ball(0)(1 - p), 1, {"NumPy": "scipy.special.ellipkm1"}),
    "ellipk_derivative": (_of_parameter(0), _exact_of_parameter(0), _formula(0), _ball(0), 1,
                          {"NumPy 1": "5 scipy.special.elliprd(0, 1, 1 - {0:5}) / 6"}),  # that of order one, which alone has a name
    "ellipe_derivative": (_of_parameter(1), _exact_of_parameter(1), _formula(1), _ball(1), 1,
                          {"NumPy 1": "6 -scipy.special.elliprd(0, 1 - {0:5}, 1) / 6"}),
    "ellipkm1_derivative": (*OF_COMPLEMENT, lambda p, n: (-1) ** n * _ball(0)(1 - p, n), 1,
                            {"NumPy 1": "6 -scipy.special.elliprd(0, 1, {0}) / 6"}),
    "ellipkinc": (_incomplete(0), _exact_incomplete(0), _formula_of_incomplete(0), _ball_of_incomplete(0), 2, {"NumPy": "scipy.special.ellipkinc"}),
    "ellipeinc": (_incomplete(1), _exact_incomplete(1), _formula_of_incomplete(1), _ball_of_incomplete(1), 2, {"NumPy": "scipy.special.ellipeinc"}),
    "ellipkinc_derivative": (_incomplete(0), _exact_incomplete(0), _formula_of_incomplete(0), _ball_of_incomplete(0), 2, {"NumPy 0 1": OF_FIRST}),
    "ellipeinc_derivative": (_incomplete(1), _exact_incomplete(1), _formula_of_incomplete(1), _ball_of_incomplete(1), 2, {"NumPy 0 1": OF_SECOND}),
}
