"""Formulas from text as exact expressions of SymPy. Text is parsed with a whitelist and never evaluated."""

from __future__ import annotations

from typing import Any

import sympy

from symgrad.carriers import symbolic
from symgrad.carriers.sizes import check_number, tree_size
from symgrad.factories.creation import tensor
from symgrad.formulas.parsing import ParsedFormula, ParseError, parse
from symgrad.formulas.programs import Instruction, NamedNumber, apply_step, functions
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.system.limits import COMPARED, NODES, PIECES, within

__all__ = ["CONSTANTS", "parse_formula"]

CONSTANTS = {"pi": sympy.pi, "e": sympy.E}
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError)  # of rules that have no exact value for such arguments


def parse_formula(text: str, decimals: bool = False) -> tuple[sympy.Expr, tuple[str, ...]]:
    """A formula from text: its exact expression over real symbols, and the names in it in order; x[0] is the element x_0.

    Numbers are the floats they are in code, or with `decimals` the decimals they are written as; pi and e are exact. Raises ParseError, which
    shows the place, also for numbers and powers that SymPy would write out with too many digits.

    >>> parse_formula("log(1 + exp(-y*x))/2")
    (log(1 + exp(-x*y))/2, ('y', 'x'))
    >>> parse_formula("x[0]**2 + pi*x[1]")
    (x_0**2 + pi*x_1, ('x_0', 'x_1'))
    >>> parse_formula("x**0.1", decimals=True)
    (x**(1/10), ('x',))
    """
    formula = parse(text)
    _check_by_floats(formula)
    known, sizes = functions(), dict[sympy.Basic, int]()
    recorder = RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, True))

    def box(e: Any) -> Box:
        return Box(recorder, symbolic.ExactExpressions.fill([e], ()))

    def number(x: float) -> Box:
        return box(CONSTANTS[x.name] if isinstance(x, NamedNumber) else sympy.Rational(repr(x)) if decimals else symbolic.exact_number(x))

    def apply(step: Instruction, operands: list[Any]) -> Any:
        try:
            for x in operands if step.kind == "call" and step.value != "where" else ():
                within(_pieces(x.value.item(), sizes), PIECES, "an argument with cases has {} parts")
            out = apply_step(step, operands, recorder, known)
            e = check_number(sympy.sympify(out.value.item()))
            if step.kind == "call":
                within(len(e.args) if isinstance(e, (sympy.Max, sympy.Min)) else 0, COMPARED, "a maximum or minimum has {} arguments")
            within(tree_size(e, sizes), NODES, "written out, the formula has {} parts")
        except RecursionError:
            raise ParseError("this formula is nested too deeply for SymPy", text, step.at) from None
        except FAILURES as error:
            raise ParseError(f"there is no exact formula here: {error}", text, step.at) from None
        return out

    e = sympy.sympify(formula.evaluate_with(number, {name: box(sympy.Symbol(name, real=True)) for name in formula.names}, apply).value.item())
    if not isinstance(e, sympy.Expr):
        raise ParseError("this is a comparison, not a number; write where(a < b, 1, 0)", text, 0)
    return e, formula.names


def _pieces(e: Any, sizes: dict[sympy.Basic, int]) -> int:
    """The parts of an expression that distinguishes cases, 0 of another one."""
    return tree_size(e, sizes) if isinstance(e, sympy.Basic) and e.has(sympy.Piecewise, sympy.Mod, sympy.floor, sympy.ceiling) else 0


def _check_by_floats(formula: ParsedFormula) -> None:
    """Compute the formula once with floats: constants that are not finite, and powers of them that would not end, are refused there."""
    formula(**{name: tensor(1.0) for name in formula.names})
