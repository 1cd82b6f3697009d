"""Inverse, determinant, its logarithm and the solution of linear equations, with derivatives of every order.

    d A⁻¹ = -A⁻¹ dA A⁻¹,   d det A = tr(adj A dA),   d log det A = tr(A⁻¹ dA)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symgrad.carriers.cells import Cells
from symgrad.engine.data import as_value
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.op import Op
from symgrad.matrixcalc.carrier import carrier
from symgrad.matrixcalc.labelled import Labelled

__all__ = ["det", "determinant", "inv", "inverse", "logdet", "solve"]


def _transpose(xp: Any, x: Any) -> Any:
    return xp.permute(x, (1, 0))


def inverse(xp: Any, x: Any) -> Any:
    """The inverse of a matrix of any carrier."""
    if isinstance(x, Tensor):
        return _inv(x)
    if isinstance(x, Labelled):
        return carrier.inverse(x)
    if isinstance(x, Cells):
        return _cells_inverse(x)
    return np.linalg.inv(x) if isinstance(x, np.ndarray) else _adjugate_in(xp, x) / determinant(xp, x)


def determinant(xp: Any, x: Any) -> Any:
    """The determinant of a matrix of any carrier."""
    if isinstance(x, Tensor):
        return _det(x)
    if isinstance(x, Labelled):
        return carrier.determinant(x)
    if isinstance(x, Cells):
        return type(x).fill([_cells_determinant(x)], ())
    return np.asarray(np.linalg.det(x))[()] if isinstance(x, np.ndarray) else _laplace_expansion(_rows(xp, x))


def _logdeterminant(xp: Any, x: Any) -> Any:
    if isinstance(x, Labelled):
        return carrier.logdeterminant(x)
    if isinstance(x, Cells) or not isinstance(x, np.ndarray):
        return xp.log(determinant(xp, x))
    sign, log = np.linalg.slogdet(x)
    return np.float64(log if sign > 0 else np.nan if sign < 0 else -np.inf)


def _cells_determinant(x: Any) -> Any:
    """The determinant of an array of SymPy expressions or many-digit floats."""
    rows = x.tolist()
    return _laplace_expansion(rows) if _is_symbolic(x) else _eliminate(rows)[0]


def _cells_inverse(x: Any) -> Any:
    """The inverse of an array of SymPy expressions or many-digit floats. Raises ZeroDivisionError for a singular matrix of floats."""
    if _is_symbolic(x):
        return _adjugate(x) / _laplace_expansion(x.tolist())
    inverse, out = _eliminate(x.tolist())[1], x.copy()
    if not inverse:
        raise ZeroDivisionError("inv: the matrix is singular")
    for i, row in enumerate(inverse):
        for k, element in enumerate(row):
            out[i, k] = element
    return out


def _rows(xp: Any, x: Any) -> list[list[Any]]:
    """The elements of a small matrix of any carrier."""
    return [[xp.getitem(x, (i, k)) for k in range(x.shape[1])] for i in range(x.shape[0])]


def _adjugate_in(xp: Any, x: Any) -> Any:
    rows, n = _rows(xp, x), x.shape[0]
    return xp.stack([xp.stack([_cofactor(rows, k, i) for k in range(n)], 0) for i in range(n)], 0) if n > 1 else xp.ones_like(x)


def _is_symbolic(x: Any) -> bool:
    return any(isinstance(e, sympy.Basic) for e in x.ravel().tolist())


def _eliminate(rows: list[list[Any]]) -> tuple[Any, list[list[Any]]]:
    """The determinant and the inverse of a matrix of numbers, by elimination with partial pivoting."""
    n, determinant = len(rows), 1
    rows = [[*row, *(int(i == k) for k in range(n))] for i, row in enumerate(rows)]
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        pivot = rows[k][k]
        determinant = determinant * (pivot if best == k else -pivot)
        if pivot == 0:
            return determinant, []
        rows[k] = [e / pivot for e in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k])]
    return determinant, [row[n:] for row in rows]


def _laplace_expansion(rows: list[list[Any]]) -> Any:
    """The determinant of exact elements by expansion along the first row."""
    if not rows:
        return 1
    total: Any = 0
    for k, element in enumerate(rows[0]):
        rest = [row[:k] + row[k + 1:] for row in rows[1:]]
        product = element * _laplace_expansion(rest) if rest else element
        total = product if not k else total - product if k % 2 else total + product
    return total


def _adjugate(x: Any) -> Any:
    """The adjugate of a matrix of exact elements."""
    rows, n = x.tolist(), len(x)
    out = x.copy()
    for i in range(n):
        for k in range(n):
            out[i, k] = _cofactor(rows, k, i)
    return out


def _cofactor(rows: list[list[Any]], i: int, k: int) -> Any:
    found = _laplace_expansion([row[:k] + row[k + 1:] for m, row in enumerate(rows) if m != i])
    return -found if (i + k) % 2 else found


def _cofactors(xp: Any, x: Any) -> Any:
    """The matrix of cofactors, which is the derivative of the determinant: det X · X⁻ᵀ for a regular matrix, and a polynomial for every one."""
    if isinstance(x, Tensor):
        return _cofactor_matrix(x)
    if isinstance(x, Labelled):
        return carrier.determinant(x) * _transpose(xp, carrier.inverse(x))
    if isinstance(x, Cells):
        return _transpose(xp, _adjugate(x))
    if not isinstance(x, np.ndarray):
        return _transpose(xp, _adjugate_in(xp, x))
    u, s, v = np.linalg.svd(x)
    others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))])
    return np.linalg.det(u) * np.linalg.det(v) * ((u * others) @ v)


def _cofactors_pushforward(xp: Any, x: Any, t: Any) -> Any:
    """The derivative of the cofactors along t, a symmetric map, by the recursion of Faddeev and LeVerrier, which needs no division by elements."""
    n = x.shape[0]
    eye = xp.eye_like(x, n)
    m, tangent = eye, xp.zeros_like(x)
    for k in range(1, n):
        product, moved = xp.mm(x, m), xp.mm(t, m) + xp.mm(x, tangent)
        m, tangent = product - xp.trace(product) / k * eye, moved - xp.trace(moved) / k * eye
    return _transpose(xp, tangent if n % 2 else -tangent)


def _solution(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, Tensor):
        return _solve(a, b)
    if isinstance(a, Labelled):
        return carrier.matmul(carrier.inverse(a), b)
    if isinstance(a, np.ndarray) and not isinstance(a, Cells):
        return np.linalg.solve(a, b)
    return xp.mm(inverse(xp, a), b) if b.ndim == 2 else xp.mv(inverse(xp, a), b)


def _solve_vjp(xp: Any, g: Any, y: Any, args: Any, needs: Any) -> tuple[Any, Any]:
    back = _solution(xp, _transpose(xp, args[0]), g)
    if y.ndim == 2:
        return -xp.mm(back, _transpose(xp, y)), back
    return -(xp.reshape(back, (*back.shape, 1)) * y), back


def _solve_jvp(xp: Any, tangents: Any, y: Any, args: Any) -> Any:
    ta, tb = (xp.zeros_like(x) if t is None else t for t, x in zip(tangents, args))
    return _solution(xp, args[0], tb - (xp.mm(ta, y) if y.ndim == 2 else xp.mv(ta, y)))


def _op(name: str, forward: Callable, vjp: Callable, jvp: Callable, *arguments: str) -> Op:
    """An op that is not in the registry; its rules use only the functions of this module and of the matrix carrier."""
    assert list(inspect.signature(forward).parameters)[1:] == list(arguments)
    return Op(name, "primitive", forward, vjp, jvp, len(arguments), arguments, (), f"Linalg{name.capitalize()}Backward0", public=False)


INV = _op("inv", lambda xp, input: inverse(xp, input), lambda xp, g, y, args, needs: (-xp.mm(_transpose(xp, y), xp.mm(g, _transpose(xp, y))),),
          lambda xp, tangents, y, args: -xp.mm(y, xp.mm(tangents[0], y)), "input")
COFACTORS = _op("cofactors", lambda xp, input: _cofactors(xp, input), lambda xp, g, y, args, needs: (_cofactors_pushforward(xp, args[0], g),),
                lambda xp, tangents, y, args: _cofactors_pushforward(xp, args[0], tangents[0]), "input")
DET = _op("det", lambda xp, input: determinant(xp, input), lambda xp, g, y, args, needs: (g * _cofactors(xp, args[0]),),
          lambda xp, tangents, y, args: xp.sum(_cofactors(xp, args[0]) * tangents[0]), "input")
LOGDET = _op("logdet", lambda xp, input: _logdeterminant(xp, input), lambda xp, g, y, args, needs: (g * _transpose(xp, inverse(xp, args[0])),),
             lambda xp, tangents, y, args: xp.trace(xp.mm(inverse(xp, args[0]), tangents[0])), "input")
SOLVE = _op("solve", lambda xp, input, other: _solution(xp, input, other), _solve_vjp, _solve_jvp, "input", "other")
_inv, _det, _logdet, _solve, _cofactor_matrix = map(core, (INV, DET, LOGDET, SOLVE, COFACTORS))


def _square_matrix(name: str, x: Any) -> Tensor:
    x = x if isinstance(x, Tensor) else wrap(as_value(x))
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise RuntimeError(f"{name}: expected a square matrix, but got a tensor of shape {list(x.shape)}")
    return x


def inv(input: Any) -> Tensor:
    """The inverse of a square matrix of floats. Raises RuntimeError for another shape, numpy.linalg.LinAlgError for a singular matrix.

    >>> import symgrad
    >>> from symgrad.matrixcalc import inv
    >>> inv(symgrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inv(_square_matrix("inv", input))


def det(input: Any) -> Tensor:
    """The determinant of a square matrix of floats. Raises RuntimeError for another shape.

    Its derivative is the matrix of cofactors, also for a singular matrix.

    >>> import symgrad
    >>> from symgrad.matrixcalc import det
    >>> det(symgrad.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(1.)
    """
    return _det(_square_matrix("det", input))


def logdet(input: Any) -> Tensor:
    """The logarithm of the determinant of a square matrix, NaN for a negative determinant. Raises RuntimeError for another shape.

    >>> import symgrad
    >>> from symgrad.matrixcalc import logdet
    >>> logdet(symgrad.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(0.)
    """
    return _logdet(_square_matrix("logdet", input))


def solve(input: Any, other: Any) -> Tensor:
    """The solution X of A X = B for a vector or a matrix B. Raises RuntimeError if A is not square or the sizes differ.

    >>> import symgrad
    >>> from symgrad.matrixcalc import solve
    >>> solve(symgrad.tensor([[2.0, 0.0], [0.0, 4.0]]), symgrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    input, other = _square_matrix("solve", input), other if isinstance(other, Tensor) else wrap(as_value(other))
    if other.ndim not in (1, 2) or other.shape[0] != input.shape[0]:
        raise RuntimeError(f"solve: expected a vector or a matrix of {input.shape[0]} rows, but got a tensor of shape {list(other.shape)}")
    return _solve(input, other)
