"""Operands of ops: conversion, errors, and Python numbers with bfloat16 tensors; and the last step of an op, the Tensor of a value with its node."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.data import operand_value
from symgrad.engine.inference import recorded
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import BROADCAST, UnsupportedDtype
from symgrad.graph.classes import blanks
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, NAMED, TRACKED, Node, constructor, node_class
from symgrad.graph.op import Op
from symgrad.layouts.strides import row_major
from symgrad.system.errorstate import quietly

NUMBERS = (int, float, complex, bool)
Lifted = Callable[..., Any]


def explain(op: Op, error: Exception, values: list[Any]) -> Exception:
    """An error of the numeric carrier, with the op and the shapes and dtypes of its operands."""
    if op.numerics.refuses and (refusal := refused(op, values)):
        return refusal
    described = ", ".join(f"shape {list(v.shape)} and dtype {dtype_of(v.dtype)}" if isinstance(v, (np.ndarray, np.generic)) else repr(v)
                          for v in values)
    shapes = [v.shape for v in values if hasattr(v, "shape")]
    for a, b in itertools.combinations(shapes, 2) if "broadcast" in str(error) else ():
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                dim = max(len(a), len(b)) - i
                return RuntimeError(f"{BROADCAST.format(a[-i], b[-i], dim)}: {op.name} of shapes {list(a)} and {list(b)}, which do not broadcast; "
                                    "reshape or unsqueeze one of them")
    if "not supported for the input types" in str(error):  # of a ufunc of NumPy, for whatever this op is made of
        kinds = sorted({str(dtype_of(v.dtype)) for v in values if hasattr(v, "dtype")})
        error = TypeError(f"it is not defined for {' and '.join(kinds)}; convert with .to(), or take the real or the imaginary part")
    kind: type[Exception] = next((k for k in (IndexError, TypeError) if isinstance(error, k)), RuntimeError)
    kind = UnsupportedDtype if type(error) is TypeError and shapes else ValueError if "slice step" in str(error) else kind
    return kind(f"{public_name(op)}: {error} (given {described})")


def public_name(op: Op) -> str:
    """The name by which a user called an op: without the ending of an op that serves one kind of arguments of a function."""
    return op.name if op.surface.public else re.sub("_(number|tensor|elements|of_all|of_both|along|of_real|of_complex|item)$", "", op.name)


def refused(op: Op, values: Sequence[Any]) -> Exception | None:
    """The error for operands of a dtype that the op refuses, or None."""
    for x in values:
        if hasattr(x, "dtype") and x.dtype.kind in op.numerics.refuses.lower() or type(x) is bool and op.numerics.refuses == "B":
            remedy = "use logical_not or logical_xor" if type(x) is bool or x.dtype.kind == "b" else "convert with .to()"
            return UnsupportedDtype(f"{public_name(op)}: not implemented for {dtype_of(getattr(x, 'dtype', bool))}; {remedy}")
    return None


COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
COUNTED = ("square",)  # ops that take booleans for the integers 0 and 1


def admitted(op: Op, x: Any) -> Any:
    """An operand of a dtype for which the op has a rule of its own: booleans as integers. Raises UnsupportedDtype for one that the op refuses."""
    if op.name in COUNTED:
        return x.astype(np.int64)
    raise refused(op, [x])  # type: ignore[misc]


def constants(op: Op, *xs: Any) -> tuple[Any, ...]:
    """The operands, without their history for an op that has no derivative."""
    return xs if op.differentiable else tuple([wrap(x._value) if isinstance(x, Tensor) else x for x in xs])


class Deferred(TypeError):
    """The other operand implements the operation itself, as a dual number does."""


def operand(op: Op, x: Any) -> Any:
    """An argument as a Tensor or a Python number."""
    if isinstance(x, Tensor) or type(x) in NUMBERS:
        return x
    if isinstance(x, (np.ndarray, np.generic, list, tuple)):
        try:
            return wrap(operand_value(x))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{public_name(op)}: {error}") from None
    if isinstance(x, DuckArray):  # a parameter of a node, such as the mask of a batch
        return wrap(x)
    kind: Any = next((kind for kind in NUMBERS if isinstance(x, kind)), None)
    if kind is not None:  # a subclass, as the members of enumerations
        return kind(x)
    if getattr(x, "__array_ufunc__", op) is None:
        raise Deferred
    raise TypeError(f"{op.name}: operands are Tensors, arrays or numbers, not {type(x).__name__}")


def number(op: Op, name: str, x: Any) -> Any:
    """A parameter that is a number; a tensor without dimensions stands for its element, unless it requires a gradient, as in torch."""
    if not isinstance(x, Tensor):
        return x
    if x.ndim or x.requires_grad:
        wrong = f"a tensor of shape {list(x.shape)}" if x.ndim else "a tensor that requires grad"
        raise TypeError(f"{public_name(op)}: {name} must be a number, not {wrong}, for there is no derivative with respect to it")
    return x.item()


def flag(op: Op, name: str, x: Any) -> Any:
    """A parameter that is true or false, and no value that only counts as one."""
    if type(x) is bool or type(x) is np.bool_:
        return x
    raise TypeError(f"{op.name}: {name} must be a bool, not {x!r}")


def value_and_node(x: Any) -> tuple[Any, Node | None]:
    """The value and the node of an operand."""
    return (x._value, x._node) if isinstance(x, Tensor) else (x, None)


def kept_narrow(y: Any, dtype: np.dtype) -> Any:
    """The value converted back to a narrow dtype if it was computed in float32."""
    return y if y.dtype is dtype or y.dtype != np.float32 else y.astype(dtype)


def by_rows(call: Lifted) -> Lifted:
    """A function of the numeric carrier whose results are contiguous, whatever the strides of the operands."""
    def compute(*xs: Any) -> Any:
        y = call(*xs)
        return row_major(y) if type(y) is np.ndarray and y.ndim > 1 else y

    return compute


def rounded_once(call: Lifted) -> Lifted:
    """A function of the numeric carrier that takes several steps, computed in float32 for float16 and bfloat16 and rounded once."""
    def compute(*args: Any) -> Any:
        x = args[1] if type(args[0]) in NUMBERS else args[0]
        dtype = x.dtype
        if dtype.char not in "eE":
            return call(*args)
        y = call(*_widened(args, dtype))
        return tuple([_rounded(each, dtype) for each in y]) if type(y) is tuple else _rounded(y, dtype)

    return compute


def _rounded(y: Any, dtype: np.dtype) -> Any:
    return y.astype(dtype) if y.dtype == np.float32 else y


def round_derivatives(op: Op) -> None:
    """Have the numeric pullback of an op computed in float32 for float16 and bfloat16. The op stays the registered one, by which passes know it."""
    if op.vjp is not None and not hasattr(op.vjp, "in_float32"):
        object.__setattr__(op, "vjp", _wide_pullback(op.vjp))
        object.__setattr__(op, "jvp", _wide_pushforward(op.jvp))  # type: ignore[arg-type]


def _wide_pullback(rule: Lifted) -> Lifted:
    def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        if xp is not numeric or g.dtype.char not in "eE":
            return rule(xp, g, y, args, needs)
        dtype = g.dtype
        wide = _widened((g, y, *args), dtype)
        return tuple([None if c is None else _rounded(c, dtype) for c in rule(xp, wide[0], wide[1], wide[2:], needs)])

    vjp.in_float32 = True  # type: ignore[attr-defined]
    return vjp


def _wide_pushforward(rule: Lifted) -> Lifted:
    def jvp(xp: Any, tangents: Any, y: Any, args: tuple) -> Any:
        if xp is not numeric or y.dtype.char not in "eE":
            return rule(xp, tangents, y, args)
        t = rule(xp, _widened(tangents, y.dtype), *_widened((y,), y.dtype), _widened(args, y.dtype))
        return t if t is None else _rounded(t, y.dtype)

    return jvp


def _widened(xs: Any, dtype: np.dtype) -> tuple[Any, ...]:
    return tuple([z.astype(np.float32) if getattr(z, "dtype", None) == dtype else z for z in xs])


def is_complex(g: Any) -> bool:
    """Whether a cotangent is complex, so that rules get conjugated arguments."""
    dtype = (g._value if isinstance(g, Tensor) else g).dtype
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else getattr(dtype, "is_complex", False)


def narrowed(op: Op) -> Op:
    """The op with a pullback that keeps the dtype of the cotangent, and a pushforward that keeps that of the value; a Python number is not rounded
    to float16 or bfloat16 before it is used. The cotangent of a complex argument of a real op stays complex."""
    if op.vjp is None:
        return op
    pull, push = _wide_pullback(op.vjp), _wide_pushforward(op.jvp)  # type: ignore[arg-type]

    def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        found = pull(xp, g, y, args, needs)
        for c in found:
            if c is not None and c.dtype != g.dtype:
                return tuple([c if c is None or c.dtype == g.dtype or is_complex(c) and not is_complex(g) else xp.astype(c, g.dtype) for c in found])
        return found

    def jvp(xp: Any, tangents: Any, y: Any, args: tuple) -> Any:
        t = push(xp, tangents, y, args)
        return t if t is None or t.dtype == y.dtype else xp.astype(t, y.dtype)

    if op.parameters:
        vjp.partials = getattr(op.vjp, "partials", None)  # type: ignore[attr-defined]
    return op.but(vjp=vjp, jvp=jvp)


def with_number(op: Op, call: Lifted) -> Lifted:
    """A binary op on a float16 or bfloat16 tensor and a Python number: the number is not rounded first, and the value is rounded once.

    A number that is compared is rounded to the dtype, as in torch, so that 0.1 equals a tensor's 0.1.
    """
    narrow, compares = narrowed(op), op.name in COMPARED

    def function(x: Any, p: Node | None, z: Any, q: Node | None) -> Tensor:
        dtype = (z if type(x) in NUMBERS else x).dtype
        y = compute(x, z, dtype) if op.outside else quietly(compute, x, z, dtype)
        return wrap(y, recorded(narrow, (x, z), (p, q), y))

    def compute(x: Any, z: Any, dtype: np.dtype) -> Any:
        if compares:
            return call(*[np.asarray(e).astype(dtype) if type(e) in NUMBERS else e for e in (x, z)])
        return kept_narrow(call(*_widened((x, z), dtype)), dtype)

    return function


def with_parameters(forward: Lifted) -> Lifted:
    """The rule of a tensor and Python numbers, with a bfloat16 result kept in bfloat16."""
    def rule(xp: Any, x: Any, *rest: Any) -> Any:
        y = forward(xp, x, *rest)
        dtype = (rest[0] if type(x) in (float, int) else x).dtype
        return y if y.dtype is dtype or dtype.kind != "V" else kept_narrow(y, dtype)

    return rule


FACTORS = ("alpha", "factor", "value", "weight", "total", "reduction")  # parameters that are numbers combined with a tensor


def rounded_rules(op: Op) -> tuple[Lifted, Op]:
    """The rule of an op, and the op of its nodes, such that float16 and bfloat16 are rounded once, after all steps."""
    forward, factors = op.forward, any(p.name in FACTORS for p in op.parameters)
    if op.parameters and op.kind == "elementwise" or factors:
        forward, op = with_parameters(op.forward), narrowed(op)
    if factors or op.kind in ("elementwise", "primitive") and op.arity is not None and not any(p.name == "dtype" for p in op.parameters):
        call = rounded_once(functools.partial(forward, numeric))
        if op.kind == "primitive":
            round_derivatives(op)
        return lambda xp, *args: call(*args), op
    return forward, op


def within(op: Op, parameters: tuple[Any, ...], values: Sequence[Any]) -> tuple[Any, ...]:
    """The parameters of an op on integers, in the dtype: a bound beyond its ends bounds nothing, and other integers are taken modulo a power of two.

    Raises RuntimeError for a bound to which no integer of the dtype can be raised or lowered.
    """
    if not parameters or not values or (dtype := getattr(values[0], "dtype", np.dtype(float))).kind not in "iu":
        return parameters
    ends, out = np.iinfo(dtype), list(parameters)
    for i, (p, x) in enumerate(zip(op.parameters, parameters)):
        if type(x) is not int or ends.min <= x <= ends.max:
            continue
        if p.name in ("min", "max"):
            if (p.name == "min") is (x > ends.max):
                raise RuntimeError(f"{public_name(op)}: {p.name}={x} is beyond the range of {dtype_of(dtype)}. Convert the tensor with .to(int)")
            out[i] = ends.min if p.name == "min" else ends.max
        elif p.name in ("alpha", "factor", "value"):
            out[i] = wrapped(x, dtype)
    return tuple(out)


def wrapped(number: int, dtype: np.dtype) -> int:
    """A Python integer as a number of an integer dtype, modulo a power of two. Raises OverflowError for one of more than 64 bits."""
    bits = 8 * dtype.itemsize
    if -1 << bits - 1 <= number < 1 << bits - 1 and (number >= 0 or dtype.kind == "i"):
        return number
    if not -1 << 63 <= number < 1 << 64:
        raise OverflowError("an integer has more than 64 bits, as no integer tensor has. Convert the tensor with .double()")
    return (number & (1 << bits) - 1) - (1 << bits if dtype.kind == "i" and number >> bits - 1 & 1 else 0)


tensors = blanks(Tensor)


def finishing(op: Op) -> Lifted:
    """The last step of an op: the Tensor of a value, with its node."""
    make, mask = constructor(node_class(op)), TRACKED if op.differentiable else NAMED

    def finish(args: tuple, parents: tuple, y: Any, flags: int) -> Tensor:
        out = next(tensors)
        out._value, out._node_slot, out._view = y, None, None
        flags &= mask
        if flags and (not special or thread.modes.plain):
            out._node_slot = make(args, parents, y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op, args, parents, y)
        return out

    return finish
