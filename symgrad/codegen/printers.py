"""Formulas as LaTeX: `to_latex`, through SymPy's printer; long ones as small equations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import sympy

from symgrad.codegen.equations import EquationResult, Equations, equations_of
from symgrad.codegen.pictures import argument_names, latex_of_program, recorded
from symgrad.trees import LEAF

__all__ = ["to_latex"]


def to_latex(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None,
             names: Sequence[str] | None = None) -> str:
    r"""The formula of a function, a Tensor or a SymPy expression in LaTeX.

    `fn`, `shapes`, `at` and `domain` are as in `to_sympy`. A single short formula is written by itself; with `derivatives` (1 for the
    gradient, 2 for the Hessian, too), for several results and for long formulas there are `aligned` equations, in which long parts have
    names. `name` is the name of the function in them.

    A program that `symgrad.compile` has recorded, and a compiled function, are written with one equation per step; `names` are those of the inputs.

    Raises what `to_sympy` raises, and ValueError for derivatives of a value that is no single number and for unsuitable names.

    >>> print(to_latex(lambda x: (x / 2).tanh()))
    \tanh{\left(\frac{x}{2} \right)}
    >>> print(to_latex(lambda x, y: x.sin() * y, derivatives=1))
    \begin{aligned}
    f &= y \sin{\left(x \right)} \\
    \frac{\partial f}{\partial x} &= y \cos{\left(x \right)} \\
    \frac{\partial f}{\partial y} &= \sin{\left(x \right)}
    \end{aligned}
    """
    title = sympy.latex(sympy.Symbol(name or "f"))
    program = recorded(fn, names, shapes, symbols, at, domain, derivatives)
    if program is not None:
        return latex_of_program(program, title, argument_names(program, names, frozenset()))
    found = equations_of(fn, shapes, symbols, at, domain, derivatives)
    flat = found.flat
    results = found.valid(found.results if flat is None else flat)
    if flat is not None and found.form is LEAF:
        return str(sympy.latex(_as_array(results[0])))
    equations = [(sympy.latex(symbol), e) for symbol, e in found.equations] if flat is None else []
    for label, result in zip(_labels(found, title, derivatives), results):
        equations.append((label, _as_array(result)))
    rows = [rf"{label} &= {sympy.latex(e)}" for label, e in equations]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _as_array(result: EquationResult) -> Any:
    if not result.shape:
        return result.elements[0]
    array = sympy.ImmutableDenseNDimArray(result.elements, result.shape)
    return sympy.Matrix(result.elements) if len(result.shape) == 1 else array.tomatrix() if len(result.shape) == 2 else array


def _labels(found: Equations, title: str, derivatives: int) -> list[str]:
    if not derivatives:
        return [title] if len(found.results) == 1 else [f"{title}_{{{i}}}" for i, _ in zip(count(1), found.results)]
    by = [sympy.latex(sympy.Symbol(p.name)) for p in found.parameters]
    first = [rf"\frac{{\partial {title}}}{{\partial {x}}}" for x in by]
    second = [rf"\frac{{\partial^{{2}} {title}}}{{\partial {x}" + ("^{2}}" if x == y else rf" \partial {y}}}") for x in by for y in by]
    return [title, *first, *second[:len(second) * (derivatives > 1)]]
