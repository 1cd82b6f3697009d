"""The numeric carrier: NumPy values, computed in the form that keeps relative accuracy over the whole range."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from numpy import absolute as abs
from numpy import arccos as acos
from numpy import arccosh as acosh
from numpy import arcsin as asin
from numpy import arcsinh as asinh
from numpy import arctan as atan
from numpy import arctan2 as atan2
from numpy import arctanh as atanh
from numpy import (
    ceil,
    conj,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    floor,
    fmod,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    reciprocal,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from numpy import equal as eq
from numpy import greater as gt
from numpy import greater_equal as ge
from numpy import less as lt
from numpy import less_equal as le
from numpy import not_equal as ne

from symgrad.carriers import recording as _recording  # noqa: F401  registers NumPy's functions
from symgrad.carriers import structure
from symgrad.carriers.batched import Batched, raw
from symgrad.carriers.batching import scatter, take
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.matrices import of_arrays as _matrix_functions
from symgrad.carriers.recorded import Recorded, of_data, word
from symgrad.carriers.reducing import all, amax, amin, any, argmax, argmin, centred, log_softmax, logsumexp, norm, reference, softmax
from symgrad.carriers.residuals import WITH_RESIDUAL as WITH_RESIDUAL
from symgrad.carriers.special.arrays import of_arrays as _special_functions
from symgrad.carriers.structure import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.structure import indicator, is_basic, zeros_like
from symgrad.types.indices import check_ordered
from symgrad.types.layouts import empty_like, with_index_layout

pi = math.pi
REAL_NUMBERS = frozenset((float, int))


def where(condition: Any, a: Any, b: Any) -> Any:
    """`np.where`, with Python numbers converted to bfloat16 if the other value has that dtype; NumPy does this only for its own dtypes."""
    if type(b) in REAL_NUMBERS and type(a) not in REAL_NUMBERS and a.dtype.kind == "V":
        b = np.asarray(b, a.dtype)
    elif type(a) in REAL_NUMBERS and type(b) not in REAL_NUMBERS and b.dtype.kind == "V":
        a = np.asarray(a, b.dtype)
    return np.where(condition, a, b)


def sign(x: Any) -> Any:
    return x | x if x.dtype.kind == "b" else np.sign(check_ordered(x))


def round(x: Any) -> Any:
    """The nearest integers, halves to even; integers keep their dtype."""
    return +x if x.dtype.kind in "iu" else np.rint(x)


def maximum(a: Any, b: Any) -> Any:
    return check_ordered(np.maximum(a, b))


def minimum(a: Any, b: Any) -> Any:
    return check_ordered(np.minimum(a, b))


def _in_dtype_of(y: Any, x: Any) -> Any:
    """`y` converted back to bfloat16 if `x` has that dtype, since arithmetic with Python numbers gives float32."""
    return y.astype(x.dtype) if x.dtype.kind == "V" else y


@word
def exp2_derivative(x: Any, order: int) -> Any:
    """d^n/dx^n of 2^x = 2^x log(2)^n, which is smaller than 2^x; computed as 2^(x - 1) · 2 log(2)^n where 2^x may overflow."""
    doubled = indicator(x > 1, x)
    return _in_dtype_of(exp2(x - doubled) * ((1 + doubled) * math.log(2.0) ** order), x)


@word
def log_derivative(x: Any, base: int) -> Any:
    """The derivative 1 / (x log(base)) of the logarithm to a base."""
    return _in_dtype_of((1 / math.log(base)) / x, x)


@word
def rsqrt(x: Any) -> Any:
    return 1 / sqrt(x)


def sech(x: Any) -> Any:
    """2 z / (1 + z²) with z = exp(-|x|): it does not overflow, and is accurate down to the smallest float."""
    if type(x) is np.float64:
        z = math.exp(-math.fabs(x))
        return np.float64(2 * z / (1 + z * z))
    if isinstance(x, DuckArray):
        return of_data("sech", sech, x)
    if x.dtype.kind == "c":
        return 1 / cosh(x)
    z = exp(-abs(x))
    return 2 * z / (1 + z * z)


def sech_square(x: Any) -> Any:
    """1 / cosh(x)²; the square is computed last, which avoids an overflow of cosh(x)²."""
    if type(x) is np.float64:
        z = math.exp(-math.fabs(x))
        s = 2 * z / (1 + z * z)
        return np.float64(s * s)
    if isinstance(x, DuckArray):
        return of_data("sech_square", sech_square, x)
    s = reciprocal(cosh(x))
    return square(s, out=s) if isinstance(s, np.ndarray) else s * s


def sigmoid(x: Any) -> Any:
    if type(x) is np.float64:
        z = math.exp(-math.fabs(x))
        return np.float64((z if x < 0 else 1.0) / (1 + z))
    if isinstance(x, DuckArray):
        return of_data("sigmoid", sigmoid, x)
    if x.dtype.kind == "c":
        return 1 / (1 + exp(-x))
    return exp(minimum(x, 0)) / (1 + exp(-abs(x)))


def sigmoid_slope(y: Any, x: Any) -> Any:
    """y (1 - y) for y = sigmoid(x), where 1 - y does not cancel."""
    return y * sigmoid(-x)


@word
def logsigmoid(x: Any) -> Any:
    return minimum(x, 0) - log1p(exp(-abs(x)))


@word
def softplus(x: Any, beta: float = 1.0) -> Any:
    scaled = x if beta == 1 else x * beta
    out = maximum(scaled, 0) + log1p(exp(-abs(scaled)))
    return _in_dtype_of(out if beta == 1 else out / beta, x)


def relu(x: Any) -> Any:
    return maximum(x, 0)


def direction(a: Any, b: Any) -> Any:
    """a / √(a² + b²), and 0 at (0, 0)."""
    length = hypot(a, b)
    return a / where(length == 0, 1, length)


def remainder(a: Any, b: Any) -> Any:
    return np.remainder(a, b)


def floor_divide(a: Any, b: Any) -> Any:
    if np.result_type(a, b).kind in "biu" and not np.all(raw(b)):
        raise RuntimeError("ZeroDivisionError")
    return np.floor_divide(a, b)


@word
def one_minus_square(x: Any) -> Any:
    """1 - x², accurate near its roots."""
    return (1 - x) * (1 + x)


def _sine_of_pi(x: Any) -> tuple[Any, Any]:
    """sin(πx) and cos(πx), exact at integers and half integers."""
    x = np.fmod(x, 2.0)
    n = np.rint(2 * x)
    r = pi * (x - n / 2)
    s, c, quadrant = sin(r), cos(r), n.astype(int) & 3
    return np.choose(quadrant, (s, c, -s, -c)), np.choose(quadrant, (c, -s, -c, s))


@word
def sinc_derivative(x: Any, order: int = 0) -> Any:
    """d^n/dx^n of sin(πx)/(πx).

    With Sₙ = d^n/du^n of sin(u)/u, u Sₙ + n Sₙ₋₁ = d^n/du^n sin(u): a recurrence that is stable upwards where |u| > n, and
    downwards, from any start far above, where |u| < n.
    """
    sine, cosine = _sine_of_pi(x)
    waves = (sine, cosine, -sine, -cosine)
    u = pi * x
    large = abs(u) > order + 1
    large_u, small_u = where(large, u, 1.0), where(large, 0.0, u)
    upward, downward = sine / large_u, 0.0
    for n in range(1, order + 1):
        upward = (waves[n % 4] - n * upward) / large_u
    for n in range(2 * order + 40, order, -1):
        downward = (waves[n % 4] - small_u * downward) / n
    return _in_dtype_of(where(large, upward, downward) * pi**order, x)


def _is_batched_index(index: Any) -> bool:
    """Whether an index differs between the members of a batch."""
    return type(index) is Batched or type(index) is tuple and builtins.any([type(part) is Batched for part in index])


def getitem(x: Any, index: Any) -> Any:
    """The elements at an index; a basic index gives a view of the memory, also for a single element."""
    if _is_batched_index(index):
        return take(x, index)
    out = x[index]
    if type(out) is np.ndarray:
        base = out.base
        shared = out.ndim < 2 or base is x or base is not None and base is x.base
        if shared or type(x) is not np.ndarray or type(index) is np.ndarray and index.ndim == 1 and x.flags.c_contiguous:
            return out
        return with_index_layout(out, x, index)
    if isinstance(out, np.ndarray) or not isinstance(x, np.ndarray):
        return out
    return x[(*index, ...) if isinstance(index, tuple) else (index, ...)] if is_basic(index) else out


def view(x: Any, shape: tuple[int, ...]) -> Any:
    """A view of `x` with another shape. Raises RuntimeError if this needs a copy."""
    out = x.reshape(shape)
    base = out.base
    if not isinstance(x, DuckArray) and base is not x and (base is None or base is not x.base) and out.size:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                           "subspaces). Use .reshape(...) instead.")
    return out


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """The array broadcast to a shape without a copy; it is writeable if `x` is."""
    if type(x) is np.float64:
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))  # equal to the general case, and six times as fast
    out = np.broadcast_to(x, shape)
    if isinstance(x, np.ndarray) and x.flags.writeable:
        out.flags.writeable = True
    return out


def place(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of `getitem`: zeros of `shape` with `g` added at `index`, which may repeat elements."""
    return scatter(zeros_like(g, shape), index, g, True) if _is_batched_index(index) else structure.place(g, index, shape)


def put(x: Any, values: Any, index: Any, accumulate: bool = False) -> Any:
    """A copy of `x` with `values` written at `index`, or added there."""
    if _is_batched_index(index):
        return scatter(x, index, values, accumulate)
    if accumulate:
        return x + place(np.broadcast_to(values, np.shape(x[index])), index, x.shape)
    if isinstance(values, DuckArray) or isinstance(x, DuckArray):
        x = x + np.zeros_like(values, shape=x.shape, dtype=x.dtype) if isinstance(values, DuckArray) else x.copy()
        x[index] = values
        return x
    out = copy(x) if isinstance(x, np.ndarray) else np.array(x)
    out[index] = values
    return out


def diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions as a new last one: a view of the memory, writeable if `x` is."""
    out = x.diagonal(offset, dim1, dim2)
    if isinstance(x, DuckArray):
        return out
    out.flags.writeable = x.flags.writeable
    return out


def view_as_real(x: Any) -> Any:
    """The real and imaginary parts of complex numbers in a new last dimension: a view of the memory."""
    if isinstance(x, DuckArray):
        return of_data("view_as_real", view_as_real, x)
    return x[..., None].view(x.real.dtype) if isinstance(x, np.ndarray) else np.array([x.real, x.imag])


def view_as_complex(x: Any) -> Any:
    """The complex numbers with their parts in the last dimension; a view if the parts are adjacent in memory."""
    if isinstance(x, DuckArray):
        return of_data("view_as_complex", view_as_complex, x)
    kind = np.complex64 if x.itemsize < 8 else np.complex128
    if x.dtype.itemsize * 2 != np.dtype(kind).itemsize or x.strides[-1] != x.itemsize:
        return (x[..., 0] + 1j * x[..., 1]).astype(kind)
    return x.view(kind)[..., 0]


def dft(x: Any, dim: int, inverse: bool) -> Any:
    """The discrete Fourier transform of complex numbers along `dim`, without a factor."""
    if type(x) is Recorded:
        return x.emit("dft", dim, inverse)
    if type(x) is Batched:
        return x._with(dft(x.data, dim + 1, inverse))
    if x.dtype.kind != "c":
        raise TypeError(f"dft: complex numbers are expected, not {x.dtype}; the cotangents of real ones would be complex")
    return np.fft.ifft(x, axis=dim, norm="forward") if inverse else np.fft.fft(x, axis=dim)


def flip(x: Any, dims: tuple[int, ...]) -> Any:
    return copy(np.flip(x, dims))


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Every window of slices along a dimension, with the window as a new last dimension: a view of the memory."""
    if type(x) is Recorded:
        return x.emit("unfold", dimension, size, step)
    if type(x) is Batched:
        return x._with(unfold(x.data if x.ndim else x.data.reshape((-1, 1)), dimension + 1, size, step))
    x = x if isinstance(x, np.ndarray) and x.ndim else np.asarray(x).reshape(1)
    shape, strides = list(x.shape), list(x.strides)
    shape[dimension], strides[dimension] = (shape[dimension] - size) // step + 1, step * strides[dimension]
    root = x if x.flags.c_contiguous or not isinstance(x.base, np.ndarray) else x.base
    if root.flags.c_contiguous and root.flags.writeable and x.size:
        start = x.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return np.ndarray((*shape, size), x.dtype, root, start, (*strides, x.strides[dimension]))
    return np.lib.stride_tricks.as_strided(x, (*shape, size), (*strides, x.strides[dimension]), writeable=x.flags.writeable)


def strided(x: Any, geometry: Any) -> Any:
    if type(x) is Batched:
        return structure.strided(x, geometry)
    return geometry.read(x)


def strided_put(x: Any, piece: Any, geometry: Any) -> Any:
    if type(x) is Batched or type(piece) is Batched:
        return structure.strided_put(x + np.zeros_like(piece, shape=()) if type(piece) is Batched else x, piece, geometry)
    return geometry.write(x, piece)


def astype(x: Any, dtype: Any, source: Any = None) -> Any:
    """The values in another dtype; the real part for complex values and a real dtype. `source` is for carriers whose values have no dtype."""
    x = x.real if x.dtype.kind == "c" and np.dtype(dtype).kind != "c" else x
    if type(x) is np.ndarray and 0 in x.strides:  # torch and NumPy choose different memory orders for broadcast axes
        out = empty_like(x, dtype)
        np.copyto(out, x, casting="unsafe")
        return out
    return x.astype(dtype)


def copy(x: Any, order: str | tuple[int, ...] = "K") -> Any:
    """A copy with the memory order of `x` ("K"), in row-major order ("C"), or row-major for a permutation of the axes."""
    if isinstance(order, tuple) or order == "K" and type(x) is np.ndarray and 0 in x.strides:
        return structure.copy(x, order) if order != "K" else astype(x, x.dtype)
    return x.copy(order)


globals().update(_special_functions())
globals().update(_matrix_functions())
