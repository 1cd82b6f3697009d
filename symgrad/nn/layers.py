"""Modules with a linear map or an activation, and modules that pass on or reshape their input."""

from __future__ import annotations

import math
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.module import Module
from symgrad.nn.parameter import Parameter

__all__ = ["Flatten", "Identity", "Linear", "LogSigmoid", "LogSoftmax", "ReLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Tanh"]


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
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
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


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` merged into one: by default all but the first, the batch axis."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input with merged axes."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class ReLU(Module):
    """max(input, 0), written into the input itself if `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """max(input, 0)."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return "inplace=True" if self.inplace else ""


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """tanh(input)."""
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-input))."""

    def forward(self, input: Tensor) -> Tensor:
        """sigmoid(input)."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(input)), without cancellation."""

    def forward(self, input: Tensor) -> Tensor:
        """log(sigmoid(input))."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """softplus(input)."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _Normalised(Module):
    """An activation along one axis."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax(_Normalised):
    """exp(input) / Σ exp(input) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input)."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Normalised):
    """log(softmax(input)) along `dim`, without cancellation."""

    def forward(self, input: Tensor) -> Tensor:
        """log(softmax(input))."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_Normalised):
    """softmax(-input) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """softmin(input)."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of an image (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input) over the channels."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
