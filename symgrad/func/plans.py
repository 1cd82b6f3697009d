"""What was found out about a recorded graph, kept for the next one of the same form: where its Hessian has zeros, and how to compute the rest."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from symgrad.func.evaluation import Evaluation
from symgrad.graph import Node
from symgrad.tensor import Tensor

__all__ = ["Plans"]

KEPT = 8  # forms of graphs that are remembered: a function with control flow has several
SMALL = 4096  # bytes of an index that is compared by its elements


class Plans:
    """The plans of one function. The pattern of zeros depends on the form of the graph alone, not on the numbers in it, so it is found once."""

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Any] = OrderedDict()

    def of(self, ev: Evaluation, y: Tensor) -> Any:
        """The plan for the Hessian of an output."""
        from symgrad.func.sparsity import plan_hessian

        form = _form(ev, y)
        plan = self._known.get(form) if form is not None else None
        if plan is None:
            plan = plan_hessian(y._node, ev.nodes)
            if form is not None and plan.general:
                self._known[form] = plan
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)
        return plan


def _form(ev: Evaluation, y: Tensor) -> Any:
    """The graph without its numbers: the ops, their parameters, what is wired to what, and all shapes; None where a parameter cannot be compared."""
    at: dict[Node | None, int] = {node: -1 - i for i, node in enumerate(ev.nodes)}
    out: list[Any] = [x._value.shape for x in ev.inputs]
    try:
        for i, node in enumerate(ev.path):
            at[node] = i
            parents, args = node.parents, node.args
            out += (type(node), node.op, tuple([at.get(p) if p in at else getattr(a, "shape", None) for p, a in zip(parents, args)]),  # type: ignore[arg-type]
                    tuple([_key(a) for a in args[len(parents):]]), node.value.shape)  # type: ignore[index]
        form = (*out, at.get(y._node))
        hash(form)
    except (TypeError, AttributeError):
        return None
    return form


def _key(x: Any) -> Any:
    """A parameter as something that can be compared and hashed."""
    kind = type(x)
    if kind is slice:
        return slice, x.start, x.stop, x.step
    if kind is tuple or kind is list:
        return (kind, *map(_key, x))
    if kind is np.ndarray:
        if x.nbytes > SMALL:
            raise TypeError("too large to compare")
        return x.shape, x.dtype, x.tobytes()
    return kind, x
