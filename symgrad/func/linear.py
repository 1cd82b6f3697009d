"""Hessians as linear operators of SciPy: by products, and by factors."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse
from scipy.sparse.linalg import LinearOperator

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, new_level
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.evaluation import Evaluation
from symgrad.func.second import gradient_tangents, hessian_products, jacobian_products
from symgrad.func.transforms import input_cotangents


@dataclasses.dataclass(frozen=True)
class Factors:
    """The report on a factored Hessian: its form and shape, the number of values at the cut, and the number of entries of the factors."""

    form: str
    shape: tuple[int, int]
    cut: int
    numbers: int


class SymmetricOperator(LinearOperator):
    """A real symmetric operator, with its `factors` and a `report` on them."""

    report: Factors
    factors: dict[str, Any]

    def __init__(self, n: int, dtype: Any):
        super().__init__(dtype, (n, n))

    def _adjoint(self) -> SymmetricOperator:
        return self

    _transpose = _adjoint

    def todense(self) -> np.ndarray:
        """The dense matrix."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)


class HessianOperator(SymmetricOperator):
    """The Hessian of a function at a point by its products with vectors; `evaluation` is the function there."""

    def __init__(self, ev: Evaluation, y: Tensor, chunk_size: int | None = None):
        super().__init__(sum(x.numel() for x in ev.inputs), y._value.dtype)
        self.evaluation = dataclasses.replace(ev, tracked=False)
        self.report, self.factors = Factors("products", self.shape, self.shape[0], 0), {}
        self._output, self._chunk_size = y, chunk_size

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        tangents = [wrap(part) for part in self.evaluation.split(np.reshape(x, -1))]
        return np.concatenate([t._value.reshape(-1) for t in gradient_tangents(self.evaluation, self._output, tangents)])

    def _matmat(self, x: np.ndarray) -> np.ndarray:
        return hessian_products(self.evaluation, self._output, np.ascontiguousarray(x.T, dtype=self.dtype), self._chunk_size).T


# Linear maps of all elements of the inputs, applied to the columns of a matrix


class Selection:
    """The selection of one input: `size` elements from `start` on."""

    def __init__(self, start: int, size: int, n: int):
        self.start, self.shape = start, (size, n)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """J x."""
        return x[self.start:self.start + self.shape[0]]

    def transpose(self, z: np.ndarray) -> np.ndarray:
        """Jᵀ z."""
        return _place_rows(z, self.start, self.shape[1])

    @functools.cached_property
    def matrix(self) -> Any:
        """The map as a matrix."""
        from scipy.sparse import eye_array

        return eye_array(*self.shape, k=self.start, format="csr")

    numbers = 0


class MatrixMap:
    """A matrix, dense or sparse."""

    def __init__(self, matrix: Any):
        self.matrix, self.shape = matrix, matrix.shape
        self.numbers = matrix.nnz if issparse(matrix) else matrix.size

    def forward(self, x: np.ndarray) -> np.ndarray:
        """J x."""
        return self.matrix @ x

    def transpose(self, z: np.ndarray) -> np.ndarray:
        """Jᵀ z."""
        return self.matrix.T @ z


class Kronecker:
    """The product of one input, a vector or a matrix, with a constant matrix: one small map applied to each column, or to each row.

    `factor` is that map. With `by_columns` it is applied to columns of the input, else to rows; with `to_columns` its results are columns of the
    value, else rows.
    """

    def __init__(self, factor: np.ndarray, by_columns: bool, to_columns: bool, start: int, shape: Sequence[int], n: int):
        self.factor, self.by_columns, self.to_columns, self.start = np.atleast_2d(factor), by_columns, to_columns, start
        self.times = 1 if len(shape) == 1 else shape[1] if by_columns else shape[0]
        self.size, self.numbers = math.prod(shape), self.factor.size
        self.shape = (self.factor.shape[0] * self.times, n)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """J x."""
        return self._apply(self.factor, x[self.start:self.start + self.size], self.by_columns, self.to_columns)

    def transpose(self, z: np.ndarray) -> np.ndarray:
        """Jᵀ z."""
        return _place_rows(self._apply(self.factor.T, z, self.to_columns, self.by_columns), self.start, self.shape[1])

    def _apply(self, factor: np.ndarray, x: np.ndarray, taken: bool, given: bool) -> np.ndarray:
        if self.times == 1:
            return factor @ x
        if taken and given:
            return (factor @ x.reshape(factor.shape[1], -1)).reshape(-1, x.shape[1])
        return join_columns(np.matmul(factor, split_columns(x, self.times, taken)), given)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """The map as a matrix."""
        if self.times == 1 and self.factor.shape[1] == self.shape[1]:
            return self.factor
        return self.forward(np.eye(self.shape[1], dtype=self.factor.dtype))


def split_columns(x: np.ndarray, times: int, columns: bool) -> np.ndarray:
    """The columns or rows of the matrices whose elements are the columns of `x`, as an array of shape (times, length, columns of x)."""
    return x.reshape(-1, times, x.shape[1]).transpose(1, 0, 2) if columns else x.reshape(times, -1, x.shape[1])


def join_columns(x: np.ndarray, columns: bool) -> np.ndarray:
    """The inverse of `split_columns`."""
    return (x.transpose(1, 0, 2) if columns else x).reshape(-1, x.shape[2])


class LinearGraph:
    """A linear part of the graph that is too large for a matrix, applied by pushforward and pullback."""

    numbers = 0

    def __init__(self, ev: Evaluation):
        self._ev = ev
        self.shape = ev.outputs[0].numel(), sum(x.numel() for x in ev.inputs)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """J x."""
        return jacobian_products(self._ev, np.ascontiguousarray(x.T)).T

    def transpose(self, z: np.ndarray) -> np.ndarray:
        """Jᵀ z."""
        level, (y,) = new_level(), self._ev.outputs
        given = Batched(np.ascontiguousarray(z.T).reshape((z.shape[1], *y.shape)), level)
        found = input_cotangents(self._ev, [(y, wrap(given))], True)
        return np.concatenate([np.asarray(numeric.unbatch(t._value, 0, level, z.shape[1])).reshape(z.shape[1], -1) for t in found], 1).T

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """The map as a matrix."""
        return self.forward(np.eye(self.shape[1]))


def _place_rows(x: np.ndarray, start: int, n: int) -> np.ndarray:
    if len(x) == n:
        return x
    out = np.zeros((n, *x.shape[1:]), x.dtype)
    out[start:start + len(x)] = x
    return out


# H = Jᵀ S J


class FactoredHessian(SymmetricOperator):
    """A Hessian JᵀSJ: `maps` are the vertically stacked blocks of J, and S is a sparse matrix, a small dense matrix or a diagonal."""

    def __init__(self, n: int, dtype: Any, maps: Sequence[Any], curvature: Any):
        super().__init__(n, dtype)
        self.maps, self._curvature = list(maps), curvature
        self._ends = np.cumsum([0, *(m.shape[0] for m in maps)])
        self._diagonal = curvature if curvature.ndim == 1 else _diagonal_of(curvature)
        form, self.factors, self._multiply, self._dense = self._factored_form()
        self.report = Factors(form, self.shape, int(self._ends[-1]), sum(_number_count(f) for f in self.factors.values()))

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self._multiply(np.reshape(x, (-1, 1)))[:, 0]

    def _matmat(self, x: np.ndarray) -> np.ndarray:
        return self._multiply(x)

    def todense(self) -> np.ndarray:
        """The dense matrix."""
        return self._dense()

    @functools.cached_property
    def curvature(self) -> Any:
        """S as a matrix."""
        return diags_array(self._curvature, format="csr") if self._curvature.ndim == 1 else self._curvature

    def _factored_form(self) -> tuple[str, dict[str, Any], Any, Any]:
        """The form, its factors, the function that multiplies a matrix, and the function that returns the dense matrix."""
        n, maps, d = self.shape[0], self.maps, self._diagonal
        if not maps:
            return "zero", {}, lambda x: np.zeros(x.shape, self.dtype), lambda: np.zeros(self.shape, self.dtype)
        first = maps[0]
        if len(maps) == 1:
            if type(first) is Selection and first.shape[0] == n:
                return "sparse", {"S": self.curvature}, self.curvature.__matmul__, self.curvature.toarray
            if d is not None and type(first) is Kronecker and first.times > 1 and first.size == n:
                return self._block_form(first, d)
            if d is not None and type(first) in (Kronecker, MatrixMap) and getattr(first, "times", 1) == 1:
                matrix = first.matrix
                return ("X' D X", {"X": matrix, "D": d}, lambda x: matrix.T @ (d[:, None] * (matrix @ x)), lambda: _weighted_gram(matrix, d))
        elif type(first) is Selection and first.shape[0] == n and 2 * (self._ends[-1] - n) <= n:
            block = self.curvature[:n, :n]
            inner = _diagonal_of(block)
            if inner is not None:
                return self._low_rank_form(inner)
        joined = {"J": [m if type(m) is LinearGraph else m.matrix for m in maps], "S": self.curvature}
        return "J' S J", joined, self._multiply_general, self._dense_general

    def _block_form(self, j: Kronecker, d: np.ndarray) -> tuple[str, dict[str, Any], Any, Any]:
        """One block for each row or column of the argument, or a single block for all if the curvature is uniform."""
        k, first = j.factor.shape[1], j.by_columns
        weights = split_columns(d[:, None], j.times, j.to_columns)[..., 0]
        uniform = (weights == weights[0]).all()
        blocks = np.stack([_weighted_gram(j.factor, w) for w in (weights[:1] if uniform else weights)])

        def multiply(x: np.ndarray) -> np.ndarray:
            return join_columns(np.matmul(blocks, split_columns(x, j.times, first)), first)

        def dense() -> np.ndarray:
            out = np.zeros((k, j.times, k, j.times) if first else (j.times, k, j.times, k), self.dtype)
            at = np.arange(j.times)
            if first:
                out[:, at, :, at] = blocks
            else:
                out[at, :, at, :] = blocks
            return out.reshape(self.shape)

        if uniform:
            return ("A kron I" if first else "I kron A"), {"A": blocks[0], "times": j.times}, multiply, dense
        return "blocks", {"blocks": blocks, "along": 1 if first else 0}, multiply, dense

    def _low_rank_form(self, diagonal: np.ndarray) -> tuple[str, dict[str, Any], Any, Any]:
        """diag(d) + C L + Lᵀ Cᵀ + Lᵀ K L, for the linear combinations L and their cross terms C with the arguments."""
        n = self.shape[0]
        rows = np.concatenate([np.asarray(m.matrix.toarray() if issparse(m.matrix) else m.matrix) for m in self.maps[1:]])
        cross, corner = (np.asarray(b.toarray() if issparse(b) else b) for b in (self.curvature[:n, n:], self.curvature[n:, n:]))
        if cross.any():
            w, zero = np.concatenate([cross, rows.T], 1), np.zeros_like(corner)
            k = np.block([[zero, np.eye(len(corner))], [np.eye(len(corner)), corner]])
        else:
            w, k = np.ascontiguousarray(rows.T), corner

        def dense() -> np.ndarray:
            out = (w @ k) @ w.T
            out.reshape(-1)[::n + 1] += diagonal
            return out

        return ("diagonal plus low rank", {"diagonal": diagonal, "W": w, "K": k},
                lambda x: diagonal[:, None] * x + w @ (k @ (w.T @ x)), dense)

    def _multiply_general(self, x: np.ndarray) -> np.ndarray:
        z = np.concatenate([m.forward(x) for m in self.maps])
        z = self.curvature @ z
        out: Any = 0
        for m, a, b in zip(self.maps, self._ends, self._ends[1:]):
            out = out + m.transpose(z[a:b])
        return out

    def _dense_general(self) -> np.ndarray:
        """Σ Jᵢᵀ Sᵢⱼ Jⱼ, from the blocks with i >= j and their transposes."""
        out = None
        for i, (a, b) in enumerate(zip(self._ends, self._ends[1:])):
            for j, (c, d) in enumerate(zip(self._ends[:i + 1], self._ends[1:])):
                block, left, right = self.curvature[a:b, c:d], self.maps[i], self.maps[j]
                if not (block.nnz if issparse(block) else block.any()):
                    continue
                if type(right) is Selection:  # the transpose of a selection is free
                    block, left, right = block.T, right, left
                diagonal = _diagonal_of(block)
                if diagonal is not None and type(right) is not Selection and not issparse(right.matrix):
                    inner = right.matrix if (diagonal == 1.0).all() else diagonal[:, None] * right.matrix
                else:
                    inner = block @ right.matrix
                term = left.matrix.T @ inner if issparse(inner) else left.transpose(inner)
                term = term.toarray() if issparse(term) else term
                term = term + term.T if i != j else term
                out = term if out is None else out + term
        return np.zeros(self.shape, self.dtype) if out is None else out


def _diagonal_of(matrix: Any) -> np.ndarray | None:
    """The diagonal of a diagonal matrix; None for any other matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    if issparse(matrix):
        d = matrix.diagonal()
        return d if matrix.nnz == np.count_nonzero(d) or matrix.nnz == len(d) and (matrix.indices == np.arange(len(d))).all() else None
    d = np.diagonal(matrix).copy()
    return d if np.count_nonzero(matrix) == np.count_nonzero(d) else None


def _weighted_gram(x: Any, d: np.ndarray) -> np.ndarray:
    """Xᵀ diag(d) X."""
    out = x.T @ ((d[:, None] * x) if not issparse(x) else x.multiply(d[:, None]).tocsr())
    return out.toarray() if issparse(out) else out


def _number_count(factor: Any) -> int:
    if isinstance(factor, list):
        return sum(_number_count(f) for f in factor)
    return factor.nnz if issparse(factor) else getattr(factor, "size", 0)
