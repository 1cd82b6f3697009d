"""The Clarke subdifferential at a point: the convex hull of the limits of gradients near it.

A piecewise smooth function is smooth at generic points next to x, where the rules are right. So the computation is evaluated in many digits
at x + t d with t = 1e-40. The gradient there is the limiting gradient of the cell that d points into, to forty digits, however deep the kinks
are nested. The search visits neighbouring cells through the facets that the gradients of the switches define. It is complete under one
condition:

    every linear relation between gradients of switches is one between the switches themselves.

Then independent switches are coordinates in which the cells are cones (by the inverse function theorem). Where the condition does not
hold, the gradients that were found are still limits, so that "inside" is certain; "outside" is not, and the verdict is "undecided".

F. H. Clarke, Optimization and Nonsmooth Analysis (1983), section 2.5, 10.1137/1.9781611971309.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from symgrad.algebra.limits import poll
from symgrad.carriers import precise
from symgrad.carriers.batched import Batched
from symgrad.diagnose.kinks.switches import ROUND, NotEvaluable, PreciseEvaluation, Switch, is_negligible, null_space, switches
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reports.base import pair

STEP = precise.context.mpf(10) ** -40  # the distance of the points at which gradients are evaluated
ACTIVE = precise.context.mpf(10) ** -36  # a switch that is closer to zero is active
FINER = 10**6  # the factor of a smaller step, for extrapolation
FAR_STEP = precise.context.mpf(10) ** -9  # a step at which second-order terms show, still inside a cell
DIGITS = 120
SAMPLES = 6  # random directions, and their opposites, that are evaluated before the walk
MAX_SWITCHES = 12  # independent switches up to which all cells are searched
MAX_CELLS = 600
WORK = 100_000  # the elements of the computation times the cells that are evaluated, for an effort of 1
CLOSE = 1e-9  # the distance in floats up to which a switch may be zero in truth
MAX_ELEMENTS = 60_000  # of a graph that is evaluated in many digits
Rerun = Callable[[np.ndarray], tuple[Node, Sequence[Leaf]]]


@dataclass
class Subdifferential:
    """The limiting gradients; `complete` tells whether these are all, and `reason` why they may not be.

    `returned` is the gradient by the rules at the point itself, `exact` holds the values of the switches there, and `active` the switches that
    are zero. `blocked` is the reason why gradients next to the point are unknown.
    """

    gradients: list[np.ndarray] = field(default_factory=list)
    returned: np.ndarray = field(default_factory=lambda: np.zeros(0))
    exact: dict[Switch, Any] = field(default_factory=dict)
    active: list[Switch] = field(default_factory=list)
    complete: bool = True
    reason: str = ""
    blocked: str = ""


class _Cell(NamedTuple):
    """A direction into a cell, the computation at x + t d, the signs of the switches there, and the gradient."""

    direction: np.ndarray
    evaluation: PreciseEvaluation
    signs: tuple[int, ...]
    gradient: np.ndarray


class _Search:
    """The search for the cells around a point."""

    def __init__(self, root: Node, leaves: Sequence[Leaf], branches: Sequence[Node], rerun: Rerun | None, most: int, seed: int):
        self.root, self.leaves, self.branches, self.rerun, self.most = root, leaves, list(branches), rerun, most
        self.active_rerun: Rerun | None = None  # `rerun` if the graph contains a fixed choice, which only the function makes again
        self.rng = np.random.default_rng(seed)
        self.point = [np.asarray(leaf.value) for leaf in leaves]
        self.count = sum(p.size for p in self.point)
        self.scale = precise.context.mpf(max([1.0, *(float(np.max(np.abs(p), initial=0.0)) for p in self.point)]))
        self.found = Subdifferential()
        self.active: list[Switch] = []
        self.cells: dict[tuple[int, ...], _Cell] = {}

    def read(self, t: Any, direction: np.ndarray | None, root: Node | None = None, leaves: Sequence[Leaf] = ()) -> PreciseEvaluation:
        """The computation at x + t d; with `root` and `leaves`, another recording of it."""
        values, at = [], 0
        for p in self.point:
            x = precise.lift_value(p)
            if direction is not None:
                x = x + precise.lift_value(direction[at:at + p.size].reshape(p.shape)) * (t * self.scale)
            values.append(x)
            at += p.size
        return PreciseEvaluation([self.root, *self.branches], self.leaves, values) if root is None else PreciseEvaluation([root], leaves, values)

    def run(self, candidates: Sequence[Switch]) -> Subdifferential:
        """Find the cells around the point, and determine whether these are all."""
        found = self.found
        base = self.read(STEP, None)
        self.value = base.boxes[self.root].value.item()
        if not precise.context.isfinite(self.value):
            found.blocked = "the value at the point is not finite"
            return found
        for s in candidates:
            u = base.measure(s)
            found.exact[s] = u
            if abs(u) <= ACTIVE * self.scale:
                self.active.append(s)
        found.active = self.active
        for s in self.active if self.count > 1 else ():
            if s.kind == ROUND:
                self._mark_incomplete(f"{s.node.op.name} has a limiting derivative for every direction there")
        fixed = [s for s in self.active if s.kind == "selected" or s.node in self.branches]
        if fixed:
            self.active_rerun = self.rerun
            if self.rerun is None:
                self._mark_incomplete(f"the selection of {fixed[0].node.op.name} is fixed in the graph; give kinks the function and its inputs")
        found.returned = base.gradient([(base.boxes[self.root], 1)]).astype(np.float64)
        for _ in range(SAMPLES if self.active else 1):
            if len(self.cells) >= self.most:
                self._mark_incomplete(f"only {len(self.cells)} directions were evaluated, for the computation is large; give a larger effort")
                break
            direction = self.rng.standard_normal(self.count)
            if not (self._visit(direction) and self._visit(-direction)):
                return found
        if self.active and self.count > 1:  # of one input both directions have been evaluated
            if self.found.complete:
                self._walk()
            if self.found.complete:
                self._relations(base)
        distinct: list[np.ndarray] = []
        for cell in self.cells.values():
            g = cell.gradient.astype(np.float64)
            if not any(np.allclose(g, d, rtol=1e-13, atol=1e-17 * (1 + np.max(np.abs(d), initial=0.0))) for d in distinct):
                distinct.append(g)
        found.gradients = distinct
        return found

    def _mark_incomplete(self, reason: str) -> None:
        if self.found.complete:
            self.found.complete, self.found.reason = False, reason

    def _visit(self, direction: np.ndarray) -> bool:
        """Evaluate a direction, and return whether the search continues."""
        poll()
        direction = direction / (np.max(np.abs(direction)) or 1.0)
        mpf, isfinite = precise.context.mpf, precise.context.isfinite
        evaluation = self.read(STEP, direction)
        measures = [evaluation.measure(s) for s in self.active]
        signs = tuple(0 if u == 0 else 1 if u > 0 else -1 for u in measures)
        root, leaves = (self.root, self.leaves) if self.active_rerun is None else self.active_rerun(direction)

        def at(t: Any) -> tuple[Any, np.ndarray]:
            there = evaluation if root is self.root and t == STEP else self.read(t, direction, root, leaves)
            return there.boxes[root].value.item(), there.gradient([(there.boxes[root], 1)])

        here, gradient = at(STEP)
        if not isfinite(here):
            self.found.blocked = "the function has no finite value on some sides of the point"
            return False
        key = signs if self.count > 1 else (*signs, direction[0] > 0)  # one input has two sides
        known = self.cells.get(key)
        if known is not None:
            if all(abs(a - b) <= mpf(10) ** -8 * (1 + abs(a)) for a, b in zip(known.gradient, gradient)):
                return True
            self._mark_incomplete("the gradient near the point depends on the direction, and no known kink explains it")
        if not all(isfinite(g) for g in gradient):
            self.found.blocked = "a gradient near the point is not finite"
            return False
        size = max([mpf(1), *(abs(g) for g in gradient)])
        value, closer = at(STEP / FINER)
        if abs(value - self.value) > max(abs(here - self.value) / 2, mpf(10) ** -15 * (1 + abs(self.value))):
            low, high = pair(min(self.value, here), max(self.value, here), 10)
            self.found.blocked = f"the value jumps between {low} and {high}, so that there is no Clarke subdifferential"
            return False
        if any(abs(b) > 2 * abs(a) + mpf(10) ** -6 for a, b in zip(gradient, closer)):
            self.found.blocked = f"gradients near the point grow without bound (to {float(size):.3g} at a distance of 1e-40)"
            return False
        rise = (at(2 * STEP)[0] - here) / (STEP * self.scale)
        slope = sum((g * mpf(float(d)) for g, d in zip(gradient, direction)), mpf(0))
        if abs(rise - slope) > mpf(10) ** -9 * (size * self.count):
            by_rules, by_values = pair(slope, rise, 10)
            self.found.blocked = (f"near the point the rules give a slope of {by_rules} where the values have {by_values}: a rule "
                                  f"is wrong there, or a part of the computation was detached")
            return False
        limit = np.array([b if a == b else mpf(0) if abs(b) < abs(a) / 100 else b - (a - b) / (FINER - 1) for a, b in zip(gradient, closer)], object)
        self.cells[key if known is None else (*key, len(self.cells))] = _Cell(direction, evaluation, signs, limit)
        return True

    # Completeness

    def _walk(self) -> None:
        pending = list(self.cells.values())
        while pending and not self.found.blocked:
            cell = pending.pop()
            for direction in self._neighbour_directions(cell):
                if len(self.cells) >= self.most:
                    self._mark_incomplete(f"there are more cells around the point than the {len(self.cells)} that were evaluated")
                    return
                before = len(self.cells)
                if not self._visit(direction):
                    return
                if len(self.cells) > before:
                    pending.append(list(self.cells.values())[-1])

    def _neighbour_directions(self, cell: _Cell) -> list[np.ndarray]:
        from scipy.optimize import linprog

        rows = []
        for s, sign in zip(self.active, cell.signs):
            slope = cell.evaluation.slope(s).astype(np.float64)
            length = float(np.linalg.norm(slope))
            if sign and length > 1e-18:
                rows.append(sign * slope / length)
        normals: list[np.ndarray] = []
        for row in rows:
            if not any(abs(abs(row @ other) - 1) < 1e-12 for other in normals):
                normals.append(row)
        if len(normals) > MAX_SWITCHES:
            self._mark_incomplete(f"more than {MAX_SWITCHES} different kinks meet at the point")
            return []
        if not normals:
            return []
        basis = np.linalg.svd(np.array(normals), full_matrices=False)
        basis_rows = basis[2][basis[1] > 1e-12 * basis[1][0]]
        matrix = np.array(normals) @ basis_rows.T
        k, r = matrix.shape
        out = []
        for i in range(k):
            others = np.delete(matrix, i, 0)
            found = linprog(np.append(np.zeros(r), -1.0), A_ub=np.hstack([-others, np.ones((k - 1, 1))]) if k > 1 else None,
                            b_ub=np.zeros(k - 1) if k > 1 else None, A_eq=np.append(matrix[i], 0.0)[None], b_eq=[0.0],
                            bounds=[(-1, 1)] * r + [(0, 1)], method="highs")
            if found.success and found.x[-1] > 1e-9:
                room = found.x[-1]
                d = found.x[:r] - matrix[i] * (room / 10)
                out.append(d @ basis_rows + self.rng.uniform(-1, 1, self.count) * (room / (1000 * self.count)))
        return out

    def _relations(self, base: PreciseEvaluation) -> None:
        """Check that each linear relation between gradients of switches is a relation between the switches."""
        zero = precise.context.zero
        switching = {s.node for s in self.active}
        downstream: set[Node] = set()
        for node in upstream([self.root, *self.branches]):
            if any(p is not None and (p in switching or p in downstream) for p in node.parents):
                downstream.add(node)
        plain = [s for s in self.active if s.node not in downstream]
        nested = [s for s in self.active if s.node in downstream]
        rows, names = [], []
        for s in plain:
            slope = base.slope(s)
            if any(not is_negligible(x) for x in slope):
                rows.append(slope)
                names.append(s)
            elif s.kind == "condition" and any(not is_negligible(self.read(FAR_STEP, self.rng.uniform(-1, 1, self.count)).measure(s) / FAR_STEP)
                                               for _ in range(2)):
                self._mark_incomplete(f"a condition of {s.node.op.name} has no slope at the point, so that directions do not distinguish its sides")
        relations = null_space(rows)
        if nested:
            self._nested(nested, names, rows)
            if not self.found.complete:
                return
        for relation in relations:
            for _ in range(2):
                there = self.read(FAR_STEP, self.rng.uniform(-1, 1, self.count))
                total = sum((c * there.measure(s) for c, s in zip(relation, names)), zero)
                if not is_negligible(total, FAR_STEP):
                    self._mark_incomplete("the borders of the pieces are curved and touch each other, so that there may be pieces that no direction "
                                          "leads into")
                    return

    def _nested(self, nested: Sequence[Switch], plain: Sequence[Switch], rows: Sequence[np.ndarray]) -> None:
        """Check switches whose arguments depend on other kinks: all must be affine in their cells, or linearly independent of all others."""
        functions: list[tuple[np.ndarray, bool]] = [(row.astype(np.float64), self._is_affine(s, next(iter(self.cells.values()))))
                                                    for s, row in zip(plain, rows)]
        for cell in self.cells.values():
            for s in nested:
                slope = cell.evaluation.slope(s).astype(np.float64)
                if np.linalg.norm(slope) < 1e-18:
                    continue
                if not any(np.allclose(slope, other, rtol=1e-12, atol=1e-18) for other, _ in functions):
                    functions.append((slope, self._is_affine(s, cell)))
        if all(affine for _, affine in functions):
            return
        matrix = np.array([row / np.linalg.norm(row) for row, _ in functions])
        if np.linalg.matrix_rank(matrix, 1e-10) < len(functions):
            self._mark_incomplete("kinks of functions that are not affine are nested, and their borders may touch")

    def _is_affine(self, s: Switch, cell: _Cell) -> bool:
        t, u = FAR_STEP, [self.read(k * FAR_STEP, cell.direction).measure(s) for k in (1, 2, 3)]
        return is_negligible((u[0] - 2 * u[1] + u[2]) / t, self.scale)


def subdifferential(root: Node, leaves: Sequence[Leaf], branches: Sequence[Node] = (), rerun: Rerun | None = None, effort: float = 1.0,
                    seed: int = 0) -> Subdifferential:
    """The limiting gradients around the point at which a scalar computation was recorded.

    `branches` are the comparisons that a Python `if` evaluated, and `rerun(direction)` records the computation next to the point. At most 600 cells
    are evaluated, or fewer if the computation has many elements: `effort` is the factor of their number.
    Raises NotEvaluable for a computation that cannot be evaluated in many digits.
    """
    nodes = [n for n in upstream([root, *branches]) if not isinstance(n, (Leaf, DerivativeNode))]
    if any(type(n.value) is Batched for n in nodes):
        raise NotEvaluable("a part of the computation was batched by vmap, and its kinks are not examined; write the batch as an axis")
    size = sum(np.size(n.value) if hasattr(n.value, "shape") else 1 for n in nodes)
    if size > MAX_ELEMENTS:
        raise NotEvaluable(f"the computation has {size:,} elements; up to {MAX_ELEMENTS:,} are read again in many digits")
    with precise.working_precision(DIGITS), np.errstate(all="ignore"):
        most = max(2, min(MAX_CELLS, int(effort * WORK / max(size, 1))))
        return _Search(root, leaves, branches, rerun, most, seed).run([s for node in nodes for s in switches(node, CLOSE)])
