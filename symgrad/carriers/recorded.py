"""Recorded values: the shape and the dtype of a value that a program will compute, on which rules work unchanged.

A `Recorded` is a duck array, like `Batched`, which may hold one as its data: NumPy's operators, ufuncs and functions on it are recorded as words of
the carriers' protocol by its recorder. It has no elements. Where a function reads some, as `if x > 0` does, the recorder computes them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, raw
from symgrad.carriers.duck import DuckArray, Unrecordable

__all__ = ["Recorded", "is_recorded", "of_data", "word"]

# NumPy's ufuncs whose words have another name; the others have the same name
NAMES = {"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "power": "pow", "absolute": "abs",
         "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2",
         "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "rint": "round",
         "conjugate": "conj", "float_power": "pow"}
LOGICAL = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "ne", "invert": "logical_not"}
WORDS = frozenset((
    "add sub mul div neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh floor ceil round trunc pow atan2 hypot logaddexp maximum minimum remainder fmod floor_divide conj eq ne lt le gt ge logical_and "
    "logical_or logical_not isfinite isnan isinf").split())
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin", "logical_or": "any", "logical_and": "all"}
NUMBERS = (float, int, bool, complex)


class Recorded(DuckArray):
    """A value in a program that is being recorded: its entry there, and the recorder."""

    __slots__ = ("entry", "recorder")

    def __init__(self, entry: Any, recorder: Any):
        self.entry, self.recorder = entry, recorder

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.entry.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.entry.shape)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.entry.dtype

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the value in row-major order."""
        out, step = [], self.dtype.itemsize
        for n in reversed(self.shape):
            out.append(step)
            step *= n
        return tuple(reversed(out))

    @property
    def real(self) -> Any:
        """The real parts."""
        return self.astype(np.zeros(0, self.dtype).real.dtype) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.emit("view_as_real")[..., 1] if self.dtype.kind == "c" else np.zeros_like(self)

    def emit(self, name: str, *params: Any) -> Any:
        """The word of a name applied to the value."""
        return self.recorder.emit(name, (self,), params)

    def __repr__(self) -> str:
        return f"Recorded(shape={list(self.shape)}, dtype={self.dtype})"

    # The elements, which the recorder computes and compares in every run

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.recorder.read(self), dtype)

    def __bool__(self) -> bool:
        return bool(self.recorder.read(self))

    def __float__(self) -> float:
        return float(self.recorder.read(self))

    def __int__(self) -> int:
        return int(self.recorder.read(self))

    def __complex__(self) -> complex:
        return complex(self.recorder.read(self))

    def __index__(self) -> int:
        return operator.index(self.recorder.read(self))

    def item(self, *at: Any) -> Any:
        """An element as a Python number."""
        return self.recorder.read(self).item(*at)

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.recorder.read(self).tolist()

    def nonzero(self) -> Any:
        """The positions of the elements that are not zero."""
        return np.nonzero(self.recorder.read(self))

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if any([type(x) is Batched for x in inputs]):
            return NotImplemented
        if method == "reduce":
            return _reduced(ufunc, *inputs, out=out, **kwargs)
        if method == "at":
            target, index, *values = inputs
            if ufunc is not np.add or type(target) is not Recorded:
                raise Unrecordable(f"{ufunc.__name__}.at")
            target.entry = target.emit_put(index, values[0], True).entry
            return None
        kwargs.pop("casting", None)
        if method != "__call__" or kwargs.keys() - {"dtype", "where"} or kwargs.get("where", True) is not True:
            raise Unrecordable(f"numpy.{ufunc.__name__}.{method}")
        if ufunc is np.matmul:
            found = _matmul(*inputs)
        else:
            found = self.recorder.emit_ufunc(_word_of(ufunc, inputs), ufunc, inputs)
        if kwargs.get("dtype") is not None:
            found = found.astype(kwargs["dtype"])
        return found if out is None else _written(out[0], found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if Batched in types:
            return NotImplemented
        handled = FUNCTIONS.get(function)
        if handled is None:
            raise Unrecordable(f"numpy.{function.__name__}")
        return handled(*args, **kwargs)

    # Layout

    def reshape(self, *shape: Any) -> Any:
        """The value in another shape."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        shape = tuple(map(operator.index, shape))
        if -1 in shape:
            known = math.prod(n for n in shape if n != -1)
            shape = tuple(self.size // known if n == -1 and known else n for n in shape)
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {shape}")
        return self.emit("reshape", shape)

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order."""
        axes = axes[0] if len(axes) == 1 and (isinstance(axes[0], (tuple, list)) or axes[0] is None) else axes
        axes = tuple(reversed(range(self.ndim))) if not axes else tuple(operator.index(a) % self.ndim for a in axes)
        return self.emit("permute", axes)

    def copy(self, order: Any = "K") -> Any:
        """Another object with the same entry, which a write does not change."""
        return Recorded(self.entry, self.recorder)

    def astype(self, dtype: Any, copy: bool = True, **kwargs: Any) -> Any:
        """The value in another dtype."""
        return self.emit("astype", np.dtype(dtype))

    def conjugate(self) -> Any:
        """The complex conjugates."""
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conj = conjugate

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """The diagonal of two axes as a new last one."""
        return self.emit("diagonal", offset, axis1 % self.ndim, axis2 % self.ndim)

    def dot(self, other: Any) -> Any:
        """The product with a vector or a matrix."""
        return _matmul(self, other)

    def __getitem__(self, index: Any) -> Any:
        return self.recorder.emit_index("getitem", (self,), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.entry = self.emit_put(index, value, False).entry

    def emit_put(self, index: Any, value: Any, accumulate: bool) -> Any:
        """The value with others written at an index, or added there."""
        if type(value) is Batched:
            raise Unrecordable("a batched value written into one that is not")
        return self.recorder.emit_index("put", (self, value), index, accumulate)

    def __abs__(self) -> Any:
        return np.absolute(self)

    def __neg__(self) -> Any:
        return np.negative(self)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return np.invert(self)


def _operator(name: str, ufunc: Any, reflected: bool) -> None:
    accepted = (Recorded, np.ndarray, float, int, bool, complex)

    def forward(self: Recorded, other: Any) -> Any:
        return ufunc(self, other) if type(other) in accepted or isinstance(other, np.generic) else NotImplemented

    def backward(self: Recorded, other: Any) -> Any:
        return ufunc(other, self) if type(other) in accepted or isinstance(other, np.generic) else NotImplemented

    setattr(Recorded, f"__{name}__", forward)
    if reflected:
        setattr(Recorded, f"__r{name}__", backward)


for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide), ("pow", np.power),
                      ("floordiv", np.floor_divide), ("mod", np.remainder), ("and", np.bitwise_and), ("or", np.bitwise_or),
                      ("xor", np.bitwise_xor), ("matmul", np.matmul)):
    _operator(_name, _ufunc, True)
for _name, _ufunc in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
    _operator(_name, _ufunc, False)
Recorded.__hash__ = None  # type: ignore[assignment]


def is_recorded(x: Any) -> bool:
    """Whether a value, or the data of a batch, is recorded."""
    return isinstance(x, DuckArray) and type(raw(x)) is Recorded


def word(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a carrier that is recorded as one word, not as the NumPy functions that it consists of."""
    name = function.__name__

    @functools.wraps(function)
    def call(x: Any, *rest: Any, **words: Any) -> Any:
        if type(x) is Recorded and not any([isinstance(a, DuckArray) for a in rest]):
            return x.recorder.emit(name, (x,), (*rest, *words.values()))
        return function(x, *rest, **words)

    return call


def of_data(name: str, function: Callable[..., Any], x: Any) -> Any:
    """A unary elementwise function of a duck array: the word of a recorded value, the function of the data of a batch."""
    return x.emit(name) if type(x) is Recorded else x._with(function(x.data))


def _word_of(ufunc: Any, inputs: Sequence[Any]) -> str:
    name = NAMES.get(ufunc.__name__, ufunc.__name__)
    if name in LOGICAL and all([x.dtype.kind == "b" if hasattr(x, "dtype") else type(x) is bool for x in inputs]):
        name = LOGICAL[name]
    if name not in WORDS:
        raise Unrecordable(f"numpy.{ufunc.__name__}")
    return name


def _reduced(ufunc: Any, x: Any, axis: Any = 0, keepdims: bool = False, dtype: Any = None, out: Any = None, initial: Any = None,
             where: Any = True) -> Any:
    name = REDUCTIONS.get(ufunc.__name__)
    if name is None or where is not True or out is not None and out[0] is not None:
        raise Unrecordable(f"{ufunc.__name__}.reduce")
    if dtype is not None and np.dtype(dtype) != x.dtype:
        x = x.astype(dtype)
    if name in ("any", "all") and x.dtype.kind != "b":
        x = x != 0
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis) if isinstance(axis, (tuple, list)) else (axis % max(x.ndim, 1),)
    if not x.ndim:
        axes = ()
    if name in ("amax", "amin") and initial is None and 0 in [x.shape[i] for i in axes]:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    return x.emit(name, axes, bool(keepdims))


def _written(target: Any, found: Any) -> Any:
    if type(target) is not Recorded:
        raise Unrecordable("a result that is written into an array")
    target.entry = found.astype(target.dtype).entry
    return target


def _matmul(a: Any, b: Any) -> Any:
    on = a if type(a) is Recorded else b
    return on.recorder.emit("matmul", (a, b), ())


def _recorder(xs: Any) -> Any:
    return next(x.recorder for x in xs if type(x) is Recorded)


def _where(condition: Any, *values: Any) -> Any:
    if len(values) != 2:
        raise Unrecordable("numpy.where without values")
    return _recorder((condition, *values)).emit_where(condition, *values)


def _without_ellipses(equation: str, xs: Sequence[Any]) -> str:
    """A subscript string with letters in place of ellipses, and with its result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        right = "..." * ("..." in left) + "".join(sorted(c for c in set(left) - set(",.") if left.count(c) == 1))
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in equation]
    counts = [x.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, xs)]
    letters = "".join(free[:max(counts)])
    spelled = [term.replace("...", letters[len(letters) - n:]) for term, n in zip(terms, counts)]
    return ",".join(spelled) + "->" + right.replace("...", letters)


def _like(value: int) -> Callable[..., Any]:
    def like(x: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
        shape = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        return x.recorder.constant(np.broadcast_to(np.full((), value, x.dtype if dtype is None else dtype), shape))

    return like


def _joined(name: str) -> Callable[..., Any]:
    def join(xs: Sequence[Any], axis: int = 0, **kwargs: Any) -> Any:
        ndim = max([x.ndim for x in xs]) + (name == "stack")
        return _recorder(xs).emit(name, tuple(xs), (axis % ndim,))

    return join


def _along(name: str) -> Callable[..., Any]:
    def along(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if name in ("cumsum", "cumprod"):
            return x.ravel().emit(name, 0) if axis is None else x.emit(name, axis % max(x.ndim, 1))
        return x.emit(name, None if axis is None else axis % max(x.ndim, 1), bool(keepdims))

    return along


def _moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of axes after some were moved."""
    froms, tos = ([a % ndim for a in np.atleast_1d(at).tolist()] for at in (source, destination))
    order = [a for a in range(ndim) if a not in froms]
    for to, a in sorted(zip(tos, froms)):
        order.insert(to, a)
    return tuple(order)


def _swapaxes(x: Any, a: int, b: int) -> Any:
    order = list(range(x.ndim))
    order[a % x.ndim], order[b % x.ndim] = b % x.ndim, a % x.ndim
    return x.transpose(tuple(order))


def _diag(x: Any, k: int = 0) -> Any:
    return x.diagonal(k) if x.ndim == 2 else x.emit("diagonal_place", k, None)


def _take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    axis, places = axis % x.ndim, list(np.ix_(*map(np.arange, indices.shape)))
    places[axis] = indices
    return _recorder((x, indices)).emit_index("getitem", (x,), tuple(places))


def _flip(x: Any, axis: Any = None) -> Any:
    return x.emit("flip", tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in np.atleast_1d(axis).tolist()))


def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    return x.ravel().emit("roll", shift, 0).reshape(x.shape) if axis is None else x.emit("roll", shift, axis)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where, np.zeros_like: _like(0), np.ones_like: _like(1), np.empty_like: _like(0),
    np.concatenate: _joined("cat"), np.stack: _joined("stack"), np.matmul: _matmul, np.dot: _matmul,
    np.einsum: lambda equation, *xs, optimize=False: _recorder(xs).emit("einsum", xs, (_without_ellipses(equation, xs),)),
    np.broadcast_to: lambda x, shape, subok=False: x.emit("broadcast_to", (shape,) if isinstance(shape, int) else tuple(shape)),
    np.reshape: lambda x, shape, **kwargs: x.reshape(shape), np.ravel: lambda x, order="C": x.ravel(),
    np.transpose: lambda x, axes=None: x.transpose(*(() if axes is None else (tuple(axes),))), np.swapaxes: _swapaxes,
    np.moveaxis: lambda x, source, destination: x.transpose(_moved(x.ndim, source, destination)),
    np.expand_dims: lambda x, axis: x.reshape(np.expand_dims(np.empty(x.shape, np.bool_), axis).shape),
    np.squeeze: lambda x, axis=None: x.squeeze(axis), np.diag: _diag, np.take_along_axis: _take_along_axis, np.flip: _flip, np.roll: _roll,
    np.diagonal: lambda x, offset=0, axis1=0, axis2=1: x.diagonal(offset, axis1, axis2),
    np.tril: lambda x, k=0: x.emit("tril", k), np.triu: lambda x, k=0: x.emit("triu", k),
    np.cumsum: _along("cumsum"), np.cumprod: _along("cumprod"), np.argmax: _along("argmax"), np.argmin: _along("argmin"),
    np.sum: lambda x, axis=None, **kwargs: _reduced(np.add, x, axis, **kwargs), np.prod: lambda x, axis=None, **kwargs: _reduced(np.multiply, x, axis,
                                                                                                                              **kwargs),
    np.all: lambda x, axis=None, keepdims=False: _reduced(np.logical_and, x, axis, keepdims),
    np.any: lambda x, axis=None, keepdims=False: _reduced(np.logical_or, x, axis, keepdims),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size, np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *xs: np.result_type(*(x.dtype if type(x) is Recorded else x for x in xs)),
    np.may_share_memory: lambda a, b: False, np.shares_memory: lambda a, b: False, np.copy: lambda x, *rest, **kwargs: x.copy(),
    np.clip: lambda x, low=None, high=None, **kwargs: _clipped(x, low, high), np.real: lambda x: x.real,
    np.broadcast_arrays: lambda *xs, subok=False: tuple(np.broadcast_to(x, np.broadcast_shapes(*[np.shape(x) for x in xs])) for x in xs),
    np.choose: lambda which, choices: functools.reduce(lambda rest, k: np.where(which == k, choices[k], rest), reversed(range(len(choices) - 1)),
                                                       choices[-1]),
}


def _clipped(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)
