"""Modules of convolutions and of transposed convolutions, and those whose input channels are those of the first input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from symgrad.arguments import check_dims, check_option
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.declarations import LazyModuleMixin, _ntuple, _reverse_repeat_tuple
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.validation import Sizes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
           "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]


class _ConvNd(Module):
    """The weight, the bias and the numbers of a convolution in `rank` dimensions."""

    rank: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]
    transposed: ClassVar[bool] = False
    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes, padding: Sizes | str, dilation: Sizes,
                 output_padding: Sizes, groups: int, bias: bool, padding_mode: str, device: Any = None, dtype: Any = None):
        super().__init__()
        each, name = _ntuple(self.rank), type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: groups={groups} must be positive and divide in_channels={in_channels} and out_channels={out_channels}")
        if isinstance(padding, str):
            check_option(name, "padding", padding, ("valid", "same"), ValueError)
            if padding == "same" and any(n != 1 for n in each(stride)):
                raise ValueError(f"{name}: padding='same' needs a stride of 1, not {stride}")
        check_option(name, "padding_mode", padding_mode, ("zeros",) if self.transposed else ("zeros", "reflect", "replicate", "circular"), ValueError)
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation, self.output_padding = map(each, (kernel_size, stride, dilation, output_padding))
        self.padding = padding if isinstance(padding, str) else each(padding)
        if isinstance(self.padding, str):
            total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
            self._reversed_padding_repeated_twice = tuple(n for m in reversed(total) for n in (m // 2, m - m // 2))
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(self.padding, 2)
        self.weight = Parameter(empty(self._shape(), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _shape(self) -> tuple[int, ...]:
        """The shape of the weight."""
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Initialize weight and bias again, uniform in ±1/√fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        """The channels and the sizes; what is a default is left out."""
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self.rank:
                out += f", {name}={getattr(self, name)}"
        out += f", groups={self.groups}" * (self.groups != 1) + ", bias=False" * (self.bias is None)
        return out + f", padding_mode={self.padding_mode}" * (self.padding_mode != "zeros")


class _Conv(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return type(self).function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input. Raises RuntimeError for one that does not fit, with the shapes of both."""
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                 groups: int = 1, bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """The output padding with which the result has the output size. Raises ValueError for one that is out of range."""
        if output_size is None:
            return self.output_padding
        lead = input.ndim - self.rank
        size = [int(n) for n in output_size][lead if len(output_size) == input.ndim else 0:]
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1
                 for n, s, p, d, k in zip(input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size)]
        if len(size) != self.rank or any(not 0 <= n - a < s for a, n, s in zip(least, size, self.stride)):
            raise ValueError(f"{type(self).__name__}: output_size={output_size} must lie within the stride, {self.stride}, from {least} on, for an "
                             f"input of shape {list(input.shape)}")
        return tuple(n - a for n, a in zip(size, least))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of the input, of a size that the stride leaves open.

        Raises ValueError for a size that it cannot have, RuntimeError for an input that does not fit.
        """
        more = self._output_padding(input, output_size)
        return type(self).function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class Conv1d(_Conv):
    """A convolution of signals (N, C, L) with `out_channels` kernels, plus a bias; N may be missing.

    The weight (out_channels, in_channels / groups, k) and the bias start uniform in ±1/√(in_channels / groups k). With a `padding_mode` other than
    zeros the border has elements of the input, as `nn.functional.pad`.

    Raises ValueError for channels that the groups do not divide, and for an unknown padding or mode.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Conv1d(2, 3, 4, stride=2)(symgrad.ones(5, 2, 10)).shape
    torch.Size([5, 3, 4])
    """

    rank, function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """A convolution of images (N, C, H, W) with `out_channels` kernels, plus a bias; N may be missing.

    The weight is (out_channels, in_channels / groups, kh, kw); otherwise as `Conv1d`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Conv2d(1, 16, 3, padding=1)
    Conv2d(1, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    rank, function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """A convolution of volumes (N, C, D, H, W), as `Conv1d`."""

    rank, function = 3, staticmethod(F.conv3d)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution of signals, plus a bias: (N, C, L) gives a signal about `stride` times as long; N may be missing.

    The weight (in_channels, out_channels / groups, k) and the bias start uniform in ±1/√(out_channels / groups k).

    Raises ValueError for channels that the groups do not divide.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.ConvTranspose1d(3, 2, 4, stride=2)
    >>> layer(symgrad.ones(5, 3, 4)).shape, layer(symgrad.ones(5, 3, 4), output_size=[11]).shape
    (torch.Size([5, 2, 10]), torch.Size([5, 2, 11]))
    """

    rank, function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution of images (N, C, H, W), as `ConvTranspose1d`."""

    rank, function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution of volumes (N, C, D, H, W), as `ConvTranspose1d`."""

    rank, function = 3, staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """The part of a convolution whose input channels are those of the first input."""

    def _make(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        this: Any = self
        this.out_channels = out_channels
        self._without_shapes(("weight", "bias")[:1 + bias], device, dtype)

    def _shapes(self, input: Tensor) -> dict[str, tuple[int, ...]]:
        this: Any = self
        check_dims(type(self).__name__, input, this.rank + 1, this.rank + 2)
        this.in_channels = input.shape[input.ndim - this.rank - 1]
        if this.in_channels % this.groups:
            raise ValueError(f"{type(self).__name__}: groups={this.groups} must divide the {this.in_channels} channels of the input")
        return {"weight": this._shape(), "bias": (this.out_channels,)}


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._make(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
                 bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        self._make(out_channels, bias, device, dtype)


def _lazy(base: type, of: type) -> Any:
    name = of.__name__
    doc = f"`{name}` whose in_channels are those of the first input: the first call makes it a `{name}`."
    return type(f"Lazy{name}", (base, of), {"cls_to_become": of, "__module__": __name__, "__doc__": doc})


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(_LazyConv, of) for of in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyConvTranspose, of) for of in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
