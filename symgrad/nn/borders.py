"""Borders, and rearrangements of images and channels: padding, shuffles, and patches as columns, with torch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.layouts.devices import FORMATS

__all__ = ["channel_shuffle", "constant_pad_nd", "fold", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

Sizes = Any  # an integer, or one for each dimension


@taking_tensors
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """The input with a border of one number. `pad` has the widths before and after, for the last dimension first; a negative one cuts off.

    Raises RuntimeError for an odd number of widths, for more than the dimensions have, and where more is cut off than there is.
    """
    widths = _widths(input, pad)
    out = input
    for dim, (before, after) in widths:
        out = traced.narrow(out, dim, max(-before, 0), out.shape[dim] + min(before, 0) + min(after, 0)) if min(before, after) < 0 else out
        if max(before, after) > 0:
            ends = [wrap(np.full((*out.shape[:dim], n, *out.shape[dim + 1:]), value, out._value.dtype)) for n in (before, after) if n > 0]
            out = traced.cat([*ends[:before > 0], out, *ends[before > 0:]], dim)
    return traced.clone(out) if out is input or all(max(pair) <= 0 for _, pair in widths) else out


def _widths(input: Any, pad: Sequence[int]) -> list[tuple[int, tuple[int, int]]]:
    """The dimensions and their widths before and after."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} while the "
                           f"input has {input.ndim} dimensions.")
    out = [(input.ndim - 1 - i // 2, (int(pad[i]), int(pad[i + 1]))) for i in range(0, len(pad), 2)]
    for dim, (before, after) in out:
        if input.shape[dim] + before + after < 0:
            raise RuntimeError(f"The input size {input.shape[dim]}, plus negative padding {before} and {after}, resulted in a negative output size, "
                               f"which is invalid. Check dimension {dim} of your input.")
    return out


def _place(mode: str, n: int, before: int, after: int, dim: int, shape: Any) -> np.ndarray:
    """The indices of the elements that a dimension has after padding with its own elements."""
    at = np.arange(-before, n + after)
    if mode == "replicate":
        return at.clip(0, n - 1)
    if mode == "circular":
        if max(before, after) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        low, high = max(-before, 0), n + min(after, 0)  # what a negative width leaves is repeated
        return low + (at - low) % (high - low)
    if max(before, after) >= n:
        raise RuntimeError(f"Argument #{2 * (len(shape) - dim) + 2}: Padding size should be less than the corresponding input dimension, but got: "
                           f"padding ({before}, {after}) at dimension {dim} of input {list(shape)}")
    return n - 1 - abs(n - 1 - abs(at))


@taking_tensors
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The input with a border. `pad` has the widths before and after, for the last dimension first; a negative one cuts off.

    The border has one number ("constant"), or elements of the input: mirrored at the first and the last ("reflect"), those two ("replicate"), or
    from the other end ("circular"). The last three are for the last one to three dimensions, with one or two before them.

    Raises RuntimeError for widths that do not fit, NotImplementedError for another mode or number of dimensions.

    >>> import symgrad
    >>> pad(symgrad.tensor([[1.0, 2.0, 3.0]]), (1, 2), "reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    """
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"Padding length should be less than or equal to two times the input dimension but got padding length {len(pad)} and "
                           f"input of dimension {input.ndim}")
    if mode == "constant":
        return constant_pad_nd(input, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) not in (2, 4, 6) or input.ndim - len(pad) // 2 not in (1, 2):
        raise NotImplementedError(f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor: the widths are those of the last one to "
                                  f"three dimensions, with one or two before them")
    rank = len(pad) // 2
    if mode != "circular" and not all(input.shape[input.ndim - rank - 1:]):
        raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                           f"input, but got: {list(input.shape)}")
    out = input
    for dim, (before, after) in _widths(input, pad):
        out = traced.index_select(out, dim, wrap(_place(mode, input.shape[dim], before, after, dim, input.shape)))
    return out


def _factor(name: str, input: Any, factor: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if factor <= 0:
        word = "upscale" if name == "pixel_shuffle" else "downscale"
        raise RuntimeError(f"{name} expects a positive {word}_factor, but got {factor}")


def _in_new_memory(x: Any, shape: tuple[int, ...], input: Any) -> Any:
    """A reshaped copy, row by row, or in the format of images if the input has that."""
    out = traced.reshape(x, shape)
    order = next((FORMATS[name] for name in ("contiguous_format", "channels_last") if input.is_contiguous(memory_format=FORMATS[name])),
                 FORMATS["contiguous_format"])
    return out if not out._is_view() and out.is_contiguous(memory_format=order) else out.clone(memory_format=order)


@taking_tensors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Groups of r² channels as images r times as high and wide: (..., C r², H, W) gives (..., C, H r, W r).

    Raises RuntimeError for fewer than three dimensions, and unless r² divides the number of channels.
    """
    _factor("pixel_shuffle", input, upscale_factor)
    r, (*lead, c, h, w) = upscale_factor, input.shape
    if c % r**2:
        raise RuntimeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={c} is not divisible by {r**2}")
    n = len(lead)
    out = traced.permute(traced.reshape(input, (*lead, c // r**2, r, r, h, w)), (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return _in_new_memory(out, (*lead, c // r**2, h * r, w * r), input)


@taking_tensors
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`: (..., C, H r, W r) gives (..., C r², H, W).

    Raises RuntimeError for fewer than three dimensions, and unless r divides the height and the width.
    """
    _factor("pixel_unshuffle", input, downscale_factor)
    r, (*lead, c, h, w) = downscale_factor, input.shape
    for word, at, n in (("height", -2, h), ("width", -1, w)):
        if n % r:
            raise RuntimeError(f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but input.size({at})={n} is not divisible "
                               f"by {r}")
    n = len(lead)
    out = traced.permute(traced.reshape(input, (*lead, c, h // r, r, w // r, r)), (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return _in_new_memory(out, (*lead, c * r**2, h // r, w // r), input)


@taking_tensors
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels, which are the second dimension, in turn from each of `groups` groups.

    Raises RuntimeError for fewer than three dimensions, and unless the number of channels is divisible.
    """
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    b, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return _in_new_memory(traced.transpose(traced.reshape(input, (b, groups, c // groups, *rest)), 1, 2), (b, c, *rest), input)


native_channel_shuffle = channel_shuffle


# Patches as columns


def _pair(name: str, word: str, given: Any, least: int) -> tuple[int, int]:
    pair = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2:
        raise RuntimeError(f"It is expected {word} equals to 2, but got size {len(pair)}")
    if min(pair) < least:
        short = {"kernel_size": "kernel", "padding": "pad"}.get(word, word)
        raise RuntimeError(f"{word.replace('_', ' ')} should be {'greater than zero' if least else 'non-negative'}, but got "
                           f"{short}_height: {pair[0]} {short}_width: {pair[1]} in {name}")
    return pair


def _blocks(name: str, size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, Any, Any, Any, tuple[int, ...]]:
    kernel, dilation = _pair(name, "kernel_size", kernel, 1), _pair(name, "dilation", dilation, 1)
    padding, stride = _pair(name, "padding", padding, 0), _pair(name, "stride", stride, 1)
    counts = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride))
    return kernel, dilation, padding, stride, counts


@taking_tensors
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The patches of images as columns: (N, C, H, W) gives (N, C kh kw, L) for L positions of a kernel of kh by kw; N may be missing.

    A product with a weight of shape (O, C kh kw) is a convolution, and a maximum over the kernel's elements is pooling.

    Raises RuntimeError for other numbers of dimensions, and where no patch fits.

    >>> import symgrad
    >>> unfold(symgrad.arange(6.0).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    if input.ndim not in (3, 4) or not all(input.shape[-3:]):
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    kernel, dilation, padding, stride, counts = _blocks("unfold", input.shape[-2:], kernel_size, dilation, padding, stride)
    if min(counts) < 1:
        raise RuntimeError(f"Given input with spatial size {tuple(input.shape[-2:])}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
                           f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one.")
    out: Any = constant_pad_nd(input, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else input
    n = input.ndim - 3
    for i in range(2):  # each appends a dimension with the elements under the kernel
        out = traced.unfold(out, n + 1 + i, dilation[i] * (kernel[i] - 1) + 1, stride[i])[..., ::dilation[i]]
    out = traced.permute(out, (*range(n + 1), n + 3, n + 4, n + 1, n + 2))
    return traced.reshape(out, (*input.shape[:n], input.shape[n] * math.prod(kernel), math.prod(counts)))


@taking_tensors
def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The sum of patches at their places in an image, the transpose of `unfold`: (N, C kh kw, L) gives (N, C, H, W) for an `output_size` (H, W).

    Raises RuntimeError for shapes that do not fit.
    """
    if input.ndim not in (2, 3) or not all(input.shape[-2:]):
        raise RuntimeError(f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    size = _pair("fold", "output_size", output_size, 1)
    kernel, dilation, padding, stride, counts = _blocks("fold", size, kernel_size, dilation, padding, stride)
    *lead, columns, places = input.shape
    if columns % math.prod(kernel):
        raise RuntimeError(f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={columns} and "
                           f"kernel_size={kernel}.")
    given = f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}"
    if min(counts) < 1:
        raise RuntimeError(f"{given}, calculated shape of the array of sliding blocks as {counts}, which is too small (non-positive)")
    if math.prod(counts) != places:
        raise RuntimeError(f"{given}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
                           f"{counts[0]} * {counts[1]} = {math.prod(counts)}, but got input.size(2)={places}.")
    wide = tuple(n + 2 * p for n, p in zip(size, padding))
    rows, cols = (np.add.outer(np.arange(k) * d, np.arange(c) * s) for k, d, c, s in zip(kernel, dilation, counts, stride))
    at = (rows[:, None, :, None] * wide[1] + cols[None, :, None, :]).reshape(-1)
    channels = columns // math.prod(kernel)
    terms = traced.reshape(input, (*lead, channels, at.size))
    out = traced.index_add(traced.zeros_like(terms, (*lead, channels, math.prod(wide))), len(lead) + 1, wrap(at), terms)
    out = traced.reshape(out, (*lead, channels, *wide))
    return constant_pad_nd(out, (-padding[1], -padding[1], -padding[0], -padding[0])) if any(padding) else out
