"""Truncated power series: the carrier of Taylor mode. Every op's pushforward, read with series, is a recurrence for its coefficients.

Let y = f(x) be an op and x(t) a power series. Then y'(t) is what the op's pushforward makes of x'(t), so that

    y_k = [jvp(x', y, x)]_(k - 1) / k,

and the right-hand side needs only coefficients of y below k. No op has a rule for series: sums and linear ops act on each coefficient, products
are Cauchy's, quotients solve theirs, and all the rest is this equation. The functions that a rule calls are series of the same kind, each made once
for its arguments; so sin and cos, or tanh and sech², are solved together, and the cost is quadratic in the order.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, chapter 13.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import PROTOCOL
from symgrad.op import REGISTRY, Op

__all__ = ["Series", "SeriesCarrier"]

# Where the name of a function is not that of the op whose pushforward belongs to it.
OPS = {"copy": "clone", "conj": "conjugate", "matmul": "batched_matmul", "norm": "vector_norm", "astype": "to_copy", "fmod": "fmod_tensor"}
NUMBERS = (int, float)
float64 = np.float64
ARITHMETIC = frozenset(("mul", "div", "pow", "square", "reciprocal", "where"))
LONGEST = 64  # the largest whole exponent that is multiplied out


class Series:
    """A power series in t up to an order: the Taylor coefficients so far, and what makes the next one.

    A `complete` series has all coefficients up to its order; those that are not there are zero. Others grow, all of them one coefficient at
    a time. The coefficients are whatever the carrier below computes with: numbers, arrays, Tensors.
    """

    __slots__ = ("carrier", "terms", "order", "complete", "step", "source", "rate")
    __array_ufunc__ = None  # so that a NumPy array leaves arithmetic to it
    carrier: SeriesCarrier
    terms: list[Any]
    order: int
    complete: bool
    step: Callable[[int], Any] | None  # the coefficient of an order, from lower ones and from those of the arguments
    source: Any  # what its derivative follows from
    rate: Series | None  # the derivative, once it is known

    def __init__(self, carrier: SeriesCarrier, terms: list[Any], order: int, complete: bool):
        self.carrier, self.terms, self.order, self.complete = carrier, terms, order, complete
        self.step = self.source = self.rate = None

    @property
    def constant(self) -> bool:
        """Whether nothing but the first coefficient is there."""
        return self.complete and len(self.terms) == 1

    @property
    def shape(self) -> Any:
        """The shape of each coefficient."""
        first = self.terms[0]
        return () if type(first) is float else first.shape

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
        return _value(self.terms[0]).dtype

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


def _term(value: Any) -> Any:
    """A value as a coefficient: one number is a Python number, with which arithmetic is quickest."""
    return float(value) if type(value) is float64 else value


def _value(term: Any) -> Any:
    """A coefficient as a value of the carrier."""
    return float64(term) if type(term) is float else term


def _first(x: Any) -> Any:
    return _value(x.terms[0]) if type(x) is Series else [_first(e) for e in x] if type(x) in (list, tuple) else x


def _moves(x: Any) -> bool:
    """Whether an argument is a series that is not constant."""
    return type(x) is Series and not (x.complete and len(x.terms) == 1)


def _compositions(total: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of one number below each length, in order."""
    if len(lengths) == 1:
        if total < lengths[0]:
            yield (total,)
        return
    for n in range(min(total + 1, lengths[0])):
        for rest in _compositions(total - n, lengths[1:]):
            yield (n, *rest)


class SeriesCarrier:
    """The carrier of series up to an order, whose coefficients are values of the carrier `xp`.

    `forward(op)` gives the function that computes an op in that carrier, from the op's own arguments, and `lift` makes its value of an array. What is asked of a value (a comparison, a
    sign, the place of the largest element) is asked of the first coefficient: the derivative of what does not change is zero.
    """

    def __init__(self, xp: Any, order: int, forward: Callable[[Op], Callable[..., Any]] | None = None, lift: Any = None):
        self.xp, self.order = xp, order
        self.forward = forward or (lambda op: functools.partial(op.forward, xp))
        self._lift = lift
        self._need = order  # of the series that are made now
        self._made: dict[Any, tuple[Series, tuple]] = {}  # by what they were made of, which lives as long
        self._growing: list[Series] = []
        self._waiting: list[Series] = []  # those whose derivative is still to be read

    # What a pass over a graph asks for

    def lift_value(self, value: Any) -> Series:
        """The series of a value that does not change."""
        if self._lift is not None and isinstance(value, (np.ndarray, np.generic)):
            value = self._lift(value)
        return Series(self, [_term(value)], self.order, True)

    def polynomial(self, terms: Sequence[Any]) -> Series:
        """The series of given coefficients and no others."""
        return Series(self, [_term(t) for t in terms[:self.order + 1]], self.order, True)

    def apply(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any], value: Any = None, call: Callable[..., Any] | None = None) -> Any:
        """The series of an op's value, growing until all are solved.

        `value` is its first coefficient, where that is known, and `call` the function that computes the op below, where that is not `forward`'s.
        """
        if op.name in ARITHMETIC:
            return getattr(self, op.name)(*tensors)
        tensors, parameters, call = tuple(tensors), tuple(parameters), call or self.forward(op)
        if not op.differentiable or not any([_moves(x) for x in tensors]):
            found = self._first_of(op, call, tensors, parameters) if value is None else value
            return self.lift_value(found) if op.differentiable else found
        if op.kind == "linear":
            return self._linear(call, tensors, parameters, op.arity is None, value)
        if op.kind == "multilinear":
            return self._multilinear(op, call, tensors, parameters, value)
        if op.partials and not any(map(callable, op.partials)):
            return self._combined(op, call, tensors, parameters, value)
        return self._solved(op, call, tensors, parameters, value)

    def apply_many(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any], values: Any) -> list[Any]:
        """The series of each of an op's several values, growing; `values` are their first coefficients."""
        found: list[Any] = []

        def source(k: int, y: Series) -> Any:
            if not found:
                found.extend(self._by_rule(op, tuple(tensors), tuple(parameters), y, type(values)(out)))
            return found[k]

        out = [self._grown([_term(value)], None, functools.partial(source, k), None if self._need else 1) for k, value in enumerate(values)]
        self._waiting += [x for x in out if not x.complete]
        return out

    def _first_of(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple) -> Any:
        """The first coefficient of an op's value."""
        return call(_first(tensors), *parameters) if op.arity is None else call(*map(_first, tensors), *parameters)

    def solve(self) -> None:
        """Complete all series that are growing."""
        waiting, growing = self._waiting, self._growing
        if not growing:
            return
        integrals, ends = [], []
        for x in waiting:  # each adds only series of a lower order, so that those are asked for by the highest order first
            rate = self._derivative(x)
            rates = rate.terms
            if rate.complete:
                x.terms += [r / k for k, r in enumerate(rates[:x.order], 1)]
                ends.append((x.terms, len(x.terms)))
                x.terms += [self._zero(x)] * (x.order + 1 - len(x.terms))  # which those that grow with it do not expect to end
            else:
                integrals.append((x.order, x.terms.append, rates))
        rows = [(x.order, x.terms.append, x.step) for x in growing if x.step is not None]
        for k in range(1, self.order + 1):
            for order, append, rates in integrals:
                if k <= order:
                    append(rates[k - 1] / k)
            for order, append, step in rows:
                if k <= order:
                    append(step(k))
        for x in growing:
            x.complete, x.step, x.source, x.rate = True, None, None, None
        for terms, end in ends:
            del terms[end:]
        waiting.clear()
        growing.clear()

    def close(self) -> None:
        """Let go of everything that was made, so that it is freed at once."""
        self.__dict__.clear()

    def _zero(self, x: Series) -> Any:
        """A coefficient that is zero."""
        return 0.0 if type(x.terms[0]) is float else self.xp.zeros_like(x.terms[0])

    # How a series comes to be

    def _grown(self, terms: list[Any], step: Any, source: Any, length: int | None) -> Series:
        """A series with a first coefficient and a rule for the next: computed at once up to a length, or growing where that is None.

        `source` is the op it comes from, with tensors and parameters, or a function that gives its derivative.
        """
        need = self._need
        out = Series(self, terms, need, length is not None)
        if length is not None:
            for k in range(1, length if length <= need else need + 1):
                terms.append(step(k))
            return out
        out.step, out.source = step, source
        self._growing.append(out)
        return out

    def _by_rule(self, op: Op, tensors: tuple, parameters: tuple, y: Series, values: Any = None) -> Any:
        """The derivative of a series by the pushforward of its op."""
        before, self._need = self._need, y.order - 1
        try:
            return op.jvp(self, [self._derivative(x) if _moves(x) else None for x in tensors], values or y, (*tensors, *parameters))  # type: ignore[misc]
        finally:
            self._need = before

    def _derivative(self, x: Series) -> Series:
        """The derivative of a series by t."""
        if x.rate is None and x.complete:
            x.rate = Series(self, [t if k == 0 else t * (k + 1) for k, t in enumerate(x.terms[1:])], x.order - 1, True)
        elif x.rate is None:
            source = x.source
            rate = self._by_rule(*source, x) if type(source) is tuple else source(x)
            if type(rate) is not Series:
                rate = self.zeros_like(x) if rate is None else self.lift_value(rate)
            x.rate = rate if rate.shape == x.shape else self.broadcast_to(rate, tuple(x.shape))
        return x.rate

    def _solved(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, value: Any) -> Series:
        """The solution of y' = jvp(x', y, x)."""
        key = op, *[id(x) if type(x) is Series else (type(x), x) for x in tensors], parameters
        try:
            found = self._found(key)
        except TypeError:  # a parameter that cannot be looked up
            found, key = None, ()
        if found is not None:
            return found
        if op.kind != "elementwise":
            parameters = (*parameters, *(p.default for p in op.parameters[len(parameters):] if p.default is not p.empty))
        if value is None:
            value = self._first_of(op, call, tensors, parameters)
        out = self._grown([_term(value)], None, (op, tensors, parameters), None if self._need else 1)
        if not out.complete:
            self._waiting.append(out)
        if key:
            self._made[key] = out, tensors
        return out

    def _found(self, key: tuple) -> Series | None:
        """The series that was made of the same things, if it has enough coefficients."""
        found = self._made.get(key)
        return found[0] if found is not None and found[0].order >= self._need else None

    def _linear(self, call: Callable[..., Any], tensors: tuple, parameters: tuple, variadic: bool, value: Any = None) -> Series:
        """What acts on each coefficient by itself."""
        rows = [x.terms if type(x) is Series else [x] for x in tensors]
        length = _longest(tensors)
        zeros = [0 if type(x) is not Series else _value(self._zero(x)) if x.complete and len(row) != length else None
                 for x, row in zip(tensors, rows)]

        def step(k: int) -> Any:
            values = [_value(row[k]) if k < len(row) else zero for row, zero in zip(rows, zeros)]
            return _term(call(values, *parameters) if variadic else call(*values, *parameters))

        def push(y: Series) -> Any:
            before, self._need = self._need, y.order - 1
            try:
                rates = tuple(self._derivative(x) if _moves(x) else self.zeros_like(x) if type(x) is Series else 0 for x in tensors)
                return self._linear(call, rates, parameters, variadic)
            finally:
                self._need = before

        return self._grown([step(0) if value is None else _term(value)], step, push, length)

    def _multilinear(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, value: Any) -> Series:
        """Cauchy's product, for any number of factors and any kind of product."""
        moving = [i for i, x in enumerate(tensors) if _moves(x)]
        rows, values = [tensors[i].terms for i in moving], list(_first(tensors))
        variadic = op.arity is None

        def step(k: int) -> Any:
            total = None
            for places in _compositions(k, [min(len(row), k + 1) for row in rows]):
                for i, row, n in zip(moving, rows, places):
                    values[i] = _value(row[n])
                term = call(list(values), *parameters) if variadic else call(*values, *parameters)
                total = term if total is None else total + term
            return _term(total)

        length = sum(map(len, rows)) - len(rows) + 1 if _longest(tensors) else None
        return self._grown([step(0) if value is None else _term(value)], step, (op, tensors, parameters), length)

    def _combined(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, value: Any) -> Series:
        """A sum with constant factors."""
        first = call(*map(_first, tensors), *parameters) if value is None else value
        parts = [(x.terms, partial) for x, partial in zip(tensors, op.partials) if partial and _moves(x)]
        if not parts:
            return self.lift_value(first)
        shape = tuple(first.shape)
        stretched = any(x.shape != shape for x in tensors if _moves(x))

        if len(parts) == 1 and not stretched:
            row, factor = parts[0]
            rest = row.__getitem__ if factor == 1 else (lambda k: -row[k]) if factor == -1 else lambda k: row[k] * factor
            return self._grown([_term(first)], rest, (op, tensors, parameters), _longest(tensors))

        def step(k: int) -> Any:
            total = None
            for row, partial in parts:
                if k < len(row):
                    term = row[k] if partial == 1 else -row[k] if partial == -1 else row[k] * partial
                    total = term if total is None else total + term
            return self.xp.broadcast_to(total, shape) if stretched else total

        return self._grown([_term(first)], step, (op, tensors, parameters), _longest(tensors))

    # Arithmetic

    def mul(self, a: Any, b: Any) -> Series:
        """Cauchy's product."""
        if not _moves(b):
            return self._scaled("mul", operator.mul, a, b)
        if not _moves(a):
            return self._scaled("mul", operator.mul, b, a)
        if b.complete and len(b.terms) <= self._need:
            a, b = b, a  # the shorter one first, so that the other has all that it is multiplied with
        left, right = a.terms, b.terms
        source = (REGISTRY["mul"], (a, b), ())
        if not b.complete or len(right) > self._need:
            length = self._need + 1 if a.complete and b.complete else None
            return self._grown([left[0] * right[0]], _cauchy(left, right), source, length)
        dot = _dot(left[0])

        def step(k: int) -> Any:
            low = k + 1 - len(right)
            return dot(left[low:k + 1], right[::-1]) if low > 0 else dot(left[:k + 1], right[k::-1])

        return self._grown([left[0] * right[0]], step, source, len(left) + len(right) - 1)

    def div(self, a: Any, b: Any) -> Series:
        """The quotient c, by Cauchy's product: a = b c."""
        if not _moves(b):
            return self._scaled("div", operator.truediv, a, b)
        above, below = a.terms if type(a) is Series else [a], b.terms
        under, dot = _divisor(below[0]), _dot(below[0])
        terms = [above[0] / under]

        def step(k: int) -> Any:
            rest = dot(below[1:k + 1], terms[::-1])
            return (above[k] - rest if k < len(above) else -rest) / under

        length = self._need + 1 if b.complete and (type(a) is not Series or a.complete) else None
        return self._grown(terms, step, (REGISTRY["div"], (a, b), ()), length)

    def _scaled(self, name: str, operate: Callable[[Any, Any], Any], a: Any, b: Any) -> Series:
        """Each coefficient times, or by, a value that does not change."""
        value, row = b.terms[0] if type(b) is Series else b, a.terms if type(a) is Series else [a]
        if operate is operator.truediv:
            value = _divisor(value)
        elif type(value) is float and value == 1 and type(a) is Series and type(a.terms[0]) is float:
            return a

        return self._grown([operate(row[0], value)], lambda k: operate(row[k], value), (REGISTRY[name], (a, b), ()),
                           len(row) if type(a) is not Series or a.complete else None)

    def pow(self, a: Any, b: Any) -> Series:
        """The power; a whole one by products, so that a base of 0 does no harm."""
        if not isinstance(b, NUMBERS):
            return self._solved(REGISTRY["pow"], self.forward(REGISTRY["pow"]), (a, b), (), None)
        if b == 1:
            return a
        if b == 0:
            return self.ones_like(a)
        whole = 1 < b <= LONGEST and b == int(b)
        found = self._found(("pow", id(a), b)) if whole else self._found((REGISTRY["pow"], id(a), (type(b), b + 1), ()))
        if not whole:
            return self._solved(REGISTRY["pow"], self.forward(REGISTRY["pow"]), (a, b), (), None) if found is None or not _nonzero(a) else found / a
        if found is None:
            half = self.pow(a, b // 2)
            found = self.mul(half, half) if b % 2 == 0 else self.mul(self.pow(a, b - 1), a)
            self._made["pow", id(a), b] = found, (a,)
        return found

    def neg(self, x: Any) -> Series:
        """-x; of that, x again, so that a function of -x and one of x are found to be solved together."""
        found = self._found(("neg", id(x)))
        if found is None:
            found = self.apply(REGISTRY["neg"], (x,), (), None, operator.neg)
            self._made["neg", id(x)], self._made["neg", id(found)] = (found, (x,)), (x, (found,))
        return found

    def square(self, x: Any) -> Series:
        """x times x."""
        return self.mul(x, x)

    def reciprocal(self, x: Any) -> Series:
        """1 / x."""
        return self.div(1, x)

    # What is decided by the first coefficient

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Each coefficient from where the condition, which does not change, says."""
        condition = _first(condition)
        first = self.xp.where(condition, _first(a), _first(b))
        truth = getattr(condition, "_value", condition)
        if isinstance(truth, (np.ndarray, np.bool_)) and truth.size:
            for x, decided in (a, truth.all()), (b, not truth.any()):
                if decided and type(x) is Series and x.shape == first.shape:
                    return x
        return self._linear(lambda x, y: self.xp.where(condition, x, y), (a, b), (), False, first)

    def indicator(self, condition: Any, like: Any) -> Series:
        """1 where the condition holds, else 0."""
        return self.lift_value(self.xp.indicator(condition, _first(like)))

    def reference(self, x: Any, weights: Any, dim: Any) -> Any:
        """The element that stands where the first coefficient of `weights` is largest: what is computed does not depend on which it is."""
        return self._linear(lambda each: self.xp.reference(each, _first(weights), dim), (x,), (), False)

    def zeros_like(self, x: Any, shape: Any = None) -> Series:
        """Zeros that do not change."""
        return self.lift_value(self.xp.zeros_like(_first(x), shape))

    def ones_like(self, x: Any, shape: Any = None) -> Series:
        """Ones that do not change."""
        return self.lift_value(self.xp.ones_like(_first(x), shape))

    def eye_like(self, x: Any, n: int) -> Series:
        """The identity matrix, which does not change."""
        return self.lift_value(self.xp.eye_like(_first(x), n))

    # Everything else, by name

    def einsum(self, equation: str, xs: Sequence[Any]) -> Any:
        """Sums of products."""
        return self.apply(REGISTRY["einsum"], xs, (equation,), None, lambda tensors, equation: self.xp.einsum(equation, tensors))

    def __getattr__(self, name: str) -> Any:
        op = REGISTRY.get(OPS.get(name, name))
        if op is None or name not in PROTOCOL and not hasattr(self.xp, name):
            raise AttributeError(f"the carrier of series has no {name!r}: the protocol of the carriers has no such name")
        function = self._function(name, op)
        setattr(self, name, function)
        return function

    def _function(self, name: str, op: Op | None = None) -> Callable[..., Any]:
        """A function of the protocol on series, by the pushforward of its op."""
        op, plain = op or REGISTRY[name], getattr(self.xp, name)
        assert op is not None
        if op.kind == "composite":
            return lambda *args: op.forward(self, *args) if any([type(a) is Series for a in args]) else plain(*args)
        if op.arity is None:
            return lambda xs, *rest: self.apply(op, xs, rest, None, plain)
        if name in ("astype", "copy"):
            return lambda x, *rest: self._linear(plain, (x,), rest, False)
        arity = op.arity
        return lambda *args: self.apply(op, args[:arity], args[arity:], None, plain) if any([type(a) is Series for a in args]) else plain(*args)


def _nonzero(x: Series) -> bool:
    """Whether no element of the first coefficient is 0, as far as that can be asked."""
    value = getattr(x.terms[0], "_value", x.terms[0])
    return isinstance(value, (np.ndarray, np.generic)) and bool(np.all(value))


def _longest(tensors: Sequence[Any]) -> int | None:
    """The largest number of coefficients among complete series; None where some are growing."""
    length = 1
    for x in tensors:
        if type(x) is Series:
            if not x.complete:
                return None
            length = max(length, len(x.terms))
    return length


def _divisor(value: Any) -> Any:
    """A number by which others are divided: by 0, too."""
    return float64(value) if type(value) in NUMBERS and not value else value


def _cauchy(left: Sequence[Any], right: Sequence[Any]) -> Callable[[int], Any]:
    """The coefficients of a product, where the first factor ends no later than the second."""
    if type(left[0]) is float:
        return lambda k: sum(map(operator.mul, left[:k + 1], right[k::-1]))
    dot = _dot(left[0])
    return lambda k: dot(left[:k + 1], right[k::-1])


def _dot(like: Any) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """The function Σ a[i] b[i], over the shorter of the two, for coefficients of a kind."""
    return _dot_of_numbers if type(like) is float else _dot_of_arrays if type(like) is np.ndarray else _dot_of_values


def _dot_of_numbers(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum(map(operator.mul, a, b))


def _dot_of_arrays(a: Sequence[Any], b: Sequence[Any]) -> Any:
    products = map(operator.mul, a, b)
    total = next(products)
    for product in products:
        total += product
    return total


def _dot_of_values(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return functools.reduce(operator.add, map(operator.mul, a, b))
