"""Formulas given as text or in SymPy, read as exact expressions of real symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.symbolic.texts import parse_formula

__all__ = ["expressions_of", "names_of"]


def names_of(formula: Any) -> tuple[str, ...] | None:
    """The names in a formula, in order for text and sorted for SymPy; None for a function."""
    if isinstance(formula, str):
        return parse_formula(formula)[1]
    if callable(formula) and not isinstance(formula, sympy.Basic):
        return None
    return tuple(sorted({str(s) for e in _flat_elements(formula)[0] for s in _number_atoms(e)}))


def _flat_elements(formula: Any) -> tuple[list[sympy.Expr], tuple[int, ...] | None]:
    """A formula's elements, and its shape where it is a Matrix, an Array or a list."""
    if isinstance(formula, str):
        return [parse_formula(formula)[0]], None
    if isinstance(formula, (sympy.MatrixBase, sympy.NDimArray)):
        shape = tuple(formula.shape)
        if isinstance(formula, sympy.MatrixBase) and 1 in shape:
            shape = (len(list(formula)),)
        return [sympy.sympify(e) for e in (formula if isinstance(formula, sympy.MatrixBase) else formula.reshape(len(formula)))], shape
    if isinstance(formula, (list, tuple)):
        parts = [_flat_elements(e)[0] for e in formula]
        return [e for part in parts for e in part], (len(formula),) if all(len(p) == 1 for p in parts) else (len(formula), len(parts[0]))
    if isinstance(formula, (int, float)) and not isinstance(formula, bool):
        return [symbolic.exact_number(formula)], None
    if isinstance(formula, sympy.Expr):
        return [formula], None
    raise TypeError(f"check: the formula is {formula!r} of type {type(formula).__name__}; expected text such as 'log(1 + exp(x))', "
                    f"a SymPy expression, or a symgrad function")


def _number_atoms(e: sympy.Expr) -> list[Any]:
    """The atoms of an expression that stand for numbers: symbols, and elements x[i]."""
    elements = e.atoms(sympy.Indexed, sympy.matrices.expressions.matexpr.MatrixElement)
    bases = {s for element in elements for s in element.free_symbols}
    return [*elements, *(s for s in e.free_symbols if s not in bases)]


def expressions_of(formula: Any, shapes: Mapping[str, tuple[int, ...]], fixed: Mapping[str, Any]) -> tuple[list[sympy.Expr], tuple[int, ...]]:
    """The elements of a formula over the element symbols of its arguments, with its shape.

    `shapes` are those of the arguments; those in `fixed` are numbers. A formula that names an array as a whole is applied to each of its
    elements, with broadcasting. Raises ValueError for a name that is no argument, and for arrays that do not fit.
    """
    flat, shape = _flat_elements(formula)
    known = {"_".join([name, *map(str, index)]): (name, index) for name, size in shapes.items() for index in np.ndindex(*size)}
    elements = {label: sympy.Symbol(label, real=True) for label in known}
    arrays: dict[str, Any] = {}
    replaced: dict[Any, Any] = {}
    for e in flat:
        for s in _number_atoms(e):
            label = re.sub(r"_+$", "", re.sub(r"[\[\](), ]+", "_", str(s)))
            if label in elements:
                replaced[s] = elements[label]
            elif label in fixed:
                replaced[s] = symbolic.exact_number(float(fixed[label]))
            elif str(s) in shapes:
                arrays[str(s)] = s
            else:
                raise _check_names(str(s), shapes, fixed)
    flat = [e.xreplace({f: sympy.Rational(f) for f in e.atoms(sympy.Float)}) for e in flat]
    if not arrays:
        return [e.xreplace(replaced) for e in flat], shape or ()
    if len(flat) > 1:
        raise ValueError(f"check: the formula has {len(flat)} elements and names the array {min(arrays)} as a whole; name its elements, "
                         f"as in {min(arrays)}[0]")
    try:
        common = np.broadcast_shapes(*(shapes[name] for name in arrays))
    except ValueError:
        raise ValueError("check: the formula joins arrays of the shapes " + ", ".join(f"{name} {list(shapes[name])}" for name in arrays)
                         + ", which do not broadcast") from None
    labels = {name: np.array(["_".join([name, *map(str, i)]) for i in np.ndindex(*shapes[name])], object) for name in arrays}
    places = {name: np.broadcast_to(labels[name].reshape(shapes[name]), common) for name in arrays}
    out = [flat[0].xreplace(replaced | {s: elements[str(places[name][index])] for name, s in arrays.items()}) for index in np.ndindex(*common)]
    return out, common


def _check_names(name: str, shapes: Mapping[str, Sequence[int]], fixed: Mapping[str, Any]) -> ValueError:
    arguments = ", ".join(name + (f" of shape {list(shape)}" if shape else "") for name, shape in shapes.items())
    also = f" and {', '.join(fixed)}" if fixed else ""
    return ValueError(f"check: the formula names {name}, but the arguments of the function are {arguments or 'none'}{also}; name these in the formula"
                      + (" (elements as x[0], or x as a whole)" if any(shapes.values()) else ""))
