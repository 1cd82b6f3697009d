"""NumPy values of the data that users give: numbers, nested sequences, arrays and tensors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import DTYPES, get_default_dtype, is_supported, numpy_dtype
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import special
from symgrad.graph.node import TRACKED
from symgrad.system.errorstate import quietly


def as_value(data: Any, dtype: Any = None) -> Any:
    """A NumPy value of a supported dtype, from a Tensor, an array, a number or nested sequences of them."""
    if isinstance(data, Tensor):
        if special:
            data._escape()
        value = data._value
    elif isinstance(data, (np.ndarray, np.generic, DuckArray)):
        value = data if type(data) is np.ndarray or not isinstance(data, np.ndarray) else _without_class(data)
    else:
        value = from_python(data, dtype is None)
    if not is_supported(value.dtype):
        raise unreadable(value.dtype)
    return value if dtype is None else cast(value, numpy_dtype(dtype))


def cast(value: Any, dtype: np.dtype) -> Any:
    """The value in a dtype: itself, if it has that."""
    return value if value.dtype is dtype else quietly(functools.partial(value.astype, dtype, copy=False))


def _without_class(array: np.ndarray) -> np.ndarray:
    """The array of an instance of a subclass, whose operators may mean something else."""
    if hasattr(array, "mask") and np.ma.is_masked(array):
        raise TypeError("the array has masked elements, which tensors do not have; give x.filled(number), or x.data and x.mask")
    return np.asarray(array)


NESTED = "too many dimensions; a sequence contains itself, or hundreds of others are nested in it"
LIMITS = {d.numpy: (int(np.iinfo(d.numpy).min), int(np.iinfo(d.numpy).max)) for name, d in DTYPES.items() if "int" in name}
REMEDIES = {"O": "give x.astype(float) if its elements are numbers", "f": "give x.astype(np.float64)", "c": "give x.astype(np.complex128)",
            "M": "subtract an origin and divide by a unit such as np.timedelta64(1, 's')", "m": "divide by a unit such as np.timedelta64(1, 's')",
            "V": "give the fields one by one, as x['name']", "U": "give x.astype(float) if its elements are numbers",
            "S": "give x.astype(float) if its elements are numbers, or np.frombuffer(x, np.uint8) for its bytes"}


def unreadable(dtype: np.dtype) -> Exception:
    """The error for an array of a dtype that tensors do not have."""
    if not dtype.isnative and is_supported(dtype.newbyteorder("=")):
        return ValueError(f"the array has {dtype!r}, another byte order than the processor; give x.astype(x.dtype.newbyteorder('='))")
    return TypeError(f"{dtype!r} is not a supported dtype; use one of {', '.join(DTYPES)}: {REMEDIES.get(dtype.kind, 'give x.astype(float)')}")


def python_number(name: str, x: Any) -> Any:
    """The Python number that an argument of a function is, or the only element of a tensor or an array without dimensions.

    Raises TypeError for other arguments, RuntimeError for a tensor with dimensions.
    """
    if type(x) in (int, float, bool, complex):
        return x
    try:
        value = as_value(x)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: an argument must be a number, not {type(x).__name__}: {error}") from None
    if value.ndim:
        raise (RuntimeError if isinstance(x, Tensor) else TypeError)(f"{name}: an argument must be a number, not of shape {list(value.shape)}")
    if isinstance(x, Tensor):
        constant_made(x, f"{name}()")
    return value.item()


def number_in(number: Any, dtype: np.dtype) -> Any:
    """A number in a dtype, as torch converts it: a negative whole number is counted from the end of the range of an unsigned dtype.

    Raises RuntimeError for a number beyond the range of a dtype of integers.
    """
    if isinstance(number, complex) and dtype.kind not in "cb":
        raise RuntimeError(f"{number} is complex, and the dtype is {dtype}")
    if dtype.kind in "iu" and isinstance(number, (int, float)):
        low, high = LIMITS[dtype]
        if not (-high if isinstance(number, int) and dtype.kind == "u" else low) <= number <= high:
            raise RuntimeError(f"{number} is beyond the range of {dtype}, from {low} to {high}")
        number = int(number) % (high + 1) if dtype.kind == "u" else int(number)
    elif dtype.kind == "b":
        number = bool(number)
    elif isinstance(number, int) and abs(number) >= 2**63:
        number = float(number)
    return quietly(np.asarray, number, dtype)[()]


def operand_value(data: Any) -> Any:
    """A NumPy value of an operand that is no Tensor.

    Raises TypeError for what would lose derivatives or mean something else: sequences with tensors that have a graph, and named tuples.
    """
    if isinstance(data, (list, tuple)):
        fields = getattr(data, "fields", None)
        if fields:
            raise TypeError(f"the operand is the tuple ({', '.join(fields)}) that {type(data).__name__} returns; take one item of it, as in "
                            f".{fields[0]}" + ", or call amax or amin, which return values alone" * (type(data).__name__ in ("max", "min")))
        if has_graph(data):
            raise TypeError("the operand is a sequence with tensors that have a graph, which would be constants in it; join them with symgrad.stack")
    return as_value(data)


def has_graph(data: Any) -> bool:
    """Whether a nested sequence has a Tensor that is differentiated. Raises ValueError for a sequence that contains itself."""
    try:
        return _has_graph(data)
    except RecursionError:
        raise ValueError(NESTED) from None


def _has_graph(data: Any) -> bool:
    if isinstance(data, Tensor):
        return data._node is not None and bool(data._node.flags & TRACKED)
    return isinstance(data, (list, tuple)) and any(map(_has_graph, data))


def copied(x: Any) -> Any:
    """A value in memory of its own; of a scalar another object, for which `+` takes a tenth of the time of its `copy`."""
    return +x if isinstance(x, np.generic) and type(x) is not np.bool_ else x.copy()  # type: ignore[operator]


def from_python(data: Any, by_default: bool = True) -> Any:
    """A NumPy value of a number or nested sequences; with `by_default` floats get the default dtype, else float64."""
    try:
        value = np.asarray(data if not isinstance(data, (list, tuple)) else _plain(data))
    except ValueError as error:
        raise ValueError(f"tensor: the nested sequences are not rectangular ({error})") from None
    except RecursionError:
        raise ValueError(f"tensor: {NESTED}") from None
    kind = value.dtype.kind
    if kind == "O" or kind == "f" and value.size and _begins_with_integer(data) and not np.abs(value).max() < 2**63:
        value = _of_large_integers(data, by_default)
    if by_default and (value.dtype == np.float64 or not value.size):
        value = cast(value, get_default_dtype().numpy)
    elif by_default and value.dtype == np.complex128:
        value = cast(value, get_default_dtype().to_complex().numpy)
    return value if value.ndim else value[()]


def _plain(data: Any) -> Any:
    return [d if type(d) in (float, int) else _plain(d) if isinstance(d, (list, tuple)) else _without_class(d) if isinstance(d, np.ndarray) else
            _constant(d) if isinstance(d, Tensor) else d for d in data]


def _constant(x: Tensor) -> Any:
    """The value of a tensor in a sequence of which another one is made."""
    constant_made(x, "a sequence of tensors", True)
    return as_value(x)


def _begins_with_integer(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, int)


def _of_large_integers(data: Any, by_default: bool) -> Any:
    """The floats of numbers some of which are integers of more than 64 bits; without `by_default`, of such integers alone, too.

    Raises TypeError for what is no number, ValueError for integers alone by default.
    """
    value = np.asarray(_plain(data) if isinstance(data, (list, tuple)) else data, object)
    kinds = {type(x) for x in value.ravel()}
    if not all(issubclass(kind, (int, float, complex, np.number, np.bool_)) for kind in kinds):
        raise TypeError(f"tensor: could not read {type(data).__name__} {data!r} as numbers")
    if by_default and all(issubclass(kind, (int, np.integer)) for kind in kinds):
        raise ValueError("tensor: an integer has more than 64 bits; give dtype=symgrad.float64")
    return value.astype(np.complex128 if any(issubclass(kind, (complex, np.complexfloating)) for kind in kinds) else np.float64)
