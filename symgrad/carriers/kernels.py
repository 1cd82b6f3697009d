"""Values and pullbacks of whole ops for many numbers, with fewer passes over memory than the rule of the op makes, read for numbers.

A value keeps what its pullback needs. Both answer None, which leaves the call to the rule, where numbers need more care than ordinary ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.reducing import centred, exponentials, norm, standardized, standardized_pull, sum_of_squares
from symgrad.dtypes.exponents import has_predecessor

float64, ndarray = np.float64, np.ndarray
TINY, HUGE = np.finfo(float).tiny / np.finfo(float).eps, np.finfo(float).max / 4  # between which a product of some numbers keeps its digits


class Kernel(NamedTuple):
    """`pull(g, y, kept, *args)` gives a cotangent for each tensor; `value(*args)` gives the value and what is kept, None for that of the op."""

    pull: Callable[..., Any]
    value: Callable[..., Any] | None = None
    finite: bool = False  # of a value that is one number: whether the factors of the cotangent are finite if it is not NaN
    few: bool = False  # whether it is for few numbers, too, and for float32 beside float64


# Elementwise functions


def _exp2(g: Any, y: Any, kept: None, x: Any) -> Any:
    if not y.max() < HUGE:
        return None
    out = y * math.log(2.0)
    out *= g
    return (out,)


def _one_plus_square(x: Any) -> Any:
    """1 + x², None if it overflows."""
    out = x * x
    out += 1.0
    return out if out.max() < HUGE else None


def _atan(g: Any, y: Any, kept: None, x: Any) -> Any:
    out = _one_plus_square(x)
    return None if out is None else (np.divide(g, out, out=out),)


def _asinh(g: Any, y: Any, kept: None, x: Any) -> Any:
    out = _one_plus_square(x)
    return None if out is None else (np.divide(g, np.sqrt(out, out=out), out=out),)


def _clamp_value(x: Any, low: float | None, high: float | None) -> Any:
    if low is None or high is None or not low < high or low == 0 == high:
        return None
    out = np.clip(x, low, high)
    return (out if low and high else np.add(out, 0.0, out=out)), ()  # no -0


def _clamp(g: Any, y: Any, kept: None, x: Any, low: float | None, high: float | None) -> Any:
    if low is None or high is None:
        return None
    inside = x > low
    inside &= x < high
    out = inside.astype(float64)  # a product of booleans and numbers takes twice as long
    out *= g
    return (out,)


def _replace_value(x: Any, *numbers: Any) -> Any:
    total = np.vdot(x, x)
    return (x.copy(), ()) if total < math.inf else None


def _replace(g: Any, y: Any, kept: None, x: Any, *numbers: Any) -> Any:
    return (g,)


def _tanhshrink(g: Any, y: Any, kept: Any, x: Any) -> Any:
    out = kept * kept
    out *= g
    return (out,)


def _power(g: Any, y: Any, kept: None, a: Any, b: Any) -> Any:
    """g b y / a and g y log(a), unless y has lost digits or a is so small that its factor overflows; g b aᵇ⁻¹ for a number b."""
    if type(b) in (int, float) and type(a) is ndarray and b not in (0, 1) and has_predecessor(b):
        out = b * (a if b == 2 else a ** (b - 1))
        out *= g
        return out, None
    if type(a) is not ndarray or type(b) is not ndarray or not TINY < y.min() or not y.max() < HUGE or not TINY < a.min() or not a.max() < HUGE:
        return None
    by_base = g * y
    by_exponent = np.log(a)
    by_exponent *= by_base
    by_base *= b
    by_base /= a
    return by_base, by_exponent


def _choice(first: Any, second: Any) -> Callable[..., Any]:
    """The pullback of the larger or smaller of two numbers, if all can be compared and none are equal."""
    def pull(g: Any, y: Any, kept: None, a: Any, b: Any) -> Any:
        chosen = first(a, b), second(a, b)
        if sum(map(np.count_nonzero, chosen)) < y.size:
            return None
        found = tuple([mask.astype(float64) for mask in chosen])  # a product of booleans and numbers takes twice as long
        for out in found:
            out *= g
        return found

    return pull


def _tanhshrink_value(x: Any) -> Any:
    from symgrad.carriers.special.elementary import SHRINK_BELOW, shrink_near_0

    tangent = np.tanh(x)
    out = x - tangent
    near = np.flatnonzero(np.abs(x) < SHRINK_BELOW)
    if near.size:
        out.reshape(-1)[near] = shrink_near_0(x.take(near))
    return out, tangent


# Reductions over all elements


def _is_full(x: Any, dim: Any, keepdim: bool) -> bool:
    return len(dim) == x.ndim and not keepdim


def _extreme(g: Any, y: Any, kept: None, x: Any, *rest: Any) -> Any:
    """The cotangent at the elements that are equal to y, which share it equally."""
    if y != y:
        return None
    equal, out = x == y, np.zeros(x.shape)
    count = np.count_nonzero(equal)
    out.reshape(-1)[equal.argmax() if count == 1 else np.flatnonzero(equal)] = g / count
    return (out,)


def _var_value(x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    if not _is_full(x, dim, keepdim) or x.size <= correction:
        return None
    distances = centred(x, dim)
    return sum_of_squares(distances, dim, False) / (x.size - correction), distances


def _var(g: Any, y: Any, kept: Any, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    factor = 2 * g / (x.size - correction)
    return (kept * factor,) if type(g) is float64 else None


def _std_value(x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    if not _is_full(x, dim, keepdim) or x.size <= correction:
        return None
    distances = centred(x, dim)
    return norm(distances, dim, False) / np.sqrt(x.size - correction), distances


def _std(g: Any, y: Any, kept: Any, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    if type(g) is not float64 or not TINY < y < HUGE:
        return None
    factor = g / (x.size - correction) / y
    return (kept * factor,) if TINY < abs(factor) < HUGE else None


def _logsumexp_value(x: Any, dim: Any, keepdim: bool) -> Any:
    """Only where no exponent is so large that its rounding counts, and the sum is not so close to 1 that its logarithm loses digits."""
    if not _is_full(x, dim, keepdim):
        return None
    peak = x.max()
    if not peak - x.min() < 8 or not -HUGE < peak < HUGE:
        return None
    terms = x - peak
    np.exp(terms, out=terms)
    total = np.add.reduce(terms, None)
    return (np.log(total) + peak, (terms, total)) if total > 2 else None


def _logsumexp(g: Any, y: Any, kept: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    terms, total = kept
    factor = g / total
    return (terms * factor,) if type(g) is float64 and TINY < abs(factor) < HUGE else None


def _softmax_value(x: Any, dim: Any) -> Any:
    """Only where no exponent is so large that its rounding counts."""
    if len(dim) < x.ndim:
        return None
    peak = x.max()
    if not peak - x.min() < 8 or not -HUGE < peak < HUGE:
        return None
    out = x - peak
    np.exp(out, out=out)
    out /= np.add.reduce(out, None)
    return out, ()


def _softmax(g: Any, y: Any, kept: Any, x: Any, dim: Any) -> Any:
    """y (g - Σ y g), with differences from the g of the largest y."""
    out = g - g.reshape(-1)[y.argmax()]
    out -= np.add.reduce(out * y, None)
    out *= y
    return (out,)


# Rows


def _log_softmax_value(x: Any, dim: Any) -> Any:
    """Only along the last axis; exp(input) in units of the largest of each row is kept, with 0 for this one, which is 1."""
    if dim != (x.ndim - 1,) or not x.size:
        return None
    count = x.shape[-1]
    at = x.reshape(-1, count).argmax(1)
    at += np.arange(0, x.size, count)
    peak = x.reshape(-1)[at]
    if not np.vdot(peak, peak) < math.inf:
        return None
    peak = peak.reshape(*x.shape[:-1], 1)
    out = x - peak
    others = exponentials(x, out, peak)
    others.reshape(-1)[at] = 0
    sums = np.add.reduce(others, -1, keepdims=True)
    out -= np.log1p(sums)
    return out, (others, sums, at)


def _log_softmax(g: Any, y: Any, kept: Any, x: Any, dim: Any) -> Any:
    """g - p Σg for probabilities p = others / (1 + sums); at the largest p, where that cancels, (sums g - Σ of the other g) / (1 + sums)."""
    others, sums, at = kept
    flat = g.reshape(-1)
    rest = flat.copy()
    rest[at] = 0
    rest = np.add.reduce(rest.reshape(g.shape), -1, keepdims=True)
    largest, total = flat[at].reshape(sums.shape), sums + 1
    out = others * ((rest + largest) / -total)
    out += g
    out.reshape(-1)[at] = ((sums * largest - rest) / total).reshape(-1)
    return (out,)


# Recurrences


def _log_path_sums_value(x: Any, skips: Any, zero: float) -> Any:
    """One step after the other, for all states of all sequences; the shares of the three that arrive are kept."""
    steps, count, states = x.shape
    if not x.size or not np.isfinite(np.add.reduce(x, None)):
        return None
    out, shares = np.empty_like(x), np.empty((max(steps - 1, 0), 3, count, states), x.dtype)
    before = np.full((count, states + 2), zero, x.dtype)  # two states that no path reaches stand before the first
    stay, step, skip = (before[:, 2 - i:2 - i + states] for i in range(3))
    peak, total = np.empty_like(skips), np.empty_like(skips)
    for t in range(steps):
        row = out[t]
        if t:
            terms = shares[t - 1]
            np.maximum(stay, step, out=peak)
            np.add(skip, skips, out=terms[2])
            np.maximum(peak, terms[2], out=peak)
            np.subtract(stay, peak, out=terms[0])
            np.subtract(step, peak, out=terms[1])
            terms[2] -= peak
            np.exp(terms, out=terms)
            np.add.reduce(terms, 0, out=total)
            terms /= total
            np.log(total, out=total)
            total += peak
            np.add(total, x[t], out=row)
        else:
            row[...] = x[t]
        row[:, 2 * t + 2:] = zero
        stay[...] = row
    return out, shares


def _log_path_sums(g: Any, y: Any, kept: Any, x: Any, skips: Any, zero: float) -> Any:
    out, by_skips = g.copy("C"), np.zeros_like(skips)
    for t in reversed(range(len(out))):
        row = out[t]
        if t + 1 < len(out):
            moved = kept[t] * out[t + 1]
            row += moved[0]
            row[:, :-1] += moved[1, :, 1:]
            row[:, :-2] += moved[2, :, 2:]
            by_skips += moved[2]
        row[:, 2 * t + 2:] = 0
    return out, by_skips


EXTREME = Kernel(_extreme, finite=True)
KERNELS: dict[str, Kernel] = {
    "exp2": Kernel(_exp2), "atan": Kernel(_atan), "asinh": Kernel(_asinh), "pow": Kernel(_power),
    "softmax": Kernel(_softmax, _softmax_value), "log_softmax": Kernel(_log_softmax, _log_softmax_value, few=True),
    "standardized": Kernel(standardized_pull, standardized, few=True),
    "log_path_sums": Kernel(_log_path_sums, _log_path_sums_value, few=True),
    "tanhshrink_of_real": Kernel(_tanhshrink, _tanhshrink_value),
    "maximum": Kernel(_choice(np.greater, np.less)), "minimum": Kernel(_choice(np.less, np.greater)),
    "clamp_number": Kernel(_clamp, _clamp_value), "with_numbers": Kernel(_replace, _replace_value),
    "var": Kernel(_var, _var_value), "std": Kernel(_std, _std_value), "logsumexp": Kernel(_logsumexp, _logsumexp_value),
    **dict.fromkeys(("amax", "amin", "max_of_all", "min_of_all", "median_of_all", "nanmedian_of_all"), EXTREME),
}
