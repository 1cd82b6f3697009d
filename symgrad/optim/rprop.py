"""Resilient backpropagation: each element has a step size of its own, and the gradient only says the direction."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_options, count, scalar_zero
from symgrad.types.absent import explained

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """p ← p - sign(g) s, with a step size s for each element: it grows where the gradient keeps its sign, and shrinks where that changes.

    s is multiplied by etas[1] or etas[0], and kept between the two `step_sizes`; where the sign has changed, g is 0 for this step. s begins at lr.
    With `maximize` the gradient changes its sign. The state of a parameter is `step`, `prev` (the gradient of the last step) and `step_size` (s).
    `foreach` and `capturable` have no effect.

    Raises ValueError for a negative lr, and unless 0 < etas[0] < 1 < etas[1].

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = Rprop([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.5000, requires_grad=True)

    Source: Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False):
        check_options({"learning rate": lr})
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize, differentiable=differentiable,
                                      capturable=capturable))

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            state.update(step=scalar_zero(xp), prev=xp.zeros_like(p), step_size=xp.zeros_like(p) + group["lr"])
        count(state)
        if group["maximize"]:
            g = -g
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        agreement = g * state["prev"]
        g = xp.where(agreement < 0, 0.0, g)
        size = state["step_size"]
        size = xp.where(agreement > 0, size * grow, xp.where(agreement < 0, size * shrink, size))
        size = state["step_size"] = xp.minimum(xp.maximum(size, smallest), largest)
        state["prev"] = g
        p -= xp.sign(g) * size


__getattr__, __path__ = explained(__name__), list[str]()
