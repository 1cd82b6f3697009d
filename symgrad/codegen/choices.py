"""Derivatives behind a selection as choices: a product with a factor that is 0 where an element is not selected is not computed there.

The other factor may be infinite, as the slope of a root at 0, and eager derivatives are then 0. At the end of a region, as that of relu at 0, the
derivative of an op is a convention and no selection: the product is computed there, and is not finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import sympy

Equation = tuple[Any, Any]
DEEPEST = 2  # choices within each other; a further factor is compared with 0
STRICT = {sympy.Ge: sympy.Gt, sympy.Le: sympy.Lt}
OPPOSITE = {sympy.Gt: sympy.Lt, sympy.Lt: sympy.Gt}


def with_choices(equations: Sequence[Equation], value: Sequence[Any], used: Iterable[str]) -> list[Equation]:
    """Equations (symbol, formula) of derivatives, in which products that are 0 on a region are choices; those of the `value` stay as they are.

    Choices by ops' own rules are marked by `UnevaluatedExpr`. New symbols are not among the `used` names.
    """
    taken = {*used, *[symbol.name for symbol, _ in equations]}
    of_value = set().union(*[sympy.sympify(e).free_symbols for e in value])
    for symbol, e in reversed(equations):
        if symbol in of_value:
            of_value |= e.free_symbols
    choices = _Choices(name for name in (f"w{i}" for i in count(1)) if name not in taken)
    for symbol, e in equations:
        by_rule = isinstance(e, sympy.UnevaluatedExpr)
        e = e.args[0] if by_rule else e
        choices.finite.add(symbol, e)
        if symbol in of_value:
            choices.equations.append((symbol, e))
        else:
            choices.add(symbol, e, by_rule)
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


def _inside(condition: Any, holds: bool = True) -> Any:
    """Where a condition holds, or does not hold, also at all points near by."""
    if isinstance(condition, sympy.Not):
        return _inside(condition.args[0], not holds)
    if isinstance(condition, (sympy.And, sympy.Or)):
        return (sympy.And if isinstance(condition, sympy.And) == holds else sympy.Or)(*[_inside(part, holds) for part in condition.args])
    condition = condition if holds else sympy.Not(condition)
    return sympy.false if isinstance(condition, sympy.Eq) else STRICT[type(condition)](*condition.args) if type(condition) in STRICT else condition


def _where(condition: Any, holds: bool = True) -> Any:
    return condition if holds else sympy.Not(condition)


def _all(conditions: Iterable[Any]) -> Any:
    """The conjunction of conditions, without those that others imply; false if a comparison and its opposite are among them."""
    parts = sympy.And.make_args(sympy.And(*conditions))
    sides = [frozenset(part.args) if isinstance(part, (sympy.Lt, sympy.Gt)) else None for part in parts]
    strict = {part.canonical for part, pair in zip(parts, sides) if pair}
    if any(OPPOSITE[type(part)](*part.args) in strict for part in strict):
        return sympy.false
    return sympy.And(*[part for part in parts if not (isinstance(part, sympy.Ne) and frozenset(part.args) in sides)])


class _Choices:
    """Equations, and the definitions of the symbols that are 0 on a region, because an element is not selected there.

    Those of the `ends` are 0 at the end of a region, too, where the derivative of an op is a convention. Their product with what is finite is chosen
    all the same; with what may be infinite it is chosen inside the region only.
    """

    def __init__(self, fresh: Iterator[str]) -> None:
        self.equations: list[Equation] = []
        self.zeros: dict[Any, Any] = {}
        self.ends: dict[Any, tuple[Any, bool]] = {}  # what a symbol stands for, and whether it is a choice by a rule
        self.regions: dict[Any, Any] = {}
        self.elsewhere: dict[Any, Any] = {}  # what a symbol stands for outside of its region
        self.finite = Finite()
        self.fresh = fresh

    def add(self, symbol: Any, e: Any, by_rule: bool = False) -> None:
        """Add an equation; the branches of a choice get symbols of their own, with which what is computed from the choice is chosen in turn."""
        chosen = self.chosen(e, {})
        if isinstance(chosen, sympy.Piecewise) and self.vanishes(chosen):
            chosen = sympy.Piecewise(*[(self.named(value, symbol), condition) for value, condition in chosen.args], evaluate=False)
        self.define(symbol, chosen, e, by_rule)
        if e.is_Mul and self.is_steep(e):
            if isinstance(chosen, sympy.Piecewise):
                self.elsewhere[symbol] = chosen.args[1][0]
            elif (factor := e.args[-1]) in self.elsewhere:  # times a number
                self.elsewhere[symbol] = self.named(e.xreplace({factor: self.elsewhere[factor]}), symbol)

    def named(self, e: Any, like: Any) -> Any:
        """An expression that is a symbol or a number, with an equation for any other."""
        if e.is_Atom:
            return e
        symbol = sympy.Symbol(next(self.fresh), **like.assumptions0)
        self.finite.add(symbol, e)
        self.define(symbol, e, e)
        return symbol

    def define(self, symbol: Any, chosen: Any, e: Any, by_rule: bool = False) -> None:
        """Add the equation of an expression in the form in which it was chosen."""
        if self.vanishes(chosen):
            self.zeros[symbol] = chosen
            if by_rule or self.has_ends(e):
                self.ends[symbol] = e, by_rule
        self.equations.append((symbol, chosen))

    def has_ends(self, e: Any) -> bool:
        return not self.ends.keys().isdisjoint(e.free_symbols)

    def is_steep(self, e: Any) -> bool:
        """Whether a product with what is 0 at the end of a region may not be finite."""
        return self.has_ends(e) and not self.finite(e)

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

    def region(self, e: Any, by_rule: bool = False) -> Any:
        """The condition under which an expression is 0 by a selection."""
        if isinstance(e, sympy.Piecewise):
            out, where = sympy.false, _inside if by_rule else _where
            for value, condition in reversed(e.args):
                inner = self.region(value, by_rule)
                out = sympy.Or(sympy.And(where(condition), inner), sympy.And(where(condition, False), out))
            return out
        if e.is_Pow:
            return self.region(e.base, by_rule) if e.exp.is_positive else sympy.false
        if e.is_Mul or e.is_Add:
            parts = [self.region(part, by_rule) for part in e.args]
            return sympy.Or(*parts) if e.is_Mul else _all(parts)
        if e in self.ends:
            for symbol in [*self.ends][len(self.regions):] if e not in self.regions else ():  # in order, so that no recursion is deep
                self.regions[symbol] = self.computed_once(self.region(*self.ends[symbol]))
            return self.regions[e]
        return self.region(self.zeros[e]) if e in self.zeros else sympy.true if e == 0 else sympy.false

    def computed_once(self, condition: Any) -> Any:
        """A condition with an equation if it is long."""
        if not isinstance(condition, (sympy.And, sympy.Or)):
            return condition
        symbol = sympy.Symbol(next(self.fresh))
        self.equations.append((symbol, condition))
        return symbol

    def chosen(self, e: Any, branches: dict[tuple[Any, ...], int]) -> Any:
        """A product as a choice by its factors that are 0 on a region, where given branches of choices are taken already."""
        while taken := {s: self.zeros[s].args[k][0] for s in e.free_symbols if (k := branches.get(self.conditions(s))) is not None}:
            e = e.xreplace(taken)
        if isinstance(e, sympy.Piecewise):
            conditions = tuple([condition for _, condition in e.args])
            parts = [self.chosen(value, branches | {conditions: k}) for k, (value, _) in enumerate(e.args)]
            return sympy.Piecewise(*zip(parts, conditions), evaluate=False)
        factors = [factor.base if factor.is_Pow else factor for factor in e.args if self.vanishes(factor)] if e.is_Mul else []
        if self.is_steep(e):
            region = sympy.Or(*map(self.region, factors)) if sum(not factor.is_Number for factor in e.args) > 1 else sympy.false
            if region == sympy.false:
                return e
            e = e.xreplace({factor: self.elsewhere[factor] for factor in factors if factor in self.elsewhere})
            return sympy.Piecewise((0, region), (e, True), evaluate=False)
        for conditions in filter(None, map(self.conditions, factors if len(branches) < DEEPEST else ())):
            parts = [self.chosen(e, branches | {conditions: k}) for k in range(len(conditions))]
            return sympy.Piecewise(*zip(parts, conditions), evaluate=False)
        return sympy.Piecewise((0, sympy.Eq(factors[0], 0)), (e, True)) if factors else e


# Which equations have values that may be infinite, as far as their form tells, so that their product with 0 may be NaN
EVERYWHERE = (sympy.Add, sympy.Mul, sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asin, sympy.acos, sympy.atan,
              sympy.asinh, sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.floor, sympy.ceiling)


class Finite:
    """What is known of the symbols of equations, which are added in order.

    Arguments are finite, and nothing overflows.
    """

    def __init__(self) -> None:
        self.infinite: set[Any] = set()
        self.signs: dict[Any, int] = {}  # 1 for values above a positive number, 0 for others that are not negative

    def add(self, symbol: Any, e: Any) -> None:
        if not self(e):
            self.infinite.add(symbol)
        if (sign := self.sign(e)) is not None:
            self.signs[symbol] = sign

    def __call__(self, e: Any) -> bool:
        """Whether the values of an expression are finite."""
        if e.is_Atom:
            return e not in self.infinite and e.is_finite is not False
        if isinstance(e, sympy.Piecewise):
            return all(self(value) for value, _ in e.args)
        if e.is_Pow:
            return self(e.base) and bool(e.exp.is_number and e.exp.is_real) and (bool(e.exp.is_nonnegative) or self.sign(e.base) == 1)
        return isinstance(e, EVERYWHERE) and all(map(self, e.args))

    def sign(self, e: Any) -> int | None:
        """1 for an expression above a positive number, 0 for another one that is not negative, else None."""
        if e.is_Number:
            return int(bool(e > 0)) if e.is_finite and e.is_nonnegative else None
        if e.is_Pow and e.exp.is_number and e.exp.is_real:
            base = self.sign(e.base)
            return 0 if base is None and e.exp.is_even else base if e.exp.is_positive else base and 0
        if isinstance(e, (sympy.exp, sympy.Abs)):
            return 0
        if isinstance(e, sympy.cosh):
            return 1
        if isinstance(e, (sympy.Add, sympy.Mul, sympy.Max, sympy.Piecewise)):
            found = [self.sign(part[0] if isinstance(e, sympy.Piecewise) else part) for part in e.args]
            if isinstance(e, sympy.Max):
                return max((sign for sign in found if sign is not None), default=None)
            return None if None in found else (max if e.is_Add else min)(found)  # type: ignore[type-var]
        return self.signs.get(e)
