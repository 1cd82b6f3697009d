"""Adamax: Adam with the largest gradient in the place of the root mean square."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, lerp, scalar_zero
from symgrad.types.absent import explained

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """p ← p - lr / (1 - β₁ⁿ) m / u in step n, with the running mean m of the gradient and the decaying maximum u of its size.

    m ← m + (1 - β₁)(g - m) and u ← max(β₂ u, abs(g) + eps). `weight_decay` adds weight_decay p to the gradient; with `maximize` it changes its
    sign. The state of a parameter is `step`, `exp_avg` (m) and `exp_inf` (u). `foreach` and `capturable` have no effect.

    Raises ValueError for negative numbers, and for betas outside [0, 1).

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = Adamax([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.5000, requires_grad=True)

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, section 7.1.
    """

    def __init__(self, params: Any, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False):
        check_options({"learning rate": lr, "epsilon value": eps, "betas": betas, "weight_decay value": weight_decay})
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = map(float, group["betas"])
        if not state:
            state.update(step=scalar_zero(xp), exp_avg=xp.zeros_like(p), exp_inf=xp.zeros_like(p))
        n = count(state)
        g = gradient(p, g, group)
        m = state["exp_avg"]
        lerp(m, g, 1 - beta1)
        u = state["exp_inf"] = xp.maximum(beta2 * state["exp_inf"], xp.abs(g) + group["eps"])
        p += -(group["lr"] / (1 - beta1**n)) * m / u


__getattr__, __path__ = explained(__name__), list[str]()
