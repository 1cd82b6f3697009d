"""Modules that set random elements or channels to zero in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """A function with a probability, which is the identity in evaluation."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with random zeros in training."""
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Each element becomes 0 with probability p in training, and the others are divided by 1 - p.

    Raises ValueError for a probability outside [0, 1].

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Dropout(0.25).eval()(symgrad.ones(3))
    tensor([1., 1., 1.])
    """

    function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """`Dropout` of whole channels of (N, C, L), or of (C, L)."""

    function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """`Dropout` of whole channels of (N, C, H, W)."""

    function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """`Dropout` of whole channels of (N, C, D, H, W), or of (C, D, H, W)."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout that sets elements to the limit of `SELU`, and keeps mean 0 and variance 1 (Klambauer et al. 2017)."""

    function = staticmethod(F.alpha_dropout)

    def forward(self, input: Tensor) -> Tensor:
        """The input with random elements at the limit of SELU in training."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels, which are the second dimension."""

    function = staticmethod(F.feature_alpha_dropout)

    def forward(self, input: Tensor) -> Tensor:
        """The input with random channels at the limit of SELU in training."""
        return F.feature_alpha_dropout(input, self.p, self.training)
