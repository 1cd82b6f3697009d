"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, gradient, lerp, number, scalar_zero
from symgrad.types.absent import explained

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """p ← p - lr ((1 - μₙ) / (1 - Πₙ) g + μₙ₊₁ / (1 - Πₙ₊₁) m) / (√v̂ + eps) in step n, where Πₙ is the product of all μ up to μₙ.

    μₙ = β₁ (1 - ½ 0.96^(n momentum_decay)); m, v and v̂ = v / (1 - β₂ⁿ) are those of `Adam`. `weight_decay` adds weight_decay p to the gradient;
    with `decoupled_weight_decay` p shrinks by the factor 1 - lr weight_decay instead; with `maximize` the gradient changes its sign. The state of a
    parameter is `step`, `mu_product` (Π), `exp_avg` (m) and `exp_avg_sq` (v). `foreach` and `capturable` have no effect.

    Raises ValueError for negative numbers, and for betas outside [0, 1).

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = NAdam([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.4718, requires_grad=True)

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.
    """

    _numbers = ("step", "mu_product")

    def __init__(self, params: Any, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False):
        check_options({"learning rate": lr, "epsilon value": eps, "betas": betas, "weight_decay value": weight_decay,
                       "momentum_decay value": momentum_decay})
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                                      decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
                                      differentiable=differentiable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = map(float, group["betas"])
        lr, decay = group["lr"], group["momentum_decay"]
        if not state:
            state.update(step=scalar_zero(xp), mu_product=scalar_zero(xp) + 1, exp_avg=xp.zeros_like(p), exp_avg_sq=xp.zeros_like(p))
        n = count(state)
        g = gradient(p, g, group, group["decoupled_weight_decay"])
        if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (i * decay)) for i in (n, n + 1))
        state["mu_product"] = state["mu_product"] * mu
        product = number(state["mu_product"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        lerp(m, g, 1 - beta1)
        v *= beta2
        v += (1 - beta2) * g * g
        size = xp.sqrt(v / (1 - beta2**n)) + group["eps"]
        p += -lr * (1.0 - mu) / (1.0 - product) * g / size
        p += -lr * mu_next / (1.0 - product * mu_next) * m / size

    def _version_steps(self, group: Group) -> int:
        return 3 if group["decoupled_weight_decay"] and group["weight_decay"] != 0 else 2


__getattr__, __path__ = explained(__name__), list[str]()
