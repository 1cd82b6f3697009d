"""Optimizers that treat a matrix as a whole: Muon makes its steps orthogonal, Adafactor keeps second moments of its rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, finfo
from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import Declared, lerp, scalar
from symgrad.optim.optimizer import Group


class Adafactor(Declared):
    """p ← p - α u / max(1, rms(u) / d), with u = g / √v and α = max(eps[1], rms(p)) min(lr, 1 / √n) in step n.

    v is the running mean of g² with the weight n^beta2_decay of the newest. Of a parameter with two or more dimensions only the means r and c over
    the last and the last but one dimension are kept, and v = r c / max(mean(r), eps[0]). eps[0] is the precision of the dtype where it is None;
    v is at least eps[0]². p shrinks by the factor 1 - lr weight_decay first; with `maximize` the gradient changes its sign. The state of a
    parameter is `step`, and `row_var` (r) and `col_var` (c), or `variance` (v).

    Raises ValueError for options out of their range, and RuntimeError for complex parameters.

    Source: Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018.
    """

    _options = {"lr": 1e-2, "beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0, "weight_decay": 0.0}
    _example = "lr=0.5", "1.5000"
    _switches = "* foreach maximize"

    def _check_parameter(self, p: Tensor) -> None:
        super()._check_parameter(p)
        if p.is_complex():
            raise RuntimeError("Adafactor: a parameter is complex; optimize its view_as_real")

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        lr, (eps1, eps2) = group["lr"], group["eps"]
        eps1 = finfo(dtype_of(p.dtype)).eps if eps1 is None else eps1
        if not state:
            state["step"] = scalar(xp, 0)
            if g.ndim > 1:
                state.update(row_var=xp.zeros_like(g[..., :1]), col_var=xp.zeros_like(g[..., :1, :]))
            else:
                state["variance"] = xp.zeros_like(g)
        state["step"] += 1
        n = float(state["step"])
        g = -g if group["maximize"] else g
        newest = n ** group["beta2_decay"]
        size = max(eps2, float(np.linalg.norm(p)) / p.size**0.5) * min(lr, n**-0.5)
        if group["weight_decay"] != 0:
            p *= 1 - lr * group["weight_decay"]
        if g.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            lerp(rows, (g * g).mean(-1, keepdims=True), newest)
            lerp(columns, (g * g).mean(-2, keepdims=True), newest)
            v = rows * columns / np.maximum(rows.mean(-2, keepdims=True), eps1)
        else:
            v = state["variance"]
            lerp(v, g * g, newest)
        step = g / np.sqrt(np.maximum(v, eps1 * eps1))
        p -= size / max(1.0, float(np.linalg.norm(step)) / (step.size**0.5 * group["d"])) * step


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
