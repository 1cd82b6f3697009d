"""Matrices of domains at exact points: free numbers are made a matrix of the domain, or are known not to be one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy

from symgrad.graph.domains import MatrixDomain
from symgrad.proofs.case import Case, domain_of

HERMITIAN = ("symmetric", "spd", "well_separated_spectrum")


def has_matrices(case: Case) -> bool:
    """Whether an argument has a domain of matrices."""
    return any(isinstance(domain_of(case.op, i), MatrixDomain) for i in case.active)


def fitted(case: Case, at: Mapping[Any, Any]) -> dict[Any, Any]:
    """The values of symbols, with those of each matrix changed to a matrix of its kind: Hermitian, positive definite, triangular or orthogonal.

    Kinds that are all but some matrices, such as nonsingular ones, are not changed.
    """
    out = dict(at)
    for domain, cells, rows in _matrices(case):
        for i in range(rows):
            of = cells[i]
            symbols = [s for s in of.ravel().tolist() if s.free_symbols]
            if all(s in at for e in symbols for s in e.free_symbols):
                out |= _solved(of, _made(domain.kind, _matrix(of, at)))
    return out


def is_inside(case: Case, at: Mapping[Any, Any]) -> bool:
    """Whether the values of the symbols are matrices of the domains. A symbol without a value leaves it open, which is False."""
    for domain, cells, rows in _matrices(case):
        for i in range(rows):
            values = _matrix(cells[i], at)
            if values.free_symbols or not _belongs(domain.kind, values):
                return False
    return True


def _matrices(case: Case) -> Iterator[tuple[MatrixDomain, Any, int]]:
    """For each argument that is a batch of matrices (or vectors): its domain, the batch as one leading axis, and its length."""
    for i in case.active:
        domain = domain_of(case.op, i)
        if isinstance(domain, MatrixDomain):
            cells = case.symbols[case.names[i]]
            rank = 1 if domain.kind == "distinct" else 2
            batch = cells.reshape((-1, *cells.shape[len(cells.shape) - rank:]))
            yield domain, batch, len(batch)


def _matrix(cells: Any, at: Mapping[Any, Any]) -> Any:
    rows = cells.tolist() if cells.ndim == 2 else [cells.tolist()]
    return sympy.Matrix(len(rows), len(rows[0]), [sympy.sympify(e).xreplace(dict(at)) for row in rows for e in row])


def _solved(cells: Any, values: Any) -> dict[Any, Any]:
    """The values of the symbols with which the cells, symbols or a + b i of two of them, have these values."""
    out: dict[Any, Any] = {}
    for e, x in zip(cells.ravel().tolist(), values):
        if e.is_Symbol:
            out[e] = x
        else:
            real, imag = e.as_real_imag()
            out |= dict(zip((real, imag), x.as_real_imag()))
    return out


def _made(kind: str, p: Any) -> Any:
    if kind == "spd":
        return (p * p.H).expand() + sympy.eye(p.rows)
    if kind in HERMITIAN:
        return (p + p.H) / 2
    if kind == "lower_triangular":
        return p.lower_triangular()
    if kind == "orthogonal" and p.rows == p.cols:
        skew = p - p.H
        return ((sympy.eye(p.rows) + skew).inv() * (sympy.eye(p.rows) - skew)).applyfunc(sympy.radsimp)
    return p


def _belongs(kind: str, a: Any) -> bool:
    if kind == "distinct":
        return len(set(a)) == len(a)
    if kind in HERMITIAN and (a.rows != a.cols or not _is_zero(a - a.H)):
        return False
    if kind == "symmetric":
        return True
    if kind == "spd":
        return all(sympy.re(sympy.expand(a[:k, :k].det())) > 0 for k in range(1, a.rows + 1))
    if kind == "well_separated_spectrum":
        return _has_simple_spectrum(a)
    if kind == "well_separated_singular_values":
        small = a.H * a if a.rows >= a.cols else a * a.H
        return not _is_zero(sympy.Matrix([small.det()])) and _has_simple_spectrum(small)
    if kind in ("triangular", "lower_triangular"):
        return not any(a[i, i] == 0 for i in range(min(a.shape))) and (kind == "triangular" or _is_zero(a - a.lower_triangular()))
    if kind == "orthogonal":
        return _is_zero(a.H * a - sympy.eye(a.cols))
    if kind == "full" and any(a[i, j] == 0 for i in range(a.rows) for j in range(min(i, a.cols))):
        return False
    return not _is_zero(sympy.Matrix([(a.H * a if a.rows >= a.cols else a * a.H).det()]))


def _is_zero(a: Any) -> bool:
    return all(sympy.expand(x) == 0 for x in a)


def _has_simple_spectrum(a: Any) -> bool:
    x = sympy.Dummy()
    polynomial = sympy.expand((a - x * sympy.eye(a.rows)).det())
    return a.rows < 2 or not _is_zero(sympy.Matrix([sympy.discriminant(polynomial, x)]))
