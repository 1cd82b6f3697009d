"""A recorded computation evaluated in many digits at other points, and the linear algebra of the search for cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.bundles import Refused
from symgrad.carriers import precise
from symgrad.diagnose.kinks.switches import Switch
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.recorder import Box, RecordingCarrier

__all__ = ["NotEvaluable", "PreciseEvaluation", "hull_distance", "is_negligible", "null_space", "scalar"]

FAILURES = (TypeError, AttributeError, NotImplementedError, ValueError, KeyError, RuntimeError, Refused)  # of rules that accept only machine numbers
ZERO = precise.context.mpf(10) ** -70  # relative size below which a number counts as zero


class NotEvaluable(Exception):
    """Raised with the reason for a graph that cannot be evaluated in many digits."""


class PreciseEvaluation:
    """A recorded computation evaluated in many digits at other values of its leaves, and recorded there with all its nodes."""

    def __init__(self, roots: Sequence[Node], leaves: Sequence[Leaf], values: Sequence[Any]):
        self.recorder = recorder = RecordingCarrier(precise, precise.lift_value)
        self.boxes: dict[Node, Box] = {}
        self.leaves = []
        for leaf, value in zip(leaves, values):
            box = self.boxes[leaf] = Box(recorder, recorder.lift(value))
            box.node = Leaf(box, box.value, True)
            self.leaves.append(box)
        try:
            for node in upstream(list(roots)):
                if np.iscomplexobj(node.value):
                    raise TypeError("kinks of complex numbers are not searched")
                if node not in self.boxes:
                    self.boxes[node] = self._read(node)
        except FAILURES as error:
            raise NotEvaluable(f"a rule cannot be evaluated with many digits ({error})") from error

    def _read(self, node: Node) -> Box:
        recorder, boxes = self.recorder, self.boxes
        if isinstance(node, Leaf) or type(node) is DerivativeNode and node.parents[0] is None:
            return recorder.box(node.value)
        if type(node) is DerivativeNode:
            return boxes[node.parents[0]]  # type: ignore[index]
        args, count = node.args or (), len(node.parents)
        tensors = [recorder.box(a) if p is None else boxes[p] for a, p in zip(args, node.parents)]
        return recorder.apply(node.op, tensors, [recorder.box(a) if type(a) is float else a for a in args[count:]])

    def arguments(self, node: Node) -> list[Any]:
        """The values of a node's tensor arguments."""
        return [self.recorder.lift(a) if p is None else self.boxes[p].value for a, p in zip(node.args or (), node.parents)]

    def gradient(self, seeds: Sequence[tuple[Box, Any]]) -> np.ndarray:
        """The pullback of seeds (boxes with their cotangents) to the leaves, flat."""
        try:
            found = self.recorder.gradients([(box, g) for box, g in seeds if box.node is not None], self.leaves)
        except FAILURES as error:
            raise NotEvaluable(f"a rule cannot be evaluated with many digits ({error})") from error
        return np.array([x for box in found for x in box.value.ravel().tolist()], dtype=object)

    def measure(self, switch: Switch) -> Any:
        """The value of a switch."""
        return scalar(switch.measure(self.arguments(switch.node)))

    def slope(self, switch: Switch) -> np.ndarray:
        """The gradient of a switch by the leaves."""
        node = switch.node
        seeds = []
        for i, place, number in switch.slopes(self.arguments(node)):
            p = node.parents[i]
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
