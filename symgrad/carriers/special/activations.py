"""Activations whose obvious formulas cancel: φ is the density and Φ the distribution function of the standard normal distribution.

That of torch with `approximate="tanh"` is x σ(s) with s = √(8/π) (x + 0.044715 x³) and σ(s) = 1 / (1 + exp(-s)).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.elementary import SHRINK, SHRINK_BELOW, shrink_near_0
from symgrad.carriers.special.errors import bell, hermite, scaled
from symgrad.carriers.special.normal import ndtr
from symgrad.carriers.special.pieces import PI, Pieces, horner, piecewise
from symgrad.layouts.indices import check_ordered


def _in_double(function: Any) -> Any:
    """A function of real numbers of double precision for arrays of less, which is rounded at the end."""
    def call(special: Any, x: Any, *order: int) -> Any:
        check_ordered(x)
        return np.asarray(function(special, np.asarray(x, np.float64), *order)).astype(np.asarray(x).dtype)[()]

    return call


def _density(x: Any, factor: Any = 1) -> Any:
    return bell(np.clip(x, -40, 40), 1, factor / np.sqrt(2 * np.pi))


ROOT_2 = (1.4142135623730951, -9.667293313452913e-17)  # a sum of two floats


@_in_double
def _gelu(special: Any, x: Any) -> Any:
    return np.where(x == -np.inf, 0.0, x * ndtr(special, x))


@cache
def _slopes() -> Pieces:
    """Φ + x φ, from -10 to 10."""
    def exact(x: Any) -> Any:
        size = np.abs(x)
        density = np.exp(-(size**2) / 2)
        tail = scaled(size * np.sqrt(np.longdouble(0.5)), 0) * density / 2
        return np.where(x < 0, tail, 1 - tail) + x * density / np.sqrt(2 * PI)

    return Pieces(exact, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2 + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), -10.0, 10.0, 320)


@_in_double
def _slope(special: Any, x: Any) -> Any:
    """Φ + x φ, with all digits next to its root, where the two terms cancel."""
    return piecewise(x, [~(x < -10)], [lambda x: _slopes()(x), lambda x: ndtr(special, x) + _density(x, np.maximum(x, -40))])


def _polynomial(x: Any, order: int) -> Any:
    """The derivative of x Φ(x) of order 2 or more, x φ⁽ⁿ⁻¹⁾ + n φ⁽ⁿ⁻²⁾, divided by φ(x)."""
    return x * hermite(x, order - 1, 1) + order * hermite(x, order - 2, 1)


@_in_double
def _derivative(special: Any, x: Any, order: int) -> Any:
    """The polynomials of order 2 and 3, 2 - x² and x³ - 4x, are products, with all digits next to their roots."""
    x = np.clip(x, -40, 40)
    if order == 2:
        size = np.abs(x)
        return _density(x, ((ROOT_2[0] - size) + ROOT_2[1]) * (size + ROOT_2[0]))
    return _density(x, x * (x - 2) * (x + 2) if order == 3 else _polynomial(x, order))


# x σ(s)

LINEAR, CUBIC = (1.5957691216062813, -5.505482686972437e-13), (0.07135486602783203, -4.975523178247366e-08)
"""√(8/π) and 0.044715 √(8/π): so few bits that their products with a rounded number and its cube are exact, and the rest."""


def _odds(x: Any) -> Any:
    """exp(-|s|), as a product of factors with exact or small exponents: the rounding of s would cost |s| roundings of the result."""
    x = np.minimum(np.abs(x), 30)
    near = np.rint(x * 64) / 64
    rest, cube = x - near, near * near * near
    more = rest * (3 * near * near + rest * (3 * near + rest))
    small = LINEAR[0] * rest + LINEAR[1] * x + CUBIC[0] * more + CUBIC[1] * (cube + more)
    return np.exp(-LINEAR[0] * near) * np.exp(-CUBIC[0] * cube) * np.exp(-small)


def _gate(x: Any) -> Any:
    """σ(s)."""
    odds = _odds(x)
    return np.where(x < 0, odds, 1) / (1 + odds)


def _coefficients(x: Any, gate: Any, slope: Any, odd: Any, rates: tuple[Any, ...], order: int) -> list[Any]:
    """The Taylor coefficients of x σ(s) from order 1 on, from σ(s), its derivative by s and tanh(s/2).

    By s, σ has the derivative σ', which has the derivative -σ' tanh(s/2), which has that of 2 σ.
    """
    gates, slopes, odds = [gate], [slope], [odd]
    for k in range(1, order + 1):
        gates.append(sum(slopes[i] * rates[k - 1 - i] for i in range(max(0, k - 3), k)) / k)
        odds.append(2 * gates[k])
        slopes.append(-sum(odds[k - j] * gates[j] * j for j in range(1, k + 1)) / k)
    return [x * gates[k] + gates[k - 1] for k in range(1, order + 1)]


@cache
def _tanh_pieces(order: int) -> Pieces:
    """σ(s), or a derivative of x σ(s), from -8 to 8."""
    def exact(x: Any) -> Any:
        root, ratio = np.sqrt(8 / PI), np.longdouble(44715) / 1000000
        if order:
            return _of_tanh(x, order, root, ratio, np.exp, lambda u: 1 / np.cosh(u), np.tanh)
        odds = np.exp(-np.abs(_exponent(x, root, ratio)))
        return np.where(x < 0, odds, 1) / (1 + odds)

    return Pieces(exact, (lambda mp, x: _digits_of_tanh(mp, x, order)) if order else None, -8.0, 8.0, 512)


@_in_double
def _gelu_tanh(special: Any, x: Any) -> Any:
    return np.where(x == -np.inf, 0.0, x * piecewise(x, [~(x < -8)], [lambda x: _tanh_pieces(0)(x), _gate]))


@_in_double
def _gelu_tanh_derivative(special: Any, x: Any, order: int) -> Any:
    """With all digits next to roots, where terms cancel."""
    return piecewise(x, [~(np.abs(x) > 8)], [lambda x: _tanh_pieces(order)(x), lambda x: _far(np.clip(x, -30, 30), order)])


def _gelu_tanh_slope(special: Any, x: Any) -> Any:
    return _gelu_tanh_derivative(special, x, 1)


def _far(x: Any, order: int) -> Any:
    """A derivative of x σ(s) where no terms cancel."""
    gate, root = _gate(x), sum(LINEAR)
    odd, rates = np.tanh(_exponent(x, root, 0.044715) / 2), _rates(x, root, 0.044715)
    return math.factorial(order) * _coefficients(x, gate, gate * _gate(-x), odd, rates, order)[-1]


def _exponent(x: Any, root: Any, ratio: Any) -> Any:
    """s, from √(8/π) and 0.044715."""
    return root * (x + ratio * x**3)


def _rates(x: Any, root: Any, ratio: Any) -> tuple[Any, ...]:
    """The Taylor coefficients of the derivative of s."""
    return root * (1 + 3 * ratio * x * x), 6 * root * ratio * x, 3 * root * ratio


def _of_tanh(x: Any, order: int, root: Any, ratio: Any, exp: Any, sech: Any, tanh: Any) -> Any:
    """A derivative of x σ(s) for numbers and expressions."""
    s = _exponent(x, root, ratio)
    gate = 1 / (1 + exp(-s))
    return math.factorial(order) * _coefficients(x, gate, sech(s / 2)**2 / 4, tanh(s / 2), _rates(x, root, ratio), order)[-1] if order else x * gate


def _tanh_row(arrays: Any, order: int | None, sources: dict[str, str]) -> tuple[Any, ...]:
    """The row of x σ(s), of its derivative, or of that of an order that is a parameter."""
    def given(n: tuple[int, ...]) -> int:
        return n[0] if order is None else order

    return (arrays, lambda mp, x, *n: _digits_of_tanh(mp, x, given(n)),
            lambda sp, x, *n: _of_tanh(x, given(n), sp.sqrt(8 / sp.pi), sp.Rational(8943, 200000), sp.exp, lambda u: 1 / sp.cosh(u), sp.tanh),
            lambda x, *n: _of_tanh(x, given(n), (8 / type(x).pi()).sqrt(), type(x)(8943) / 200000, type(x).exp, type(x).sech,
                                   type(x).tanh), 1, sources)


# x - tanh(x)

@_in_double
def _tanhshrink(special: Any, x: Any) -> Any:
    return piecewise(x, [np.abs(x) < SHRINK_BELOW], [shrink_near_0, lambda x: x - np.tanh(x)])


def _digits_of_tanh(mp: Any, x: Any, order: int) -> Any:
    from symgrad.carriers.digits import exponential, sech  # imports mpmath, which would delay the start

    return _of_tanh(x, order, mp.sqrt(8 / mp.pi), mp.mpf(8943) / 200000, exponential, sech, mp.tanh)


def _many_digits_of_tanhshrink(mp: Any, x: Any) -> Any:
    with mp.extraprec(10 + 2 * max(0, -int(mp.mag(x))) if x else 0):
        return x - mp.tanh(x)


def _ball_of_tanhshrink(x: Any) -> Any:
    if not abs(x) < 1:
        return x - x.tanh()
    return x**3 * (x * x / 4).hypgeom_0f1(type(x)(5) / 2) / (3 * x.cosh())


# The rows

def _density_of(library: Any, x: Any) -> Any:
    return library.exp(-x * x / 2) / library.sqrt(2 * library.pi)


def _density_of_ball(x: Any) -> Any:
    return (-x * x / 2).exp() / (2 * type(x).pi()).sqrt()


def _below_of_ball(x: Any) -> Any:
    return (-x / type(x)(2).sqrt()).erfc() / 2


def _sources(text: str) -> dict[str, str]:
    """A format for every language, from one with `erfc` and `exp`."""
    names = {"NumPy": ("scipy.special.erfc", "np.exp"), "Torch": ("torch.special.erfc", "torch.exp"),
             "Jax": ("jax.scipy.special.erfc", "jnp.exp"), "C": ("erfc", "exp")}
    return {language: text.replace("erfc", erfc).replace("exp", exp) for language, (erfc, exp) in names.items()}


BELOW = f"0.5 * erfc({-math.sqrt(0.5)!r} * {{0:6}})"
ROWS: dict[str, tuple[Any, ...]] = {
    "softsign_of_real": (lambda special, x: x / (1 + np.abs(check_ordered(x))), lambda mp, x: x / (1 + abs(x)), lambda sp, x: x / (1 + sp.Abs(x)),
                 lambda x: x / (1 + abs(x)), 1, {"Python": "5 {0:6} / (1 + abs({0}))", "C": "5 {0:6} / (1.0 + fabs({0}))"}),
    "gelu_exact": (_gelu, lambda mp, x: x * mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
                   lambda x: x * _below_of_ball(x), 1, _sources(f"5 {{0:6}} * {BELOW}")),
    "gelu_slope": (_slope, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2 + x * _density_of(mp, x),
                   lambda sp, x: (1 + sp.erf(x / sp.sqrt(2))) / 2 + x * _density_of(sp, x), lambda x: _below_of_ball(x) + x * _density_of_ball(x),
                   1, _sources(f"4 {BELOW} + {1 / math.sqrt(2 * math.pi)!r} * {{0:6}} * exp(-0.5 * {{0:6}} * {{0:6}})")),
    "gelu_derivative": (_derivative, lambda mp, x, n: _polynomial(x, n) * _density_of(mp, x), lambda sp, x, n: _polynomial(x, n) * _density_of(sp, x),
                        lambda x, n: _polynomial(x, n) * _density_of_ball(x)),
    "gelu_tanh": _tanh_row(_gelu_tanh, 0, {}),
    "gelu_tanh_slope": _tanh_row(_gelu_tanh_slope, 1, {}),
    "gelu_tanh_derivative": _tanh_row(_gelu_tanh_derivative, None, {}),
    "tanhshrink_of_real": (_tanhshrink, _many_digits_of_tanhshrink, lambda sp, x: x - sp.tanh(x), _ball_of_tanhshrink, 1),
}
