"""Muon: momentum that is made orthogonal, for matrices."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.rules import check_learning_rate, lerp

__all__ = ["Muon"]


class Muon(Optimizer):
    """p ← (1 - lr weight_decay) p - lr s O(b), where O(b) has the singular vectors of the momentum b and singular values near 1.

    b ← b + (1 - momentum)(g - b), and with `nesterov` g + momentum (b - g) is in its place. O is `ns_steps` Newton-Schulz iterations
    x ← a x + (b x xᵀ + c (x xᵀ)²) x with the `ns_coefficients` a, b and c, from x = b / max(norm(b), eps). s = √max(1, m / n) for an m by n
    matrix, or 0.2 √max(m, n) with adjust_lr_fn="match_rms_adamw". The state of a parameter is its `momentum_buffer` (b). The iteration has the
    precision of the parameter; torch has bfloat16.

    Raises ValueError for negative numbers, and for parameters that are no matrices; RuntimeError for complex ones.

    >>> import symgrad
    >>> x = symgrad.tensor([[3.0]], requires_grad=True)
    >>> optimizer = Muon([x], lr=0.5, weight_decay=0.0, ns_coefficients=(2.0, -1.5, 0.5))
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([[2.5000]], requires_grad=True)

    Source: Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024.
    """

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
                 adjust_lr_fn: str | None = None):
        check_learning_rate(lr)
        for name, value in {"Learning rate": lr, "momentum": momentum, "weight decay": weight_decay}.items():
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov, ns_coefficients=ns_coefficients,
                                      eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn))
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _update_arrays(self, p: Tensor, group: Group, frame: FrameType) -> None:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        super()._update_arrays(p, group, frame)

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        lr, momentum = group["lr"], group["momentum"]
        if g.ndim != 2:  # a group that was added later
            raise ValueError("Param gradient must be a 2D matrix")
        b = state.setdefault("momentum_buffer", xp.zeros_like(g))
        lerp(b, g, 1 - momentum)
        direction = _orthogonal(g + momentum * (b - g) if group["nesterov"] else b, group)
        rows, columns = p.shape
        scale = 0.2 * max(rows, columns) ** 0.5 if group["adjust_lr_fn"] == "match_rms_adamw" else max(1, rows / columns) ** 0.5
        p *= 1 - lr * group["weight_decay"]
        p -= lr * scale * direction

    def _version_steps(self, group: Group) -> int:
        return 2


def _orthogonal(matrix: np.ndarray, group: Group) -> np.ndarray:
    """A matrix with the same singular vectors, and singular values near 1."""
    if group["ns_steps"] >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(group["ns_coefficients"]) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = group["ns_coefficients"]
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / max(float(np.linalg.norm(x)), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x
