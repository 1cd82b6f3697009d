"""Resilient backpropagation: each element has a step size of its own, and the gradient only says the direction."""

from __future__ import annotations

from typing import Any

from symgrad.optim.declared import Declared
from symgrad.optim.optimizer import Group

__all__ = ["Rprop"]


class Rprop(Declared):
    """p ← p - sign(g) s, with a step size s for each element: it grows where the gradient keeps its sign, and shrinks where that changes.

    s is multiplied by etas[1] or etas[0], and kept between the two `step_sizes`; where the sign has changed, g is 0 for this step. s begins at lr.
    The state of a parameter is `step`, `prev` (the gradient of the last step) and `step_size` (s).

    Source: Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993.
    """

    _options = {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}
    _example = "lr=0.5", "2.5000"
    _switches = "* capturable foreach maximize differentiable"
    _arrays = {"prev": None, "step_size": "lr"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        shrink, grow = options["etas"]
        self._require("etas", options["etas"], 0 < shrink < 1 < grow, "a number in (0, 1) and one larger than 1")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        agreement = g * state["prev"]
        g = xp.where(agreement < 0, 0.0, g)
        size = state["step_size"]
        size = xp.where(agreement > 0, size * grow, xp.where(agreement < 0, size * shrink, size))
        size = state["step_size"] = xp.minimum(xp.maximum(size, smallest), largest)
        state["prev"] = g
        p -= xp.sign(g) * size
