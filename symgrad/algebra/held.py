"""Derivatives, integrals, sums, products and limits in expressions, each replaced by a closed form where that is confirmed.

SymPy's `doit` is not taken as the truth: an antiderivative is differentiated again and must be continuous between the ends, and the closed form of
a sum must change by its next term. What is not confirmed stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from sympy.integrals.manualintegrate import manualintegrate

from symgrad.algebra.effort import Effort
from symgrad.algebra.ranges import Range
from symgrad.algebra.simplification import FAILURES
from symgrad.algebra.solving import is_continuous, solutions
from symgrad.algebra.zero_test import JUMPS, is_regular, vanishes
from symgrad.sampling.conditions import switching_functions
from symgrad.sampling.domain_reader import Piece

HELD = (sympy.Derivative, sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Subs)
OPERATIONS, SUMMED = 30, 20  # the most operations of an integrand and of a term for which SymPy is asked for a closed form
WORK = 20_000  # term pairs for the confirmation of a closed form
TERMS = 100  # the most terms of a sum between two integers that is written out
SPLIT = 40  # the most zeros of a periodic function at which an integral is split
SWITCHES = (sympy.Abs, sympy.Max, sympy.Min)
HOSPITAL = 4  # the most derivatives of a numerator and a denominator
MARGIN = sympy.Rational(1, 2**20)  # by which the interval of an integral is widened, so that the antiderivative is continuous at its ends


def resolve(e: Any, ranges: Mapping[Any, Range]) -> Any:
    """The expression with confirmed closed forms in place of its derivatives, integrals, sums, products and limits.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> resolve(sympy.Integral(sympy.cos(x), (x, 0, y)), {y: Range()}), resolve(sympy.Integral(abs(sympy.sin(x)), (x, 0, 7)), {})
    (sin(y), 5 - cos(7))
    """
    if not isinstance(e, sympy.Basic) or not e.has(*HELD):
        return e
    e = e.func(*(resolve(x, ranges) for x in e.args))
    try:
        if isinstance(e, (sympy.Derivative, sympy.Subs)):
            found = e.doit(deep=False)
        elif isinstance(e, sympy.Integral):
            found = e.function
            for limit in e.limits:
                found = _integral(found, limit, ranges) if found is not None else None
        elif isinstance(e, (sympy.Sum, sympy.Product)):
            found = e.function
            for limit in e.limits:
                found = _sum(e.func, found, limit, ranges) if found is not None else None
        else:
            expression, x, end, _ = e.args
            found = _limit(expression, x, end, ranges)
    except FAILURES:
        return e
    return e if found is None else found


def _is_confirmed(a: Any, b: Any, ranges: Mapping[Any, Range]) -> bool:
    return vanishes(a, b, ranges, Effort(WORK))


def _integral(f: Any, limit: Any, ranges: Mapping[Any, Range]) -> Any:
    """The integral of a function between two ends by its antiderivative; None if that is not found, not confirmed or not continuous."""
    x, *ends = limit
    if f.has(*SWITCHES) and len(ends) == 2:
        parts = _split(f, x, *ends)
        found = None if parts is None else [_integral(part, (x, *piece), ranges) for part, piece in parts]
        return None if found is None or None in found else sympy.Add(*found)
    if f.has(*HELD, *JUMPS, *SWITCHES) or f.count_ops() > OPERATIONS:
        return None
    for inside in _intervals(ends):
        t = sympy.Dummy(x.name, **inside.assumptions)
        here = f.xreplace({x: t})
        found = t * here if t not in here.free_symbols else manualintegrate(here, t)
        if found.has(*HELD, *JUMPS):
            continue
        known = {s: r for s, r in ranges.items() if s in f.free_symbols} | {t: inside}
        if is_regular(found, known, Effort(WORK)) and _is_confirmed(sympy.diff(found, t), here, known):
            values = [_at(found, t, end) for end in ends or (x,)]
            return None if None in values else values[-1] - (values[0] if ends else 0)
    return None


def _split(f: Any, x: Any, low: Any, high: Any) -> list[tuple[Any, tuple[Any, Any]]] | None:
    """The smooth parts of a function of x between the exact zeros where absolute values and maxima switch; None if these are not known."""
    switched = switching_functions(f)
    if f.free_symbols != {x} or not (low.is_number and high.is_number and low < high and all(is_continuous(u) and not step for u, step in switched)):
        return None
    cuts = {low, high}
    for u, _ in switched:
        found = solutions(sympy.Eq(u, 0, evaluate=False), {}, families=True)
        if found is None:
            return None
        for root in (at[x] for at in found):
            ends = [0.0]
            for k in root.free_symbols:
                ends = sorted(float((end - root.xreplace({k: 0})) / sympy.diff(root, k)) for end in (low, high))
            if ends[-1] - ends[0] > SPLIT:
                return None
            values = [root.xreplace(dict.fromkeys(root.free_symbols, sympy.Integer(k))) for k in range(int(ends[0]) - 1, int(ends[-1]) + 2)]
            cuts |= {v for v in values if low < v < high}
    points = sorted(cuts, key=float)
    return [(_without_switches(f, x, sympy.Rational((float(a) + float(b)) / 2)), (a, b)) for a, b in pairwise(points)]


def _without_switches(f: Any, x: Any, at: Any) -> Any:
    """The function with the cases that are selected at a point."""
    def number(e: Any) -> Any:
        return e.xreplace({x: at}).evalf(30)

    return f.replace(lambda e: isinstance(e, SWITCHES), lambda e: max(e.args, key=number) if isinstance(e, sympy.Max) else min(e.args, key=number)
                     if isinstance(e, sympy.Min) else e.args[0] * (1 if number(e.args[0]) > 0 else -1))


def _intervals(ends: list[Any]) -> list[Range]:
    """Ranges that contain the interval of an integral and its ends: the real numbers, or less where the ends are numbers or positive."""
    out = [Range()]
    if ends and all(end.is_positive for end in ends):
        out.append(Range((Piece(Fraction(0), None, True),)))
    if ends and all(end.is_number and end.is_finite for end in ends):
        low, high = (Fraction(float(v)) for v in (min(ends, key=float) - MARGIN, max(ends, key=float) + MARGIN))
        out.append(Range((Piece(low, high, True, True),)))
    return out


def _at(e: Any, x: Any, end: Any) -> Any:
    """The value of an expression at an end; at infinity it is that of its functions there, None if they have none."""
    if not end.is_infinite:
        return e.xreplace({x: end})
    if any(x in p.base.free_symbols and x in p.exp.free_symbols for p in e.atoms(sympy.Pow)):
        return None  # SymPy takes ∞⁰ for 1
    found = e.subs(x, end)
    return None if found.has(sympy.nan, sympy.oo, -sympy.oo, sympy.zoo, sympy.AccumBounds) else found


def _sum(kind: Any, f: Any, limit: Any, ranges: Mapping[Any, Range]) -> Any:
    """A sum or a product whose closed form changes by the next term, and is the first term at the lower end; None if there is none."""
    k, low, high = limit
    add = sympy.Add if kind is sympy.Sum else sympy.Mul
    if low.is_Integer and high.is_Integer and abs(high - low) <= TERMS:
        start, stop = int(low), int(high) + 1
        found = add(*(f.xreplace({k: sympy.Integer(i)}) for i in range(min(start, stop), max(start, stop))))
        return found if start <= stop else -found if kind is sympy.Sum else 1 / found
    n = sympy.Dummy("n", integer=True)
    if high.is_infinite or low.free_symbols & {k} or f.has(*HELD) or f.count_ops() > SUMMED:
        return None
    closed = kind(f, (k, low, n)).doit(deep=False)
    if closed.has(*HELD, sympy.Piecewise):
        return None
    known = {s: r for s, r in ranges.items() if s in f.free_symbols | low.free_symbols} | {n: Range((Piece(step=1),))}
    before, term = closed.xreplace({n: n - 1}), f.xreplace({k: n})
    step = (closed - before, term) if kind is sympy.Sum else (closed, before * term)
    first = closed.xreplace({n: low}), f.xreplace({k: low})
    return closed.xreplace({n: high}) if _is_confirmed(*step, known) and _is_confirmed(*first, known) else None


def _limit(e: Any, x: Any, end: Any, ranges: Mapping[Any, Range]) -> Any:
    """A limit at a number by continuity, or of 0/0 by derivatives; None otherwise."""
    if e.has(*JUMPS, *SWITCHES) or not end.is_Rational:
        return None
    low, high = (Fraction(int(v.p), int(v.q)) for v in (end - MARGIN, end + MARGIN))
    t = sympy.Dummy(x.name, real=True)
    known = {s: r for s, r in ranges.items() if s in e.free_symbols} | {t: Range((Piece(low, high, True, True),))}
    above, below = e.xreplace({x: t}).together().as_numer_denom()
    for _ in range(HOSPITAL):
        if not all(is_regular(part, known, Effort(WORK)) for part in (above, below)):
            return None
        values = [part.xreplace({t: end}) for part in (above, below)]
        if not _is_confirmed(values[1], sympy.S.Zero, known):
            number = values[1].evalf(30) if values[1].is_number else None
            return values[0] / values[1] if values[1].is_nonzero or number is not None and abs(number) > MARGIN else None
        if not _is_confirmed(values[0], sympy.S.Zero, known):
            return None
        above, below = sympy.diff(above, t), sympy.diff(below, t)
    return None
