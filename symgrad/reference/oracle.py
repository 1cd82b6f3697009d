"""The oracle: derivatives of a recorded computation by `sympy.diff` and the chain rule, independent of the derivative rules of this library.

Each op's forward rule is read once in the symbolic carrier, and split into equations of one elementary function each, which SymPy differentiates.
The gradient along a line, ∇f(x + t u) = ∇f + t H u + ..., is computed by one forward and one backward pass with truncated series in t. Its cost
is linear in the size of the computation at every order, while a flat formula would grow exponentially.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.carriers import precise
from symgrad.carriers.batched import Batched
from symgrad.carriers.digits import Undefined
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.elementary import ElementaryFunction, multiply_into, number, pop_kink_flag, taylor_coefficients
from symgrad.reference.template import Choice, Equation, NoFormula, equations_of, template
from symgrad.system.restoring import workdps

COMPARE: dict[type, Any] = {sympy.Eq: eq, sympy.Ne: ne, sympy.StrictLessThan: lt, sympy.LessThan: le, sympy.StrictGreaterThan: gt,
                            sympy.GreaterThan: ge}


class Oracle:
    """A scalar computation as equations between single numbers, which can be differentiated along any line.

    It is constructed from the node of the result and its leaves. Raises NoFormula for an op without a symbolic form.

    >>> import symgrad
    >>> x = symgrad.tensor([2.0, 3.0], requires_grad=True)
    >>> oracle = Oracle((x[0] ** 2 * x[1])._node, [x._node])
    >>> [[int(c) for c in row] for row in oracle.evaluate(50).along([1, 0], 2)]
    [[12, 6], [4, 4]]
    """

    def __init__(self, root: Node, leaves: Sequence[Leaf]):
        self.programs: dict[tuple[int, int], Any] = {}  # in ball arithmetic, by the orders
        self.steps: list[Equation] = []
        self.active: list[bool] = []
        places: dict[Node, list[int]] = {}
        for leaf in leaves:
            places[leaf] = [self._add(Equation(float(x), ()), True) for x in np.ravel(leaf.value)]
        self.count = len(self.steps)
        for node in upstream([root]):
            if node in places or node.value.dtype.kind in "biu":
                continue
            if type(node.value) is Batched:
                raise NoFormula("a part of the computation was batched by vmap; write the batch as an axis")
            if isinstance(node, Leaf) or type(node) is DerivativeNode and node.parents[0] is None:
                places[node] = self._constants(node.value)
            elif type(node) is DerivativeNode:
                places[node] = places[node.parents[0]]  # type: ignore[index]
            else:
                places[node] = self._instance(node, places)
        (self.output,) = places[root]

    @classmethod
    def of_expressions(cls, expressions: Sequence[sympy.Expr], symbols: Sequence[sympy.Symbol]) -> Oracle:
        """The equations of expressions, weighted by 1, 2, 3, ... and summed where they are several, at 0 in every symbol."""
        total = expressions[0] if len(expressions) == 1 else sympy.Add(*(k * e for k, e in enumerate(expressions, 1)))
        form = equations_of([*expressions, total], {s: i for i, s in enumerate(symbols)})
        out = cls.__new__(cls)
        out.programs = {}
        out.steps, out.active, out.count = [Equation(0.0, ()) for _ in symbols], [True for _ in symbols], len(symbols)
        for operation, inputs in form.steps:
            out._add(Equation(operation, inputs), any(out.active[k] for k in inputs))
        out.output = form.outputs[-1]
        return out

    def at(self, values: Sequence[Any]) -> Oracle:
        out = copy.copy(self)
        out.steps = [Equation(v, ()) for v in values] + self.steps[self.count:]
        return out

    def _add(self, step: Equation, active: bool) -> int:
        self.steps.append(step)
        self.active.append(active)
        return len(self.steps) - 1

    def _constants(self, value: Any) -> list[int]:
        numbers = np.ravel(value)
        if np.iscomplexobj(value):
            numbers = np.concatenate([numbers.real, numbers.imag])
        return [self._add(Equation(float(x), ()), False) for x in numbers]

    def _instance(self, node: Node, places: dict[Node, list[int]]) -> list[int]:
        """Add the equations of a node's template; returns the places of its outputs."""
        form, inputs = template(node)
        local: list[int] = []  # the place of each place of the template
        for i in inputs:
            parent = node.parents[i]
            local += self._constants(node.args[i]) if parent is None else places[parent]  # type: ignore[index]
        for operation, read in form.steps:
            inner = tuple([local[k] for k in read])
            local.append(self._add(Equation(operation, inner), any([self.active[k] for k in inner])))
        outputs = [local[k] for k in form.outputs]
        return outputs if node.op.differentiable else [self._add(Equation(None, (k,)), False) for k in outputs]  # constants by definition

    def evaluate(self, digits: int) -> OracleValues:
        with precise.working_precision(digits):
            return OracleValues(self, digits)


class OracleValues:
    """The values of the oracle's equations with a number of digits; a subclass has other numbers, at other `inputs`.

    `edge` is true at a kink or at the border of a branch, where a derivative is a convention.
    """

    constant: Any = staticmethod(mpmath.mpf)  # of floats
    number: Any = staticmethod(number)  # of SymPy numbers
    total: Any = staticmethod(lambda *xs: mpmath.fsum(xs))
    call: Any = staticmethod(ElementaryFunction.__call__)  # of an elementary function
    holds: Any = staticmethod(lambda relation, a, b: COMPARE[relation](a, b))

    def __init__(self, oracle: Oracle, digits: int, inputs: Sequence[Any] = ()):
        self.oracle, self.digits = oracle, digits
        self.values: list[Any] = [*inputs]
        self.branches: dict[int, int] = {}
        self.memos: list[dict[ElementaryFunction, Any]] = [{} for _ in oracle.steps]
        self.edge = False
        pop_kink_flag()
        for place, step in enumerate(oracle.steps[len(inputs):], len(inputs)):
            try:
                self.values.append(self._value(place, step))
            except Undefined:
                self.values.append(None)
        self.edge |= pop_kink_flag()

    def _value(self, place: int, step: Equation) -> Any:
        operation = step.operation
        if isinstance(operation, Choice):
            self.branches[place] = branch = self._branch(operation, step.inputs)
            return self.values[branch]
        if type(operation) is float:
            return self.constant(operation)
        xs = [self.values[k] for k in step.inputs]
        if any([x is None for x in xs]):  # == of an mpf and None is slow
            return None
        if operation is None:
            return self.total(*xs)
        if isinstance(operation, ElementaryFunction):
            value = self.memos[place][operation] = self.call(operation, *xs)
            return value
        return self.number(operation)

    def _branch(self, choice: Choice, inputs: Sequence[int]) -> int:
        sides = inputs[len(choice.conditions):]
        relations = {}
        for i, (symbol, relation) in enumerate(choice.relations):
            a, b = self.values[sides[2 * i]], self.values[sides[2 * i + 1]]
            if a is None or b is None:
                raise Undefined("a comparison")
            if self.oracle.active[sides[2 * i]] or self.oracle.active[sides[2 * i + 1]]:
                self.note_border(a, b)
            relations[symbol] = sympy.true if self.holds(relation, a, b) else sympy.false
        for condition, branch in zip(choice.conditions, inputs):
            if condition.xreplace(relations) == sympy.true:
                return branch
        raise Undefined("no branch")

    def note_border(self, a: Any, b: Any) -> None:
        """Note the border of a branch, if it is there: the derivative of one side does not hold for the other."""
        self.edge |= bool(a == b)

    @property
    def value(self) -> Any:
        """The value of the computation. Raises Undefined if it does not exist."""
        out = self.values[self.oracle.output]
        if out is None:
            raise Undefined("the value")
        return out

    @property
    def scale(self) -> Any:
        """An upper bound of all terms of the computation; the rounding error of a number is relative to it."""
        with precise.working_precision(self.digits):
            cotangents = self._back([[v] for v in self.values], 1)
            numbers = [v for v in self.values if v] + [row[0] for row in cotangents if row and row[0]]
            return mpmath.mpf(2) ** (3 * max([0, *(int(mpmath.mag(x)) for x in numbers)]))

    def along(self, direction: Any, length: int) -> list[list[Any]]:
        """For each input the derivatives Dᵏ(∂f/∂xᵢ)[u, ..., u] for k = 0, ..., length - 1, with the direction u.

        Raises Undefined where one of them does not exist or lies at a pole.
        """
        with precise.working_precision(self.digits):
            pop_kink_flag()
            back = self._back(self._series(direction, length), length)
            self.edge |= pop_kink_flag()
            out = []
            for i in range(self.oracle.count):
                row = back[i] or [None] * length
                out.append([0 if c is None else c * math.factorial(k) for k, c in enumerate(row)])
            return out

    def derivatives(self, order: int, full: int, direction: np.ndarray) -> list[Any]:
        """The value and the derivatives in the order of `slots`; an int 0 is a derivative that is identically 0."""
        n, units = range(direction.size), np.eye(direction.size)
        out = [self.value]
        line = self.along(direction, order) if order and (order > full or full < 2) else []
        rows = [self.along(u, full) for u in units] if full >= 2 else []
        out += [(line or rows[0])[i][0] for i in n if order]
        out += [rows[i][j][1] for i in n for j in n if full >= 2]
        if full >= 3:  # D³f[eᵢ, eⱼ, ·] by the third derivatives along eᵢ, eⱼ and eᵢ + eⱼ
            mixed = {(i, j): self.along(units[i] + units[j], 3) for i, j in itertools.combinations(n, 2)}
            with workdps(mpmath.mp, self.digits):
                for i, j, k in itertools.product(n, repeat=3):
                    twice = 2 * rows[i][k][2] if i == j else mixed[min(i, j), max(i, j)][k][2] - rows[i][k][2] - rows[j][k][2]
                    out.append(twice if isinstance(twice, int) else twice / 2)
        return out + [line[i][k - 1] for k in range(full + 1, order + 1) if k > 1 for i in n]

    def _series(self, direction: Any, length: int) -> list[Any]:
        """The series in t of every value along x + t u."""
        oracle, values = self.oracle, self.values
        series: list[Any] = []
        for place, (operation, inputs) in enumerate(oracle.steps):
            own = [values[place]]
            if length > 1 and values[place] is not None and oracle.active[place]:
                if place < oracle.count:
                    if direction[place]:
                        own = [values[place], self.constant(direction[place])] + [None] * (length - 2)
                elif place in self.branches:
                    own = series[self.branches[place]]
                elif operation is None:
                    moving = [series[k] for k in inputs if len(series[k]) > 1]
                    if moving:
                        own = own + [_total([s[i] for s in moving]) for i in range(1, length)]
                elif any(len(series[k]) > 1 for k in inputs):
                    own = taylor_coefficients(operation, [series[k] for k in inputs], self.memos[place], length, self.call)
            series.append(own)
        return series

    def _back(self, series: list[Any], length: int) -> list[Any]:
        oracle = self.oracle
        cotangents: list[Any] = [None] * len(oracle.steps)
        if self.value is not None:
            cotangents[oracle.output] = [self.constant(1)] + [None] * (length - 1)
        for place in range(oracle.output, oracle.count - 1, -1):
            g = cotangents[place]
            if g is None or not oracle.active[place]:
                continue
            operation, inputs = oracle.steps[place]
            for i, k in enumerate(inputs if place not in self.branches else (self.branches[place],)):
                if not oracle.active[k]:
                    continue
                if isinstance(operation, ElementaryFunction):
                    derivative = operation.partial(i)
                    if derivative.zero:
                        continue
                    factor = taylor_coefficients(derivative, [series[j] for j in inputs], self.memos[place], length, self.call)
                else:
                    factor = [self.constant(1)]
                if cotangents[k] is None:
                    cotangents[k] = [None] * length
                multiply_into(cotangents[k], g, factor)
        return cotangents


def slots(count: int, order: int, full: int) -> list[tuple[int, tuple[int, ...], bool]]:
    """The value and the derivatives up to an order by `count` inputs: the order, the indices, and whether it is a directional derivative.

    Up to the order `full` these are all partial derivatives; above, derivatives of the gradient along one direction.

    >>> slots(1, 3, 2)
    [(0, (), False), (1, (0,), False), (2, (0, 0), False), (3, (0,), True)]
    """
    return [(k, index, False) for k in range(min(order, max(full, 1)) + 1) for index in itertools.product(range(count), repeat=k)] + [
        (k, (i,), True) for k in range(max(full, 1) + 1, order + 1) for i in range(count)]


def _total(terms: Sequence[Any]) -> Any:
    present = [t for t in terms if t is not None]
    return sum(present[1:], present[0]) if present else None
