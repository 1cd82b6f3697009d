"""Truncated power series: the carrier of Taylor mode. The pushforward of an op, applied to series, is a recurrence for the coefficients.

Let y = f(x) be an op and x(t) a power series. Then y'(t) is the op's pushforward applied to x'(t), so that

    y_k = [jvp(x', y, x)]_(k - 1) / k,

and the right-hand side needs only coefficients of y below k. No op has a rule for series: sums and linear ops act on each coefficient, products
are Cauchy products, quotients solve a Cauchy product, and all other ops use this equation. The functions in a rule are series as well, cached by
their arguments, so that sin and cos, or tanh and sech², are solved together, and the cost is quadratic in the order.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, chapter 13.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.taylor import (
    NUMBERS,
    Series,
    TaylorCarrier,
    common_length,
    compositions,
    derivative_coefficients,
    divisor,
    first_of,
    integral_coefficients,
    nonzero,
    product,
    quotient,
    term,
    total,
    value,
    varies,
    with_defaults,
)
from symgrad.dtypes.exponents import has_predecessor
from symgrad.graph.op import REGISTRY, Op

ARITHMETIC = frozenset(("mul", "div", "pow", "square", "reciprocal", "where"))
MEMOISED = 256  # the most memoised series that are kept after `solve`
LARGEST_EXPONENT = 64  # the largest integer exponent that is computed by products


class SeriesCarrier(TaylorCarrier):
    """The carrier of series up to an order, whose coefficients are values of the carrier `base`.

    `forward(op)` returns the function that computes an op in that carrier, from the op's own arguments; `lift` converts an array to a value of
    that carrier. Piecewise constant functions (a comparison, a sign, the position of the largest element) use the first coefficient only, since
    their derivative is zero.
    """

    kind = Series
    primal = staticmethod(first_of)

    def __init__(self, base: Any, order: int, forward: Callable[[Op], Callable[..., Any]] | None = None, lift: Any = None):
        super().__init__(base)
        self.order = order
        self.forward = forward or (lambda op: functools.partial(op.forward, base))
        self._lift = lift
        self._new_order = order  # the order of newly created series
        self._memo: dict[Any, tuple[Series, tuple]] = {}  # series by op and ids of arguments; holding the arguments keeps the ids unique
        self._growing: list[Series] = []
        self._to_integrate: list[Series] = []  # growing series that are integrals of their derivatives, which are not computed yet

    # The interface of a pass over a graph

    def lift_value(self, given: Any) -> Series:
        """A constant as a series."""
        if self._lift is not None and isinstance(given, (np.ndarray, np.generic)):
            given = self._lift(given)
        return Series(self, [term(given)], self.order, True)

    constant = lift_value

    def polynomial(self, terms: Sequence[Any]) -> Series:
        """The complete series with the given coefficients."""
        return Series(self, [term(t) for t in terms[:self.order + 1]], self.order, True)

    def apply(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any], call: Callable[..., Any] | None = None,
              first: Any = None) -> Any:
        """The series of an op's value, which grows until `solve` completes all series.

        `first` is its first coefficient if that is known; `call` computes the op in the base carrier if `forward` does not.
        """
        if op.name in ARITHMETIC:
            return getattr(self, op.name)(*tensors)
        if op.name == "output":  # one value of an op with several
            return tensors[0][parameters[0]]
        tensors, parameters, call = tuple(tensors), tuple(parameters), call or self.forward(op)
        if not op.differentiable or not any([varies(x) for x in tensors]):
            found = self._first_of(op, call, tensors, parameters) if first is None else first
            return self.lift_value(found) if op.differentiable else found
        if op.kind == "linear":
            return self._linear(call, tensors, parameters, op.arity is None, first)
        if op.kind == "multilinear":
            return self._multilinear(op, call, tensors, parameters, first)
        if op.partials and op.piecewise_linear:
            return self._piecewise_linear(op, call, tensors, parameters, first)
        if op.partials and not any(map(callable, op.partials)):
            return self._linear_combination(op, call, tensors, parameters, first)
        return self._solve_op(op, call, tensors, parameters, first)

    def _first_of(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple) -> Any:
        """The first coefficient of an op's value."""
        return call(first_of(tensors), *parameters) if op.arity is None else call(*map(first_of, tensors), *parameters)

    def solve(self) -> None:
        """Complete all growing series."""
        if not self._growing:
            return
        ends: list[tuple[list[Any], int]] = []
        grow = self.schedule(ends)
        for k in range(1, self.order + 1):
            grow(k)
        for x in self._growing:
            x.complete, x.step, x.source, x.rate = True, None, None, None
        for terms, end in ends:
            del terms[end:]
        self._to_integrate.clear()
        self._growing.clear()
        if len(self._memo) > MEMOISED:
            self._memo.clear()

    def schedule(self, ends: list[tuple[list[Any], int]] | None = None) -> Callable[[int], None]:
        """The function that appends the coefficient of an order to all growing series, after the coefficients of lower order.

        `ends` gets the length of each series that has further coefficients already.
        """
        integrals = []
        for x in self._to_integrate:  # each adds only series of lower order, so the highest order comes first
            rate = self._derivative(x)
            rates = rate.terms
            if rate.complete:
                x.terms += integral_coefficients(rates, x.order)
                if ends is not None:
                    ends.append((x.terms, len(x.terms)))
                x.terms += [self._zero(x)] * (x.order + 1 - len(x.terms))  # zeros, which other growing series read
            else:
                integrals.append((x.order, x.terms.append, rates))
        rows = [(x.order, x.terms.append, x.step) for x in self._growing if x.step is not None]

        def grow(k: int) -> None:
            for order, append, rates in integrals:
                if k <= order:
                    append(rates[k - 1] / k)
            for order, append, step in rows:
                if k <= order:
                    append(step(k))

        return grow

    def close(self) -> None:
        """Drop all series, so that the reference cycles between them and the carrier are broken."""
        self.__dict__.clear()

    def _zero(self, x: Series) -> Any:
        """A zero coefficient."""
        return 0.0 if type(x.terms[0]) is float else self.base.zeros_like(x.terms[0])

    # Construction of series

    def _new_series(self, terms: list[Any], step: Any, source: Any, length: int | None) -> Series:
        """A series with a first coefficient and a rule for the next one: computed at once up to a length, or growing if the length is None.

        `source` is the op with its tensors and parameters, or a function that returns the derivative.
        """
        need = self._new_order
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
        return op.jvp(self, [self._derivative(x) if varies(x) else None for x in tensors], values or y, (*tensors, *parameters))

    def _derivative(self, x: Series) -> Series:
        """The derivative of a series by t."""
        if x.rate is not None:
            return x.rate
        if x.complete:
            x.rate = Series(self, derivative_coefficients(x.terms), x.order - 1, True)
            return x.rate
        before, self._new_order = self._new_order, x.order - 1
        try:
            source = x.source
            rate = self._by_rule(*source, x) if type(source) is tuple else source(x)
            if type(rate) is not Series:
                rate = self.zeros_like(x) if rate is None else self.lift_value(rate)
            x.rate = rate if rate.shape == x.shape else self.broadcast_to(rate, tuple(x.shape))
            return x.rate
        finally:
            self._new_order = before

    def _solve_op(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, first: Any) -> Series:
        """The solution of y' = jvp(x', y, x)."""
        key = op, *[id(x) if type(x) is Series else (type(x), x) for x in tensors], parameters
        try:
            found = self._find_memoised(key)
        except TypeError:  # a parameter is not hashable
            found, key = None, ()
        if found is not None:
            return found
        if op.kind != "elementwise":
            parameters = with_defaults(op, parameters)
        if first is None:
            first = self._first_of(op, call, tensors, parameters)
        if isinstance(first, tuple):
            return self._solve_several(op, tensors, parameters, first)
        out = self._new_series([term(first)], None, (op, tensors, parameters), None if self._new_order else 1)
        if not out.complete:
            self._to_integrate.append(out)
        if key:
            self._memo[key] = out, tensors
        return out

    def _solve_several(self, op: Op, tensors: tuple, parameters: tuple, values: Any) -> Any:
        """As `_solved`, for an op with several values; `values` are their first coefficients."""
        found: list[Any] = []

        def source(k: int, y: Series) -> Any:
            if not found:
                found.extend(self._by_rule(op, tensors, parameters, y, out))
            return found[k]

        length = None if self._new_order else 1
        out = type(values)(self._new_series([term(v)], None, functools.partial(source, k), length) for k, v in enumerate(values))
        self._to_integrate += [x for x in out if not x.complete]
        return out

    def _find_memoised(self, key: tuple) -> Series | None:
        """The memoised series of the same op and arguments, if it has enough coefficients."""
        found = self._memo.get(key)
        return found[0] if found is not None and found[0].order >= self._new_order else None

    def _linear(self, call: Callable[..., Any], tensors: tuple, parameters: tuple, variadic: bool, first: Any = None) -> Series:
        """A function that acts on each coefficient separately."""
        rows = [x.terms if type(x) is Series else [x] for x in tensors]
        length = common_length(tensors)
        constant = self.base.zeros_like if variadic else lambda x: 0  # a list is joined of values with shapes
        zeros = [constant(x) if type(x) is not Series else value(self._zero(x)) if x.complete and len(row) != length else None
                 for x, row in zip(tensors, rows)]

        def step(k: int) -> Any:
            values = [value(row[k]) if k < len(row) else zero for row, zero in zip(rows, zeros)]
            return term(call(values, *parameters) if variadic else call(*values, *parameters))

        def push(y: Series) -> Any:
            rates = tuple(self._derivative(x) if varies(x) else self.zeros_like(x) if type(x) is Series else 0 for x in tensors)
            return self._linear(call, rates, parameters, variadic)

        return self._new_series([step(0) if first is None else term(first)], step, push, length)

    def _multilinear(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, first: Any) -> Series:
        """Cauchy's product, for any number of factors and any kind of product."""
        moving = [i for i, x in enumerate(tensors) if varies(x)]
        rows, values = [tensors[i].terms for i in moving], list(first_of(tensors))
        variadic = op.arity is None

        def multiply(values: list[Any]) -> Any:
            return call(list(values), *parameters) if variadic else call(*values, *parameters)

        def step(k: int) -> Any:
            out = None
            for places in compositions(k, [min(len(row), k + 1) for row in rows]):
                for i, row, n in zip(moving, rows, places):
                    values[i] = value(row[n])
                each = multiply(values)
                out = each if out is None else out + each
            return term(out)

        length = sum(map(len, rows)) - len(rows) + 1 if common_length(tensors) else None
        return self._new_series([step(0) if first is None else term(first)], step, (op, tensors, parameters), length)

    def _linear_combination(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, first: Any) -> Series:
        """A sum with constant factors."""
        first = call(*map(first_of, tensors), *parameters) if first is None else first
        parts = [(x.terms, partial) for x, partial in zip(tensors, op.partials) if partial and varies(x)]
        if not parts:
            return self.lift_value(first)
        shape, step = tuple(first.shape), total(parts)
        stretched = any([x.shape != shape for x in tensors if varies(x)])
        return self._new_series([term(first)], (lambda k: self.base.broadcast_to(step(k), shape)) if stretched else step, (op, tensors, parameters),
                                common_length(tensors))

    def _piecewise_linear(self, op: Op, call: Callable[..., Any], tensors: tuple, parameters: tuple, first: Any) -> Series:
        """The series of a piecewise linear op: each argument times the partial derivative at the first coefficients."""
        firsts = [first_of(x) for x in tensors]
        first = call(*firsts, *parameters) if first is None else first
        return self._weighted_sum(first, [(x, partial(self.base, first, *firsts, *parameters) if callable(partial) else partial)
                                      for x, partial in zip(tensors, op.partials) if partial and varies(x)])

    def _weighted_sum(self, first: Any, parts: Sequence[tuple[Series, Any]]) -> Series:
        """A weighted sum of series."""
        def step(k: int) -> Any:
            return functools.reduce(operator.add, [x.terms[k] * factor for x, factor in parts if k < len(x.terms)])

        def rate(_: Series) -> Series:
            rates = [(self._derivative(x), factor) for x, factor in parts]
            return self._weighted_sum(functools.reduce(operator.add, [x.terms[0] * factor for x, factor in rates]), rates)

        return self._new_series([term(first)], step, rate, common_length([x for x, _ in parts]))

    # Arithmetic

    def mul(self, a: Any, b: Any) -> Series:
        """Cauchy's product."""
        if not varies(b):
            return self._scale("mul", operator.mul, a, b)
        if not varies(a):
            return self._scale("mul", operator.mul, b, a)
        if b.complete and len(b.terms) <= self._new_order:
            a, b = b, a  # the shorter one first, so that all needed coefficients of the other exist
        left, right = a.terms, b.terms
        length = len(left) + len(right) - 1 if a.complete and b.complete else None
        step = product(left, right, not b.complete or len(right) > self._new_order)
        return self._new_series([left[0] * right[0]], step, (REGISTRY["mul"], (a, b), ()), length)

    def div(self, a: Any, b: Any) -> Series:
        """The quotient c, by Cauchy's product: a = b c."""
        if not varies(b):
            return self._scale("div", operator.truediv, a, b)
        length = self._new_order + 1 if b.complete and (type(a) is not Series or a.complete) else None
        return self._new_series(*quotient(a.terms if type(a) is Series else [a], b.terms), (REGISTRY["div"], (a, b), ()), length)

    def _scale(self, name: str, operate: Callable[[Any, Any], Any], a: Any, b: Any) -> Series:
        """A series times, or divided by, a constant."""
        by, row = b.terms[0] if type(b) is Series else b, a.terms if type(a) is Series else [a]
        if operate is operator.truediv:
            by = divisor(by)
        elif type(by) is float and by == 1 and type(row[0]) is float:
            return a
        return self._new_series([operate(row[0], by)], lambda k: operate(row[k], by), (REGISTRY[name], (a, b), ()),
                                len(row) if type(a) is not Series or a.complete else None)

    def pow(self, a: Any, b: Any) -> Series:
        """The power; for a small positive integer exponent by products, which are correct for a base of 0."""
        op, is_number = REGISTRY["pow"], isinstance(b, NUMBERS)
        if is_number and b in (0, 1):
            return a if b else self.ones_like(a)
        if is_number and 1 < b <= LARGEST_EXPONENT and b == int(b):
            found = self._find_memoised(("pow", id(a), b))
            if found is None:
                half = self.pow(a, b // 2)
                found = self.mul(half, half) if b % 2 == 0 else self.mul(self.pow(a, b - 1), a)
                self._memo["pow", id(a), b] = found, (a,)
            return found
        # As a quotient, a^b has errors of eps / (b + 1): the recurrence adds j (b + 1) - k. So not between -1/2 and the order.
        related = is_number and not -0.5 < b <= self._new_order and (b + 1) - 1 == b and has_predecessor(b + 1)
        following = self._find_memoised((op, id(a), (type(b), b + 1), ())) if related else None
        return following / a if following is not None and nonzero(a) else self._solve_op(op, self.forward(op), (a, b), (), None)

    def neg(self, x: Any) -> Series:
        """-x, memoised in both directions, so that functions of x and of -x share their series."""
        found = self._find_memoised(("neg", id(x)))
        if found is None:
            found = self.apply(REGISTRY["neg"], (x,), (), operator.neg)
            self._memo["neg", id(x)], self._memo["neg", id(found)] = (found, (x,)), (x, (found,))
        return found

    def square(self, x: Any) -> Series:
        """x times x."""
        return self.mul(x, x)

    def reciprocal(self, x: Any) -> Series:
        """1 / x."""
        return self.div(1, x)

    # Functions of the first coefficient

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """The choice between two series, coefficient by coefficient, by a constant condition."""
        condition = first_of(condition)
        first = self.base.where(condition, first_of(a), first_of(b))
        mask = getattr(condition, "_value", condition)
        if isinstance(mask, (np.ndarray, np.bool_)) and mask.size:
            for x, selected in (a, mask.all()), (b, not mask.any()):
                if selected and type(x) is Series and x.shape == first.shape:
                    return x
        return self._linear(lambda x, y: self.base.where(condition, x, y), (a, b), (), False, first)

    def indicator(self, condition: Any, like: Any) -> Series:
        """1 where the condition holds, else 0."""
        return self.lift_value(self.base.indicator(condition, first_of(like)))

    def reference(self, x: Any, weights: Any, dim: Any) -> Any:
        """The element at which the first coefficient of `weights` is largest; the choice does not affect a rule's result."""
        return self._linear(lambda each: self.base.reference(each, first_of(weights), dim), (x,), (), False)
