"""The arguments of a claimed formula: their names, and whether the formula is one of single numbers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import sympy

from symgrad.checks.cross_reading import names_of
from symgrad.formulas.parsing import parse

__all__ = ["is_function", "is_scalar", "names_in"]

def is_function(formula: Any) -> bool:
    """Whether a formula is a Python function, not text or a SymPy object."""
    if inspect.isroutine(formula):
        return True
    if isinstance(formula, str) or not callable(formula):
        return False
    return not isinstance(formula, (sympy.Basic, sympy.MatrixBase))


def names_in(formula: Any) -> list[str] | None:
    """The names of a formula's arguments, in order for text and functions and sorted for SymPy; None for no formula.

    Raises ParseError for text that is no formula.
    """
    if formula is None:
        return None
    if isinstance(formula, str):
        return list(parse(formula).names)
    if is_function(formula):
        names = [p.name for p in inspect.signature(formula).parameters.values() if p.default is p.empty]
        return names[1:] if names[:1] == ["xp"] else names
    if isinstance(formula, sympy.Lambda):
        return [str(s) for s in formula.signature]
    return list(names_of(formula) or ())


def is_scalar(formula: Any, names: Sequence[str]) -> bool:
    """Whether a formula maps numbers to a number: text or SymPy that names the arguments and none of their elements."""
    if is_function(formula):
        return False
    if isinstance(formula, str):
        return set(names_in(formula) or ()) <= set(names)
    if isinstance(formula, sympy.Lambda):
        return True
    return not isinstance(formula, (list, tuple, sympy.MatrixBase, sympy.NDimArray)) and set(names_in(formula) or ()) <= set(names)
