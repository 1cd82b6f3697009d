"""Functions that generated NumPy code calls in addition to those of the numeric carrier."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import numeric

__all__ = ["SUPPORT", "Patch", "horner", "power"]


class Patch(NamedTuple):
    """Within `radius` of a point an output is the series with these coefficients in u = x - point; the point is `centre` + `rest`."""

    centre: float
    rest: float
    radius: float
    coefficients: tuple[float, ...]


def step(x: Any, middle: float = 0.5) -> Any:
    """0, a middle value, or 1, by the sign of x."""
    return np.heaviside(x, x.dtype.type(middle))


def log_cosh(x: Any) -> Any:
    """log(cosh(x)): |x| - log(2) + log1p(exp(-2|x|)), and log1p(2 sinh²(x/2)) next to 0."""
    a = numeric.abs(x)
    small = numeric.minimum(a, 1.0)
    return numeric.where(a < 1, numeric.log1p(2 * numeric.square(numeric.sinh(small / 2))), a - math.log(2.0) + numeric.log1p(numeric.exp(-2 * a)))


def log1mexp(x: Any) -> Any:
    """log(1 - exp(x)) for x < 0. M. Maechler, Accurately computing log(1 - exp(-|a|)) (2012)."""
    return numeric.where(x > -math.log(2.0), numeric.log(-numeric.expm1(x)), numeric.log1p(-numeric.exp(numeric.minimum(x, -math.log(2.0)))))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), with all digits on both sides where exp(-x) is finite."""
    if not _is_modest(x):
        return numeric.sigmoid(x)
    z = np.negative(x)
    np.exp(z, out=z)
    z += 1
    return np.reciprocal(z, out=z)


def _is_modest(x: Any) -> bool:
    """Whether exp(-x) is finite for every element of an array of floats."""
    return type(x) is np.ndarray and x.ndim > 0 and x.dtype.kind == "f" and x.size > 0 and x.min() > -numeric.MODEST.get(x.itemsize, 11.0)


def sigmoids(x: Any) -> tuple[Any, Any]:
    """sigmoid(x) and sigmoid(-x) from one exponential."""
    if not _is_modest(x):
        return numeric.sigmoid(x), numeric.sigmoid(-x)
    z = np.negative(x)
    np.exp(z, out=z)
    d = z + 1
    np.reciprocal(d, out=d)
    return d, np.multiply(z, d, out=z)


def tanh_and_slope(x: Any) -> tuple[Any, Any]:
    """tanh(x) and its derivative from one exponential."""
    if type(x) is not np.ndarray or not x.ndim or x.dtype.kind != "f":
        return numeric.tanh(x), numeric.sech_square(x)
    y, r = numeric.tanh_and_complement(x)
    return y, numeric.sech_square_of_complement(r)


def power(x: Any, n: int) -> Any:
    """A small integer power by multiplication."""
    out, square = None, x
    while n:
        if n & 1:
            out = square if out is None else out * square
        n >>= 1
        if n:
            square = square * square
    return out


def horner(u: Any, coefficients: Sequence[float]) -> Any:
    """Σ coefficients[i] uⁱ."""
    first = next((i for i, c in enumerate(coefficients) if c), 0)
    step_ = 2 if not any(coefficients[first + 1::2]) and len(coefficients) > first + 1 else 1
    row, v = coefficients[first::step_], u * u if step_ == 2 else u
    out = u * 0 + row[-1]
    for c in row[-2::-1]:
        out = out * v + c
    return out * power(u, first) if first else out


def patched(y: Any, x: Any, patch: Patch) -> Any:
    """A value, replaced by the series near the centre of the patch."""
    u = x - patch.centre if patch.centre or patch.rest else x
    if patch.rest:
        u = u - patch.rest
    near = numeric.abs(u) <= patch.radius
    if type(near) is np.ndarray and type(y) is np.ndarray and y.shape == near.shape:
        if near.any():
            y[near] = horner(u[near], patch.coefficients)
        return y
    if type(near) is np.bool_:
        return horner(u, patch.coefficients) if near else y
    return numeric.where(near, horner(numeric.where(near, u, 0.0 * numeric.ones_like(u)), patch.coefficients), y)


def choose(*parts: Any) -> Any:
    """The first value whose condition holds: parts are conditions and values in turn, and the last value."""
    out = parts[-1]
    for condition, x in zip(parts[-3::-2], parts[-2::-2]):
        out = numeric.where(condition, x, out)
    return out


SUPPORT: dict[str, Any] = {f.__name__: f for f in (step, log_cosh, log1mexp, sigmoid, sigmoids, tanh_and_slope, power, patched, choose)}
SUPPORT |= {"cbrt": np.cbrt, "quiet": functools.partial(np.errstate, divide="ignore", invalid="ignore", over="ignore")}
