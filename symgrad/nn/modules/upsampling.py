"""Modules of interpolation to another size."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """The input at the points of another size, which is given, or its factor, as `nn.functional.interpolate`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Upsample(scale_factor=2, mode="bilinear")(symgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None):
        super().__init__()
        self.name, self.size = type(self).__name__, size
        self.scale_factor = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input at the points of the size. Raises ValueError or NotImplementedError for one that does not fit the mode."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor)

    def extra_repr(self) -> str:
        """The size or its factor, and the mode."""
        given = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images (N, C, H, W) at another size, by the nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images (N, C, H, W) at another size, bilinear between the centers of the outer elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
