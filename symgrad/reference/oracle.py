"""The oracle: derivatives of a recorded computation by `sympy.diff` and the chain rule, without any rule of this library.

Each op's forward rule is read once in the symbolic carrier, as small equations; each equation is cut into elementary functions, whose derivatives
SymPy knows. The gradient along a line, ∇f(x + t u) = ∇f + t H u + ..., then comes from one sweep forward and one back with
truncated series in t: linear in the size of the computation at every order, where the flat formula swells.
"""

from __future__ import annotations

import copy
import itertools
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
from symgrad.reference.elementary import ElementaryFunction, along, edge_met, multiply_into, number
from symgrad.reference.template import Choice, Equation, NoFormula, cut, template

__all__ = ["Oracle", "slots"]

COMPARE: dict[type, Any] = {sympy.Eq: eq, sympy.Ne: ne, sympy.StrictLessThan: lt, sympy.LessThan: le, sympy.StrictGreaterThan: gt,
                            sympy.GreaterThan: ge}


class Oracle:
    """A scalar computation as equations between single numbers, ready to be differentiated along any line.

    Made from the node of the result and its leaves. Raises NoFormula where an op has no symbolic form.

    >>> import symgrad
    >>> x = symgrad.tensor([2.0, 3.0], requires_grad=True)
    >>> oracle = Oracle((x[0] ** 2 * x[1])._node, [x._node])
    >>> [[int(c) for c in row] for row in oracle.evaluated(50).along([1, 0], 2)]
    [[12, 6], [4, 4]]
    """

    def __init__(self, root: Node, leaves: Sequence[Leaf]):
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
        form = cut([*expressions, total], {s: i for i, s in enumerate(symbols)})
        out = cls.__new__(cls)
        out.steps, out.active, out.count = [Equation(0.0, ()) for _ in symbols], [True for _ in symbols], len(symbols)
        for what, inputs in form.steps:
            out._add(Equation(what, inputs), any(out.active[k] for k in inputs))
        out.output = form.outputs[-1]
        return out

    def at(self, values: Sequence[Any]) -> Oracle:
        """The same equations at other values of the leaves: floats or SymPy numbers."""
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
        """The steps of a node's template, put to its own places."""
        form, inputs = template(node)
        mine: list[int] = []
        for i in inputs:
            parent = node.parents[i]
            mine += self._constants(node.args[i]) if parent is None else places[parent]  # type: ignore[index]
        for what, read in form.steps:
            inner = tuple([mine[k] for k in read])
            mine.append(self._add(Equation(what, inner), any([self.active[k] for k in inner])))
        outputs = [mine[k] for k in form.outputs]
        return outputs if node.op.differentiable else [self._add(Equation(None, (k,)), False) for k in outputs]  # constant on purpose

    def evaluated(self, digits: int) -> OracleValues:
        """The values of all equations to that many digits."""
        with precise.working(digits):
            return OracleValues(self, digits)


class OracleValues:
    """The oracle at its point, to a number of digits.

    `edge` is true at a kink or at the border of a branch, where a derivative is a convention.
    """

    def __init__(self, oracle: Oracle, digits: int):
        self.oracle, self.digits = oracle, digits
        self.values: list[Any] = []
        self.taken: dict[int, int] = {}
        self.memos: list[dict[ElementaryFunction, Any]] = [{} for _ in oracle.steps]
        self.edge = False
        edge_met()
        for place, step in enumerate(oracle.steps):
            try:
                self.values.append(self._value(place, step))
            except Undefined:
                self.values.append(None)
        self.edge |= edge_met()

    def _value(self, place: int, step: Equation) -> Any:
        what = step.what
        if isinstance(what, Choice):
            self.taken[place] = taken = self._branch(what, step.inputs)
            return self.values[taken]
        if type(what) is float:
            return mpmath.mpf(what)
        xs = [self.values[k] for k in step.inputs]
        if None in xs:
            return None
        if what is None:
            return mpmath.fsum(xs)
        if isinstance(what, ElementaryFunction):
            value = self.memos[place][what] = what(*xs)
            return value
        return number(what)

    def _branch(self, choice: Choice, inputs: Sequence[int]) -> int:
        sides = inputs[len(choice.conditions):]
        truths = {}
        for i, (truth, relation) in enumerate(choice.relations):
            a, b = self.values[sides[2 * i]], self.values[sides[2 * i + 1]]
            if a is None or b is None:
                raise Undefined("a comparison")
            # On the border of a branch the derivative of one side does not hold for the other.
            self.edge |= bool(a == b) and (self.oracle.active[sides[2 * i]] or self.oracle.active[sides[2 * i + 1]])
            truths[truth] = sympy.true if COMPARE[relation](a, b) else sympy.false
        for condition, branch in zip(choice.conditions, inputs):
            if condition.xreplace(truths) == sympy.true:
                return branch
        raise Undefined("no branch")

    @property
    def value(self) -> Any:
        """The value of the computation. Raises Undefined where it has none."""
        out = self.values[self.oracle.output]
        if out is None:
            raise Undefined("the value")
        return out

    @property
    def scale(self) -> Any:
        """A size that no term of the computation exceeds: a number smaller than that by all working digits may be rounding."""
        with precise.working(self.digits):
            cotangents = self._back([[v] for v in self.values], 1)
            numbers = [v for v in self.values if v] + [row[0] for row in cotangents if row and row[0]]
            return mpmath.mpf(2) ** (3 * max([0, *(int(mpmath.mag(x)) for x in numbers)]))

    def along(self, direction: Any, length: int) -> list[list[Any]]:
        """For each input the derivatives Dᵏ(∂f/∂xᵢ)[u, ..., u] for k = 0, ..., length - 1, with the direction u.

        Raises Undefined where one of them does not exist or lies at a pole.
        """
        with precise.working(self.digits):
            edge_met()
            back = self._back(self._series(direction, length), length)
            self.edge |= edge_met()
            out = []
            for i in range(self.oracle.count):
                row = back[i] or [None] * length
                out.append([0 if c is None else c * mpmath.factorial(k) for k, c in enumerate(row)])
            return out

    def derivatives(self, order: int, full: int, direction: np.ndarray) -> list[Any]:
        """The value and the derivatives in the order of `slots`; an int 0 is one of which nothing depends on the inputs."""
        n, units = range(direction.size), np.eye(direction.size)
        out = [self.value]
        line = self.along(direction, order) if order and (order > full or full < 2) else []
        rows = [self.along(u, full) for u in units] if full >= 2 else []
        out += [(line or rows[0])[i][0] for i in n if order]
        out += [rows[i][j][1] for i in n for j in n if full >= 2]
        if full >= 3:  # D³f[eᵢ, eⱼ, ·] by the third derivatives along eᵢ, eⱼ and eᵢ + eⱼ
            mixed = {(i, j): self.along(units[i] + units[j], 3) for i, j in itertools.combinations(n, 2)}
            with mpmath.workdps(self.digits):
                for i, j, k in itertools.product(n, repeat=3):
                    twice = 2 * rows[i][k][2] if i == j else mixed[min(i, j), max(i, j)][k][2] - rows[i][k][2] - rows[j][k][2]
                    out.append(twice if isinstance(twice, int) else twice / 2)
        return out + [line[i][k - 1] for k in range(full + 1, order + 1) if k > 1 for i in n]

    def _series(self, direction: Any, length: int) -> list[Any]:
        """Every value as a series in t along x + t u."""
        oracle, values = self.oracle, self.values
        series: list[Any] = []
        for place, (what, inputs) in enumerate(oracle.steps):
            own = [values[place]]
            if length > 1 and values[place] is not None and oracle.active[place]:
                if place < oracle.count:
                    if direction[place]:
                        own = [values[place], mpmath.mpf(direction[place])] + [None] * (length - 2)
                elif place in self.taken:
                    own = series[self.taken[place]]
                elif what is None:
                    moving = [series[k] for k in inputs if len(series[k]) > 1]
                    if moving:
                        own = own + [_total([s[i] for s in moving]) for i in range(1, length)]
                elif any(len(series[k]) > 1 for k in inputs):
                    own = along(what, [series[k] for k in inputs], self.memos[place], length)
            series.append(own)
        return series

    def _back(self, series: list[Any], length: int) -> list[Any]:
        """The cotangents of all places as series in t, from the output down."""
        oracle = self.oracle
        cotangents: list[Any] = [None] * len(oracle.steps)
        if self.value is not None:
            cotangents[oracle.output] = [mpmath.mpf(1)] + [None] * (length - 1)
        for place in range(oracle.output, oracle.count - 1, -1):
            g = cotangents[place]
            if g is None or not oracle.active[place]:
                continue
            what, inputs = oracle.steps[place]
            for i, k in enumerate(inputs if place not in self.taken else (self.taken[place],)):
                if not oracle.active[k]:
                    continue
                if isinstance(what, ElementaryFunction):
                    derivative = what.partial(i)
                    if derivative.zero:
                        continue
                    factor = along(derivative, [series[j] for j in inputs], self.memos[place], length)
                else:
                    factor = [mpmath.mpf(1)]
                if cotangents[k] is None:
                    cotangents[k] = [None] * length
                multiply_into(cotangents[k], g, factor)
        return cotangents


def slots(count: int, order: int, full: int) -> list[tuple[int, tuple[int, ...], bool]]:
    """The value and the derivatives up to an order by `count` inputs: the order, the indices, and whether it is one along a direction.

    Up to the order `full` they are all partial derivatives; above, those of the gradient along one direction.

    >>> slots(1, 3, 2)
    [(0, (), False), (1, (0,), False), (2, (0, 0), False), (3, (0,), True)]
    """
    return [(k, index, False) for k in range(min(order, max(full, 1)) + 1) for index in itertools.product(range(count), repeat=k)] + [
        (k, (i,), True) for k in range(max(full, 1) + 1, order + 1) for i in range(count)]


def _total(terms: Sequence[Any]) -> Any:
    present = [t for t in terms if t is not None]
    return sum(present[1:], present[0]) if present else None
