"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared, number, scalar
from symgrad.optim.optimizer import Group

__all__ = ["ASGD"]


class ASGD(Declared):
    """p ← (1 - lambd η) p - η g, and the mean a of the parameters from step t0 on: a ← a + μ (p - a).

    After step n, η = lr / (1 + lambd lr n)^alpha and μ = 1 / max(1, n - t0). The state of a parameter is `step`,
    `eta` (η), `mu` (μ) and `ax` (a).

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.
    """

    _options = {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0}
    _example = "lr=0.25, lambd=0.0", "1.5000"
    _switches = "foreach maximize differentiable capturable"
    _numbers = {"step": 0, "eta": "lr", "mu": 1}
    _arrays = {"ax": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        lr, lambd = group["lr"], group["lambd"]
        eta, mean = number(state["eta"]), state["ax"]
        p *= 1 - lambd * eta
        p -= eta * g
        mu = float(state["mu"])
        mean[...] = p if mu == 1 else mean + mu * (p - mean)
        state["eta"] = scalar(xp, lr / (1 + lambd * lr * n) ** group["alpha"])
        state["mu"] = scalar(xp, 1 / max(1, n - group["t0"]))
