"""Inverse, determinant, its logarithm and the solution of linear equations, with derivatives of every order.

    d A⁻¹ = -A⁻¹ dA A⁻¹,   d det A = det A tr(A⁻¹ dA),   d log det A = tr(A⁻¹ dA)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.cells import Cells
from symgrad.op import Op
from symgrad.recording import core
from symgrad.symbolic.matrices.carrier import carrier
from symgrad.symbolic.matrices.labelled import Labelled
from symgrad.tensor import Tensor, as_value, wrap

__all__ = ["adjugate", "det", "expanded_determinant", "inv", "logdet", "solve"]


def _t(xp: Any, x: Any) -> Any:
    return xp.permute(x, (1, 0))


def _inverse(xp: Any, x: Any) -> Any:
    if isinstance(x, Tensor):
        return _inv(x)
    if isinstance(x, Labelled):
        return carrier.inverse(x)
    return adjugate(x) / _determinant(xp, x) if isinstance(x, Cells) else np.linalg.inv(x)


def _determinant(xp: Any, x: Any) -> Any:
    if isinstance(x, Tensor):
        return _det(x)
    if isinstance(x, Labelled):
        return carrier.determinant(x)
    return type(x).fill([expanded_determinant(x.tolist())], ()) if isinstance(x, Cells) else np.asarray(np.linalg.det(x))[()]


def _logdeterminant(xp: Any, x: Any) -> Any:
    if isinstance(x, Labelled):
        return carrier.logdeterminant(x)
    if isinstance(x, (Cells, Tensor)):
        return xp.log(_determinant(xp, x))
    sign, log = np.linalg.slogdet(x)
    return np.float64(log if sign > 0 else np.nan if sign < 0 else -np.inf)


def expanded_determinant(rows: list[list[Any]]) -> Any:
    """A determinant of exact elements, by its first row."""
    if not rows:
        return 1
    total: Any = 0
    for k, element in enumerate(rows[0]):
        if element != 0:
            total = total + (-1) ** k * element * expanded_determinant([row[:k] + row[k + 1:] for row in rows[1:]])
    return total


def adjugate(x: Any) -> Any:
    """The transposed cofactors of exact elements, in an array like the one given."""
    rows, n = x.tolist(), len(x)

    def cofactor(i: int, k: int) -> Any:
        return (-1) ** (i + k) * expanded_determinant([row[:k] + row[k + 1:] for m, row in enumerate(rows) if m != i])

    out = x.copy()
    for i in range(n):
        for k in range(n):
            out[i, k] = cofactor(k, i)
    return out


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
_inv, _det, _logdet = core(INV), core(DET), core(LOGDET)


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
    return inv(input) @ other
