"""The statements about one case: formulas and numbers put together to verdicts, region by region."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from symgrad.algebra.evaluating import Unknown
from symgrad.algebra.identity import identical
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers import symbolic
from symgrad.proofs.case import Case, Key
from symgrad.proofs.numbers import Found, Numbers
from symgrad.proofs.regions import Region, regions
from symgrad.reference.recorder import Recorder
from symgrad.reports.proof import Statement
from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED

__all__ = ["statements"]

ERRORS = (NotImplementedError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RecursionError, RuntimeError, AssertionError)
ELEMENT = 10.0  # seconds for one element of a derivative
FEWEST = 6  # points in a region


def statements(case: Case, order: int, seconds: float, points: int) -> Iterator[Statement]:
    """Every statement about a case up to an order, in every region."""
    end = time.monotonic() + seconds
    try:
        found = regions(case, case.forward())
        truths = [dict(case.truths(order, region)) for region in found]
    except ERRORS as error:
        yield Statement(order, "all", str(case), "", NOT_CHECKABLE, reason=f"its forward rule has no formula that SymPy can differentiate: {error}")
        return
    for k, (region, inside) in enumerate(zip(found, truths)):
        numbers, doubt = _numbers(case, region, inside, order, max(FEWEST, -(-points // len(found))))
        claims, trouble = _claims(case, region, order)
        left = (end - time.monotonic()) / (len(found) - k)
        stop = time.monotonic() + left
        for n, key in enumerate(sorted(inside, key=lambda key: key.order)):
            share = max((stop - time.monotonic()) / (len(inside) - n), 0.0)
            yield _statement(case, region, key, claims.get(key), inside[key], numbers.get(key), doubt or trouble, share)


def _numbers(case: Case, region: Region, truths: Mapping[Key, Sequence[Any]], order: int, points: int) -> tuple[dict[Key, Found], str]:
    try:
        return Numbers(case, region, truths, order).compare(points), ""
    except (Unknown, *ERRORS) as error:
        return {}, f"the rules cannot be read with many digits: {error}"


def _claims(case: Case, region: Region, order: int) -> tuple[dict[Key, list[Any]], str]:
    """What the rules say inside a region, as formulas."""
    def supply(name: str, shape: tuple[int, ...]) -> Any:
        return symbolic.ExactExpressions.fill([region(s) for s in case.supply(name, shape).ravel().tolist()], shape)

    try:
        recorder = Recorder(symbolic, lambda x: symbolic.lift_value(x, exact=True), case.complex)
        found = case.claims(recorder, supply, order)
        return {key: [_settled(sympy.sympify(e), case.complex) for e in es] for key, es in found}, ""
    except ERRORS as error:
        return {}, f"the rules have no formula: {error}"


def _settled(e: Any, complex: bool) -> Any:
    """An expression in which numbers that are equal only at single points are not: conditions such as x = 0, which a rule asks to be safe."""
    if complex:
        e = e.replace(sympy.sign, lambda z: z / sympy.Abs(z))
    held = [c for c in e.atoms(sympy.Eq, sympy.Ne) if e.has(sympy.Piecewise)]
    decided = {}
    for condition in held:
        symbols = sorted(condition.free_symbols, key=str)
        at = {s: sympy.Rational(7 + 3 * i, 11 + i) for i, s in enumerate(symbols)}
        try:
            gap = (condition.lhs - condition.rhs).xreplace(at).evalf(30)
        except (*ERRORS,):
            continue
        if gap.is_number and abs(gap) > 1e-12:
            decided[condition] = sympy.S.false if isinstance(condition, sympy.Eq) else sympy.S.true
    return e.xreplace(decided) if decided else e


def _statement(case: Case, region: Region, key: Key, claims: Sequence[Any] | None, truths: Sequence[Any], numbers: Found | None, trouble: str,
               seconds: float) -> Statement:
    """The verdict of one statement: by its numbers, and then by its formulas."""
    out = Statement(key.order, key.what, str(case), region.text, VERIFIED, numbers.points if numbers else 0)
    if numbers is not None and numbers.point is not None:
        out.verdict, out.claim, out.truth = REFUTED, numbers.claim, numbers.truth
        out.point = {str(x): v for x, v in numbers.point.items()}
        out.reason = "the rule is not the derivative"
        if claims is not None and numbers.simple:
            out.difference = _difference([e.xreplace(region.back) for e in claims], [e.xreplace(region.back) for e in truths])
        return out
    if claims is None and not out.points:
        out.verdict, out.reason = NOT_CHECKABLE, trouble or "there was no point to compare at"
        return out
    if claims is None:
        out.reason = trouble
        return out
    end = time.monotonic() + seconds
    for claim, truth in zip(claims, truths, strict=True):
        if claim == truth:
            continue
        try:
            answer = identical(claim, truth, _assumptions(region, claim, truth), seconds=max(0.05, min(ELEMENT, end - time.monotonic())), points=8)
        except ERRORS as error:
            out.reason = f"the formulas were not compared: {error}"
            return out
        if answer.verdict == REFUTED and answer.point is not None and _persists(claim, truth, answer.point):
            out.verdict, out.reason = REFUTED, "the formula of the rule is not that of the derivative"
            out.difference = _difference([claim.xreplace(region.back)], [truth.xreplace(region.back)])
            out.point = {str(x): region(x).xreplace(dict(answer.point)) for x in case.variables}
            out.point |= {str(s): v for s, v in answer.point.items() if s not in case.variables and not region.mapping}
            out.claim, out.truth = answer.values or (None, None)
            return out
        if answer.verdict != PROVED:
            out.reason = "the formulas were not brought to the same one" if answer else f"the formulas were not compared: {answer.reason}"
            if numbers is None:
                out.points = answer.points
            if not out.points:
                out.verdict = NOT_CHECKABLE
            return out
    if not out.points:
        out.verdict, out.reason = NOT_CHECKABLE, trouble or "the formulas are the same, but there was no point to confirm it at"
        return out
    out.verdict = PROVED
    return out


def _persists(claim: Any, truth: Any, point: Mapping[Any, Any]) -> bool:
    """Whether two formulas differ on one side of a point as well: what differs at a kink alone is a convention."""
    for step in (sympy.Rational(1, 2**40), sympy.Rational(-3, 2**42)):
        moved = {s: x + step * (7 + k) / 8 * (abs(x) or 1) for k, (s, x) in enumerate(point.items())}
        try:
            a, b = (e.xreplace(moved).evalf(100) for e in (claim, truth))
            if a.is_number and b.is_number and abs(a - b) > sympy.Float(10, 100) ** -70 * (abs(a) + abs(b)):
                return True
        except ERRORS:
            continue
    return False


def _assumptions(region: Region, *expressions: Any) -> dict[Any, Any]:
    inside = set().union(*(e.free_symbols for e in expressions))
    return {s: d for s, d in region.domains.items() if s in inside}


def _difference(claims: Sequence[Any], truths: Sequence[Any]) -> Any:
    """The first difference of two formulas that is not 0, simplified where that takes no time."""
    for claim, truth in zip(claims, truths, strict=True):
        difference = claim - truth
        if difference == 0:
            continue
        try:
            with limited(2.0):
                simple = min((difference, sympy.factor_terms(difference), sympy.simplify(difference)), key=sympy.count_ops)
        except (OutOfTime, *ERRORS):
            simple = difference
        if simple != 0:
            return simple if simple.count_ops() <= 200 else None
    return None
