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
FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy's functions on recorded values, registered by `recording`


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method that computes a function of the elements."""
    return lambda self, *args: function(self.recorder.read(self), *args)


def _reduction(ufunc: Any) -> Callable[..., Any]:
    """The method that reduces the value along axes."""
    return lambda self, axis=None, keepdims=False, dtype=None: reduced(ufunc, self, axis, keepdims, dtype)


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
    def is_transposed(self) -> bool:
        """Whether this is a matrix with its rows and columns exchanged."""
        return self.entry.name == "permute" and self.entry.params == ((1, 0),)

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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a recorded value has no attribute {name!r}")
        raise Unrecordable(f"the attribute {name} of an array")

    # The elements, which the recorder computes and compares in every run

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.recorder.array(self, dtype)

    __bool__, __float__, __int__, __complex__, __index__, nonzero = map(_reading, (bool, float, int, complex, operator.index, np.nonzero))
    item, tolist = _reading(lambda x, *at: x.item(*at)), _reading(lambda x: x.tolist())

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if any([type(x) is Batched for x in inputs]):
            return NotImplemented
        if method == "reduce":
            return reduced(ufunc, *inputs, out=out, **kwargs)
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
            found = FUNCTIONS[np.matmul](*inputs)
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
        return FUNCTIONS[np.matmul](self, other)

    def __getitem__(self, index: Any) -> Any:
        return self.recorder.emit_index("getitem", (self,), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.entry = self.emit_put(index, value, False).entry

    sum, any, all, max, min = map(_reduction, (np.add, np.logical_or, np.logical_and, np.maximum, np.minimum))

    def emit_put(self, index: Any, value: Any, accumulate: bool) -> Any:
        """The value with others written at an index, or added there."""
        if type(value) is Batched:
            raise Unrecordable("a batched value written into one that is not")
        return self.recorder.emit_index("put", (self, value), index, accumulate)


def _operator(name: str, ufunc: Any, reflected: bool) -> None:
    accepted = (Recorded, np.ndarray, float, int, bool, complex)
    found = NAMES.get(ufunc.__name__, ufunc.__name__)

    def emit(self: Recorded, a: Any, b: Any) -> Any:
        return self.recorder.emit_ufunc(found, ufunc, (a, b)) if found in WORDS else ufunc(a, b)

    def forward(self: Recorded, other: Any) -> Any:
        return emit(self, self, other) if type(other) in accepted or isinstance(other, np.generic) else NotImplemented

    def backward(self: Recorded, other: Any) -> Any:
        return emit(self, other, self) if type(other) in accepted or isinstance(other, np.generic) else NotImplemented

    setattr(Recorded, f"__{name}__", forward)
    if reflected:
        setattr(Recorded, f"__r{name}__", backward)


for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide), ("pow", np.power),
                      ("floordiv", np.floor_divide), ("mod", np.remainder), ("and", np.bitwise_and), ("or", np.bitwise_or),
                      ("xor", np.bitwise_xor), ("matmul", np.matmul)):
    _operator(_name, _ufunc, True)
for _name, _ufunc in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
    _operator(_name, _ufunc, False)
Recorded.__hash__ = None
Recorded.__abs__ = lambda self: np.absolute(self)
Recorded.__neg__ = lambda self: np.negative(self)
Recorded.__pos__ = lambda self: self
Recorded.__invert__ = lambda self: np.invert(self)


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


def reduced(ufunc: Any, x: Any, axis: Any = 0, keepdims: bool = False, dtype: Any = None, out: Any = None, initial: Any = None,
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
