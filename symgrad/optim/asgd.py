"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, number, scalar_zero
from symgrad.types.absent import explained

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """p ← (1 - lambd η) p - η g, and the mean a of the parameters from step t0 on: a ← a + μ (p - a).

    After step n, η = lr / (1 + lambd lr n)^alpha and μ = 1 / max(1, n - t0). `weight_decay` adds weight_decay p to the gradient; with `maximize`
    it changes its sign. The state of a parameter is `step`, `eta` (η), `mu` (μ) and `ax` (a). `foreach` and `capturable` have no effect.

    Raises ValueError for a negative lr or weight_decay.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = ASGD([x], lr=0.25, lambd=0.0)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(1.5000, requires_grad=True)

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.
    """

    _numbers = ("step", "eta", "mu")

    def __init__(self, params: Any, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False):
        check_options({"learning rate": lr, "weight_decay value": weight_decay})
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        lr, lambd = group["lr"], group["lambd"]
        if not state:
            zero = scalar_zero(xp)
            state.update(step=zero, eta=zero + lr, mu=zero + 1, ax=xp.zeros_like(p))
        n = count(state)
        g = gradient(p, g, group)
        eta, mean = number(state["eta"]), state["ax"]
        p *= 1 - lambd * eta
        p -= eta * g
        mu = float(state["mu"])
        mean[...] = p if mu == 1 else mean + mu * (p - mean)
        state["eta"] = lr / (1 + lambd * lr * n) ** group["alpha"] + scalar_zero(xp)
        state["mu"] = 1 / max(1, n - group["t0"]) + scalar_zero(xp)

    def _version_steps(self, group: Group) -> int:
        return 2


__getattr__, __path__ = explained(__name__), list[str]()
