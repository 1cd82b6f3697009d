"""The conditions of a rule's formula.

An equality holds on a set without interior; there the formula is proved by itself, with the solutions inserted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.sampling.conditions import switching

__all__ = ["ERRORS", "KINKS", "borders", "generic", "is_border"]

KINKS = (sympy.Max, sympy.Min, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise, sympy.Heaviside, sympy.frac)
ERRORS = (NotImplementedError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RecursionError, RuntimeError, AssertionError)
Switch = tuple[Any, bool]


def generic(e: Any) -> tuple[Any, list[Any]]:
    """An expression as it is away from its equalities, and these equalities; those between steps become inequalities, which hold on intervals.

    >>> x = sympy.Symbol("x", real=True)
    >>> generic(sympy.Piecewise((2 * x, sympy.Eq(x, 3)), (x, True)))
    (x, [Eq(x, 3)])
    >>> generic(sympy.Piecewise((2 * x, sympy.Eq(sympy.floor(x / 100), 3)), (x, True)))[0].args[0][1]
    (x >= 300) & (x < 400)
    """
    if not e.has(sympy.Piecewise):
        return e, []
    stepped = {c: _as_inequalities(c) for c in e.atoms(sympy.Eq, sympy.Ne)}
    e = e.xreplace({c: plain for c, plain in stepped.items() if plain != c})
    dropped = {c: sympy.Eq(c.lhs, c.rhs) for c in e.atoms(sympy.Eq, sympy.Ne) if not (c.lhs - c.rhs).has(*KINKS)}
    out = e.xreplace({c: sympy.S.false if isinstance(c, sympy.Eq) else sympy.S.true for c in dropped})
    return out, sorted(set(dropped.values()), key=str)


def _as_inequalities(c: Relational) -> Any:
    """a f(u) + b = 0 with a step, a sign or an absolute value f, in terms of u; a remainder of what is no integer is none."""
    held, f = sympy.Dummy(), _only(c)
    terms = sympy.Poly((c.lhs - c.rhs).xreplace({f: held}), held).all_coeffs() if f is not None else []
    if len(terms) != 2 or not all(t.is_Rational for t in terms):
        return c
    u, n = f.args[0], -terms[1] / terms[0]
    if isinstance(f, sympy.Mod):
        part, whole = sympy.expand(u.replace(sympy.Mod, lambda a, m: a - m * sympy.floor(a / m)) - n).as_coeff_Add()
        return c if not f.args[1].is_Integer or not whole.is_integer or part.is_Integer else sympy.S(isinstance(c, sympy.Ne))
    if isinstance(f, sympy.Abs):
        out = sympy.Or(sympy.Eq(u, n), sympy.Eq(u, -n)) if n >= 0 else sympy.S.false
    elif isinstance(f, sympy.sign):
        out = {0: sympy.Eq(u, 0), 1: u > 0, -1: u < 0}.get(n, sympy.S.false)
    elif not n.is_Integer:
        out = sympy.S.false
    else:
        out = sympy.And(u >= n, u < n + 1) if isinstance(f, sympy.floor) else sympy.And(u > n - 1, u <= n)
    return out if isinstance(c, sympy.Eq) else sympy.Not(out)


def _only(c: Relational) -> Any:
    """The step, sign or absolute value of an equality that has one, not inside another."""
    found = [f for f in (c.lhs - c.rhs).atoms(sympy.floor, sympy.ceiling, sympy.sign, sympy.Abs, sympy.Mod)]
    outer = [f for f in found if not any(f is not g and g.has(f) for g in found)]
    if len(outer) != 1 or (c.lhs - c.rhs).xreplace({outer[0]: sympy.S.Zero}).has(*KINKS) or not (c.lhs - c.rhs).is_polynomial(outer[0]):
        return None
    return outer[0]


def borders(forward: Iterable[Any], tied: Sequence[Any] = ()) -> list[Switch]:
    """What is 0 (or, if the second is true, an integer) where a forward switches, so that its derivative is a convention.

    A forward that selects among its arguments, the `tied`, switches where two of them are equal.
    """
    ties = [(a - b, False) for a, b in itertools.combinations(tied, 2)]
    return list(dict.fromkeys([*ties, *(found for e in forward if e.has(*KINKS) for found in switching(e))]))


def is_border(switches: Sequence[Switch], at: Mapping[Any, Any]) -> bool:
    """Whether a forward switches at a point, or everywhere on a set that expressions for some symbols describe."""
    for u, lattice in switches:
        v = sympy.expand(u.xreplace(dict(at)))
        if v.is_number and not v.is_Rational:
            v = v.evalf(60)
            v = sympy.nsimplify(v.round(40)) if v.is_real and abs(v - v.round()) < sympy.Float(10) ** -40 else v
        if v == 0 or lattice and v.is_Integer:
            return True
    return False
