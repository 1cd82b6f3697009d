"""Proofs of rules by `symgrad.prove`, as assertions: of one op with one tuple of parameters, by formulas and numbers or by formulas alone."""

from typing import NamedTuple
from unittest import mock

from symgrad.checking import proving_statements
from symgrad.checking.proving_cases import cases
from symgrad.checking.proving_numbers import Found

POINTS = 20  # every statement is compared at so many points: SymPy can simplify what is not zero to a silent 0
SECONDS = 600.0  # so that a busy machine changes no verdict
STRENGTH = ("refuted", "not checkable", "verified", "proved")


class Verdict(NamedTuple):
    """`word` is the weakest verdict of all statements; `points` says at how many points each was compared, its regions together, at least."""

    word: str
    points: int


def found(op, parameters, order, points=POINTS, seconds=SECONDS):
    """Every statement about real numbers up to an order."""
    (case,) = [case for case in cases(op, False, []) if case.parameters is parameters or not (parameters or case.parameters)]
    return list(proving_statements.statements(case, order, seconds, points))


def check_partials(op, parameters=(), order=1, points=POINTS, seconds=SECONDS):
    """Every derivative up to an order is proved, or at least equal to the truth to fifty digits at so many points.

    Raises AssertionError with the op, the point and both values where a rule is wrong.
    """
    statements = found(op, parameters, order, points, seconds)
    for s in statements:
        assert s.verdict in ("verified", "proved"), (
            f"{op.name}{parameters}: {s.what} (order {s.order}, {s.region}) is {s.verdict}: {s.reason} at {s.point}: {s.claim}, but it is {s.truth}")
    compared = {}
    for s in statements:
        compared[s.order, s.what] = compared.get((s.order, s.what), 0) + s.points
    return Verdict(min((s.verdict for s in statements), key=STRENGTH.index), min(compared.values()))


def proved_by_formulas(op, parameters, order):
    """Whether the rules would be proved if numbers had nothing to say."""
    def agreeing(case, region, truths, *rest):
        return {key: Found(POINTS) for key in truths}, ""

    with mock.patch.object(proving_statements, "_numbers", agreeing):
        return all(s.verdict == "proved" for s in found(op, parameters, order))
