"""RAdam: Adam that waits with its adaptive step until the variance of that is known well enough."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared, lerp
from symgrad.optim.optimizer import Group

__all__ = ["RAdam"]


class RAdam(Declared):
    """p ← p - lr m̂ r √(1 - β₂ⁿ) / (√v + eps) in step n where ρ > 5, and p ← p - lr m̂ before; m̂ and v are those of `Adam`.

    ρ = ρ∞ - 2 n β₂ⁿ / (1 - β₂ⁿ) with ρ∞ = 2 / (1 - β₂) - 1, and r² = (ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ). The state of a
    parameter is `step`, `exp_avg` (m) and `exp_avg_sq` (v).

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2019.
    """

    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "decoupled_weight_decay": False}
    _example = "lr=0.5", "0."
    _switches = "* foreach maximize capturable differentiable"
    _arrays = {"exp_avg": None, "exp_avg_sq": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        beta1, beta2 = map(float, group["betas"])
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
