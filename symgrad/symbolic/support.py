"""The functions of generated code that are made of elementary ones, for any framework; faster ones for NumPy.

A framework is a mapping of its elementary functions by name. In it `replaced(y, mask, compute, *xs)` is y with `compute(*xs)` where the mask
holds, computed in the highest precision, `finfo(x)` describes the floats of an array, and `longest` is the largest exponent of wide numbers.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np

from symgrad.carriers import elementwise, numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.wide import Wide, wide_names
from symgrad.system.restoring import workdps

CONVERGED, NEAR = 2.0**-31, 0.92  # the largest relative difference of the two rules, and the largest relative distance of the ends of a mean
SPLIT = 0.37  # the end of the first piece of the coarse rule, so that the rules differ for a function with jumps


class Patch(NamedTuple):
    """A series in u = x - point that replaces an output within `radius` of the point, which is `centre` + `rest`."""

    centre: float
    rest: float
    radius: float
    coefficients: tuple[float, ...]


class Guard:
    """Code that is evaluated with wide numbers where its float value is 0 or not finite, or |x| of its only argument is outside of a range."""

    def __init__(self, code: Any, low: float = 0.0, high: float = math.inf):
        self.code, self.low, self.high = code, low, high
        self.bound: dict[int, tuple[Any, Callable[..., Any]]] = {}

    def __call__(self, base: Mapping[str, Any], *xs: Any) -> Any:
        """The value at arguments, computed in wide numbers."""
        if id(base) not in self.bound:
            self.bound[id(base)] = base, self.code.bound(made_of(wide_names(base)))
        out = self.bound[id(base)][1](*[Wide.of(x, base) for x in xs])
        return out.narrow() if isinstance(out, Wide) else out


def made_of(elementary: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a framework, with those that are made of them where it has none of its own."""
    where, exp, log1p, replaced = (elementary[name] for name in ("where", "exp", "log1p", "replaced"))

    def cbrt(x: Any) -> Any:
        root = f["sign"](x) * abs(x) ** (1 / 3)
        safe = where(root == 0, 0 * root + 1, root)
        return root - where(root == 0, 0 * root, (root - x / (safe * safe)) / 3)  # one Newton step

    f: dict[str, Any] = {"cbrt": cbrt, **elementary}

    def sigmoid(x: Any) -> Any:
        return exp(where(x < 0, x, 0 * x)) / (1 + exp(-abs(x)))

    def sech(x: Any) -> Any:
        z = exp(-abs(x))
        return 2 * z / (1 + z * z)

    def step(x: Any, middle: float = 0.5) -> Any:
        """0, a middle value, or 1, by the sign of x."""
        zero = abs(0 * x)
        return where(x > 0, zero + 1, where(x < 0, zero, zero + middle))

    def log_cosh(x: Any) -> Any:
        """log(cosh(x)): |x| - log(2) + log1p(exp(-2|x|)), and log1p(2 sinh²(x/2)) next to 0."""
        a = abs(x)
        small = f["sinh"](where(a < 1, a, 0 * a) / 2)
        return where(a < 1, log1p(2 * small * small), a - math.log(2.0) + log1p(exp(-2 * a)))

    def log1mexp(x: Any) -> Any:
        """log(1 - exp(x)) for x < 0. M. Maechler, Accurately computing log(1 - exp(-|a|)) (2012)."""
        near = x > -math.log(2.0)
        return where(near, f["log"](-f["expm1"](x)), log1p(-exp(where(near, 0 * x - 1, x))))

    def choose(*parts: Any) -> Any:
        """The first value whose condition holds: parts are conditions and values in turn, and the last value."""
        out = parts[-1]
        for condition, x in zip(parts[-3::-2], parts[-2::-2]):
            out = where(condition, x, out)
        return out

    def patched(y: Any, x: Any, patch: Patch) -> Any:
        """A value, replaced by the series near the centre of the patch."""
        u = x - patch.centre if patch.centre else x
        u = u - patch.rest if patch.rest else u
        return replaced(y, abs(u) <= patch.radius, lambda u: horner(u, patch.coefficients), u)

    def averaged(direct: Any, slope: Any, ends: Any, *xs: Any) -> Any:
        """A quotient, computed as the mean of `slope` by Gauss's rule where its terms may cancel and two rules agree."""
        def mean(y: Any, *xs: Any) -> Any:
            first, second = ([w * slope(*xs, t) for t, w in zip(ts.tolist(), ws.tolist())] for ts, ws in mean_rules())
            less, more, total = (sum(terms, 0 * xs[0]) for terms in (first, second, map(abs, second)))  # arrays, for a constant slope, too
            return where(abs(less - more) <= max(CONVERGED, 64 * float(f["finfo"](less).eps)) * total, more, y)

        y, (x, r) = direct(*xs), ends(*xs)
        return replaced(y, abs(x - r) <= 1 + NEAR * (abs(x) + abs(r)), mean, y, *xs)

    def guarded(y: Any, guard: Guard, *xs: Any) -> Any:
        """A value, with results of wide numbers where intermediate values may have been subnormal or overflowed."""
        info, size = f["finfo"](y), abs(y)
        trusted = (size >= float(info.tiny) / float(info.eps)) & (size <= float(info.max) * float(info.eps))
        if len(xs) == 1 and (guard.low > 0 or guard.high < math.inf):
            trusted = trusted & (abs(xs[0]) >= guard.low) & (abs(xs[0]) <= guard.high)
        return replaced(y, f["logical_not"](trusted), lambda *xs: guard(f, *xs), *xs)

    own = {function.__name__: function for function in (sigmoid, sech, step, log_cosh, log1mexp, choose, patched, averaged, guarded, power)}
    return own | {"sech_square": lambda x: square(sech(x)), "sigmoids": lambda x: (sigmoid(x), sigmoid(-x)), "square": square, "nan": math.nan,
                  "quiet": contextlib.nullcontext, "softplus": lambda x: where(x > 0, x, 0 * x) + log1p(exp(-abs(x)))} | f


def square(x: Any) -> Any:
    """x · x."""
    return x * x


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


# NumPy


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), accurate for both signs of x."""
    return 1 / (1 + np.exp(-x)) if _is_modest(x) else numeric.sigmoid(x)


def _is_modest(x: Any) -> bool:
    """Whether exp(-x) is finite for every element of an array of floats."""
    return type(x) is np.ndarray and x.ndim > 0 and x.dtype.kind == "f" and x.size > 0 and x.min() > -elementwise.SAFE_EXPONENT.get(x.itemsize, 11.0)


def sigmoids(x: Any) -> tuple[Any, Any]:
    """sigmoid(x) and sigmoid(-x) from one exponential."""
    if not _is_modest(x):
        return numeric.sigmoid(x), numeric.sigmoid(-x)
    z = np.exp(-x)
    d = 1 / (1 + z)
    return d, z * d


def _replaced(y: Any, mask: Any, compute: Callable[..., Any], *xs: Any) -> Any:
    """A value with others, which are computed for the elements of a mask alone."""
    if not isinstance(y, (np.ndarray, np.generic)):
        wide = [x.astype(np.float64) if hasattr(x, "astype") else x for x in xs]
        return numeric.where(mask, compute(*wide).astype(y.dtype), y)
    if not mask.any():
        return y
    shape = np.broadcast_shapes(y.shape, mask.shape)
    out, places = np.array(np.broadcast_to(y, shape)), np.broadcast_to(mask, shape)
    with np.errstate(all="ignore"):
        out[places] = compute(*[np.broadcast_to(x, shape)[places].astype(np.float64) for x in xs]).astype(out.dtype)
    return out[()]


ELEMENTARY = """abs exp expm1 log log1p sin cos tan sinh cosh tanh sign floor ceil hypot logaddexp sqrt logical_and logical_or logical_not
acos acosh asin asinh atan atan2 atanh pow remainder zeros_like""".split()
SUPPORT = made_of({
    **{name: getattr(numeric, name) for name in (*ELEMENTARY, "maximum", "minimum", "softplus", "sech", "sech_square", "where", *SPECIAL)},
    "cbrt": np.cbrt, "replaced": _replaced, "finfo": lambda x: ml_dtypes.finfo(x.dtype), "longest": 1e306, "frexp": np.frexp,
    "ldexp": lambda m, e: np.ldexp(m, e.astype(np.int32))}) | {
    "sigmoid": sigmoid, "sigmoids": sigmoids, "quiet": functools.partial(np.errstate, divide="ignore", invalid="ignore", over="ignore")}
