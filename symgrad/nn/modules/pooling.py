"""Modules of pooling: means, largest elements and p-norms of windows in one to three dimensions, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.activation import REQUIRED, OfFunction, module_of
from symgrad.nn.modules.module import Module
from symgrad.nn.modules.utils import _ntuple

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d",
           "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d",
           "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _Pool(OfFunction):
    """A pooling whose stride is that of the kernel if none is given; `text` are the parameters that are shown."""

    rank: ClassVar[int | None] = None  # of sizes that are kept for each dimension
    text: ClassVar[str] = ""

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
        return self.text.format(**self.__dict__)


_MaxPoolNd, _AvgPoolNd, _LPPoolNd, _MaxUnpoolNd, _AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd = (
    type(name, (_Pool,), {"__module__": __name__, "__doc__": "A pooling.", "text": text}) for name, text in {
        "_MaxPoolNd": "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}",
        "_AvgPoolNd": "kernel_size={kernel_size}, stride={stride}, padding={padding}",
        "_LPPoolNd": "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}",
        "_MaxUnpoolNd": "kernel_size={kernel_size}, stride={stride}, padding={padding}",
        "_AdaptiveAvgPoolNd": "output_size={output_size}", "_AdaptiveMaxPoolNd": "output_size={output_size}"}.items())

SHAPES = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


def _define(base: Any, name: str, functions: dict[int, Callable[..., Any]], doc: str, **defaults: Any) -> list[Any]:
    """The modules of some functions for so many dimensions."""
    out = []
    for rank, function in functions.items():
        own = {k: v for k, v in defaults.items() if k != "divisor_override" or rank > 1}
        text = f"{doc.format(SHAPES[rank])}\n\n    The parameters are those of `nn.functional.{function.__name__}`.\n    "
        out.append(module_of(f"{name}{rank}d", __name__, function, text, base, **own))
    return out


_windows: Any = partial(dict, kernel_size=REQUIRED, stride=None)
MaxPool1d, MaxPool2d, MaxPool3d = _define(
    _MaxPoolNd, "MaxPool", {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}, "The largest element of each window of {}.",
    **_windows(padding=0, dilation=1, return_indices=False, ceil_mode=False))
AvgPool1d, AvgPool2d, AvgPool3d = _define(
    _AvgPoolNd, "AvgPool", {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}, "The mean over each window of {}.",
    **_windows(padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None))
AvgPool1d.rank = 1
LPPool1d, LPPool2d, LPPool3d = _define(
    _LPPoolNd, "LPPool", {1: F.lp_pool1d, 2: F.lp_pool2d, 3: F.lp_pool3d}, "The root (Σ x^p)^(1/p) over each window of {}, p the `norm_type`.",
    norm_type=REQUIRED, **_windows(ceil_mode=False))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _define(
    _AdaptiveAvgPoolNd, "AdaptiveAvgPool", {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d},
    "The mean over windows that cover {} evenly.", output_size=REQUIRED)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _define(
    _AdaptiveMaxPoolNd, "AdaptiveMaxPool", {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d},
    "The largest element of windows that cover {} evenly.", output_size=REQUIRED, return_indices=False)


class _Unpool(_MaxUnpoolNd):  # type: ignore[valid-type, misc]
    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The elements at their places, in images of a size that the stride leaves open."""
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = _define(
    _Unpool, "MaxUnpool", {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}, "The elements at the places that `MaxPool` took from {}.",
    **_windows(padding=0))
MaxUnpool1d.rank, MaxUnpool2d.rank, MaxUnpool3d.rank = 1, 2, 3


class _FractionalMaxPool(Module):
    """The largest elements of windows at pseudorandom distances."""

    rank: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None):
        super().__init__()
        name, each = type(self).__name__, _ntuple(self.rank)
        self.kernel_size, self.return_indices = each(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"only one of output_size and output_ratio may be specified, but they are {output_size} and {output_ratio}")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """The largest elements, and with `return_indices` their positions."""
        return type(self).function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                                   _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at pseudorandom distances, so that sizes shrink by any ratio: (N, C, H, W) gives (N, C, *output_size).

    Raises ValueError unless one of output_size and output_ratio is given, and for a ratio that is not between 0 and 1.
    """

    rank, function = 2, staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """As `FractionalMaxPool2d`, for volumes (N, C, D, H, W)."""

    rank, function = 3, staticmethod(F.fractional_max_pool3d)
