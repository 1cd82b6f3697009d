"""Convolutions and transposed convolutions in one to three dimensions, and the windows that they and poolings see."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import check_ordered
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


def _of_members(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """The function of the last axes of an array, or of that of the members of a batch."""
    @functools.wraps(function)
    def positions(value: Any, *given: Any) -> Any:
        value = check_ordered(value)
        return value._with(positions(value.data, *given)) if hasattr(value, "_with") else function(np.asarray(value), *given)

    return positions


@_of_members
def largest_in_windows(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
                       places: Sequence[int]) -> np.ndarray:
    """The position of the first largest element under a kernel at each of its places, in the flattened last axes; the last NaN is the largest."""
    rank = len(kernel)
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    size = x.shape[x.ndim - rank:]
    steps = np.array([math.prod(size[i + 1:]) for i in range(rank)])
    starts = [np.arange(n) * s - p for n, s, p in zip(places, stride, padding)]
    first = [np.where(start < 0, start + -(start // d) * d, start) for start, d in zip(starts, dilation)]  # in the input
    first = [np.minimum(each, n - 1) for each, n in zip(first, size)]
    at = np.broadcast_to(_positions(first, steps), (*x.shape[:x.ndim - rank], *places)).copy()
    best = np.full(at.shape, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    missing = x.dtype.kind == "f" and bool(x.size) and bool(np.isnan(np.min(x)))
    for offsets in itertools.product(*map(range, kernel)):
        inside, read = zip(*[_inside(start, j * d, n, s) for start, j, d, n, s in zip(starts, offsets, dilation, size, stride)])
        window, target = x[(..., *read)], (..., *inside)
        larger = window > best[target]
        if missing:
            larger |= window != window
        np.copyto(best[target], window, where=larger)
        shifted = [start[part] + j * d for start, part, j, d in zip(starts, inside, offsets, dilation)]
        np.copyto(at[target], _positions(shifted, steps), where=larger)
    return at


def without_elements(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
                     places: Sequence[int]) -> np.ndarray | None:
    """Where windows with gaps have no element of the input at all; None if there are none."""
    out: Any = False
    for i, (n, k, s, p, d, m) in enumerate(zip(size, kernel, stride, padding, dilation, places)):
        at = (np.arange(m) * s - p)[:, None] + np.arange(k) * d
        out = out | ~((at >= 0) & (at < n)).any(1).reshape((-1, *(1,) * (len(size) - 1 - i)))
    return out if np.any(out) else None


def _positions(coordinates: Sequence[np.ndarray], steps: np.ndarray) -> np.ndarray:
    """The positions in the flattened axes of the elements with coordinates along each axis."""
    rank = len(coordinates)
    out: Any = 0
    for i, (each, step) in enumerate(zip(coordinates, steps)):
        out = out + (each * step).reshape((-1, *(1,) * (rank - 1 - i)))
    return np.asarray(out)


def _inside(start: np.ndarray, offset: int, size: int, stride: int) -> tuple[slice, slice]:
    """The places whose element at an offset is in the axis, and those elements."""
    at = start + offset
    (found,) = np.nonzero((at >= 0) & (at < size))
    if not found.size:
        return slice(0, 0), slice(0, 0)
    low, high = int(found[0]), int(found[-1])
    return slice(low, high + 1), slice(int(at[low]), int(at[high]) + 1, stride)


@_of_members
def largest_in_parts(x: np.ndarray, parts: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """As `largest_in_windows`, for the parts from a start to an end of each axis, of different lengths."""
    rank = len(parts)
    lead, size = x.shape[:x.ndim - rank], x.shape[x.ndim - rank:]
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    at = np.zeros((*lead, *map(len, parts)), np.int64)
    positions = np.arange(math.prod(size)).reshape(size)
    for place in itertools.product(*[range(len(axis)) for axis in parts]):
        inside: Any = tuple(slice(*axis[i]) for axis, i in zip(parts, place))
        every: Any = (..., *inside)
        window = x[every].reshape((*lead, math.prod(positions[inside].shape)))
        found = np.argmax(window, -1)  # the first NaN, if there is one
        if x.dtype.kind == "f" and x.size:
            missing = np.isnan(window)
            found = np.where(missing.any(-1), window.shape[-1] - 1 - np.argmax(missing[..., ::-1], -1), found)
        one: Any = (..., *place)
        at[one] = positions[inside].reshape(-1)[found]
    return at


@_of_members
def largest_in_places(x: np.ndarray, starts: Sequence[np.ndarray], kernel: Sequence[int]) -> np.ndarray:
    """As `largest_in_windows`, for windows that start elsewhere in each image; `starts` has the coordinates (N, C, places) for each axis."""
    rank = len(kernel)
    size = x.shape[x.ndim - rank:]
    positions: Any = 0
    for i, (start, k) in enumerate(zip(starts, kernel)):
        each = (start[..., None] + np.arange(k)) * math.prod(size[i + 1:])  # (N, C, places, k)
        lead = each.shape[:-2]
        positions = positions + each.reshape((*lead, *[n if j == i else 1 for j in range(rank) for n in (each.shape[-2],)],
                                              *[n if j == i else 1 for j in range(rank) for n in (k,)]))
    positions = positions.reshape((*positions.shape[:positions.ndim - rank], math.prod(kernel)))
    lead, places = positions.shape[:-1 - rank], positions.shape[-1 - rank:]
    flat = x.reshape((*x.shape[:x.ndim - rank], math.prod(size)))
    every = np.broadcast_to(positions.reshape((*lead, math.prod(places))), (*flat.shape[:-1], math.prod(places)))
    found = np.take_along_axis(flat, every, -1).reshape((*flat.shape[:-1], *places))
    largest = np.argmax(found, -1)
    return np.take_along_axis(np.broadcast_to(positions, found.shape), largest[..., None], -1)[..., 0]


def flat_index(index: Any, rank: int, size: int) -> Any:
    """Positions in the last `rank` axes, flattened, of so many elements as positions in the whole flattened array."""
    lead = tuple(index.shape[:index.ndim - rank])
    return index + (np.arange(math.prod(lead)) * size).reshape((*lead, *(1,) * rank))
