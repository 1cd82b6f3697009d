"""The branches that floats take in the rules of a run, and nothing else takes: there the rules are evaluated with many digits and these branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.common import Refused
from symgrad.proofs.saturation import SIZES, differ
from symgrad.reference.exact import ComparedNumber, OracleComparison, rule_values
from symgrad.reference.float_branches import FloatBranches
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula

DIGITS, MOST_DIGITS = 60, 5000
EXACT = -10_000  # the power of two that bounds the error of a reference
NOISE = mpmath.mpf(10) ** -45  # of the largest number, a difference that is rounding
ROUNDINGS, MAX_MOVED = 64, 8  # errors of a rounding, and inputs that are moved one at a time
MAX_PLACES = 4  # inputs that are set to numbers of all sizes one at a time
FAILURES = (Undefined, Undecided, NoFormula, Refused, TypeError, AttributeError, NotImplementedError, ValueError, ArithmeticError, RuntimeError)
Beside = Callable[[np.ndarray], Run | None]


def points_beside(point: np.ndarray, epsilon: float) -> Iterator[np.ndarray]:
    """Points that rounding does not distinguish from a point: what is right at one of them, or between what is right there, was rounded."""
    n = point.size
    for moved in (np.ones(n), *(np.eye(n) if 1 < n <= MAX_MOVED else ())):
        for sign in (1, -1):
            yield point + sign * ROUNDINGS * epsilon * np.abs(point) * moved


def own_branch(run: Run) -> bool:
    """Whether the function itself, and not a rule, takes another branch in floats than with many digits."""
    recorder = FloatBranches(run.result.value.dtype)
    with precise.working_precision(MOST_DIGITS), np.errstate(all="ignore"):
        try:
            recorder.replayed(run.root, run.nodes, [precise.lift_value(leaf.value) for leaf in run.leaves])
        except FAILURES:
            return False
    return recorder.departed


def wrong_in_floats(point: np.ndarray, run: Run, exact: OracleComparison, beside: Beside = lambda vector: None) -> ComparedNumber | None:
    """A derivative that is wrong in the branch that floats take in a rule, though it is right in that of exact numbers; None if there is none."""
    recorder = FloatBranches(run.result.value.dtype)
    with precise.working_precision(DIGITS), np.errstate(all="ignore"):
        values = [precise.lift_value(leaf.value) for leaf in run.leaves]
        try:
            claims = rule_values(recorder, run, values, exact.order, exact.full, exact.direction)
            entries = exact.entries() if recorder.departed else []
        except FAILURES:
            return None
    scale = max([abs(e.reference) for e in entries], default=0)
    wrong = [(k, mpmath.mpf(c)) for k, (c, e) in enumerate(zip(claims, entries)) if e.order and _differ(mpmath.mpf(c), e.reference, scale)]
    if not wrong or own_branch(run):
        return None
    known: dict[int, list[Any]] = {k: [entries[k].reference] for k, _ in wrong}
    for vector in points_beside(point, float(ulp_of(run.result.value.dtype).epsilon)):
        near = beside(vector)
        try:
            there = [] if near is None else OracleComparison(near, exact.order, exact.direction, exact.full).entries()
        except FAILURES:
            continue
        for k in known if there else ():
            known[k].append(there[k].reference)
    wrong = [(k, c) for k, c in wrong if not min(known[k]) <= c <= max(known[k])
             and all(_differ(c, end, scale) for end in (min(known[k]), max(known[k])))]
    return next((ComparedNumber(e.order, e.index, e.directional, e.reference, c) for k, c in wrong for e in [entries[k]]), None)


def _differ(claim: mpmath.mpf, reference: mpmath.mpf, scale: mpmath.mpf) -> bool:
    return abs(claim - reference) > NOISE * scale and differ(claim, reference, EXACT) if mpmath.isfinite(claim) else True


def saturated_points(point: np.ndarray, beside: Beside, order: int) -> Iterator[np.ndarray]:
    """Points of all sizes at which a rule takes another branch in floats than with many digits."""
    places = [None, *range(point.size)][point.size == 1:][:MAX_PLACES]
    for size in SIZES:
        for i, sign in ((i, sign) for i in places for sign in (1, -1)):
            vector = np.where((i is None) | (np.arange(point.size) == i), sign * size, point)
            run = beside(vector)
            if run is None or not np.isfinite(run.result.value):
                continue
            recorder = FloatBranches(run.result.value.dtype)
            try:
                with precise.working_precision(DIGITS), np.errstate(all="ignore"):
                    rule_values(recorder, run, [precise.lift_value(leaf.value) for leaf in run.leaves], order, order, np.ones(point.size))
            except FAILURES:
                continue
            if not recorder.decided:
                return  # the rules have no conditions
            if recorder.departed:
                yield vector
