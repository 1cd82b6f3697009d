"""What the rules of the optimizers share: the check of their options, the gradient with its options, and running means."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DTYPES, get_default_dtype
from symgrad.engine.tensor import Tensor

__all__ = ["check_implementations", "check_learning_rate", "check_options", "count", "gradient", "lerp", "number", "scalar_zero"]


def check_options(options: dict[str, Any]) -> None:
    """Raise ValueError for negative options, by the names that torch has for them, for betas outside [0, 1) and for several learning rates."""
    for name, value in options.items():
        if name == "betas":
            if isinstance(value, (int, float)) or len(value) != 2:
                raise (TypeError if isinstance(value, (int, float)) else IndexError)(f"betas must be two numbers, but they are {value}")
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
            continue
        check_learning_rate(value)
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name}: {value}")


def check_learning_rate(lr: Any) -> None:
    """Raise ValueError for a tensor of several learning rates."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_implementations(foreach: Any, fused: Any, differentiable: Any) -> None:
    """Raise for options that exclude each other in torch; symgrad has one implementation for all of them."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def scalar_zero(xp: Any) -> Any:
    """A 0 for a number in the state: float64 if that is the default dtype, else float32."""
    kind = DTYPES["float64" if get_default_dtype() is DTYPES["float64"] else "float32"]
    return xp.zeros_like(np.zeros((), kind.numpy))


def count(state: dict[str, Any]) -> float:
    """The number of this step, which the state has counted."""
    state["step"] += 1
    return float(state["step"])


def number(value: Any) -> Any:
    """A number of the state: a Tensor, which may have a graph, or a float, which does not promote the dtype of a parameter."""
    return value if isinstance(value, Tensor) else float(value)


def gradient(p: Any, g: Any, group: dict[str, Any], decoupled: bool = False) -> Any:
    """The gradient with the sign of `maximize`, plus the weight decay where that is not decoupled."""
    if group["maximize"]:
        g = -g
    return g + group["weight_decay"] * p if group["weight_decay"] != 0 and not decoupled else g


def lerp(start: Any, end: Any, weight: float) -> None:
    """Interpolate from one array to another, in place, exact for weights near 0 and near 1."""
    if weight < 0.5:
        start += weight * (end - start)
    else:
        start[...] = end - (end - start) * (1 - weight)
