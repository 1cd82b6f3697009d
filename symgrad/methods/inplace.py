"""In-place operations: each op of the registry as `name_`, which writes its result into its first argument.

The value is computed out of place, then written, and the tensor gets the node of the result. A rule that reads the old value gets a copy, so that
a write never invalidates its own pullback; the version counter protects what other nodes saved.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_one_dtype
from symgrad.carriers import numeric
from symgrad.carriers.structure import is_basic
from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.data import number_in, operand_value, python_number
from symgrad.engine.hooks import move_retained
from symgrad.engine.method_table import Later, MethodTable
from symgrad.engine.recording import convert, core
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.saved import keeps_old
from symgrad.engine.storage.copyslices import interrupt, rebase_history
from symgrad.engine.storage.versions import stamp
from symgrad.engine.storage.views import View, base_of, refuse_in_place
from symgrad.engine.storage.writes import (
    alike,
    check_memory,
    check_result,
    is_written_as_value,
    refuse_inference,
    refuse_overlap,
    replace_value,
    write,
)
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.graph.classes import specialized
from symgrad.graph.freed import released
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, GRADIENT, INFERENCE, TRACKED, Leaf, Node, all_threads, constructor, next_sequence, node_class
from symgrad.graph.op import REGISTRY, Op
from symgrad.layouts.indices import is_broadcastable, is_full_index, is_mask
from symgrad.methods.operators import index_without_tensors, split_index
from symgrad.system.errorstate import again, run_quietly

METHODS = MethodTable()
ndarray = np.ndarray

NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative}  # operators in the carrier


def _any_requires_grad(args: Any) -> bool:
    return any([isinstance(a, Tensor) and a.requires_grad for a in args])


def _is_recorded(args: Any) -> bool:
    """Whether an operation on these arguments is recorded, be it only by the recorder of a Function's forward."""
    flags = thread.modes.recorder.flags
    return any([isinstance(a, Tensor) and (node := a._node) is not None and node.flags & flags for a in args])


def in_place(name: str, function: Callable[..., Any], recorded: Callable[..., Any] | None = None) -> Callable[..., Tensor]:
    """The in-place form of a function, which writes to its first argument; `recorded` replaces the function where a graph is recorded."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        others = (*args, *kwargs.values())
        if thread.modes.grad and _any_requires_grad((self, *others)):
            refuse_in_place(self)
        if special and is_written_as_value(self, *others):
            result = function(wrap(self._value, self._node), *args, **kwargs)
            return replace_value(self, result if result._value.dtype == self._value.dtype else convert(result, self._value.dtype), name)
        expect_tensors(name, input=self)
        x = self._array()
        p = self._node
        for a in others if thread.modes.grad else ():
            if isinstance(a, Tensor):
                a._node  # noqa: B018  raises for a view whose node is no longer defined
        check_memory(name, x)
        alias = False  # whether an operand shares this tensor's memory
        for a in others:
            if isinstance(a, Tensor) and isinstance(a._value, np.ndarray):
                refuse_overlap(x, a._value)
                alias |= a is self or np.may_share_memory(x, a._value)
        known = _is_recorded((self, *others))
        result = (recorded if recorded is not None and known else function)(wrap(x.copy() if known else x, p), *args, **kwargs)
        check_result(name, x, result._value.shape, result._value.dtype)
        return _write_result(self, result if result._value.dtype == x.dtype else convert(result, x.dtype), name, alias)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `{name[:-1]}`, in place: the result is written into this tensor's memory, and the tensor is returned."
    return method


def _write_result(self: Tensor, result: Tensor, name: str, alias: bool = False) -> Tensor:
    """Write a result into a tensor, which gets the node of the result."""
    x, node, old = self._array(), result._node, self._node
    refuse_inference(self)
    if node is INFERENCE:
        node = None
    before = None
    if node is not None:
        base = base_of(self)
        if base is not None and not _is_recorded((base,)):
            before = base._value.copy()
    if node is None:
        write(x, result._value, name)
        return self
    since = next_sequence()
    try:
        write(x, result._value, name)
        if not isinstance(node, Leaf) and node.value is result._value:
            node.value = x
            node.sequence_nr = since if alias else next_sequence()
        rebase_history(self, old, node, before)
    except BaseException:
        interrupt(self)
        raise
    return self


def _is_simple_view(meta: Any, x: np.ndarray, p: Node | None) -> bool:
    """Whether a view and its base are computed and require grad, and nothing forbids a write."""
    if p is None or not p.flags & GRADIENT or not p.parents or type(meta) is not View or meta.made:
        return False
    node, memory = meta.base._node_slot, x.flags
    return node is not None and bool(node.flags & GRADIENT and node.parents) and memory.c_contiguous and memory.writeable


def _in_place_ufunc(op: Op, name: str) -> Callable[..., Tensor]:
    """The hot path for one operand, or for two of one shape and dtype, of which the first may be a view; other calls take the general path."""
    call: Any = NUMPY.get(op.name) or getattr(numeric, op.name)
    general = in_place(name, FUNCTIONS[op.name])
    make = constructor(node_class(op, broadcasts=False if op.arity == 2 else None))
    first, second, integers = keeps_old(op, 0), op.arity == 2 and keeps_old(op, 1), op.numerics.integers and not op.numerics.refuses

    def binary(self: Tensor, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor:
        x, p = self._value, self._node_slot
        if (type(x) is not ndarray or special or alpha is not None or rounding_mode is not None
                or (view := x.base is not None) and not _is_simple_view(self._view, x, p)):
            return general(self, other, **{word: x for word, x in (("alpha", alpha), ("rounding_mode", rounding_mode)) if x is not None})
        if isinstance(other, Tensor):
            z, q = other._value, other._node_slot
            if z.dtype is not x.dtype or z.shape != x.shape or (np.may_share_memory(x, z) if view else z.base is x or z is x):
                return general(self, other)
        elif type(other) is float and x.dtype.kind == "f":
            z, q = other, None
        else:
            return general(self, other)
        flags = ((0 if p is None else p.flags) | (0 if q is None else q.flags)) & TRACKED
        if flags is BARRED or (not view and (self._view is not None or type(p) is Leaf) if flags else not integers and x.dtype.kind in "biu"):
            return general(self, other)
        stamp(x, name)
        node = None
        if flags:
            node = make((x.copy() if p is None or first or second and q is not None else released(x), z), (p, q), x, flags)
        try:
            try:
                run_quietly(call, x, z, x)
            except RuntimeError as error:
                again(error, call, x, z, x)
            if node is not None:
                if view:
                    rebase_history(self, p, node)
                    return self
                self._node_slot = node
        except BaseException:
            if node is not None:
                interrupt(self)
            raise
        if node is not None and all_threads.hooked:
            move_retained(self, p, node)
        return self

    def unary(self: Tensor) -> Tensor:
        x = getattr(self, "_value", None)
        if type(x) is not ndarray or x.base is not None or special or x.dtype.kind != "f":
            return general(self)
        p = self._node_slot
        flags = 0 if p is None else p.flags & TRACKED
        if flags is BARRED or flags and (self._view is not None or type(p) is Leaf):
            return general(self)
        stamp(x, name)
        node = make((x.copy() if first else released(x),), (p,), x, flags) if flags else None
        try:
            try:
                run_quietly(call, x, x)
            except RuntimeError as error:
                again(error, call, x, x)
            if node is not None:
                self._node_slot = node
        except BaseException:
            if node is not None:
                interrupt(self)
            raise
        if node is not None and all_threads.hooked:
            move_retained(self, p, node)
        return self

    method: Any = specialized(unary if op.arity == 1 else binary)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = general.__doc__
    return method


def _comparison_op(op: Op) -> Callable[..., Any]:
    """An op with boolean results, converted to the dtype of the written tensor, with derivative zero."""
    zeros = (0,) * (op.arity or 1)

    def forward(xp: Any, input: Any, *other: Any) -> Any:
        return xp.indicator(op.forward(xp, input, *other), input)

    def names(node: Any) -> str:
        return f"{op.surface.node_name[:-1]}{int(len(node.args) > 1 and isinstance(node.args[1], (np.ndarray, np.generic)))}"

    return core(op.but(name=f"{op.name}_", forward=forward, partials=zeros, vjp=lambda xp, g, y, args, needs: (None,) * len(zeros),
                        jvp=lambda xp, tangents, y, args: None, differentiable=True, names=names))


def _in_place_op(op: Op, name: str) -> Callable[..., Tensor]:
    if op.kind == "elementwise" and not op.differentiable:
        return in_place(name, FUNCTIONS[op.name], _comparison_op(op))
    return _in_place_ufunc(op, name) if op.numerics.supports_out else in_place(name, FUNCTIONS[op.name])


OTHERS = ("clamp", "clamp_min", "clamp_max", "softmax", "log_softmax", "cumsum", "cumprod", "tril", "triu", "masked_fill", "masked_scatter",
          "index_put", "index_add", "index_copy", "index_fill", "scatter", "scatter_add", "addcmul", "addcdiv", "lerp", "addmm", "addmv", "addr",
          "addbmm", "baddbmm", "copysign", "deg2rad", "heaviside", "ldexp", "nan_to_num", "fmod", "rad2deg", "sgn", "sinc", "xlogy",
          "mvlgamma", "i0", "index_reduce", "renorm", "scatter_reduce")
for _op in list(REGISTRY.values()):
    if _op.surface.public and _op.surface.method and (_op.kind == "elementwise" or _op.name in OTHERS):
        for _name in (_op.name, *_op.surface.aliases):
            METHODS[_name + "_"] = Later(functools.partial(_in_place_op, _op, _name + "_"))


_fill_number = core(REGISTRY["fill_number"])
_overwrite, _fill, _zero = core(REGISTRY["overwrite"]), core(REGISTRY["fill"]), core(REGISTRY["zero"])


@METHODS.define
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of another tensor, broadcast and converted to this dtype; differentiable by `src`.

    Raises RuntimeError where the shapes do not broadcast, and for a leaf that requires grad.
    """
    source = src if isinstance(src, Tensor) else wrap(operand_value(src))
    if thread.modes.grad and _any_requires_grad((self, source)):
        refuse_in_place(self)
    return _write_source(self, source, "copy_", _overwrite)


def _write_source(self: Tensor, source: Tensor, name: str, op: Any, repeated: bool = False) -> Tensor:
    x = self._array()
    same = name == "copy_" and isinstance(source._value, np.ndarray) and x.shape == source._value.shape and alike(x, source._value)
    if name == "copy_" and not same:
        refuse_overlap(x, source._value)  # before the shapes are compared, as in torch
        try:
            shape = np.broadcast_shapes(x.shape, source._value.shape)
        except ValueError:
            shape = x.shape
        check_result(name, x, shape, x.dtype)
    if not is_broadcastable(source._value.shape, x.shape):
        traced.expand(source, x.shape)  # raises the error of `expand`
    if name == "__setitem__" and source.shape != self.shape:
        if source.ndim:  # a scalar is broadcast
            read = source._value.reshape(source.shape[max(source.ndim - x.ndim, 0):])
            refuse_overlap(x, np.broadcast_to(read, x.shape))
    elif name not in ("copy_", "fill_"):
        refuse_overlap(x, source._value)
    check_memory(name, x, repeated or same)
    if source._value.dtype != x.dtype:
        source = convert(source, x.dtype)
    if source.ndim > x.ndim:
        source = source.reshape(source.shape[source.ndim - x.ndim:])
    p = self._node
    return _write_result(self, op(wrap(x, p), source), name)


@METHODS.define
@taking_tensors
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number, or the element of a tensor of no dimensions, everywhere.

    Raises RuntimeError for a tensor with dimensions, and for a leaf that requires grad.
    """
    source = value if isinstance(value, Tensor) else wrap(number_in(python_number("fill_", value), self._value.dtype)[()])
    if source.ndim:
        raise RuntimeError(f"fill_: value must have no dimensions, but its shape is {list(source.shape)}")
    if thread.modes.grad and _any_requires_grad((self, source)):
        refuse_in_place(self)
    return _write_source(self, source, "fill_", _fill if source is value else _fill_number, source is not value)


@METHODS.define
@taking_tensors
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere."""
    if thread.modes.grad and self.requires_grad:
        refuse_in_place(self)
    x = self._array()
    check_memory("zero_", x, repeated=True)
    return _write_result(self, _zero(wrap(x, self._node)), "zero_")


@METHODS.define
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Write elements in place; differentiable by the written value.

    Raises IndexError for an index out of range, RuntimeError for values that do not broadcast, a leaf that requires grad, and read-only memory.
    """
    index = index_without_tensors(index)
    source = value if isinstance(value, Tensor) else wrap(operand_value(value))
    if special and is_written_as_value(self, source):
        if thread.modes.grad and _any_requires_grad((self, source)):
            refuse_in_place(self)
        before = wrap(self._value, self._node)
        replace_value(self, traced.put(before, convert(source, self._value.dtype), index, False), "__setitem__")
        return
    if is_basic(index):
        try:
            whole = is_full_index(self._array(), index)
            target = self if whole else self[index]
        except IndexError as error:
            raise IndexError(re.sub(r"\b\w+(?=: |, given)", "__setitem__", str(error), count=1)) from None
        if thread.modes.grad and _any_requires_grad((target, source)):
            refuse_in_place(target)
        _write_source(target, source, "__setitem__", _fill if whole and self.ndim and not source.ndim else _overwrite)
        return
    basic, index = split_index(index, self._value.shape)
    if basic:
        self[basic][index] = value
        return
    if source._value.shape[:1] == (1,):
        source._node  # noqa: B018  torch takes such dimensions off first, and a view whose history cannot be brought up to date raises
    if thread.modes.grad and _any_requires_grad((self, source)):
        refuse_in_place(self)
    x = self._array()
    try:
        piece = numeric.getitem(x, index)
    except IndexError as error:
        raise IndexError(f"__setitem__: {error} (of a tensor of shape {list(self.shape)})") from None
    if not is_broadcastable(source._value.shape, piece.shape):
        raise RuntimeError(f"__setitem__: a value of shape {list(source.shape)} does not broadcast to the indexed elements of shape "
                           f"{list(piece.shape)}")
    check_memory("__setitem__", x)
    if source._value.dtype != x.dtype:
        if source is value and not (source.numel() == 1 and is_mask(index)):
            check_one_dtype("__setitem__", self, value)
        source = convert(source, x.dtype)
    refuse_overlap(x, source._value, all_alike=False)
    if source.ndim > piece.ndim:
        source = source.reshape(source.shape[source.ndim - piece.ndim:])
    p, known = self._node, _is_recorded((self, source))
    if known or type(piece) is not ndarray:
        _write_result(self, traced.put(wrap(x.copy() if known else x, p), source, index, False), "__setitem__")
    else:
        refuse_inference(self)
        write(x, source._value, "__setitem__", index)


@METHODS.define
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """As `float_power`, in place.

    Raises RuntimeError unless the tensor has double precision, as the result does.
    """
    wide = DTYPES["complex128" if any(isinstance(x, complex) or isinstance(x, Tensor) and x.is_complex() for x in (self, exponent)) else "float64"]
    if self.dtype is not wide:
        raise RuntimeError(f"float_power_: the result has dtype {wide}, but the tensor has {self.dtype}")
    return _float_power()(self, exponent)


_float_power = functools.cache(lambda: in_place("float_power_", FUNCTIONS["float_power"]))


METHODS["conj_physical_"] = Later(lambda: in_place("conj_physical_", FUNCTIONS["conj"]))


def augmented(method: Callable[..., Any]) -> Callable[..., Any]:
    """The augmented assignment operator of an in-place method."""
    unknown = (str, bytes, dict, set, type(None))

    def assign(self: Tensor, other: Any) -> Any:
        return NotImplemented if isinstance(other, unknown) else method(self, other)

    return assign


def _augmented_of(name: str) -> Callable[..., Any]:
    return augmented(getattr(Tensor, name))


for _name, _operator in {"add_": "__iadd__", "sub_": "__isub__", "mul_": "__imul__", "div_": "__itruediv__", "pow_": "__ipow__",
                         "floor_divide_": "__ifloordiv__", "remainder_": "__imod__"}.items():
    METHODS[_operator] = Later(functools.partial(_augmented_of, _name))
