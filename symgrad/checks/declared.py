"""Formulas that are declared for a function of one's own: they are claims, and are compared with the values that the function computes."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from symgrad.autograd.context import FunctionNode
from symgrad.autograd.formulas import moved, values_of_declared
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import wrap
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.run import Run
from symgrad.trees import flatten

HERE, *ELSEWHERE = (1.0, 0.0), (1.25, 0.125), (0.5, -0.25), (1.0, 0.0078125)  # factors and summands of arguments


def node_of_another_formula(run: Run) -> Any:
    """The node of a foreign function in a run whose declared formula has another value there and elsewhere, None if there is none.

    Where the two differ at the point alone, digits may be lost.
    """
    for node in upstream([run.root]):
        if not isinstance(node, (Leaf, DerivativeNode, FunctionNode)) and _differs_at(node, HERE) and any(_differs_at(node, m) for m in ELSEWHERE):
            return node
    return None


def declares_another_formula(node: Any) -> bool:
    """Whether a node is a call of a function whose declared formula has another value than its forward, at its arguments or at others."""
    return any(_differs_at(node, move) for move in (HERE, *ELSEWHERE))


def _differs_at(node: Any, move: tuple[float, float]) -> bool:
    """Whether a function and its formula differ in more than half of the digits; False where one of them is not defined."""
    with no_grad(), contextlib.suppress(Exception), np.errstate(all="ignore"):  # the user's function can raise anything outside its domain
        computed, declared = values_of_declared(node, *move) if isinstance(node, FunctionNode) else _values_of_foreign(node, *move)
        return any(np.all(np.isfinite(a)) and np.all(np.isfinite(b)) and not np.allclose(
            a, b, 0, np.finfo(a.dtype).eps ** 0.5 * np.max(np.abs(b), initial=0)) for a, b in zip(computed, declared))
    return False


def _values_of_foreign(node: Any, scale: float, shift: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What a foreign function computes at arguments that are moved, and its formula; nothing if it declares none."""
    call: Any = node.args[-1] if node.args else None
    formula = getattr(getattr(call, "owner", None), "formula", None)
    if formula is None:
        return [], []
    xs = [wrap(x) for x in moved(call.values[:len(call.places)], scale, shift)]
    declared = [y for i, y in enumerate(flatten(call.call_function(formula, xs))[0]) if i in call.output_places]
    return [y._value for y in call.evaluate(xs)], [y._value for y in declared]
