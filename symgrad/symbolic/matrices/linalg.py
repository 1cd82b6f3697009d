"""Inverse, determinant, its logarithm and the solution of linear equations, with derivatives of every order.

    d A⁻¹ = -A⁻¹ dA A⁻¹,   d det A = det A tr(A⁻¹ dA),   d log det A = tr(A⁻¹ dA)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symgrad.carriers.cells import Cells
from symgrad.op import Op
from symgrad.recording import core
from symgrad.symbolic.matrices.carrier import carrier
from symgrad.symbolic.matrices.labelled import Labelled
from symgrad.tensor import Tensor, as_value, wrap

__all__ = ["det", "determinant_of", "inv", "inverse_of", "logdet", "solve"]


def _t(xp: Any, x: Any) -> Any:
    return xp.permute(x, (1, 0))


def _inverse(xp: Any, x: Any) -> Any:
    if isinstance(x, Tensor):
        return _inv(x)
    if isinstance(x, Labelled):
        return carrier.inverse(x)
    return inverse_of(x) if isinstance(x, Cells) else np.linalg.inv(x)


def _determinant(xp: Any, x: Any) -> Any:
    if isinstance(x, Tensor):
        return _det(x)
    if isinstance(x, Labelled):
        return carrier.determinant(x)
    return type(x).fill([determinant_of(x)], ()) if isinstance(x, Cells) else np.asarray(np.linalg.det(x))[()]


def _logdeterminant(xp: Any, x: Any) -> Any:
    if isinstance(x, Labelled):
        return carrier.logdeterminant(x)
    if isinstance(x, (Cells, Tensor)):
        return xp.log(_determinant(xp, x))
    sign, log = np.linalg.slogdet(x)
    return np.float64(log if sign > 0 else np.nan if sign < 0 else -np.inf)


def determinant_of(x: Any) -> Any:
    """The determinant of an array of SymPy expressions or many-digit floats."""
    rows = x.tolist()
    return _expanded(rows) if _symbolic(x) else _eliminated(rows)[0]


def inverse_of(x: Any) -> Any:
    """The inverse of an array of SymPy expressions or many-digit floats. Raises ZeroDivisionError where a float matrix has none."""
    if _symbolic(x):
        return _adjugate(x) / _expanded(x.tolist())
    inverse, out = _eliminated(x.tolist())[1], x.copy()
    if not inverse:
        raise ZeroDivisionError("inv: the matrix is singular")
    for i, row in enumerate(inverse):
        for k, element in enumerate(row):
            out[i, k] = element
    return out


def _symbolic(x: Any) -> bool:
    return any(isinstance(e, sympy.Basic) for e in x.ravel().tolist())


def _eliminated(rows: list[list[Any]]) -> tuple[Any, list[list[Any]]]:
    """The determinant and the inverse of a matrix of numbers, by elimination with the largest pivots."""
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


def _expanded(rows: list[list[Any]]) -> Any:
    """A determinant of exact elements, by its first row."""
    if not rows:
        return 1
    total: Any = 0
    for k, element in enumerate(rows[0]):
        if element != 0:
            total = total + (-1) ** k * element * _expanded([row[:k] + row[k + 1:] for row in rows[1:]])
    return total


def _adjugate(x: Any) -> Any:
    """The transposed cofactors of exact elements, in an array like the one given."""
    rows, n = x.tolist(), len(x)

    def cofactor(i: int, k: int) -> Any:
        return (-1) ** (i + k) * _expanded([row[:k] + row[k + 1:] for m, row in enumerate(rows) if m != i])

    out = x.copy()
    for i in range(n):
        for k in range(n):
            out[i, k] = cofactor(k, i)
    return out


def _solution(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, Tensor):
        return _solve(a, b)
    if isinstance(a, Labelled):
        return carrier.matmul(carrier.inverse(a), b)
    return inverse_of(a).dot(b) if isinstance(a, Cells) else np.linalg.solve(a, b)


def _solve_vjp(xp: Any, g: Any, y: Any, args: Any) -> tuple[Any, Any]:
    back = _solution(xp, _t(xp, args[0]), g)
    if y.ndim == 2:
        return -xp.mm(back, _t(xp, y)), back
    return -(xp.reshape(back, (*back.shape, 1)) * y), back


def _solve_jvp(xp: Any, ta: Any, tb: Any, y: Any, args: Any) -> Any:
    return _solution(xp, args[0], tb - (xp.mm(ta, y) if y.ndim == 2 else xp.mv(ta, y)))


def _op(name: str, forward: Callable, vjp: Callable, jvp: Callable, *arguments: str) -> Op:
    """An op that is not in the registry: its rules are those of matrix calculus alone."""
    assert list(inspect.signature(forward).parameters)[1:] == list(arguments)
    return Op(name, "primitive", forward, vjp, jvp, len(arguments), arguments, (), f"Linalg{name.capitalize()}Backward0", public=False)


def _filled(xp: Any, tangents: Any, args: Any) -> list[Any]:
    return [xp.zeros_like(x) if t is None else t for t, x in zip(tangents, args)]


INV = _op("inv", lambda xp, input: _inverse(xp, input), lambda xp, g, y, args, needs: (-xp.mm(_t(xp, y), xp.mm(g, _t(xp, y))),),
          lambda xp, tangents, y, args: -xp.mm(y, xp.mm(tangents[0], y)), "input")
DET = _op("det", lambda xp, input: _determinant(xp, input), lambda xp, g, y, args, needs: (g * y * _t(xp, _inverse(xp, args[0])),),
          lambda xp, tangents, y, args: y * xp.trace(xp.mm(_inverse(xp, args[0]), tangents[0])), "input")
LOGDET = _op("logdet", lambda xp, input: _logdeterminant(xp, input), lambda xp, g, y, args, needs: (g * _t(xp, _inverse(xp, args[0])),),
             lambda xp, tangents, y, args: xp.trace(xp.mm(_inverse(xp, args[0]), tangents[0])), "input")
SOLVE = _op("solve", lambda xp, input, other: _solution(xp, input, other), lambda xp, g, y, args, needs: _solve_vjp(xp, g, y, args),
            lambda xp, tangents, y, args: _solve_jvp(xp, *_filled(xp, tangents, args), y, args), "input", "other")
_inv, _det, _logdet, _solve = core(INV), core(DET), core(LOGDET), core(SOLVE)


def _matrix(name: str, x: Any) -> Tensor:
    x = x if isinstance(x, Tensor) else wrap(as_value(x))
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise RuntimeError(f"{name}: expected a square matrix, but got a tensor of shape {list(x.shape)}")
    return x


def inv(input: Any) -> Tensor:
    """The inverse of a square matrix of floats. Raises RuntimeError for another shape, numpy.linalg.LinAlgError if there is no inverse.

    >>> import symgrad
    >>> from symgrad.symbolic.matrices import inv
    >>> inv(symgrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inv(_matrix("inv", input))


def det(input: Any) -> Tensor:
    """The determinant of a square matrix of floats. Its derivative is that of an invertible matrix. Raises RuntimeError for another shape.

    >>> import symgrad
    >>> from symgrad.symbolic.matrices import det
    >>> det(symgrad.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(1.)
    """
    return _det(_matrix("det", input))


def logdet(input: Any) -> Tensor:
    """The logarithm of the determinant of a square matrix, NaN where that is negative. Raises RuntimeError for another shape.

    >>> import symgrad
    >>> from symgrad.symbolic.matrices import logdet
    >>> logdet(symgrad.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(0.)
    """
    return _logdet(_matrix("logdet", input))


def solve(input: Any, other: Any) -> Tensor:
    """The solution X of A X = B, for a vector or a matrix B. Raises RuntimeError where A is not square or the sizes differ.

    >>> import symgrad
    >>> from symgrad.symbolic.matrices import solve
    >>> solve(symgrad.tensor([[2.0, 0.0], [0.0, 4.0]]), symgrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    input, other = _matrix("solve", input), other if isinstance(other, Tensor) else wrap(as_value(other))
    if other.ndim not in (1, 2) or other.shape[0] != input.shape[0]:
        raise RuntimeError(f"solve: expected a vector or a matrix of {input.shape[0]} rows, but got a tensor of shape {list(other.shape)}")
    return _solve(input, other)
