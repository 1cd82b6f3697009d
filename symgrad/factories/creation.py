"""Factories of tensors from data and by value, with torch's keywords and `symbol`, the name of the new leaf."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_option
from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import DType, dtype_of, get_default_dtype, is_supported, numpy_dtype
from symgrad.engine.data import as_value, cast, from_python, number_in, python_number, unreadable
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.tensor import Tensor
from symgrad.factories.factory import check_placement, expect_integer, factory_function, like_function, new_leaf, sharing, sizes_of
from symgrad.layouts.devices import check_cpu
from symgrad.layouts.strides import empty_in_format
from symgrad.layouts.strides import empty_like as empty_like_array

# From data

def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
           symbol: str | None = None, stacklevel: int = 2) -> Tensor:
    """`symgrad.tensor` for numeric data: a new tensor with a copy of a number, nested sequences, an array, or another tensor.

    `stacklevel` is that of warnings.

    Raises TypeError or ValueError for data that is not a rectangular array of numbers, RuntimeError for integers that should require gradients.
    """
    check_placement(device, None, pin_memory)
    if isinstance(data, Tensor) and not constant_made(data, "symgrad.tensor()"):
        warnings.warn("tensor: the data is a Tensor; x.detach().clone() copies it", UserWarning, stacklevel=stacklevel)
    value = read_data(data, dtype)
    if type(value) is np.ndarray and 0 in value.strides:  # an expanded tensor, whose copy has another order of strides in NumPy than in torch
        value, given = empty_like_array(value), value
        np.copyto(value, given)
    elif isinstance(value, np.ndarray):
        value = value.copy("K")
    return new_leaf(value, requires_grad, symbol)


def has_formula(data: Any) -> bool:
    """Whether the data is or contains an object of SymPy; does not import SymPy."""
    if isinstance(data, (list, tuple)) or isinstance(data, np.ndarray) and data.dtype == object:
        return any(map(has_formula, data.ravel() if isinstance(data, np.ndarray) else data))
    return any(kind.__module__.partition(".")[0] == "sympy" for kind in type(data).__mro__)


def read_data(data: Any, dtype: Any = None) -> Any:
    """Data as a NumPy value, with torch's errors for ragged sequences and for numbers that a dtype cannot hold."""
    is_array = isinstance(data, (Tensor, np.ndarray, np.generic, DuckArray))
    try:
        value = as_value(data) if is_array else from_python(data, dtype is None)
    except ValueError as error:
        raise ValueError(str(error)) from None
    if not is_supported(value.dtype):
        raise unreadable(value.dtype)
    if dtype is None:
        return value
    target = dtype_of(dtype)
    if value.dtype.kind == "c" and not (target.is_complex or target.name == "bool") and not isinstance(data, (Tensor, np.ndarray)):
        raise TypeError(f"tensor: the data is complex, but the dtype is {target}")
    if isinstance(data, (int, float)):
        return number_in(data, target.numpy)
    if not is_array and target.numpy.kind in "iu" and value.size and value.dtype.kind in "iuf":
        for extreme in (value.min(), value.max()):  # NaN is both
            number_in(extreme.item(), target.numpy)
    return cast(value, target.numpy)


def symbols(names: str, values: Any = None, *, requires_grad: bool = True) -> tuple[Tensor, ...]:
    """One named leaf per name in a string such as "x y" or "x, y", with the values given.

    >>> import symgrad
    >>> x, y = symgrad.symbols("x y", [1.0, 2.0])
    >>> (x * y).expr
    x*y
    """
    found = names.replace(",", " ").split()
    if len(set(found)) != len(found):
        raise ValueError(f"symbols: a name is given twice in {names!r}; give distinct names")
    values = [None] * len(found) if values is None else list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) != len(found):
        raise ValueError(f"symbols: {len(found)} names and {len(values)} values; give one value per name")
    if any(value is None for value in values):
        raise ValueError("symbols: values are missing; give one value per name, as in symbols('x y', [1.0, 2.0])")
    return tuple(tensor(_as_float(v), requires_grad=requires_grad, symbol=name) for name, v in zip(found, values))


def _as_float(data: Any) -> Any:
    value = as_value(data)
    return value.astype(get_default_dtype().numpy) if value.dtype.kind in "biu" else value


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: itself if it is one, sharing memory with an array, copied from sequences.

    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> as_tensor(a)[0] = 5.0
    >>> a
    array([5., 0.])
    """
    check_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return (sharing if isinstance(data, np.ndarray) else new_leaf)(read_data(data, dtype))


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """The data as a tensor, sharing memory with a tensor, an array or a buffer where possible; `copy` True forces a copy.

    Raises ValueError if `copy` is False and a copy is necessary.
    """
    check_cpu(device)
    if isinstance(obj, Tensor) and not copy and (dtype is None or dtype_of(dtype) is obj.dtype):
        if requires_grad == obj.requires_grad:
            return obj
        constant_made(obj, "symgrad.asarray()")
        return obj.detach().requires_grad_(requires_grad)
    if isinstance(obj, Tensor):
        constant_made(obj, "symgrad.asarray()")
    value = read_data(obj, dtype)
    shares = isinstance(obj, (np.ndarray, Tensor)) and isinstance(value, np.ndarray) and np.may_share_memory(value, as_value(obj))
    if copy is False and not shares:
        raise ValueError("asarray: copy=False, but the data is no array of the dtype, so that it must be copied")
    return sharing(value, requires_grad) if shares and not copy else new_leaf(value.copy("K") if shares else value, requires_grad)


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares memory with a NumPy array.

    Raises TypeError for other objects, and for dtypes that tensors do not have.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: the data must be an np.ndarray, not {type(ndarray).__name__}")
    return sharing(as_value(ndarray))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares memory with a buffer, `count` elements (-1 for all) from the byte `offset` on.

    Raises ValueError for a buffer that is too small.
    """
    return sharing(np.frombuffer(buffer, numpy_dtype(dtype), count, offset), requires_grad)


# By value


@factory_function
def zeros(dtype: DType | None, *sizes: Any, size: Any = None) -> Any:
    """A tensor of zeros."""
    return np.zeros(sizes_of("zeros", sizes, size), numpy_dtype(dtype))


@factory_function
def ones(dtype: DType | None, *sizes: Any, size: Any = None) -> Any:
    """A tensor of ones."""
    return np.ones(sizes_of("ones", sizes, size), numpy_dtype(dtype))


@factory_function
def empty(dtype: DType | None, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
    """An uninitialized tensor in a memory format."""
    if str(memory_format) == "torch.preserve_format":
        raise RuntimeError("empty: memory_format must not be preserve_format, for there is no tensor whose order is kept")
    return empty_in_format(sizes_of("empty", sizes, size), numpy_dtype(dtype), memory_format)


@factory_function
def empty_strided(dtype: DType | None, size: Any, stride: Any) -> Any:
    """An uninitialized tensor with the given strides, in elements."""
    shape, strides = sizes_of("empty_strided", (size,)), tuple(stride)
    if len(shape) != len(strides) or any(s < 0 for s in strides):
        raise RuntimeError(f"empty_strided: the shape {list(shape)} needs one stride from 0 on for each dimension, not {list(strides)}")
    storage = np.empty(1 + sum((n - 1) * s for n, s in zip(shape, strides)) if math.prod(shape) else 0, numpy_dtype(dtype))
    return np.ndarray(shape, storage.dtype, storage, 0, tuple(s * storage.itemsize for s in strides))


@factory_function
def empty_permuted(dtype: DType | None, size: Any, physical_layout: Any) -> Any:
    """An uninitialized tensor without gaps whose dimensions lie in memory in the given order, from the largest stride to the smallest."""
    shape, order = sizes_of("empty_permuted", (size,)), tuple(int(i) for i in physical_layout)
    if sorted(order) != [i for i, _ in enumerate(shape)]:
        raise RuntimeError(f"empty_permuted: physical_layout must be an order of the {len(shape)} dimensions, not {order}")
    return np.empty([shape[i] for i in order], numpy_dtype(dtype)).transpose([order.index(i) for i, _ in enumerate(order)])


@factory_function
def full(dtype: DType | None, size: Any, fill_value: Any) -> Any:
    """A tensor whose elements are all `fill_value`."""
    fill = _fill("full: fill_value", fill_value, None if dtype is None else dtype.numpy)
    if isinstance(size, int):
        raise TypeError(f"full: size must be a tuple of integers, not {size}")
    return np.full(sizes_of("full", (size,)), fill)


def _fill(argument: str, fill_value: Any, dtype: Any) -> Any:
    """A number in a dtype. Raises TypeError for what is none, RuntimeError for one that the dtype cannot hold."""
    if dtype is not None and isinstance(fill_value, (int, float)):
        return number_in(fill_value, dtype)
    try:
        value = as_value(fill_value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be a number, not {type(fill_value).__name__}: {error}") from None
    if value.ndim or isinstance(fill_value, Tensor) and fill_value.requires_grad:
        raise TypeError(f"{argument} must be a number, not an array or a tensor that requires grad")
    if value.dtype.kind == "c" and dtype is not None and dtype.kind not in "cb" and np.any(value.imag):
        raise RuntimeError(f"{argument} {fill_value} has an imaginary part, but the dtype is {dtype}")
    if dtype is None:
        return value
    return (np.asarray(fill_value) if isinstance(fill_value, complex) else value).astype(dtype)


@factory_function
def scalar_tensor(dtype: DType | None, s: Any) -> Any:
    """A tensor of no dimensions of one number, in the default dtype or in `dtype`."""
    return np.array(_fill("scalar_tensor: s", s, numpy_dtype(dtype)))


def _numbers(name: str, *given: Any) -> tuple[list[Any], np.dtype]:
    """The arguments of a function as Python numbers, and their dtype."""
    plain = [python_number(name, x) for x in given]
    kinds = {type(x) for x in plain}
    if complex in kinds:
        return plain, get_default_dtype().to_complex().numpy
    return plain, get_default_dtype().numpy if float in kinds else np.dtype(np.int64)


@factory_function
def arange(dtype: DType | None, start: Any = 0, end: Any = None, step: Any = 1) -> Any:
    """The numbers start, start + step, ... below `end`; integers if all three are."""
    if end is None:
        start, end = 0, start
    (start, end, step), kind = _numbers("arange", start, end, step)
    for number in (start, end, step):
        if isinstance(number, complex) or isinstance(number, int) and not -2**63 <= number < 2**63:
            number_in(number, kind if kind.kind == "i" else np.dtype(np.float64))  # its error
    count = None
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex) and all(map(math.isfinite, (start, end))):
        if dtype.name != "int64" and step:  # torch counts in float64 for these dtypes, before it cuts the numbers to integers
            count = math.ceil((end - start) / step)
        (start, end, step), kind = map(int, (start, end, step)), np.dtype(np.int64)
    if step == 0 or not all(map(math.isfinite, (start, end))) or (end - start) * step < 0:
        raise RuntimeError(f"arange: there is no range with start {start}, end {end}, step {step}")
    target = kind if dtype is None else dtype.numpy
    if count is not None:
        return (start + step * np.arange(count)).astype(target)
    if kind.kind == "i":
        return np.arange(start, end, step).astype(target)
    return (start + step * np.arange(math.ceil((end - start) / step))).astype(target)


@factory_function
def range(dtype: DType | None, start: Any, end: Any, step: Any = 1) -> Any:
    """The numbers start, start + step, ... up to and including `end`, in the default dtype; deprecated in favour of `arange`."""
    warnings.warn("range is deprecated; use arange, which leaves out the end", UserWarning, stacklevel=3)
    (start, end, step), _ = _numbers("range", start, end, step)
    return (start + step * np.arange(math.floor((end - start) / step) + 1)).astype(numpy_dtype(dtype))


def _spaced(name: str, dtype: DType | None, start: Any, end: Any, steps: Any) -> Any:
    """Evenly spaced numbers, each computed from the nearer end."""
    if isinstance(steps, Tensor) and not steps.ndim:
        steps = steps.item()
    expect_integer(name, "steps", steps)
    (start, end), kind = _numbers(name, start, end)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        start, end = int(start), int(end)
    at, step = np.arange(steps), (end - start) / max(steps - 1, 1)
    target = dtype or (dtype_of(kind) if kind.kind == "c" else get_default_dtype())
    out = np.where(at < steps / 2, start + step * at, end - step * (steps - 1 - at)) if steps != 1 else np.array([start + 0 * step])
    return out, target.numpy


@factory_function
def linspace(dtype: DType | None, start: Any, end: Any, steps: int) -> Any:
    """`steps` numbers, evenly spaced from `start` to `end`, both included."""
    out, target = _spaced("linspace", dtype, start, end, steps)
    return out.astype(target)


@factory_function
def logspace(dtype: DType | None, start: Any, end: Any, steps: int, base: float = 10.0) -> Any:
    """`steps` powers of `base`, with exponents evenly spaced from `start` to `end`, both included."""
    out, target = _spaced("logspace", dtype, start, end, steps)
    (number,), _ = _numbers("logspace", base)
    return (number**out).astype(target)


@factory_function
def eye(dtype: DType | None, n: int, m: int | None = None) -> Any:
    """The n by m matrix with ones on its diagonal."""
    for name, size in (("n", n), ("m", n if m is None else m)):
        expect_integer("eye", name, size)
    return np.eye(n, m, dtype=numpy_dtype(dtype))


def _triangle(name: str, indices: Callable[..., Any], doc: str) -> Callable[..., Tensor]:
    def make(dtype: DType | None, row: int, col: int, offset: int = 0) -> Any:
        for what, size in (("row", row), ("col", col)):
            expect_integer(name, what, size)
        check_option(name, "dtype", dtype and dtype.name, (None, "int64", "int32"), NotImplementedError)
        return np.stack(indices(row, offset, col)).astype(np.int64 if dtype is None else dtype.numpy)

    make.__name__, make.__doc__ = name, doc
    return factory_function(make)


tril_indices = _triangle("tril_indices", np.tril_indices, "The rows and columns of the lower triangle of a row by col matrix, as a 2 by N tensor.")
triu_indices = _triangle("triu_indices", np.triu_indices, "The rows and columns of the upper triangle of a row by col matrix, as a 2 by N tensor.")


# Like another tensor


def _constant_fill(number: Any) -> Callable[..., Any]:
    def fill(array: np.ndarray) -> None:
        array[...] = number

    return fill


def _leave_uninitialized(array: np.ndarray) -> None:
    pass


def _fill_with(array: np.ndarray, fill_value: Any) -> None:
    array[...] = _fill("full_like: fill_value", fill_value, array.dtype)


zeros_like = like_function(_constant_fill(0), "Zeros of the shape and dtype of another tensor.", "zeros_like")
ones_like = like_function(_constant_fill(1), "Ones of the shape and dtype of another tensor.", "ones_like")
empty_like = like_function(_leave_uninitialized, "A tensor of the shape and dtype of another, its elements not set.", "empty_like")
full_like = like_function(_fill_with, "A tensor of the shape and dtype of another whose elements are all `fill_value`.", "full_like")
