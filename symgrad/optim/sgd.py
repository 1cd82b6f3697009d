"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared
from symgrad.optim.optimizer import Group

__all__ = ["SGD"]


class SGD(Declared):
    """p ← p - lr b, with b ← momentum b + (1 - dampening) g and g the gradient plus weight_decay p.

    With `nesterov` the step is along g + momentum b. The state of a parameter is its `momentum_buffer`, which the first step sets to g.
    """

    _options = {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False}
    _example = "lr=0.25", "1.5000"
    _switches = "* maximize foreach differentiable fused"
    _numbers = {}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        right = not options["nesterov"] or options["momentum"] > 0 and options["dampening"] == 0
        self._require("nesterov", options["nesterov"], right, "False unless momentum is positive and dampening is 0")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        momentum = group["momentum"]
        if momentum != 0:
            b = state.get("momentum_buffer")
            if b is None:
                b = state["momentum_buffer"] = xp.zeros_like(p)
                b += g
            else:
                b *= momentum
                b += (1 - group["dampening"]) * g
            g = g + momentum * b if group["nesterov"] else b
        p += -group["lr"] * g
