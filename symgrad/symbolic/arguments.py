"""The arguments of `op_from_sympy`: a formula in one of three forms, its symbols, and their domains."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.factories.creation import tensor
from symgrad.formulas.expressions import expr as expression
from symgrad.formulas.parsing import parse
from symgrad.sampling.domain_reader import domains_of
from symgrad.types.domains import NEGATIVE, NONNEGATIVE, NONZERO, POSITIVE, REAL, Domain

__all__ = ["domains_given", "read_formula"]


def read_formula(name: str, formula: Any, arguments: Sequence[Any] | None) -> tuple[Any, tuple[Any, ...]]:
    """A formula as a SymPy expression without floats, and its symbols in the order of the arguments.

    Raises TypeError for an object that is no formula of real numbers, ValueError if symbols and arguments do not fit.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"an op is named by an identifier such as 'softsign', not by {name!r}")
    if isinstance(formula, str):
        read = parse(formula)
        leaves = {n: tensor(0.75, symbol=n) for n in read.names}
        formula = expression(read(**leaves)) if leaves else sympy.Integer(0)
        arguments = read.names if arguments is None else arguments
    elif callable(formula) and not isinstance(formula, sympy.Basic):
        formula, arguments = _called(name, formula, arguments)
    if not isinstance(formula, (sympy.Expr, int, float)) or isinstance(formula, bool):
        raise TypeError(f"{name}: a formula is a SymPy expression, a function of symbols or text, not {type(formula).__name__}")
    formula = sympy.sympify(formula)
    if isinstance(formula, sympy.MatrixExpr) or formula.has(sympy.I) or not formula.is_commutative:
        raise TypeError(f"{name}: a formula is an expression of real numbers, not {formula}; for matrices declare the op with symgrad.primitive")
    free = sorted(formula.free_symbols, key=lambda s: s.name)
    symbols = tuple(free) if arguments is None else tuple(_symbols(name, arguments, free))
    if not symbols:
        raise ValueError(f"{name}: {formula} has no argument; a formula depends on at least one symbol")
    missing = [s for s in free if s not in symbols]
    if missing:
        raise ValueError(f"{name}: {', '.join(map(str, missing))} in the formula is not among the arguments "
                         f"({', '.join(map(str, symbols))}); list every symbol, or put numbers in their place with subs")
    if len({s.name for s in symbols}) < len(symbols):
        raise ValueError(f"{name}: two arguments have one name: {', '.join(map(str, symbols))}")
    # A decimal is exact: 0.1 is 1/10, whose nearest float is in the code.
    return formula.replace(lambda e: e.is_Float, lambda e: sympy.Rational(repr(float(e)))), symbols


def _called(name: str, function: Callable[..., Any], arguments: Sequence[Any] | None) -> tuple[Any, tuple[Any, ...]]:
    """The formula that a Python function of symbols returns."""
    if arguments is None:
        arguments = tuple(p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD)
    symbols = tuple(s if isinstance(s, sympy.Symbol) else sympy.Symbol(s, real=True) for s in arguments)
    return function(*symbols), symbols


def _symbols(name: str, arguments: Sequence[Any], free: Sequence[Any]) -> list[Any]:
    if isinstance(arguments, (str, sympy.Symbol)):
        arguments = (arguments,)
    by_name = {s.name: s for s in free}
    out = []
    for a in arguments:
        if not isinstance(a, (str, sympy.Symbol)):
            raise TypeError(f"{name}: an argument is a symbol or its name, not {a!r}")
        out.append(by_name.get(a, sympy.Symbol(a, real=True)) if isinstance(a, str) else a)
    return out


def domains_given(name: str, symbols: Sequence[Any], domain: Any) -> tuple[Domain, ...]:
    """One domain for each symbol: the given one, or that of its assumptions. Raises TypeError and ValueError for invalid domains."""
    several = isinstance(domain, (tuple, list)) and any(isinstance(x, (Domain, sympy.Set, tuple, list, str)) for x in domain)
    if several and (len(symbols) > 1 or len(domain) == 1):  # of one argument, a list of pairs is a union
        if len(domain) != len(symbols):
            raise ValueError(f"{name}: {len(domain)} domains are given for {len(symbols)} arguments")
        domain = {s.name: d for s, d in zip(symbols, domain)}
    try:
        return tuple(domains_of(domain, [s.name for s in symbols], [_assumed(s) for s in symbols]).values())
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _assumed(symbol: Any) -> Domain:
    for word, domain in (("positive", POSITIVE), ("negative", NEGATIVE), ("nonnegative", NONNEGATIVE), ("nonzero", NONZERO)):
        if getattr(symbol, f"is_{word}"):
            return domain
    return REAL
