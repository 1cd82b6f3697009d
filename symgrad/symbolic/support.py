"""Functions for generated NumPy code, in addition to those of the numeric carrier."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np

from symgrad.carriers import elementwise, numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.wide import Guard, trusted_sizes, with_guard
from symgrad.system.restoring import workdps

CONVERGED, NEAR = 2.0**-31, 0.92  # the largest relative difference of the two rules, and the largest relative distance of the ends of a mean
SPLIT = 0.37  # the end of the first piece of the coarse rule, so that the rules differ for a function with jumps


class Patch(NamedTuple):
    """A series in u = x - point that replaces an output within `radius` of the point, which is `centre` + `rest`."""

    centre: float
    rest: float
    radius: float
    coefficients: tuple[float, ...]


def step(x: Any, middle: float = 0.5) -> Any:
    """0, a middle value, or 1, by the sign of x."""
    return np.heaviside(x, x.dtype.type(middle))


def over(xp: Any, where: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions defined by the elementary functions `xp` of any framework."""
    def log_cosh(x: Any) -> Any:
        """log(cosh(x)): |x| - log(2) + log1p(exp(-2|x|)), and log1p(2 sinh²(x/2)) next to 0."""
        a = xp.abs(x)
        small = xp.sinh(where(a < 1, a, 0 * a) / 2)
        return where(a < 1, xp.log1p(2 * small * small), a - math.log(2.0) + xp.log1p(xp.exp(-2 * a)))

    def log1mexp(x: Any) -> Any:
        """log(1 - exp(x)) for x < 0. M. Maechler, Accurately computing log(1 - exp(-|a|)) (2012)."""
        near = x > -math.log(2.0)
        return where(near, xp.log(-xp.expm1(x)), xp.log1p(-xp.exp(where(near, 0 * x - 1, x))))

    def choose(*parts: Any) -> Any:
        """The first value whose condition holds: parts are conditions and values in turn, and the last value."""
        out = parts[-1]
        for condition, x in zip(parts[-3::-2], parts[-2::-2]):
            out = where(condition, x, out)
        return out

    return {"log_cosh": log_cosh, "log1mexp": log1mexp, "choose": choose}


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), accurate for both signs of x."""
    if not _is_modest(x):
        return numeric.sigmoid(x)
    z = np.negative(x)
    np.exp(z, out=z)
    z += 1
    return np.reciprocal(z, out=z)


def _is_modest(x: Any) -> bool:
    """Whether exp(-x) is finite for every element of an array of floats."""
    return type(x) is np.ndarray and x.ndim > 0 and x.dtype.kind == "f" and x.size > 0 and x.min() > -elementwise.SAFE_EXPONENT.get(x.itemsize, 11.0)


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
    y, r = elementwise.tanh_and_complement(x)
    return y, elementwise.sech_square_of_complement(r)


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
        return x.dtype.type(horner(u, patch.coefficients)) if near else y
    return numeric.where(near, horner(numeric.where(near, u, 0.0 * numeric.ones_like(u)), patch.coefficients), y)


def _gauss(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes in [0, 1] and the weights of Gauss's rule, to full accuracy."""
    rows = []
    for start in np.polynomial.legendre.leggauss(n)[0].tolist():
        with workdps(mpmath.mp, 30):
            t = mpmath.mpf(start)
            for _ in range(3):
                p, q = mpmath.legendre(n, t), mpmath.legendre(n - 1, t)
                slope = n * (q - t * p) / (1 - t * t)
                t -= p / slope
            rows.append((float((1 + t) / 2), float(1 / ((1 - t * t) * slope**2))))
    ts, ws = zip(*rows)
    return np.array(ts), np.array(ws)


@functools.cache
def mean_rules() -> list[tuple[np.ndarray, np.ndarray]]:
    """A coarse rule for means over [0, 1], in two pieces, and a fine one, whose error is about the square of that of the coarse one."""
    ts, ws = _gauss(14)
    coarse = np.concatenate([SPLIT * ts, SPLIT + (1 - SPLIT) * ts]), np.concatenate([SPLIT * ws, (1 - SPLIT) * ws])
    return [coarse, _gauss(40)]


def average(where: Any, converged: float, direct: Any, slope: Any, ends: Any, xs: Sequence[Any]) -> Any:
    """A quotient, computed as the mean of `slope` by Gauss's rule where its terms may cancel and two rules agree."""
    x, r = ends(*xs)
    first, second = ([w * slope(*xs, t) for t, w in zip(ts.tolist(), ws.tolist())] for ts, ws in mean_rules())
    less, more, total = sum(first, 0.0), sum(second, 0.0), sum(map(abs, second), 0.0)
    near = where(abs(x - r) <= 1 + NEAR * (abs(x) + abs(r)), abs(less - more), math.inf) <= converged * total
    return where(near, more, direct(*xs))


def averaged(direct: Any, slope: Any, ends: Any, *xs: Any) -> Any:
    """`average` for arrays; the mean is computed only for elements whose terms may cancel."""
    if not all(isinstance(x, (np.ndarray, np.generic, float, int)) for x in xs):
        return average(numeric.where, CONVERGED, direct, slope, ends, xs)
    y = direct(*xs)
    shape, dtype = np.shape(y), y.dtype
    y, *full = np.broadcast_arrays(y, *xs)
    x, r = (np.broadcast_to(end, shape) for end in ends(*full))
    near = np.abs(x - r) <= 1 + NEAR * (np.abs(x) + np.abs(r))
    if not near.any():
        return y[()]
    points = [x[near].astype(np.float64)[:, None] for x in full]
    rows = [np.broadcast_to(slope(*points, ts), (len(points[0]), len(ts))) * ws for ts, ws in mean_rules()]
    less, more = (row.sum(-1) for row in rows)
    good = np.abs(less - more) <= CONVERGED * np.abs(rows[1]).sum(-1)
    out = np.array(y)
    out[near] = np.where(good, more, out[near]).astype(dtype)
    return out[()]


@functools.cache
def sizes_of(dtype: Any) -> tuple[float, float]:
    """The trusted sizes of an array's dtype."""
    return trusted_sizes(ml_dtypes.finfo(dtype))


def guarded_array(y: Any, guard: Guard, *xs: Any) -> Any:
    """The value, with results of wide numbers for elements that may have overflowed or underflowed."""
    low, high = sizes_of(y.dtype)
    if not isinstance(y, (np.ndarray, np.generic)):
        return with_guard(BASE, (low, high), y, guard, xs, [x.astype(np.float64) if hasattr(x, "astype") else x for x in xs])
    size = np.abs(y)
    own = np.abs(xs[0]) if len(xs) == 1 and (guard.low > 0 or guard.high < math.inf) else None
    if y.size == 0 or low <= size.min() and size.max() <= high and (own is None or own.min() >= guard.low and own.max() <= guard.high):
        return y
    unsafe = ~((size >= low) & (size <= high))
    if own is not None:
        unsafe |= ~((own >= guard.low) & (own <= guard.high))
    out = np.array(y)
    with np.errstate(all="ignore"):
        out[unsafe] = guard(BASE, *[np.broadcast_to(x, out.shape)[unsafe].astype(np.float64) for x in xs]).astype(out.dtype)
    return out[()]


SUPPORT: dict[str, Any] = {f.__name__: f for f in (step, sigmoid, sigmoids, tanh_and_slope, power, patched, averaged)} | over(numeric, numeric.where)
SUPPORT |= {"cbrt": np.cbrt, "quiet": functools.partial(np.errstate, divide="ignore", invalid="ignore", over="ignore")}
SUPPORT["guarded"] = guarded_array
PLAIN = """abs exp expm1 log log1p sin cos tan sinh cosh tanh sign floor ceil hypot logaddexp sqrt zeros_like logical_and logical_or logical_not
acos acosh asin asinh atan atan2 atanh pow remainder maximum minimum softplus sech sech_square""".split()
# The functions for the computation with wide numbers.
BASE = {**{name: getattr(numeric, name) for name in (*PLAIN, *SPECIAL)}, **SUPPORT, "frexp": np.frexp, "where": numeric.where, "average": average,
        "ldexp": lambda m, e: np.ldexp(m, e.astype(np.int32)), "longest": 1e306,
        "like": lambda x, y: x.astype(y.dtype)}
