"""Adagrad: steps in units of the root of the sum of all squares of the gradient so far."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared
from symgrad.optim.optimizer import Group

__all__ = ["Adagrad"]


class Adagrad(Declared):
    """p ← p - lr / (1 + (n - 1) lr_decay) g / (√s + eps) in step n, with the sum s of the squares of the gradients.

    The sum begins at `initial_accumulator_value`. The state of a parameter is `step` and `sum` (s).

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    """

    _options = {"lr": 1e-2, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10}
    _example = "lr=0.5", "2.5000"
    _switches = "foreach * maximize differentiable fused"
    _arrays = {"sum": "initial_accumulator_value"}

    def share_memory(self) -> None:
        """Nothing: processes do not share tensors."""

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        total = state["sum"]
        total += g * g
        p += -(group["lr"] / (1 + (n - 1) * group["lr_decay"])) * g / (xp.sqrt(total) + group["eps"])
