"""Padding, and rearrangements of images and channels: shuffles, and patches as columns, with torch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.layouts.devices import FORMATS
from symgrad.nn.validation import Sizes, check_nonempty, sizes

__all__ = ["channel_shuffle", "fold", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

MODES = ("constant", "reflect", "replicate", "circular")


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
    out = [(input.ndim - 1 - i // 2, (int(pad[i]), int(pad[i + 1]))) for i in range(0, len(pad) // 2 * 2, 2)]
    if len(pad) % 2 or len(out) > input.ndim or any(input.shape[dim] + before + after < 0 for dim, (before, after) in out):
        raise RuntimeError(f"pad: the widths {list(pad)} do not fit an input of shape {list(input.shape)}. Give two for each of the last dimensions")
    return out


def _sources(mode: str, n: int, before: int, after: int) -> np.ndarray:
    """The indices of the elements that a dimension of size n has after padding with its own elements."""
    at = np.arange(-before, n + after)
    if mode == "replicate":
        return at.clip(0, n - 1)
    if max(before, after) > n - (mode == "reflect"):
        raise RuntimeError(f"pad: widths of {before} and {after} are too large for mode {mode!r} along a dimension of size {n}")
    if mode == "circular":
        low, high = max(-before, 0), n + min(after, 0)  # what a negative width leaves is repeated
        return low + (at - low) % (high - low)
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
    if mode == "constant":
        return constant_pad_nd(input, pad, 0.0 if value is None else value)
    widths, rank = _widths(input, pad), len(pad) // 2
    if value:
        raise RuntimeError(f"pad: a value ({value}) has no meaning for mode {mode!r}")
    check_option("pad", "mode", mode, MODES, NotImplementedError)
    if rank not in (1, 2, 3):
        raise NotImplementedError(f"pad: mode {mode!r} is for one to three dimensions, not for the widths {list(pad)}")
    check_dims("pad", input, rank + 1, rank + 2, error=NotImplementedError)
    if mode != "circular":
        check_nonempty("pad", input, rank + 1)
    out = input
    for dim, (before, after) in widths:
        out = traced.index_select(out, dim, wrap(_sources(mode, input.shape[dim], before, after)))
    return out


def _in_new_memory(x: Any, shape: tuple[int, ...], input: Any) -> Any:
    """A reshaped copy, row by row, or in the format of images if the input has that."""
    out = traced.reshape(x, shape)
    order = next((FORMATS[name] for name in ("contiguous_format", "channels_last") if input.is_contiguous(memory_format=FORMATS[name])),
                 FORMATS["contiguous_format"])
    return out if not out._is_view() and out.is_contiguous(memory_format=order) else out.clone(memory_format=order)


def _check_division(name: str, input: Any, word: str, given: int, *parts: tuple[int, int]) -> None:
    """Raise RuntimeError unless there are three dimensions or more, and sizes are divisible by powers of a positive number: (size, power)."""
    if input.ndim < 3:
        raise RuntimeError(f"{name}: the input must have at least 3 dimensions, but its shape is {list(input.shape)}")
    if given <= 0 or any(input.shape[dim] % given**power for dim, power in parts):
        raise RuntimeError(f"{name}: {word}={given} must be positive, and divide the sizes of the input, whose shape is {list(input.shape)}")


@taking_tensors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Groups of r² channels as images r times as high and wide: (..., C r², H, W) gives (..., C, H r, W r).

    Raises RuntimeError for fewer than three dimensions, and unless r² divides the number of channels.
    """
    _check_division("pixel_shuffle", input, "upscale_factor", upscale_factor, (-3, 2))
    r, (*lead, c, h, w) = upscale_factor, input.shape
    n = len(lead)
    out = traced.permute(traced.reshape(input, (*lead, c // r**2, r, r, h, w)), (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return _in_new_memory(out, (*lead, c // r**2, h * r, w * r), input)


@taking_tensors
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`: (..., C, H r, W r) gives (..., C r², H, W).

    Raises RuntimeError for fewer than three dimensions, and unless r divides the height and the width.
    """
    _check_division("pixel_unshuffle", input, "downscale_factor", downscale_factor, (-2, 1), (-1, 1))
    r, (*lead, c, h, w) = downscale_factor, input.shape
    n = len(lead)
    out = traced.permute(traced.reshape(input, (*lead, c, h // r, r, w // r, r)), (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return _in_new_memory(out, (*lead, c * r**2, h // r, w // r), input)


@taking_tensors
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels, which are the second dimension, in turn from each of `groups` groups.

    Raises RuntimeError for fewer than three dimensions, and unless the number of channels is divisible.
    """
    _check_division("channel_shuffle", input, "groups", groups, (1, 1))
    b, c, *rest = input.shape
    return _in_new_memory(traced.transpose(traced.reshape(input, (b, groups, c // groups, *rest)), 1, 2), (b, c, *rest), input)


native_channel_shuffle = channel_shuffle


# Patches as columns


def _blocks(name: str, size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, Any, Any, Any, tuple[int, ...]]:
    """The pairs of numbers, and how many patches there are along each dimension."""
    kernel, dilation = sizes(name, "kernel_size", kernel, 2, 1), sizes(name, "dilation", dilation, 2, 1)
    padding, stride = sizes(name, "padding", padding, 2, 0), sizes(name, "stride", stride, 2, 1)
    counts = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride))
    if min(counts) < 1:
        raise RuntimeError(f"{name}: kernel_size={kernel} with dilation={dilation} does not fit images of size {tuple(size)} with padding={padding}")
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
    check_dims("unfold", input, 3, 4)
    check_nonempty("unfold", input, 3)
    kernel, gaps, border, strides, counts = _blocks("unfold", input.shape[-2:], kernel_size, dilation, padding, stride)
    out: Any = constant_pad_nd(input, (border[1], border[1], border[0], border[0])) if any(border) else input
    n = input.ndim - 3
    for i in range(2):  # each appends a dimension with the elements under the kernel
        out = traced.unfold(out, n + 1 + i, gaps[i] * (kernel[i] - 1) + 1, strides[i])[..., ::gaps[i]]
    out = traced.permute(out, (*range(n + 1), n + 3, n + 4, n + 1, n + 2))
    return traced.reshape(out, (*input.shape[:n], input.shape[n] * math.prod(kernel), math.prod(counts)))


@taking_tensors
def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The sum of patches at their places in an image, the transpose of `unfold`: (N, C kh kw, L) gives (N, C, H, W) for an `output_size` (H, W).

    Raises RuntimeError for shapes that do not fit.
    """
    check_dims("fold", input, 2, 3)
    check_nonempty("fold", input, 2)
    size = sizes("fold", "output_size", output_size, 2, 1)
    kernel, gaps, border, strides, counts = _blocks("fold", size, kernel_size, dilation, padding, stride)
    *lead, columns, places = input.shape
    if columns % math.prod(kernel) or math.prod(counts) != places:
        raise RuntimeError(f"fold: an input of shape {list(input.shape)} does not have the patches of a kernel of size {kernel} at "
                           f"{counts[0]} x {counts[1]} places of images of size {size}")
    wide = tuple(n + 2 * p for n, p in zip(size, border))
    rows, cols = (np.add.outer(np.arange(k) * d, np.arange(c) * s) for k, d, c, s in zip(kernel, gaps, counts, strides))
    at = (rows[:, None, :, None] * wide[1] + cols[None, :, None, :]).reshape(-1)
    channels = columns // math.prod(kernel)
    terms = traced.reshape(input, (*lead, channels, at.size))
    out = traced.index_add(traced.zeros_like(terms, (*lead, channels, math.prod(wide))), len(lead) + 1, wrap(at), terms)
    out = traced.reshape(out, (*lead, channels, *wide))
    return constant_pad_nd(out, (-border[1], -border[1], -border[0], -border[0])) if any(border) else out
