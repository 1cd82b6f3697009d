"""Muon: momentum that is made orthogonal, for matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import Declared, lerp
from symgrad.optim.optimizer import Group

__all__ = ["Muon"]


class Muon(Declared):
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

    _options = {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True, "ns_coefficients": (3.4445, -4.7750, 2.0315), "eps": 1e-7,
                "ns_steps": 5, "adjust_lr_fn": None}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        self._require("adjust_lr_fn", options["adjust_lr_fn"], options["adjust_lr_fn"] in (None, "original", "match_rms_adamw"),
                      "None, 'original' or 'match_rms_adamw'")
        self._require("ns_steps", options["ns_steps"], options["ns_steps"] < 100, "less than 100")

    def _check_parameter(self, p: Tensor) -> None:
        super()._check_parameter(p)
        self._require("a parameter", p.size(), p.ndim == 2, "a matrix")
        if p.is_complex():
            raise RuntimeError("Muon: a parameter is complex; optimize its view_as_real")

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        lr, momentum = group["lr"], group["momentum"]
        b = state.setdefault("momentum_buffer", xp.zeros_like(g))
        lerp(b, g, 1 - momentum)
        direction = _orthogonal(g + momentum * (b - g) if group["nesterov"] else b, group)
        rows, columns = p.shape
        scale = 0.2 * max(rows, columns) ** 0.5 if group["adjust_lr_fn"] == "match_rms_adamw" else max(1, rows / columns) ** 0.5
        p *= 1 - lr * group["weight_decay"]
        p -= lr * scale * direction


def _orthogonal(matrix: np.ndarray, group: Group) -> np.ndarray:
    """A matrix with the same singular vectors, and singular values near 1."""
    a, b, c = group["ns_coefficients"]
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / max(float(np.linalg.norm(x)), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x
