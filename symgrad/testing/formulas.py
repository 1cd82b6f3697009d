"""What a claimed formula says about itself: the names in it, and whether it is one of single numbers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

__all__ = ["is_function", "is_scalar", "names_in"]


def is_function(formula: Any) -> bool:
    """Whether a formula is a Python function and neither text nor SymPy's."""
    if isinstance(formula, str) or not callable(formula):
        return False
    import sympy

    return not isinstance(formula, (sympy.Basic, sympy.MatrixBase))


def names_in(formula: Any) -> list[str] | None:
    """The names of a formula's arguments, None if it is not given."""
    if formula is None:
        return None
    if is_function(formula):
        names = [p.name for p in inspect.signature(formula).parameters.values() if p.default is p.empty]
        return names[1:] if names[:1] == ["xp"] else names
    import sympy

    from symgrad.checking.foreign.reading import names_of

    if isinstance(formula, sympy.Lambda):
        return [str(s) for s in formula.signature]
    return list(names_of(formula) or ())


def is_scalar(formula: Any, names: Sequence[str]) -> bool:
    """Whether a formula takes numbers to a number: text or SymPy that names the arguments and none of their elements."""
    if is_function(formula):
        return False
    import sympy

    if isinstance(formula, sympy.Lambda):
        return True
    return not isinstance(formula, (list, tuple, sympy.MatrixBase, sympy.NDimArray)) and set(names_in(formula) or ()) <= set(names)
