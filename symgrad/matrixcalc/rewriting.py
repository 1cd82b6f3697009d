"""Alternative forms of a sum: with softmax, without a minus before a difference, with products of inverses, and without Cholesky factors.

What is made of Cholesky factors and has no need of them, such as log det A = 2 Σ log L[i, i] and A⁻¹ = L⁻ᵀ L⁻¹, is written without them.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symgrad.matrixcalc.functions import FUNCTIONS
from symgrad.matrixcalc.labelled import Labelled, square
from symgrad.matrixcalc.simplify import simplify
from symgrad.matrixcalc.terms import ONE, Applied, Factor, Head, Index, MatrixFunction, Sum, Term, rename_indices


def reflect_sigmoids(total: Sum) -> Sum:
    """A sum with every σ(-x) replaced by 1 - σ(x)."""
    sigmoid, terms = FUNCTIONS["sigmoid"], []
    for term in total.terms:
        factors = []
        for f in term.factors:
            inner = f.head.argument
            if isinstance(f.head, Applied) and f.head.function is None:
                f = Factor(Applied(None, reflect_sigmoids(inner)), f.indices, f.power)
            elif isinstance(f.head, Applied) and f.head.function is sigmoid and inner.terms and all(t.coefficient < 0 for t in inner.terms):
                opposite = Applied(sigmoid, Sum(inner.out, tuple(Term(-t.coefficient, t.factors) for t in inner.terms)))
                f = Factor(Applied(None, Sum(inner.out, (Term(ONE), Term(-ONE, (Factor(opposite, inner.out),))))), f.indices, f.power)
            factors.append(f)
        terms.append(Term(term.coefficient, tuple(factors)))
    return Sum(total.out, tuple(terms))


def without_minus(total: Sum) -> Sum:
    """A product of -1 and a difference as the opposite difference."""
    terms = []
    for term in total.terms:
        brackets = [f for f in term.factors if isinstance(f.head, Applied) and f.head.function is None and f.power == 1]
        differences = [f for f in brackets if any(t.coefficient < 0 for t in f.head.argument.terms)]
        if len(total.terms) == 1 and term.coefficient == -1 and len(brackets) == len(differences) == 1:
            (bracket,) = brackets
            inner = Sum(bracket.head.argument.out, tuple(Term(-t.coefficient, t.factors) for t in bracket.head.argument.terms))
            opposite = Factor(Applied(None, inner), bracket.indices)
            term = Term(-term.coefficient, tuple(opposite if f is bracket else f for f in term.factors))
        terms.append(term)
    return Sum(total.out, tuple(terms))


def with_softmax(total: Sum, memo: dict[Head, Head] | None = None) -> Sum:
    """A sum in which every exp(x) / Σ exp(x) of a vector x is one factor."""
    memo, terms = {} if memo is None else memo, []
    for term in total.terms:
        factors = []
        for f in term.factors:
            if isinstance(f.head, Applied) and f.head not in memo:
                inner = with_softmax(f.head.argument, memo)
                memo[f.head] = f.head if inner is f.head.argument else Applied(f.head.function, inner)
            factors.append(Factor(memo.get(f.head, f.head), f.indices, f.power))
        terms.append(Term(term.coefficient, _softmaxes(factors)))
    unchanged = all(f.head is g.head for t, u in zip(terms, total.terms) for f, g in zip(t.factors, u.factors))
    return total if unchanged and all(len(t.factors) == len(u.factors) for t, u in zip(terms, total.terms)) else Sum(total.out, tuple(terms))


def _softmaxes(factors: list[Factor]) -> tuple[Factor, ...]:
    for n, below in enumerate(factors):
        if below.power >= 0 or below.indices or not isinstance(below.head, Applied) or below.head.function is not None:
            continue
        terms = below.head.argument.terms
        if len(terms) != 1 or terms[0].coefficient != 1 or len(terms[0].factors) != 1 or len(terms[0].factors[0].indices) != 1:
            continue
        summed = terms[0].factors[0]
        above = [f for f in factors if f.head.key == summed.head.key and f.power > 0]
        if not isinstance(summed.head, Applied) or summed.head.function is None or summed.head.function.name != "exp" or summed.power != 1 or \
                sum(f.power for f in above) != -below.power:
            continue
        softmax = MatrixFunction("softmax", summed.head.argument)
        rest = [f for k, f in enumerate(factors) if k != n]
        return _softmaxes([Factor(softmax, f.indices, f.power) if any(f is g for g in above) else f for f in rest])
    return tuple(factors)


def split_inverses(total: Sum, kinds: tuple[str, ...] = ("inverse", "det")) -> Sum:
    """A sum with inverses and determinants of products of square matrices as products of those of the factors."""
    terms = []
    for term in total.terms:
        factors = []
        for f in term.factors:
            chain = _chain(f.head.argument) if f.head.kind in kinds and f.power == 1 else None
            if chain is None:
                factors.append(f)
                continue
            if f.head.kind == "det":
                factors += [Factor(f.head.of(m)) for m in chain]
                continue
            indices = [f.indices[0], *(Index(f.indices[0].dimension) for _ in chain[1:]), f.indices[1]]
            factors += [Factor(f.head.of(m), (indices[n], indices[n + 1])) for n, m in enumerate(reversed(chain))]
        terms.append(Term(term.coefficient, tuple(factors)))
    return simplify(Sum(total.out, tuple(terms)))


def _chain(matrix: Sum) -> list[Sum] | None:
    """The factors of a matrix that is a product of several square matrices, None otherwise."""
    if len(matrix.terms) != 1 or matrix.terms[0].coefficient != 1 or len(matrix.terms[0].factors) < 2:
        return None
    rest, at, out = list(matrix.terms[0].factors), matrix.out[0], []
    while rest:
        f = next((g for g in rest if at in g.indices), None)
        if f is None or len(f.indices) != 2 or f.power != 1 or f.indices[0] is f.indices[1] or sum(at in g.indices for g in rest) != 1:
            return None
        if f.indices[0].dimension is not f.indices[1].dimension:
            return None
        rest.remove(f)
        is_transposed = f.indices[1] is at
        i, k = Index(at.dimension), Index(at.dimension)
        out.append(Sum((i, k), (Term(ONE, (Factor(f.head, (k, i) if is_transposed else (i, k)),)),)))
        at = f.indices[0] if is_transposed else f.indices[1]
    return out if at is matrix.out[1] else None


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
