"""Alternative forms of a sum, of which the most compact is chosen: with softmax, without a minus before a difference, with products of inverses."""

from __future__ import annotations

from symgrad.matrixcalc.functions import FUNCTIONS
from symgrad.matrixcalc.simplify import simplify
from symgrad.matrixcalc.terms import ONE, Applied, Factor, Head, Index, MatrixFunction, Sum, Term

__all__ = ["reflect_sigmoids", "split_inverses", "with_softmax", "without_minus"]


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
