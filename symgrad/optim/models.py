"""Functions as quadratic models: their value, and their gradient and Hessian over all elements, for optimizers and for `scipy.optimize`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.evaluation import Evaluation, as_tensors, between_nodes, evaluate, scalar_output
from symgrad.func.factors import Plans
from symgrad.func.hessians import dense_matrix
from symgrad.func.second import hessian_products, hooked_or_anomaly
from symgrad.func.transforms import input_cotangents
from symgrad.system.errorstate import quietly
from symgrad.trees import flatten, names

ROWS = 64  # of a Hessian that are computed together where all of them would not fit


class Model:
    """The value of a recorded function, its gradient and its Hessian, as vectors and a matrix of float64 over all elements of its inputs."""

    def __init__(self, evaluation: Evaluation, output: Tensor, plans: Plans):
        self._evaluation, self._output, self._plans = evaluation, output, plans
        self.value = float(output._value)

    def _joined(self, tensors: Sequence[Tensor]) -> np.ndarray:
        return np.concatenate([np.asarray(t._value, np.float64).reshape(-1) for t in tensors])

    @functools.cached_property
    def gradient(self) -> np.ndarray:
        """∂y/∂x."""
        return self._joined(input_cotangents(self._evaluation, [(self._output, wrap(np.ones_like(self._output._value)))], True))

    @functools.cached_property
    def hessian(self) -> np.ndarray:
        """∂²y/∂xᵢ∂xⱼ."""
        ev, y = self._evaluation, self._output
        whole = None
        if y._value.dtype == np.float64 and not hooked_or_anomaly(ev):
            whole, _ = dense_matrix(ev, y, self._plans)
        if whole is None:
            whole = hessian_products(ev, y, np.eye(sum(x.numel() for x in ev.inputs)), ROWS)
        return np.array(whole, np.float64)

    @functools.cached_property
    def _of_gradient(self) -> Evaluation:
        """The gradient with its graph: a pullback through it costs two thirds of a push of a tangent through the graph of the function."""
        ev, y = self._evaluation, self._output
        return ev.with_outputs(input_cotangents(dataclasses.replace(ev, tracked=True), [(y, wrap(np.ones_like(y._value)))]))

    def product(self, v: np.ndarray) -> np.ndarray:
        """The product of the Hessian with a vector."""
        pairs = [(g, wrap(part)) for g, part in zip(self._of_gradient.outputs, self._evaluation.split(v))]
        return self._joined(input_cotangents(self._of_gradient, pairs, True))


def of_loss(loss: Any, params: Sequence[Tensor], plans: Plans, caller: str) -> Model:
    """The model of a loss that was recorded from parameters.

    Raises RuntimeError unless the loss is a real, finite scalar with a graph that was not freed.
    """
    if not isinstance(loss, Tensor):
        raise RuntimeError(f"{caller}: the closure must return the loss, a scalar Tensor, not {type(loss).__name__}")
    if loss.numel() != 1 or loss._value.dtype.kind != "f":
        raise RuntimeError(f"{caller}: the closure must return a real scalar, but its loss has shape {list(loss.shape)} and dtype {loss.dtype}; "
                           "reduce it with .sum() or .mean()")
    if not np.isfinite(loss._value):
        raise RuntimeError(f"{caller}: the loss is {loss.item()}; the parameters are unchanged. symgrad.explain_nan finds where it becomes so")
    nodes: list[Any] = [p._node for p in params]
    between, path, wanted, _ = between_nodes([loss._node], nodes)
    if loss._node not in between:
        raise RuntimeError(f"{caller}: the loss does not depend on the parameters; compute it from them inside the closure, and not under no_grad")
    leaves, form = flatten(list(params))
    return Model(Evaluation(leaves, nodes, form, loss, [loss], flatten(loss)[1], None, between, path, wanted, False), loss, plans)


def checked(numbers: Callable[[], np.ndarray], what: str, caller: str) -> np.ndarray:
    """A gradient or Hessian, if it is finite.

    Raises RuntimeError if not, and where the graph was freed.
    """
    try:
        found = numbers()
    except RuntimeError as error:
        if "a second time" not in str(error):
            raise
        raise RuntimeError(f"{caller}: the graph of the loss was freed. Leave backward() out of the closure, which only needs to return the loss; or "
                           "call backward(retain_graph=True)") from error
    if not np.isfinite(found).all():
        raise RuntimeError(f"{caller}: the {what} has {np.count_nonzero(~np.isfinite(found))} elements that are not finite; the parameters are "
                           "unchanged. symgrad.explain_nan finds where they become so")
    return found


# Parameters and gradients as one vector of real numbers


def numbers(p: Tensor) -> int:
    """The number of real numbers in a parameter."""
    return p.numel() * (2 if p.is_complex() else 1)


def _real(x: Any, complex_numbers: bool) -> np.ndarray:
    x = np.ascontiguousarray(x).reshape(-1)
    return x.astype(np.result_type(x, np.complex64), copy=False).view(x.real.dtype) if complex_numbers else x


def flat(params: Sequence[Tensor]) -> np.ndarray:
    """A copy of the numbers of parameters, one after the other; a complex number is its two parts."""
    return np.concatenate([_real(p._value, p.is_complex()) for p in params])


def gradients(params: Sequence[Tensor], grads: Iterable[Tensor | None] | None = None) -> np.ndarray:
    """The gradients of parameters in the same order, those in `.grad` unless others are given; 0 where there is none."""
    found = [p.grad for p in params] if grads is None else grads
    return np.concatenate([np.zeros(numbers(p), np.real(p._value).dtype) if g is None else _real(g._value, p.is_complex())
                           for p, g in zip(params, found)])


def write(params: Sequence[Tensor], vector: np.ndarray, operation: str) -> None:
    """Write a vector of `flat` into its parameters, in place."""
    ends = list(itertools.accumulate(map(numbers, params)))
    for p, piece in zip(params, np.split(vector, ends[:-1])):
        array = p._array()
        stamp(array, operation)
        piece = piece.astype(array.real.dtype, copy=False).view(array.dtype) if p.is_complex() else piece
        quietly(np.copyto, array, piece.reshape(array.shape), "unsafe")


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
