"""Newton's method: steps with exact second derivatives, by factoring the Hessian or by products with it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from symgrad.autograd.modes import enable_grad
from symgrad.engine.tensor import Tensor
from symgrad.func.factors import Plans
from symgrad.optim.declared import Declared
from symgrad.optim.models import Model, checked, flat, of_loss, write
from symgrad.optim.optimizer import Group
from symgrad.system.errorstate import quiet, quietly


class _SecondOrder(Declared):
    """An optimizer with a quadratic model of the loss by all parameters together; `weight_decay` adds ½ weight_decay p² to the loss."""

    @functools.cached_property
    def _plans(self) -> Plans:
        return Plans()

    def _check_parameter(self, p: Tensor) -> None:
        super()._check_parameter(p)
        if p.is_complex():
            raise ValueError(f"{type(self).__name__}: a parameter is complex; optimize its view_as_real")

    def _start(self, closure: Callable[[], Any]) -> _Problem:
        if not callable(closure):
            raise TypeError(f"{type(self).__name__}.step() needs a closure that computes the loss and returns it, not {type(closure).__name__}")
        return _Problem(self, closure)

    def _record(self, problem: _Problem, **found: Any) -> None:
        """Enter numbers in the state, which is that of the first parameter."""
        state = self.state[self.param_groups[0]["params"][0]]
        state["step"] = state.get("step", 0) + 1
        state["func_evals"] = state.get("func_evals", 0) + problem.evaluations
        state.update(found)


class _Problem:
    """The loss as a function of one vector of all parameters, and its model where these are now."""

    def __init__(self, optimizer: _SecondOrder, closure: Callable[[], Any]):
        self.name, self._closure, self.evaluations = type(optimizer).__name__, closure, 0
        members = [(p, group) for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        self.params, self.members, self.loss = [p for p, _ in members], members, self._call()
        self.model: Model = of_loss(self.loss, self.params, optimizer._plans, self.name)
        self.x, self.decay = flat(self.params).astype(np.float64), self.spread("weight_decay")
        self.value = self._total(self.model.value, self.x)
        self.gradient = quietly(_along, checked(lambda: self.model.gradient, "gradient", self.name), self.decay, self.x)

    def spread(self, name: str) -> np.ndarray:
        """An option of the groups for every element."""
        return np.concatenate([np.full(p.numel(), float(group[name])) for p, group in self.members])

    def _call(self) -> Any:
        self.evaluations += 1
        with enable_grad():
            return self._closure()

    @quiet
    def _total(self, loss: float, x: np.ndarray) -> float:
        return loss + 0.5 * float(self.decay @ (x * x))

    def hessian(self) -> np.ndarray:
        found = checked(lambda: self.model.hessian, "Hessian", self.name)
        found[np.diag_indices_from(found)] = quietly(operator.add, found.diagonal(), self.decay)
        return found

    def product(self, v: np.ndarray) -> np.ndarray:
        found = checked(lambda: self.model.product(v), "product of the Hessian with a vector", self.name)
        return quietly(_along, found, self.decay, v)

    def move(self, step: np.ndarray) -> float:
        """Write x + step into the parameters, and give the loss there; not finite is infinite. Where it raises, they stay at x."""
        there = quietly(operator.add, self.x, step)
        write(self.params, there, f"{self.name}.step")
        try:
            value = self._total(float(self._call()), there)
        except BaseException:
            self.restore()
            raise
        return value if np.isfinite(value) else float("inf")

    def restore(self) -> None:
        write(self.params, self.x, f"{self.name}.step")

    @property
    def rounding(self) -> float:
        """A change of the loss that may be rounding."""
        return 8 * float(np.finfo(self.loss._value.dtype).eps) * abs(self.value)


class Newton(_SecondOrder):
    """x ← x - t H⁻¹ g, with the exact Hessian H of the loss by all parameters together.

    `step` needs a closure that computes the loss from the parameters and returns it, without backward; its value before the step is returned. H
    is factored by Cholesky; where it is not positive definite, each eigenvalue λ is replaced by max(abs(λ), δ), with the largest of them times
    1e-8 for δ, so that the step leads away from saddles. t is lr, halved until the loss falls by 1e-4 t gᵀH⁻¹g with
    line_search_fn="backtracking", up to `max_backtracks` times; if it does not, the parameters stay. A quadratic function is minimized in one
    step. Groups may have their own lr and `weight_decay`, which adds ½ weight_decay p² to the loss. The state is that of the first parameter:
    `step`, `func_evals`, `t`, and `modified`, which says whether eigenvalues were replaced.

    Raises ValueError for negative numbers, another line search and complex parameters; TypeError without a closure; RuntimeError for a loss that
    is no finite real scalar or does not depend on the parameters, and where its derivatives are not finite. The parameters are unchanged then, and
    where the closure raises.

    >>> import symgrad
    >>> x = symgrad.tensor([-1.2, 1.0], requires_grad=True)
    >>> optimizer = symgrad.optim.Newton([x])
    >>> for _ in range(25):
    ...     loss = optimizer.step(lambda: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)
    >>> x
    tensor([1., 1.], requires_grad=True)

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., algorithms 3.1 and 3.2, section 3.4.
    """

    _options = {"lr": 1.0, "weight_decay": 0, "line_search_fn": "backtracking", "max_backtracks": 30}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        line_search = options["line_search_fn"]
        self._require("line_search_fn", line_search, line_search in (None, "backtracking"), "'backtracking' or None")

    def step(self, closure: Callable[[], Any]) -> Any:
        """One step; the loss before it is returned."""
        problem = self._start(closure)
        group, g = self.param_groups[0], problem.gradient
        direction, modified = _newton_direction(problem.hessian(), g)
        scaled = quietly(operator.mul, problem.spread("lr"), direction)
        slope = float(quietly(operator.matmul, g, scaled))
        if slope > 0:  # several learning rates may turn the direction upwards
            scaled = quietly(operator.mul, min(float(each["lr"]) for each in self.param_groups), direction)
            slope = float(quietly(operator.matmul, g, scaled))
        t = 1.0
        if group["line_search_fn"] is None:
            write(problem.params, quietly(operator.add, problem.x, scaled), "Newton.step")
        else:
            for _ in range(group["max_backtracks"] + 1):
                if problem.move(quietly(operator.mul, t, scaled)) <= problem.value + 1e-4 * t * slope + problem.rounding:
                    break
                t /= 2
            else:
                problem.restore()
                t = 0.0
        self._record(problem, t=t, modified=modified)
        return problem.loss


def _along(x: Any, t: Any, d: Any) -> Any:
    return x + t * d


@quiet
def _newton_direction(hessian: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, bool]:
    """-H⁻¹ g, and whether H was made positive definite for it."""
    try:
        return -cho_solve(cho_factor(hessian, lower=True, check_finite=False), g, check_finite=False), False
    except LinAlgError:
        values, vectors = eigh(hessian, check_finite=False)
        sizes = abs(values)
        sizes = np.maximum(sizes, 1e-8 * sizes.max() or 1.0)  # no second derivatives: along the gradient
        return -vectors @ ((vectors.T @ g) / sizes), True


class NewtonCG(_SecondOrder):
    """x ← x + s, where s minimizes the quadratic model g's + ½ s'Hs of the loss within a radius, found by conjugate gradients.

    `step` needs a closure that computes the loss from the parameters and returns it, without backward; its value before the step is returned.
    Each iteration of the conjugate gradients takes one exact product with the Hessian. They end where the residual is smaller than min(½,
    √norm(g)) norm(g), at the radius, in a direction of negative curvature, or after `max_cg` products (the number of elements). A step is taken
    if the loss falls by more than `eta` of what the model says; otherwise the radius shrinks, up to `max_trials` times, which takes no more
    products. The radius is doubled, up to `max_radius`, where the model is good and was stopped by it. Groups are optimized together; each may
    have its own `weight_decay`, which adds ½ weight_decay p² to the loss. The state is that of the first parameter: `step`, `func_evals`,
    `radius`, and `products`, the number of products with the Hessian.

    Raises ValueError for numbers out of their range and complex parameters; TypeError without a closure; RuntimeError for a loss that is no
    finite real scalar or does not depend on the parameters, and where its derivatives are not finite. The parameters are unchanged then, and where
    the closure raises.

    >>> import symgrad
    >>> x = symgrad.tensor([-1.2, 1.0], requires_grad=True)
    >>> optimizer = symgrad.optim.NewtonCG([x])
    >>> for _ in range(25):
    ...     loss = optimizer.step(lambda: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)
    >>> x
    tensor([1.0000, 1.0000], requires_grad=True)

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., algorithms 4.1 and 7.2.
    """

    _options = {"radius": 1.0, "max_radius": 1e3, "eta": 1e-4, "weight_decay": 0, "max_cg": None, "max_trials": 30}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        self._require("radius", options["radius"], 0 < options["radius"] <= options["max_radius"], "positive and not larger than max_radius")
        self._require("eta", options["eta"], 0 <= options["eta"] < 0.25, "in [0, 0.25)")

    def step(self, closure: Callable[[], Any]) -> Any:
        """One step; the loss before it is returned."""
        problem = self._start(closure)
        group, state = self.param_groups[0], self.state[self.param_groups[0]["params"][0]]
        radius, g = float(state["radius"] if "radius" in state else group["radius"]), problem.gradient
        size = float(quietly(np.linalg.norm, g))
        way = _steihaug(problem.product, g, radius, min(0.5, size**0.5) * size, group["max_cg"] or g.size) if size > 0 else []
        for _ in range(group["max_trials"] if way else 0):
            s, hs = _within(way, radius)
            length, predicted = quietly(lambda s=s, hs=hs: (float(np.linalg.norm(s)), -float(g @ s + 0.5 * (s @ hs))))
            fall = problem.value - problem.move(s)
            # Where the falls are as small as the rounding of the loss, their ratio says nothing; the model is right then.
            ratio = (fall + problem.rounding) / (predicted + problem.rounding)
            if ratio < 0.25:
                radius = 0.25 * length
            elif ratio > 0.75 and length > 0.99 * radius:
                radius = min(2 * radius, group["max_radius"])
            if ratio > group["eta"]:
                break
        else:
            problem.restore()
        self._record(problem, radius=radius, products=state.get("products", 0) + max(len(way) - 1, 0))
        return problem.loss


def _steihaug(product: Callable[[np.ndarray], np.ndarray], g: np.ndarray, radius: float, tolerance: float,
              most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The way of the conjugate gradients from 0 towards the minimum of g's + ½ s'Hs, up to a radius: steps s, each with Hs.

    Along it the model falls and the length of s grows. There is one product with H for each piece of the way.
    """
    s, hs, r = np.zeros_like(g), np.zeros_like(g), g
    d, rr, way, inside = -g, float(quietly(operator.matmul, g, g)), [(s, hs)], True
    while len(way) <= most:
        s, hs, r, d, rr, inside = quietly(_next_piece, s, hs, r, d, product(d), rr, radius)
        way.append((s, hs))
        if not inside or rr**0.5 < tolerance:
            break
    return way


def _next_piece(s: np.ndarray, hs: np.ndarray, r: np.ndarray, d: np.ndarray, hd: np.ndarray, rr: float,
                radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, bool]:
    """The next point of the way, with Hs, the residual, the next direction, the square of the residual, and whether it is inside of the radius."""
    curvature = float(d @ hd)
    alpha = rr / curvature if curvature > 0 else 0.0
    inside = bool(curvature > 0 and np.linalg.norm(s + alpha * d) < radius)
    if not inside:
        alpha = _to_radius(s, d, radius)
    s, hs, r = s + alpha * d, hs + alpha * hd, r + alpha * hd
    before, rr = rr, float(r @ r)
    return s, hs, r, -r + (rr / before) * d, rr, inside


@quiet
def _to_radius(s: np.ndarray, d: np.ndarray, radius: float) -> float:
    """The positive number with norm(s + number d) = radius, where s'd is not negative."""
    b, c = float(s @ d), float(s @ s) - radius**2
    return -c / (b + float(np.sqrt(b * b - float(d @ d) * c)))


@quiet
def _within(way: list[tuple[np.ndarray, np.ndarray]], radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The last step on a way that is not longer than a radius."""
    for (s, hs), (end, h_end) in zip(way, way[1:]):
        if np.linalg.norm(end) > radius:
            part = _to_radius(s, end - s, radius)
            return s + part * (end - s), hs + part * (h_end - hs)
    return way[-1]
