"""Functions of trees of tensors as problems for `scipy.optimize`, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.engine.tensor import wrap
from symgrad.func.evaluation import as_tensors, evaluate, scalar_output
from symgrad.func.plans import Plans
from symgrad.optim.models import Model
from symgrad.trees import flatten, names

__all__ = ["Problem", "to_scipy"]


class Problem:
    """A scalar function of a vector, with exact derivatives, as `scipy.optimize.minimize` wants them; see `to_scipy`.

    `x0` is the vector of the tree at which it was made. The function runs once for each point: the last point, with what was computed there, is kept.
    """

    x0: np.ndarray

    def __init__(self, fn: Callable[[Any], Any], x0: Any):
        leaves, self._form = flatten(x0)
        given = as_tensors(leaves, lambda: names(x0, "x0"), "to_scipy")
        for name, t in zip(names(x0, "x0"), given):
            if t.is_complex():
                raise RuntimeError(f"to_scipy: {name} is complex; SciPy minimizes by real numbers: give the pairs of view_as_real, and make the "
                                   "complex numbers in the function")
        if not given:
            raise RuntimeError("to_scipy: x0 has no tensors")
        self._like = [t._value for t in given]
        self.x0 = np.concatenate([np.asarray(value, np.float64).reshape(-1) for value in self._like])
        self._fn, self._plans = fn, Plans()
        self._last: tuple[np.ndarray, Model] | None = None

    def unravel(self, x: Any) -> Any:
        """A vector as a tree like the first one, with tensors of the same shapes and dtypes.

        Raises ValueError for a vector of another length.
        """
        x = np.asarray(x, np.float64)
        if x.shape != self.x0.shape:
            raise ValueError(f"to_scipy: the vector has shape {x.shape}, but x0 has {self.x0.size} elements")
        leaves, at = [], 0
        for like in self._like:
            leaves.append(wrap(x[at:at + like.size].reshape(like.shape).astype(like.dtype)))
            at += like.size
        return self._form.unflatten(leaves)

    def _model_at(self, x: Any) -> Model:
        x = np.asarray(x, np.float64)
        if self._last is not None and np.array_equal(x, self._last[0]):
            return self._last[1]
        ev = evaluate(self._fn, (self.unravel(x),), {}, 0, "to_scipy")
        model = Model(ev, scalar_output(ev, self._fn, "to_scipy"), self._plans)
        self._last = x.copy(), model
        return model

    def fun(self, x: Any) -> float:
        """The value."""
        return self._model_at(x).value

    def jac(self, x: Any) -> np.ndarray:
        """The gradient."""
        return self._model_at(x).gradient.copy()

    def hess(self, x: Any) -> np.ndarray:
        """The Hessian."""
        return self._model_at(x).hessian.copy()

    def hessp(self, x: Any, p: Any) -> np.ndarray:
        """The product of the Hessian with a vector, without the Hessian."""
        return self._model_at(x).product(np.asarray(p, np.float64).reshape(-1))


def to_scipy(fn: Callable[[Any], Any], x0: Any) -> Problem:
    """A scalar function of a tree of tensors as a problem for `scipy.optimize`: `fun`, `jac`, `hess` and `hessp` of a vector, and `x0`.

    `fn` takes a tree such as `x0`: a tensor, or lists, tuples and dictionaries of them. The derivatives are exact, and `fn` runs once for each
    point. `unravel` makes a tree of a vector, such as the `x` of a result.

    Raises RuntimeError unless `fn` returns a real scalar, and for integers and complex numbers in `x0`; TypeError for what is no number.

    >>> import symgrad
    >>> from scipy.optimize import minimize
    >>> def energy(p):
    ...     return 100 * (p["b"] - p["a"] ** 2) ** 2 + (1 - p["a"]) ** 2
    >>> problem = symgrad.to_scipy(energy, {"a": symgrad.tensor(-1.2), "b": symgrad.tensor(1.0)})
    >>> result = minimize(problem.fun, problem.x0, jac=problem.jac, hess=problem.hess, method="trust-exact")
    >>> problem.unravel(result.x)
    {'a': tensor(1.0000), 'b': tensor(1.0000)}
    """
    return Problem(fn, x0)
