"""Modules of pooling: means, largest elements and p-norms of windows in one to three dimensions, and the way back."""

from __future__ import annotations

from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.declarations import OfFunction, module_of
from symgrad.nn.modules.utils import _ntuple

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d",
           "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d",
           "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _Pool(OfFunction):
    """A pooling whose stride is that of the kernel if none is given; `text` names the parameters that are shown."""

    rank: ClassVar[int | None] = None  # of sizes that are kept for each dimension
    text: ClassVar[str] = "kernel_size stride padding"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        own = self.__dict__
        if own.get("stride", 0) is None and "norm_type" not in own:
            self.stride = self.kernel_size
        if self.rank is not None:
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, _ntuple(self.rank)(getattr(self, name)))

    def extra_repr(self) -> str:
        """The sizes."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.text.split())


class _Unpool(_Pool):
    """The way back, to images of a size that the stride leaves open."""

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:  # type: ignore[override]
        """The elements at their places."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(OfFunction):
    """The largest elements of windows at pseudorandom distances, with one of output_size and output_ratio."""

    rank: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        size, ratio, name = self.output_size, self.output_ratio, type(self).__name__
        self.register_buffer("_random_samples", self.__dict__.pop("_random_samples"))
        if (size is None) is (ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio, not {size} and {ratio}")
        for word in ("kernel_size", "output_size", "output_ratio"):
            if (given := getattr(self, word)) is not None:
                setattr(self, word, _ntuple(self.rank)(given))
        if ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must lie between 0 and 1, but it is {ratio}")


def _define(name: str, function: str, parameters: str, ranks: tuple[int, ...] = (1, 2, 3), base: Any = _Pool, **own: Any) -> list[Any]:
    """The modules for so many dimensions."""
    return [module_of(f"{name}{rank}d", getattr(F, f"{function}{rank}d"), parameters, module=__name__, base=base, **own) for rank in ranks]


MaxPool1d, MaxPool2d, MaxPool3d = _define("MaxPool", "max_pool", "kernel_size stride padding dilation return_indices ceil_mode",
                                          text="kernel_size stride padding dilation ceil_mode")
[AvgPool1d] = _define("AvgPool", "avg_pool", "kernel_size stride padding ceil_mode count_include_pad", (1,), rank=1)
AvgPool2d, AvgPool3d = _define("AvgPool", "avg_pool", "kernel_size stride padding ceil_mode count_include_pad divisor_override", (2, 3))
LPPool1d, LPPool2d, LPPool3d = _define("LPPool", "lp_pool", "norm_type kernel_size stride ceil_mode", text="norm_type kernel_size stride ceil_mode")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _define("AdaptiveAvgPool", "adaptive_avg_pool", "output_size", text="output_size")
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _define("AdaptiveMaxPool", "adaptive_max_pool", "output_size return_indices",
                                                                  text="output_size")
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (
    _define("MaxUnpool", "max_unpool", "kernel_size stride padding", (rank,), _Unpool, rank=rank)[0] for rank in (1, 2, 3))
FractionalMaxPool2d, FractionalMaxPool3d = (
    _define("FractionalMaxPool", "fractional_max_pool", "kernel_size output_size output_ratio return_indices _random_samples", (rank,),
            _FractionalMaxPool, shown="", rank=rank)[0] for rank in (2, 3))
