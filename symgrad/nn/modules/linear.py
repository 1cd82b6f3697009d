"""Modules with linear and bilinear maps, and the identity."""

from __future__ import annotations

import math
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.lazy import LazyModuleMixin
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.validation import check_shape

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """The identity; it takes any arguments, so that it can replace another module."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


class Linear(Module):
    """x @ weightᵀ + bias over the last axis: (..., in_features) gives (..., out_features).

    Weight (out_features, in_features) and bias (out_features,) start uniform in ±1/√in_features.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.Linear(3, 2)
    >>> layer(symgrad.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The linear map of the input."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that the printed text of attention has in torch; there are no quantized tensors."""


class Bilinear(Module):
    """x1ᵀ weight[k] x2 + bias[k] over the last axes: (..., in1_features) and (..., in2_features) give (..., out_features).

    Weight (out_features, in1_features, in2_features) and bias (out_features,) start uniform in ±1/√in1_features.

    Raises ValueError if in1_features is not positive.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Bilinear(3, 4, 2)(symgrad.ones(5, 3), symgrad.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive, but it is {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The bilinear map of the inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose in_features are those of the first input: the first call makes it a `Linear`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> net = nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(1))
    >>> net(symgrad.ones(7, 3)).shape, net[2].in_features
    (torch.Size([7, 1]), 4)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._without_shapes(("weight", "bias")[:1 + bias], device, dtype)

    def _shapes(self, input: Tensor) -> dict[str, tuple[int, ...]]:
        self.in_features = input.shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}

    def initialize_parameters(self, input: Tensor) -> None:
        """Initialize the parameters for the last axis of an input. Raises AssertionError for one that does not fit a weight that was loaded."""
        super().initialize_parameters(input)
        self.in_features = input.shape[-1]
        check_shape("LazyLinear", (self.weight.shape[0], self.in_features), AssertionError, **{"the weight that was loaded": self.weight})
