"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared, lerp, number
from symgrad.optim.optimizer import Group

__all__ = ["NAdam"]


class NAdam(Declared):
    """p ← p - lr ((1 - μₙ) / (1 - Πₙ) g + μₙ₊₁ / (1 - Πₙ₊₁) m) / (√v̂ + eps) in step n, where Πₙ is the product of all μ up to μₙ.

    μₙ = β₁ (1 - ½ 0.96^(n momentum_decay)); m, v and v̂ = v / (1 - β₂ⁿ) are those of `Adam`. The state of a parameter is `step`, `mu_product`
    (Π), `exp_avg` (m) and `exp_avg_sq` (v).

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.
    """

    _options = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "momentum_decay": 4e-3, "decoupled_weight_decay": False}
    _example = "lr=0.5", "2.4718"
    _switches = "* foreach maximize capturable differentiable"
    _numbers = {"step": 0, "mu_product": 1}
    _arrays = {"exp_avg": None, "exp_avg_sq": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        beta1, beta2 = map(float, group["betas"])
        lr, decay = group["lr"], group["momentum_decay"]
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
