"""Hessians as linear operators of SciPy: by products, and by factors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from symgrad.func.evaluation import Evaluation
from symgrad.func.hessians import compressed, second
from symgrad.tensor import Tensor, wrap

__all__ = ["HessianOperator"]


class SymmetricOperator(LinearOperator):
    """A real symmetric operator: its own transpose."""

    def __init__(self, n: int, dtype: Any):
        super().__init__(dtype, (n, n))

    def _adjoint(self) -> SymmetricOperator:
        return self

    _transpose = _adjoint

    def todense(self) -> np.ndarray:
        """The whole matrix."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)


class HessianOperator(SymmetricOperator):
    """The Hessian of a function at a point by its products with vectors; `evaluation` is the function there."""

    def __init__(self, ev: Evaluation, y: Tensor, chunk_size: int | None = None):
        super().__init__(sum(x.numel() for x in ev.inputs), y._value.dtype)
        self.evaluation = dataclasses.replace(ev, tracked=False)
        self._output, self._chunk_size = y, chunk_size

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        ev, x, at, parts = self.evaluation, np.reshape(x, -1), 0, []
        for each in ev.inputs:
            parts.append(wrap(x[at:at + each.numel()].reshape(tuple(each.shape)).astype(each._value.dtype)))
            at += each.numel()
        found = [t._value.reshape(-1) for t in second(ev, self._output, parts)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _matmat(self, x: np.ndarray) -> np.ndarray:
        return compressed(self.evaluation, self._output, np.ascontiguousarray(x.T, dtype=self.dtype), self._chunk_size).T
