"""Functions outside the tables of ops: results are integers (their bits, divisors and multiples, too) or booleans, have a shape that depends on the
values, or are neighbours of the input.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_option, check_positive, check_range, check_shapes
from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import common_dtype, converted
from symgrad.engine.data import as_value
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.writes import into, taking_out
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.errors import NO_DERIVATIVE
from symgrad.graph import return_types
from symgrad.graph.derived import elementwise_jvp, elementwise_vjp
from symgrad.graph.op import Op
from symgrad.layouts.indices import broadcast
from symgrad.layouts.strides import row_major
from symgrad.methods.inplace import augmented, in_place
from symgrad.ops.rules import axis, constant
from symgrad.system.errorstate import quietly

METHODS = MethodTable()


def _as_array(value: Any) -> Tensor:
    value = value if isinstance(value, DuckArray) else np.asarray(value)
    return wrap(value if value.ndim or isinstance(value, DuckArray) else value[()])


# Distinct elements


def _without_derivative(name: str, node: str) -> Callable[..., Tensor]:
    """A function whose node has a derivative that is not implemented, as in torch."""
    def refuse(*args: Any) -> Any:
        raise NotImplementedError(NO_DERIVATIVE.format(name))

    op = Op.of(name, "primitive", lambda xp, input, index: xp.getitem(input, index), refuse, refuse, 1, ("input",),
            (inspect.Parameter("index", inspect.Parameter.POSITIONAL_OR_KEYWORD),), node_name=node, public=False)
    return core(op)


_unique2, _unique_dim, _unique_consecutive = (_without_derivative(*names) for names in (
    ("_unique2", "Unique2Backward0"), ("unique_dim", "UniqueDimBackward0"), ("unique_consecutive", "UniqueConsecutiveBackward0")))


def _unique_result(values: Tensor, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    results = [values] + [wrap(np.asarray(inverse))] * bool(return_inverse) + [wrap(np.asarray(counts))] * bool(return_counts)
    return tuple(results) if len(results) > 1 else values


@taking_tensors
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements in order, or with `dim` the distinct slices; optionally with the inverse indices and the counts.

    Raises IndexError for a `dim` out of range.

    >>> import symgrad
    >>> symgrad.unique(symgrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    value = np.asarray(input._value)
    if dim is None:
        flat = value.ravel()
        _, first, inverse, counts = np.unique(flat, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
        values = _unique2(input if value.ndim else input.reshape(1), np.unravel_index(first, value.shape or (1,)))
        return _unique_result(values, inverse.reshape(value.shape), counts, return_inverse, return_counts)
    dim = axis(dim, value.ndim)
    _, first, inverse, counts = np.unique(value, return_index=True, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    return _unique_result(_unique_dim(input, (slice(None),) * dim + (first,)), inverse.reshape(-1), counts, return_inverse, return_counts)


def _slices(value: Any, dim: int) -> Any:
    """The slices along a dimension as rows."""
    return np.moveaxis(value, dim, 0).reshape(value.shape[dim], value.size // max(value.shape[dim], 1))


@taking_tensors
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements, or with `dim` the slices, without those equal to the previous one; optionally with the inverse indices and the counts.

    >>> import symgrad
    >>> symgrad.unique_consecutive(symgrad.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    value = np.asarray(input._value)
    rows = value.reshape(-1, 1) if dim is None else _slices(value, axis(dim, value.ndim))
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    first = new.nonzero()[0]
    inverse, counts = np.cumsum(new) - 1, np.diff([*first, len(rows)])
    if dim is None:
        values = _unique_consecutive(input if value.ndim else input.reshape(1), np.unravel_index(first, value.shape or (1,)))
        return _unique_result(values, inverse.reshape(value.shape), counts, return_inverse, return_counts)
    return _unique_result(_unique_consecutive(input, (slice(None),) * axis(dim, value.ndim) + (first,)), inverse, counts, return_inverse,
                          return_counts)


# Where and how many


@taking_tensors
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements: a row for each, or with `as_tuple` a vector for each dimension.

    >>> import symgrad
    >>> symgrad.nonzero(symgrad.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    value = np.asarray(input._value)
    if out is not None:
        if as_tuple:
            raise RuntimeError("nonzero: out holds one tensor, and as_tuple=True gives several")
        if isinstance(out, Tensor) and out._value.dtype != np.int64:
            raise RuntimeError(f"nonzero: out must be a tensor of int64, not {out.dtype}")
        return into(out, "nonzero", lambda: wrap(np.argwhere(value)))
    if as_tuple:
        return tuple(map(wrap, (value if value.ndim else value.reshape(1)).nonzero()))
    return wrap(np.argwhere(value))


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` holds, else `other`; with the condition alone, the indices where it holds, as `nonzero` with `as_tuple`.

    >>> import symgrad
    >>> x = symgrad.tensor([1.0, -2.0])
    >>> symgrad.where(x > 0, x, 0.0)
    tensor([1., 0.])
    >>> symgrad.where(x > 0)
    (tensor([0]),)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return traced.where(condition, input, other)


@taking_tensors
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """The number of nonzero elements, of all or along one or several dimensions."""
    value = input._value
    dims = None if dim is None else tuple(axis(d, value.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    return _as_array(row_major(np.add.reduce(value != 0, axis=dims if value.ndim else None, dtype=np.int64)))


@taking_tensors
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of each integer from 0 on in a vector, or the sum of their weights.

    Raises RuntimeError unless the input is a vector of non-negative integers.

    >>> import symgrad
    >>> symgrad.bincount(symgrad.tensor([0, 1, 1, 3]))
    tensor([1, 2, 0, 1])
    """
    value = np.asarray(input._value)
    check_kind("bincount", value, "iu")
    check_range("bincount", "minlength", minlength, 0)
    check_dims("bincount", value, 1)
    if value.size:
        check_range("bincount", "the least of input", value.min(), 0)
    if weights is None:
        return wrap(np.bincount(value, minlength=minlength))
    given = as_value(weights)
    check_shapes("bincount", "(n),(n)", value, given)
    out = quietly(np.bincount, value, given.astype(np.float64), minlength)
    return wrap(quietly(out.astype, np.float32) if given.dtype == np.float32 else out)


@taking_tensors
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Tensor | None = None) -> Tensor:
    """The indices at which values can be inserted into a sorted sequence, or into its rows: before equal elements, or after them with `right`.

    Raises RuntimeError if the rows of the two do not match, and for a `side` that contradicts `right`.

    >>> import symgrad
    >>> symgrad.searchsorted(symgrad.tensor([1.0, 3.0, 5.0]), symgrad.tensor([3.0, 4.0]))
    tensor([1, 2])
    """
    check_option("searchsorted", "side", side, (None, "right") if right else (None, "left", "right"))
    rows, values = (x if isinstance(x, DuckArray) else np.asarray(x) for x in map(as_value, (sorted_sequence, input)))
    check_least_rank("searchsorted", rows, 1, "sorted_sequence")
    if rows.ndim != 1 and rows.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(f"searchsorted: a sequence of shape {list(rows.shape)} must have one row for each row of the values, whose shape is "
                           f"{list(values.shape)}")
    if sorter is not None:
        rows = np.take_along_axis(rows, as_value(sorter), -1)
    where_equal: Any = "right" if right or side == "right" else "left"
    if not values.size:
        out = np.zeros(values.shape, np.int64)
    elif rows.ndim == 1:
        out = np.searchsorted(rows, values, where_equal)
    else:
        pairs = zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]))
        out = np.stack([np.searchsorted(row, wanted, where_equal) for row, wanted in pairs]).reshape(values.shape)
    return _as_array(out.astype(np.int32 if out_int32 else np.int64))


@taking_tensors
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the interval between sorted boundaries for each value: `searchsorted` with exchanged arguments.

    Raises RuntimeError unless the boundaries are a vector.
    """
    check_dims("bucketize", as_value(boundaries), 1, word="boundaries")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@taking_tensors
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The number of elements in each of `bins` equal intervals from `min` to `max`; from the smallest to the largest element if both are equal.

    Raises RuntimeError for `bins` below 1 and for `max` below `min`.

    >>> import symgrad
    >>> symgrad.histc(symgrad.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    value, bins, min, max = np.asarray(input._value), int(bins), constant("histc", "min", min), constant("histc", "max", max)
    check_kind("histc", value, "fc")
    check_positive("histc", "bins", bins)
    check_range("histc", "min", min, high=max)
    low, high = (value.min(), value.max()) if min == max and value.size else (min, max)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"histc: the range from {low} to {high} is not finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = value[(value >= low) & (value <= high)].astype(np.float64)
    at = quietly(lambda: np.minimum((bins * (inside - low) / (high - low)).astype(np.int64), bins - 1))
    return wrap(np.bincount(at, minlength=bins).astype(value.dtype))


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among the test elements.

    >>> import symgrad
    >>> symgrad.isin(symgrad.tensor([1, 2, 3]), symgrad.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    given = [as_value(x) for x in (elements, test_elements)]
    for value in given:
        check_kind("isin", value, "fiu")
    return _as_array(np.isin(given[0], given[1], invert=invert))


def isposinf(input: Tensor) -> Tensor:
    """Whether inf, elementwise."""
    check_kind("isposinf", input, "fiub")
    return _as_array(input._value == np.inf)


def isneginf(input: Tensor) -> Tensor:
    """Whether -inf, elementwise."""
    check_kind("isneginf", input, "fiub")
    return _as_array(input._value == -np.inf)


@taking_tensors
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0, elementwise."""
    return _as_array(np.isreal(input._value))


def signbit(input: Tensor) -> Tensor:
    """Whether the sign bit is set, as for -0.0, elementwise."""
    value = input._value
    check_kind("signbit", value, "fiub")
    return _as_array(np.signbit(value) if value.dtype.kind == "f" else value < 0)


def frexp(input: Tensor) -> Any:
    """A mantissa in [1/2, 1) or (-1, -1/2] and an integer exponent with input = mantissa 2**exponent; the mantissa is differentiable.

    Raises RuntimeError for integers and complex numbers.

    >>> import symgrad
    >>> symgrad.frexp(symgrad.tensor([1.5, -8.0])).exponent
    tensor([1, 4], dtype=torch.int32)
    """
    check_kind("frexp", input, "f")
    exponent = np.frexp(input._value)[1]
    return return_types.frexp((traced.ldexp(input, _as_array((-exponent).astype(input._value.dtype))), _as_array(exponent)))


_nextafter = core(Op.of("nextafter", "elementwise", lambda xp, input, other: np.nextafter(input, other) if xp is numeric else input,
                     elementwise_vjp((1, 0), False), elementwise_jvp((1, 0)), 2, ("input", "other"), (), (1, 0), node_name="NextafterBackward0",
                        saves=False))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number that the dtype represents from `input` towards `other`, elementwise, with the derivative 1 by the input.

    In a formula it is the input.

    >>> import symgrad
    >>> bool(symgrad.nextafter(symgrad.tensor(1.0), symgrad.tensor(2.0)) > 1)
    True
    """
    check_kind("nextafter", np.empty(0, common_dtype(input._value, other._value)), "f")
    return _nextafter(input, other)


(nextafter, signbit, isposinf, isneginf, histc, isin, bucketize, searchsorted, frexp, where) = (taking_out(taking_tensors(f)) for f in (
    nextafter, signbit, isposinf, isneginf, histc, isin, bucketize, searchsorted, frexp, where))
for _function in (bincount, count_nonzero, frexp, histc, isneginf, isposinf, isreal, nextafter, nonzero, signbit, unique, unique_consecutive):
    METHODS.define(_function)
METHODS["nextafter_"] = in_place("nextafter_", nextafter)


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where `condition` holds, else `other`."""
    return traced.where(condition, self, other)


_where.__name__ = "where"
METHODS["where"] = _where


def _of_integers(name: str, ufunc: Any, what: str, booleans: bool = True) -> Callable[..., Tensor]:
    def function(input: Any, other: Any) -> Tensor:
        for x in (input, other):
            check_kind(name, as_value(x), "iub", "an operand")
        values = [x._value if isinstance(x, Tensor) else x for x in (input, other)]
        a, b = converted(values)
        if not booleans:
            check_kind(name, a, "iu", "an operand")
        if not isinstance(a, DuckArray) and not isinstance(b, DuckArray):
            broadcast(np.shape(a), np.shape(b))
        return wrap(ufunc(a, b))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, elementwise, of integers{' or booleans' if booleans else ''}."
    return function


bitwise_and = _of_integers("bitwise_and", np.bitwise_and, "The bits that both have")
bitwise_or = _of_integers("bitwise_or", np.bitwise_or, "The bits that one of two has")
bitwise_xor = _of_integers("bitwise_xor", np.bitwise_xor, "The bits that just one of two has")
bitwise_left_shift = _of_integers("bitwise_left_shift", np.left_shift, "The bits shifted to the left", False)
bitwise_right_shift = _of_integers("bitwise_right_shift", np.right_shift, "The bits shifted to the right", False)
gcd = _of_integers("gcd", np.gcd, "The greatest common divisor", False)
lcm = _of_integers("lcm", np.lcm, "The least common multiple", False)


def bitwise_not(input: Tensor) -> Tensor:
    """The bitwise not of integers, the logical not of booleans, elementwise."""
    check_kind("bitwise_not", input, "iub")
    return wrap(np.invert(input._value))


bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm = (taking_out(taking_tensors(each)) for each in (
    bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm))
for _integer in (bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm):
    METHODS.define(_integer)
    METHODS[f"{_integer.__name__}_"] = in_place(f"{_integer.__name__}_", _integer)


def _shift(function: Callable[..., Tensor], reflected: bool) -> Callable[..., Tensor]:
    def operate(self: Tensor, other: Any) -> Tensor:
        return function(other, self) if reflected else function(self, other)

    return operate


for _name, _integer in {"lshift": bitwise_left_shift, "rshift": bitwise_right_shift}.items():
    METHODS[f"__{_name}__"], METHODS[f"__r{_name}__"] = _shift(_integer, False), _shift(_integer, True)
for _name, _operator in {"bitwise_and_": "__iand__", "bitwise_or_": "__ior__", "bitwise_xor_": "__ixor__", "bitwise_left_shift_": "__ilshift__",
                         "bitwise_right_shift_": "__irshift__"}.items():
    METHODS[_operator] = augmented(METHODS[_name])
