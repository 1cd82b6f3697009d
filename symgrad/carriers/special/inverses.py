"""The inverses of the error function and of the normal distribution function.

Their slopes are computed from the argument itself, since the rounding of the value would cost many digits near the ends of the domain:
exp(y²) = exp(y²) erfc(y) / (1 - erf(y)).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.errors import of_positive, scaled
from symgrad.carriers.special.pieces import PI, Pieces
from symgrad.carriers.special.printed import TEMPLATES
from symgrad.system.restoring import workprec

STEPS = 30  # of Newton's method for balls
NEAR_END = 0.0625  # the distance to 1 from which on a slope is a polynomial
MIDDLE = 0.5  # below it the error function is inverted, above its complement


def _inverse(special: Any, x: Any, rest: Any) -> tuple[Any, Any]:
    """erfinv(x) and √π/2 exp(erfinv(x)²) for 0 <= x <= 1 and rest = 1 - x, with the digits of a long double: a step of Newton from SciPy's value."""
    low, half_root = x < MIDDLE, np.sqrt(PI) / 2
    y = np.where(low, special.erfinv(x.astype(float)), special.erfcinv(rest.astype(float))).astype(np.longdouble)
    x, rest = np.where(low, x, 0).astype(np.longdouble), np.where(low, 1, rest).astype(np.longdouble)
    near, far = np.where(low, y, 0), np.where(low, 1, y)
    series = np.zeros_like(y)
    for k in range(18, -1, -1):  # of erf (DLMF 7.6.1)
        series = 1 / np.longdouble((2 * k + 1) * factorial(k)) - series * near**2
    near = near + (half_root * x - near * series) * np.exp(near**2)
    far = np.where(rest > 0, far + (scaled(far, 0) * np.exp(-(far**2)) / rest - 1) * scaled(far, 0) * half_root, far)
    return np.where(low, near, far), half_root * np.where(low, np.exp(near**2), np.where(rest == 0, np.inf, scaled(far, 0) / rest))


def _of_real(function: Any) -> Any:
    """A function of float64 for arrays of any real dtype."""
    def call(special: Any, x: Any) -> Any:
        if np.iscomplexobj(x):
            raise TypeError("erfinv and ndtri are defined for real numbers, got complex ones; pass the real part")
        return function(special, np.asarray(x, np.float64)).astype(np.asarray(x).dtype)[()]

    return call


@cache
def _slopes() -> Pieces:
    """√π/2 exp(erfinv(1 - r)²) for r between 1/16 and 1."""
    return Pieces(lambda rest: _inverse(import_module("scipy.special"), 1 - rest, rest)[1], None, NEAR_END, 1.0, 120)


def _slope(special: Any, y: Any, rest: Any) -> Any:
    """√π/2 exp(y²), y = erfinv(1 - rest) >= 0."""
    out = np.array(_slopes()(rest))
    far = np.flatnonzero(rest < NEAR_END)
    if far.size:
        r = rest.take(far)
        out.reshape(-1)[far] = np.where(r == 0, np.inf, np.sqrt(np.pi) / 2 * of_positive(special, y(far)) / r)
    return out


@_of_real
def _erfinv_slope(special: Any, x: Any) -> Any:
    x = np.abs(x)
    return _slope(special, lambda at: special.erfinv(x.take(at)), 1 - x)


@_of_real
def _ndtri_slope(special: Any, p: Any) -> Any:
    rest = 2 * np.minimum(p, 1 - p)
    return np.sqrt(8.0) * _slope(special, lambda at: special.erfcinv(rest.take(at)), rest)


def _exact_inverse(mp: Any, x: Any, rest: Any) -> Any:
    """erfinv(x) by Newton's iteration for erf(y) = x, or for log erfc(y) = log(rest): both are concave, so that it converges from one side.

    Few digits are computed until it has converged, and twice as many with each further step.
    """
    if x == 0 or not rest > 0:
        return x if x == 0 else mp.inf if rest == 0 else mp.nan

    def step(y: Any) -> Any:
        slope = mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        return (x - mp.erf(y)) * slope if x < MIDDLE else mp.log(mp.erfc(y) / rest) * mp.erfc(y) * slope

    target, digits = mp.prec, 64
    with workprec(mp, digits):
        y, change = mp.sqrt(mp.pi) / 2 * x, mp.one
        while abs(change) > mp.ldexp(y, 10 - digits):
            change = step(y)
            y += change
    while digits < target:
        digits = min(2 * digits - 20, target)
        with workprec(mp, digits):
            y += step(y)
    return y


def _exact_erfinv(mp: Any, x: Any) -> Any:
    with mp.extraprec(20):
        return mp.sign(x) * _exact_inverse(mp, abs(x), 1 - abs(x))


def _exact_erfinv_slope(mp: Any, x: Any) -> Any:
    with mp.extraprec(20):
        return mp.sqrt(mp.pi) / 2 * mp.exp(_exact_erfinv(mp, x) ** 2)


def _exact_ndtri(mp: Any, p: Any) -> Any:
    with mp.extraprec(20):
        rest = 2 * min(p, 1 - p)
        return mp.sign(p - 0.5) * mp.sqrt(2) * _exact_inverse(mp, 1 - rest, rest)


def _exact_ndtri_slope(mp: Any, p: Any) -> Any:
    with mp.extraprec(20):
        return mp.sqrt(2 * mp.pi) * mp.exp(_exact_ndtri(mp, p) ** 2 / 2)


def _ball_inverse(x: Any, rest: Any) -> Any:
    """erfinv(x) for -1/2 < x < 1, rest = 1 - x, by a step of the interval Newton method: a result inside of the given ball has the only root."""
    from symgrad.carriers.digits import Undecided  # with mpmath, which takes long to import

    ball = type(x)
    if not rest > 0:
        raise Undecided("a ball of erfinv contains an end of the domain")
    middle, small, half_root = x.mid(), rest.mid(), ball.pi().sqrt() / 2
    low = bool(middle < MIDDLE)
    y = half_root.mid() * middle if low else (-small.log()).sqrt().mid()
    for _ in range(STEPS):
        step = (middle - y.erf()) * half_root * (y * y).exp() if low else (y.erfc() / small).log() * y.erfc() * half_root * (y * y).exp()
        y = (y + step).mid()

    def newton(inside: Any) -> Any:
        difference = x - y.erf() if low else y.erfc() - rest
        return y + difference * half_root * (inside * inside).exp()

    inside = ball(y, 2 * abs(newton(y) - y).upper() + y.rad())
    found = newton(inside)
    if not inside.contains(found):
        raise Undecided("erfinv has no enclosure for a ball that is as wide")
    return found


def _erfinv_of_ball(x: Any) -> Any:
    if x.is_zero():
        return x
    if abs(x) < MIDDLE:
        return _ball_inverse(x, 1 - x)
    return (1 if x > 0 else -1 if x < 0 else type(x)("nan")) * _ball_inverse(abs(x), 1 - abs(x))


def _ndtri_of_ball(p: Any) -> Any:
    half = type(p)(0.5)
    if p.overlaps(half):
        return type(p)(2).sqrt() * _erfinv_of_ball(2 * p - 1)
    rest = 2 * (p if p < half else 1 - p)
    return (-1 if p < half else 1) * type(p)(2).sqrt() * _ball_inverse(1 - rest, rest)


def sources(name: str) -> dict[str, str]:
    """Those of a function that SciPy, PyTorch and JAX have by the same name."""
    return {"NumPy": f"scipy.special.{name}", "Torch": f"torch.special.{name}", "Jax": f"jax.scipy.special.{name}"}


def _helpers(text: str) -> dict[str, str]:
    return {"NumPy": text.replace("MODULE", "scipy.special"), "Torch": text.replace("MODULE", "torch.special"),
            **{language: re.sub(r"MODULE.erfcx\(([^)]*)\)", r"_erfcx_derivative(\1, 0)", text).replace("MODULE.", module)
               for language, module in (("Jax", "jax.scipy.special."), ("C", "_"))}}


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "erfinv": (_of_real(lambda special, x: np.copysign(special.erfinv(x), x)),
               _exact_erfinv, lambda sp, x: sp.erfinv(x), _erfinv_of_ball, 1,
               sources("erfinv")),
    "erfinv_slope": (_erfinv_slope, _exact_erfinv_slope, lambda sp, x: sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfinv(x) ** 2),
                     lambda x: type(x).pi().sqrt() / 2 * (_erfinv_of_ball(x) ** 2).exp(), 1,
                     _helpers(TEMPLATES["ERFINV_SLOPE"])),
    "ndtri": (_of_real(lambda special, p: special.ndtri(p)),
              _exact_ndtri, lambda sp, p: sp.sqrt(2) * sp.erfinv(2 * p - 1), _ndtri_of_ball, 1,
              sources("ndtri")),
    "ndtri_slope": (_ndtri_slope, _exact_ndtri_slope, lambda sp, p: sp.sqrt(2 * sp.pi) * sp.exp(sp.erfinv(2 * p - 1) ** 2),
                    lambda p: (2 * type(p).pi()).sqrt() * (_ndtri_of_ball(p) ** 2 / 2).exp(), 1,
                    _helpers(TEMPLATES["NDTRI_SLOPE"])),
}
