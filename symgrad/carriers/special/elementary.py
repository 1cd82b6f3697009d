"""Elementary functions: the real cube root, the slope of the angle of a point, and logistic functions of products and differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.elementwise import MANY
from symgrad.carriers.special.pieces import horner
from symgrad.layouts.indices import check_ordered

LOG2 = math.log(2)
BASE_2 = "exp2", f" * {LOG2}"


SHRINK = [1 / ((2 * k + 1) * math.factorial(2 * k - 1)) for k in range(1, 12)]
"""The coefficients of (x cosh x - sinh x) / x³ as a series of x², all of which are positive."""
SHRINK_BELOW = 1.5


def shrink_near_0(x: Any) -> Any:
    """x - tanh(x) by the series, for |x| < 1.5."""
    square = x * x
    total = horner(SHRINK, square)
    total *= square
    total *= x
    total /= np.cosh(x)
    return total


def _cube_root_of_ball(x: Any) -> Any:
    return -(-x).root(3) if x < 0 else x.root(3)


def _angle_slope(special: Any, a: Any, b: Any) -> Any:
    """b / (a² + b²), and 0 at (0, 0); of many numbers by the squares, if none of them overflow or lose digits."""
    if np.size(a) >= MANY:
        square = a * a + b * b
        limits = np.finfo(square.dtype)
        if limits.smallest_normal / limits.eps < square.min() and square.max() < limits.max:
            return b / square
    length = np.hypot(a, b)
    safe = length + (length == 0)
    if np.all(np.isfinite(safe)):
        return b / safe / safe
    half = np.hypot(a / 2, b / 2)  # of numbers next to the largest
    return np.where(np.isinf(safe) & np.isfinite(half), (b / 4) / half / half, b / safe / safe)[()]


def _angle_turn(special: Any, a: Any, b: Any) -> Any:
    """(a² - b²) / (a² + b²)², and 0 at (0, 0), without differences of squares, which cancel, and where 1 / (a² + b²) is 0."""
    length = np.hypot(a, b)
    safe = length + (length == 0)
    return np.where(1 / safe / safe == 0, 0, (a - b) / safe * ((a + b) / safe) / safe / safe)[()]


def product_error(x: Any, beta: float) -> Any:
    """The rounding error of x beta, from products of their halves, which are exact; not finite where these overflow. T. J. Dekker 1971."""
    (a, b), (c, d) = _halves(x), _halves(beta)
    return ((a * c - x * beta) + a * d + b * c) + b * d


def _halves(x: Any) -> tuple[Any, Any]:
    """A sum of two numbers with half of the digits."""
    wide = x * 134217729.0
    high = wide - (wide - x)
    return high, x - high


def corrected(y: Any, x: Any, error: Callable[[Any], Any]) -> Any:
    """An exponential y of the rounded x where x is large, multiplied by exp(error), for the places of these numbers."""
    places = np.flatnonzero(x < -8)
    if not places.size:
        return y
    y, by = np.array(y), error(places)
    part = y.take(places)
    y.put(places, part + part * np.where(np.isfinite(by), by, 0))
    return y[()]


def _sigmoid(x: Any, error: Callable[[Any], Any], exp: Callable[[Any], Any] = np.exp) -> Any:
    """1 / (1 + exp(-x)) of a rounded x, whose error would be multiplied by the size of x on the left."""
    small = exp(-np.abs(x))
    return corrected(np.maximum(small, x >= 0) / (1 + small), x, error)


def _sigmoid_of_product(special: Any, x: Any, beta: float) -> Any:
    wide = np.asarray(check_ordered(x), np.float64)
    y = _sigmoid(wide * beta, lambda places: product_error(wide.take(places), beta))
    return np.asarray(y).astype(np.asarray(x).dtype, copy=False)[()]


def _sigmoid_of_difference(special: Any, a: Any, b: Any, exp: Callable[[Any], Any] = np.exp, unit: float = 1.0) -> Any:
    """1 / (1 + exp(b - a)) for an exponential function whose derivative is `unit` times itself."""
    difference = a - b
    if difference.dtype.kind == "c":
        small = exp(np.where(difference.real < 0, difference, -difference))
        return (np.where(difference.real < 0, small, 1) / (1 + small))[()]
    if not np.all(np.isfinite(difference)):
        difference = np.where(a == b, 0, difference)  # infinite ones, too

    def error(places: Any) -> Any:
        first, second, rounded = (np.broadcast_to(z, difference.shape).take(places) for z in (a, b, difference))
        back = first - rounded
        return ((first - (rounded + back)) + (back - second)) * unit

    return _sigmoid(difference, error, exp)


def _sigmoid2_of_difference(special: Any, a: Any, b: Any) -> Any:
    return _sigmoid_of_difference(special, a, b, np.exp2, LOG2)


def _logaddexp2(special: Any, a: Any, b: Any) -> Any:
    """log2(2**a + 2**b), without overflow."""
    difference = a - b
    if not np.all(np.isfinite(difference)):
        difference = np.where(a == b, 0, difference)  # infinite ones, too
    return np.maximum(a, b) + np.log1p(np.exp2(-np.abs(difference))) / LOG2


def _logaddexp2_digits(mp: Any, a: Any, b: Any) -> Any:
    from symgrad.carriers.digits import exponential

    return max(a, b) + (mp.log1p(exponential(-abs(a - b) * mp.ln2)) / mp.ln2 if mp.isfinite(a) and mp.isfinite(b) else 0)


def _logaddexp2_of_balls(a: Any, b: Any) -> Any:
    """With the larger center taken out."""
    high, low = (a, b) if a.mid() >= b.mid() else (b, a)
    return high + (1 + type(a)(2) ** (low - high)).log() / type(a).const_log2()


def _logistic(mp: Any, x: Any) -> Any:
    from symgrad.carriers.digits import exponential  # imports mpmath, which would delay the start

    small = exponential(-abs(x))
    return (small if x < 0 else 1) / (1 + small)


SIGMOIDS = {"Torch": "torch.sigmoid", "Jax": "jax.nn.sigmoid"}


def _sources(name: str, result: str, exp: str = "exp", unit: str = "") -> dict[str, str]:
    """A function of exp(-|a - b|), with the rounding error of the difference."""
    return {"Python": f"""
def _{name}(a, b):
    gap = a - b
    back = a - gap
    error = ((a - (gap + back)) + (back - b)){unit}
    error = {{m}}.where(error - error == 0, {{m}}.where(gap < 0, error, -error), 0.0)
    small = {{m}}.{exp}(-{{m}}.abs(gap)) * (1 + error)
    return {result}
"""}


def _sigmoid_sources(name: str, *base: str) -> dict[str, str]:
    gap = f"{LOG2} * ({{0:4}} - {{1:5}})" if base else "{0:4} - {1:5}"
    return _sources(name, "{m}.where(gap < 0, small, 1) / (1 + small)", *base) | {
        language: f"9 {sigmoid}({gap})" for language, sigmoid in SIGMOIDS.items()}


def _slope_sources(name: str, *base: str) -> dict[str, str]:
    gaps = [f"{LOG2} * ({{{i}:4}} - {{{k}:5}})" if base else f"{{{i}:4}} - {{{k}:5}}" for i, k in ((0, 1), (1, 0))]
    return _sources(name, "small / ((1 + small) * (1 + small))", *base) | {
        language: f"5 {sigmoid}({gaps[0]}) * {sigmoid}({gaps[1]})" for language, sigmoid in SIGMOIDS.items()}


def _scaled_sources(name: str, result: str) -> dict[str, str]:
    """A function of z = exp(-|beta x|)."""
    return {"Python": f"""
def _{name}(x, beta):
    z = {{m}}.exp(-{{m}}.abs(beta * x))
    return {result}
"""}


MODULES = {"NumPy": "np.", "Torch": "torch.", "Jax": "jnp.", "C": ""}
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "cbrt": ("cbrt", lambda mp, x: mp.sign(x) * mp.cbrt(abs(x)), lambda sp, x: sp.sign(x) * sp.Abs(x) ** sp.Rational(1, 3), _cube_root_of_ball, 1,
             {"NumPy": "np.cbrt", "Torch": "5 torch.sign({0}) * torch.abs({0}) ** (1 / 3)", "Jax": "jnp.cbrt", "C": "cbrt"}),
    "sigmoid_of_difference": (_sigmoid_of_difference, lambda mp, a, b: _logistic(mp, a - b), lambda sp, a, b: 1 / (1 + sp.exp(b - a)),
                              lambda a, b: 1 / (1 + (b - a).exp()), 2, _sigmoid_sources("sigmoid_of_difference")),
    "sigmoid2_of_difference": (_sigmoid2_of_difference, lambda mp, a, b: _logistic(mp, (a - b) * mp.ln2),
                               lambda sp, a, b: 1 / (1 + sp.Integer(2) ** (b - a)), lambda a, b: 1 / (1 + type(a)(2) ** (b - a)), 2,
                               _sigmoid_sources("sigmoid2_of_difference", *BASE_2)),
    "sigmoid_of_product": (
        _sigmoid_of_product, lambda mp, x, beta: _logistic(mp, x * beta), lambda sp, x, beta: 1 / (1 + sp.exp(-beta * x)),
        lambda x, beta: 1 / (1 + (-beta * x).exp()), 1, _scaled_sources("sigmoid_of_product", "{m}.where(beta * x < 0, z, 1.0) / (1.0 + z)")),
    "sigmoid_slope_of_product": (
        lambda special, x, beta: _sigmoid_of_product(special, x, beta) * _sigmoid_of_product(special, -x, beta),
        lambda mp, x, beta: _logistic(mp, x * beta) * _logistic(mp, -x * beta),
        lambda sp, x, beta: 1 / (2 * sp.cosh(beta * x / 2)) ** 2, lambda x, beta: (1 / (2 * (beta * x / 2).cosh())) ** 2, 1,
        _scaled_sources("sigmoid_slope_of_product", "z / ((1.0 + z) * (1.0 + z))")),
    "sigmoid_slope_of_difference": (
        lambda special, a, b: _sigmoid_of_difference(special, a, b) * _sigmoid_of_difference(special, b, a),
        lambda mp, a, b: _logistic(mp, a - b) * _logistic(mp, b - a), lambda sp, a, b: 1 / ((1 + sp.exp(b - a)) * (1 + sp.exp(a - b))),
        lambda a, b: (1 / (2 * ((a - b) / 2).cosh())) ** 2, 2, _slope_sources("sigmoid_slope_of_difference")),
    "sigmoid2_slope_of_difference": (
        lambda special, a, b: _sigmoid2_of_difference(special, a, b) * _sigmoid2_of_difference(special, b, a),
        lambda mp, a, b: _logistic(mp, (a - b) * mp.ln2) * _logistic(mp, (b - a) * mp.ln2),
        lambda sp, a, b: 1 / ((1 + sp.Integer(2) ** (b - a)) * (1 + sp.Integer(2) ** (a - b))),
        lambda a, b: (1 / (2 * ((a - b) * type(a).const_log2() / 2).cosh())) ** 2, 2,
        _slope_sources("sigmoid2_slope_of_difference", *BASE_2)),
    "logaddexp2": (_logaddexp2, _logaddexp2_digits, lambda sp, a, b: sp.log(sp.Integer(2) ** a + sp.Integer(2) ** b, 2), _logaddexp2_of_balls, 2,
                   {"NumPy": "np.logaddexp2", "Torch": "torch.logaddexp2", "Jax": "jnp.logaddexp2"}),
    "angle_slope": (_angle_slope, lambda mp, a, b: b / (a * a + b * b or mp.one), lambda sp, a, b: b / (a**2 + b**2),
                    lambda a, b: b / (a * a + b * b), 2, {language: f"5 {{1:5}} / {module}hypot({{0}}, {{1}}) / {module}hypot({{0}}, {{1}})"
                        for language, module in MODULES.items()}),
    "angle_turn": (_angle_turn, lambda mp, a, b: (a - b) * (a + b) / (a * a + b * b or mp.one) ** 2,
                   lambda sp, a, b: (a**2 - b**2) / (a**2 + b**2) ** 2, lambda a, b: (a - b) * (a + b) / (a * a + b * b) ** 2, 2,
                   {language: "5 ({0:4} - {1:5}) / LENGTH * (({0:4} + {1:5}) / LENGTH) / LENGTH / LENGTH".replace(
                       "LENGTH", f"{module}hypot({{0}}, {{1}})") for language, module in MODULES.items()}),
}
