"""The formulas of the rules of a case, and the points that their conditions ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers import symbolic
from symgrad.graph.op import Op
from symgrad.proofs.case import Case, Key
from symgrad.proofs.conditions import ERRORS
from symgrad.proofs.regions import Region
from symgrad.reference.recorder import Recorder
from symgrad.sampling.conditions import vectors

__all__ = ["asked", "asked_by_rules", "claims_of"]

ASKED = 72  # points
SECONDS = 6.0  # for the formulas of one order
BASES = (1.5, 2.5, -0.75, 4.0), (-2.0, 3.0, 12.0, 0.5)  # numbers of the other coordinates, with few bits, so that equalities are met exactly


def claims_of(case: Case, region: Region, order: int) -> tuple[dict[Key, list[Any]], str]:
    """What the rules say inside a region, as formulas; and why they have none."""
    def supply(name: str, shape: tuple[int, ...]) -> Any:
        return symbolic.ExactExpressions.fill([region(s) for s in case.supply(name, shape).ravel().tolist()], shape)

    try:
        recorder = Recorder(symbolic, lambda x: symbolic.lift_value(x, exact=True), case.complex)
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
