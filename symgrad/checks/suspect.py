"""The search for the op whose rule is wrong: each op of a computation is checked alone, at the arguments of its call."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.autograd.context import FunctionNode
from symgrad.autograd.formulas import declares_another
from symgrad.engine.recording import core
from symgrad.factories.creation import tensor
from symgrad.frameworks.differentiation_task import silence
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.exact import Exact, agreement
from symgrad.reference.run import Run

__all__ = ["find_wrong_op"]

MAX_CALLS = 3  # of one op that are checked


def find_wrong_op(run: Run, order: int) -> tuple[str, int] | None:
    """The first op whose derivative differs from SymPy's, and the order; None if every op is right where it was called.

    Order 0 is for a Function whose declared formula has another value than its forward. An op that is right at order 1 and wrong at
    order 2 has a rule that calls another op, and that one is wrong.
    """
    for node in upstream([run.root]):
        if isinstance(node, FunctionNode) and declares_another(node):
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
            _, culprit = agreement(Exact(alone, order, np.arange(1.0, 1 + sum(t.numel() for t in alone.leaves)), replay=True))
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
