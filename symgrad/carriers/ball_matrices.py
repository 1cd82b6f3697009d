"""Functions of one matrix of balls, by Arb's: the result contains that of every matrix which the balls contain. This module needs python-flint."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import acb, acb_mat, arb, arb_mat

from symgrad.carriers.digits import Undecided
from symgrad.carriers.lapack import hermitian_cells
from symgrad.carriers.spectra import adjoint_of_cells, eigenvalues_of_numbers


def _matrix(a: Any) -> Any:
    elements = a.ravel().tolist()
    return (acb_mat if any(isinstance(x, acb) for x in elements) else arb_mat)(*a.shape, elements)


def _cells(m: Any) -> Any:
    return np.array(m.entries(), object).reshape((m.nrows(), m.ncols()))


def _inverse(cls: Any, a: Any) -> Any:
    return _solution(cls, a, np.array([[arb(i == j) for j in range(len(a))] for i in range(len(a))], object).reshape(a.shape))


def _solution(cls: Any, a: Any, b: Any) -> Any:
    m, right = _matrix(a), _matrix(b)
    try:
        return _cells((m if isinstance(right, arb_mat) else acb_mat(m)).solve(right if isinstance(m, arb_mat) else acb_mat(right)))
    except ZeroDivisionError:
        raise Undecided("a matrix is too close to a singular one") from None


def _determinant(cls: Any, a: Any) -> Any:
    return _matrix(a).det()


def _separated(a: Any) -> tuple[list[Any], Any]:
    """Balls of the eigenvalues of a matrix, in any order, and of an eigenvector of each. Raises Undecided for balls that overlap."""
    try:
        return acb_mat(_matrix(a)).eig(right=True)
    except ValueError:
        raise Undecided("two eigenvalues are too close to each other to be separated") from None


def _spectrum(cls: Any, a: Any) -> tuple[list[Any], Any]:
    """The eigenvalues of a Hermitian matrix, ascending, and balls that contain an eigenvector of any length for each, in columns.

    The eigenvalues are real, and their balls do not overlap, so that the order of the midpoints is theirs.
    """
    a = hermitian_cells(cls, a)
    if not a.size:
        return [], a
    values, vectors = _separated(a)
    order = sorted(range(len(a)), key=lambda i: values[i].real.mid())
    ascending = [values[i].real for i in order]
    if not all(x < y for x, y in zip(ascending, ascending[1:])):
        raise Undecided("two eigenvalues are too close to each other to be put in order")
    return ascending, _cells(vectors)[:, order]


def _eigenvalues(cls: Any, a: Any) -> Any:
    return _spectrum(cls, a)[0]


def _eigenvectors(cls: Any, a: Any) -> Any:
    """Eigenvectors of length 1 whose largest element is positive. Raises Undecided if two elements may be the largest."""
    _, v = _spectrum(cls, a)
    real = not any(isinstance(x, acb) for x in a.ravel().tolist())
    for j in range(len(v)):
        scale = _scale(v[:, j].tolist())
        v[:, j] = [(x * scale).real if real else x * scale for x in v[:, j].tolist()]
    return v


def _general_spectrum(a: Any) -> tuple[list[Any], Any]:
    """The eigenvalues of any matrix, in the order of LAPACK's for the midpoints, and an eigenvector of any length for each, in columns."""
    if not a.size:
        return [], a
    values, vectors = _separated(a)
    left, order = list(range(len(a))), []
    for w in eigenvalues_of_numbers(np.array([complex(x.mid()) for x in a.ravel().tolist()]).reshape(a.shape)):
        order.append(min(left, key=lambda i, w=w: abs(complex(values[i].mid()) - w)))
        left.remove(order[-1])
    return [values[i] for i in order], _cells(vectors)[:, order]


def _general_eigenvalues(cls: Any, a: Any) -> Any:
    return _general_spectrum(a)[0]


def _general_eigenvectors(cls: Any, a: Any) -> Any:
    """Eigenvectors of length 1 whose largest element is positive. Raises Undecided if two elements may be the largest."""
    _, v = _general_spectrum(a)
    for j in range(len(v)):
        column = v[:, j].tolist()
        v[:, j] = [x * _scale(column) for x in column]
    return v


def _scale(column: list[Any]) -> Any:
    """The factor with which a column has length 1 and its largest element is positive."""
    sizes = [abs(x) for x in column]
    at = max(range(len(sizes)), key=lambda i: sizes[i].mid())
    if not all(i == at or x < sizes[at] for i, x in enumerate(sizes)):
        raise Undecided("two elements of an eigenvector are too close to each other to choose its sign")
    return column[at].conjugate() / (sizes[at] * sum((x * x for x in sizes), arb(0)).sqrt())


def _gram(a: Any) -> Any:
    """Aᴴ A or A Aᴴ, the smaller of them, whose eigenvalues are the squares of the singular values."""
    return adjoint_of_cells(a) @ a if a.shape[0] >= a.shape[1] else a @ adjoint_of_cells(a)


def _singular_values(cls: Any, a: Any) -> Any:
    return [x.sqrt() for x in reversed(_spectrum(cls, _gram(a))[0])] if a.size else a.ravel()[:0]


def _singular_vectors(cls: Any, a: Any) -> Any:
    """U above V; the largest element of a column of U is positive. Raises Undecided if two elements may be the largest."""
    if not a.size:
        return np.concatenate([a, a.T])[:, :min(a.shape)]
    tall, values = a.shape[0] >= a.shape[1], np.array(_singular_values(cls, a), object)
    some = _eigenvectors(cls, _gram(a))[:, ::-1]
    other = (a @ some if tall else adjoint_of_cells(a) @ some) / values
    both = np.concatenate([other, some] if tall else [some, other])
    for j, column in enumerate(both[:len(a)].T.tolist()):
        sizes = [abs(x) for x in column]
        at = max(range(len(column)), key=lambda i, sizes=sizes: sizes[i].mid())
        if not all(i == at or x < sizes[at] for i, x in enumerate(sizes)):
            raise Undecided("two elements of a singular vector are too close to each other to choose its sign")
        both[:, j] = both[:, j] * (sizes[at] / column[at])
    return both


def _pseudo_inverse(cls: Any, a: Any, atol: float, rtol: float) -> Any:
    values = _singular_values(cls, a)
    if not all(x > atol and x > rtol * values[0] for x in values):
        raise Undecided("a singular value is too close to the tolerance of the pseudo-inverse")
    back = adjoint_of_cells(a)
    if not a.size:
        return back
    return _solution(cls, back @ a, back) if a.shape[0] >= a.shape[1] else adjoint_of_cells(_solution(cls, a @ back, a))


def _exponential(cls: Any, a: Any) -> Any:
    return _cells(_matrix(a).exp()) if a.size else a


BALL_MATRICES = {"matrix_inverse": _inverse, "solve_system": _solution, "determinant": _determinant, "hermitian_eigenvalues": _eigenvalues,
                 "hermitian_eigenvectors": _eigenvectors, "matrix_exponential": _exponential,
                 "singular_values": _singular_values, "singular_vectors": _singular_vectors,
                 "eigenvalues": _general_eigenvalues, "eigenvectors": _general_eigenvectors, "pseudo_inverse": _pseudo_inverse}
