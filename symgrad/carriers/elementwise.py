"""Functions of many numbers, element by element: a choice, lengths and directions of points, and functions whose forward keeps a residual.

The derivatives of tanh and of the sigmoid are computed from the residual; value and residual share one exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import absolute as abs
from numpy import exp, tanh

NUMBERS = frozenset((float, int))
RARE = 0.05  # of the elements: up to which copying them one by one is faster
MANY = 4096  # elements from which a mispredicted branch counts more than a pass over memory


def where(condition: Any, a: Any, b: Any) -> Any:
    """`np.where`, with Python numbers converted to bfloat16 if the other value has that dtype; NumPy does this only for its own dtypes."""
    if type(b) in NUMBERS and type(a) not in NUMBERS and a.dtype.kind == "V":
        b = np.asarray(b, a.dtype)
    elif type(a) in NUMBERS and type(b) not in NUMBERS and b.dtype.kind == "V":
        a = np.asarray(a, b.dtype)
    if type(condition) is np.ndarray and condition.size >= MANY and condition.dtype.kind == "b" and condition.flags.c_contiguous:
        first, second = _bits(condition, a), _bits(condition, b)
        if first is not None and second is not None and (type(first) is np.ndarray or type(second) is np.ndarray):
            return _selected(condition, first, second)
    return np.where(condition, a, b)


def _bits(condition: np.ndarray, x: Any) -> Any:
    """The bits of a float64 array of the shape of the condition, or of a number, which may be broadcast; None for another operand."""
    if type(x) is np.ndarray:
        if x.dtype != np.float64 or x.shape != condition.shape:
            return None
        if not any(x.strides):
            return x[(0,) * x.ndim].view(np.int64)
        return x.view(np.int64) if x.flags.c_contiguous else None
    return np.float64(x).view(np.int64) if type(x) in NUMBERS or type(x) is np.float64 else None


def _selected(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """The choice by bits, without branches, which a processor predicts wrongly half of the time; by places where one of both is rarely chosen."""
    out = np.empty(condition.shape)
    mask = out.view(np.int64)
    count = np.count_nonzero(condition)
    for number, rare, usual in ((count, a, b), (condition.size - count, b, a)):
        if number < RARE * condition.size:
            mask[...] = usual
            if number:
                at = np.flatnonzero(condition if rare is a else ~condition)
                mask.reshape(-1)[at] = rare.reshape(-1)[at] if rare.ndim else rare
            return out
    np.negative(condition.view(np.int8), out=mask)
    np.bitwise_and(mask, np.bitwise_xor(a, b), out=mask)
    np.bitwise_xor(mask, b, out=mask)
    return out


FLOAT64 = np.dtype(np.float64)
LEAST = np.finfo(float).tiny / np.finfo(float).eps  # a smaller sum of squares has not all digits


def hypot(a: Any, b: Any, out: Any = None) -> Any:
    """√(a² + b²). Many numbers are squared, and NumPy's function, which is slow, is left the few whose squares overflow or lose digits."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.size < MANY or a.shape != b.shape or not a.dtype == b.dtype == FLOAT64:
        return np.hypot(a, b) if out is None else np.hypot(a, b, out)
    with np.errstate(all="ignore"):
        square = a * a
        square += b * b
        regular = LEAST < square.min() and square.max() < np.inf
        rare = None if regular else np.flatnonzero(~((square > LEAST) & (square < np.inf)))
        found = None if rare is None else np.hypot(a.reshape(-1)[rare], b.reshape(-1)[rare])
        out = np.sqrt(square, out=square if out is None else out)
        if rare is not None:
            out.put(rare, found)
    return out


def direction(a: Any, b: Any) -> Any:
    """a / √(a² + b²), and 0 at (0, 0)."""
    length = hypot(a, b)
    if type(length) is np.ndarray and length.size >= MANY and length.min() > 0 and length.dtype == a.dtype and length.shape == a.shape:
        return np.divide(a, length, out=length)
    return a / where(length == 0, 1, length)


def _constant(value: float, like: Any) -> np.ndarray:
    """A Python number as a 0-d array in the dtype of `like`, with which arithmetic is twice as fast."""
    key = value, like.dtype
    if key not in _constants:
        _constants[key] = np.array(value, like.dtype)
    return _constants[key]


_constants: dict[tuple[float, np.dtype], np.ndarray] = {}


SAFE_EXPONENT = {8: 700.0, 4: 88.0, 2: 11.0}  # below the logarithm of the largest float, by its size in bytes


def tanh_and_complement(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tanh(x) and r = 1 - |tanh(x)|, both to full relative accuracy, from one exponential.

    With w = exp(-2|x|) they are 1 - r and r = 2w / (1 + w), unless |x| is small, where 1 - r loses digits; with e = exp(2|x|) - 1 they are
    e / (e + 2) and 2 / (e + 2), unless e overflows.
    """
    a, one, two = abs(x), _constant(1.0, x), _constant(2.0, x)
    np.add(a, a, out=a)
    flat = a.ravel()
    if flat.size and flat[flat.argmin()] >= 0.7:
        w = exp(np.negative(a, out=a), out=a)
        d = w + one
        np.add(w, w, out=w)
        r = np.divide(w, d, out=w)
        y = np.subtract(one, r, out=d)
    elif flat.size and flat[flat.argmax()] <= SAFE_EXPONENT[x.itemsize]:
        e = np.expm1(a, out=a)
        d = e + two
        y = np.divide(e, d, out=e)
        r = np.divide(two, d, out=d)
    else:
        w = exp(-a)
        return tanh(x), 2 * w / (1 + w)
    return np.copysign(y, x, out=y), r


def sech_square_of_complement(r: np.ndarray) -> np.ndarray:
    """1 - tanh² = r (2 - r), which does not cancel."""
    out = _constant(2.0, r) - r
    return np.multiply(out, r, out=out)


def tanh_second_derivative(x: Any, y: Any, slope: Any) -> Any:
    """The second derivative of tanh from its value and its first derivative."""
    return _constant(-2.0, y) * y * slope


def sigmoid_and_smaller_part(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sigmoid of x and r = sigmoid(-|x|), both to full relative accuracy, from one exponential."""
    z = abs(x)
    exp(np.negative(z, out=z), out=z)
    d = z + _constant(1.0, x)
    r = z / d
    y = np.maximum(z, np.greater_equal(x, _constant(0.0, x)), out=z)  # 1 or z
    return np.divide(y, d, out=y), r


def sigmoid_slope_of_part(r: np.ndarray) -> np.ndarray:
    """r (1 - r), which does not cancel for r up to 1/2."""
    out = _constant(1.0, r) - r
    return np.multiply(out, r, out=out)


def sigmoid_second_derivative(x: Any, y: Any, slope: Any) -> Any:
    """The second derivative of the sigmoid from its argument and its first derivative."""
    return -slope * tanh(x / _constant(2.0, y))


# Ops with a residual, which is computed with the value. The first function maps x to the value and the residual, the second the residual to the
# derivative, the third x, the value and the derivative to the second derivative. With AVX-512, NumPy's own tanh and cosh take less time than these.
WIDE = any("AVX512" in name or name == "X86_V4" for name in np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))
WITH_RESIDUAL: dict[str, Any] = {"sigmoid": (sigmoid_and_smaller_part, sigmoid_slope_of_part, sigmoid_second_derivative)}
if not WIDE:
    WITH_RESIDUAL["tanh"] = (tanh_and_complement, sech_square_of_complement, tanh_second_derivative)
