"""Modules of normalisations over the last dimensions, over groups of channels, and by neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.declarations import OfFunction, module_of
from symgrad.nn.modules.module import Module
from symgrad.nn.normalization import cross_map_lrn2d
from symgrad.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Affine(Module):
    """A weight that starts at 1 and a bias that starts at 0, each of which may be missing."""

    weight: Parameter | None
    bias: Parameter | None

    def _register(self, shape: Any, device: Any, dtype: Any, **given: bool) -> None:
        for name, there in given.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                init.constant_(parameter, float(name == "weight"))


class LayerNorm(_Affine):
    """(x - mean) / √(var + eps) weight + bias, with mean and variance over the last dimensions, which have the `normalized_shape`.

    Raises RuntimeError for an input of another shape.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.LayerNorm(2, eps=0.0)(symgrad.tensor([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._register(self.normalized_shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(_Affine):
    """x / √(mean(x²) + eps) weight over the last dimensions, which have the `normalized_shape`; `eps` is by default that of the dtype.

    Raises RuntimeError for an input of another shape.
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._register(self.normalized_shape, device, dtype, weight=elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Normalisation over groups of channels, which are the second dimension, and all further dimensions, for each member of the batch.

    Raises ValueError unless the number of channels is divisible, RuntimeError for an input with another number of channels.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_groups={num_groups} must divide num_channels={num_channels}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._register(num_channels, device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _ResponseNorm(OfFunction):
    def extra_repr(self) -> str:
        """The parameters."""
        return super().extra_repr().removeprefix("size=")


LocalResponseNorm = module_of("LocalResponseNorm", F.local_response_norm, "size alpha beta k", module=__name__, base=_ResponseNorm)
CrossMapLRN2d = module_of("CrossMapLRN2d", cross_map_lrn2d, "size alpha beta k", module=__name__, base=_ResponseNorm)
