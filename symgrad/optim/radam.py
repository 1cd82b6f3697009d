"""RAdam: Adam that waits with its adaptive step until the variance of that is known well enough."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, lerp, scalar_zero
from symgrad.types.absent import explained

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """p ← p - lr m̂ r √(1 - β₂ⁿ) / (√v + eps) in step n where ρ > 5, and p ← p - lr m̂ before; m̂ and v are those of `Adam`.

    ρ = ρ∞ - 2 n β₂ⁿ / (1 - β₂ⁿ) with ρ∞ = 2 / (1 - β₂) - 1, and r² = (ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ). `weight_decay` adds
    weight_decay p to the gradient; with `decoupled_weight_decay` p shrinks by the factor 1 - lr weight_decay instead; with `maximize` the gradient
    changes its sign. The state of a parameter is `step`, `exp_avg` (m) and `exp_avg_sq` (v). `foreach` and `capturable` have no effect.

    Raises ValueError for negative numbers, and for betas outside [0, 1).

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = RAdam([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(0., requires_grad=True)

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2019.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False):
        check_options({"learning rate": lr, "epsilon value": eps, "betas": betas, "weight_decay value": weight_decay})
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                                      capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = map(float, group["betas"])
        if not state:
            state.update(step=scalar_zero(xp), exp_avg=xp.zeros_like(p), exp_avg_sq=xp.zeros_like(p))
        n = count(state)
        g = gradient(p, g, group, group["decoupled_weight_decay"])
        if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
            p *= 1 - group["lr"] * group["weight_decay"]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        lerp(m, g, 1 - beta1)
        v *= beta2
        v += (1 - beta2) * g * g
        unbiased = 1 - beta2**n
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * n * beta2**n / unbiased  # of the running mean, in steps
        step = group["lr"] / (1 - beta1**n) * m
        if length > 5.0:
            rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
            step = step * (rectified * unbiased**0.5) / (xp.sqrt(v) + group["eps"])
        p -= step

    def _version_steps(self, group: Group) -> int:
        return 2 if group["decoupled_weight_decay"] and group["weight_decay"] != 0 else 1


__getattr__, __path__ = explained(__name__), list[str]()
