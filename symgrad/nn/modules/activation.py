"""Modules of activations."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from symgrad.arguments import check_dims
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn.init import constant_
from symgrad.nn.modules.attention import MultiheadAttention
from symgrad.nn.modules.declarations import module_of
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "Mish",
           "LogSigmoid", "LogSoftmax", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]

_module = partial(module_of, module=__name__)

ReLU = _module("ReLU", F.relu)
LeakyReLU, ELU, CELU = _module("LeakyReLU", F.leaky_relu), _module("ELU", F.elu), _module("CELU", F.celu)
SELU, SiLU, Mish = _module("SELU", F.selu), _module("SiLU", F.silu), _module("Mish", F.mish)
Tanh, Sigmoid, LogSigmoid = _module("Tanh", F.tanh), _module("Sigmoid", F.sigmoid), _module("LogSigmoid", F.logsigmoid)
Softsign, Tanhshrink = _module("Softsign", F.softsign), _module("Tanhshrink", F.tanhshrink)
Hardsigmoid, Hardswish = _module("Hardsigmoid", F.hardsigmoid, shown=""), _module("Hardswish", F.hardswish, shown="")
Threshold, Softplus = _module("Threshold", F.threshold, "threshold value inplace"), _module("Softplus", F.softplus)
GELU, GLU = _module("GELU", F.gelu, shown="{name}={value!r}"), _module("GLU", F.glu)
Hardshrink, Softshrink = _module("Hardshrink", F.hardshrink, shown="{value}"), _module("Softshrink", F.softshrink, shown="{value}")
Softmax, Softmin, LogSoftmax = _module("Softmax", F.softmax, "dim"), _module("Softmin", F.softmin, "dim"), _module("LogSoftmax", F.log_softmax, "dim")
RReLU = _module("RReLU", F.rrelu, "lower upper inplace")


class Hardtanh(Module):
    """The input limited to [min_val, max_val]; `min_value` and `max_value` are deprecated names of the bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
                 max_value: float | None = None):
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(f"Hardtanh: {old} is deprecated; use {new}", FutureWarning, stacklevel=2)
        self.min_val, self.max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"Hardtanh: max_val must be greater than min_val, but they are {self.max_val} and {self.min_val}")

    def forward(self, input: Tensor) -> Tensor:
        """The limited input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + ", inplace=True" * self.inplace


class ReLU6(Hardtanh):
    """The input limited to [0, 6]."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """`inplace`, if it is set."""
        return "inplace=True" * self.inplace


class PReLU(Module):
    """The input where it is positive, else the input times a parameter: one, or one for each channel.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.PReLU()(symgrad.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameter to its first value again."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The input with a slope where it is negative."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of parameters."""
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """The softmax over the channels of an image (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input) over the channels."""
        check_dims("Softmax2d", input, 3, 4, error=ValueError)
        return F.softmax(input, -3)
