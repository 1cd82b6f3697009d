"""Functions whose forward keeps a residual from which the derivative is computed: tanh and the sigmoid, by one shared exponential."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import absolute as abs
from numpy import exp, tanh

__all__ = ["WITH_RESIDUAL"]


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
