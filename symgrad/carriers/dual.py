"""Dual values: a value with its tangent. A rule that is read with them gives its result and the derivative of that at once.

So a pullback that is read with dual cotangents gives a gradient together with its directional derivative: a row of the Hessian, or a batch of
rows, from one recorded graph and without recording the gradient. What each function of the carrier does to tangents is the pushforward of its op.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import PROTOCOL
from symgrad.carriers.batched import fills
from symgrad.carriers.standing import Standing
from symgrad.graph.op import REGISTRY, Op

__all__ = ["Dual", "DualCarrier"]

# Where the name of a function is not that of the op whose pushforward belongs to it.
OPS = {"copy": "clone", "conj": "conjugate", "matmul": "batched_matmul", "norm": "vector_norm", "astype": "to_copy", "fmod": "fmod_tensor"}
float64, ndarray = np.float64, np.ndarray
MANY = 100  # elements from which it is worth a look whether they are all the same


class Later:
    """A value that nobody has asked for yet: a function, and what it is to be called with."""

    __slots__ = ("function", "args")

    def __init__(self, function: Callable[..., Any], args: tuple):
        self.function, self.args = function, args


class Dual(Standing):
    """A value and its tangent, of one shape; the tangent may be batched where the value is not."""

    __slots__ = ("_value", "tangent")

    def __init__(self, value: Any, tangent: Any):
        self._value, self.tangent = value, tangent

    @property
    def value(self) -> Any:
        """The value, which is computed when it is first asked for: what ends at an input has a tangent alone that matters."""
        value = self._value
        if type(value) is Later:
            self._value = value = value.function(*map(_value, value.args))
        return value

    @property
    def shape(self) -> Any:
        """The shape of the value."""
        return self.tangent.shape if type(self._value) is Later and type(self.tangent) is ndarray else self.value.shape

    def numel(self) -> int:
        """The number of elements."""
        return self.value.size

    def __add__(self, other: Any) -> Any:
        if type(other) is Dual:
            if type(self._value) is Later or type(other._value) is Later:
                return Dual(Later(operator.add, (self, other)), self.tangent + other.tangent)
            return _made(self.value + other.value, self.tangent + other.tangent)
        return _made(self.value + other, self.tangent)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Dual:
            return _made(self.value - other.value, self.tangent - other.tangent)
        return _made(self.value - other, self.tangent)

    def __rsub__(self, other: Any) -> Any:
        return _made(other - self.value, -self.tangent)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Dual:
            return Dual(self.value * other.value, self.tangent * other.value + other.tangent * self.value)
        if type(other) is ndarray and other.size > MANY and not any(other.strides) and other.shape == self.value.shape:
            other = other.flat[0]  # one number everywhere, such as the cotangents of a sum
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
        """The power to a number; `xp.pow` is for others."""
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


def _made(value: Any, tangent: Any) -> Dual:
    """A dual of a value that may have been stretched, with its tangent stretched alike."""
    if not fills(tangent, value):
        tangent = np.broadcast_to(tangent, tuple(value.shape)) if not hasattr(tangent, "expand") else tangent.expand(value.shape)
    return Dual(value, tangent)


def _value(x: Any) -> Any:
    if type(x) is Dual:
        return x.value
    return type(x)(_value(e) for e in x) if type(x) in (list, tuple) else x


def _tangent(x: Any) -> Any:
    return x.tangent if type(x) is Dual else None


class DualCarrier:
    """The carrier of dual values over another carrier: `xp` for the values and their tangents alike."""

    def __init__(self, xp: Any):
        self.base = xp

    def __getattr__(self, name: str) -> Any:
        if name not in PROTOCOL:
            raise AttributeError(f"the dual carrier has no {name!r}: the protocol of the carriers has no such name")
        function = _function(self, self.base, name)
        setattr(self, name, function)
        return function


def _function(dual: DualCarrier, xp: Any, name: str) -> Callable[..., Any]:
    """A function of the protocol on dual values, by the pushforward of its op."""
    plain, op = getattr(xp, name), REGISTRY.get(OPS.get(name, name))
    if name == "pow":
        return lambda a, b: _powered(xp, REGISTRY["pow"], a, b)
    if name == "einsum":
        return lambda equation, xs: _pushed(xp, REGISTRY["einsum"], lambda tensors, equation: plain(equation, tensors), (xs, equation))
    if op is not None and op.kind == "composite":
        return lambda *args: op.forward(dual, *args) if any(type(a) is Dual for a in args) else plain(*args)
    if op is None or op.jvp is None:
        return lambda *args: plain(*(_value(a) for a in args))
    return lambda *args: _pushed(xp, op, plain, args)


def _pushed(xp: Any, op: Op, plain: Callable[..., Any], args: tuple) -> Any:
    given: Sequence[Any] = args[0] if op.arity is None else args[:op.arity]
    tangents = [_tangent(a) for a in given]
    if all(t is None for t in tangents):
        return plain(*args)
    values = tuple(_value(a) for a in given)
    rest = args[1:] if op.arity is None else args[op.arity:]
    if op.kind == "linear" or op.kind == "multilinear" and op.arity is not None:
        t = op.jvp(xp, tangents, None, (*values, *rest))
        return Dual(Later(plain, args), t)
    y = plain(*((list(values),) if op.arity is None else values), *rest)
    if op.kind != "elementwise":
        rest = (*rest, *(p.default for p in op.parameters[len(rest):] if p.default is not p.empty))
    t = op.jvp(xp, tangents, y, (*values, *rest))  # type: ignore[misc]
    return y if t is None else _made(y, t)


def _powered(xp: Any, op: Op, a: Any, b: Any) -> Any:
    """A power, whose exponent may be a number."""
    return _pushed(xp, op, lambda x, z: x**z, (a, b))

