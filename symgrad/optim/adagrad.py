"""Adagrad: steps in units of the root of the sum of all squares of the gradient so far."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import full_like
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_implementations, check_options, count, gradient, scalar_zero
from symgrad.types.absent import explained

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """p ← p - lr / (1 + (n - 1) lr_decay) g / (√s + eps) in step n, with the sum s of the squares of the gradients.

    The sum begins at `initial_accumulator_value`. `weight_decay` adds weight_decay p to the gradient; with `maximize` it changes its sign. The
    state of a parameter is `step` and `sum`; it is there from the beginning. `foreach` and `fused` have no effect.

    Raises ValueError for negative numbers.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = Adagrad([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.5000, requires_grad=True)

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
                 fused: bool | None = None):
        check_options({"learning rate": lr, "lr_decay value": lr_decay, "weight_decay value": weight_decay,
                       "initial_accumulator_value value": initial_accumulator_value, "epsilon value": eps})
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, fused=fused))
        check_implementations(foreach, fused, differentiable)
        for group in self.param_groups:
            first = group["initial_accumulator_value"]
            for p in group["params"]:
                self.state[p] = {"step": scalar_zero(traced), "sum": full_like(p, complex(first, first) if p.is_complex() else first)}

    def share_memory(self) -> None:
        """Nothing: processes do not share tensors."""

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        if not state:  # of a group that was added later
            state.update(step=scalar_zero(xp), sum=xp.zeros_like(p) + self.defaults["initial_accumulator_value"])
        n, total = count(state), state["sum"]
        g = gradient(p, g, group)
        total += g * g
        p += -(group["lr"] / (1 + (n - 1) * group["lr_decay"])) * g / (xp.sqrt(total) + group["eps"])


__getattr__, __path__ = explained(__name__), list[str]()
