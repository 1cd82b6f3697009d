"""Cholesky factors: what is made of them and has no need of them, such as log det A = 2 Σ log L[i, i] and A⁻¹ = L⁻ᵀ L⁻¹, is written without them."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symgrad.matrixcalc.functions import FUNCTIONS
from symgrad.matrixcalc.labelled import Labelled, square
from symgrad.matrixcalc.terms import ONE, Applied, Factor, Index, MatrixFunction, Sum, Term, rename_indices

__all__ = ["cholesky_factor", "is_factor", "without_factors"]


def cholesky_factor(x: Labelled) -> Labelled:
    """The lower triangular factor of the symmetric part of a matrix."""
    matrix = square(x)
    half = [Term(t.coefficient / 2, t.factors) for t in matrix.terms]
    turned = dict(zip(matrix.out, matrix.out[::-1]))
    total = Sum(matrix.out, (*half, *(rename_indices(t, turned) for t in half)))
    i, k = (Index(i.dimension) for i in matrix.out)
    return Labelled((i, k), Sum((i, k), (Term(ONE, (Factor(MatrixFunction("cholesky", total), (i, k)),)),)))


def is_factor(x: Labelled, upper: bool) -> bool:
    """Whether a value is a Cholesky factor, or its transpose with `upper`."""
    only = _only(x.total)
    return only is not None and only.head.kind == "cholesky" and only.indices == (x.indices[::-1] if upper else x.indices)


def _only(total: Sum) -> Factor | None:
    """The factor that is the whole sum."""
    term = total.terms[0] if len(total.terms) == 1 else None
    return term.factors[0] if term and term.coefficient == 1 and len(term.factors) == 1 and term.factors[0].power == 1 else None


def without_factors(total: Sum) -> Sum:
    """A sum with Cholesky factors replaced by the matrices themselves where they can be."""
    terms = []
    for term in total.terms:
        factors = [part for f in term.factors for part in _copies(_inside(f), term, total.out)]
        coefficient = term.coefficient
        while (found := _replaced(factors, total.out)) is not None:
            number, factors = found
            coefficient = coefficient * number
        terms.append(Term(coefficient, tuple(factors)))
    return Sum(total.out, tuple(terms))


def _inside(f: Factor) -> Factor:
    """A factor whose argument is without Cholesky factors."""
    argument = f.head.argument
    if argument is None or f.head.kind == "cholesky":
        return f
    inner = without_factors(argument)
    unchanged = all(a.factors == b.factors for a, b in zip(inner.terms, argument.terms))
    return f if unchanged else Factor(f.head.of(inner), f.indices, f.power)


def _copies(f: Factor, term: Term, out: Sequence[Index]) -> list[Factor]:
    """The two factors of a square that is summed over, if it is that of a product with a Cholesky factor."""
    if f.power != 2 or not isinstance(f.head, Applied) or f.head.function is not None or len(f.head.argument.terms) != 1 or len(f.indices) != 1 \
            or f.indices[0] in out or sum(f.indices[0] in g.indices for g in term.factors) != 1:
        return [f]
    inner = f.head.argument
    rows = [found[1] for g in inner.terms[0].factors if (found := _inverse_factor(g))]
    if inner.terms[0].coefficient != 1 or inner.out[0] not in rows:
        return [f]
    return [g for _ in range(2) for g in inner.rename(f.indices)[0].factors]


def _inverse_factor(f: Factor) -> tuple[Sum, Index, Index] | None:
    """The matrix A with the factor L, and the indices at which a factor is L⁻¹."""
    inner = _only(f.head.argument) if f.head.kind == "inverse" and f.power == 1 else None
    if inner is None or inner.head.kind != "cholesky":
        return None
    row, column = f.indices if inner.indices == f.head.argument.out else f.indices[::-1]
    return inner.head.argument, row, column


def _replaced(factors: Sequence[Factor], out: Sequence[Index]) -> tuple[sympy.Expr, list[Factor]] | None:
    """A number and fewer factors with the same sum; None if no Cholesky factor can be replaced."""
    def alone(index: Index, *some: Factor) -> bool:
        return index not in out and not any(index in g.indices for g in factors if all(g is not f for f in some))

    for f in factors:
        inner = _only(f.head.argument) if isinstance(f.head, Applied) and f.head.function is FUNCTIONS["log"] and f.power == 1 else None
        if inner is not None and inner.head.kind == "cholesky" and inner.indices[0] is inner.indices[1] and alone(f.indices[0], f):
            return sympy.Rational(1, 2), [Factor(MatrixFunction("logdet", inner.head.argument)) if g is f else g for g in factors]
    for n, f in enumerate(factors):
        for g in factors[n + 1:]:
            rest = [h for h in factors if h is not f and h is not g]
            one, other = _inverse_factor(f), _inverse_factor(g)
            if one and other and one[1] is other[1] and one[0].key == other[0].key and alone(one[1], f, g):
                return ONE, [Factor(MatrixFunction("inverse", one[0]), (one[2], other[2])), *rest]
            if f.head.kind == g.head.kind == "cholesky" and f.power == g.power == 1 and f.head.key == g.head.key \
                    and f.indices[1] is g.indices[1] and alone(f.indices[1], f, g):
                return ONE, [Factor(Applied(None, f.head.argument), (f.indices[0], g.indices[0])), *rest]
    return None
