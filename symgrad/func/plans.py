"""What was found out about a recorded graph, kept for the next one of the same form: where its Hessian has zeros, and how to compute the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import HessianProgram, products
from symgrad.program.cache import Cache
from symgrad.program.signature import form_of, has_form

__all__ = ["Known", "Plans"]

SECOND = 2  # the meeting from which it pays to write down the steps
KEPT = 8  # forms of graphs that are remembered for one function: one with control flow has several


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
            self.program = HessianProgram(ev, y, found) if HessianProgram.fits(ev, y, len(found)) else False
        return self.program.run(ev) if self.program else products(ev, y, seeds(), None)


class Plans:
    """What is known of the graphs of one function, by their forms: neither the pattern of zeros nor the steps depend on the numbers in a graph."""

    def __init__(self) -> None:
        self._known = Cache(KEPT)
        self._newest: tuple[Any, Known] | None = None  # which most calls ask for again

    def of(self, ev: Evaluation, y: Tensor) -> Known:
        """What is known of a graph of this form."""
        newest = self._newest
        if newest is not None and has_form(newest[0], ev.nodes, ev.path, y._node):
            return newest[1]
        form = form_of(ev.nodes, ev.path, y._node)
        if form is None:
            return Known()
        known = self._known.get(form)
        if known is None:
            known = self._known.put(form, Known())
        self._newest = form, known
        return known
