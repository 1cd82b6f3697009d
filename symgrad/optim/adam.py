"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_implementations, check_options, count, gradient, lerp, scalar_zero
from symgrad.types.absent import explained

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

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014; Reddi et al., On the Convergence of Adam and Beyond, 2018.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False):
        check_options({"learning rate": lr, "epsilon value": eps, "betas": betas, "weight_decay value": weight_decay})
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for name, value in {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}.items():
            if isinstance(value, Tensor) and foreach and not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, foreach=foreach,
                                      capturable=capturable, differentiable=differentiable, fused=fused,
                                      decoupled_weight_decay=decoupled_weight_decay))
        check_implementations(foreach, fused, differentiable)

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = map(float, group["betas"])
        if not state:
            state.update(step=scalar_zero(xp), exp_avg=xp.zeros_like(p), exp_avg_sq=xp.zeros_like(p))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = xp.zeros_like(p)
        m, v, n = state["exp_avg"], state["exp_avg_sq"], count(state)
        g = gradient(p, g, group, group["decoupled_weight_decay"])
        if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
            p *= 1 - group["lr"] * group["weight_decay"]
        lerp(m, g, 1 - beta1)
        v *= beta2
        v += (1 - beta2) * g * g
        if group["amsgrad"]:
            v = state["max_exp_avg_sq"] = xp.maximum(state["max_exp_avg_sq"], v)
        p += -(group["lr"] / (1 - beta1**n)) * m / (xp.sqrt(v) / (1 - beta2**n) ** 0.5 + group["eps"])

    def _version_steps(self, group: Group) -> int:
        return 2 if group["decoupled_weight_decay"] and group["weight_decay"] != 0 else 1


class AdamW(Adam):
    """`Adam` with decoupled weight decay: p shrinks by the factor 1 - lr weight_decay in each step.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)


__getattr__, __path__ = explained(__name__), list[str]()
