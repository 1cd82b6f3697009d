"""The Bessel functions J and Y and their derivatives of every order, with digits next to all of their zeros (DLMF 10.2 to 10.18).

A derivative is a sum of neighbouring orders (DLMF 10.6.7), which cancels next to its zeros, so it is a word of its own. Below 25 it is a polynomial
in cells that has the zero as a factor. From 25 on it is a wave, M(x) sin θ(x), with amplitude and phase by Hankel's expansions (DLMF 10.18); the
distance of the phase from the nearest multiple of π is computed in long doubles. Where even they are too short, next to a zero, many digits are
taken. High whole orders n are not yet such a wave below 2 n², and are computed there by the recurrence upwards in long doubles.

Against mpmath, whole orders up to 32 and their derivatives up to the third are within 6 ULP at all arguments, next to their zeros as well, and so
are other orders n up to 5 (`cylinder_orders`), and arguments above 25 and 2 n². Below, of higher orders and those next to whole ones, values are
those of SciPy's `jv` and `yv`, which are 185 ULP off for J of order 1/2 at 10.95, and derivatives are sums of them. SciPy's `j0`, `j1`, `y0` and `y1`
lose the digits that the argument has before the point, and are not used.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from symgrad.carriers.elementwise import where
from symgrad.carriers.special.bessel import LARGEST_ORDER, by_order, of_order, power_series, second_kind
from symgrad.carriers.special.cylinder_orders import is_covered, of_real_order
from symgrad.carriers.special.pieces import EULER, PI, Pieces, horner, piecewise, with_many_digits

MIDDLE = 25.0  # from here on: Hankel's expansions
SMALL = 2.0**-11  # of the amplitude: where a long double has no more digits to lose
TERMS = 14  # of the polynomials of amplitude and phase
QUARTER, REST = np.longdouble(3373259426 * 2.0**-32), np.longdouble("3.038550253253096300737572e-11")  # π/4: few bits, and the rest
LONGEST = 1e9  # up to which multiples of QUARTER are exact


@functools.lru_cache(1024)
def _terms(order: Any, times: int) -> tuple[tuple[Any, float], ...]:
    """The orders, which are nonnegative if they are whole, and the factors whose sum is the derivative of order `times`. DLMF 10.6.7, 10.4.1."""
    found: dict[Any, float] = {}
    for i in range(times + 1):
        n, factor = (order if type(order) is int else Fraction(order)) - times + 2 * i, (-1) ** i * comb(times, i) / 2**times
        if type(n) is int and n < 0:
            n, factor = -n, factor * (-1) ** n
        found[n] = found.get(n, 0.0) + factor
    return tuple((n, factor) for n, factor in sorted(found.items(), reverse=True) if factor)


@functools.lru_cache
def _oscillating(order: int, second: bool, times: int) -> Pieces:
    """The derivative of J, or Y, of a whole order."""
    digits = _y_digits if second else _j_digits
    return Pieces(lambda x: sum(factor * _neumann(x, n)[second] for n, factor in _terms(order, times)),
                  lambda mp, x: digits(mp, x, order, times), 0.5, 26.0, 816)


def _j(special: Any, x: Any, order: Any, times: int = 0) -> Any:
    size = np.abs(x)
    if type(order) is not int or order > LARGEST_ORDER:
        y = _other(special, x, order, times, False)
    else:
        y = piecewise(size, [size < 1, (size >= 1) & (size < MIDDLE)],
                      [lambda x: power_series(x, order, -1, times), _oscillating(order, False, times), lambda x: _far(x, order, times, False)])
        y = np.sign(x) * y if (order + times) % 2 else y
    return y


def _y(special: Any, x: Any, order: Any, times: int = 0) -> Any:
    if type(order) is not int or order > LARGEST_ORDER:
        return _other(special, x, order, times, True)
    near = max(0.5, (order + times) / 8)
    return piecewise(x, [x < near, (x >= near) & (x < MIDDLE)],
                     [lambda x: _y_near_pole(special, x, order, times), _oscillating(order, True, times), lambda x: _far(x, order, times, True)])


def _y_near_pole(special: Any, x: Any, order: int, times: int) -> Any:
    """The recurrence upwards, where the highest order is by far the largest, and may be infinite. SciPy's `yv` is 14 ULP off."""
    wanted = dict(_terms(order, times))
    if len(wanted) == 1 and max(wanted) < 2:
        ((n, factor),) = wanted.items()
        return factor * (special.y0, special.y1)[n](x)
    wide = x.astype(np.longdouble if max(wanted) > 2 else np.float64)
    below, here, total = special.y0(x).astype(wide.dtype), special.y1(x).astype(wide.dtype), np.zeros_like(wide)
    for n in range(max(wanted) + 1):
        if n in wanted:
            term = wanted[n] * below
            total = where(np.isinf(below), term, total + term)
        if n < max(wanted):
            below, here = here, where(np.isinf(here), here, 2 * (n + 1) * here / wide - below)
    return total


def _other(special: Any, x: Any, order: Any, times: int, second: bool) -> Any:
    """Orders that are not whole, or high."""
    function, digits = (special.yv, _y_digits) if second else (special.jv, _j_digits)

    def near(x: Any) -> Any:
        return sum(factor * function(float(n), x) for n, factor in _terms(order, times))

    low, covered = _waves_from(order, times), is_covered(order, times)
    return piecewise(x, [x > low, (x >= 0) & covered], [lambda x: _wave(x, order, times, second),
                                                        lambda x: of_real_order(x, float(order), times, second, low, digits), near])


def _far(x: Any, order: int, times: int, second: bool) -> Any:
    """Whole orders for x >= 25."""
    return piecewise(x, [x >= _waves_from(order, times)], [lambda x: _wave(x, order, times, second), lambda x: _upwards(x, order, times, second)])


def _waves_from(order: Any, times: int) -> float:
    return max(MIDDLE, 2.0 * (abs(order) + times) ** 2)


def _wave(x: Any, order: Any, times: int, second: bool) -> Any:
    """The amplitude times the sine of the phase, x - (2 order + 1 - 2 times) π/4 + slope/x + ..., and π/2 more for J. DLMF 10.18.17, 10.18.18."""
    low = _waves_from(order, times)
    infinite, x = np.isinf(x), np.where(np.isinf(x), low, x)
    modulus, rest = _polynomials(order, times, low)
    shift = (2 * np.longdouble(order) + 1 - 2 * times - (0 if second else 2)) % 8  # quarters of π; a fraction for orders that are not whole
    part = (shift - np.rint(shift)) * PI / 4
    wide = x.astype(np.longdouble)
    if np.max(x, initial=0.0) > LONGEST:
        wide = np.where(x > LONGEST, np.arctan2(np.sin(wide), np.cos(wide)), wide)
    turns = np.rint(wide.astype(np.float64) / np.pi - float(shift) / 4)
    quarters = (4 * turns + np.rint(shift)).astype(np.longdouble)
    u = (low / x) ** 2
    slope = (4 * order * order - 1) / 8 + times / 2
    phase = (wide - quarters * QUARTER) - quarters * REST - part + (np.longdouble(slope) / x + u / x * horner(rest, u))
    y = np.sqrt(2 / np.pi) / np.sqrt(x) * horner(modulus, u) * np.sin(phase.astype(np.float64))
    y = np.where(turns % 2 == 0, y, -y)
    digits = _y_digits if second else _j_digits
    return np.where(infinite, 0, with_many_digits(y, np.abs(phase) < SMALL, x, lambda mp, x: digits(mp, x, order, times)))


@functools.lru_cache
def _polynomials(order: Any, times: int, low: float) -> tuple[list[float], list[float]]:
    """The amplitude times √(πx/2), and the phase less slope/x times x/u, as polynomials of u = (low/x)²."""
    import mpmath  # takes long to import

    mp = mpmath.MPContext()
    mp.prec = 240
    nodes = [(1 + mp.cos((2 * i + 1) * mp.pi / (2 * TERMS))) / 2 for i in range(TERMS)]
    columns: tuple[list[Any], list[Any]] = [], []
    slope = (4 * mp.mpf(order) ** 2 - 1) / 8 + mp.mpf(times) / 2
    for u in nodes:
        x = low / mp.sqrt(u)
        h = mp.fsum(factor * mp.mpc(*_sums(mp, x, _number(mp, n), mp.mpf(2) ** -80)) * mp.expjpi(mp.mpf(int(Fraction(order) - n) - times) / 2)
                    for n, factor in _terms(order, times))
        columns[0].append(abs(h))
        columns[1].append((mp.arg(h) - slope / x) * x / u)
    matrix = mp.matrix([[u**k for k in range(TERMS)] for u in nodes])
    first, second = (list(map(float, mp.lu_solve(matrix, mp.matrix(column)))) for column in columns)
    return first, second


def _upwards(x: Any, order: int, times: int, second: bool) -> Any:
    """High whole orders, by those of 0 and 1 and the recurrence, for 25 <= x < 5000."""
    wide = x.astype(np.longdouble)
    waves, wanted, total = (np.sin(wide), np.cos(wide)), dict(_terms(order, times)), 0 * wide
    below, here = (_hankel(wide, waves, n, second) for n in (0, 1))
    for n in range(max(wanted) + 1):
        total = total + wanted.get(n, 0.0) * below
        below, here = here, 2 * (n + 1) * here / wide - below
    digits = _y_digits if second else _j_digits
    return with_many_digits(total, np.abs(total) < SMALL / np.sqrt(wide), x, lambda mp, x: digits(mp, x, order, times))


def _hankel(x: Any, waves: tuple[Any, Any], order: int, second: bool) -> Any:
    """J or Y of one order, from the sine and the cosine of x. DLMF 10.17.3, 10.17.4."""
    least = float(np.min(x))
    parts, term, size, k = [1 + 0 * x, 0 * x], 1 + 0 * x, 1.0, 0
    while size > 2.0**-70 and k < 2 * least:
        k += 1
        ratio = (4 * order * order - (2 * k - 1) ** 2) / np.longdouble(8 * k)
        term, size = term * (ratio / x), size * abs(float(ratio)) / least
        parts[k % 2] += (-1) ** (k // 2) * term
    turn = (order / 2 + 0.25) % 2 * PI
    sine = waves[0] * np.cos(turn) - waves[1] * np.sin(turn)
    cosine = waves[1] * np.cos(turn) + waves[0] * np.sin(turn)
    return np.sqrt(2 / (PI * x)) * (parts[0] * sine + parts[1] * cosine if second else parts[0] * cosine - parts[1] * sine)


def _neumann(x: Any, order: int) -> tuple[Any, Any]:
    """J and Y of an order with the digits of a long double, for 0.5 <= x < 25 (DLMF 3.6, 10.8.1, 10.8.3).

    J by the recurrence downwards, divided by J₀ + 2 J₂ + 2 J₄ + ... = 1; Y₀ and Y₁ by series of them, and the recurrence upwards.
    """
    x = x.astype(np.longdouble)
    above, here, total, even, odd, found = np.zeros_like(x), np.ones_like(x), 0 * x, 0 * x, 0 * x, 0 * x
    for n in range(80, -1, -1):  # `here` is of order n
        sign = (-1) ** (n // 2)
        found = here if n == order else found
        if n % 2 == 0:
            total += here if n == 0 else 2 * here
            even += sign * here / (n // 2) if n else 0
        elif n > 1:
            k = n // 2
            odd += sign * n * here / (k * (k + 1))
        above, here = here, 2 * n * here / x - above
    zeroth, first = above, -here  # the last step gives the order -1
    logarithm, pi = np.log(x / 2) + EULER, PI
    below, here = 2 / pi * (logarithm * zeroth - 2 * even) / total, 2 / pi * ((logarithm - 1) * first - odd - zeroth / x) / total
    for n in range(1, order):
        below, here = here, 2 * n * here / x - below
    return found / total, here if order else below


# Many digits

def _sums(mp: Any, x: Any, order: Any, least: Any) -> tuple[Any, Any]:
    """The sums P and Q of Hankel's expansions, of terms down to `least`, or to the smallest."""
    sums, term, k = [mp.one, mp.zero], mp.one, 0
    while abs(term) > least and k < 2 * x:
        k += 1
        term = term * (4 * mp.mpf(order) ** 2 - (2 * k - 1) ** 2) / (8 * k * x)
        sums[k % 2] += (-1) ** (k // 2) * term
    return sums[0], sums[1]


def _number(mp: Any, order: Any) -> Any:
    return order if type(order) is int else mp.mpf(order.numerator) / order.denominator


def _one_order(mp: Any, x: Any, order: Any, second: bool) -> Any:
    """J or Y of one order for x > 0, or J for any x."""
    order = _number(mp, order)
    if x > 0.36 * mp.prec + 40 + order * order:
        with mp.extraprec(64 + max(0, mp.mag(x))):
            sums = _sums(mp, x, order, mp.ldexp(1, -mp.prec))
            phase = x - (mp.mpf(order) / 2 + mp.mpf(0.25)) * mp.pi
            cosine, sine = mp.cos(phase), mp.sin(phase)
            return mp.sqrt(2 / (mp.pi * x)) * (sums[0] * sine + sums[1] * cosine if second else sums[0] * cosine - sums[1] * sine)
    if not second:
        return mp.besselj(order, x)
    return second_kind(mp, x, order, -1, mp.prec) if type(order) is int and x < 10_000 else mp.bessely(order, x)


def _digits(second: bool) -> Any:
    def call(mp: Any, x: Any, order: Any, times: int = 0) -> Any:
        if second and x <= 0:
            return mp.inf * (-1) ** (times + 1) if x == 0 else mp.nan
        if mp.isinf(x):
            return mp.zero
        if type(order) is int and order < 0:
            return (-1) ** order * call(mp, x, -order, times)
        if type(order) is int and x < 0:
            return (-1) ** (order + times) * call(mp, -x, order, times)
        with mp.extraprec(64 if times else 0):
            return mp.fsum(mp.mpf(factor) * _one_order(mp, x, n, second) for n, factor in _terms(order, times))

    return call


_j_digits, _y_digits = _digits(False), _digits(True)


def _rows(letter: str, function: Any, digits: Any, head: str, sources: dict[str, str], slope: dict[str, str]) -> dict[str, tuple[Any, ...]]:
    """The function of an order, and its derivatives."""
    call, ball = of_order(function, -1), f"bessel_{letter}"
    return {
        f"bessel_{letter}": (call, digits, lambda sp, x, n: getattr(sp, head)(sp.Rational(n), x), lambda x, n: getattr(x, ball)(n), 1, sources),
        f"bessel_{letter}_derivative": (
            call, digits, lambda sp, x, n, times: sum(sp.Rational(c) * getattr(sp, head)(sp.Rational(m), x) for m, c in _terms(n, times)),
            lambda x, n, times: sum(c * getattr(x, ball)(type(x)(m.numerator) / m.denominator) for m, c in _terms(n, times)), 1, slope)}


# name: arrays, digits, formula, balls, arity, sources; SciPy's `yvp` and PyTorch's J and Y lose half of the digits of large arguments
ROWS: dict[str, tuple[Any, ...]] = {**_rows("j", _j, _j_digits, "besselj", by_order("j", in_c="jn"), {}),
                                    **_rows("y", _y, _y_digits, "bessely", by_order("y", in_c="yn"), {})}
