"""Adadelta: steps whose size is that of the earlier steps, so that no learning rate is needed."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared
from symgrad.optim.optimizer import Group

__all__ = ["Adadelta"]


class Adadelta(Declared):
    """p ← p - lr d, with d = √(u + eps) / √(v + eps) g and the running means v of g² and u of d².

    v ← rho v + (1 - rho) g² before the step and u ← rho u + (1 - rho) d² after it. The state of a parameter is `step`, `square_avg`
    (v) and `acc_delta` (u).

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.
    """

    _options = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0}
    _example = "rho=0.0, eps=1.0", "2.0136"
    _switches = "foreach * capturable maximize differentiable"
    _arrays = {"square_avg": None, "acc_delta": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        rho, eps = group["rho"], group["eps"]
        v, u = state["square_avg"], state["acc_delta"]
        v *= rho
        v += (1 - rho) * g * g
        d = xp.sqrt(u + eps) / xp.sqrt(v + eps) * g
        u *= rho
        u += (1 - rho) * d * d
        p += -group["lr"] * d
