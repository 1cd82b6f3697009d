"""Operands of ops: conversion, errors, and Python numbers with bfloat16 tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.inference import recorded
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.node import Node
from symgrad.graph.op import Op
from symgrad.types.dtypes import dtype_of

__all__ = ["Deferred", "Lifted", "NUMBERS", "explain", "kept_narrow", "narrowed", "operand", "value_and_node", "with_number"]

NUMBERS = (int, float, complex, bool)
Lifted = Callable[..., Any]


def explain(op: Op, error: Exception, values: list[Any]) -> Exception:
    """An error of the numeric carrier, with the op and the shapes and dtypes of its operands."""
    described = ", ".join(f"shape {list(v.shape)} and dtype {dtype_of(v.dtype)}" if isinstance(v, (np.ndarray, np.generic)) else repr(v)
                          for v in values)
    shapes = [v.shape for v in values if hasattr(v, "shape")]
    for a, b in itertools.combinations(shapes, 2) if "broadcast" in str(error) else ():
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                dim = max(len(a), len(b)) - i
                return RuntimeError(f"{op.name}: The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton "
                                    f"dimension {dim}: shapes {list(a)} and {list(b)} do not broadcast; reshape or unsqueeze one of them")
    kind = type(error) if isinstance(error, (IndexError, TypeError)) else RuntimeError
    if kind is IndexError:
        return IndexError(f"{op.name}: {error} (given {described})".replace("for axis", "for dimension"))
    return kind(f"{op.name}: {error} (given {described})")


class Deferred(TypeError):
    """The other operand implements the operation itself, as a dual number does."""


def operand(op: Op, x: Any) -> Any:
    """An argument as a Tensor or a Python number."""
    if isinstance(x, Tensor) or type(x) in NUMBERS:
        return x
    if isinstance(x, (np.ndarray, np.generic, list, tuple)):
        return wrap(as_value(x))
    if getattr(x, "__array_ufunc__", op) is None:
        raise Deferred
    raise TypeError(f"{op.name}: expected Tensors, arrays or numbers, but got {type(x).__name__}")


def value_and_node(x: Any) -> tuple[Any, Node | None]:
    """The value and the node of an operand."""
    return (x._value, x._node) if isinstance(x, Tensor) else (x, None)


def kept_narrow(y: Any, dtype: np.dtype) -> Any:
    """The value converted back to bfloat16 if NumPy promoted it with a Python number."""
    return y if y.dtype is dtype or y.dtype != np.float32 else y.astype(dtype)


def narrowed(op: Op) -> Op:
    """The op with a pullback that keeps the dtype of the cotangent, and a pushforward that keeps that of the value."""
    def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        return tuple(c if c is None or c.dtype == g.dtype else xp.astype(c, g.dtype) for c in op.vjp(xp, g, y, args, needs))  # type: ignore[misc]

    def jvp(xp: Any, tangents: Any, y: Any, args: tuple) -> Any:
        t = op.jvp(xp, tangents, y, args)  # type: ignore[misc]
        return t if t is None or t.dtype == y.dtype else xp.astype(t, y.dtype)

    return op if op.vjp is None else replace(op, vjp=vjp, jvp=jvp)


def with_number(op: Op, call: Lifted) -> Lifted:
    """A binary op on a bfloat16 tensor and a Python number: the number is not rounded first, and the value is rounded once."""
    narrow = narrowed(op)

    def function(x: Any, p: Node | None, z: Any, q: Node | None) -> Tensor:
        y = kept_narrow(call(x, z), z.dtype if type(x) in NUMBERS else x.dtype)
        return wrap(y, recorded(narrow, (x, z), (p, q), y))

    return function
