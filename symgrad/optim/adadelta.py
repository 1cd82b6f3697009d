"""Adadelta: steps whose size is that of the earlier steps, so that no learning rate is needed."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, scalar_zero
from symgrad.types.absent import explained

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """p ← p - lr d, with d = √(u + eps) / √(v + eps) g and the running means v of g² and u of d².

    v ← rho v + (1 - rho) g² before the step and u ← rho u + (1 - rho) d² after it. `weight_decay` adds weight_decay p to the gradient; with
    `maximize` it changes its sign. The state of a parameter is `step`, `square_avg` (v) and `acc_delta` (u). `foreach` and `capturable` have no
    effect.

    Raises ValueError for negative numbers, and for rho outside [0, 1].

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = Adadelta([x], rho=0.0, eps=1.0)
    >>> x.backward()
    >>> optimizer.step()
    >>> x
    tensor(2.2929, requires_grad=True)

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False):
        check_options({"learning rate": lr, "rho value": rho})
        if rho > 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_options({"epsilon value": eps, "weight_decay value": weight_decay})
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable, foreach=foreach,
                                      differentiable=differentiable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        if not state:
            state.update(step=scalar_zero(xp), square_avg=xp.zeros_like(p), acc_delta=xp.zeros_like(p))
        count(state)
        g = gradient(p, g, group)
        v, u = state["square_avg"], state["acc_delta"]
        v *= rho
        v += (1 - rho) * g * g
        d = xp.sqrt(u + eps) / xp.sqrt(v + eps) * g
        u *= rho
        u += (1 - rho) * d * d
        p += -group["lr"] * d


__getattr__, __path__ = explained(__name__), list[str]()
