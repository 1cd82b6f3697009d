"""A cache by signature of the analysis of recorded graphs: the sparsity pattern of the Hessian, and the steps that compute its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import HessianProgram, hessian_products
from symgrad.func.sparsity import plan_hessian
from symgrad.program.cache import programs
from symgrad.program.signature import has_signature, signature_of

__all__ = ["SignaturePlan", "Plans"]

RECORDING_USE = 2  # the use of a signature at which recording the steps pays off


class SignaturePlan:
    """The entry of one signature: the plan once it was needed, the number of uses, and the recorded program from the second use on."""

    def __init__(self) -> None:
        self.key: Any = None  # of the entry in the library's cache; None if it is not there
        self.plan: Any = None
        self.uses = 0
        self.program: Any = None

    def plan_for(self, ev: Evaluation, y: Tensor) -> Any:
        """The plan for the Hessian."""
        if self.plan is None or not self.plan.for_any_constants:
            self.plan = plan_hessian(y._node, ev.nodes)
        return self.plan

    def products(self, ev: Evaluation, y: Tensor, seeds: Callable[[], Any]) -> Any:
        """The products with vectors that are fixed for this signature: from the second use on by a recorded program, if that is small."""
        if self.plan is not None and not self.plan.for_any_constants:
            return hessian_products(ev, y, seeds(), None)
        self.uses += 1
        if self.program is None and self.uses == RECORDING_USE:
            found = seeds()
            self.program = HessianProgram(ev, y, found) if HessianProgram.fits(ev, y, len(found)) else False
            if self.program and self.key is not None:
                programs.put(self.key, self, self.program.nbytes)
        return self.program.run(ev) if self.program else hessian_products(ev, y, seeds(), None)


class Plans:
    """The entries of one function's graphs in the library's cache: neither the sparsity pattern nor the steps depend on the numbers in a graph."""

    def __init__(self) -> None:
        self._newest: tuple[Any, SignaturePlan] | None = None  # the entry that most calls use

    def of(self, ev: Evaluation, y: Tensor) -> SignaturePlan:
        """The entry for the signature of a graph."""
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
