"""RMSprop: steps in units of the root mean square of the gradient."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, lerp, scalar_zero
from symgrad.types.absent import explained

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """p ← p - lr g / (√v + eps), with the running mean v of the square of the gradient: v ← alpha v + (1 - alpha) g².

    With `centered` the variance v - a² is in the place of v, where a is the running mean of the gradient. With `momentum` the step is
    lr b, with b ← momentum b + g / (√v + eps). `weight_decay` adds weight_decay p to the gradient; with `maximize` it changes its sign. The state
    of a parameter is `step`, `square_avg` (v) and, where they are used, `momentum_buffer` (b) and `grad_avg` (a). `foreach` and `capturable` have no
    effect.

    Raises ValueError for negative numbers.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = RMSprop([x], lr=0.5, alpha=0.0)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.5000, requires_grad=True)

    Source: Hinton, Neural Networks for Machine Learning, lecture 6, 2012; Graves, Generating Sequences With Recurrent Neural Networks, 2013.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False):
        check_options({"learning rate": lr, "epsilon value": eps, "momentum value": momentum, "weight_decay value": weight_decay,
                       "alpha value": alpha})
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                                      capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        if not state:
            state.update(step=scalar_zero(xp), square_avg=xp.zeros_like(p))
            if momentum > 0:
                state["momentum_buffer"] = xp.zeros_like(p)
            if group["centered"]:
                state["grad_avg"] = xp.zeros_like(p)
        count(state)
        g = gradient(p, g, group)
        v = state["square_avg"]
        v *= alpha
        v += (1 - alpha) * g * g
        if group["centered"]:
            a = state["grad_avg"]
            lerp(a, g, 1 - alpha)
            v = v - a * a
        direction = g / (xp.sqrt(v) + group["eps"])
        if momentum > 0:
            b = state["momentum_buffer"]
            b *= momentum
            b += direction
            direction = b
        p += -group["lr"] * direction


__getattr__, __path__ = explained(__name__), list[str]()
