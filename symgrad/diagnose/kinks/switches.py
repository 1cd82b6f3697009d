"""The switches of an op: functions of its arguments whose sign decides which smooth piece applies.

The switches of an elementwise op are derived from its formula: the argument of Abs and sign, the difference of the arguments of Max and Min, the
difference of the sides of a comparison, and the distance of the argument of floor from an integer. Ops that are not elementwise, and points
where a slope is infinite, have entries in tables.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.carriers import precise, symbolic
from symgrad.engine import graph_breaks
from symgrad.graph.common import Refused
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.op import Op
from symgrad.graph.order import upstream
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.sampling.conditions import COMPARISONS, switching_functions

Place = tuple[int, ...]
EXTREMES = ("amax", "amin", *(f"{e}_{of}" for e in ("max", "min") for of in ("of_all", "along", "of_both")), "median_of_all", "nanmedian_of_all")
SELECTING = graph_breaks.SELECTING[:9]
LENGTHS = ("vector_norm", "std", "std_of_both")
ROUND = "round"  # the kind of a kink with a limiting derivative for every direction, such as a norm's at 0
MAX_TIED = 12  # tied elements up to which all pairs are considered

# The derivative that is returned at a kink, by the name of the op or the kind of its switch. examples/guide/torch.md lists the same conventions.
CONVENTIONS = {
    **dict.fromkeys(("abs", "relu", "hypot", "direction", "atan2", "p_norm", "singular_values", *LENGTHS), "the derivative of least norm: 0"),
    **dict.fromkeys(("clamp_number", "clamp_below", "clamp_above"), "0 at the bounds"),
    **dict.fromkeys(("maximum", "minimum", *EXTREMES), "tied elements share equally"),
    **dict.fromkeys(SELECTING, "the selected element gets the whole derivative"),
    **dict.fromkeys(("sign", "floor", "ceil", "round", "trunc", "floor_divide", "rounded_quotient"), "0 everywhere"),
    **dict.fromkeys(("frac", "remainder", "fmod_number", "fmod_tensor"), "the slope between the jumps"),
    **dict.fromkeys(COMPARISONS, "the side that the comparison gives at equality"),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), "the limit; elements that are equal and infinite share equally"),
    **dict.fromkeys(("sqrt", "rsqrt", "cbrt", "pow"), "the formula's own: infinite at 0 where the slope is"),
}


def convention_of(op: Op) -> str:
    """The convention for the derivative of an op at its kinks."""
    return CONVENTIONS.get(op.name, "what the op's own rule gives")


class Switch(NamedTuple):
    """A function of the arguments of a node that changes its sign at a kink, for the element of the result at `place`.

    `elements` are the elements of the arguments (argument, place) that it depends on; `measure(*numbers)` is its value for their numbers, in any
    carrier, `slopes(*numbers)` its derivatives.
    """

    node: Node
    kind: str
    place: Place
    elements: tuple[tuple[int, Place], ...]
    measure: Callable[..., Any]
    slopes: Callable[..., Sequence[Any]]


def broadcast_element(place: Place, shape: tuple[int, ...]) -> Place:
    """The position in an argument of the element that is broadcast to a position of the result."""
    return tuple(0 if n == 1 else i for i, n in zip(place[len(place) - len(shape):], shape))


def switches(node: Node, near: float) -> Iterator[Switch]:
    """The switches of a node whose values in floats are within a distance of zero, including those across which the node is smooth."""
    if isinstance(node, Leaf) or type(node) is DerivativeNode or node.args is None:
        return
    name, args = node.op.name, node.args[:len(node.parents)]
    if not all(isinstance(a, (np.ndarray, np.generic, float, int)) for a in args):
        return
    if name in EXTREMES:
        yield from _extremum_ties(node, near)
    elif name in SELECTING:
        yield from _selection_ties(node, near)
    elif name in LENGTHS:
        yield from _length_switches(node, near)
    elif node.op.kind == "elementwise" or name in COMPARISONS:
        yield from _elementwise_switches(node, near)


# Elementwise ops, by their formula


class _Formula(NamedTuple):
    """A switch of an elementwise op as a formula of its arguments; with `lattice` the switch is the distance of the formula from an integer."""

    kind: str
    lattice: bool
    numbers: Callable[..., Any]
    digits: Callable[..., Any]
    slopes: tuple[Callable[..., Any], ...]


INFINITE_SLOPE = {"sqrt": 0, "rsqrt": 0, "cbrt": 0, "pow": 0}  # ops with an infinite slope where an argument is 0
CARRIER = {name: getattr(precise, name) for name in dir(precise) if callable(getattr(precise, name)) and not name.startswith("_")}


@cache
def _formulas(op: Op, parameters: tuple[Any, ...]) -> tuple[_Formula, ...]:
    count = op.arity or 1
    symbols = [sympy.Symbol(f"x{i}", real=True) for i in range(count)]
    if op.name in INFINITE_SLOPE:
        return (_formula_switch(ROUND, False, symbols[INFINITE_SLOPE[op.name]], symbols),)
    if op.name in COMPARISONS:
        return (_formula_switch("condition", False, symbols[0] - symbols[1], symbols),)
    if op.name in ("hypot", "direction", "atan2"):
        return (_formula_switch(ROUND, False, symbolic.abs(symbols[0]) + symbolic.abs(symbols[1]), symbols),)
    try:
        cells = [symbolic.ExactExpressions.fill([s], ()) for s in symbols]
        exact = [sympy.Rational(*x.as_integer_ratio()) if isinstance(x, float) and np.isfinite(x) else x for x in parameters]
        e = sympy.sympify(op.forward(symbolic, *cells, *exact).item())
    except (TypeError, AttributeError, NotImplementedError, ValueError):  # an op without a formula
        return ()
    return tuple(_formula_switch("kink", lattice, u, symbols) for u, lattice in switching_functions(e)
                 if u.free_symbols and not u.has(sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise))


def _formula_switch(kind: str, lattice: bool, u: Any, symbols: Sequence[Any]) -> _Formula:
    return _Formula(kind, lattice, sympy.lambdify(symbols, u, "numpy"), sympy.lambdify(symbols, u, modules=[CARRIER]),
                    tuple(sympy.lambdify(symbols, sympy.diff(u, s), modules=[CARRIER]) for s in symbols))


def _elementwise_switches(node: Node, near: float) -> Iterator[Switch]:
    args = node.args or ()
    count = len(node.parents)
    try:
        formulas = _formulas(node.op, args[count:])
    except TypeError:  # a parameter that is not hashable
        return
    arrays = [np.asarray(a) for a in args[:count]]
    if not formulas or any(a.dtype.kind not in "fiub" for a in arrays):
        return
    arrays = [a.astype(np.float64) for a in arrays]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    for formula in formulas:
        with np.errstate(all="ignore"):
            u = np.broadcast_to(np.asarray(formula.numbers(*arrays), dtype=np.float64), shape)
            away = u - np.rint(u) if formula.lattice else u
            close: Any = np.argwhere(np.abs(away) <= near)
        if node.op.name == "pow":  # which is smooth for whole exponents
            exponents = [float(arrays[1][broadcast_element(tuple(p), arrays[1].shape)]) for p in close]
            close = [p for p, x in zip(close, exponents) if not (x >= 0 and x.is_integer())]
        for index in close:
            place = tuple(int(i) for i in index)
            step = float(np.rint(u[place])) if formula.lattice else 0.0
            elements = tuple((i, broadcast_element(place, a.shape)) for i, a in enumerate(arrays))
            yield Switch(node, formula.kind, place, elements, lambda *xs, f=formula.digits, step=step: f(*xs) - step,
                         lambda *xs, of=formula.slopes: [f(*xs) for f in of])


# Ops of many elements


def _tie_switches(node: Node, kind: str, place: Place, tied: Sequence[Place]) -> Iterator[Switch]:
    for a, b in itertools.combinations(tied[:MAX_TIED], 2):
        yield Switch(node, kind, place, ((0, a), (0, b)), operator.sub, lambda x, y: (1, -1))


def _reduced_axes(node: Node, x: np.ndarray) -> tuple[int, ...]:
    dim = (node.args or ())[1] if len(node.args or ()) > 2 else None
    return tuple(range(x.ndim)) if node.op.name.endswith("median_of_all") or dim is None else tuple(dim)


def _extremum_ties(node: Node, near: float) -> Iterator[Switch]:
    x, axes = np.asarray(node.args[0]), _reduced_axes(node, np.asarray(node.args[0]))  # type: ignore[index]
    y = np.asarray(node.value).reshape([1 if i in axes else n for i, n in enumerate(x.shape)])
    groups: dict[Place, list[Place]] = {}
    with np.errstate(invalid="ignore"):
        for index in np.argwhere(np.abs(x - y) <= near):
            place = tuple(int(i) for i in index)
            groups.setdefault(tuple(0 if i in axes else n for i, n in enumerate(place)), []).append(place)
    for lane, tied in groups.items():
        if len(tied) > 1:
            place = lane if np.ndim(node.value) == x.ndim else tuple(n for i, n in enumerate(lane) if i not in axes)
            yield from _tie_switches(node, "selected" if node.op.name.endswith("median_of_all") else "tie", place, tied)


def _selection_ties(node: Node, near: float) -> Iterator[Switch]:
    """Ties of an element selected by its order with other elements of its lane."""
    x, index = np.asarray(node.args[0]), (node.args or ())[1]  # type: ignore[index]
    index = index if isinstance(index, tuple) else (index,)
    if not x.ndim or not all(isinstance(i, (np.ndarray, np.integer, int)) for i in index):
        return
    grids = np.broadcast_arrays(*(np.asarray(i) for i in index))
    is_full_grid = [np.asarray(g).ndim and np.array_equal(np.unique(g), np.arange(x.shape[d])) for d, g in enumerate(grids)]
    dim = next((d for d, full in enumerate(is_full_grid) if not full), None)
    if dim is None:  # a full sort: the dimension along which the index is no grid
        dim = next((d for d, i in enumerate(index) if np.asarray(i).size == grids[d].size), x.ndim - 1)
    seen = set()
    for place in np.ndindex(grids[0].shape):
        chosen = tuple(int(g[place]) for g in grids)
        lane = np.abs(x[tuple(slice(None) if d == dim else chosen[d] for d in range(x.ndim))] - x[chosen])
        tied = [tuple(int(k) if d == dim else chosen[d] for d in range(x.ndim)) for k in np.flatnonzero(lane <= near)]
        if len(tied) > 1 and (tied[0], tied[-1]) not in seen:
            seen.add((tied[0], tied[-1]))
            yield from _tie_switches(node, "selected", tuple(map(int, place)), tied)


def _length_switches(node: Node, near: float) -> Iterator[Switch]:
    x, y = np.asarray(node.args[0]), np.asarray(node.value)  # type: ignore[index]
    axes = _reduced_axes(node, x)
    for index in np.argwhere(np.abs(y) <= near):
        place = tuple(int(i) for i in index)
        lane = iter(place)
        full = place if y.ndim == x.ndim else tuple(0 if i in axes else next(lane) for i in range(x.ndim))
        elements = tuple((0, tuple(map(int, p))) for p in np.ndindex(x.shape) if all(i in axes or p[i] == full[i] for i in range(x.ndim)))

        def measure(*xs: Any) -> Any:
            centre = sum(xs[1:], xs[0]) / len(xs) if node.op.name.startswith("std") else 0
            return sum([abs(x - centre) for x in xs][1:], abs(xs[0] - centre))

        yield Switch(node, ROUND, place, elements, measure, lambda *xs: [1] * len(xs))


FAILURES = (TypeError, AttributeError, NotImplementedError, ValueError, KeyError, RuntimeError, Refused)  # of rules that accept only machine numbers
ZERO = precise.context.mpf(10) ** -70  # relative size below which a number counts as zero


class NotEvaluable(Exception):
    """Raised with the reason for a graph that cannot be evaluated in many digits."""


class PreciseEvaluation:
    """A recorded computation evaluated in many digits at other values of its leaves, and recorded there with all its nodes."""

    def __init__(self, roots: Sequence[Node], leaves: Sequence[Leaf], values: Sequence[Any]):
        self.recorder = RecordingCarrier(precise, precise.lift_value)
        self.boxes: dict[Node, Box] = {}
        try:
            if any(np.iscomplexobj(node.value) for node in upstream(list(roots))):
                raise TypeError("kinks of complex numbers are not searched")
            self.leaves = self.recorder.replayed(roots[0], leaves, values, self.boxes)[1]
            for root in roots[1:]:
                self.recorder.replayed(root, (), (), self.boxes)
        except FAILURES as error:
            raise NotEvaluable(f"a rule cannot be evaluated with many digits ({error})") from error

    def numbers(self, switch: Switch) -> list[Any]:
        """The numbers that a switch depends on."""
        node = switch.node
        args = [self.recorder.lift(a) if p is None else self.boxes[p].value for a, p in zip(node.args or (), node.parents)]
        return [scalar(args[i][place]) for i, place in switch.elements]

    def gradient(self, seeds: Sequence[tuple[Box, Any]]) -> np.ndarray:
        """The pullback of seeds (boxes with their cotangents) to the leaves, flat."""
        try:
            found = self.recorder.gradients([(box, g) for box, g in seeds if box.node is not None], self.leaves)
        except FAILURES as error:
            raise NotEvaluable(f"a rule cannot be evaluated with many digits ({error})") from error
        return np.array([x for box in found for x in box.value.ravel().tolist()], dtype=object)

    def measure(self, switch: Switch) -> Any:
        """The value of a switch."""
        return scalar(switch.measure(*self.numbers(switch)))

    def slope(self, switch: Switch) -> np.ndarray:
        """The gradient of a switch by the leaves."""
        seeds = []
        for (i, place), number in zip(switch.elements, switch.slopes(*self.numbers(switch))):
            p = switch.node.parents[i]
            if p is not None and not isinstance(number, bool):
                g = self.recorder.lift(np.zeros(self.boxes[p].shape))
                g[place] = precise.context.mpf(scalar(number))
                seeds.append((self.boxes[p], g))
        return self.gradient(seeds) if seeds else np.full(sum(box.value.size for box in self.leaves), precise.context.zero)


def scalar(x: Any) -> Any:
    """The element of a 0-d array; other values unchanged."""
    return x.item() if hasattr(x, "item") and not hasattr(x, "_mpf_") else x


def is_negligible(x: Any, scale: Any = 1) -> bool:
    """Whether a number is zero to the working precision, relative to a scale."""
    return bool(abs(x) <= ZERO * (1 + scale))


def hull_distance(gradients: Sequence[np.ndarray], returned: np.ndarray) -> float:
    """The distance of a vector from the convex hull of others in the maximum norm, by linear programming.

    >>> hull_distance([np.array([-1.0]), np.array([1.0])], np.array([0.25])), hull_distance([np.array([1.0])], np.array([0.0]))
    (0.0, 1.0)
    """
    from scipy.optimize import linprog

    matrix = np.array(gradients, dtype=np.float64).T
    if matrix.shape[1] == 1:
        return float(np.max(np.abs(matrix[:, 0] - returned), initial=0.0))
    n, k = matrix.shape
    cost = np.zeros(k + 1)
    cost[-1] = 1
    sides = np.vstack([np.hstack([matrix, -np.ones((n, 1))]), np.hstack([-matrix, -np.ones((n, 1))])])
    found = linprog(cost, A_ub=sides, b_ub=np.concatenate([returned, -returned]), A_eq=np.append(np.ones(k), 0.0)[None], b_eq=[1.0],
                    bounds=[(0, None)] * (k + 1), method="highs")
    return max(0.0, float(found.x[-1])) if found.success else np.inf


def null_space(rows: Sequence[np.ndarray]) -> list[list[Any]]:
    """A basis of the relations Σ cᵢ rowᵢ = 0, by elimination in many digits."""
    one, zero = precise.context.one, precise.context.zero
    work = [(list(row), [one if i == k else zero for i in range(len(rows))]) for k, row in enumerate(rows)]
    relations = []
    pivots: list[tuple[int, list[Any], list[Any]]] = []
    for row, combination in work:
        size = max([abs(x) for x in row], default=zero)
        for column, other, from_other in pivots:
            factor = row[column] / other[column]
            if factor:
                row = [a - factor * b for a, b in zip(row, other)]
                combination = [a - factor * b for a, b in zip(combination, from_other)]
        column = max(range(len(row)), key=lambda i: abs(row[i]), default=0)
        if not row or abs(row[column]) <= ZERO * size:
            relations.append(combination)
        else:
            pivots.append((column, row, combination))
    return relations
