"""L-BFGS: Newton's method with an inverse Hessian that is known from the last changes of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd.modes import enable_grad
from symgrad.engine.tensor import Tensor, wrap
from symgrad.optim.declared import Declared
from symgrad.optim.models import flat, gradients, write
from symgrad.optim.optimizer import Group
from symgrad.system.errorstate import quietly


class LBFGS(Declared):
    """Up to `max_iter` steps x ← x + t d along d = -H g in each call of `step`, with the inverse Hessian H of the last `history_size` changes.

    H is built from pairs (s, y) of the changes of x and of its gradient: H ← (I - ρ s yᵀ) H (I - ρ y sᵀ) + ρ s sᵀ with ρ = 1 / yᵀs, from
    yᵀs / yᵀy I. t is lr, or is searched until it satisfies the strong Wolfe conditions with line_search_fn="strong_wolfe". `step` needs a closure
    that clears the gradients, computes the loss, calls backward and returns the loss. It ends after `max_iter` steps or `max_eval` calls of the
    closure, where no element of the gradient is larger than `tolerance_grad`, and where neither x nor the loss changes by `tolerance_change`. The
    state is that of the first parameter: `func_evals`, `n_iter`, `d`, `t`, `old_dirs` (y), `old_stps` (s), `ro` (ρ), `H_diag`, `prev_flat_grad`,
    `prev_loss` and `al`. There is one group of parameters.

    Raises ValueError for a negative lr and for several groups, and RuntimeError for another line search.

    >>> import symgrad
    >>> x = symgrad.tensor([3.0, -1.0], requires_grad=True)
    >>> optimizer = LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 4).sum() + (x[0] - x[1]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(48., grad_fn=<AddBackward0>)
    >>> closure() < 1e-8
    tensor(True)

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., algorithms 7.4, 7.5, 3.5 and 3.6.
    """

    _options = {"lr": 1, "max_iter": 20, "max_eval": None, "tolerance_grad": 1e-7, "tolerance_change": 1e-9, "history_size": 100,
                "line_search_fn": None}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        if options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4

    def add_param_group(self, param_group: Group) -> None:
        if self.param_groups:
            raise ValueError("LBFGS: there are several parameter groups; give one, as its steps are those of all parameters together")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` steps; the loss at the beginning is returned."""
        group = self.param_groups[0]
        params, tolerance = group["params"], group["tolerance_change"]
        lr, max_iter, max_eval = float(group["lr"]), group["max_iter"], group["max_eval"]
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate(t: float = 0.0) -> _Point:
            """The loss and the gradient at x + t d, where the parameters are then."""
            if t:
                write_along(t)
            state["func_evals"] += 1
            with enable_grad():
                losses.append(closure())
            g = gradients(params)
            return _Point(t, float(losses[-1]), g, quietly(_product, g, d) if t else 0.0)

        def write_along(t: float) -> None:
            write(params, quietly(_along, x, t, d), "LBFGS.step")

        losses: list[Any] = []
        point = evaluate()
        first = losses[0]
        if abs(point.gradient).max() <= group["tolerance_grad"]:
            return first
        memory = _UpdateHistory(state, group["history_size"])
        evaluations = 1
        for i in range(1, max_iter + 1):
            state["n_iter"] += 1
            g, x = point.gradient, flat(params)
            d = quietly(memory.direction, g)
            previous = point = _Point(0.0, point.loss, g, quietly(_product, g, d))
            memory.gradient, memory.loss = g, point.loss
            memory.t = t = quietly(lambda g: min(1.0, float(1.0 / abs(g).sum())), g) * lr if state["n_iter"] == 1 else lr
            if point.slope > -tolerance:
                break
            before = len(losses)
            if group["line_search_fn"] == "strong_wolfe":
                point = _strong_wolfe(evaluate, point, t, abs(d).max(), max_eval - evaluations)
                memory.t = t = point.t
                write_along(t)
            elif group["line_search_fn"] is not None:
                raise RuntimeError("only 'strong_wolfe' is supported")
            elif i != max_iter:
                point = evaluate(t)
            else:  # the loss there is not needed
                write_along(t)
            evaluations += len(losses) - before
            if (i == max_iter or evaluations >= max_eval or abs(point.gradient).max() <= group["tolerance_grad"]
                    or quietly(_along, 0.0, t, abs(d)).max() <= tolerance or abs(point.loss - previous.loss) < tolerance):
                break
        memory.save(state)
        return first


def _along(x: Any, t: float, d: Any) -> Any:
    return x + t * d


def _product(g: np.ndarray, d: np.ndarray) -> float:
    return float(g @ d)


class _Point(NamedTuple):
    """A point x + t d of a line: the loss, its gradient, and its slope along the line."""

    t: float
    loss: float
    gradient: np.ndarray
    slope: float


class _UpdateHistory:
    """The last changes of the parameters and of the gradient; taken from the state, and saved there in torch's form."""

    def __init__(self, state: dict[str, Any], size: int):
        def arrays(name: str) -> list[Any]:
            return [np.asarray(t._value) for t in state.get(name, [])]

        self.size, self.changes, self.steps, self.ro = size, arrays("old_dirs"), arrays("old_stps"), [float(r) for r in arrays("ro")]
        self.scale, self.t, self.loss = (float(state.get(name, 1.0)) for name in ("H_diag", "t", "prev_loss"))
        self.d: Any
        self.gradient: Any
        self.d, self.gradient = (state[name]._value if name in state else None for name in ("d", "prev_flat_grad"))
        self.al: list[Any] = state.get("al") or [None] * size
        self.used = "al" in state

    def direction(self, g: np.ndarray) -> np.ndarray:
        """-H g, after the newest change was remembered."""
        if self.gradient is None:
            self.d = -g
            return self.d
        y, s = g - self.gradient, self.d * self.t
        product = float(y @ s)
        if product > 1e-10:
            if len(self.changes) == self.size:
                del self.changes[0], self.steps[0], self.ro[0]
            self.changes.append(y)
            self.steps.append(s)
            self.ro.append(1.0 / product)
            self.scale = product / float(y @ y)
        self.used = True
        q = -g
        for i in reversed(range(len(self.steps))):
            self.al[i] = float(self.steps[i] @ q) * self.ro[i]
            q -= self.al[i] * self.changes[i]
        q *= self.scale
        for i, (y, s) in enumerate(zip(self.changes, self.steps)):
            q += (self.al[i] - float(y @ q) * self.ro[i]) * s
        self.d = q
        return q

    def save(self, state: dict[str, Any]) -> None:
        def tensor(value: Any) -> Tensor:
            return wrap(np.asarray(value, self.d.dtype).copy())

        state.update(d=tensor(self.d), t=self.t, old_dirs=[*map(tensor, self.changes)], old_stps=[*map(tensor, self.steps)],
                     ro=[*map(tensor, self.ro)], H_diag=tensor(self.scale) if self.used else 1, prev_flat_grad=tensor(self.gradient),
                     prev_loss=self.loss)
        if self.used:
            state["al"] = [value if value is None or isinstance(value, Tensor) else tensor(value) for value in self.al]


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic with the losses and slopes of two points is least, within bounds; their middle where it has no minimum."""
    if a.t > b.t:
        a, b = b, a
    low, high = bounds or (a.t, b.t)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)), low), high)


def _strong_wolfe(evaluate: Callable[[float], _Point], start: _Point, t: float, size: float, most: int, c1: float = 1e-4, c2: float = 0.9,
                  smallest: float = 1e-9) -> _Point:
    """A point of the line where loss ≤ loss₀ + c1 t slope₀ and abs(slope) ≤ c2 abs(slope₀), or the best one after 1 + `most` evaluations.

    First the step grows until an interval has such points; then it is narrowed down with cubics.
    """
    previous, point, count = start, evaluate(t), 0

    def too_high(point: _Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    while count < most:
        if too_high(point) or count > 1 and point.loss >= previous.loss:
            break
        if abs(point.slope) <= -c2 * start.slope:
            return point
        if point.slope >= 0:
            break
        t = _cubic_minimum(previous, point, (point.t + 0.01 * (point.t - previous.t), point.t * 10))
        previous, point, count = point, evaluate(t), count + 1
    ends = [start if count >= most else previous, point]
    low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
    stalled = False
    while count < most and not abs(ends[1].t - ends[0].t) * size < smallest:
        t = _cubic_minimum(ends[0], ends[1])
        left, right = sorted((ends[0].t, ends[1].t))
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (stalled or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near = False
        stalled = near
        point, count = evaluate(t), count + 1
        if too_high(point) or point.loss >= ends[low].loss:
            ends[high] = point
            low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        done = abs(point.slope) <= -c2 * start.slope
        if not done and point.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = point
        if done:
            break
    return ends[low]
