"""Convolutions and transposed convolutions of images in one to three dimensions, with torch's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.arguments import check_dims, check_option
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.padding import constant_pad_nd
from symgrad.nn.validation import Sizes, check_dtypes, check_shape, named, sizes

__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

_convolution = core(REGISTRY["convolution"])


def _check(input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
           output_padding: Sequence[int], groups: int) -> None:
    """Raise RuntimeError for shapes and numbers that do not fit together."""
    kernel, size, name = weight.shape[2:], input.shape[2:], "conv_transpose" if transposed else "conv"
    if groups < 1 or weight.shape[0] < groups or weight.shape[0] % groups:
        raise RuntimeError(f"{name}: groups={groups} must divide the first dimension of the weight, whose shape is {list(weight.shape)}")
    if input.shape[1] != (weight.shape[0] if transposed else weight.shape[1] * groups) or not all(kernel):
        raise RuntimeError(f"{name}: a weight of shape {list(weight.shape)} with groups={groups} does not fit an input of shape {list(input.shape)}")
    check_shape(name, (weight.shape[1] * groups if transposed else weight.shape[0],), bias=bias)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    if transposed:
        if any(m >= max(s, d) for m, s, d in zip(output_padding, stride, dilation)):
            raise RuntimeError(f"{name}: output_padding={list(output_padding)} must be less than stride={list(stride)} or dilation={list(dilation)}")
        after = [(n - 1) * s - 2 * p + r + m for n, s, p, r, m in zip(size, stride, padding, reach, output_padding)]
    else:
        after = [n + 2 * p - r + 1 for n, p, r in zip(size, padding, reach)]
    if min(after) < 1 or not transposed and not all(size) and math.prod(input.shape[:2]):
        raise RuntimeError(f"{name}: a kernel that reaches over {reach} elements and padding={list(padding)} leave nothing of an input of shape "
                           f"{list(input.shape)}")


@taking_tensors
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
                output_padding: Sizes, groups: int) -> Tensor:
    """The convolution of images (N, C, *size) with kernels (O, C / groups, *kernel), or its transpose with kernels (C, O / groups, *kernel).

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together.
    """
    rank = weight.ndim - 2
    if rank < 1:
        raise RuntimeError(f"convolution: the weight must have at least 3 dimensions, but its shape is {list(weight.shape)}")
    check_dims("convolution", input, weight.ndim)
    places = [sizes("convolution", word, given, rank, least)
              for word, given, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))]
    more = sizes("convolution", "output_padding", output_padding, rank, 0)
    check_dtypes("convolution", input, weight=weight, bias=bias)
    if input.dtype.name == "bool":
        raise NotImplementedError("convolution: there are no results for torch.bool. Convert the input with .to()")
    _check(input, weight, bias, *places, transposed, more, groups)  # type: ignore[call-arg, arg-type]
    return _convolution(input, weight, 0 if bias is None else bias, *places, bool(transposed), more, groups)


def _same(input: Tensor, weight: Tensor, stride: Sizes, dilation: Sizes, rank: int) -> tuple[Any, Any]:
    """The border for a result of the size of the input, and the input, with one more zero at the end where the border is uneven."""
    if any(n != 1 for n in sizes("conv", "stride", stride, rank)):
        raise RuntimeError(f"conv: padding='same' needs a stride of 1, not {stride}")
    total = [d * (k - 1) for d, k in zip(sizes("conv", "dilation", dilation, rank), weight.shape[2:])]
    uneven = [n for count in reversed(total) for n in (0, count % 2)]
    return (constant_pad_nd(input, uneven) if any(uneven) else input), [n // 2 for n in total]


def _define(rank: int, shape: str, kernel: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The convolution and the transposed convolution in so many dimensions."""
    name, transposed_name = f"conv{rank}d", f"conv_transpose{rank}d"

    def batch(input: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of a batch, or of one image."""
        if input.ndim == rank + 2:
            return function(input)
        check_dims(name, input, rank + 1, rank + 2)
        return traced.squeeze(function(traced.unsqueeze(input, 0)), 0)

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
             groups: int = 1) -> Tensor:
        def of_batch(image: Tensor) -> Tensor:
            border: Any = padding
            if isinstance(padding, str):
                check_option(name, "padding", padding, ("same", "valid"), RuntimeError)
                image, border = _same(image, weight, stride, dilation, rank) if padding == "same" else (image, 0)
            return convolution(image, weight, bias, stride, border, dilation, False, 0, groups)

        return batch(input, of_batch)

    def conv_transpose(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                       groups: int = 1, dilation: Sizes = 1) -> Tensor:
        return batch(input, lambda image: convolution(image, weight, bias, stride, padding, dilation, True, output_padding, groups))

    return named(conv, name, f"""The sums of products of kernels with the elements of images under them, plus a bias for each channel.

    (N, C, {shape}) with a weight (O, C / groups, {kernel}) gives (N, O, ...); N may be missing. The kernel moves by `stride`; its elements are
    `dilation` apart; `padding` zeros stand around the image, "same" as many as give a result of its size (for a stride of 1), "valid" none.
    A group of output channels sees only its group of input channels. A kernel is not turned round, so that this is a correlation.

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together, with the shapes of the weight and of the input.

    >>> import symgrad
    >>> {name}(symgrad.ones(1, 2, {", ".join("5" * rank)}), symgrad.ones(3, 2, {", ".join("3" * rank)}), stride=2).shape
    torch.Size([1, 3, {", ".join("2" * rank)}])
    """), named(conv_transpose, transposed_name, f"""The transpose of `{name}` as a linear map of the images, plus a bias for each channel.

    (N, C, {shape}) with a weight (C, O / groups, {kernel}) gives (N, O, ...), each size (n - 1) stride - 2 padding + dilation (k - 1) + 1 +
    output_padding; N may be missing.

    Raises RuntimeError for shapes, sizes and dtypes that do not fit together.

    >>> import symgrad
    >>> {transposed_name}(symgrad.ones(1, 3, {", ".join("2" * rank)}), symgrad.ones(3, 2, {", ".join("3" * rank)}), stride=2).shape
    torch.Size([1, 2, {", ".join("5" * rank)}])
    """)


conv1d, conv_transpose1d = _define(1, "L", "k")
conv2d, conv_transpose2d = _define(2, "H, W", "kh, kw")
conv3d, conv_transpose3d = _define(3, "D, H, W", "kd, kh, kw")


@taking_tensors
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first axis: (T, N, C) with a weight (k, C, O) and a bias (O,) gives (T + 2 pad - k + 1, N, O).

    Raises RuntimeError for shapes that do not fit together.
    """
    check_dims("conv_tbc", input, 3)
    check_dims("conv_tbc", weight, 3, word="weight")
    out = conv1d(traced.permute(input, (1, 2, 0)), traced.permute(weight, (2, 1, 0)), bias, padding=pad)
    return traced.permute(out, (2, 0, 1))
