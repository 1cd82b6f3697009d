"""Adamax: Adam with the largest gradient in the place of the root mean square."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared, lerp
from symgrad.optim.optimizer import Group

__all__ = ["Adamax"]


class Adamax(Declared):
    """p ← p - lr / (1 - β₁ⁿ) m / u in step n, with the running mean m of the gradient and the decaying maximum u of its size.

    m ← m + (1 - β₁)(g - m) and u ← max(β₂ u, abs(g) + eps). The state of a parameter is `step`, `exp_avg` (m) and
    `exp_inf` (u).

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, section 7.1.
    """

    _options = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
    _example = "lr=0.5", "2.5000"
    _switches = "foreach * maximize differentiable capturable"
    _arrays = {"exp_avg": None, "exp_inf": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        beta1, beta2 = map(float, group["betas"])
        m = state["exp_avg"]
        lerp(m, g, 1 - beta1)
        u = state["exp_inf"] = xp.maximum(beta2 * state["exp_inf"], xp.abs(g) + group["eps"])
        p += -(group["lr"] / (1 - beta1**n)) * m / u
