"""Dual values, series of order one: a value with its tangent. A rule applied to dual values computes its result and the result's derivative.

A pullback of dual cotangents computes a gradient together with its directional derivative: a row of the Hessian, or a batch of
rows, from one recorded graph and without recording the gradient. Each function of the carrier maps tangents by the pushforward of its op.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import has_shape_of
from symgrad.carriers.taylor import TaylorCarrier, with_defaults
from symgrad.graph.op import REGISTRY, Op

float64, ndarray = np.float64, np.ndarray
MANY = 100  # the number of elements above which an array is tested for being constant


class Thunk:
    """A value that is computed on first access: a function and its arguments."""

    __slots__ = ("function", "args")

    def __init__(self, function: Callable[..., Any], args: tuple):
        self.function, self.args = function, args


class Dual:
    """A value and its tangent, of one shape; the tangent may be batched where the value is not."""

    __slots__ = ("_value", "tangent")
    __array_ufunc__ = None  # so that NumPy arrays use the operators of the dual value
    __hash__ = None

    def __init__(self, value: Any, tangent: Any):
        self._value, self.tangent = value, tangent

    @property
    def value(self) -> Any:
        """The value, computed on first access, since only the tangent of the cotangent of an input is used."""
        value = self._value
        if type(value) is Thunk:
            self._value = value = value.function(*map(_value_of, value.args))
        return value

    @property
    def shape(self) -> Any:
        """The shape of the value."""
        return self.tangent.shape if type(self._value) is Thunk and type(self.tangent) is ndarray else self.value.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.value.size

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.value.dtype

    def numel(self) -> int:
        """The number of elements."""
        return self.value.size

    def __add__(self, other: Any) -> Any:
        if type(other) is Dual:
            if type(self._value) is Thunk or type(other._value) is Thunk:
                return Dual(Thunk(operator.add, (self, other)), self.tangent + other.tangent)
            return _broadcast_dual(self.value + other.value, self.tangent + other.tangent)
        return _broadcast_dual(self.value + other, self.tangent)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Dual:
            return _broadcast_dual(self.value - other.value, self.tangent - other.tangent)
        return _broadcast_dual(self.value - other, self.tangent)

    def __rsub__(self, other: Any) -> Any:
        return _broadcast_dual(other - self.value, -self.tangent)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Dual:
            return Dual(self.value * other.value, self.tangent * other.value + other.tangent * self.value)
        if type(other) is ndarray and other.size > MANY and not any(other.strides) and other.shape == self.value.shape:
            other = other.flat[0]  # a broadcast scalar, such as the cotangent of a sum
        if type(other) is float64 and other == 1.0:
            return self
        return Dual(self.value * other, self.tangent * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Dual:
            y = self.value / other.value
            return Dual(y, (self.tangent - other.tangent * y) / other.value)
        return Dual(self.value / other, self.tangent / other)

    def __rtruediv__(self, other: Any) -> Any:
        y = other / self.value
        return Dual(y, self.tangent * (-y / self.value))

    def __pow__(self, exponent: float) -> Any:
        """The power with a number as exponent; `xp.pow` has the general case."""
        if exponent == 1:
            return self
        if exponent == 0:
            return self.value**exponent
        slope = self.value if exponent == 2 else self.value ** (exponent - 1)
        return Dual(self.value**exponent, self.tangent * (exponent * slope))

    def __neg__(self) -> Any:
        return Dual(-self.value, -self.tangent)

    def __getitem__(self, index: Any) -> Any:
        return Dual(self.value[index], self.tangent[index])


for _compare in (operator.lt, operator.le, operator.gt, operator.ge):
    setattr(Dual, f"__{_compare.__name__}__", lambda self, other, _compare=_compare: _compare(self.value, _value_of(other)))


def _broadcast_dual(value: Any, tangent: Any) -> Dual:
    """A dual value; the tangent is broadcast to the shape of the value."""
    if not has_shape_of(tangent, value):
        tangent = np.broadcast_to(tangent, tuple(value.shape)) if not hasattr(tangent, "expand") else tangent.expand(value.shape)
    return Dual(value, tangent)


def _value_of(x: Any) -> Any:
    if type(x) is Dual:
        return x.value
    return type(x)(_value_of(e) for e in x) if type(x) in (list, tuple) else x


class DualCarrier(TaylorCarrier):
    """The carrier of dual values, whose values and tangents are values of the carrier `base`."""

    kind = Dual
    primal = staticmethod(_value_of)

    def apply(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any], call: Callable[..., Any] | None = None) -> Any:
        """The dual value of an op's result. The value of a linear op is a thunk, since its tangent does not depend on it."""
        call = call or functools.partial(op.forward, self.base)
        tangents = [x.tangent if type(x) is Dual else None for x in tensors]
        variadic = op.arity is None
        if variadic and not any([t is not None for t in tangents]):
            return call(tensors, *parameters)
        given = (tensors,) if variadic else tensors
        if op.kind == "linear" and op.arity == 1:
            return Dual(Thunk(call, (*given, *parameters)), call(tangents[0], *parameters))
        values, full = tuple(map(_value_of, tensors)), parameters if op.kind == "elementwise" else with_defaults(op, parameters)
        if op.kind == "linear" or op.kind == "multilinear" and not variadic:
            return Dual(Thunk(call, (*given, *parameters)), op.jvp(self.base, tangents, None, (*values, *full)))
        y = call(*((list(values),) if variadic else values), *parameters)
        t = op.jvp(self.base, tangents, y, (*values, *full))
        return y if t is None else _broadcast_dual(y, t)

    def pow(self, a: Any, b: Any) -> Any:
        """A power, whose exponent may be a number."""
        return self.apply(REGISTRY["pow"], (a, b), (), operator.pow) if type(a) is Dual or type(b) is Dual else a**b
