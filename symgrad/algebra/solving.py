"""Exact solutions of an equality: linear, polynomial, of inverse functions, sums of squares, and bounded functions at their extremes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
from sympy.simplify.fu import TR8

from symgrad.algebra.polynomials import FACTORED
from symgrad.algebra.simplification import FAILURES, expanded_terms

DEGREE, TERMS, NESTED = 12, 60, 8  # the largest degree and the most terms of a polynomial, and the depth of nested functions, that are solved
OPERATIONS = 60  # the most operations of a number whose sign is decided by SymPy
CONTINUOUS = (sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh, sympy.asin, sympy.acos, sympy.erf,
              sympy.Abs, sympy.Max, sympy.Min)
TURN = "k"  # the name of the integer symbol of a family
Solutions = list[dict[Any, Any]]


def solutions(condition: Any, inside: Mapping[Any, Any], families: bool = False) -> Solutions | None:
    """The solutions of an equality: expressions for one or more symbols, whose ranges are `inside`; None if they are unknown.

    With `families`, those of periodic functions have an integer symbol of their own, and roots without a formula are `CRootOf`.
    """
    try:
        found = _zeros(condition.lhs - condition.rhs, inside, families, NESTED)
    except FAILURES:
        return None
    return None if found is None else sorted((at for at in found if is_possible(at, inside)), key=lambda at: str(at)[::-1])


def common_solutions(equations: Sequence[Any]) -> Solutions | None:
    """The common zeros of several functions, of periodic ones in terms of an integer; None if they are unknown."""
    return _all_zero(list(equations), {}, True, NESTED)


def is_complex(s: Any) -> bool:
    """Whether a symbol stands for complex numbers: not for real ones, and not if nothing is known about it."""
    return bool(s.is_complex and not s.is_extended_real)


def is_continuous(u: Any) -> bool:
    """Whether an expression is certainly continuous where it has a value, which is an interval: it has one sign between two zeros.

    >>> x = sympy.Symbol("x", real=True)
    >>> is_continuous(sympy.exp(x) - x**2), is_continuous(1 / x), is_continuous(sympy.floor(x))
    (True, False, False)
    """
    poles = any(power.exp.is_negative is not False and power.exp.free_symbols | power.base.free_symbols for power in u.atoms(sympy.Pow))
    return not poles and all(isinstance(f, CONTINUOUS) for f in u.atoms(sympy.Function))


def _zeros(u: Any, inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    """The solutions of u = 0."""
    if u.is_zero is False or depth == 0 or not u.free_symbols:
        return [] if u.is_zero is False else None
    if max(expanded_terms(u)) > FACTORED:
        return None
    squares = _of_squares(u, inside, families, depth)
    if squares is not None:
        return squares
    u = sympy.together(u).as_numer_denom()[0]
    if not u.free_symbols:
        return [] if _sign(u) else None
    factors: Sequence[Any] = sympy.Mul.make_args(sympy.factor_terms(u))
    if u.is_polynomial(*u.free_symbols):
        if expanded_terms(u)[0] > TERMS or sympy.Poly(u, *u.free_symbols).total_degree() > DEGREE:
            return None
        try:
            factors = [f for f, _ in sympy.factor_list(u)[1]] if _degree_of_numbers(u) <= DEGREE else factors
        except FAILURES:
            factors = [u]
    parts = [_of_factor(f, inside, families, depth) for f in factors if f.free_symbols]
    return None if None in parts else list({str(at): at for part in parts for at in part or ()}.values())


def _degree_of_numbers(u: Any) -> int:
    """The highest exponent among the numbers in an expression, which are variables to a factorization: exp(100) is the 100th power of E."""
    return max((abs(x.exp.as_coeff_Mul()[0].p) for x in u.atoms(sympy.Pow, sympy.exp) if x.is_number and x.exp.as_coeff_Mul()[0].is_Rational),
               default=0)


def _of_factor(f: Any, inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    if f.is_zero is False:
        return []
    f = f.as_independent(*f.free_symbols, as_Add=False)[1]
    if f.is_Pow and f.exp.is_number:
        return _zeros(f.base, inside, families, depth - 1) if f.exp.is_positive else []
    symbols = sorted(f.free_symbols, key=lambda s: (
        s.name == TURN, bool(s.is_extended_nonnegative or s.is_extended_nonpositive or s in inside), str(s)))
    for s in symbols:
        slope = sympy.diff(f, s)
        if s.name != TURN and slope.is_zero is False and s not in slope.free_symbols:
            return [{s: sympy.expand(s - f / slope)}]
    if len(symbols) == 1 and f.is_polynomial(symbols[0]):
        return _roots(f, symbols[0], families)
    squares = _of_squares(f, inside, families, depth)
    if squares is not None:
        return squares
    return _of_function(TR8(f) if f.has(sympy.sin, sympy.cos) else f, inside, families, depth)


def _roots(f: Any, s: Any, families: bool) -> Solutions | None:
    """The roots of a polynomial with rational coefficients, or of degree 2: the real ones of a real symbol."""
    poly = sympy.Poly(f, s)
    if all(c.is_Rational for c in poly.all_coeffs()):
        found = list(dict.fromkeys(poly.all_roots() if is_complex(s) else sympy.real_roots(poly)))
        return None if not families and any(r.has(sympy.CRootOf) for r in found) else [{s: r} for r in found]
    if poly.degree() != 2 or poly.free_symbols - {s}:
        return None
    a, b, c = poly.all_coeffs()
    inside = sympy.expand(b**2 - 4 * a * c)
    sign = 1 if is_complex(s) else _sign(inside)
    if sign is None:
        return None
    return [] if sign < 0 else [{s: sympy.radsimp((-b + side * sympy.sqrt(inside)) / (2 * a))} for side in ((1, -1) if sign else (1,))]


def _sign(v: Any) -> int | None:
    """The sign of a real number, None if it is unknown."""
    if v.is_zero or v.is_positive or v.is_negative:
        return 0 if v.is_zero else 1 if v.is_positive else -1
    if sympy.count_ops(v) <= OPERATIONS and sympy.simplify(v) == 0:
        return 0
    number = v.evalf(30)
    return (1 if number > 0 else -1) if number.is_Float and abs(number) > sympy.Float(10) ** -20 else None


def _of_squares(f: Any, inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    """The solutions of f = 0 for a sum of nonnegative terms: all terms are 0."""
    terms = sympy.Add.make_args(f)
    if len(terms) < 2 or not (all(t.is_nonnegative for t in terms) or all(t.is_nonpositive for t in terms)):
        return None
    return _all_zero(list(terms), inside, families, depth)


def _all_zero(terms: list[Any], inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    """The common solutions of several equations, by inserting those of one into the others."""
    first, *rest = terms
    if not first.free_symbols:
        return None if _sign(first) is None else [] if _sign(first) else _all_zero(rest, inside, families, depth) if rest else [{}]
    found = _zeros(first, inside, families, depth - 1)
    if found is None or not rest:
        return found
    more = [_all_zero([t.xreplace(at) for t in rest], inside, families, depth) for at in found]
    return None if None in more else [
        {s: x.xreplace(other) for s, x in at.items()} | other for at, others in zip(found, more) for other in others or ()]


def _within(low: Any, high: Any, inverse: Callable[[Any], Sequence[Any]], closed: bool = True) -> Callable[[Any], list[Any] | None]:
    """The inverse of a function with values between two numbers."""
    def call(v: Any) -> list[Any] | None:
        sides = [1 if end is None else _sign(side * (v - end)) for end, side in ((low, 1), (high, -1))]
        return None if None in sides else [] if min(sides) < (0 if closed else 1) else list(inverse(v))  # type: ignore[type-var, operator]

    return call


ONCE: dict[Any, Callable[[Any], list[Any] | None]] = {
    sympy.exp: _within(0, None, lambda v: [sympy.log(v)], False), sympy.log: lambda v: [sympy.exp(v)],
    sympy.asin: _within(-sympy.pi / 2, sympy.pi / 2, lambda v: [sympy.sin(v)]), sympy.acos: _within(0, sympy.pi, lambda v: [sympy.cos(v)]),
    sympy.atan: _within(-sympy.pi / 2, sympy.pi / 2, lambda v: [sympy.tan(v)], False), sympy.sinh: lambda v: [sympy.asinh(v)],
    sympy.cosh: _within(1, None, lambda v: list(dict.fromkeys([sympy.acosh(v), -sympy.acosh(v)]))),
    sympy.tanh: _within(-1, 1, lambda v: [sympy.atanh(v)], False), sympy.asinh: lambda v: [sympy.sinh(v)],
    sympy.acosh: _within(0, None, lambda v: [sympy.cosh(v)]), sympy.atanh: lambda v: [sympy.tanh(v)],
    sympy.Abs: _within(0, None, lambda v: list(dict.fromkeys([v, -v]))), sympy.erf: _within(-1, 1, lambda v: [sympy.erfinv(v)], False),
}
PERIODIC: dict[Any, Any] = {
    sympy.sin: (lambda v: [sympy.asin(v), sympy.pi - sympy.asin(v)], 2 * sympy.pi),
    sympy.cos: (lambda v: [sympy.acos(v), -sympy.acos(v)], 2 * sympy.pi),
    sympy.tan: (lambda v: [sympy.atan(v)], sympy.pi),
}
COMPLEX: dict[Any, Any] = {
    sympy.exp: (lambda v: [sympy.log(v)] if v != 0 else [], 2 * sympy.pi * sympy.I), **PERIODIC,
    sympy.tan: (lambda v: [sympy.atan(v)] if v**2 != -1 else [], sympy.pi),
    sympy.sinh: (lambda v: [sympy.asinh(v), sympy.pi * sympy.I - sympy.asinh(v)], 2 * sympy.pi * sympy.I),
    sympy.cosh: (lambda v: [sympy.acosh(v), -sympy.acosh(v)], 2 * sympy.pi * sympy.I),
    sympy.tanh: (lambda v: [sympy.atanh(v)] if v**2 != 1 else [], sympy.pi * sympy.I),
}


def _of_function(f: Any, inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    """The solutions of f = 0 for a sum of a number and a multiple of a function, a polynomial in one, or a bounded sum at its extreme."""
    symbols = f.free_symbols
    c, rest = f.as_independent(*symbols, as_Add=True)
    if rest.is_Add:
        wave = _wave(c, rest)
        if wave is not None:
            return _of_function(wave, inside, families, depth)
        extremes = _extremes(c, rest)
        if extremes is not None:
            return _all_zero(extremes, inside, families, depth) if extremes else []
        poly, t = sympy.Poly(f), sympy.Dummy(real=True)  # in one function
        if len(poly.gens) != 1 or poly.gens[0].is_Symbol or poly.degree() > DEGREE:
            return None
        roots = _roots(sympy.Poly(poly.all_coeffs(), t).as_expr(), t, families)
        return None if roots is None else _union([poly.gens[0] - at[t] for at in roots], inside, families, depth)
    k, g = rest.as_independent(*symbols, as_Add=False)
    v = sympy.expand(-c / k)
    if isinstance(g, (sympy.Max, sympy.Min)):
        found, side = _union([u - v for u in g.args], inside, families, depth), 1 if isinstance(g, sympy.Max) else -1
        return found and [at for at in found if all((side * (u.xreplace(at) - v)).is_positive is not True for u in g.args)]
    values: list[Any] | None
    if g.is_Pow and g.exp.is_Rational:
        if any(map(is_complex, symbols)):
            return None
        values = _within(0, None, lambda v: [v ** (1 / g.exp)] if v != 0 or g.exp > 0 else [])(v) if g.exp.q > 1 or g.exp.p % 2 == 0 else None
        values = [sign * u for u in values for sign in ((1, -1) if g.exp.p % 2 == 0 and u != 0 else (1,))] if values is not None else None
    elif g.is_Pow and not g.base.free_symbols and g.base.is_positive:
        return _zeros(g.exp * sympy.log(g.base) - sympy.log(v), inside, families, depth - 1) if _sign(v) == 1 else [] if _sign(v) in (0, -1) else None
    elif any(map(is_complex, symbols)) and isinstance(g, sympy.log):
        turn = sympy.im(v) / sympy.pi
        values = ([sympy.exp(v)] if -1 < turn <= 1 else []) if turn.is_comparable else None
    elif any(map(is_complex, symbols)):
        principal, period = COMPLEX.get(type(g), (None, None))
        values = _family(principal(v), period) if principal and families else None
    elif type(g) in ONCE:
        values = ONCE[type(g)](v)
    elif type(g) in PERIODIC:
        principal, period = PERIODIC[type(g)]
        bounded = _within(-1, 1, principal)(v) if type(g) is not sympy.tan else principal(v)
        values = None if bounded is None or bounded and not families else _family(bounded, period)
    else:
        return None
    return None if values is None else _union([g.args[0] - u for u in values], inside, families, depth)


def _family(principal: Sequence[Any], period: Any) -> list[Any]:
    """Values plus all multiples of a period, those that differ by a multiple once."""
    return [u + period * sympy.Dummy(TURN, integer=True) for k, u in enumerate(principal)
            if not any(((u - other) / period).is_integer for other in principal[:k])]


def _union(equations: Sequence[Any], inside: Mapping[Any, Any], families: bool, depth: int) -> Solutions | None:
    parts = [_zeros(u, inside, families, depth - 1) for u in equations]
    return None if None in parts else [at for part in parts for at in part or ()]


def _wave(c: Any, rest: Any) -> Any:
    """c + a sin(u) + b cos(u) as a multiple of sin(u + v) + d; None for another sum."""
    (a, one), (b, other) = (term.as_independent(*rest.free_symbols, as_Add=False) for term in rest.args[:2])
    if isinstance(one, sympy.cos):
        (a, one), (b, other) = (b, other), (a, one)
    if len(rest.args) != 2 or not isinstance(one, sympy.sin) or not isinstance(other, sympy.cos) or one.args != other.args:
        return None
    shifted = sympy.sin(sympy.Dummy(real=True))
    return (c / sympy.sqrt(a**2 + b**2) + shifted).xreplace({shifted: sympy.sin(one.args[0] + sympy.atan2(b, a), evaluate=False)})


def _extremes(c: Any, rest: Any) -> list[Any] | None:
    """For c + Σ k sin(u) or cos(u): the equations sin(u) = ±1 if c is the sum of all |k|; [] if it is larger, None if it is smaller."""
    total, equations = sympy.S.Zero, []
    for term in rest.args:
        k, g = term.as_independent(*rest.free_symbols, as_Add=False)
        if not isinstance(g, (sympy.sin, sympy.cos)):
            return None
        total += sympy.Abs(k)
        equations.append(g + sympy.sign(k) * sympy.sign(c))
    sign = _sign(sympy.Abs(c) - total)
    return None if sign is None or sign < 0 else [] if sign else equations


def is_possible(at: Mapping[Any, Any], inside: Mapping[Any, Any]) -> bool:
    """Whether the numbers among the solutions lie in the ranges of their symbols."""
    for s, x in at.items():
        facts = (s.is_extended_positive, x.is_extended_nonpositive), (s.is_extended_negative, x.is_extended_nonnegative), (s.is_zero is False, x == 0)
        turns = sympy.expand(x / sympy.pi)
        fractional = x.is_integer is False or turns.is_rational and turns.is_zero is False  # a multiple of pi
        if any(a and b for a, b in facts) or s.is_integer and fractional or x.is_number and s in inside and float(x) not in inside[s]:
            return False
    return True
