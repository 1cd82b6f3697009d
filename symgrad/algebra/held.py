"""Derivatives, integrals, sums, products and limits in expressions, each replaced by a closed form where that is confirmed.

SymPy's `doit` is not taken as the truth: an antiderivative is differentiated again and must be continuous between the ends, and the closed form of
a sum must change by its next term. What is not confirmed stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """The expression with confirmed closed forms in place of its derivatives, integrals, sums, products and limits."""
    if not isinstance(e, sympy.Basic) or not e.has(*HELD):
        return e
    e = found = e.func(*(resolve(x, ranges) for x in e.args))
    try:
        if isinstance(e, (sympy.Derivative, sympy.Subs)):
            return e.doit(deep=False)
        if isinstance(e, sympy.Limit):
            found = _limit(e.args[0], e.args[1], e.args[2], str(e.args[3]), ranges)
        else:
            found = e.function
            for limit in e.limits:
                found = None if found is None else _integral(found, limit, ranges) if isinstance(e, sympy.Integral) else \
                    _sum(e.func, found, limit, ranges)
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
    for inside, is_open in _intervals(f, x, ends):
        t = sympy.Dummy(x.name, **inside.assumptions)
        here = f.xreplace({x: t})
        found = t * here if t not in here.free_symbols else manualintegrate(here, t)
        if found.has(*HELD, *JUMPS):
            continue
        known = {s: r for s, r in ranges.items() if s in f.free_symbols} | {t: inside}
        if is_regular(found, known, Effort(WORK)) and _is_confirmed(sympy.diff(found, t), here, known):
            values = [_beside(found, t, end, side, known) if is_open else _at(found, t, end) for end, side in zip(ends, (1, -1))]
            values = values or [found.xreplace({t: x})]
            return None if None in values else values[-1] - (values[0] if ends else 0)
    return None


def _beside(e: Any, x: Any, end: Any, side: int, ranges: Mapping[Any, Range]) -> Any:
    """The limit of an expression at a rational end from one side, as a sum of powers and logarithms of the distance times smooth factors."""
    d, smooth = sympy.Dummy(positive=True), sympy.Dummy(real=True)
    near = {s: r for s, r in ranges.items() if s is not x} | {smooth: Range((Piece(-Fraction(MARGIN), Fraction(MARGIN), True, True),))}
    limits = []
    for term in sympy.Add.make_args(sympy.expand(e.xreplace({x: end + side * d}))):
        power, rest, logarithms = sympy.S.Zero, sympy.S.One, 0
        for f in sympy.Mul.make_args(term):
            base, exponent = f.as_base_exp()
            if base == d and d not in exponent.free_symbols:
                power += exponent
            elif base == sympy.log(d) and exponent.is_Integer and exponent > 0:
                logarithms += 1
            else:
                rest *= f
        rest = rest.xreplace({d: smooth})
        if not (power.is_positive or power == 0 and not logarithms) or not (is_continuous(rest) or is_regular(rest, near, Effort(WORK))):
            return None
        limits.append(sympy.S.Zero if power != 0 else rest.xreplace({smooth: sympy.S.Zero}))
    return sympy.Add(*limits)


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
            ends = sorted(float((end - root.xreplace({k: 0})) / sympy.diff(root, k)) for k in root.free_symbols for end in (low, high)) or [0.0]
            if ends[-1] - ends[0] > SPLIT:
                return None
            values = [root.xreplace(dict.fromkeys(root.free_symbols, sympy.Integer(k))) for k in range(int(ends[0]) - 1, int(ends[-1]) + 2)]
            cuts |= {v for v in values if low < v < high}
    points = sorted(cuts, key=float)
    return [(_without_switches(f, x, sympy.Rational((float(a) + float(b)) / 2)), (a, b)) for a, b in pairwise(points)]


def _on_side(e: Any, x: Any, end: Any, side: int) -> Any:
    """The function with the pieces that are selected next to a number on one side; None if these are not known."""
    switched = switching_functions(e)
    known = [solutions(sympy.Eq(u, 0, evaluate=False), {}) if u.free_symbols == {x} and is_continuous(u) and not step else None
             for u, step in switched]
    if None in known:
        return None
    apart = [abs(at[x] - end) for found in known for at in found or () if at[x] != end]
    return _without_switches(e, x, sympy.Rational(float(end + side * min([MARGIN, *apart], key=float) / 2)))


def _without_switches(f: Any, x: Any, at: Any) -> Any:
    """The function with the cases that are selected at a point."""
    def number(e: Any) -> Any:
        return e.xreplace({x: at}).evalf(30)

    def chosen(e: Any) -> Any:
        if isinstance(e, (sympy.Max, sympy.Min)):
            return (max if isinstance(e, sympy.Max) else min)(e.args, key=number)
        if isinstance(e, sympy.Piecewise):
            return next(value for value, condition in e.args if condition.xreplace({x: at}) == True)  # noqa: E712  a SymPy condition
        sign = sympy.Integer(1 if number(e.args[0]) > 0 else -1)
        return e.args[0] * sign if isinstance(e, sympy.Abs) else (sign + 1) / 2 if isinstance(e, sympy.Heaviside) else sign

    return f.replace(lambda e: isinstance(e, (*SWITCHES, sympy.sign, sympy.Heaviside, sympy.Piecewise)), chosen)


def _intervals(f: Any, x: Any, ends: list[Any]) -> Iterator[tuple[Range, bool]]:
    """Ranges that contain the interval of an integral and its ends: the real numbers, or less where the ends are numbers or positive.

    The last one is without the ends if the function may be infinite there, where the antiderivative may have no value but a limit.
    """
    yield Range(), False
    if ends and all(end.is_positive for end in ends):
        yield Range((Piece(Fraction(0), None, True),)), False
    if ends and all(end.is_number and end.is_finite for end in ends):
        low, high = (Fraction(float(v)) for v in (min(ends, key=float) - MARGIN, max(ends, key=float) + MARGIN))
        yield Range((Piece(low, high, True, True),)), False
        bases = {p.base for p in f.atoms(sympy.Pow) if not (p.exp.is_Integer and p.exp > 0)} | {g.args[0] for g in f.atoms(sympy.log)}
        singular = any(base.xreplace({x: end}) == 0 for base in bases for end in ends)
        if singular and all(end.is_Rational for end in ends) and ends[0] < ends[1]:
            low, high = (Fraction(int(end.p), int(end.q)) for end in ends)
            yield Range((Piece(low, high, True, True),)), True


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
    if kind is sympy.Sum and high is sympy.oo and low.is_Integer:
        return _infinite_sum(f, k, low, ranges)
    n = sympy.Dummy("n", integer=True)
    if high.is_infinite or low.free_symbols & {k} or f.has(*HELD) or f.count_ops() > SUMMED:
        return None
    closed = kind(f, (k, low, n)).doit(deep=False)
    if closed.has(*HELD, sympy.Piecewise):
        return None
    known = {s: r for s, r in ranges.items() if s in f.free_symbols | low.free_symbols} | {n: Range((Piece(step=1),))}
    steps = (closed, add(closed.xreplace({n: n - 1}), f.xreplace({k: n}))), (closed.xreplace({n: low}), f.xreplace({k: low}))
    return closed.xreplace({n: high}) if all(_is_confirmed(*step, known) for step in steps) else None


def _infinite_sum(f: Any, k: Any, low: Any, ranges: Mapping[Any, Range]) -> Any:
    """The sum of a polynomial times a geometric sequence, or of a fraction with rational poles; None for another one, or where it diverges."""
    if f.count_ops() > SUMMED:
        return None
    ratio = sympy.powsimp(sympy.Mul(*(p.base ** sympy.diff(p.exp, k) for p in sympy.Mul.make_args(f) if p.is_Pow and k in p.exp.free_symbols)))
    if ratio != 1:
        rest = sympy.powsimp(sympy.expand(f / ratio**k))
        if k in ratio.free_symbols or not rest.is_polynomial(k) or not _is_below_1(ratio, ranges):
            return None
        differences, total = rest, sympy.S.Zero  # Σ p(low + j) rʲ = Σ Δⁱp(low) rⁱ / (1 - r)ⁱ⁺¹
        for i in range(sympy.degree(rest, k) + 1):
            total += differences.xreplace({k: low}) * ratio**i / (1 - ratio) ** (i + 1)
            differences = sympy.expand(differences.xreplace({k: k + 1}) - differences)
        return ratio**low * total
    if not f.is_rational_function(k) or f.free_symbols != {k}:
        return None
    total, residues = sympy.S.Zero, sympy.S.Zero
    for term in sympy.Add.make_args(sympy.apart(f, k)):
        c, rest = term.as_independent(k)
        base, power = rest.as_base_exp()
        if not (power.is_Integer and power < 0 and sympy.degree(base, k) == 1 and all(v.is_Rational for v in sympy.Poly(base, k).all_coeffs())):
            return None
        slope, shift = sympy.diff(base, k), low + base.xreplace({k: sympy.S.Zero}) / sympy.diff(base, k)
        if shift.is_Integer and shift <= 0:
            return None  # a term has no value
        c *= slope**power
        residues += c if power == -1 else 0
        total += c * sympy.zeta(-power, shift) if power < -1 else -c * sympy.digamma(shift)
    return total if residues == 0 else None


def _is_below_1(ratio: Any, ranges: Mapping[Any, Range]) -> bool:
    """Whether the absolute value of a number or of a symbol is less than 1."""
    if ratio.is_number:
        return bool(abs(ratio).evalf(30) < 1 - MARGIN)
    pieces = ranges[ratio].pieces if ratio in ranges and not ranges[ratio].complex else ()
    return bool(pieces) and all(None not in (p.low, p.high) and (p & Piece(Fraction(-1), Fraction(1), True, True)) == p for p in pieces)


def _limit(e: Any, x: Any, end: Any, direction: str, ranges: Mapping[Any, Range]) -> Any:
    """A limit at a number by continuity, or of 0/0 by derivatives, after the choice of the pieces on its side; None otherwise."""
    if not end.is_Rational:
        return None
    if e.has(*SWITCHES, sympy.sign, sympy.Heaviside, sympy.Piecewise):
        sides = [_on_side(e, x, end, side) for side in ((1, -1) if direction == "+-" else (1 if direction == "+" else -1,))]
        found = [None if part is None else _limit(part, x, end, "+-", ranges) for part in sides]
        return found[0] if None not in found and _is_confirmed(found[0], found[-1], ranges) else None
    if e.has(*JUMPS):
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
