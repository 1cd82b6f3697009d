"""Steps that raise for some values: a function that has computed one raises, or catches the error, also where it does not use the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from symgrad.program.program import Operand

__all__ = ["FAILING", "unused_failures"]

# Words of matrices that raise, each with what it needs of the matrix. Words that only derivatives use are not among them.
FAILING = {
    "matrix_inverse": "regular", "solve_system": "regular", "cholesky_factor": "positive",
    "hermitian_eigenvalues": "finite triangle", "hermitian_eigenvectors": "finite triangle", "ldl_factors": "finite triangle",
    "singular_values": "finite", "singular_vectors": "finite", "pseudo_inverse": "finite", "eigenvalues": "finite", "eigenvectors": "finite",
}
DIVIDING = ("remainder", "fmod", "floor_divide")
INDEXED = {"getitem": 1, "put": 2}  # words with an index, with the number of operands before those of the index


def _condition(e: Any) -> Any:
    """What must hold for a step not to raise, which is equal for steps that fail together; None for steps that never raise."""
    needed = FAILING.get(e.name)
    if needed is not None:
        x = e.operands[0]
        while x.name == "permute" and needed == "regular":  # a matrix is singular if its transpose is
            x = x.operands[0]
        return needed, x.number
    if e.name in INDEXED and len(e.operands) > INDEXED[e.name]:
        index = e.params[0]
        return "index", e.operands[0].shape, repr(_unnumbered(index)), *[o.number for o in e.operands[INDEXED[e.name]:]]
    if e.name in DIVIDING and e.dtype.kind in "biu" and not (e.operands[1].name == "constant" and np.all(e.operands[1].value)):
        return "divisor", e.operands[1].number
    return None


def _unnumbered(index: Any) -> Any:
    """An index with the same place for each operand, whose number depends on the word."""
    if type(index) in (tuple, list):
        return [_unnumbered(x) for x in index]
    return Operand(0) if type(index) is Operand else index


def unused_failures(entries: Iterable[Any], used: Iterable[Any]) -> list[Any]:
    """Entries that are not used and may raise where no used one does, one for each condition."""
    conditions = {e: c for e in entries if (c := _condition(e)) is not None}
    if not conditions:
        return []
    known = {conditions[e] for e in used if e in conditions}
    found: dict[Any, Any] = {}
    for e, condition in conditions.items():
        if condition not in known:
            found.setdefault(condition, e)
    return list(found.values())
