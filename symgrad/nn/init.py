"""Initialization of tensors, in place and outside every graph; each function returns the tensor."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import eye, full
from symgrad.factories.random_tensors import rand, randn

__all__ = ["calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "uniform_", "xavier_normal_",
           "xavier_uniform_", "zeros_"]


def _filled(tensor: Tensor, values: Tensor) -> Tensor:
    with no_grad():
        tensor.copy_(values)
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers from [a, b)."""
    return _filled(tensor, a + (b - a) * rand(tensor.shape, generator=generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of a mean and a standard deviation."""
    return _filled(tensor, mean + std * randn(tensor.shape, generator=generator))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    return _filled(tensor, full(tensor.shape, val, dtype=tensor.dtype))


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix. Raises ValueError for a tensor that is not a matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _filled(tensor, eye(*tensor.shape))


GAINS = {**dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1),
         "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The recommended gain for a nonlinearity; `param` is the slope of a leaky relu below zero.

    Raises ValueError for an unknown nonlinearity and for a slope that is not a number.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The fan in and the fan out of a weight (out, in, ...)."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers of variance gain² 2 / (fan in + fan out). Raises ValueError for fewer than two dimensions."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of variance gain² 2 / (fan in + fan out). Raises ValueError for fewer than two dimensions."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _standard_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan_in if mode.lower() == "fan_in" else fan_out)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
    return 0 in tensor.shape


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Fill with uniform numbers of variance gain² / fan, the fan that `mode` names; `a` is the slope of the leaky relu that follows.

    Raises ValueError for a tensor of fewer than two dimensions, an unknown mode or nonlinearity.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _standard_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Fill with normal numbers of variance gain² / fan, the fan that `mode` names; `a` is the slope of the leaky relu that follows.

    Raises ValueError for a tensor of fewer than two dimensions, an unknown mode or nonlinearity.
    """
    return tensor if _is_empty(tensor) else normal_(tensor, 0.0, _standard_deviation(tensor, a, mode, nonlinearity), generator)
