"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_implementations, check_learning_rate, gradient
from symgrad.types.absent import explained

__all__ = ["SGD"]


class SGD(Optimizer):
    """p ← p - lr b, with b ← momentum b + (1 - dampening) g and g the gradient plus weight_decay p.

    With `nesterov` the step is along g + momentum b; with `maximize` the gradient changes its sign. The state of a parameter is its
    `momentum_buffer`, which the first step sets to g. `foreach` and `fused` have no effect.

    Raises ValueError for negative numbers, and for Nesterov momentum without momentum or with dampening.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = SGD([x], lr=0.25)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(1.5000, requires_grad=True)
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float | Tensor = 0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None):
        check_learning_rate(lr)
        for name, value in {"learning rate": lr, "momentum value": momentum, "weight_decay value": weight_decay}.items():
            if value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, maximize=maximize,
                                      foreach=foreach, differentiable=differentiable, fused=fused))
        check_implementations(foreach, fused, differentiable)

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        momentum = group["momentum"]
        g = gradient(p, g, group)
        if momentum != 0:
            b = state.get("momentum_buffer")
            if b is None:
                b = state["momentum_buffer"] = xp.zeros_like(p)
                b += g
            else:
                b *= momentum
                b += (1 - group["dampening"]) * g
            g = g + momentum * b if group["nesterov"] else b
        p += -group["lr"] * g


__getattr__, __path__ = explained(__name__), list[str]()
