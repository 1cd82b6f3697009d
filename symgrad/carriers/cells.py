"""`Cells`: object arrays for the values of the symbolic, the precise and the ball carrier.

For object arrays NumPy returns a bare element from a reduction or a 0-d operation, and accepts plain numbers as elements.
For `Cells` the results of operations are `Cells` of the same class, and numbers are converted to elements of the class.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from symgrad.carriers import CONVOLUTIONS, MATRIX_WORDS
from symgrad.carriers.batched import Batched, raw
from symgrad.carriers.convolving import of_carrier as _convolutions
from symgrad.carriers.matrices import of_cells as _matrix_functions
from symgrad.carriers.resampling import of_carrier as _resampling
from symgrad.carriers.structure import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.structure import stack, sum, zeros_like

# ruff: noqa: F405  some of these names are imported from structure
__all__ = [
    "add", "all", "amax", "amin", "any", "astype", "batch", "broadcast_to", "cat", "centred", "copy", "cumprod", "cumsum", "dft", "diag", "diagonal",
    "diagonal_place", "div", "dot", "einsum", "exp2_derivative", "eye_like", "flip", "floor_divide", "fmod", "getitem", "hypot", "indicator",
    "log10", "log2", "log_derivative", "log_softmax", "logsigmoid", "logsumexp", "matmul", "mm", "mul", "mv", "neg", "norm", "one_minus_square",
    "ones_like", "permute", "place", "pow", "prod", "put", "reciprocal", "reference", "relu", "reshape", "roll", "rsqrt", "sech_square",
    "sigmoid", "sigmoid_slope", "softplus", "square", "stack", "strided", "strided_add", "strided_put", "sub", "sum", "sum_to_size", "trace",
    "tril", "triu", "trunc", "unbatch", "unfold", "view", "view_as_complex", "view_as_real", "zeros_like",
    *CONVOLUTIONS, "resample", *MATRIX_WORDS,
]

FILLS = {np.zeros_like: 0, np.ones_like: 1}


class Cells(np.ndarray):
    """An array of objects, of any number of dimensions, closed under the operations of a carrier.

    A subclass defines the conversion of a number to an element (`number`), the functions that reduce a list of elements in place of a ufunc
    (`folds`), the elementwise functions in place of ufuncs (`ufuncs`), the functions for real and imaginary parts (`complex_parts`), and
    `may_be_complex`. `carrier` is the module of the functions on these cells.
    """

    carrier: ClassVar[Any]
    complex_parts: ClassVar[tuple[Any, Any]]
    folds: ClassVar[dict[Any, Callable[[list], Any]]] = {}
    ufuncs: ClassVar[dict[Any, Any]] = {}

    @staticmethod
    def number(x: Any) -> Any:
        """A Python number as an element; other objects, which are elements, unchanged."""
        return x

    @staticmethod
    def may_be_complex(x: Any) -> bool:
        """Whether an element may be a complex number."""
        return False

    @property
    def complex(self) -> bool:
        """Whether an element may be a complex number."""
        return builtins.any(map(self.may_be_complex, self.ravel().tolist()))

    @classmethod
    def lift(cls, value: Any) -> Any:
        """Cells of a number, an element or an array of either; a batched argument gives a batched result. Cells are returned unchanged."""
        if isinstance(value, Cells):
            return value
        if isinstance(value, Batched):
            return Batched(cls.lift(value.data), value.level)
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind == "O":
                return value.view(cls)
            plain = np.asarray(value if value.dtype.kind in "biufc" else value.astype(np.float64))
            elements = [cls.number(x) for x in plain.ravel().tolist()]
            return cls.fill(elements, plain.shape)
        return cls.fill([cls.number(value)], ())

    @classmethod
    def fill(cls, elements: Sequence[Any], shape: tuple[int, ...]) -> Any:
        """Cells of a shape from the elements in order."""
        if not shape:
            one = np.empty((), object)
            one[()] = elements[0]
            return one.view(cls)
        out = np.empty(len(elements), object)
        for i, element in enumerate(elements):
            out[i] = element
        return out.reshape(shape).view(cls)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if Batched in map(type, inputs):
            return NotImplemented  # the batch computes with the cells that are its data
        cls = type(self)
        if method == "reduce" and ufunc in cls.folds:
            return fold(cls.folds[ufunc], self, kwargs.get("axis", 0), kwargs.get("keepdims", False))
        if method == "at":
            return ufunc.at(self.view(np.ndarray), inputs[1], cls.lift(inputs[2]).view(np.ndarray))
        arrays = [cls.lift(x).view(np.ndarray) for x in inputs]
        result = cls.lift(getattr(cls.ufuncs.get(ufunc, ufunc), method)(*arrays, **kwargs))
        if out is None or out[0] is None:
            return result
        out[0][...] = result
        return out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if Batched in types:
            return NotImplemented
        cls = type(self)
        if func in FILLS:
            shape = kwargs.get("shape")
            shape = args[0].shape if shape is None else shape
            return cls.fill([cls.number(FILLS[func])] * math.prod(shape), shape)
        result = super().__array_function__(func, types, args, kwargs)
        return cls.lift(result) if isinstance(result, np.ndarray) else result

    def __getitem__(self, index: Any) -> Any:
        out = super().__getitem__(index)
        return out if isinstance(out, np.ndarray) else self.fill([out], ())

    def __setitem__(self, index: Any, value: Any) -> None:
        value = self.lift(value)
        super().__setitem__(index, value if value.ndim else value.item())


def each(function: Any, arity: int = 1) -> Any:
    """A function of elements as a function of cells."""
    return np.frompyfunc(function, arity, 1)


def fold(function: Callable[[list], Any], x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Cells reduced along `dim` (an axis, several, or None for all) by a function of the list of elements."""
    dims = tuple(range(x.ndim)) if dim is None else tuple(d % x.ndim for d in (dim if isinstance(dim, tuple) else (dim,)))
    kept = tuple(i for i in range(x.ndim) if i not in dims)
    rows = x.transpose(kept + dims).reshape(math.prod(x.shape[i] for i in kept), math.prod(x.shape[i] for i in dims)).tolist()
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape)) if keepdim else tuple(x.shape[i] for i in kept)
    return type(x).fill([function(row) for row in rows], shape)


def sinc_recurrence(sine: Any, cosine: Any, u: Any, order: int) -> Any:
    """The derivative of sin(u)/u of an order, by the recurrence that follows from sin(u) = u · sin(u)/u."""
    value = sine / u
    for i in range(1, order + 1):
        value = ((sine, cosine, -sine, -cosine)[i % 4] - i * value) / u
    return value


def sinc_digits(mp: Any, u: Any, sine: Any, cosine: Any, order: int) -> Any:
    """The derivative of sin(u)/u of an order in numbers of mpmath: the power series where its terms stay small, else the recurrence."""
    size = builtins.abs(u)
    if size > (order + 4 if order else 0):  # of order 0 it is exact at the zeros of the sine
        return sinc_recurrence(sine, cosine, u, order)
    total, k = mp.zero, (order + 1) // 2
    while True:
        power = 2 * k - order
        term = (-1) ** k * u**power / (mp.factorial(power) * (2 * k + 1))
        total += term
        if power > size and builtins.abs(term) <= mp.ldexp(builtins.abs(total), -mp.prec):
            return total
        k += 1


def sinc_of_ball(u: Any, sine: Any, cosine: Any, order: int) -> Any:
    """The same of balls, ∫₀¹ tⁿ cos⁽ⁿ⁾(ut) dt: a hypergeometric series where u is small, else the recurrence."""
    if builtins.abs(u) < order + 4:
        odd, ball = order % 2, type(u)
        a = order + 1 + odd
        series = (-(u * u).nonnegative_part() / 4).hypgeom([ball(a) / 2], [ball(0.5 + odd), ball(a) / 2 + 1])
        return (-1) ** ((order + 1) // 2) * (u if odd else 1) * series / a
    return sinc_recurrence(sine, cosine, u, order)


def matmul(a: Any, b: Any) -> Any:
    left, right = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    out = sum(left[..., None] * right[..., None, :, :], -2)
    out = out if b.ndim > 1 else out[..., 0]
    return out if a.ndim > 1 else out[0] if b.ndim == 1 else out[..., 0, :]


mm = mv = dot = matmul


def centred(x: Any, dim: Sequence[int]) -> Any:
    """The distance of every element from the mean along `dim`."""
    return x - sum(x, tuple(dim), True) / (math.prod(x.shape[i] for i in dim) or math.nan)


def einsum(equation: str, xs: Sequence[Any]) -> Any:
    """All operands broadcast over all letters, multiplied, and summed over the letters that are not in the output."""
    left, _, right = equation.partition("->")
    letters = "".join(dict.fromkeys(right + left.replace(",", "")))
    out: Any = 1
    for term, x in zip(left.split(","), xs):
        for letter in dict.fromkeys(term):
            while term.count(letter) > 1:
                i = term.index(letter)
                k = term.index(letter, i + 1)
                x, term = np.diagonal(x, axis1=i, axis2=k), term[:i] + term[i + 1:k] + term[k + 1:] + letter
        x = x.transpose([term.index(c) for c in letters if c in term])
        out = out * x[tuple(slice(None) if c in term else None for c in letters)]
    return sum(out, tuple(range(len(right), len(letters))))


def dft(x: Any, dim: int, inverse: bool) -> Any:
    """The discrete Fourier transform by its sum."""
    xp, n, order = raw(x).carrier, x.shape[dim], [i for i in range(x.ndim) if i != dim]
    angle = xp.acos(xp.lift_value(-1)) * 2 / n
    quarters = xp.lift_value(np.array([1, 1j, -1, -1j]))
    roots = stack([quarters[4 * k // n] if 4 * k % n == 0 else xp.cos(angle * k) + xp.sin(angle * k) * 1j for k in range(n)], 0)
    rows = np.outer(range(n), range(n)) * (1 if inverse else -1) % n
    return np.moveaxis(sum(x.transpose((*order, dim))[..., None, :] * roots[rows], -1), -1, dim)


def tril(x: Any, diagonal: int = 0) -> Any:
    return _masked(x, np.tri(*x.shape[-2:], diagonal, dtype=bool))


def triu(x: Any, diagonal: int = 0) -> Any:
    return _masked(x, ~np.tri(*x.shape[-2:], diagonal - 1, dtype=bool))


def _masked(x: Any, mask: Any) -> Any:
    out = x.copy()
    out[..., ~mask] = 0
    return out


def astype(x: Any, dtype: Any, source: Any = None) -> Any:
    """The unchanged values, except for conversions between real and complex dtypes: elements have no machine dtype."""
    complex, before = (np.dtype(d).kind == "c" for d in (dtype, dtype if source is None else source))
    if complex == before:
        return x
    return x + 0j if complex else each(raw(x).complex_parts[0])(x)


# Reductions, by the `folds` of a class


def _reduction(ufunc: Any) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: ufunc.reduce(x, axis=dim, keepdims=keepdim)


all, any, amax, amin, logsumexp = map(_reduction, (np.logical_and, np.logical_or, np.maximum, np.minimum, np.logaddexp))


# Functions defined by others of the same carrier. A carrier overrides one if the formula loses digits, widens a ball or is less readable


def _derived(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the protocol from a formula (xp, x, ...), where `xp` is the carrier of `x`."""
    return lambda x, *args, **options: formula(raw(x).carrier, x, *args, **options)


indicator = _derived(lambda xp, condition, like: xp.where(condition, 1, 0))
square, reciprocal = _derived(lambda xp, x: x * x), _derived(lambda xp, x: 1 / x)
rsqrt = _derived(lambda xp, x: xp.reciprocal(xp.sqrt(x)))
log2, log10 = (_derived(lambda xp, x, base=base: xp.log(x) / xp.log(xp.lift_value(base))) for base in (2, 10))
exp2_derivative = _derived(lambda xp, x, order: xp.exp2(x) * xp.log(xp.lift_value(2)) ** int(order))
log_derivative = _derived(lambda xp, x, base: xp.reciprocal(x * xp.log(xp.lift_value(int(base)))))
sech_square = _derived(lambda xp, x: xp.square(xp.sech(x)))
sigmoid = _derived(lambda xp, x: xp.reciprocal(1 + xp.exp(-x)))
sigmoid_slope = _derived(lambda xp, y, x: xp.sech_square(x / 2) / 4)
softplus = _derived(lambda xp, x, beta=1.0: xp.log1p(xp.exp(x * beta)) / beta)
logsigmoid = _derived(lambda xp, x: -xp.softplus(-x))
relu = _derived(lambda xp, x: xp.maximum(x, 0))
one_minus_square = _derived(lambda xp, x: (1 - x) * (1 + x))
trunc = _derived(lambda xp, x: xp.sign(x) * xp.floor(xp.abs(x)))
hypot = _derived(lambda xp, a, b: xp.sqrt(xp.square(a) + xp.square(b)))
floor_divide = _derived(lambda xp, a, b: xp.floor(a / b))
fmod = _derived(lambda xp, a, b: a - b * xp.trunc(a / b))
log_softmax = _derived(lambda xp, x, dim: x - xp.logsumexp(x, dim, True))
norm = _derived(lambda xp, x, dim=None, keepdim=False: xp.sqrt(sum(xp.square(xp.abs(x)), dim, keepdim)))
view_as_real = _derived(lambda xp, x: stack([each(part)(x) for part in raw(x).complex_parts], x.ndim))
view_as_complex = _derived(lambda xp, x: x[..., 0] + x[..., 1] * 1j)


def reference(g: Any, y: Any, dim: Any) -> Any:
    """0, since exact values need no shift against cancellation."""
    return zeros_like(g, tuple(1 if i in dim else n for i, n in enumerate(g.shape)))


globals().update(_matrix_functions() | _convolutions(lambda x, y: raw(x if isinstance(raw(x), Cells) else y).carrier))
resample = _resampling(lambda x: raw(x).carrier)
