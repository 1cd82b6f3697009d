"""Derivatives of the normal form by the elements of a symbol."""

from __future__ import annotations

from typing import Any

import sympy

from symgrad.matrixcalc.functions import FUNCTIONS, ElementwiseFunction
from symgrad.matrixcalc.simplify import simplify
from symgrad.matrixcalc.terms import (
    ONE,
    Applied,
    Delta,
    Factor,
    Index,
    MatrixFunction,
    NoCompactForm,
    Sum,
    Symbol,
    Term,
    as_one_factor,
    constant,
    with_lengths,
)


def derivative(total: Sum, symbol: Symbol, by: tuple[Index, ...] = ()) -> Sum:
    """The derivative of every element by every element of a symbol, whose axes come last: ∂y[i…] / ∂x[k…] at [i…, k…].

    The elements of a symbol vary independently, also those of a symmetric matrix. `by` are the indices of the symbol's axes, by default new ones.
    """
    by = by or tuple(Index(d) for d in symbol.dimensions)
    return simplify(Sum(total.out + by, tuple(_terms(total, symbol, by))), unwrap=False)


def _terms(total: Sum, symbol: Symbol, by: tuple[Index, ...]) -> list[Term]:
    """The product rule."""
    out = []
    for term in total.terms:
        for n, f in enumerate(term.factors):
            for inner in _factor(f, symbol, by):
                found = Term(term.coefficient * inner.coefficient, term.factors[:n] + inner.factors + term.factors[n + 1:])
                out.append(with_lengths(found, f.indices, total.out))
    return out


def _factor(f: Factor, symbol: Symbol, by: tuple[Index, ...]) -> list[Term]:
    head, indices, power = f
    if isinstance(head, Symbol):
        if head.name != symbol.name:
            return []
        inner = [Term(ONE, tuple(Factor(Delta(i.dimension), (i, k)) for i, k in zip(indices, by)))]
    elif head.argument is None:
        return []
    else:
        argument = head.argument
        inside = derivative(argument, symbol, by)
        if not inside.terms:
            return []
        if head.kind == "cholesky":
            raise NoCompactForm("matrix_expr: the derivative of linalg.cholesky has no compact form; log det A is logdet(A), or twice the sum of "
                                "the logarithms of its diagonal, and A⁻¹b is linalg.solve(A, b), or cholesky_solve")
        if isinstance(head, Applied):
            slope = None if head.function is None else _slope(head.function, argument, indices)
            if head.function is not None and slope is None:
                return []
            inner = [Term(t.coefficient, t.factors if slope is None else (slope, *t.factors)) for t in inside.rename(indices + by)]
        else:
            a, b = (Index(i.dimension) for i in argument.out)
            inverse = MatrixFunction("inverse", argument)
            middle = inside.rename((a, b, *by))
            if head.kind == "inverse":
                i, k = indices
                inner = [Term(-t.coefficient, (Factor(inverse, (i, a)), *t.factors, Factor(inverse, (b, k)))) for t in middle]
            else:
                outside = (f.head,) if head.kind == "det" else ()
                inner = [Term(t.coefficient, (*(Factor(h) for h in outside), Factor(inverse, (b, a)), *t.factors)) for t in middle]
    if power == 1:
        return inner
    return [Term(power * t.coefficient, (Factor(head, indices, power - 1), *t.factors)) for t in inner]


def _slope(function: ElementwiseFunction, argument: Sum, indices: tuple[Index, ...]) -> Factor | None:
    """The derivative of an elementwise function as one factor; None if it is zero."""
    out = tuple(Index(i.dimension) for i in argument.out)

    def named(name: str, power: Any, at: tuple[Index, ...]) -> Factor:
        inner = Sum(out, argument.rename(out))
        return as_one_factor(inner, at, power) if not name else Factor(Applied(FUNCTIONS[name], inner), at, power)

    def number(p: Any) -> Any:
        return sympy.Rational(*p) if isinstance(p, tuple) else sympy.sympify(p)

    terms = []
    for coefficient, factors in function.derivative:
        product = []
        for base, power in factors:
            if isinstance(base, str):
                product.append(named(base, number(power), out))
            else:
                sign, name, inside = base
                one = Sum(out, (constant(1).terms[0], Term(sympy.sympify(sign), (named(name, number(inside), out),))))
                product.append(as_one_factor(one, out, number(power)))
        terms.append(Term(sympy.sympify(coefficient), tuple(product)))
    return as_one_factor(Sum(out, tuple(terms)), indices) if terms else None
