"""`prove`: a proof that the rules of an op are its derivatives: statements by SymPy's differentiation of its forward rule, and to fifty digits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.deciding import shortest_difference
from symgrad.algebra.evaluating import Unknown
from symgrad.algebra.identity import identical
from symgrad.algebra.limits import OutOfTime, clock, limited
from symgrad.algebra.visits import solutions
from symgrad.carriers import numeric, symbolic
from symgrad.carriers.digits import precision_restored
from symgrad.carriers.lapack import hermitian_parts
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY, Op
from symgrad.proofs.case import Case, Key
from symgrad.proofs.complex import complex_cases
from symgrad.proofs.numbers import NumericComparison, NumericResult, is_inside
from symgrad.proofs.regions import ERRORS, Region, borders, generic, is_border, regions
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED
from symgrad.reports.proof import Proof, Statement
from symgrad.reports.streams import progress_bar
from symgrad.sampling.conditions import boundary_points

__all__ = ["Proof", "Statement", "cases", "prove"]


MOST_POINTS = 72
SECONDS = 6.0  # the time for the formulas of one order
BASES = (1.5, 2.5, -0.75, 4.0), (-2.0, 3.0, 12.0, 0.5)  # the other coordinates; they have few bits, so that equalities hold exactly


def claims_of(case: Case, region: Region, order: int) -> tuple[dict[Key, list[Any]], str]:
    """The derivatives by the rules inside a region as formulas; if there are none, the reason."""
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


def boundary_points_of(symbols: Sequence[Any], claims: Mapping[Key, Sequence[Any]]) -> list[tuple[float, ...]]:
    """Points at and near the boundaries of the conditions in the rules, as numbers for some symbols."""
    if not symbols:
        return []
    bases = [[base[k % len(base)] for k in range(len(symbols))] for base in BASES]
    return boundary_points(list(dict.fromkeys(e for es in claims.values() for e in es)), symbols, bases, limit=MOST_POINTS)


def rule_boundary_points(op: Op, parameters: tuple[Any, ...]) -> list[dict[int, float]]:
    """Points at and near the boundaries of an elementwise op's rules, each by the indices of the arguments; empty if the rules have no formula."""
    case = Case(op, parameters, ((),) * (op.arity or 1))
    found: list[tuple[float, ...]] = []
    for order in (1, 2):
        try:
            with limited(SECONDS):
                found += boundary_points_of(case.variables, claims_of(case, Region(""), order)[0])
        except (OutOfTime, *ERRORS):
            break
    return [dict(zip(case.active, point)) for point in dict.fromkeys(found)]


ELEMENT = 10.0  # the seconds for one element of a derivative
FEWEST = 6  # the least number of points in a region
BOUNDARY_SHARE = 0.25  # the part of the time for boundary points


def statements(case: Case, order: int, seconds: float, points: int) -> Iterator[Statement]:
    """Every statement about a case up to an order, in every region."""
    end = clock() + seconds
    try:
        forward = case.forward()
        found = regions(case, forward)
        references = [dict(case.reference_derivatives(order, region)) for region in found]
    except ERRORS as error:
        yield Statement(order, "all", str(case), "", NOT_CHECKABLE, reason=f"its forward rule has no formula that SymPy can differentiate: {error}")
        return
    refuted: set[Key] = set()
    for k, (region, of_region) in enumerate(zip(found, references)):
        remaining = (end - clock()) / (len(found) - k + bool(found[0].mapping))
        stop = clock() + remaining
        switches = borders(map(region, forward), [region(x) for x in case.variables] if case.op.selects else ())
        claims, no_formula = claims_of(case, region, order)
        numbers, no_number = _numbers(case, region, of_region, order, max(FEWEST, -(-points // len(found))), switches, claims, remaining)
        for n, key in enumerate(sorted(of_region, key=lambda key: key.order)):
            share = max((stop - clock()) / (len(of_region) - n), 0.0)
            statement = _statement(case, region, key, claims.get(key), of_region[key], numbers.get(key), no_number or no_formula, share, switches)
            refuted |= {key} if statement.verdict == REFUTED else set()
            yield statement
    if found[0].mapping:
        yield from _border_statements(case, forward, order, end - clock(), refuted)


def _border_statements(case: Case, forward: Sequence[Any], order: int, seconds: float, known: set[Key]) -> Iterator[Statement]:
    """Further refuted statements at boundary points of the rules in the full domain: on borders of regions that are not boundaries of the forward."""
    full, tied = Region("everywhere", {}, {}, case.domains), case.variables if case.op.selects else ()
    try:
        references = dict(case.reference_derivatives(order, full))
    except ERRORS:  # SymPy cannot differentiate across the borders
        return
    numbers, _ = _numbers(case, full, references, order, 0, borders(forward, tied), claims_of(case, full, order)[0], seconds,
                          [_exactly(point) for point in case.op.docs.special if len(point) == len(case.variables)])
    for key, found in numbers.items():
        if found.point is not None and key not in known:
            yield _statement(case, full, key, None, references[key], found, "", 0.0, ())


def _numbers(case: Case, region: Region, references: Mapping[Key, Sequence[Any]], order: int, points: int, switches: Sequence[Any],
             claims: Mapping[Key, Sequence[Any]], seconds: float,
             further: Sequence[Sequence[Fraction]] = ()) -> tuple[dict[Key, NumericResult], str]:
    try:
        numbers = NumericComparison(case, region, references, order, switches)
        first = [*further, *map(_exactly, boundary_points_of(numbers.inner, {} if case.complex else claims))]
        return numbers.compare(points, first, seconds * BOUNDARY_SHARE), ""
    except (Unknown, *ERRORS) as error:
        return {}, f"the rules cannot be evaluated with many digits: {error}"


def _exactly(point: Sequence[float]) -> list[Fraction]:
    return [Fraction(x) for x in point]


def _statement(case: Case, region: Region, key: Key, claims: Sequence[Any] | None, references: Sequence[Any], numbers: NumericResult | None,
               failure: str, seconds: float, switches: Sequence[Any]) -> Statement:
    """The verdict on one statement, first by its numbers, then by its formulas; `failure` is the reason why one of the two is missing."""
    out = Statement(key.order, key.what, str(case), region.text, VERIFIED, numbers.points if numbers else 0)
    if numbers is not None and numbers.point is not None:
        out.verdict, out.claim, out.truth = REFUTED, numbers.claim, numbers.reference
        out.point = {str(x): v for x, v in numbers.point.items()}
        out.reason = "the rule is not the derivative"
        if claims is not None and numbers.simple:
            out.difference = _difference([e.xreplace(region.back) for e in claims], [e.xreplace(region.back) for e in references])
        return out
    if claims is None and not out.points:
        out.verdict, out.reason = NOT_CHECKABLE, failure or "there was no point to compare at"
        return out
    if claims is None:
        out.reason = failure
        return out
    end = clock() + seconds
    for claim, reference in zip(claims, references, strict=True):
        _compare(out, case, region, claim, reference, numbers, end, switches)
        if out.verdict != VERIFIED or out.reason:
            return out
    if not out.points:
        out.verdict, out.reason = NOT_CHECKABLE, failure or "the formulas are the same, but there was no point to confirm it at"
        return out
    out.verdict = PROVED
    return out


def _compare(out: Statement, case: Case, region: Region, claim: Any, reference: Any, numbers: NumericResult | None, end: float,
             switches: Sequence[Any], at: Mapping[Any, Any] = MappingProxyType({})) -> None:
    """Compare two formulas: with the equalities among the conditions false, then, for each equality, with its solutions inserted (`at`)."""
    away, equalities = generic(claim)
    answer = None
    if away != reference:
        try:
            remaining = max(0.05, min(ELEMENT, end - clock()))
            answer = identical(away, reference, _assumptions(region, away, reference), seconds=remaining, points=8)
        except ERRORS as error:
            out.reason = f"the formulas were not compared: {error}"
            return
    if answer is not None and answer.verdict == REFUTED and answer.point is not None and (at or _persists(away, reference, answer.point)):
        known = {s: sympy.sympify(x).xreplace(dict(answer.point)) for s, x in at.items()} | dict(answer.point)
        whole = {x: region(x).xreplace(known) for x in case.variables}
        if all(float(known[s]) in d for s, d in region.domains.items() if s in known) and is_inside(case, whole):
            out.verdict, out.reason = REFUTED, "the formula of the rule is not that of the derivative"
            out.difference = _difference([away.xreplace(region.back)], [reference.xreplace(region.back)])
            out.point = {str(x): v for x, v in whole.items()}
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
            new_reference = reference.xreplace(inserted)
            if new_reference.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) or is_border(switches, inserted):
                continue  # there is no derivative, or it is a convention
            new_claim = claim.xreplace({equality: sympy.true, sympy.Ne(*equality.args): sympy.false}).xreplace(inserted)
            _compare(out, case, region, new_claim, new_reference, numbers, end, [(u.xreplace(inserted), step) for u, step in switches],
                     {s: x.xreplace(inserted) for s, x in at.items()} | inserted)
            if out.verdict != VERIFIED or out.reason:
                return


def _persists(claim: Any, reference: Any, point: Mapping[Any, Any]) -> bool:
    """Whether two formulas differ beside a point, too; a difference at a kink alone is a convention."""
    for step in (sympy.Rational(1, 2**40), sympy.Rational(-3, 2**42)):
        moved = {s: x + step * (7 + k) / 8 * (abs(x) or 1) for k, (s, x) in enumerate(point.items())}
        try:
            a, b = (e.xreplace(moved).evalf(100) for e in (claim, reference))
            if a.is_number and b.is_number and abs(a - b) > sympy.Float(10, 100) ** -70 * (abs(a) + abs(b)):
                return True
        except ERRORS:
            continue
    return False


def _assumptions(region: Region, *expressions: Any) -> dict[Any, Any]:
    inside = set().union(*(e.free_symbols for e in expressions))
    return {s: d for s, d in region.domains.items() if s in inside}


def _difference(claims: Sequence[Any], references: Sequence[Any]) -> Any:
    """The first nonzero difference of two formulas, simplified within a short time; None if it is long."""
    for claim, reference in zip(claims, references, strict=True):
        simple = shortest_difference(claim, reference)
        if simple is not None:
            return simple if simple.count_ops() <= 200 else None
    return None


SHAPES = ((2, 3), (3, 4))  # for arguments of ops without declared shapes; the first one that is valid for an example is used
PAIRS = (3, 2)  # complex numbers as pairs of real ones
PAIR = (2,)  # the shape of several arguments of the same shape, if it is valid


def cases(op: Op, complex: bool | None, notes: list[str]) -> Iterator[Case]:
    """An op with the parameters of each of its examples, on numbers or small arrays, real and complex; omissions are added to `notes`."""
    for parameters in op.docs.examples or ((),):
        shapes = ((),) * (op.arity or 1) if op.kind == "elementwise" else _fitting(op, parameters)
        if not complex and COMPLEX not in op.domain:
            yield Case(op, parameters, shapes)
        if complex is not False:
            yield from complex_cases(op, parameters, shapes, notes)


def _fitting(op: Op, parameters: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    """The first of the default shapes that are valid for the parameters, or the shapes that the op declares."""
    count = 2 if op.arity is None else op.arity
    alike = not op.docs.shapes or len(set(op.docs.shapes)) == 1
    if COMPLEX in op.domain:
        return (PAIRS,) * count
    candidates = [PAIR] * (alike and count > 1 and op.arity is not None) + [shape for shape in SHAPES if not op.docs.shapes]
    for shape in candidates:
        xs = [np.linspace(0.25, 0.75, prod(shape)).reshape(shape) for _ in range(count)]
        try:
            y = op.forward(numeric, *((xs,) if op.arity is None else xs), *parameters)
            assert op.vjp is not None
            op.vjp(numeric, np.ones_like(y), y, (*xs, *parameters), (True,) * count)
        except (ValueError, IndexError, TypeError, RuntimeError, AssertionError):
            continue
        if np.size(y):
            return (shape,) * count
    return op.docs.shapes or (SHAPES[-1],) * count


def _op(given: Any) -> Op:
    """The op of a name, a public function or an Op."""
    if isinstance(given, Op):
        return given
    found = getattr(given, "op", None)
    if isinstance(found, Op):
        return found
    if isinstance(given, str):
        op = REGISTRY.get(given) or next((op for op in REGISTRY.values() if given in op.surface.aliases), None)
        if op is not None:
            return op
        import difflib

        near = difflib.get_close_matches(given, REGISTRY, 3)
        raise ValueError(f"prove: there is no op {given!r}" + (f"; did you mean {', '.join(map(repr, near))}?" if near else ""))
    raise TypeError(f"prove: an op, its name or its public function is expected (symgrad.tanh, 'tanh'), not {type(given).__name__}; "
                    f"for a function of your own use symgrad.check")


def _nothing_to_prove(op: Op) -> str:
    """The reason why an op has no rule to prove, empty if it has one."""
    if op.kind == "composite":
        return "it has no rule of its own: its derivatives are those of the ops that it calls; prove those, or check a call with symgrad.check"
    if op.name in ("batch", "unbatch"):
        return "it enters or leaves a batch of vmap, which has no formula; it is tested with vmap"
    if not op.differentiable:
        return "it has no derivative: its values are whole numbers, truth values or constants"
    return ""


@hermitian_parts()  # of which the rules are the derivatives, element by element
@precision_restored()
def prove(op: Any, order: int = 3, *, complex: bool | None = None, seconds: float = 60.0, points: int = 20, progress: Any = None) -> Proof:
    """Prove the rules of an op: its pullback and pushforward, and their derivatives up to an order, equal SymPy's derivatives.

    `op` is a public function (symgrad.tanh), a name, or an `Op`. Its rules are evaluated in the symbolic carrier, for single numbers or small
    arrays of symbols, with a separate symbol for every component of cotangents and tangents, and compared with `sympy.diff` of its forward rule.
    Functions with kinks are proved in each region between the kinks, and rules with conditions also where an equality among them holds. Each
    statement is also compared at `points` points to fifty digits, with the rules evaluated in the precise carrier.

    - "proved": the difference is literally 0 by `symgrad.identical`, and the numbers agree;
    - "verified": the numbers agree at all points; the reason names an equality in a rule's conditions for which the formulas were not compared;
    - "refuted": they differ at a simple point, which is given with both values and the difference;
    - "not checkable": the op has no rule, or no formula; the reason is given.

    The verdict of the op is the weakest of its statements. By default (`complex` None) the statements are proved for real and, if the op takes them,
    for complex numbers; with True only for complex ones, with False only for real ones. Analytic functions are proved on the complex plane with
    conjugated coefficients, as in the pullback; others (abs, angle, the parts) at order 1 by their real and imaginary parts. Statements that
    are not proved within `seconds` of processor time are only verified. `progress` is as in `symgrad.check`.

    Raises ValueError for an order other than 1, 2 or 3 and for an unknown name, TypeError for an object that is not an op.

    >>> import symgrad
    >>> proof = prove(symgrad.tanh, 2, complex=False)
    >>> proof.verdict, [s.what for s in proof.statements]
    ('proved', ['vjp by input', 'jvp', 'by input, input'])
    """
    if type(order) is not int or order not in (1, 2, 3):
        raise ValueError(f"prove: order must be 1, 2 or 3, not {order!r}")
    found = _op(op)
    proof = Proof(found.name, found.kind, order)
    start, end = time.monotonic(), clock() + seconds
    proof.reason = _nothing_to_prove(found)
    if not proof.reason:
        with progress_bar(progress, found.name) as show_progress:
            every = list(cases(found, complex, proof.notes))
            for k, case in enumerate(every):
                show_progress(f"proving {case or 'the rules'}", k, len(every))
                remaining = (end - clock()) / (len(every) - k)
                proof.statements += statements(case, min(order, case.highest_order), max(remaining, 0.0), points)
        if not proof.statements:
            proof.reason = "none of its arguments has a derivative" if not complex else (
                proof.notes[0] if proof.notes else "it takes no complex numbers")
    proof.seconds = time.monotonic() - start
    return proof
