"""Writes into the memory of a tensor: checks, and version counting."""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from typing import Any

import numpy as np

from symgrad.carriers.batched import Shape
from symgrad.carriers.duck import DuckArray, Unrecordable, unbatchable
from symgrad.carriers.recorded import is_recorded
from symgrad.dtypes.dtype import category, dtype_of
from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import special, thread
from symgrad.layouts.strides import address, dense, overlaps
from symgrad.system.errorstate import again, run_quietly


def check_memory(name: str, target: Any, repeated: bool = False) -> None:
    """Refuse read-only memory, and elements that overlap, unless `repeated` says that they get equal values."""
    if isinstance(target, DuckArray):
        raise _in_batch(name)
    if not repeated and target.base is not None and overlaps(target):
        raise RuntimeError(f"{name}: several elements of the written tensor are one place in memory; clone() it first")
    if not target.flags.writeable:
        raise RuntimeError(f"{name}: the memory of this tensor is read-only: it belongs to a NumPy array that may not be written; clone() it first")


def check_result(name: str, target: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse a result of a shape and dtype that does not fit into an array."""
    if type(shape) is Shape or isinstance(target, DuckArray):
        raise _in_batch(name)
    if shape != target.shape:
        raise RuntimeError(f"{name}: the result has the shape {list(shape)}, but the tensor into which it is written {list(target.shape)}")
    if category(target.dtype) < category(dtype):
        raise RuntimeError(f"{name}: the result has the dtype {dtype_of(dtype)}, which is not written into a tensor of {dtype_of(target.dtype)}")


def _in_batch(name: str) -> RuntimeError:
    if thread.modes.program is not None:
        return Unrecordable(f"{name} writes in place")
    return unbatchable(f"vmap: {name} writes in place inside vmap, which is not supported; use the form of the operation that returns a "
                       f"new tensor, such as add for add_ and index_put or where for an assignment")


class InferenceError(RuntimeError):
    """An inference tensor is used where only an ordinary tensor can be."""


def refuse_inference(tensor: Tensor) -> None:
    """Refuse a write to an inference tensor outside of inference mode."""
    place = tensor._node_slot
    if place is not None and place.in_inference and not thread.modes.inference:
        raise InferenceError("an inference tensor is not written to outside of inference mode; clone() it first")


def refuse_overlap(target: np.ndarray, source: Any, all_alike: bool = True) -> None:
    """Refuse an operand that overlaps with the written memory, unless both are the same view and `all_alike`.

    Memory with gaps is not examined, as in torch; NumPy reads an operand completely before it writes.
    """
    if source is target and all_alike or not isinstance(source, np.ndarray) or not np.may_share_memory(target, source):
        return
    if not target.size or not source.size or not dense(target) or not dense(source):
        return
    if all_alike and alike(target, source):
        return
    raise RuntimeError("a tensor that is read overlaps with the memory that is written; clone() it first")


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same memory, strides and shape."""
    return address(a) == address(b) and a.nbytes == b.nbytes and (
        a.strides == b.strides or a.shape == b.shape and all(s == t or n == 1 and 0 in (s, t) for n, s, t in zip(a.shape, a.strides, b.strides)))


def is_written_as_value(target: Tensor, *operands: Any) -> bool:
    """Whether a write is part of a program that is being recorded, where values have no memory."""
    return thread.modes.program is not None and any([isinstance(x, Tensor) and is_recorded(x._value) for x in (target, *operands)])


def replace_value(target: Tensor, result: Tensor, name: str) -> Tensor:
    """Give a tensor the value and the node of a result, as a write in a recorded program.

    Raises Unrecordable for a tensor whose memory others share.
    """
    if result._value.shape != target._value.shape or category(target._value.dtype) < category(result._value.dtype):
        check_result(name, np.empty(target._value.shape, target._value.dtype), result._value.shape, result._value.dtype)
    if target._view is not None or thread.modes.program.shares_memory(target):
        raise Unrecordable(f"{name} writes into an argument, a captured tensor, or memory that several tensors share")
    target._value, target._node_slot = result._value, result._node_slot
    return target


def write(target: Any, value: Any, name: str, index: Any = None) -> None:
    """Write a value into an array of its shape, or to an index of an array, and count a version."""
    if isinstance(target, DuckArray) or isinstance(value, DuckArray):
        raise _in_batch(name)
    if special:
        for observer in thread.modes.observers:
            observer.write(target)
    stamp(target, name)
    if index is None:
        call: tuple[Any, ...] = np.copyto, target, value, "unsafe"
    else:
        call = operator.setitem, target, index, value
    try:
        run_quietly(*call)
    except RuntimeError as error:
        again(error, *call)


STRICT = frozenset("neg abs sign sgn floor ceil round trunc clamp clamp_min clamp_max bitwise_not argmax argmin gather mm mv dot matmul addmm "
                   "index_select norm amax amin where".split())  # the functions that write only to their own dtype
CAST = frozenset(("sum", "prod", "cumsum", "cumprod"))  # these compute in the dtype of `out`


def _check_out(name: str, target: Any, dtype: np.dtype) -> None:
    """Refuse an `out` of a dtype that the function does not write to, though the result could be converted to it."""
    if target.dtype != dtype and (name in STRICT or name in ("all", "any") and target.dtype not in (np.uint8, np.bool_)):
        raise RuntimeError(f"{name}: out must have the dtype {dtype_of(dtype)}, not {dtype_of(target.dtype)}")


def taking_out(function: Any) -> Any:
    """The function with a keyword `out`, a tensor into which the result is written."""
    @functools.wraps(function)
    def into_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if out is None else into(out, function.__name__, function, *args, **kwargs)

    given = inspect.signature(function)
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
    into_out.__signature__ = given.replace(parameters=[*given.parameters.values(), keyword])  # type: ignore[attr-defined]
    return into_out


def into(out: Any, name: str, compute: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute into the tensor `out`, or into a tuple of tensors, which are resized if necessary; nothing is recorded.

    Raises RuntimeError if an operand or `out` requires grad, TypeError if `out` is not a Tensor, or not one for each result.
    Nothing is written before everything has been checked.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for t in outs:
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}: out must be a Tensor, not {type(t).__name__}")
    modes = thread.modes
    given = [t for x in (*outs, *args, *kwargs.values()) for t in (x if isinstance(x, (list, tuple)) else (x,)) if isinstance(t, Tensor)]
    if modes.grad and any([t.requires_grad for t in given]):
        raise RuntimeError(f"{name}: with out= nothing is recorded, but an argument requires grad. Leave out=, or detach the argument")
    if modes.level is not None and any([modes.level.tangent_of(t) is not None for t in given]):
        raise NotImplementedError(f"{name}: with out= nothing is recorded, but an argument has a tangent. Leave out=, or use copy_")
    if name in CAST and "dtype" not in kwargs and out._value.dtype.kind != "b":
        kwargs["dtype"] = dtype_of(out._value.dtype)
    result = compute(*args, **kwargs)
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    if (outs is out) == isinstance(result, Tensor) or len(outs) != len(results):
        raise TypeError(f"{name}: out must be {'one Tensor' if isinstance(result, Tensor) else f'a tuple of {len(results)} Tensors'}")
    targets = [_target(t, r, name) for t, r in zip(outs, results)]
    for t, r, target in zip(outs, results, targets):
        if target is not t._value:
            t._rebind(target)
        write(target, r._value, name)
    return out if isinstance(result, Tensor) else type(result)(tuple(outs))


def _target(out: Tensor, result: Tensor, name: str) -> Any:
    """The array into which a result is written: that of `out`, or a new one if it has another shape; all checks pass first."""
    if special:
        result._escape()
    value = result._value
    target = out._array()
    if isinstance(out._value, DuckArray) or isinstance(value, DuckArray):
        raise _in_batch(f"{name} with out=")
    refuse_inference(out)
    _check_out(name, target, value.dtype)
    if name in ("all", "any"):
        value = value.astype(target.dtype)
    if target.shape != value.shape:
        check_memory(name, target)
        if target.size:
            warnings.warn(f"{name}: out of shape {list(target.shape)} is resized to {list(value.shape)}, as in PyTorch, where that is deprecated",
                          UserWarning, stacklevel=4)
        target = np.empty(value.shape, target.dtype)
    check_memory(name, target)
    check_result(name, target, value.shape, value.dtype)
    return target
