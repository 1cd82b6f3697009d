"""Carriers of truncated Taylor series over another carrier: each of their functions follows from the pushforward of its op.

There are two: `SeriesCarrier` has series of any order, and `DualCarrier` those of order one, a value with its tangent, in half the time. The
functions of the protocol are defined here for both; each carrier defines how the pushforward of an op acts on coefficients (`apply`).

A series is a list of Taylor coefficients, which are values of the base carrier: numbers, arrays or Tensors; missing ones are zero. Those of products,
quotients and sums follow by recurrences. A single number is a Python number here, since its arithmetic is fastest, and is converted to a NumPy
scalar for the base carrier.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from symgrad.carriers import PROTOCOL
from symgrad.graph.op import REGISTRY, Op

# Functions whose name differs from that of the op with their pushforward.
OPS = {"copy": "clone", "conj": "conjugate", "matmul": "batched_matmul", "norm": "vector_norm", "astype": "to_copy", "fmod": "fmod_tensor"}


class TaylorCarrier:
    """The functions of the protocol on values of one `kind`, whose coefficients are values of the carrier `base`."""

    kind: ClassVar[type]

    def __init__(self, base: Any):
        self.base = base

    def apply(self, op: Op, tensors: Any, parameters: Any, call: Callable[..., Any] | None = None) -> Any:
        """The series of an op's value; `call` computes the op in the base carrier, if not by its forward rule."""
        raise NotImplementedError

    def primal(self, x: Any) -> Any:
        """The first coefficient of a series, or of each in a list; other values unchanged."""
        raise NotImplementedError

    def constant(self, value: Any) -> Any:
        """A constant as a series."""
        return value

    def __getattr__(self, name: str) -> Any:
        op = REGISTRY.get(OPS.get(name, name))
        if name not in PROTOCOL and (op is None or not hasattr(self.base, name)):
            raise AttributeError(f"{type(self).__name__} has no {name!r}: the protocol of the carriers has no such name")
        function = self._function(name, op, getattr(self.base, name))
        setattr(self, name, function)
        return function

    def _function(self, name: str, op: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the protocol, by its op."""
        apply, kind = self.apply, self.kind
        primal = self.primal
        if name in ("zeros_like", "ones_like", "eye_like"):
            return lambda x, *rest: self.constant(plain(primal(x), *rest))
        if op is None or op.jvp is None and op.kind != "composite":
            return lambda *args: plain(*map(primal, args))
        if name == "einsum":
            return lambda equation, xs: apply(op, xs, (equation,), lambda tensors, equation: plain(equation, tensors))
        if op.kind == "composite":
            return lambda *args: op.forward(self, *args) if any([type(a) is kind for a in args]) else plain(*args)
        if op.arity is None:
            return lambda xs, *rest: apply(op, xs, rest, plain)
        arity = op.arity
        return lambda *args: apply(op, args[:arity], args[arity:], plain) if any([type(a) is kind for a in args]) else plain(*args)


def with_defaults(op: Op, parameters: tuple) -> tuple:
    """All parameters of an op with their defaults, from those of a call."""
    return (*parameters, *(p.default for p in op.parameters[len(parameters):] if p.default is not p.empty))


NUMBERS = (int, float)
float64 = np.float64
Row = Sequence[Any]
Step = Callable[[int], Any]


def term(value: Any) -> Any:
    """A value as a coefficient."""
    return float(value) if type(value) is float64 else value


def value(term: Any) -> Any:
    """A coefficient as a value of the carrier."""
    return float64(term) if type(term) is float else term


def divisor(value: Any) -> Any:
    """A number as a divisor: a Python 0 as NumPy's, by which division gives inf or NaN."""
    return float64(value) if type(value) in NUMBERS and not value else value


def derivative_coefficients(row: Row) -> list[Any]:
    """The coefficients of the derivative."""
    return [t if k == 0 else t * (k + 1) for k, t in enumerate(row[1:])]


def integral_coefficients(row: Row, order: int) -> list[Any]:
    """The coefficients 1 to `order` of the series that has these as its derivative."""
    return [t / k for k, t in enumerate(row[:order], 1)]


def dot_of(like: Any) -> Callable[[Row, Row], Any]:
    """The function Σ a[i] b[i], over the shorter of the two, for coefficients of this type."""
    return _dot_of_numbers if type(like) is float else _dot_of_arrays if type(like) is np.ndarray else _dot_of_values


def _dot_of_numbers(a: Row, b: Row) -> Any:
    return sum(map(operator.mul, a, b))


def _dot_of_arrays(a: Row, b: Row) -> Any:
    products = map(operator.mul, a, b)
    out = next(products)
    for each in products:
        out += each
    return out


def _dot_of_values(a: Row, b: Row) -> Any:
    return functools.reduce(operator.add, map(operator.mul, a, b))


def product(left: Row, right: Row, complete: bool) -> Step:
    """Cauchy's product; with `complete`, the second factor has all coefficients up to the order of the result."""
    if complete and type(left[0]) is float:
        return lambda k: sum(map(operator.mul, left[:k + 1], right[k::-1]))
    dot = dot_of(left[0])
    if complete:
        return lambda k: dot(left[:k + 1], right[k::-1])

    def step(k: int) -> Any:
        low = k + 1 - len(right)
        return dot(left[low:k + 1], right[::-1]) if low > 0 else dot(left[:k + 1], right[k::-1])

    return step


def quotient(above: Row, below: Row) -> tuple[list[Any], Step]:
    """The quotient c of a and b, by a = b c: the list of its coefficients, to which the caller appends, and the function for the next one."""
    under, dot = divisor(below[0]), dot_of(below[0])
    coefficients = [above[0] / under]

    def step(k: int) -> Any:
        rest = dot(below[1:k + 1], coefficients[::-1])
        return (above[k] - rest if k < len(above) else -rest) / under

    return coefficients, step


def total(parts: Sequence[tuple[Row, Any]]) -> Step:
    """A sum with constant factors."""
    if len(parts) == 1:
        ((row, factor),) = parts
        return row.__getitem__ if factor == 1 else (lambda k: -row[k]) if factor == -1 else lambda k: row[k] * factor

    def step(k: int) -> Any:
        out = None
        for row, factor in parts:
            if k < len(row):
                each = row[k] if factor == 1 else -row[k] if factor == -1 else row[k] * factor
                out = each if out is None else out + each
        return out

    return step


def compositions(total: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of one number below each length, in order."""
    if len(lengths) == 1:
        if total < lengths[0]:
            yield (total,)
        return
    for n in range(min(total + 1, lengths[0])):
        for rest in compositions(total - n, lengths[1:]):
            yield (n, *rest)


class Series:
    """A power series in t up to an order: the Taylor coefficients so far, and the recurrence for the next one.

    A `complete` series has all coefficients up to its order; missing ones are zero. The other series grow together, one coefficient at
    a time. The coefficients are values of the base carrier: numbers, arrays or Tensors.
    """

    __slots__ = ("carrier", "terms", "order", "complete", "step", "source", "rate")
    __array_ufunc__ = None  # so that NumPy arrays use the operators of the series
    carrier: Any
    terms: list[Any]
    order: int
    complete: bool
    step: Callable[[int], Any] | None  # the coefficient of an order, from lower ones and from those of the arguments
    source: Any  # the op and its arguments, or a function, from which the derivative is computed
    rate: Series | None  # the derivative, if it was computed

    def __init__(self, carrier: Any, terms: list[Any], order: int, complete: bool):
        self.carrier, self.terms, self.order, self.complete = carrier, terms, order, complete
        self.step = self.source = self.rate = None

    @property
    def constant(self) -> bool:
        """Whether all coefficients except the first are zero."""
        return self.complete and len(self.terms) == 1

    @property
    def shape(self) -> Any:
        """The shape of each coefficient."""
        first = self.terms[0]
        return getattr(first, "shape", ())

    @property
    def ndim(self) -> int:
        """The number of dimensions of each coefficient."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of each coefficient."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return value(self.terms[0]).dtype

    def __add__(self, other: Any) -> Series:
        return self.carrier.add(self, other)

    def __radd__(self, other: Any) -> Series:
        return self.carrier.add(other, self)

    def __sub__(self, other: Any) -> Series:
        return self.carrier.sub(self, other)

    def __rsub__(self, other: Any) -> Series:
        return self.carrier.sub(other, self)

    def __mul__(self, other: Any) -> Series:
        return self.carrier.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Series:
        return self.carrier.div(self, other)

    def __rtruediv__(self, other: Any) -> Series:
        return self.carrier.div(other, self)

    def __pow__(self, other: Any) -> Series:
        return self.carrier.pow(self, other)

    def __rpow__(self, other: Any) -> Series:
        return self.carrier.pow(other, self)

    def __neg__(self) -> Series:
        return self.carrier.neg(self)

    def __getitem__(self, index: Any) -> Series:
        return self.carrier.getitem(self, index)


for _compare in (operator.lt, operator.le, operator.gt, operator.ge):
    setattr(Series, f"__{_compare.__name__}__", lambda self, other, _compare=_compare: _compare(self.terms[0], first_of(other)))


def first_of(x: Any) -> Any:
    return value(x.terms[0]) if type(x) is Series else [first_of(e) for e in x] if type(x) in (list, tuple) else x


def varies(x: Any) -> bool:
    """Whether an argument is a series that is not constant."""
    return type(x) is Series and not (x.complete and len(x.terms) == 1)


def nonzero(x: Series) -> bool:
    """Whether no element of the first coefficient is 0; False for values without numbers."""
    first = getattr(x.terms[0], "_value", x.terms[0])
    return isinstance(first, (float, np.ndarray, np.generic)) and bool(np.all(first))


def common_length(tensors: Sequence[Any]) -> int | None:
    """The largest number of coefficients among complete series; None if some are growing."""
    length = 1
    for x in tensors:
        if type(x) is Series:
            if not x.complete:
                return None
            length = max(length, len(x.terms))
    return length
