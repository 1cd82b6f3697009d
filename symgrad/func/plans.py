"""What was found out about a recorded graph, kept for the next one of the same form: where its Hessian has zeros, and how to compute the rest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.func.evaluation import Evaluation
from symgrad.func.second import Program, products
from symgrad.graph import Node
from symgrad.tensor import Tensor

__all__ = ["Known", "Plans"]

SECOND = 2  # the meeting from which it pays to write down the steps
KEPT = 8  # forms of graphs that are remembered: a function with control flow has several
SMALL = 4096  # bytes of an index that is compared by its elements


class Known:
    """What is known of the graphs of one form: a plan once it was asked for, how often one was met, and a program once that pays."""

    def __init__(self) -> None:
        self.plan: Any = None
        self.met = 0
        self.program: Any = None

    def planned(self, ev: Evaluation, y: Tensor) -> Any:
        """The plan for the Hessian."""
        if self.plan is None or not self.plan.general:
            from symgrad.func.sparsity import plan_hessian

            self.plan = plan_hessian(y._node, ev.nodes)
        return self.plan

    def products(self, ev: Evaluation, y: Tensor, seeds: Callable[[], Any]) -> Any:
        """The products with vectors that are the same for every graph of this form: from the second one on by a program, where it is small."""
        if self.plan is not None and not self.plan.general:
            return products(ev, y, seeds(), None)
        self.met += 1
        if self.program is None and self.met == SECOND:
            found = seeds()
            self.program = Program(ev, y, found) if Program.fits(ev, y, len(found)) else False
        return self.program.run(ev) if self.program else products(ev, y, seeds(), None)


class Plans:
    """What is known of the graphs of one function, by their forms: neither the pattern of zeros nor the steps depend on the numbers in a graph."""

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Known] = OrderedDict()

    def of(self, ev: Evaluation, y: Tensor) -> Known:
        """What is known of a graph of this form."""
        form = _form(ev, y)
        if form is None:
            return Known()
        known = self._known.get(form)
        if known is None:
            known = self._known[form] = Known()
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known


PLAIN = (int, float, bool, str, type(None))


def _form(ev: Evaluation, y: Tensor) -> Any:
    """The graph without its numbers: the ops, their parameters, what is wired to what, and all shapes; None where a parameter cannot be compared."""
    at: dict[Node | None, int] = {node: -1 - i for i, node in enumerate(ev.nodes)}
    out: list[Any] = [x._value.shape for x in ev.inputs]
    note = out.append
    try:
        for i, node in enumerate(ev.path):
            at[node] = i
            parents, args = node.parents, node.args
            note(node.op)
            note(node.value.shape)
            for p, a in zip(parents, args):  # type: ignore[arg-type]
                note(at[p] if p in at else _constant(a))
            for a in args[len(parents):]:  # type: ignore[index]
                note((type(a), a) if type(a) in PLAIN else _key(a))
        note(at.get(y._node))
        form = tuple(out)
        hash(form)
    except (TypeError, AttributeError):
        return None
    return form


def _constant(x: Any) -> Any:
    """What the form says of a constant: the shape and dtype of an array, and a number itself."""
    return (x.shape, x.dtype) if hasattr(x, "shape") else (type(x), x)


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
