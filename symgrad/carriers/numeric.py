"""The numeric carrier: NumPy values, computed in the form that keeps relative accuracy over the whole range."""

from __future__ import annotations

import builtins
import importlib
import math
from typing import Any

import numpy as np
from numpy import absolute as abs
from numpy import cosh, exp, exp2, log1p, reciprocal, sqrt, square

from symgrad.carriers import LATER as _LATER
from symgrad.carriers import recording as _recording  # noqa: F401  registers NumPy's functions
from symgrad.carriers import structure
from symgrad.carriers.batched import Batched, raw
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.elementwise import MANY, where
from symgrad.carriers.elementwise import WITH_RESIDUAL as WITH_RESIDUAL
from symgrad.carriers.elementwise import direction as direction
from symgrad.carriers.elementwise import hypot as hypot
from symgrad.carriers.recorded import NAMES, Recorded, of_data, word
from symgrad.carriers.reducing import all, amax, amin, any, argmax, argmin, centred, log_softmax, logsumexp, norm, reference, softmax
from symgrad.carriers.sinc import sinc_derivative
from symgrad.carriers.special.elementary import corrected, product_error
from symgrad.carriers.structure import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.structure import indicator
from symgrad.carriers.transfers import astype, broadcast_to, copy, diagonal, getitem, place, put, view
from symgrad.layouts.indices import check_ordered
from symgrad.system.numpy_internals import transforms

UFUNCS = ("arccos arccosh arcsin arcsinh arctan arctan2 arctanh ceil conjugate cos equal expm1 floor greater greater_equal isfinite isinf isnan less "
          "less_equal log log10 log2 logical_and logical_not logical_or not_equal sin sinh tan tanh trunc").split()
globals().update({NAMES.get(name, name): getattr(np, name) for name in UFUNCS})
pi = math.pi
ONE_STEP = frozenset(("pow", "maximum", "minimum", "where", "remainder", "floor_divide", "sign", "round", "relu"))  # rounded once by NumPy
REAL_NUMBERS = frozenset((float, int))


def sign(x: Any) -> Any:
    return x | x if x.dtype.kind == "b" else np.sign(check_ordered(x))


def round(x: Any) -> Any:
    """The nearest integers, halves to even; integers keep their dtype."""
    return +x if x.dtype.kind in "iu" else np.rint(x)


def _are_many_and_number(a: Any, b: Any) -> bool:
    """Whether many float64 numbers are compared with a number, which `np.clip` does in a third of the time of `np.maximum`, but for signs of 0."""
    return type(b) in REAL_NUMBERS and type(a) is np.ndarray and a.size >= MANY and a.dtype == np.float64


def maximum(a: Any, b: Any) -> Any:
    if _are_many_and_number(a, b) and (b or math.copysign(1.0, b) > 0):
        out = np.clip(a, b, math.inf)
        return out if b else np.add(out, 0.0, out=out)  # no -0
    y = np.maximum(a, b)
    return y if y.dtype.kind == "f" else check_ordered(y)


def minimum(a: Any, b: Any) -> Any:
    if _are_many_and_number(a, b) and b != 0:
        return np.clip(a, -math.inf, b)
    y = np.minimum(a, b)
    return y if y.dtype.kind == "f" else check_ordered(y)


def _in_dtype_of(y: Any, x: Any) -> Any:
    """`y` converted back to bfloat16 if `x` has that dtype, since arithmetic with Python numbers gives float32."""
    return y.astype(x.dtype) if x.dtype.kind == "V" else y


@word
def exp2_derivative(x: Any, order: int) -> Any:
    """d^n/dx^n of 2^x = 2^x log(2)^n, which is smaller than 2^x; computed as 2^(x - n) · 2^n log(2)^n where 2^x may overflow."""
    if type(x) is np.ndarray and x.size >= MANY and x.dtype == np.float64 and x.max() < 1024:
        y = exp2(x)
        return np.multiply(y, math.log(2.0) ** order, out=y)
    large = indicator(x > 2 * order, x)
    return _in_dtype_of(exp2(x - order * large) * ((1 + (2**order - 1) * large) * math.log(2.0) ** order), x)


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
    if type(x) is np.ndarray and x.size >= MANY and x.dtype == np.float64 and -700 < x.min() and x.max() < 700:
        y = cosh(x)
        return reciprocal(y, out=y)
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
    s = cosh(x)
    if not isinstance(s, np.ndarray):
        return square(reciprocal(s))
    return square(reciprocal(s, out=s), out=s)


def sigmoid(x: Any) -> Any:
    if type(x) is np.float64:
        z = math.exp(-math.fabs(x))
        return np.float64((z if x < 0 else 1.0) / (1 + z))
    if isinstance(x, DuckArray):
        return of_data("sigmoid", sigmoid, x)
    if x.dtype.kind == "c":
        z = exp(where(x.real < 0, x, -x))  # never infinite
        return where(x.real < 0, z, 1) / (1 + z)
    return exp(np.minimum(x, 0.0)) / (1.0 + exp(-abs(x)))


def sigmoid_slope(y: Any, x: Any) -> Any:
    """y (1 - y) for y = sigmoid(x), where 1 - y does not cancel."""
    return y * sigmoid(-x)


@word
def logsigmoid(x: Any) -> Any:
    return minimum(x, 0) - log1p(exp(-abs(x)))


@word
def logaddexp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)), of complex numbers with the imaginary part that the logarithm adds to that of the larger one."""
    try:
        return np.logaddexp(a, b)
    except TypeError:
        first = a.real >= b.real
        large, small = where(first, a, b), where(first, b, a)
        return large + log1p(exp(small - large))


@word
def softplus(x: Any, beta: float = 1.0) -> Any:
    """log(1 + exp(beta x)) / beta; only the part that is added to 0 or x is divided, since beta x may overflow."""
    if beta == 1:
        return _in_dtype_of(maximum(x, 0) + log1p(exp(-abs(x))), x)
    if isinstance(x, DuckArray):
        return x._with(softplus(x.data, beta))
    wide = np.asarray(check_ordered(x), np.float64)
    scaled = wide * beta
    rest = corrected(log1p(exp(-abs(scaled))), scaled, lambda places: product_error(wide.take(places), beta))
    return ((maximum if beta > 0 else minimum)(wide, 0) + rest / beta).astype(x.dtype, copy=False)


def pow(a: Any, b: Any) -> Any:
    """a**b; where an integer has a negative integer exponent it is 1 / a**|b| rounded towards zero."""
    try:
        return a ** b
    except ValueError:
        if not isinstance(b, (np.ndarray, np.generic)) or b.dtype.kind != "i" or np.all(b >= 0):
            raise
        inverse = np.where(np.abs(a) == 1, a ** (b & 1), 0)
        return np.where(b < 0, inverse, a ** np.maximum(b, 0)).astype(b.dtype)[()]


def relu(x: Any) -> Any:
    return maximum(x, 0)


BOOL = np.dtype(bool)


def _refuse_zero(a: Any, b: Any) -> None:
    """Refuse whole numbers divided by zero."""
    if np.result_type(a, b).kind in "biu" and not np.all(raw(b)):
        raise RuntimeError("integers are divided by zero (ZeroDivisionError); convert them with .double()")


def remainder(a: Any, b: Any) -> Any:
    if getattr(a, "dtype", BOOL).kind in "biu":
        _refuse_zero(a, b)
    return np.remainder(a, b)


def fmod(a: Any, b: Any) -> Any:
    if getattr(a, "dtype", BOOL).kind in "biu":
        _refuse_zero(a, b)
    return np.fmod(a, b)


def floor_divide(a: Any, b: Any) -> Any:
    _refuse_zero(a, b)
    return np.floor_divide(a, b)


@word
def one_minus_square(x: Any) -> Any:
    """1 - x², accurate near its roots; the imaginary part of complex numbers keeps the sign of its zero, which tells the side of a cut."""
    if getattr(getattr(x, "dtype", None), "kind", "") == "c":
        return -(x - 1) * (x - -1.0)
    return (1 - x) * (1 + x)


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
        raise TypeError(f"dft: the numbers must be complex, not {x.dtype}; the cotangents of real ones would be complex")
    if transforms is None:
        return (np.fft.ifft if inverse else np.fft.fft)(x, axis=dim, norm="forward" if inverse else "backward").astype(x.dtype, copy=False)
    return (transforms.ifft if inverse else transforms.fft)(x, 1, np.empty(x.shape, x.dtype), axes=[(dim,), (), (dim,)])


def flip(x: Any, dims: tuple[int, ...]) -> Any:
    if type(x) is np.ndarray:  # equal to the general case, and twice as fast
        reversed_dims = [d % x.ndim for d in dims]
        return copy(x[tuple([slice(None, None, -1) if i in reversed_dims else slice(None) for i in range(x.ndim)])])
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
    if isinstance(x, DuckArray):
        return structure.strided(x, geometry)
    return geometry.read(x)


def strided_put(x: Any, piece: Any, geometry: Any) -> Any:
    if isinstance(x, DuckArray) or isinstance(piece, DuckArray):
        return structure.strided_put(x + np.zeros_like(piece, shape=()) if type(piece) is Batched else x, piece, geometry)
    return geometry.write(x, piece)


def __getattr__(name: str) -> Any:
    """The functions of modules that are imported when one of them is first asked for."""
    for module, names in _LATER.items():
        if name in names:
            globals().update(importlib.import_module(f"symgrad.carriers.{module}").of_arrays())
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
