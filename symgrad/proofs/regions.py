"""Regions of a domain in which an op is smooth: between special points, by the largest argument, or by signs; and equalities in a rule's conditions.

"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, prod
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.algebra.solving import solutions
from symgrad.carriers.symbolic import exact_number
from symgrad.graph.domains import Domain
from symgrad.proofs.case import Case, domain_of
from symgrad.proofs.tape import Tape
from symgrad.sampling.conditions import switching_functions

KINKS = (sympy.Max, sympy.Min, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise, sympy.Heaviside, sympy.frac)
KINKED = (*KINKS, Relational)
ERRORS = (NotImplementedError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RecursionError, RuntimeError, AssertionError)
Switch = tuple[Any, bool]


def borders(forward: Iterable[Any], tied: Sequence[Any] = ()) -> list[Switch]:
    """Expressions that are 0 (or, if the second is true, an integer) on a boundary of a forward rule, where its derivative is a convention.

    An op that selects among its arguments, the `tied`, has a boundary where two of them are equal.
    """
    ties = [(a - b, False) for a, b in itertools.combinations(tied, 2)]
    return list(dict.fromkeys([*ties, *(found for e in forward if e.has(*KINKS) for found in switching_functions(e))]))


def zero_switches(switches: Sequence[Switch], at: Mapping[Any, Any]) -> list[Switch]:
    """The boundaries of the forward rule that a point is on; `at` may also map some symbols to expressions of others."""
    return [switch for switch in switches if _is_zero(switch[0].xreplace(dict(at)), switch[1])]


def _is_zero(v: Any, lattice: bool) -> bool:
    v = v if v.is_Rational else sympy.expand(v)
    if v.is_number and not v.is_Rational:
        v = v.evalf(60)
        v = sympy.nsimplify(v.round(40)) if v.is_real and abs(v - v.round()) < sympy.Float(10) ** -40 else v
    return bool(v == 0 or lattice and v.is_Integer)


MOST = 16  # the largest number of regions


@dataclass(frozen=True)
class Region:
    """A part of the domain: the arguments in terms of new symbols (`mapping`), the other way round (`back`), and the ranges of the symbols.

    An empty `mapping` is the full domain.
    """

    text: str
    mapping: Mapping[sympy.Symbol, Any] = field(default_factory=dict)
    back: Mapping[sympy.Symbol, Any] = field(default_factory=dict)
    domains: Mapping[sympy.Symbol, Domain] = field(default_factory=dict)

    def __call__(self, e: Any) -> Any:
        return e.xreplace(self.mapping) if self.mapping else e

    def gradient(self, tape: Tape, e: Any, by: Sequence[sympy.Symbol]) -> list[Any]:
        rates = [[(sympy.cancel(self(sympy.diff(u, x))), s) for s, u in self.back.items() if u.has(x)] + [(sympy.S.One, x)] * (x not in self.mapping)
                 for x in by]
        inner = list(dict.fromkeys(s for pairs in rates for _, s in pairs))
        found = dict(zip(inner, tape.gradient(e, inner)))
        return [tape.cut(sympy.Add(*(rate * found[s] for rate, s in pairs))) for pairs in rates]


def regions(case: Case, forward: Sequence[Any]) -> list[Region]:
    """The regions of one case, from the elements of its value as expressions; together they are the domain without the boundaries."""
    full = Region(_everywhere(case), domains=case.domains)
    if case.complex or not any(e.has(*KINKS) for e in forward):
        return [full]
    if case.single and len(case.active) == 1:
        return list(_pieces(case, forward))
    for found in (_choices(case, forward), _signs(case, forward)):
        if 0 < len(found) <= MOST:
            return found
    return [full]


def _everywhere(case: Case) -> str:
    if case.complex:
        return "the complex plane"
    names = dict.fromkeys(domain_of(case.op, i).name for i in case.active)
    return "everywhere" if set(names) <= {"REAL"} else " x ".join(domain_of(case.op, i).name for i in case.active)


def _pieces(case: Case, forward: Sequence[Any]) -> Iterator[Region]:
    """The intervals of one argument's domain between the special points and the kinks of the forward rule."""
    (x,) = case.variables
    d = domain_of(case.op, case.active[0])
    p, q = sympy.symbols("p q", positive=True)
    found = [solutions(sympy.Eq(u, 0), {}) for u, lattice in borders(forward) if not lattice and u.free_symbols == {x}]
    kinks = {at[x] for part in found for at in part or () if at[x].is_Rational}
    cuts = sorted({exact_number(point[0]) for point in case.op.docs.special} | kinks or {sympy.S.Zero}) + list(map(exact_number, d.excluded))
    for interval in d.intervals:
        inner = sorted({c for c in cuts if interval.low < c < interval.high})
        for low, high in itertools.pairwise([interval.low, *inner, interval.high]):
            a, b = (None if abs(end) == inf else exact_number(end) if isinstance(end, float) else end for end in (low, high))
            text = f"{x} < {_short(high)}" if a is None else f"{x} > {_short(low)}" if b is None else f"{_short(low)} < {x} < {_short(high)}"
            inside = x if a is None and b is None else b - p if a is None else a + p if b is None else (a + b * q) / (1 + q)
            if inside == x:
                yield Region("everywhere")
            else:
                s = q if inside.has(q) else p
                back = (x - a) / (b - x) if inside.has(q) else b - x if a is None else x - a
                yield Region(text, {x: inside}, {s: back})


def _short(x: Any) -> str:
    return f"{float(x) + 0.0:g}"


def _choices(case: Case, forward: Sequence[Any]) -> list[Region]:
    """The regions by the arguments at which each maximum or minimum is attained."""
    extremes = sorted(set().union(*(e.atoms(sympy.Max, sympy.Min) for e in forward)), key=str)
    variables, used = set(case.variables), set[Any]()
    if not extremes or any(e.has(*set(KINKS) - {sympy.Max, sympy.Min}) for e in forward):
        return []
    for extreme in extremes:
        if not set(extreme.args) <= variables or used & set(extreme.args):
            return []
        used |= set(extreme.args)
    if prod(len(extreme.args) for extreme in extremes) > MOST:
        return []
    out = []
    for chosen in itertools.product(*(sorted(extreme.args, key=str) for extreme in extremes)):
        mapping: dict[Any, Any] = {}
        back: dict[Any, Any] = {}
        for extreme, best in zip(extremes, chosen):
            sign = sympy.Integer(-1 if isinstance(extreme, sympy.Max) else 1)
            gaps = {x: sympy.Symbol(f"p_{x}", positive=True) for x in extreme.args if x != best}
            mapping |= {x: best + sign * gap for x, gap in gaps.items()}
            back |= {gap: sign * (x - best) for x, gap in gaps.items()}
        words = {word: [str(best) for extreme, best in zip(extremes, chosen) if isinstance(extreme, kind)]
                 for word, kind in (("largest", sympy.Max), ("smallest", sympy.Min))}
        out.append(Region("; ".join(f"{', '.join(names)} {word}" for word, names in words.items() if names), mapping, back))
    return out


def _signs(case: Case, forward: Sequence[Any]) -> list[Region]:
    """The regions by the signs of the arguments inside absolute values, signs and integer parts."""
    inside = set().union(*(e.atoms(*KINKS) for e in forward))
    variables = [x for x in case.variables if any(e.has(x) for e in inside)]
    if not variables or len(variables) > 3 or any(case.domains[x].intervals[0].low != -inf for x in variables):
        return []
    out = []
    for signs in itertools.product((1, -1), repeat=len(variables)):
        sizes = {x: sympy.Symbol(f"p_{x}", positive=True) for x in variables}
        text = ", ".join(f"{x} {'>' if sign > 0 else '<'} 0" for x, sign in zip(variables, signs))
        out.append(Region(text, {x: sign * sizes[x] for x, sign in zip(variables, signs)}, {sizes[x]: sign * x for x, sign in zip(variables, signs)}))
    return out


def constants(case: Case) -> list[Fraction]:
    """The coordinates of the op's special points."""
    return sorted({Fraction(x) for point in case.op.docs.special for x in point if abs(x) < 100})
