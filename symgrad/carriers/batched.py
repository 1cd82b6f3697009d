"""Batched values: arrays with a hidden leading axis for the members of a batch, on which rules work unchanged.

A `Batched` is a duck array. NumPy's operators, ufuncs and functions act on the axes behind the hidden axis, so that every carrier computes
a rule for all members at once: this implements `vmap`, and batches of tangents or cotangents. The hidden axis belongs to a level;
a later level wraps an earlier one, and a value that is not batched at a level is equal for all its members.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.contracting import added
from symgrad.carriers.duck import DuckArray, unbatchable
from symgrad.system.frames import line_of, outer_frame

new_level = itertools.count(1).__next__
NUMBERS = (float, int, np.float64, complex, bool)
FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy's functions and Python's operators on batched values, registered by `batching`


class Shape(tuple):
    """The shape of a batched value. It equals only shapes with the same hidden axes, so that sums over hidden axes are not skipped."""

    levels: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return type(other) is Shape and self.levels == other.levels and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def _unsupported(what: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise unbatchable(f"vmap: {what} of a tensor inside vmap depends on the data of each member of the batch; use symgrad.where in place of "
                          f"an if and symgrad.stack in place of filling an array, symgrad.func.foreign for a function of arrays, or take the value "
                          f"outside of vmap\n    {line_of(outer_frame(1))}")

    return refuse


def _reduction(ufunc: Any) -> Callable[..., Any]:
    """The method that reduces each member along axes."""
    return lambda self, axis=None, keepdims=False, dtype=None: ufunc.reduce(self, axis=axis, keepdims=keepdims, dtype=dtype)


def _unit(product: Any, factors: Sequence[Any]) -> int | None:
    """The index of the first member if a recorded product is its factor of unit vectors, as with 1."""
    recorder = getattr(product, "recorder", None)
    return None if recorder is None else next((x.unit for x in factors if type(x) is Batched and x.unit is not None and type(x.data) is not Batched
                                               and recorder.entry(x.data) is product.entry), None)


class Batched(DuckArray):
    """A value for each member of a batch, `data[i]` for the i-th; shape, axes and indices are those of one member."""

    __slots__ = ("data", "level", "unit", "_shape")
    data: Any
    level: int
    unit: int | None  # the index of the first member if the members are consecutive unit vectors

    def __init__(self, data: Any, level: int, unit: int | None = None):
        self.data, self.level, self.unit = data, level, unit

    # The attributes of a member

    @property
    def shape(self) -> Shape:
        """The shape of a member, with the levels of the hidden axes."""
        try:
            return self._shape
        except AttributeError:
            below = self.data.shape
            out = Shape(tuple.__getitem__(below, slice(1, None)))
            out.levels = (self.level, *getattr(below, "levels", ()))
            self._shape = out
            return out

    @property
    def ndim(self) -> int:
        """The number of dimensions of a member."""
        return self.data.ndim - 1

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """The size of the batch in bytes."""
        return self.data.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of a member."""
        return self.data.strides[1:]

    @property
    def count(self) -> int:
        """The number of members."""
        return self.data.shape[0]

    @property
    def real(self) -> Any:
        """The real parts."""
        return self._with(self.data.real)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self._with(self.data.imag)

    def _with(self, data: Any) -> Batched:
        return Batched(data, self.level)

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, {self.data!r})"

    __bool__ = _unsupported("the truth value")
    __float__ = __int__ = __index__ = __complex__ = item = tolist = _unsupported("the number")
    __array__ = _unsupported("the plain array")
    __array_interface__ = property(_unsupported("the memory"))
    nonzero = _unsupported("the positions of nonzero elements")

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        level = max(x.level for x in (*inputs, *(out or ())) if type(x) is Batched)
        if ufunc is np.matmul:
            return FUNCTIONS[np.matmul](*inputs)
        if method == "reduce" or method == "accumulate":
            (x,) = inputs
            axis = kwargs.pop("axis", 0)
            if type(kwargs.get("where")) is Batched:
                kwargs["where"] = kwargs["where"].data
            axes = data_axes(axis, x.ndim)
            if ufunc is np.add and method == "reduce" and kwargs.keys() <= {"keepdims"}:
                return Batched(added(x.data, axes, **kwargs), level)
            return Batched(getattr(ufunc, method)(x.data, axis=axes, **kwargs), level)
        if method == "at":
            return FUNCTIONS["at"](ufunc, *inputs)
        if method != "__call__":
            return NotImplemented
        if out is not None:
            kwargs["out"] = tuple(x.data if type(x) is Batched and x.level == level else x for x in out)
        ndim = max(x.ndim if hasattr(x, "ndim") else 0 for x in inputs)
        found = ufunc(*(aligned_data(x, level, ndim) for x in inputs), **kwargs)
        if type(found) is tuple:
            return tuple(Batched(y, level) for y in found)
        return Batched(found, level) if type(found) is np.ndarray or ufunc is not np.multiply else Batched(found, level, _unit(found, inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handled = FUNCTIONS.get(function)
        return handled(*args, **kwargs) if handled is not None else FUNCTIONS["each"](function, args, kwargs)

    # Methods that change the layout

    def reshape(self, *shape: Any) -> Batched:
        """Each member in another shape."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if -1 in shape and not self.data.size:  # NumPy does not resolve -1 for an empty batch
            known = math.prod(n for n in shape if n != -1)
            shape = tuple(self.size // known if n == -1 and known else n for n in shape)
        return self._with(self.data.reshape((self.data.shape[0], *shape)))

    def transpose(self, *axes: Any) -> Batched:
        """The axes of each member in another order."""
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes or tuple(reversed(range(self.ndim)))
        return self._with(self.data.transpose((0, *(a % max(self.ndim, 1) + 1 for a in axes))))

    def copy(self, order: str = "K") -> Batched:
        """A copy."""
        return self._with(self.data.copy())

    def astype(self, dtype: Any, copy: bool = True) -> Batched:
        """The values in another dtype."""
        return self._with(self.data.astype(dtype, copy=copy))

    def conjugate(self) -> Batched:
        """The complex conjugates."""
        return self._with(np.conjugate(self.data))

    conj = conjugate

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Batched:
        """The diagonal of two axes of each member as a new last one."""
        return self._with(self.data.diagonal(offset, axis1 % self.ndim + 1, axis2 % self.ndim + 1))

    sum, any, all, max, min = map(_reduction, (np.add, np.logical_or, np.logical_and, np.maximum, np.minimum))

    # Elements

    def __getitem__(self, index: Any) -> Batched:
        kind = type(index)
        if kind is slice or kind is int:
            return Batched(self.data[:, index], self.level)
        return FUNCTIONS[operator.getitem](self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Batched) and value.level > self.level:
            raise RuntimeError("vmap: a value of an inner vmap is written into a tensor of an outer one; write it with symgrad.where or index_put")
        FUNCTIONS[operator.setitem](self, index, value)



def _operator(apply: Callable[[Any, Any], Any], ufunc: Any) -> None:
    name = f"__{apply.__name__.strip('_')}__"

    def forward(self: Batched, other: Any) -> Any:
        kind = type(other)
        if kind is Batched:
            if other.level == self.level and other.data.ndim == self.data.ndim:
                return Batched(apply(self.data, other.data), self.level)
        elif kind in NUMBERS or kind is np.ndarray and other.ndim < self.data.ndim:
            return Batched(apply(self.data, other), self.level)
        elif kind is not np.ndarray and not isinstance(other, (np.generic, DuckArray)):
            return NotImplemented
        return ufunc(self, other)

    def reflected(self: Batched, other: Any) -> Any:
        if type(other) in NUMBERS or type(other) is np.ndarray and other.ndim < self.data.ndim:
            return Batched(apply(other, self.data), self.level)
        return ufunc(other, self) if isinstance(other, (np.ndarray, np.generic, DuckArray)) else NotImplemented

    setattr(Batched, name, forward)
    setattr(Batched, f"__r{name[2:]}", reflected)


for _apply, _ufunc in ((operator.add, np.add), (operator.sub, np.subtract), (operator.mul, np.multiply), (operator.truediv, np.true_divide),
                       (operator.pow, np.power), (operator.floordiv, np.floor_divide), (operator.mod, np.remainder),
                       (operator.and_, np.bitwise_and), (operator.or_, np.bitwise_or), (operator.xor, np.bitwise_xor)):
    _operator(_apply, _ufunc)
for _apply, _ufunc in ((operator.eq, np.equal), (operator.ne, np.not_equal), (operator.lt, np.less), (operator.le, np.less_equal),
                       (operator.gt, np.greater), (operator.ge, np.greater_equal)):
    _operator(_apply, _ufunc)
    delattr(Batched, f"__r{_apply.__name__}__")
Batched.__neg__ = lambda self: Batched(-self.data, self.level)
Batched.__pos__ = lambda self: self
Batched.__abs__ = lambda self: Batched(abs(self.data), self.level)
Batched.__invert__ = lambda self: Batched(~self.data, self.level)
Batched.__matmul__ = lambda self, other: FUNCTIONS[np.matmul](self, other)
Batched.__rmatmul__ = lambda self, other: FUNCTIONS[np.matmul](other, self)


# Entering and leaving a batch


def raw(x: Any) -> Any:
    """The data with all hidden axes as leading axes; other values unchanged."""
    while type(x) is Batched:
        x = x.data
    return x


def has_shape_of(t: Any, y: Any) -> bool:
    """Whether a tangent has the shape of its value; the tangent may be batched."""
    return t.data.shape[1:] == y.shape if type(t) is Batched and type(y) is not Batched else tuple.__eq__(t.shape, y.shape)


def levels_of(x: Any) -> tuple[int, ...]:
    """The levels at which a value is batched, the latest first."""
    return getattr(getattr(x, "shape", ()), "levels", ())


def batch(x: Any, dim: int, level: int) -> Batched:
    """A batch whose members are the slices of a value along an axis."""
    if type(x) is Batched and x.level > level:
        return Batched(batch(x.data, dim + 1, level), x.level)
    return Batched(x if not dim else np.moveaxis(x, dim, 0), level)


def unbatch(x: Any, dim: int, level: int, count: int) -> Any:
    """An array with the members along a new axis; an unbatched value is repeated `count` times."""
    if type(x) is Batched and x.level > level:
        return Batched(unbatch(x.data, dim + 1, level, count), x.level)
    data = x.data if type(x) is Batched and x.level == level else np.broadcast_to(x, (count, *np.shape(x)))
    return data if not dim else np.moveaxis(data, 0, dim)


def sum_out(x: Any, level: int) -> Any:
    """The sum over the members of one level."""
    if x.level > level:
        return Batched(sum_out(x.data, level), x.level)
    return added(x.data, 0)


# Alignment of batched values with unbatched ones


def aligned_data(x: Any, level: int, ndim: int | None) -> Any:
    """The data of a batched value with axes of size 1 behind the hidden axis, for `ndim` dimensions of a member; other values unchanged."""
    if type(x) is not Batched or x.level != level:
        return x
    missing = 0 if ndim is None else ndim - x.data.ndim + 1
    return x.data.reshape((x.data.shape[0], *(1,) * missing, *tuple.__getitem__(x.data.shape, slice(1, None)))) if missing > 0 else x.data


def highest_level(*xs: Any) -> int:
    return max(x.level for x in xs if type(x) is Batched)


def data_of_members(x: Any, level: int, count: int) -> Any:
    """The data of a value for each member; an unbatched value is repeated."""
    return x.data if type(x) is Batched and x.level == level else np.broadcast_to(x, (count, *np.shape(x)))


def batch_size(xs: Sequence[Any], level: int) -> int:
    return next(x.data.shape[0] for x in xs if type(x) is Batched and x.level == level)


def data_axes(axis: Any, ndim: int) -> Any:
    """An axis of a member, several, or None for all, as axes of the data."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(a % ndim + 1 for a in axis)
    return axis % ndim + 1 if ndim else ()
