"""Solutions of an equality, as substitutions of expressions for symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from symgrad.algebra.deciding import FAILURES
from symgrad.algebra.limits import OutOfTime, limited

__all__ = ["solutions"]

SECONDS = 1.0  # for one condition


def solutions(condition: Any, inside: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    """The solutions of an equality: expressions for one or more symbols, whose ranges are `inside`; None if they are unknown.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> solutions(sympy.Eq(x**2, 4 * y**2), {}), solutions(sympy.Eq(x**2 + 1, x), {}), solutions(sympy.Eq(x**3 + x, 3), {})
    ([{x: 2*y}, {x: -2*y}], [], None)
    """
    u = condition.lhs - condition.rhs
    if u.is_zero is False:
        return []
    try:
        with limited(SECONDS):
            u = sympy.together(u).as_numer_denom()[0]
            factors = [f for f, _ in sympy.factor_list(u)[1]] if u.is_polynomial(*u.free_symbols) else [u]
            found = [_of_factor(f, inside) for f in factors]
    except (OutOfTime, *FAILURES):
        return None
    if None in found:
        return None
    return sorted((at for part in found for at in part if _possible(at, inside)), key=lambda at: str(at)[::-1])  # type: ignore[union-attr]


def _of_factor(f: Any, inside: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    if f.is_zero is False:
        return []
    f = f.as_independent(*f.free_symbols, as_Add=False)[1]
    f = f.base if f.is_Pow and f.exp.is_positive else f
    symbols = sorted(f.free_symbols, key=lambda s: (_is_bounded(s, inside), str(s)))
    for s in symbols:
        slope = sympy.diff(f, s)
        if slope.is_number and slope.is_nonzero:
            return [{s: sympy.expand(s - f / slope)}]
    if len(symbols) == 1:
        [s] = symbols
        if f.is_polynomial(s):
            roots = sympy.real_roots(sympy.Poly(f, s))
            return None if any(r.has(sympy.CRootOf) for r in roots) else [{s: r} for r in dict.fromkeys(roots)]
        found = sympy.solveset(f, s, sympy.S.Reals)
        return [{s: r} for r in found] if isinstance(found, sympy.FiniteSet) or found is sympy.S.EmptySet else None
    return _of_squares(f, symbols)


def _of_squares(f: Any, symbols: Sequence[Any]) -> list[dict[Any, Any]] | None:
    """The solutions of f = 0 for a sum of nonnegative terms: all terms are 0."""
    terms = [t.as_independent(*symbols)[1] for t in sympy.Add.make_args(f)]
    if len(terms) < 2 or not all(t.is_nonnegative for t in sympy.Add.make_args(f)):
        return None
    return list(sympy.solve([t.base if t.is_Pow and t.exp.is_positive else t for t in terms], symbols, dict=True))


def _is_bounded(s: Any, inside: Mapping[Any, Any]) -> bool:
    return s.is_extended_nonnegative or s.is_extended_nonpositive or s in inside


def _possible(at: Mapping[Any, Any], inside: Mapping[Any, Any]) -> bool:
    """Whether the numbers among the solutions lie in the ranges of their symbols."""
    for s, x in at.items():
        facts = (s.is_extended_positive, x.is_extended_nonpositive), (s.is_extended_negative, x.is_extended_nonnegative), (s.is_zero is False, x == 0)
        if any(a and b for a, b in facts) or x.is_number and s in inside and float(x) not in inside[s]:
            return False
    return True
