"""RMSprop: steps in units of the root mean square of the gradient."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared, lerp
from symgrad.optim.optimizer import Group

__all__ = ["RMSprop"]


class RMSprop(Declared):
    """p ← p - lr g / (√v + eps), with the running mean v of the square of the gradient: v ← alpha v + (1 - alpha) g².

    With `centered` the variance v - a² is in the place of v, where a is the running mean of the gradient. With `momentum` the step is
    lr b, with b ← momentum b + g / (√v + eps). The state of a parameter is `step`, `square_avg` (v) and, where they are used,
    `momentum_buffer` (b) and `grad_avg` (a).

    Source: Hinton, Neural Networks for Machine Learning, lecture 6, 2012; Graves, Generating Sequences With Recurrent Neural Networks, 2013.
    """

    _options = {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0, "centered": False}
    _example = "lr=0.5, alpha=0.0", "2.5000"
    _switches = "capturable foreach maximize differentiable"
    _arrays = {"square_avg": None, "momentum_buffer": None, "grad_avg": None}
    _used_by = {"momentum_buffer": "momentum", "grad_avg": "centered"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        self._require("alpha", options["alpha"], options["alpha"] >= 0, "not negative")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        v = state["square_avg"]
        v *= alpha
        v += (1 - alpha) * g * g
        if group["centered"]:
            a = state["grad_avg"]
            lerp(a, g, 1 - alpha)
            v = v - a * a
        direction = g / (xp.sqrt(v) + group["eps"])
        if momentum > 0:
            b = state["momentum_buffer"]
            b *= momentum
            b += direction
            direction = b
        p += -group["lr"] * direction
