"""Adafactor: the second moments of a matrix as the outer product of one vector for its rows and one for its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, finfo
from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import Declared, lerp, scalar
from symgrad.optim.optimizer import Group

__all__ = ["Adafactor"]


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
