"""Functions that symgrad cannot record: of plain floats, of NumPy arrays, of torch, JAX and HIPS autograd, and pairs with a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Options
from symgrad.frameworks.detection import framework_of
from symgrad.frameworks.levels import Derivatives
from symgrad.frameworks.registry import adapter_of
from symgrad.scanning.subject import Index, Subject, indices

__all__ = ["Foreign"]


class Foreign(Subject):
    """A function of another framework or of plain floats, or a tuple of a function, its gradient and its Hessian, called point by point.

    `order` is the highest one that it gives; derivatives by finite differences are not scanned.
    """

    def __init__(self, given: Any, order: int, count: int | None = None, framework: str | None = None):
        function, partials, hessian = (*given, None, None)[:3] if isinstance(given, tuple) else (given, None, None)
        super().__init__(function, count)
        self.vectorised = False
        adapter = adapter_of(_of_numbers(function), framework or framework_of(function) or "numpy", self.name,
                             Options(joined=True, gradient=_of_numbers(partials), hessian=_of_numbers(hessian)))
        self.framework, self.subnormals, self.order = adapter.framework, adapter.subnormals, min(order, adapter.orders)
        self.derivatives = Derivatives(adapter, self.order, order, np.ones(self.count))

    def floats(self, points: np.ndarray, order: int) -> dict[Index, np.ndarray]:
        """Every derivative up to an order as the framework's floats; NaN where it raises."""
        out = {index: np.full(points.shape[1], np.nan) for index in indices(self.count, order)}
        for k in range(points.shape[1]):
            point = [np.array(x) for x in points[:, k]]
            levels = self.derivatives.at(point, order)
            if levels.error is not None:
                error = levels.error[1]
                self.failure = (error if isinstance(error, Exception) else RuntimeError(str(error))), point
            for index in out:
                if len(index) in levels.values:
                    out[index][k] = levels.values[len(index)][index]
        return out


def _of_numbers(function: Any) -> Any:
    """The function with scalars of NumPy in place of arrays without axes."""
    return function and (lambda *xs: function(*(x[()] if isinstance(x, np.ndarray) else x for x in xs)))
