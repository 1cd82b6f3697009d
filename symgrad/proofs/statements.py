"""The statements about one case of an op: for each rule, order and region a verdict, by numbers and by formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy

from symgrad.algebra.comparison import Identity
from symgrad.algebra.effort import Effort, TooLarge
from symgrad.algebra.evaluating import Unknown
from symgrad.algebra.identity import identical
from symgrad.algebra.normal import NoNormalForm
from symgrad.algebra.ranges import ranges_of
from symgrad.algebra.signs import NotRegular, Split
from symgrad.algebra.simplification import shortest_difference
from symgrad.algebra.solving import solutions
from symgrad.algebra.zero_test import vanishes
from symgrad.carriers import symbolic
from symgrad.carriers.sizes import tree_size
from symgrad.proofs.case import Case, Key
from symgrad.proofs.matrices import is_inside
from symgrad.proofs.numbers import NumericComparison, NumericResult
from symgrad.proofs.regions import ERRORS, KINKED, KINKS, Region, borders, regions, zero_switches
from symgrad.proofs.saturation import compare_saturated
from symgrad.proofs.tape import Forms, Tape
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED
from symgrad.reports.proof import Statement
from symgrad.sampling.conditions import boundary_points

BORDERS, OF_ARRAYS = 60, 24  # the most border points of a region, for an elementwise op and for one on arrays
BASES = (1.5, 2.5, -0.75, 4.0), (-2.0, 3.0, 12.0, 0.5)  # the other coordinates; they have few bits, so that equalities hold exactly
FEWEST = 6  # the least number of other points in a region
LONG = 400  # the nodes of two formulas from which on they are compared by normal forms alone
OF_OP, OF_STATEMENT, OF_ELEMENT = 2e7, 1e6, 5e5  # the term pairs for the formulas of an op, of a statement, and of one element


class TapeRecorder(RecordingCarrier):
    """The symbolic carrier on a tape: an element of a result is a short expression of steps."""

    def __init__(self, tape: Tape, complex: bool):
        super().__init__(symbolic, lambda x: symbolic.lift_value(x, exact=True), complex)
        self.tape = tape

    def computed(self, op: Any, operands: Sequence[Any], parameters: Sequence[Any]) -> Any:
        y = super().computed(op, operands, parameters)
        return symbolic.ExactExpressions.fill([self.tape.cut(_plain(e, self.complex)) for e in y.ravel().tolist()], y.shape)


def _plain(e: Any, complex: bool) -> Any:
    return e.replace(sympy.sign, lambda z: z / sympy.Abs(z)) if complex and isinstance(e, sympy.Basic) else e


def claims_of(case: Case, region: Region, order: int, tape: Tape) -> tuple[dict[Key, list[Any]], str]:
    """The derivatives by the rules inside a region as formulas; if there are none, the reason."""
    def supply(name: str, shape: tuple[int, ...]) -> Any:
        return symbolic.ExactExpressions.fill([region(s) for s in case.supply(name, shape).ravel().tolist()], shape)

    try:
        found = case.claims(TapeRecorder(tape, case.complex), supply, order)
        return {key: [tape.cut(_plain(sympy.sympify(e), case.complex)) for e in es] for key, es in found}, ""
    except ERRORS as error:
        return {}, f"the rules have no formula: {error}"


def boundary_points_of(symbols: Sequence[Any], expressions: Sequence[Any], limit: int = BORDERS) -> list[tuple[float, ...]]:
    """Points at and near the boundaries of the conditions in expressions, as numbers for some symbols."""
    if not symbols:
        return []
    bases = [[base[k % len(base)] for k in range(len(symbols))] for base in BASES]
    return boundary_points(list(dict.fromkeys(expressions)), symbols, bases, limit=limit)


def rule_boundary_points(op: Any, parameters: tuple[Any, ...]) -> list[dict[int, float]]:
    """Points at and near the boundaries of an elementwise op's rules, each by the indices of the arguments; empty if the rules have no formula."""
    case, tape = Case(op, parameters, ((),) * (op.arity or 1)), Tape()
    claims, _ = claims_of(case, Region(""), 2, tape)
    of_order = [{key: es for key, es in claims.items() if key.order == k} for k in (1, 2)]
    found = [p for part in of_order for p in boundary_points_of(case.variables, _conditional(tape, part))]
    return [dict(zip(case.active, point)) for point in dict.fromkeys(found)]


def _conditional(tape: Tape, claims: Mapping[Key, Sequence[Any]]) -> list[Any]:
    """The formulas with steps in them that may have a border, written out."""
    out: dict[Any, None] = {}
    for e in dict.fromkeys(e for es in claims.values() for e in es):
        for part in (e, *(tape.steps[s] for s in tape.needed(e))):
            if part.has(*KINKED):
                out[tape.written_out(part)] = None
    return [e for e in out if e is not None]


class CaseProof:
    """The proof of one case up to an order: `statements` with their verdicts, and the `comparisons` of numbers."""

    def __init__(self, case: Case, order: int, points: int, pairs: Effort, effort: float):
        self.case, self.order, self.points, self.pairs, self.effort = case, order, points, pairs, effort
        self.tape = Tape()
        self.comparisons: list[NumericComparison] = []

    def statements(self) -> Iterator[Statement]:
        """Every statement, in every region, and further ones that are wrong only at borders of regions or where floats saturate."""
        case = self.case
        try:
            forward = case.forward()
            found = regions(case, forward)
            references = [dict(case.reference_derivatives(self.order, region, self.tape)) for region in found]
        except ERRORS as error:
            reason = f"its forward rule has no formula that SymPy can differentiate: {error}"
            yield Statement(self.order, "all", str(case), "", NOT_CHECKABLE, reason=reason)
            return
        refuted: set[Key] = set()
        for region, of_region in zip(found, references):
            switches = borders(map(region, forward), [region(x) for x in case.variables] if case.op.selects else ())
            claims, no_formula = claims_of(case, region, self.order, self.tape)
            numbers, no_number = self._numbers(region, forward, of_region, max(FEWEST, -(-self.points // len(found))), switches, claims)
            formulas = Comparison(case, region, self.tape, switches, self.pairs, self.effort)
            for key in sorted(of_region, key=lambda key: key.order):
                statement = self._statement(formulas, region, key, claims.get(key), of_region[key], numbers, no_number or no_formula)
                refuted |= {key} if statement.verdict == REFUTED else set()
                yield statement
        yield from self._across_regions(forward, found, references[0], refuted)

    def _across_regions(self, forward: Sequence[Any], found: Sequence[Region], references: Mapping[Key, Sequence[Any]],
                        refuted: set[Key]) -> Iterator[Statement]:
        """Further refuted statements in the full domain: on borders of regions, and in branches that floats alone take."""
        case, split = self.case, len(found) > 1 or bool(found[0].mapping)
        full = Region("everywhere", domains=case.domains) if split else found[0]
        numbers = self.comparisons[-1] if self.comparisons else None
        try:
            if split:
                references = dict(case.reference_derivatives(self.order, full, self.tape))
                switches = borders(forward, case.variables if case.op.selects else ())
                claims, _ = claims_of(case, full, self.order, self.tape)
                further = [_exactly(point) for point in case.op.docs.special if len(point) == len(case.variables)]
                numbers, _ = self._numbers(full, forward, references, 0, switches, claims, further)
        except ERRORS:  # SymPy cannot differentiate across the borders
            return
        if numbers is None:
            return
        results = {key: result for key, result in numbers.found.items() if result.point is not None and key not in refuted}
        results |= compare_saturated(numbers, refuted | set(results))
        for key, result in results.items():
            numbers.found[key] = result
            yield self._statement(None, full, key, None, references[key], numbers, "")

    def _numbers(self, region: Region, forward: Sequence[Any], references: Mapping[Key, Sequence[Any]], points: int, switches: Sequence[Any],
                 claims: Mapping[Key, Sequence[Any]], further: Sequence[Sequence[Fraction]] = ()) -> tuple[NumericComparison | None, str]:
        case, values = self.case, [self.tape.cut(region(y)) for y in forward]
        of_rules = _conditional(self.tape, claims)
        conditional = [] if case.complex else [*of_rules, *(region(y) for y in forward if y.has(*KINKED))]
        try:
            numbers = NumericComparison(case, region, self.tape, values, references, self.order, switches, borders(of_rules))
            self.comparisons.append(numbers)
            limit = BORDERS if case.single else OF_ARRAYS
            first = dict.fromkeys(map(tuple, [*further, *map(_exactly, boundary_points_of(numbers.inner, conditional, limit))]))
            numbers.compare(points, first, FEWEST if points else 0)
        except (Unknown, *ERRORS) as error:
            return None, f"the rules cannot be evaluated with many digits: {error}"
        return numbers, ""

    def _statement(self, formulas: Comparison | None, region: Region, key: Key, claims: Sequence[Any] | None, references: Sequence[Any],
                   numbers: NumericComparison | None, failure: str) -> Statement:
        """The verdict on one statement, first by its numbers, then by its formulas; `failure` is the reason why one of the two is missing."""
        found = numbers.found[key] if numbers else None
        out = Statement(key.order, key.what, str(self.case), region.text, VERIFIED, found.points if found else 0)
        out.planned = numbers.planned if numbers else 0
        if found is not None and found.point is not None:
            out.verdict, out.claim, out.truth = REFUTED, found.claim, found.reference
            out.point = {str(x): v for x, v in found.point.items()}
            out.reason = "the value jumps here, so that it has no derivative" if found.jump else \
                "the rule is not the derivative in the branch that floats take, which saturate here" if found.saturated else \
                "the rule is not the derivative"
            if claims is not None and formulas is not None and found.simple:
                out.difference = formulas.difference(claims, references)
            return out
        if claims is None or formulas is None:
            out.verdict, out.reason = VERIFIED if out.points else NOT_CHECKABLE, failure or "there was no point to compare at"
            return out
        formulas.pairs = self.pairs.part(OF_STATEMENT * self.effort)
        for claim, reference in zip(claims, references, strict=True):
            formulas.compare(out, claim, reference, found)
            if out.verdict != VERIFIED or out.reason:
                return out
        if not out.points:
            out.verdict, out.reason = NOT_CHECKABLE, failure or "the formulas are the same, but there was no point to confirm it at"
            return out
        out.verdict = PROVED
        return out


def _exactly(point: Sequence[float]) -> list[Fraction]:
    return [Fraction(x) for x in point]


class Comparison:
    """The comparison of two formulas on a tape in a region: by one normal form for each step, and otherwise written out, case by case."""

    def __init__(self, case: Case, region: Region, tape: Tape, switches: Sequence[Any], pairs: Effort, effort: float):
        self.case, self.region, self.tape, self.switches, self.pairs, self.effort = case, region, tape, switches, pairs, effort
        self.forms: Forms | None = None

    def compare(self, out: Statement, claim: Any, reference: Any, numbers: NumericResult | None) -> None:
        """Compare two formulas; `out` gets the verdict, or the reason why it is not proved."""
        if claim == reference or self._have_the_same_form(claim, reference):
            return
        by_rule, by_sympy = (self.tape.written_out(e) for e in (claim, reference))
        if by_rule is None or by_sympy is None:
            out.reason = "written out, the formulas have too many terms"
            return
        self._compare(out, by_rule, by_sympy, numbers)

    def _have_the_same_form(self, claim: Any, reference: Any) -> bool:
        """Whether the normal forms are the same, and no condition in them has a truth value of its own in a part of the region."""
        try:
            if self.forms is None:
                self.forms = Forms(self.tape, self.pairs, self._intervals(), False)
            self.forms.effort = self.pairs.part(OF_ELEMENT * self.effort)
            return self.forms.agree(claim, reference)
        except (TooLarge, NoNormalForm, Split, NotRegular, RecursionError, NotImplementedError, ZeroDivisionError, sympy.PolynomialError):
            return False

    def _intervals(self) -> dict[Any, Any]:
        symbols = [s for x in self.case.variables for s in sympy.sympify(self.region(x)).free_symbols]
        ranges = dict(zip(symbols, ranges_of(symbols, {s: d for s, d in self.region.domains.items() if s in symbols})))
        return {s: (r.pieces[0].low, r.pieces[0].high) for s, r in ranges.items() if not r.complex and len(r.pieces) == 1}

    def _compare(self, out: Statement, claim: Any, reference: Any, numbers: NumericResult | None) -> None:
        """Compare two formulas away from the borders of the forward rule, where numbers decide whether there is a derivative."""
        claim = claim.xreplace({c: sympy.S(isinstance(c, sympy.Ne)) for c in claim.atoms(sympy.Eq, sympy.Ne) if self._is_border(c, reference)})
        if claim == reference:
            return
        try:
            answer = self._identity(claim, reference, numbers)
        except ERRORS as error:
            out.reason = f"the formulas were not compared: {error}"
            return
        if answer is None or answer.verdict == PROVED or answer.verdict == REFUTED and answer.point and self._refutes(out, answer, claim, reference):
            return
        out.reason = {REFUTED: "the formulas differ at a kink alone, or outside the domain, so that only numbers were compared",
                      NOT_CHECKABLE: f"the formulas are not proved: {answer.reason}",
                      VERIFIED: "the formulas were not brought to the same one"}[answer.verdict]
        if numbers is None:
            out.points = out.planned = answer.points
        if not out.points:
            out.verdict = NOT_CHECKABLE

    def _is_border(self, equality: Any, reference: Any) -> bool:
        """Whether an equality holds on borders of the forward rule alone, or where the reference has no value, and on the complex plane."""
        u = equality.lhs - equality.rhs
        if self.case.complex or any(u in (switch, -switch) for switch, _ in self.switches):
            return True
        found = None if u.has(*KINKS) else solutions(sympy.Eq(u, 0, evaluate=False), {}, families=True)
        by = sorted(u.free_symbols, key=str)
        if found is None and u.is_polynomial(*by) and sympy.hessian(u, by).is_positive_semidefinite:  # a minimum of 0 is where the gradient is 0
            centers = sympy.solve([sympy.diff(u, s) for s in by], by, dict=True) if sympy.Poly(u, *by).total_degree() == 2 else ()
            found = [at for at in centers if sympy.expand(u.xreplace(at)) == 0]
        return bool(found) and all(zero_switches(self.switches, at) or reference.xreplace(at).has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo)
                                   for at in found or ())

    def _refutes(self, out: Statement, answer: Identity, claim: Any, reference: Any) -> bool:
        """Refute a statement by a point at which two formulas differ, unless it is at a kink of the function alone, where a rule has a convention."""
        region, case, point = self.region, self.case, dict(answer.point or {})
        if zero_switches(self.switches, point) and not self._persists(claim, reference, point):
            return False
        whole = {x: region(x).xreplace(point) for x in case.variables}
        if not all(float(point[s]) in d for s, d in region.domains.items() if s in point) or not is_inside(case, whole):
            return False
        if not case.complex and any(sympy.im(sympy.sympify(x)) != 0 for x in answer.values or ()):
            return False  # outside the domain of a real function
        out.verdict, out.reason = REFUTED, "the formula of the rule is not that of the derivative"
        out.difference = self.difference([claim], [reference])
        out.point = {str(x): v for x, v in whole.items()}
        others = {} if region.mapping else {s: v for s, v in point.items() if s not in {*case.variables, *region.domains} and not s.is_Dummy}
        out.point |= {str(s): v for s, v in others.items()}
        out.claim, out.truth = answer.values or (None, None)
        return True

    def _persists(self, claim: Any, reference: Any, point: Mapping[Any, Any]) -> bool:
        for step in (sympy.Rational(1, 2**40), sympy.Rational(-3, 2**42)):
            moved = {s: x + step * (7 + k) / 8 * (abs(x) or 1) for k, (s, x) in enumerate(point.items())}
            if identical(claim.xreplace(moved), reference.xreplace(moved), effort=self.effort, points=1).verdict == REFUTED:
                return True
        return False

    def _identity(self, claim: Any, reference: Any, numbers: NumericResult | None) -> Identity | None:
        """The answer of `identical`, None for the same function. The numbers of long formulas are not compared once more."""
        known = self._assumptions(claim, reference)
        symbols = sorted(claim.free_symbols | reference.free_symbols, key=str)
        pairs = self.pairs.part(OF_ELEMENT * self.effort)
        if pairs.left and vanishes(claim, reference, dict(zip(symbols, ranges_of(symbols, known))), pairs):
            return None
        if numbers is not None and tree_size(claim, {}) + tree_size(reference, {}) > LONG:
            return Identity(VERIFIED, "")
        return identical(claim, reference, known, effort=self.effort, points=8)

    def _assumptions(self, *expressions: Any) -> dict[Any, Any]:
        inside = set().union(*(e.free_symbols for e in expressions))
        return {s: d for s, d in self.region.domains.items() if s in inside}

    def difference(self, claims: Sequence[Any], references: Sequence[Any]) -> Any:
        """The first nonzero difference of two formulas in the arguments; None if it is long."""
        for pair in zip(claims, references, strict=True):
            written = [self.tape.written_out(e) for e in pair]
            simple = None if None in written else shortest_difference(*(e.xreplace(self.region.back) for e in written))
            if simple is not None:
                return simple if simple.count_ops() <= 200 else None
        return None

