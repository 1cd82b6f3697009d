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

from symgrad.arguments import check_range
from symgrad.dtypes.dtype import dtype_of, numpy_dtype
from symgrad.engine.data import as_value
from symgrad.engine.inference import made_in_inference
from symgrad.engine.refusals import expect_tensors, named
from symgrad.engine.storage.versions import stamp
from symgrad.engine.storage.writes import check_memory, refuse_inference
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread
from symgrad.layouts.devices import FORMATS, LAYOUTS, check_cpu
from symgrad.layouts.strides import empty_in_format, empty_like
from symgrad.system.errorstate import again, quietly, run_quietly
from symgrad.system.limits import SHORT


def new_leaf(value: Any, requires_grad: bool = False, symbol: Any = None) -> Tensor:
    """A tensor of a new value, with a leaf node if it requires grad or has a symbol."""
    out = wrap(value)
    if requires_grad and value.dtype.kind not in "fcV":
        raise RuntimeError(f"only tensors of floating-point and complex numbers can require grad, not {dtype_of(value.dtype)}. Give dtype=float64")
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
    if layout is not None and layout is not LAYOUTS["strided"]:
        raise RuntimeError(f"layout must be symgrad.strided, not {layout!r}; make a dense tensor")
    if pin_memory:
        raise RuntimeError("pin_memory: there is no accelerator; symgrad computes with NumPy on the CPU")


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
    expect_tensors(name, out=out)
    refuse_inference(out)
    if out.requires_grad and thread.modes.grad:
        raise RuntimeError(f"{name}: out requires grad, and what is written into it has no derivative")
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
                raise named(name, error) from None
            except RuntimeError as error:
                value = again(error, functools.partial(compute, **rest), target, *args)
            return new_leaf(value if value.ndim else value[()], requires_grad, symbol)
        expect_tensors(name, out=out)
        if target is not None and target is not out.dtype:
            raise RuntimeError(f"{name}: dtype is {target}, but out has {out.dtype}")
        value = quietly(functools.partial(compute, **rest), out.dtype, *args)
        warning = f"arange: out of shape {list(out.shape)} is resized to the {value.size} numbers of the range" * (name == "arange")
        write_out(name, out, value, warning)
        return out.requires_grad_(requires_grad)

    own = list(inspect.signature(compute).parameters.values())[1:]
    taken = {p.name for p in own}
    make.__name__, make.__qualname__, make.__doc__, make.__module__ = name, name, compute.__doc__, compute.__module__
    make.__signature__ = inspect.Signature([*own, *(p for p in KEYWORDS if p.name not in taken)], return_annotation="Tensor")  # type: ignore[attr-defined]
    return make


def sizes_of(name: str, given: Any, size: Any = None) -> tuple[int, ...]:
    """A shape given as one sequence, as several integers, or by keyword."""
    given = given if size is None else (size,)
    if len(given) == 1 and (isinstance(given[0], Sequence) and not isinstance(given[0], (str, bytes)) or isinstance(given[0], np.ndarray)
                            and given[0].ndim):
        given = tuple(given[0])
    elif not given:
        raise TypeError(f"{name}: size is missing")
    for n in given:
        if not is_integer(n) or n.__index__() >= 2**63:
            raise TypeError(f"{name}: sizes must be integers of at most 63 bits, not {n!r}")
    sizes = tuple([n.__index__() for n in given])
    if min(sizes, default=0) < 0:
        raise RuntimeError(f"{name}: sizes must not be negative, as in {list(sizes)}")
    return sizes


def is_integer(n: Any) -> bool:
    """Whether a value is valid as a size: an integer, or a tensor of one integer."""
    return type(n) is int or not isinstance(n, (bool, np.timedelta64)) and (
        isinstance(n, (int, np.integer)) or isinstance(n, Tensor) and not n.ndim and n._value.dtype.kind in "iu")


def expect_integer(name: str, word: str, n: Any) -> None:
    """Raise TypeError for a value that is not valid as a size, RuntimeError for a negative one."""
    if not is_integer(n):
        raise TypeError(f"{name}: {word} must be an integer, not {n!r}")
    check_range(name, word, n, 0)


def like_function(fill: Callable[..., Any], doc: str, name: str) -> Callable[..., Tensor]:
    """The factory of a tensor with the shape, dtype and memory order of another; `fill(array, ...)` writes its elements."""
    own = list(inspect.signature(fill).parameters.values())[1:]
    fill.__name__ = fill.__qualname__ = name  # for the errors of its arguments

    def make(input: Tensor, *args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, memory_format: Any = None, symbol: str | None = None, **rest: Any) -> Tensor:
        check_placement(device, layout, pin_memory)
        like: Any = input  # which may be an array, too
        if not isinstance(like, (Tensor, np.ndarray, np.generic)):
            expect_tensors(name, input=like)
        given, kind = like._value if isinstance(like, Tensor) else as_value(like), None if dtype is None else numpy_dtype(dtype)
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
