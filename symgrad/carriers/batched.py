"""Batched values: arrays with one more leading axis than their shape says, on which the rules work as they stand.

A `Batched` is a duck array. NumPy's operators, ufuncs and functions act on the elements behind the hidden axis, so that every carrier reads
a rule for a whole batch at once: this is `vmap`, and it is how many tangents or cotangents travel together. The hidden axis belongs to a level;
a later level wraps an earlier one, and what is not batched at a level is the same for all its members.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["Batched", "Shape", "batch", "batches", "fills", "levels_of", "new_level", "raw", "sum_out", "unbatch"]

new_level = itertools.count(1).__next__
NUMBERS = (float, int, np.float64, complex, bool)


class _Batches(threading.local):
    """The batches that this thread is in: for each its level, its number of members, and what random numbers are in it."""

    entered: tuple[tuple[int, int, str], ...] = ()


batches = _Batches()


class Shape(tuple):
    """The shape of a batched value: equal only to that of another one with the same hidden axes, so that sums over these are not forgotten."""

    levels: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return type(other) is Shape and self.levels == other.levels and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class _Flags:
    """What NumPy's arrays say of their memory: that of a batched value is not to be relied on."""

    c_contiguous = f_contiguous = True
    writeable = False


def _refused(what: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"vmap: {what} of a tensor inside vmap depends on the data of each member of the batch; use symgrad.where in place of "
                           f"an if, keep the computation in tensors, or take the value outside of vmap")

    return refuse


class Batched:
    """A value for each member of a batch, `data[i]` for the i-th; everything else speaks of one member."""

    __slots__ = ("data", "level", "unit", "_shape")
    data: Any
    level: int
    unit: int | None  # where the members are unit vectors in order: which of them is the first
    base = None
    flags = _Flags()

    def __init__(self, data: Any, level: int, unit: int | None = None):
        self.data, self.level, self.unit = data, level, unit

    # What a member is

    @property
    def shape(self) -> Shape:
        """The shape of a member, which knows that there are several."""
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
    def size(self) -> int:
        """The number of elements of a member."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.data.dtype

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.data.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of the whole batch in bytes."""
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

    @property
    def T(self) -> Any:
        """The axes of each member in reverse."""
        return self.transpose(tuple(reversed(range(self.ndim))))

    def _with(self, data: Any) -> Batched:
        return Batched(data, self.level)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, {self.data!r})"

    __bool__ = _refused("the truth value")
    __float__ = __int__ = __index__ = __complex__ = item = tolist = _refused("the number")
    __array__ = _refused("the plain array")
    nonzero = _refused("the places of nonzero elements")
    __hash__ = None  # type: ignore[assignment]

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        level = max(x.level for x in (*inputs, *(out or ())) if type(x) is Batched)
        if ufunc is np.matmul:
            return matmul(*inputs)
        if method == "reduce" or method == "accumulate":
            (x,) = inputs
            axis = kwargs.pop("axis", 0)
            if type(kwargs.get("where")) is Batched:
                kwargs["where"] = kwargs["where"].data
            return Batched(getattr(ufunc, method)(x.data, axis=_shifted(axis, x.ndim), **kwargs), level)
        if method == "at":
            target, index, *values = inputs
            return ufunc.at(target.data, _whole(index, target, level), *(_aligned(v, level, None) for v in values))
        if method != "__call__":
            return NotImplemented
        if out is not None:
            kwargs["out"] = tuple(x.data if type(x) is Batched and x.level == level else x for x in out)
        ndim = max(x.ndim if hasattr(x, "ndim") else 0 for x in inputs)
        found = ufunc(*(_aligned(x, level, ndim) for x in inputs), **kwargs)
        return tuple(Batched(y, level) for y in found) if type(found) is tuple else Batched(found, level)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handled = FUNCTIONS.get(function)
        return (handled(*args, **kwargs) if handled is not None else _each(function, args, kwargs))

    # Methods that only lay elements out anew

    def reshape(self, *shape: Any) -> Batched:
        """Each member in another shape."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._with(self.data.reshape((self.data.shape[0], *(shape if -1 not in shape or self.data.size else _spelled(shape, self.size)))))

    def transpose(self, *axes: Any) -> Batched:
        """The axes of each member in another order."""
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes or tuple(reversed(range(self.ndim)))
        return self._with(self.data.transpose((0, *(a % max(self.ndim, 1) + 1 for a in axes))))

    def squeeze(self, axis: Any = None) -> Batched:
        """Each member without axes of size 1."""
        dims = [i for i, n in enumerate(self.shape) if n == 1] if axis is None else [axis % self.ndim]
        return self.reshape(tuple(n for i, n in enumerate(self.shape) if i not in dims))

    def ravel(self, order: str = "C") -> Batched:
        """Each member as a vector."""
        return self.reshape((self.size,))

    flatten = ravel

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

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Batched:
        """The sums over axes of each member."""
        return np.add.reduce(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Batched:
        """Whether any element of each member is true."""
        return np.logical_or.reduce(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Batched:
        """Whether all elements of each member are true."""
        return np.logical_and.reduce(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Batched:
        """The largest elements."""
        return np.maximum.reduce(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Batched:
        """The smallest elements."""
        return np.minimum.reduce(self, axis=axis, keepdims=keepdims)

    # Elements

    def __getitem__(self, index: Any) -> Batched:
        kind = type(index)
        if kind is slice or kind is int:
            return Batched(self.data[:, index], self.level)
        return take(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        level = self.level
        at = _whole(index, self, level)
        if isinstance(value, Batched) and value.level > level:
            raise RuntimeError("vmap: a value of an inner vmap is written into a tensor of an outer one; write it with symgrad.where or index_put")
        target = self.data[at]
        self.data[at] = _aligned(value, level, max(target.ndim - 1, getattr(value, "ndim", 0)))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))


def _operator(apply: Callable[[Any, Any], Any], ufunc: Any) -> None:
    name = f"__{apply.__name__.strip('_')}__"

    def forward(self: Batched, other: Any) -> Any:
        kind = type(other)
        if kind is Batched:
            if other.level == self.level and other.data.ndim == self.data.ndim:
                return Batched(apply(self.data, other.data), self.level)
        elif kind in NUMBERS or kind is np.ndarray and other.ndim < self.data.ndim:
            return Batched(apply(self.data, other), self.level)
        elif kind is not np.ndarray and not isinstance(other, np.generic):
            return NotImplemented
        return ufunc(self, other)

    def reflected(self: Batched, other: Any) -> Any:
        if type(other) in NUMBERS or type(other) is np.ndarray and other.ndim < self.data.ndim:
            return Batched(apply(other, self.data), self.level)
        return ufunc(other, self) if isinstance(other, (np.ndarray, np.generic)) else NotImplemented

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
Batched.__neg__ = lambda self: Batched(-self.data, self.level)  # type: ignore[attr-defined]
Batched.__pos__ = lambda self: self  # type: ignore[attr-defined]
Batched.__abs__ = lambda self: Batched(abs(self.data), self.level)  # type: ignore[attr-defined]
Batched.__invert__ = lambda self: Batched(~self.data, self.level)  # type: ignore[attr-defined]
Batched.__matmul__ = lambda self, other: matmul(self, other)  # type: ignore[attr-defined]
Batched.__rmatmul__ = lambda self, other: matmul(other, self)  # type: ignore[attr-defined]


# In and out of a batch


def raw(x: Any) -> Any:
    """The array of all members."""
    while type(x) is Batched:
        x = x.data
    return x


def fills(t: Any, y: Any) -> bool:
    """Whether a tangent, batched or not, has the shape of its value."""
    return t.data.shape[1:] == y.shape if type(t) is Batched and type(y) is not Batched else tuple.__eq__(t.shape, y.shape)


def levels_of(x: Any) -> tuple[int, ...]:
    """The levels at which a value is batched, the latest first."""
    return getattr(getattr(x, "shape", ()), "levels", ())


def batch(x: Any, dim: int, level: int) -> Batched:
    """The slices of a value along an axis as members of a batch."""
    if type(x) is Batched and x.level > level:
        return Batched(batch(x.data, dim + 1, level), x.level)
    return Batched(x if not dim else np.moveaxis(x, dim, 0), level)


def unbatch(x: Any, dim: int, level: int, count: int) -> Any:
    """The members along an axis of their own; what is the same for all of them is repeated `count` times."""
    if type(x) is Batched and x.level > level:
        return Batched(unbatch(x.data, dim + 1, level, count), x.level)
    data = x.data if type(x) is Batched and x.level == level else np.broadcast_to(x, (count, *np.shape(x)))
    return data if not dim else np.moveaxis(data, 0, dim)


def sum_out(x: Any, level: int) -> Any:
    """The sum over the members of one level."""
    if x.level > level:
        return Batched(sum_out(x.data, level), x.level)
    return np.add.reduce(x.data, axis=0)


# How members and what they share meet


def _aligned(x: Any, level: int, ndim: int | None) -> Any:
    """The data of a batched value with ones behind its hidden axis, up to `ndim` dimensions of a member; anything else as it is."""
    if type(x) is not Batched or x.level != level:
        return x
    missing = 0 if ndim is None else ndim - x.data.ndim + 1
    return x.data.reshape((x.data.shape[0], *(1,) * missing, *tuple.__getitem__(x.data.shape, slice(1, None)))) if missing > 0 else x.data


def _level(*xs: Any) -> int:
    return max(x.level for x in xs if type(x) is Batched)


def _members(x: Any, level: int, count: int) -> Any:
    """The data of a value for each member, repeated where they share it."""
    return x.data if type(x) is Batched and x.level == level else np.broadcast_to(x, (count, *np.shape(x)))


def _counted(xs: Sequence[Any], level: int) -> int:
    return next(x.data.shape[0] for x in xs if type(x) is Batched and x.level == level)


def _shifted(axis: Any, ndim: int) -> Any:
    """An axis of a member, several, or None for all, as axes of the data."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(a % ndim + 1 for a in axis)
    return axis % ndim + 1 if ndim else ()


def _spelled(shape: Sequence[int], size: int) -> tuple[int, ...]:
    known = math.prod(n for n in shape if n != -1)
    return tuple(size // known if n == -1 and known else n for n in shape)


def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, list, Batched)) and not (isinstance(part, np.ndarray) and not part.ndim and part.dtype.kind in "iu")


def _whole(index: Any, x: Any, level: int) -> tuple[Any, ...]:
    """An index of a member as one of the data."""
    parts = index if isinstance(index, tuple) else (index,)
    return (slice(None), *parts)


def take(x: Any, index: Any) -> Any:
    """The elements that an index names, in each member; the index may itself differ between members."""
    parts = index if isinstance(index, tuple) else (index,)
    inside = [part for part in parts if type(part) is Batched]
    level = max(p.level for p in (*inside, *((x,) if type(x) is Batched else ())))
    arrays = [k for k, part in enumerate(parts) if _is_array(part)]
    if not any(part.level == level for part in inside):
        found = x.data[(slice(None), *parts)]
        widths = [np.ndim(parts[k]) if not (hasattr(parts[k], "dtype") and parts[k].dtype == bool) else 1 for k in arrays]
        if arrays and _apart(parts, arrays):  # NumPy puts what separated arrays name before everything else, and so before the batch
            found = np.moveaxis(found, max(widths), 0)
        return Batched(found, level)
    count = _counted([x, *inside], level)
    if any(getattr(parts[k], "dtype", None) == bool for k in arrays):
        raise RuntimeError("vmap: a mask that differs between the members of the batch selects different numbers of elements; use symgrad.where")
    width = max(p.ndim if hasattr(p, "ndim") else np.ndim(p) for p in (parts[k] for k in arrays))
    which = np.arange(count).reshape((count,) + (1,) * width)
    full = _members(x, level, count)
    at = tuple(_aligned(part, level, width) if k in arrays else part for k, part in enumerate(parts))
    before = 0 if _apart(parts, arrays) else _dimensions(parts[:arrays[0]], x.ndim - len([p for p in parts if p is not None and p is not Ellipsis]))
    found = full[(which, *at)]
    if not _apart((0, *at), [0, *(k + 1 for k in arrays)]) and arrays[0] == 0:
        return Batched(found, level)
    return Batched(np.moveaxis(found, tuple(range(1, width + 1)), tuple(range(1 + before, 1 + before + width))), level)


def _apart(parts: Sequence[Any], arrays: Sequence[int]) -> bool:
    """Whether the arrays of an index are separated by slices; integers beside arrays count as arrays."""
    at = [k for k, part in enumerate(parts) if k in arrays or isinstance(part, (int, np.integer)) and not isinstance(part, bool)]
    return at[-1] - at[0] + 1 != len(at)


def _dimensions(parts: Sequence[Any], rest: int) -> int:
    """How many dimensions a piece of an index leaves in the result."""
    return sum(rest if part is Ellipsis else 0 if isinstance(part, (int, np.integer)) else 1 for part in parts)


def _each(function: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy's that knows no batches, for one member after the other."""
    flat = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (tuple, list)) else (a,))]
    level = _level(*flat)
    count = _counted(flat, level)

    def member(a: Any, i: int) -> Any:
        if isinstance(a, (tuple, list)):
            return type(a)(member(b, i) for b in a)
        return a.data[i] if type(a) is Batched and a.level == level else a

    found = [function(*(member(a, i) for a in args), **{k: member(a, i) for k, a in kwargs.items()}) for i in range(count)]
    if not found:
        raise RuntimeError(f"vmap: {function.__name__} of an empty batch is not known")
    return tuple(Batched(np.stack(ys), level) for ys in zip(*found)) if isinstance(found[0], tuple) else Batched(np.stack(found), level)


# Products


def matmul(a: Any, b: Any) -> Any:
    """The products of vectors, matrices and stacks of them, as one large product where one factor is shared."""
    level = _level(a, b)
    x, z = (type(v) is Batched and v.level == level for v in (a, b))
    for v, other in ((b, a), (a, b)) if x != z else ():
        if type(v) is Batched and v.level == level and v.unit is not None and v.ndim == 1 and other.ndim <= 2:
            axis = -1 if v is b else 0  # a product with unit vectors picks slices
            picked = other[(slice(None),) * (axis % other.ndim) + (slice(v.unit, v.unit + v.data.shape[0]),)]
            return Batched(picked if other.ndim == 1 or not axis else np.swapaxes(picked, 0, 1), level)
    if x and not z:
        data = a.data
        if a.ndim == 1:
            return Batched(np.matmul(data, b), level) if b.ndim <= 2 else Batched(np.matmul(data[:, None], b[None])[..., 0, :], level)
        if a.ndim == 2 and b.ndim <= 2 and type(data) is np.ndarray:
            return Batched(np.matmul(data.reshape(-1, data.shape[-1]), b).reshape((*data.shape[:-1], *b.shape[1:])), level)
        return Batched(np.matmul(data, b), level) if b.ndim <= 2 else Batched(np.matmul(_aligned(a, level, b.ndim), b), level)
    if z and not x:
        data = b.data
        if b.ndim == 1:
            if a.ndim <= 2:
                return Batched(np.matmul(data, a if a.ndim == 1 else np.swapaxes(a, 0, 1)), level)
            return Batched(np.matmul(a, data.reshape((data.shape[0], *(1,) * (a.ndim - 2), data.shape[1], 1)))[..., 0], level)
        if a.ndim == 1:
            return Batched(np.matmul(a, data), level)
        return Batched(np.matmul(a, _aligned(b, level, a.ndim)), level)
    left, right = a.data, b.data
    if a.ndim == 1 and b.ndim == 1:
        return Batched(np.matmul(left[:, None, :], right[:, :, None])[:, 0, 0], level)
    if b.ndim == 1:
        return Batched(np.matmul(left, right.reshape((right.shape[0], *(1,) * (a.ndim - 2), right.shape[1], 1)))[..., 0], level)
    if a.ndim == 1:
        return Batched(np.matmul(left.reshape((left.shape[0], *(1,) * (b.ndim - 2), 1, left.shape[1])), right)[..., 0, :], level)
    ndim = max(a.ndim, b.ndim)
    return Batched(np.matmul(_aligned(a, level, ndim), _aligned(b, level, ndim)), level)


def _einsum(equation: str, *xs: Any, optimize: Any = False) -> Any:
    level = _level(*xs)
    left, _, right = equation.partition("->")
    letter = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in equation)
    terms = [letter + term if type(x) is Batched and x.level == level else term for term, x in zip(left.split(","), xs)]
    return Batched(np.einsum(",".join(terms) + "->" + letter + right, *(_aligned(x, level, None) for x in xs), optimize=True), level)


# NumPy's functions, by what they do to the axes of a member


def _where(condition: Any, a: Any, b: Any) -> Any:
    level = _level(condition, a, b)
    ndim = max(getattr(x, "ndim", 0) for x in (condition, a, b))
    return Batched(np.where(*(_aligned(x, level, ndim) for x in (condition, a, b))), level)


def _like(function: Any) -> Any:
    def like(x: Any, *rest: Any, shape: Any = None, **words: Any) -> Batched:
        whole = None if shape is None else (x.data.shape[0], *((shape,) if isinstance(shape, int) else shape))
        return Batched(function(x.data, *rest, shape=whole, **words), x.level)

    return like


def _along(function: Any) -> Any:
    def along(x: Any, axis: Any = None, **rest: Any) -> Batched:
        if axis is None and rest.get("keepdims"):
            return along(x.reshape((x.size,)), 0, **{**rest, "keepdims": False}).reshape((1,) * x.ndim)
        data, axis = (x.data.reshape((x.data.shape[0], -1)), 1) if axis is None else (x.data, axis % max(x.ndim, 1) + 1)
        return Batched(function(data, axis=axis, **rest), x.level)

    return along


def _joined(function: Any, more: int) -> Any:
    def join(xs: Sequence[Any], axis: int = 0) -> Batched:
        level = _level(*xs)
        count = _counted(xs, level)
        ndim = xs[0].ndim + more
        return Batched(function([_members(x, level, count) for x in xs], axis=axis % ndim + 1), level)

    return join


def _flip(x: Any, axis: Any = None) -> Batched:
    return Batched(np.flip(x.data, _shifted(axis, x.ndim)), x.level)


def _roll(x: Any, shift: Any, axis: Any = None) -> Batched:
    if axis is None:
        return Batched(np.roll(x.data.reshape((x.data.shape[0], -1)), shift, 1).reshape(x.data.shape), x.level)
    return Batched(np.roll(x.data, shift, _shifted(axis, x.ndim)), x.level)


def _broadcast_to(x: Any, shape: Any, subok: bool = False) -> Batched:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    data = _aligned(x, x.level, len(shape))
    return Batched(np.broadcast_to(data, (data.shape[0], *shape)), x.level)


def _diag(x: Any, k: int = 0) -> Batched:
    if x.ndim == 2:
        return x.diagonal(k)
    n = x.shape[0]
    out = np.zeros_like(x, shape=(n + abs(k),) * 2)
    at = np.arange(n)
    out[at + max(-k, 0), at + max(k, 0)] = x
    return out


def _moveaxis(x: Any, source: Any, destination: Any) -> Batched:
    return Batched(np.moveaxis(x.data, _shifted(source, x.ndim), _shifted(destination, x.ndim)), x.level)


def _take_along_axis(x: Any, indices: Any, axis: int = -1) -> Batched:
    level = _level(x, indices)
    count = _counted((x, indices), level)
    return Batched(np.take_along_axis(_members(x, level, count), _members(indices, level, count), axis % indices.ndim + 1), level)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where, np.einsum: _einsum, np.zeros_like: _like(np.zeros_like), np.ones_like: _like(np.ones_like), np.empty_like: _like(np.empty_like),
    np.full_like: _like(np.full_like), np.concatenate: _joined(np.concatenate, 0), np.stack: _joined(np.stack, 1), np.flip: _flip, np.roll: _roll,
    np.broadcast_to: _broadcast_to, np.diag: _diag, np.moveaxis: _moveaxis, np.take_along_axis: _take_along_axis,
    np.cumsum: _along(np.cumsum), np.cumprod: _along(np.cumprod), np.argmax: _along(np.argmax), np.argmin: _along(np.argmin),
    np.argsort: _along(np.argsort), np.sort: _along(np.sort),
    np.tril: lambda x, k=0: Batched(np.tril(x.data, k), x.level), np.triu: lambda x, k=0: Batched(np.triu(x.data, k), x.level),
    np.all: lambda x, axis=None, keepdims=False: x.all(axis, keepdims), np.any: lambda x, axis=None, keepdims=False: x.any(axis, keepdims),
    np.transpose: lambda x, axes=None: x.transpose(*(() if axes is None else (tuple(axes),))), np.reshape: lambda x, shape: x.reshape(shape),
    np.swapaxes: lambda x, a, b: Batched(np.swapaxes(x.data, a % x.ndim + 1, b % x.ndim + 1), x.level),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size, np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *xs: np.result_type(*(x.dtype if type(x) is Batched else x for x in xs)),
    np.may_share_memory: lambda a, b: np.may_share_memory(raw(a), raw(b)), np.shares_memory: lambda a, b: np.shares_memory(raw(a), raw(b)),
}
