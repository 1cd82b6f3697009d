"""Derivatives behind a selection as choices: a product with a factor that is 0 where an element is not selected is not computed there.

The other factor may be infinite, as the slope of a root at 0, and eager derivatives are then 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import sympy

__all__ = ["with_choices"]

Equation = tuple[Any, Any]
DEEPEST = 2  # choices within each other; a further factor is compared with 0


def with_choices(equations: Sequence[Equation], value: Sequence[Any], used: Iterable[str]) -> list[Equation]:
    """Equations (symbol, formula) of derivatives, in which products that are 0 on a region are choices; those of the `value` stay as they are.

    New symbols are not among the `used` names.
    """
    taken = {*used, *[symbol.name for symbol, _ in equations]}
    of_value = set().union(*[sympy.sympify(e).free_symbols for e in value])
    for symbol, e in reversed(equations):
        if symbol in of_value:
            of_value |= e.free_symbols
    choices = _Choices(name for name in (f"w{i}" for i in count(1)) if name not in taken)
    for symbol, e in equations:
        if symbol in of_value:
            choices.equations.append((symbol, e))
        else:
            choices.add(symbol, e)
    return choices.equations


def _values_on_regions(choice: Any) -> Iterator[Any]:
    """The values of a choice, without those at points alone, such as the limit at 0 of a quotient by x."""
    for value, condition in choice.args:
        if not _at_points(condition):
            yield value
        if _at_points(sympy.Not(condition)):  # where the others are
            return


def _at_points(condition: Any) -> bool:
    """Whether a condition is an equation, and holds on no region."""
    if isinstance(condition, (sympy.And, sympy.Or)):
        return (any if isinstance(condition, sympy.And) else all)(map(_at_points, condition.args))
    return condition == sympy.false or isinstance(condition, sympy.Eq)


class _Choices:
    """Equations, and the definitions of the symbols that are 0 on a region, because an element is not selected there."""

    def __init__(self, fresh: Iterator[str]) -> None:
        self.equations: list[Equation] = []
        self.zeros: dict[Any, Any] = {}
        self.fresh = fresh

    def add(self, symbol: Any, e: Any) -> None:
        """Add an equation; the branches of a choice get symbols of their own, with which what is computed from the choice is chosen in turn."""
        chosen = self.chosen(e, {})
        if isinstance(chosen, sympy.Piecewise) and self.vanishes(chosen):
            chosen = sympy.Piecewise(*[(self.named(value, symbol), condition) for value, condition in chosen.args], evaluate=False)
        if self.vanishes(chosen):
            self.zeros[symbol] = chosen
        self.equations.append((symbol, chosen))

    def named(self, e: Any, like: Any) -> Any:
        """An expression that is a symbol or a number, with an equation for any other."""
        if e.is_Atom:
            return e
        symbol = sympy.Symbol(next(self.fresh), **like.assumptions0)
        self.equations.append((symbol, e))
        if self.vanishes(e):
            self.zeros[symbol] = e
        return symbol

    def conditions(self, symbol: Any) -> tuple[Any, ...]:
        """The conditions of the choice that a symbol stands for; none if it stands for no choice."""
        found = self.zeros.get(symbol)
        return tuple([condition for _, condition in found.args]) if isinstance(found, sympy.Piecewise) else ()

    def vanishes(self, e: Any) -> bool:
        """Whether an expression is 0 on a region."""
        if isinstance(e, sympy.Piecewise):
            return any(value == 0 or self.vanishes(value) for value in _values_on_regions(e))
        if e.is_Pow:
            return bool(e.exp.is_positive) and self.vanishes(e.base)
        return e in self.zeros or e.is_Mul and any(map(self.vanishes, e.args)) or e.is_Add and all(map(self.vanishes, e.args))

    def chosen(self, e: Any, branches: dict[tuple[Any, ...], int]) -> Any:
        """A product as a choice by its factors that are 0 on a region, where given branches of choices are taken already."""
        while taken := {s: self.zeros[s].args[k][0] for s in e.free_symbols if (k := branches.get(self.conditions(s))) is not None}:
            e = e.xreplace(taken)
        if isinstance(e, sympy.Piecewise):
            conditions = tuple([condition for _, condition in e.args])
            parts = [self.chosen(value, branches | {conditions: k}) for k, (value, _) in enumerate(e.args)]
            return sympy.Piecewise(*zip(parts, conditions), evaluate=False)
        factors = [factor.base if factor.is_Pow else factor for factor in e.args if self.vanishes(factor)] if e.is_Mul else []
        for conditions in filter(None, map(self.conditions, factors if len(branches) < DEEPEST else ())):
            parts = [self.chosen(e, branches | {conditions: k}) for k in range(len(conditions))]
            return sympy.Piecewise(*zip(parts, conditions), evaluate=False)
        return sympy.Piecewise((0, sympy.Eq(factors[0], 0)), (e, True)) if factors else e
