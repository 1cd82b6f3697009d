"""The statements about one case: formulas and numbers put together to verdicts, region by region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import sympy

from symgrad.algebra.deciding import shortest
from symgrad.algebra.evaluating import Unknown
from symgrad.algebra.identity import identical
from symgrad.algebra.limits import OutOfTime, clock, limited
from symgrad.algebra.solutions import solutions
from symgrad.carriers import symbolic
from symgrad.graph.op import Op
from symgrad.proofs.case import Case, Key
from symgrad.proofs.numbers import Found, Numbers
from symgrad.proofs.regions import ERRORS, Region, borders, generic, is_border, regions
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reports.proof import Statement
from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED
from symgrad.sampling.conditions import vectors

__all__ = ["asked_by_rules", "statements"]

ASKED = 72  # points
SECONDS = 6.0  # for the formulas of one order
BASES = (1.5, 2.5, -0.75, 4.0), (-2.0, 3.0, 12.0, 0.5)  # numbers of the other coordinates, with few bits, so that equalities are met exactly


def claims_of(case: Case, region: Region, order: int) -> tuple[dict[Key, list[Any]], str]:
    """What the rules say inside a region, as formulas; and why they have none."""
    def supply(name: str, shape: tuple[int, ...]) -> Any:
        return symbolic.ExactExpressions.fill([region(s) for s in case.supply(name, shape).ravel().tolist()], shape)

    try:
        recorder = RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, exact=True), case.complex)
        found = case.claims(recorder, supply, order)
        return {key: [_plain(sympy.sympify(e), case.complex) for e in es] for key, es in found}, ""
    except ERRORS as error:
        return {}, f"the rules have no formula: {error}"


def _plain(e: Any, complex: bool) -> Any:
    return e.replace(sympy.sign, lambda z: z / sympy.Abs(z)) if complex else e


def asked(symbols: Sequence[Any], claims: Mapping[Key, Sequence[Any]]) -> list[tuple[float, ...]]:
    """The points that the conditions of the rules ask for, as numbers for some symbols."""
    if not symbols:
        return []
    bases = [[base[k % len(base)] for k in range(len(symbols))] for base in BASES]
    return vectors(list(dict.fromkeys(e for es in claims.values() for e in es)), symbols, bases, limit=ASKED)


def asked_by_rules(op: Op, parameters: tuple[Any, ...]) -> list[dict[int, float]]:
    """The points that the rules of an op of numbers ask for, each by the places of the arguments; none if the rules have no formula."""
    case = Case(op, parameters, ((),) * (op.arity or 1))
    found: list[tuple[float, ...]] = []
    for order in (1, 2):
        try:
            with limited(SECONDS):
                found += asked(case.variables, claims_of(case, Region(""), order)[0])
        except (OutOfTime, *ERRORS):
            break
    return [dict(zip(case.active, point)) for point in dict.fromkeys(found)]


ELEMENT = 10.0  # seconds for one element of a derivative
FEWEST = 6  # points in a region
VISITS = 0.25  # the part of the time for points that conditions ask for


def statements(case: Case, order: int, seconds: float, points: int) -> Iterator[Statement]:
    """Every statement about a case up to an order, in every region."""
    end = clock() + seconds
    try:
        forward = case.forward()
        found = regions(case, forward)
        truths = [dict(case.truths(order, region)) for region in found]
    except ERRORS as error:
        yield Statement(order, "all", str(case), "", NOT_CHECKABLE, reason=f"its forward rule has no formula that SymPy can differentiate: {error}")
        return
    wrong: set[Key] = set()
    for k, (region, inside) in enumerate(zip(found, truths)):
        left = (end - clock()) / (len(found) - k + bool(found[0].mapping))
        stop = clock() + left
        switches = borders(map(region, forward), [region(x) for x in case.variables] if case.op.selects else ())
        claims, trouble = claims_of(case, region, order)
        numbers, doubt = _numbers(case, region, inside, order, max(FEWEST, -(-points // len(found))), switches, claims, left)
        for n, key in enumerate(sorted(inside, key=lambda key: key.order)):
            share = max((stop - clock()) / (len(inside) - n), 0.0)
            statement = _statement(case, region, key, claims.get(key), inside[key], numbers.get(key), doubt or trouble, share, switches)
            wrong |= {key} if statement.verdict == REFUTED else set()
            yield statement
    if found[0].mapping:
        yield from _between(case, forward, order, end - clock(), wrong)


def _between(case: Case, forward: Sequence[Any], order: int, seconds: float, known: set[Key]) -> Iterator[Statement]:
    """What else is refuted at the points that conditions ask for, in the whole domain: on borders of regions where no forward switches."""
    full, tied = Region("everywhere", {}, {}, case.domains), case.variables if case.op.selects else ()
    try:
        truths = dict(case.truths(order, full))
    except ERRORS:  # SymPy may not differentiate across the borders
        return
    numbers, _ = _numbers(case, full, truths, order, 0, borders(forward, tied), claims_of(case, full, order)[0], seconds,
                          [_exactly(point) for point in case.op.special if len(point) == len(case.variables)])
    for key, found in numbers.items():
        if found.point is not None and key not in known:
            yield _statement(case, full, key, None, truths[key], found, "", 0.0, ())


def _numbers(case: Case, region: Region, truths: Mapping[Key, Sequence[Any]], order: int, points: int, switches: Sequence[Any],
             claims: Mapping[Key, Sequence[Any]], seconds: float, further: Sequence[Sequence[Fraction]] = ()) -> tuple[dict[Key, Found], str]:
    try:
        numbers = Numbers(case, region, truths, order, switches)
        return numbers.compare(points, [*further, *map(_exactly, asked(numbers.inner, {} if case.complex else claims))], seconds * VISITS), ""
    except (Unknown, *ERRORS) as error:
        return {}, f"the rules cannot be read with many digits: {error}"


def _exactly(point: Sequence[float]) -> list[Fraction]:
    return [Fraction(x) for x in point]


def _statement(case: Case, region: Region, key: Key, claims: Sequence[Any] | None, truths: Sequence[Any], numbers: Found | None, trouble: str,
               seconds: float, switches: Sequence[Any]) -> Statement:
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
    end = clock() + seconds
    for claim, truth in zip(claims, truths, strict=True):
        _compare(out, case, region, claim, truth, numbers, end, switches)
        if out.verdict != VERIFIED or out.reason:
            return out
    if not out.points:
        out.verdict, out.reason = NOT_CHECKABLE, trouble or "the formulas are the same, but there was no point to confirm it at"
        return out
    out.verdict = PROVED
    return out


def _compare(out: Statement, case: Case, region: Region, claim: Any, truth: Any, numbers: Found | None, end: float, switches: Sequence[Any],
             at: Mapping[Any, Any] = MappingProxyType({})) -> None:
    """Compare two formulas: away from the equalities among the conditions, and where these hold, with the solutions `at` inserted."""
    away, equalities = generic(claim)
    answer = None
    if away != truth:
        try:
            left = max(0.05, min(ELEMENT, end - clock()))
            answer = identical(away, truth, _assumptions(region, away, truth), seconds=left, points=8)
        except ERRORS as error:
            out.reason = f"the formulas were not compared: {error}"
            return
    if answer is not None and answer.verdict == REFUTED and answer.point is not None and (at or _persists(away, truth, answer.point)):
        known = {s: sympy.sympify(x).xreplace(dict(answer.point)) for s, x in at.items()} | dict(answer.point)
        if all(float(known[s]) in d for s, d in region.domains.items() if s in known):
            out.verdict, out.reason = REFUTED, "the formula of the rule is not that of the derivative"
            out.difference = _difference([away.xreplace(region.back)], [truth.xreplace(region.back)])
            out.point = {str(x): region(x).xreplace(known) for x in case.variables}
            out.point |= {str(s): v for s, v in known.items() if s not in case.variables and s not in region.domains and not region.mapping}
            out.claim, out.truth = answer.values or (None, None)
            return
    if answer is not None and answer.verdict != PROVED:
        out.reason = "the formulas were not brought to the same one" if answer else f"the formulas were not compared: {answer.reason}"
        if at:
            out.reason += f" where {', '.join(f'{s} = {x}' for s, x in at.items())}"
        if numbers is None:
            out.points = answer.points
        if not out.points:
            out.verdict = NOT_CHECKABLE
        return
    for equality in equalities:
        found = None if case.complex else solutions(equality, region.domains)
        if found is None and not case.complex:
            out.reason = f"not visited: where {equality.lhs} = {equality.rhs}"
            return
        for inserted in found or ():
            true = truth.xreplace(inserted)
            if true.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) or is_border(switches, inserted):
                continue  # there is no derivative, or it is a convention
            there = claim.xreplace({equality: sympy.true, sympy.Ne(*equality.args): sympy.false}).xreplace(inserted)
            _compare(out, case, region, there, true, numbers, end, [(u.xreplace(inserted), step) for u, step in switches],
                     {s: x.xreplace(inserted) for s, x in at.items()} | inserted)
            if out.verdict != VERIFIED or out.reason:
                return


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
        simple = shortest(difference, 2.0)
        if simple != 0:
            return simple if simple.count_ops() <= 200 else None
    return None
