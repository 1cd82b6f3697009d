"""Convolutions and transposed convolutions of images in one to three dimensions, with torch's names and its checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.dtypes.dtype import SPOKEN
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.borders import constant_pad_nd

__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution"]

_convolution = core(REGISTRY["convolution"])
Sizes = int | Sequence[int]


def _each(word: str, given: Any, rank: int) -> tuple[int, ...]:
    """A size for each dimension. Raises RuntimeError for another number of sizes."""
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not all(hasattr(n, "__index__") for n in sizes):
        raise TypeError(f"convolution(): argument '{word}' must be tuple of ints, not {given!r}")
    if len(sizes) not in (1, rank):
        raise RuntimeError(f"expected {word} to be a single integer value or a list of {rank} values to match the convolution dimensions, but got "
                           f"{word}={list(sizes)}")
    return tuple(n.__index__() for n in sizes) * (rank if len(sizes) == 1 else 1)


def _check(input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
           output_padding: Sequence[int], groups: int) -> None:
    """Raise torch's error for shapes and numbers that do not fit together."""
    for word, sizes, least in (("padding", padding, 0), ("output_padding", output_padding, 0), ("stride", stride, 1), ("dilation", dilation, 1),
                               ("groups", (groups,), 1)):
        if min(sizes) < least:
            if word == "dilation":
                raise RuntimeError(f"dilation should be greater than zero, but got {list(sizes)}")
            raise RuntimeError(f"{'non-positive' if least else 'negative'} {word} is not supported")
    shape, kernel = list(weight.shape), weight.shape[2:]
    if shape[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {shape} instead")
    if shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{shape}] "
                           f"instead")
    given, wanted = (f"transposed={int(transposed)}", shape[0]) if transposed else (f"groups={groups}", shape[1] * groups)
    if input.shape[1] != wanted:
        raise RuntimeError(f"Given {given}, weight of size {shape}, expected input{list(input.shape)} to have {wanted} channels, but got "
                           f"{input.shape[1]} channels instead")
    count = shape[1] * groups if transposed else shape[0]
    if bias is not None and tuple(bias.shape) != (count,):
        raise RuntimeError(f"Given {'transposed=1, ' * transposed}weight of size {shape}, expected bias to be 1-dimensional with {count} elements, "
                           f"but got bias of size {list(bias.shape)} instead")
    if not all(kernel):
        words = " x ".join(map(str, kernel)) + " (TxHxW)" if len(kernel) == 3 else "kernel_height: {} kernel_width: {}".format(*(1, *kernel)[-2:])
        raise RuntimeError(f"kernel size should be greater than zero, but got{':' * (len(kernel) == 3)} {words}")
    if not transposed:
        wide = [n + 2 * p for n, p in zip(input.shape[2:], padding)]
        if any(n < d * (k - 1) + 1 for n, k, d in zip(wide, kernel, dilation)):
            reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
            raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join(map(str, wide))}). Kernel size: "
                               f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size")
        if not all(input.shape[2:]) and math.prod(input.shape[:2]):
            raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input.shape)}")
        return
    axes = ("depth", "height", "width")[3 - len(kernel):]
    if any(m >= max(s, d) for m, s, d in zip(output_padding, stride, dilation)):
        words = " ".join(f"{word}_{axis}: {n}" for word, sizes in (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
                         for axis, n in zip(axes, sizes))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {words}")
    size = [(n - 1) * s - 2 * p + d * (k - 1) + m + 1
            for n, s, p, d, k, m in zip(input.shape[2:], stride, padding, dilation, kernel, output_padding)]
    if min(size) < 1:
        raise RuntimeError(f"Given input size per channel: ({' x '.join(map(str, input.shape[2:]))}). Calculated output size per channel: "
                           f"({' x '.join(map(str, size))}). Output size is too small")


def _check_types(input: Any, weight: Any, bias: Any) -> None:
    """Raise torch's error for tensors of several dtypes."""
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(f"Input type ({SPOKEN[input.dtype.name]}) and bias type ({SPOKEN[bias.dtype.name]}) should be the same")
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"Input type ({input.type()}) and weight type ({weight.type()}) should be the same or input should be a MKLDNN tensor and "
                           f"weight is a dense tensor")
    if input.dtype.name == "bool":
        raise NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool'")


@taking_tensors
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
                output_padding: Sizes, groups: int) -> Tensor:
    """The convolution of images (N, C, *size) with kernels (O, C / groups, *kernel), or its transpose with kernels (C, O / groups, *kernel).

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together.
    """
    rank = weight.ndim - 2
    if rank < 1:
        raise RuntimeError(f"weight should have at least three dimensions, but its shape is {list(weight.shape)}")
    if input.ndim != weight.ndim:
        raise RuntimeError(f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, but got "
                           f"{input.ndim}-dimensional input of size {list(input.shape)} instead")
    places = [_each(word, given, rank) for word, given in (("stride", stride), ("padding", padding), ("dilation", dilation))]
    more = _each("output_padding", output_padding, rank)
    _check_types(input, weight, bias)
    _check(input, weight, bias, *places, transposed, more, groups)  # type: ignore[call-arg, arg-type]
    return _convolution(input, weight, 0 if bias is None else bias, *places, bool(transposed), more, groups)


def _batched(name: str, rank: int, input: Tensor) -> bool:
    """Whether there is a dimension for the batch. Raises RuntimeError for another number of dimensions."""
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}")
    return input.ndim == rank + 2


def _same(input: Tensor, weight: Tensor, stride: Sizes, dilation: Sizes, rank: int) -> tuple[Any, Any]:
    """The border for a result of the size of the input, and the input, with one more zero at the end where the border is uneven."""
    if any(n != 1 for n in _each("stride", stride, rank)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(_each("dilation", dilation, rank), weight.shape[2:])]
    uneven = [n for count in reversed(total) for n in (0, count % 2)]
    return (constant_pad_nd(input, uneven) if any(uneven) else input), [n // 2 for n in total]


def _define(rank: int, sizes: str, kernel: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The convolution and the transposed convolution in so many dimensions."""
    name, transposed_name = f"conv{rank}d", f"conv_transpose{rank}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
             groups: int = 1) -> Tensor:
        batched = _batched(name, rank, input)
        image = input if batched else traced.unsqueeze(input, 0)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise RuntimeError(f"Invalid padding string: {padding!r}; use 'same', 'valid' or numbers")
            image, padding = _same(image, weight, stride, dilation, rank) if padding == "same" else (image, 0)
        out = convolution(image, weight, bias, stride, padding, dilation, False, 0, groups)
        return out if batched else traced.squeeze(out, 0)

    def conv_transpose(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                       groups: int = 1, dilation: Sizes = 1) -> Tensor:
        batched = _batched(transposed_name, rank, input)
        image = input if batched else traced.unsqueeze(input, 0)
        out = convolution(image, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return out if batched else traced.squeeze(out, 0)

    conv.__name__ = conv.__qualname__ = name
    conv_transpose.__name__ = conv_transpose.__qualname__ = transposed_name
    conv.__doc__ = f"""The sums of products of kernels with the elements of images under them, plus a bias for each channel of the result.

    (N, C, {sizes}) with a weight (O, C / groups, {kernel}) gives (N, O, ...); N may be missing. The kernel moves by `stride`; its elements are
    `dilation` apart; `padding` zeros stand around the image, "same" as many as give a result of its size (for a stride of 1), "valid" none.
    A group of output channels sees only its group of input channels. A kernel is not turned round, so that this is a correlation.

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together, with the shapes of the weight and of the input.

    >>> import symgrad
    >>> {name}(symgrad.ones(1, 2, {", ".join("5" * rank)}), symgrad.ones(3, 2, {", ".join("3" * rank)}), stride=2).shape
    torch.Size([1, 3, {", ".join("2" * rank)}])
    """
    conv_transpose.__doc__ = f"""The transpose of `{name}` as a linear map of the images, plus a bias for each channel of the result.

    (N, C, {sizes}) with a weight (C, O / groups, {kernel}) gives (N, O, ...), each size (n - 1) stride - 2 padding + dilation (k - 1) + 1 +
    output_padding; N may be missing.

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together.

    >>> import symgrad
    >>> {transposed_name}(symgrad.ones(1, 3, {", ".join("2" * rank)}), symgrad.ones(3, 2, {", ".join("3" * rank)}), stride=2).shape
    torch.Size([1, 2, {", ".join("5" * rank)}])
    """
    return taking_tensors(conv), taking_tensors(conv_transpose)


conv1d, conv_transpose1d = _define(1, "L", "k")
conv2d, conv_transpose2d = _define(2, "H, W", "kh, kw")
conv3d, conv_transpose3d = _define(3, "D, H, W", "kd, kh, kw")


@taking_tensors
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first axis: (T, N, C) with a weight (k, C, O) and a bias (O,) gives (T + 2 pad - k + 1, N, O).

    Raises RuntimeError for shapes that do not fit together.
    """
    for x, message in ((input, "Input must have 3 dims: time, batch, in_channel"),
                       (weight, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")):
        if x.ndim != 3:
            raise RuntimeError(f"{message} Its shape is {list(x.shape)}")
    if bias.ndim != 1:
        raise RuntimeError(f"Bias must be 1-D, but its shape is {list(bias.shape)}")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError(f"Input dim 2 (input channels) is not == dim 1 in the weight tensor: {list(input.shape)} and {list(weight.shape)}")
    if bias.shape[0] != weight.shape[2]:
        raise RuntimeError(f"Bias size must equal dim 2 in the weight tensor (output channels). They are {bias.shape[0]} and {weight.shape[2]}")
    out = conv1d(traced.permute(input, (1, 2, 0)), traced.permute(weight, (2, 1, 0)), bias, padding=pad)
    return traced.permute(out, (2, 0, 1))
