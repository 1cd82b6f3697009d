"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import Declared, lerp
from symgrad.optim.optimizer import Group

__all__ = ["Adam", "AdamW"]


class Adam(Declared):
    """p ← p - lr m̂ / (√v̂ + eps), with running means m of the gradient and v of its square; m̂ and v̂ are bias-corrected.

    m ← m + (1 - β₁)(g - m), v ← β₂ v + (1 - β₂) g², m̂ = m / (1 - β₁ⁿ), v̂ = v / (1 - β₂ⁿ) in step n. With `amsgrad` the largest v so far is
    used. The state of a parameter is `step`, `exp_avg` (m), `exp_avg_sq` (v) and, with `amsgrad`, `max_exp_avg_sq`.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014; Reddi et al., On the Convergence of Adam and Beyond, 2018.
    """

    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    _example = "lr=0.5", "2.5000"
    _switches = "* foreach maximize capturable differentiable fused decoupled_weight_decay"
    _arrays = {"exp_avg": None, "exp_avg_sq": None, "max_exp_avg_sq": None}
    _used_by = {"max_exp_avg_sq": "amsgrad"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        tensors = [isinstance(x, Tensor) for x in options["betas"]]
        if any(tensors) and not all(tensors):
            raise ValueError(f"{type(self).__name__}: betas are {options['betas']}; give two numbers or two Tensors")
        if (any(tensors) or isinstance(options["lr"], Tensor)) and options["foreach"] and not options["capturable"]:
            raise ValueError(f"{type(self).__name__}: foreach=True excludes Tensors as lr and betas. Leave foreach out: it has no effect")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        beta1, beta2 = map(float, group["betas"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        lerp(m, g, 1 - beta1)
        v *= beta2
        v += (1 - beta2) * g * g
        if group["amsgrad"]:
            v = state["max_exp_avg_sq"] = xp.maximum(state["max_exp_avg_sq"], v)
        p += -(group["lr"] / (1 - beta1**n)) * m / (xp.sqrt(v) / (1 - beta2**n) ** 0.5 + group["eps"])


class AdamW(Adam):
    """`Adam` with decoupled weight decay: p shrinks by the factor 1 - lr weight_decay in each step.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017.
    """

    _options = {**Adam._options, "weight_decay": 1e-2}
    _switches = "* maximize foreach capturable differentiable fused"

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        options["decoupled_weight_decay"] = True
