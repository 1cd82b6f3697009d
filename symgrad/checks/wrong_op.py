"""What is wrong: the op whose rule is, found by comparing each op of a run alone with its formula, or the graph."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symgrad.checks.declared import declares_another_formula
from symgrad.checks.saturated import wrong_in_floats
from symgrad.engine.recording import core
from symgrad.factories.creation import tensor
from symgrad.frameworks.differentiation_task import DifferentiationTask, silence
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.exact import OracleComparison, agreement
from symgrad.reference.run import Run, flat
from symgrad.reference.sources import differences
from symgrad.reports.base import label
from symgrad.reports.report import Counterexample
from symgrad.sampling.points import Point, as_point
from symgrad.sampling.points import flat as vector_of

MAX_CALLS = 3  # of one op that are checked


def find_wrong_op(run: Run, order: int) -> tuple[str, int] | None:
    """The first op whose derivative differs from SymPy's, with exact numbers or in floats, and the order; None if all are right where called.

    Order 0 is for a Function whose declared formula has another value than its forward. An op that is right at order 1 and wrong at
    order 2 has a rule that calls another op, and that one is wrong.
    """
    for node in upstream([run.root]):
        if not isinstance(node, (Leaf, DerivativeNode)) and declares_another_formula(node):
            return str(node.op.name), 0
    for k in range(1, order + 1):
        seen: dict[Any, int] = {}
        for node in upstream([run.root]):
            if isinstance(node, (Leaf, DerivativeNode)):
                continue
            seen[node.op] = seen.get(node.op, 0) + 1
            if seen[node.op] <= MAX_CALLS and _is_wrong(node, k):
                return str(node.op.name), k
    return None


def _is_wrong(node: Node, order: int) -> bool:
    try:
        with silence():
            alone = _run_alone(node)
            exact = OracleComparison(alone, order, np.arange(1.0, 1 + sum(t.numel() for t in alone.leaves)), replay=True)
            culprit = agreement(exact)[1] or wrong_in_floats(flat(alone.leaves), alone, exact)
    except Exception:  # an op that cannot be checked alone is skipped
        return False
    return culprit is not None and culprit.order == order


def _run_alone(node: Node) -> Run:
    """A run of this op alone, with its float arguments as leaves."""
    args, count = node.args or (), len(node.parents)
    leaves: list[Any] = []
    operands: list[Any] = []
    for a, p in zip(args, node.parents):
        if p is not None and a.dtype.kind not in "biu":
            leaves.append(tensor(np.array(a), dtype=a.dtype, requires_grad=True))
            operands.append(leaves[-1])
        else:
            operands.append(tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a)
    y = core(node.op)(*((operands,) if node.op.arity is None else operands), *args[count:])
    weights = np.arange(1, y.numel() + 1, dtype=y.value.dtype).reshape(y.shape)
    return Run(leaves, (y * tensor(weights)).sum(), None)


def wrong_in_graph(problem: DifferentiationTask, point: Point, order: int) -> Counterexample | None:
    """A derivative of the graph of a function that difference quotients of the function do not confirm."""
    run = problem.run(point)
    with silence():
        for k in range(1, order + 1):
            claimed = run.derivatives(k)
            below = functools.partial(_derivatives_below, problem, k)
            quotients, bounds = differences(below, vector_of(point))
            wrong = np.argwhere(np.isfinite(bounds) & ~(abs(claimed - quotients) <= 4 * bounds + 1e-6 * abs(quotients)))
            if wrong.size:
                index = tuple(map(int, wrong[0]))
                return Counterexample({i.name: v for i, v in zip(problem.inputs, point)}, label(k, index, problem.names), float(claimed[index]),
                                      float(quotients[index]))
    return None


def _derivatives_below(problem: DifferentiationTask, order: int, vector: np.ndarray) -> Any:
    run = problem.run(as_point(problem.point, vector))
    return run.result.value if order == 1 else run.gradient()
