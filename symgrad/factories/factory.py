"""Shared parts of factories: torch's keywords, shapes, `out=`, and leaves with symbols."""

from __future__ import annotations

import functools
import inspect
import math
import reprlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, numpy_dtype
from symgrad.engine.data import as_value
from symgrad.engine.inference import made_in_inference
from symgrad.engine.refusals import not_unpacked, of_wrong_kind
from symgrad.engine.storage.versions import stamp
from symgrad.engine.storage.writes import check_memory, refuse_inference
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import kind_name
from symgrad.graph.modes import thread
from symgrad.layouts.devices import FORMATS, check_cpu, check_not_pinned, check_strided
from symgrad.layouts.memory_layout import empty_in_format, empty_like
from symgrad.system.errorstate import again, quietly, run_quietly
from symgrad.system.limits import SHORT

__all__ = ["check_placement", "expect_integer", "factory_function", "is_integer", "like_function", "new_leaf", "resize_array", "sharing", "sizes_of",
           "write_out"]


def new_leaf(value: Any, requires_grad: bool = False, symbol: Any = None) -> Tensor:
    """A tensor of a new value, with a leaf node if it requires grad or has a symbol."""
    out = wrap(value)
    if requires_grad and value.dtype.kind not in "fcV":
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients; this one is {dtype_of(value.dtype)}: give "
                           f"dtype=float64 or floating-point data")
    if symbol is not None and not (isinstance(symbol, str) and len(symbol) <= SHORT and symbol.isidentifier()):
        raise ValueError(f"symbol must be a name such as 'x', not {reprlib.repr(symbol)}")
    if requires_grad or symbol is not None:
        out._make_leaf(requires_grad, symbol)
    return out if not thread.modes.inference else made_in_inference(out)


def sharing(value: Any, requires_grad: bool = False) -> Tensor:
    """As `new_leaf` of memory that others have, so that a program cannot record a write into it."""
    out = new_leaf(value, requires_grad)
    if thread.modes.program is not None:
        thread.modes.program.share_value(out._array())
    return out


def check_placement(device: Any = None, layout: Any = None, pin_memory: bool = False) -> None:
    """Raise for unsupported devices, layouts and pinned memory."""
    check_cpu(device)
    if layout is not None:
        check_strided(layout)
    if pin_memory:
        check_not_pinned(pin_memory)


def resize_array(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a shape with the same first element as another: in the same memory if that is large enough, else in new memory."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    size = math.prod(shape) * array.itemsize
    low, high = np.lib.array_utils.byte_bounds(owner) if owner.size else (0, 0)
    start = array.__array_interface__["data"][0] - low
    if owner.flags.c_contiguous and owner.flags.writeable and array.size and start + size <= high - low:
        return np.ndarray(shape, array.dtype, owner.reshape(-1).view(np.uint8).data, start)
    out = np.empty(shape, array.dtype)
    out.reshape(-1)[:array.size] = array.reshape(-1)
    return out


def write_out(name: str, out: Any, value: np.ndarray, warning: str = "") -> Tensor:
    """Write a value into the tensor `out`, which gets its shape, and return `out`.

    Raises TypeError unless `out` is a Tensor, RuntimeError if it requires grad. `warning` is emitted if `out` had another shape.
    """
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    refuse_inference(out)
    if out.requires_grad and thread.modes.grad:
        raise RuntimeError(f"aten::{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                           f"requires grad.")
    array = out._array()
    check_memory(name, array)
    if array.shape != value.shape:
        if warning and array.size:
            warnings.warn(warning, UserWarning, stacklevel=4)
        array = resize_array(array, value.shape)
        out._rebind(array)
    stamp(array, name)
    quietly(np.copyto, array, value, "unsafe")
    return out


KEYWORDS = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind) for name, default, kind in (
    ("out", None, "Tensor | None"), ("dtype", None, "Any"), ("layout", None, "Any"), ("device", None, "Any"), ("pin_memory", False, "bool"),
    ("requires_grad", False, "bool"), ("symbol", None, "str | None"))]


def factory_function(compute: Callable[..., Any]) -> Callable[..., Tensor]:
    """The public factory of `compute(dtype, ...)`, which returns the new array, with torch's keywords.

    `dtype` is that of the caller or of `out`; None leaves the choice to `compute`.
    """
    name = compute.__name__

    def make(*args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, symbol: str | None = None, **rest: Any) -> Tensor:
        check_placement(device, layout, pin_memory)
        target = None if dtype is None else dtype_of(dtype)
        if out is None:
            try:
                value = run_quietly(compute, target, *args, **rest)
            except TypeError as error:
                raise of_wrong_kind(name, error, (*args, *rest.values())) from None
            except RuntimeError as error:
                value = again(error, functools.partial(compute, **rest), target, *args)
            return new_leaf(value if value.ndim else value[()], requires_grad, symbol)
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if target is not None and target is not out.dtype:
            raise RuntimeError(f"dtype {target.scalar_type} does not match dtype of out parameter ({out.dtype.scalar_type})")
        value = quietly(functools.partial(compute, **rest), out.dtype, *args)
        warning = ""
        if name == "arange":
            warning = (f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the computed "
                       f"number of elements {value.size}. Note that this may occur as a result of rounding error. The out tensor will be resized "
                       f"to a tensor of shape ({value.size},).")
        write_out(name, out, value, warning)
        return out.requires_grad_(requires_grad)

    own = list(inspect.signature(compute).parameters.values())[1:]
    taken = {p.name for p in own}
    make.__name__, make.__qualname__, make.__doc__, make.__module__ = name, name, compute.__doc__, compute.__module__
    make.__signature__ = inspect.Signature([*own, *(p for p in KEYWORDS if p.name not in taken)], return_annotation="Tensor")  # type: ignore[attr-defined]
    return make


def sizes_of(name: str, given: Any, size: Any = None) -> tuple[int, ...]:
    """A shape given as one sequence, as several integers, or by keyword, with torch's errors."""
    if size is not None:
        given = (size,)
    elif not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = given[0]
    if len(given) == 1 and not is_integer(first):
        if isinstance(first, (str, bytes)) or not isinstance(first, Sequence) and not (isinstance(first, np.ndarray) and first.ndim):
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(first).__name__}")
        given = tuple(first)
    for i, n in enumerate(given):
        if not is_integer(n) and i:
            raise not_unpacked(name, "size", i, n)
        if not is_integer(n):
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type {kind_name(n)} at pos 0")
    sizes = tuple([n.__index__() for n in given])
    for i, n in enumerate(sizes):
        if n >= 2**63:
            raise TypeError(f"{name}(): argument 'size' failed to unpack the object at pos {i + 1}: a size has at most 63 bits, not {n}")
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(sizes)}")
    return sizes


def is_integer(n: Any) -> bool:
    """Whether a value is valid as a size: an integer, or a tensor of one integer."""
    return type(n) is int or not isinstance(n, (bool, np.timedelta64)) and (
        isinstance(n, (int, np.integer)) or isinstance(n, Tensor) and not n.ndim and n._value.dtype.kind in "iu")


def expect_integer(argument: str, n: Any) -> None:
    """Raise TypeError for a value that is not valid as a size."""
    if not is_integer(n):
        raise TypeError(f"{argument} must be int, not {type(n).__name__}")


def like_function(fill: Callable[..., Any], doc: str, name: str) -> Callable[..., Tensor]:
    """The factory of a tensor with the shape, dtype and memory order of another; `fill(array, ...)` writes its elements."""
    own = list(inspect.signature(fill).parameters.values())[1:]
    fill.__name__ = fill.__qualname__ = name  # for the errors of its arguments

    def make(input: Tensor, *args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, memory_format: Any = None, symbol: str | None = None, **rest: Any) -> Tensor:
        check_placement(device, layout, pin_memory)
        if not isinstance(input, (Tensor, np.ndarray, np.generic)):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        given, kind = input._value if isinstance(input, Tensor) else as_value(input), None if dtype is None else numpy_dtype(dtype)
        if memory_format is not None and memory_format is not FORMATS["preserve_format"]:
            value = empty_in_format(given.shape, given.dtype if kind is None else kind, memory_format)
        else:
            value = empty_like(given, kind) if type(given) is np.ndarray else np.empty_like(given, kind, "C")
        quietly(functools.partial(fill, **rest), value, *args)
        return new_leaf(value if value.ndim else value[()], requires_grad, symbol)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "symgrad"  # the public module, which pickle needs
    make.__doc__ = doc
    first = inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor")
    words = [p for p in KEYWORDS if p.name != "out"]
    words.insert(-1, inspect.Parameter("memory_format", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any"))
    make.__signature__ = inspect.Signature([first, *own, *words], return_annotation="Tensor")  # type: ignore[attr-defined]
    return make
