"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer, check_implementations
from symgrad.types.dtypes import DTYPES, get_default_dtype

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """p ← p - lr m̂ / (√v̂ + eps), with running means m of the gradient and v of its square; m̂ and v̂ are bias-corrected.

    m ← m + (1 - β₁)(g - m), v ← β₂ v + (1 - β₂) g², m̂ = m / (1 - β₁ⁿ), v̂ = v / (1 - β₂ⁿ) in step n. `weight_decay` adds weight_decay p to
    the gradient; with `decoupled_weight_decay` p shrinks by the factor 1 - lr weight_decay instead. With `amsgrad` the largest v so far is
    used; with `maximize` the gradient changes its sign. The state of a parameter is `step`, `exp_avg` (m), `exp_avg_sq` (v) and, with `amsgrad`,
    `max_exp_avg_sq`. `foreach`, `fused` and `capturable` have no effect.

    Raises ValueError for negative numbers, and for betas outside [0, 1).

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = Adam([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(2.5000, requires_grad=True)
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        named_betas = {f"beta parameter at index {i}": beta for i, beta in enumerate(betas)}
        for name, value in {"learning rate": lr, "epsilon value": eps, **named_betas, "weight_decay value": weight_decay}.items():
            if not 0.0 <= value or name in named_betas and not value < 1.0:
                raise ValueError(f"Invalid {name}: {value}")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, foreach=foreach,
                                      capturable=capturable, differentiable=differentiable, fused=fused,
                                      decoupled_weight_decay=decoupled_weight_decay))
        check_implementations(foreach, fused, differentiable)

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = map(float, group["betas"])
        if not state:
            kind = DTYPES["float64" if get_default_dtype() is DTYPES["float64"] else "float32"]
            state["step"] = xp.zeros_like(np.zeros((), kind.numpy))
            state["exp_avg"], state["exp_avg_sq"] = xp.zeros_like(p), xp.zeros_like(p)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = xp.zeros_like(p)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        state["step"] += 1
        n = float(state["step"])
        if group["maximize"]:
            g = -g
        if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
            p *= 1 - group["lr"] * group["weight_decay"]
        elif group["weight_decay"] != 0:
            g = g + group["weight_decay"] * p
        _lerp(m, g, 1 - beta1)
        v *= beta2
        v += (1 - beta2) * g * g
        rate = group["lr"] / (1 - beta1**n)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            v = xp.maximum(largest, v)
            if isinstance(largest, np.ndarray):
                largest[...] = v
            else:  # the graph holds the old one
                state["max_exp_avg_sq"] = v
        p += -rate * m / (xp.sqrt(v) / (1 - beta2**n) ** 0.5 + group["eps"])

    def _version_steps(self, group: Group) -> int:
        return 2 if group["decoupled_weight_decay"] and group["weight_decay"] != 0 else 1


def _lerp(start: Any, end: Any, weight: float) -> None:
    """Interpolate from one array to another, in place, exact for weights near 0 and near 1."""
    if weight < 0.5:
        start += weight * (end - start)
    else:
        start[...] = end - (end - start) * (1 - weight)


class AdamW(Adam):
    """`Adam` with decoupled weight decay: p shrinks by the factor 1 - lr weight_decay in each step."""

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)
