"""Bessel functions of every order, and the moments that derivatives of the scaled ones are sums of (DLMF chapter 10).

The derivative of e^-|x| I₀ is e^-|x| (I₁ - I₀), and this difference cancels. As integrals (DLMF 10.32.1, 10.32.9) both scaled functions are
the first of a family in which a derivative is one member, and every member is an integral of positive numbers: for I the mean of
(1 - cos t)ᵏ e^(-|x| (1 - cos t)) over a period, for K the integral of (cosh t - 1)ᵏ e^(-x (cosh t - 1)) from 0 on. The trapezoidal rule computes
them to the last digits, from which polynomials in cells are made at the first use.

J and Y are in `cylinder`.
"""

from __future__ import annotations

import functools
from math import comb, factorial, perm, prod
from typing import Any

import numpy as np

from symgrad.carriers.special.cylinder_orders import is_covered, modified_of_real_order
from symgrad.carriers.special.pieces import PI, Pieces, piecewise
from symgrad.carriers.special.printed import TEMPLATES
from symgrad.system.restoring import workprec

STEPS = 96  # of the trapezoidal rule: enough for all digits of a long double up to the fifth moment
LARGEST_ORDER = 32  # of whole numbers; of higher orders are SciPy's values
LOG_TWO = 0.6931471805599453
NEAR_POLE = 0.02  # below it the moments of K are sums without cancellation


def real(x: Any) -> Any:
    """The array, in float64; complex numbers are refused."""
    if np.iscomplexobj(x):
        raise TypeError("Bessel functions are defined here for real numbers, got complex ones; pass the real part")
    return np.asarray(x, np.float64)


def of_order(function: Any, reflected: int) -> Any:
    """A function (special, x, order, ...) of nonnegative whole orders extended to others: the one of -n is that of n times `reflected`ⁿ."""
    def call(special: Any, x: Any, order: Any, *rest: int) -> Any:
        sign = 1
        if order == int(order):
            sign, order = (reflected ** abs(int(order)) if order < 0 else 1), abs(int(order))
        return (sign * function(special, real(x), order, *rest)).astype(np.asarray(x).dtype)[()]

    return call


def power_series(x: Any, order: int, sign: int, times: int = 0) -> Any:
    """The derivative of order `times` of J (sign -1) or I (sign 1), by their power series for 0 <= x < 1."""
    first = max(0, (times - order + 1) // 2)
    terms = [sign**i * perm(order + 2 * i, times) / (factorial(i) * factorial(order + i) * 2 ** (order + 2 * i)) for i in range(first, first + 10)]
    square, power = x * x, order + 2 * first - times
    total = np.full_like(x, terms.pop())
    for term in reversed(terms):
        total *= square
        total += term
    return total * x ** power if power else total


def _i(special: Any, x: Any, order: Any) -> Any:
    if order in (0, 1):
        return (special.i0, special.i1)[int(order)](x)
    if type(order) is not int and is_covered(order, 0):  # SciPy's function is NaN for subnormal numbers
        return piecewise(x, [(x >= 0) & (x < 1)], [lambda x: modified_of_real_order(x, float(order), False), lambda x: special.iv(float(order), x)])
    if type(order) is not int or order > LARGEST_ORDER:
        return special.iv(float(order), x)
    size = np.abs(x)
    y = piecewise(size, [size < 1], [lambda x: power_series(x, order, 1), lambda x: _times_exp(_scaled("bessel_i", order)(x), x)])
    return np.sign(x) * y if order % 2 else y


def _times_exp(y: Any, x: Any) -> Any:
    """y eˣ, where eˣ may overflow."""
    root = np.exp(x / 2)
    return y * root * root


def _k1e(special: Any, x: Any) -> Any:
    return piecewise(x, [(x > 0) & (x < 1e-300)], [lambda x: 1 / x, special.k1e])[()]  # that of SciPy is NaN for subnormal numbers


def _k(special: Any, x: Any, order: Any) -> Any:
    if type(order) is not int and not float(order).is_integer():
        near = functools.partial(modified_of_real_order, order=float(order), second=True) if is_covered(order, 0) else lambda x: special.kv(order, x)
        return piecewise(x, [x > 2, x >= 0], [lambda x: special.kve(order, x) * np.exp(-x), near, lambda x: special.kv(order, x)])
    if order > 1:
        below, here = _k(special, x, 0), _k(special, x, 1)
        for n in range(1, int(order)):
            below, here = here, below + 2 * n / x * here
        return here
    if order == 1:  # SciPy's function overflows for subnormal numbers
        return piecewise(x, [(x > 0) & (x < 1e-9)], [lambda x: 1 / x, special.k1])
    return piecewise(x, [(x > 0) & (x < 1e-9), x >= NEAR_POLE],  # between 1 and 2 SciPy's function has errors of 8.3 ULP
                        [lambda x: (LOG_TWO - np.euler_gamma) - np.log(x), lambda x: _times_exp(_scaled("bessel_k_moment", 0)(x), -x), special.k0])


@functools.lru_cache
def _scaled(name: str, order: int) -> Pieces:
    """One of the words for scaled functions, or I of an order with the factor e^-x, for positive numbers."""
    spread = np.longdouble(30 + 4 * order)

    def exact(x: Any) -> Any:
        if name == "bessel_k_moment":
            step = 2 * np.arcsinh(np.sqrt(spread / x)) / STEPS
            return _trapezoids(np.sinh, x, step, order) * step
        step = 2 * np.arcsin(np.sqrt(np.minimum(1, spread / np.maximum(x, 1)))) / STEPS
        if name == "bessel_i":  # the cosine of n t is the polynomial of Chebyshev of cos t = 1 - u
            far = _trapezoids(np.sin, x, step, 0, lambda u: np.polynomial.chebyshev.chebval(1 - u, [0] * order + [1]))
            return np.where(x < 20, _miller(np.minimum(x, 20), order), far * step / PI)
        factor = (lambda u: (-1) ** order * (1 - u)) if name == "i1e_derivative" else lambda u: 1
        return _trapezoids(np.sin, x, step, order, factor) * step / PI

    centre, low = (0.25, NEAR_POLE) if name == "bessel_k_moment" else (1.0, 1.0 if name == "bessel_i" else 0.0)
    digits = (lambda mp, x: _i1e_digits(mp, x, order)) if name == "i1e_derivative" else None
    return Pieces(exact, digits, low, 1e305, 128, power=0 if name == "bessel_i" else order, centre=centre)


def _miller(x: Any, order: int) -> Any:
    """I of an order, with the factor e^-x, for x <= 20: the recurrence downwards, divided by I₀ + 2 I₁ + 2 I₂ + ... = eˣ. DLMF 10.29.1, 10.35.5."""
    above, here, total, found = 0 * x, 0 * x + 1, 0 * x, 0 * x
    for n in range(110, -1, -1):  # `here` is of order n
        found = here if n == order else found
        total += 2 * here if n else here
        above, here = here, 2 * n * here / x + above
    return found / total


def _i_moment(special: Any, x: Any, order: int) -> Any:
    if order == 0:
        return special.i0e(real(x)).astype(np.asarray(x).dtype)
    return _scaled("bessel_i_moment", order)(np.abs(real(x))).astype(np.asarray(x).dtype)


def _i1e_derivative(special: Any, x: Any, order: int) -> Any:
    if order == 0:
        return special.i1e(real(x)).astype(np.asarray(x).dtype)
    y = _scaled("i1e_derivative", order)(np.abs(real(x)))
    return (y if order % 2 else np.sign(x) * y).astype(np.asarray(x).dtype)


def _k_moment(special: Any, x: Any, order: int) -> Any:
    given = real(x)
    near = (lambda x: _k(special, x, 0) * np.exp(x)) if order == 0 else lambda x: _k_moment_near_pole(special, x, order)
    y = piecewise(given, [given >= NEAR_POLE], [_scaled("bessel_k_moment", order), near])
    return y.astype(np.asarray(x).dtype)[()]


def _k_moment_near_pole(special: Any, x: Any, order: int) -> Any:
    terms = [sum(comb(j, i) * _k(special, x, abs(j - 2 * i)) for i in range(j + 1)) / 2**j for j in range(order + 1)]
    total = np.exp(x) * sum((-1) ** (order - j) * comb(order, j) * term for j, term in enumerate(terms))
    return np.where(np.isinf(terms[-1]), terms[-1], total)


def _trapezoids(sine: Any, size: Any, step: Any, order: int, factor: Any = lambda u: 1.0) -> Any:
    """The sum of factor(u) uᵏ e^(-size u) for u = 2 sine(t/2)² at the ends of the steps, of which the first and the last count half."""
    total = np.zeros_like(size)
    for i in range(STEPS + 1):
        u = 2 * sine(step * (i / 2)) ** 2
        total += factor(u) * u**order * np.exp(-size * u) * (1.0 if 0 < i < STEPS else 0.5)
    return total


def _i_moment_formula(sp: Any, x: Any, order: int) -> Any:
    powers = [sp.sign(x) ** (j % 2) * sum(comb(j, i) * sp.besseli(abs(j - 2 * i), x) for i in range(j + 1)) / sp.Integer(2) ** j
              for j in range(order + 1)]
    return sp.exp(-sp.Abs(x)) * sum((-1) ** j * comb(order, j) * power for j, power in enumerate(powers))


def _k_moment_formula(sp: Any, x: Any, order: int) -> Any:
    powers = [sum(comb(j, i) * sp.besselk(abs(j - 2 * i), x) for i in range(j + 1)) / sp.Integer(2) ** j for j in range(order + 1)]
    return sp.exp(x) * sum((-1) ** (order - j) * comb(order, j) * power for j, power in enumerate(powers))


def _i1e_formula(sp: Any, x: Any, order: int) -> Any:
    return sp.exp(-sp.Abs(x)) * sum((-sp.sign(x)) ** ((order - j) % 2) * comb(order, j) * _i1_derivative(sp.besseli, x, j) / sp.Integer(2) ** j
                                    for j in range(order + 1))


def _i1e_exactly(hyper: Any, x: Any, sign: Any, order: int) -> Any:
    """The same by x/2 M(3/2, 3, -2x), where no terms cancel for large x; hyper(2a, b) is Kummer's M(a, b, -2|x|). DLMF 10.39.5, 13.3.15."""
    def kummer(k: int) -> Any:  # the derivative of M(3/2, 3, -2x) of order k
        return hyper(3 + 2 * k, 3 + k) * (-1) ** k * prod(range(3, 3 + 2 * k, 2)) / prod(range(3, 3 + k))

    y = abs(x) * kummer(order) + (order * kummer(order - 1) if order else 0)
    return (y if order % 2 else sign * y) / 2


def _i1e_digits(mp: Any, x: Any, order: int) -> Any:
    return _i1e_exactly(lambda a, b: mp.hyp1f1(mp.mpf(a) / 2, b, -2 * abs(x)), x, mp.sign(x), order) if mp.isfinite(x) else x * 0


def _i1_derivative(function: Any, x: Any, order: int) -> Any:
    return sum(comb(order, i) * function(abs(1 - order + 2 * i), x) for i in range(order + 1))


def _i_moment_digits(mp: Any, x: Any, order: int) -> Any:
    return mp.hyp1f1(order + mp.mpf(1) / 2, order + 1, -2 * abs(x)) * prod(range(1, 2 * order, 2)) / factorial(order)


@functools.lru_cache(4096)
def second_kind(mp: Any, x: Any, order: int, sign: int, precision: int) -> Any:
    """Y (sign -1) or K (sign 1) of a whole order for 0 < x < 1000 by its series (DLMF 10.8.1, 10.31.1); mpmath takes a limit.

    Neighbouring orders are asked for again by derivatives, so the numbers are kept.
    """
    bits = precision + 30 + int(3 * x) + 8 * order  # of whole numbers, whose unit is 2^-bits
    with workprec(mp, bits):
        half = x / 2
        square, logarithm = int(mp.ldexp(half * half, bits)), int(mp.ldexp(2 * (mp.log(half) + mp.euler), bits))
        unit = 1 << bits
        tail, term, k, digamma = 0, unit // factorial(order), 0, sum(unit // j for j in range(1, order + 1))
        while term:
            tail += sign**k * (term * (logarithm - digamma) >> bits)
            k += 1
            term = (term * square >> bits) // (k * (k + order))
            digamma += unit // k + unit // (k + order)
        tail = mp.ldexp(tail, -bits) * half**order
        head = mp.fsum(mp.factorial(order - i - 1) / mp.factorial(i) * (-sign * half * half) ** i for i in range(order)) / half**order
        return (head - (-1) ** order * tail) / 2 if sign > 0 else (tail - head) / mp.pi


def _k_digits(mp: Any, x: Any, order: Any) -> Any:
    if x == 0:
        return mp.inf
    asymptotic = 2.8 * x > mp.prec + 60 + 8 * abs(order)  # where the least term of the asymptotic series, about e^(-2x), is small enough
    if type(order) is int and 0 < x < 1000 and not asymptotic:
        return second_kind(mp, x, abs(order), 1, mp.prec)
    return mp.besselk(order, x) if x > 0 else mp.nan


def _k_moment_digits(mp: Any, x: Any, order: int) -> Any:
    if not x > 0:
        return mp.inf if x == 0 else mp.nan
    if x > 1000:
        return mp.sqrt(mp.pi) * prod(range(1, 2 * order, 2)) * mp.hyperu(order + mp.mpf(1) / 2, order + 1, 2 * x)
    with workprec(mp, mp.prec + 20 + order * max(10, mp.mag(x) + 5)):
        powers = [mp.fsum(comb(j, i) * _k_digits(mp, x, abs(j - 2 * i)) for i in range(j + 1)) / 2**j for j in range(order + 1)]
        return mp.exp(x) * mp.fsum((-1) ** (order - j) * comb(order, j) * power for j, power in enumerate(powers))


BY_NAME = """
def _bessel_?(x, order):
    return scipy.special.?0(x) if order == 0 else scipy.special.?1(x) if order == 1 else scipy.special.?v(order, x)
"""  # the general functions have fewer digits for small numbers
WAVES = {"j": ("np.abs(x) if order % 1 == 0 else x", "(sums[0] - sums[2]) * cosine - (sums[1] - sums[3]) * sine"),
         "y": ("x", "(sums[0] - sums[2]) * sine + (sums[1] - sums[3]) * cosine")}
MODULES = {"NumPy": "scipy.special", "Torch": "torch.special", "Jax": "jax.scipy.special"}


def by_order(letter: str, word: str = "", in_c: str = "") -> dict[str, str]:
    """The sources of a Bessel function: SciPy's, with Hankel's expansion of J and Y, and by order where a language has some."""
    torch = {f"Torch {n}": f"9 torch.special.{word}{n}({{0}})" for n in (0, 1) if word}
    jax = {f"Jax {n}": f"9 jax.scipy.special.i{n}({{0}})" for n in (0, 1) if letter == "i"}
    size, wave = WAVES.get(letter, ("", ""))
    text = TEMPLATES["BY_HANKEL"].replace("{size}", size).replace("{wave}", wave) if wave else BY_NAME
    return {"NumPy": text.replace("?", letter), **torch, **jax, **({f"C {n}": f"9 {in_c}({n}, {{0}})" for n in range(6)} if in_c else {})}


def _by_trapezoids(name: str, value: str, term: str, factor: str) -> dict[str, str]:
    """The helper in Python for an integral over the period, by language; `value` is the function of the order 0."""
    text = TEMPLATES["BY_TRAPEZOIDS"].replace("{name}", name).replace("{term}", term).replace("{factor}", factor)
    first_kind = text.replace("{value}(x)", f"_first_kind(x, {value[1]})")
    return {"C": first_kind, **{language: text.replace("{value}", f"{module}.{value}") for language, module in MODULES.items()}}


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "bessel_i": (of_order(_i, 1), lambda mp, x, n: mp.besseli(n, x), lambda sp, x, n: sp.besseli(sp.Rational(n), x),
                 lambda x, n: x.bessel_i(n), 1, by_order("i", "modified_bessel_i")),
    "bessel_k": (of_order(_k, 1), _k_digits, lambda sp, x, n: sp.besselk(sp.Rational(n), x),
                 lambda x, n: x.bessel_k(n), 1, by_order("k", "modified_bessel_k")),
    "i1e_derivative": (_i1e_derivative, _i1e_digits, _i1e_formula,
                       lambda x, n: _i1e_exactly(lambda a, b: (-2 * abs(x)).hypgeom_1f1(type(x)(a) / 2, b), x, x.sgn(), n), 1,
                       _by_trapezoids("i1e_derivative", "i1e", "(1 - u) * ",
                                      "(-1.0)**order * (1.0 if order % 2 else {m}.sign(x)) * 0.6366197723675814")),
    "scaled_modified_bessel_k1": (_k1e, lambda mp, x: _k_digits(mp, x, 1) * mp.exp(x), lambda sp, x: sp.exp(x) * sp.besselk(1, x),
                                  lambda x: x.bessel_k(1, True), 1,
                                  {"NumPy": "scipy.special.k1e", "Torch": "torch.special.scaled_modified_bessel_k1"}),
    "bessel_i_moment": (_i_moment, _i_moment_digits, _i_moment_formula,
                        lambda x, n: (-2 * abs(x)).hypgeom_1f1(type(x)(2 * n + 1) / 2, n + 1) * prod(range(1, 2 * n, 2)) / factorial(n), 1,
                        _by_trapezoids("bessel_i_moment", "i0e", "", "0.6366197723675814")),
    "bessel_k_moment": (_k_moment, _k_moment_digits, _k_moment_formula,
                        lambda x, n: (2 * x).hypgeom_u(type(x)(2 * n + 1) / 2, n + 1) * prod(range(1, 2 * n, 2)) * type(x).pi().sqrt()),
}
