"""Functions that have derivatives of their own, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Adapter, Levels, coarser, missing, no_complex
from symgrad.frameworks.calling import Call
from symgrad.frameworks.problem import NotCheckable
from symgrad.reference.differences import differences

__all__ = ["GivenAdapter"]


class GivenAdapter(Adapter):
    """A NumPy function, perhaps with a gradient (and a Hessian) of its own; the order above what is given by finite differences.

    `given` are the functions of the derivatives; with `returned`, the function itself returns (value, gradient, ...). `convert` makes
    arguments of arrays and `read` arrays of results, for functions of another framework.
    """

    def __init__(self, call: Call, order: int, full: int, direction: np.ndarray, given: Sequence[Callable[..., Any]] = (), returned: bool = False,
                 framework: str = "numpy", room: Callable[[np.ndarray], np.ndarray] | None = None):
        super().__init__(call, order, full, direction)
        self.given, self.returned, self.framework, self.room = list(given), returned, framework, room
        self.name = framework
        self.highest = 1 if returned else len(self.given)
        for k in range(1, self.highest + 1):
            self.methods[k] = "the gradient that comes with it" if k == 1 else "the Hessian that comes with it"
        if self.highest < order:
            self.methods[self.highest + 1] = "finite differences of " + ("the function" if not self.highest else "the gradient" if self.highest == 1
                                                                         else "the Hessian")

    def _arguments(self, point: Sequence[np.ndarray]) -> list[Any]:
        if self.framework == "torch":
            torch = missing("torch")
            return [torch.tensor(np.array(v)) for v in point]
        return [v.copy() if v.ndim else v.dtype.type(v) for v in point]

    def _array(self, x: Any) -> np.ndarray:
        if hasattr(x, "detach"):
            x = x.detach()
        array = np.asarray(x)
        no_complex(array.dtype.kind == "c")
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{self.call.name} returned {type(x).__name__}; expected a number or an array of numbers")
        return array

    def _given_levels(self, point: Sequence[np.ndarray], highest: int, out: Levels) -> Iterator[np.ndarray]:
        arguments = self._arguments(point)
        result = self.call(arguments)
        if self.returned:
            if not isinstance(result, (tuple, list)) or len(result) < 2:
                raise TypeError(f"{self.call.name} returned {type(result).__name__}; with returns='pair', expected (value, gradient)")
            result, gradient = result[:2]
        array = self._array(result)
        out.shape = array.shape if array.size != 1 else ()
        out.dtype = coarser(array.dtype, point) if array.dtype.kind == "f" else np.dtype(np.float64)
        weights = np.arange(1, array.size + 1).reshape(array.shape) if array.size != 1 else np.ones(array.shape)
        yield np.sum(array * weights)
        for k in range(1, highest + 1):
            found = gradient if self.returned else self.call(arguments, self.given[k - 1])
            yield self._flat(found, point, array, weights) if k == 1 else self._square(found, point)

    def _flat(self, gradient: Any, point: Sequence[np.ndarray], value: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """A gradient as one vector: an array per argument, or one array for all."""
        n = len(self.direction)
        parts = list(gradient) if isinstance(gradient, (tuple, list)) and len(gradient) == len(point) else [gradient]
        arrays = [self._array(p) for p in parts]
        if sum(a.size for a in arrays) != n:
            raise NotCheckable(f"the gradient of {self.call.name} has {sum(a.size for a in arrays)} elements, but {n} are expected, one for each of "
                               f"{', '.join(self.call.names)}" + ("" if len(self.call.names) == 1 else "; limit the arguments by wrt"))
        if value.size > 1:  # elementwise: each element's own derivative
            if any(v.shape != value.shape for v in point):
                raise NotCheckable(f"{self.call.name} returns an array of shape {list(value.shape)} and its gradient goes with each element, but an "
                                   f"argument has another shape; give arrays of one shape, or a function that returns a number")
            arrays = [a.reshape(value.shape) * weights for a in arrays]
        return np.concatenate([a.ravel() for a in arrays])

    def _square(self, hessian: Any, point: Sequence[np.ndarray]) -> np.ndarray:
        n = len(self.direction)
        array = np.asarray(self._array(hessian), dtype=np.float64)
        if array.size != n * n:
            raise NotCheckable(f"the Hessian of {self.call.name} has the shape {list(array.shape)}, but {n} x {n} is expected")
        return array.reshape(n, n) if self._step(2) else array.reshape(n, n) @ self.direction

    def _orders(self, point: Sequence[np.ndarray], order: int, out: Levels) -> Iterator[Any]:
        yield from self._given_levels(point, min(self.highest, order), out)
        if order > self.highest and self.highest < 2:
            yield self._difference(point, out)

    def _difference(self, point: Sequence[np.ndarray], out: Levels) -> np.ndarray:
        """One order more, by finite differences with error bounds."""
        k = self.highest

        def function(vector: np.ndarray) -> np.ndarray:
            *_, last = self._given_levels(_shaped(vector, point), k, Levels())
            return np.asarray(last, dtype=np.float64)

        vector = np.concatenate([np.ravel(v) for v in point]).astype(np.float64)
        found, bound = differences(function, vector, None if self.room is None else self.room(vector))
        if not self._step(k + 1):
            found, bound = found.T @ self.direction, bound.T @ np.abs(self.direction)
        out.bounds[k + 1] = bound
        return found


def _shaped(vector: np.ndarray, point: Sequence[np.ndarray]) -> list[np.ndarray]:
    out, at = [], 0
    for v in point:
        out.append(vector[at:at + v.size].reshape(v.shape).astype(v.dtype))
        at += v.size
    return out
