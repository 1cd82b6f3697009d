"""A cache by signature of the analysis of recorded graphs: the sparsity pattern of the Hessian, and the steps that compute its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import HessianProgram, hessian_products
from symgrad.func.sparsity import plan_hessian
from symgrad.graph.modes import thread
from symgrad.program import passes
from symgrad.program.cache import has_signature, programs, signature_of

__all__ = ["SignaturePlan", "Plans"]



class SignaturePlan:
    """The entry of one signature: the plan once it was needed, the number of uses, and the recorded program from some use on."""

    def __init__(self, recordable: bool = True) -> None:
        self.recordable = recordable
        self.key: Any = None  # of the entry in the library's cache; None if it is not there
        self.plan: Any = None
        self._uses: dict[int, int] = {}  # by the number of vectors, for a matrix is computed row by row or by its plan
        self._programs: dict[int, Any] = {}  # False for a graph that cannot be recorded

    def plan_for(self, ev: Evaluation, y: Tensor) -> Any:
        """The plan for the Hessian."""
        if self.plan is None or not self.plan.for_any_constants:
            self.plan = plan_hessian(y._node, ev.nodes)
        return self.plan

    def products(self, ev: Evaluation, y: Tensor, count: int, seeds: Callable[[], Any]) -> Any:
        """The products with `count` vectors that are fixed for this signature: from some use on by a recorded program, if that is small."""
        if self.plan is not None and not self.plan.for_any_constants:
            return hessian_products(ev, y, seeds(), None)
        program = self._programs.get(count)
        if program is None and self.recordable:
            self._uses[count] = uses = self._uses.get(count, 0) + 1
            if uses >= passes.RECORDING_USE:
                fits = HessianProgram.fits(ev, y, count)
                program = self._programs[count] = fits and passes.made(lambda: HessianProgram(ev, y, seeds())) or False
                if program and self.key is not None:
                    programs.put(self.key, self, sum([each.nbytes for each in self._programs.values() if each]))
        return program.run(ev) if program else hessian_products(ev, y, seeds(), None)


class Plans:
    """The entries of one function's graphs in the library's cache: neither the sparsity pattern nor the steps depend on the numbers in a graph."""

    def __init__(self) -> None:
        self._newest: tuple[Any, SignaturePlan] | None = None  # the entry that most calls use

    def of(self, ev: Evaluation, y: Tensor) -> SignaturePlan:
        """The entry for the signature of a graph."""
        if thread.modes.program is not None:  # its values are recorded, and this pass is a part of a larger program
            return SignaturePlan(recordable=False)
        newest = self._newest
        if newest is not None and has_signature(newest[0], ev.nodes, ev.path, y._node):
            return newest[1]
        form = signature_of(ev.nodes, ev.path, y._node)
        if form is None:
            return SignaturePlan()
        key = SignaturePlan, form
        entry = programs.get(key)
        if entry is None:
            entry = programs.put(key, SignaturePlan())
            entry.key = key
        self._newest = form, entry
        return entry
