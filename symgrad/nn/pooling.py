"""Pooling: means, largest elements and p-norms of windows of images in one to three dimensions, with torch's names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_dims
from symgrad.engine.recording import core
from symgrad.engine.storage.writes import taking_out
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import rand
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import first_outside
from symgrad.layouts.resampling_weights import pooled_size
from symgrad.nn.convolution import flat_index, largest_in_parts, largest_in_places, largest_in_windows, without_elements
from symgrad.nn.validation import Sizes, check_dtypes, check_floating, check_indices, check_nonempty, check_shape, named, sizes
from symgrad.ops.rules import in_float32

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
           "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d",
           "avg_pool2d", "avg_pool3d", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
           "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]

_resample = core(REGISTRY["resample"])
Function = Callable[..., Any]
SHAPES = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}
MISFIT = "Raises RuntimeError for shapes and sizes that do not fit together."


def _windows(name: str, input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> tuple[tuple[int, ...], ...]:
    """The kernel, stride, padding and dilation, and the number of windows, for each dimension."""
    kernel = sizes(name, "kernel_size", kernel_size, rank, 1)
    strides = kernel if stride is None or isinstance(stride, (tuple, list)) and not len(stride) else sizes(name, "stride", stride, rank, 1)
    borders, steps = sizes(name, "padding", padding, rank, 0), sizes(name, "dilation", dilation, rank, 1)
    check_dims(name, input, rank + 1, rank + 2)
    check_nonempty(name, input, rank + 1)
    if any(p > (d * (k - 1) + 1) // 2 for k, p, d in zip(kernel, borders, steps)):
        raise RuntimeError(f"{name}: padding={padding} must be at most half of the kernel, kernel_size={kernel_size} with dilation={dilation}")
    places = tuple(pooled_size(*given, ceil_mode) for given in zip(input.shape[input.ndim - rank:], kernel, strides, borders, steps))
    if min(places) < 1:
        raise RuntimeError(f"{name}: kernel_size={kernel_size} does not fit an input of shape {list(input.shape)} with padding={padding}")
    check_floating(name, input, "integers")
    return kernel, strides, borders, steps, places


# The largest elements


def _selected(name: str, input: Tensor, index: Any, rank: int) -> tuple[Tensor, Tensor]:
    """The elements at positions in the last dimensions, and the positions."""
    flat = flat_index(index, rank, math.prod(input.shape[input.ndim - rank:]))
    pick = getattr(traced, f"{name}{max(rank, 2)}d_elements")
    return pick(input, (flat,)), wrap(index)


def _pair(name: str, function: Function, doc: str) -> tuple[Function, Function]:
    """A function, and the one that always returns the indices."""
    def always(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["return_indices"] = True
        return function(*bound.args, **bound.kwargs)

    signature = inspect.signature(function)
    setattr(always, "__signature__", signature)  # noqa: B010  functions have no such attribute for mypy
    return named(function, name, doc), named(always, f"{name}_with_indices", f"`{name}`, always with the indices.")


def _define_max(rank: int) -> tuple[Function, Function]:
    name = f"max_pool{rank}d"

    def max_pool(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> Any:
        given = _windows(name, input, rank, kernel_size, stride, padding, dilation, ceil_mode)
        values, index = _selected("max_pool", input, largest_in_windows(input.value, *given), rank)
        gaps = any(given[2]) and max(given[3]) > 1  # so that a window may have no element of the input
        empty = without_elements(input.shape[input.ndim - rank:], *given) if gaps else None
        values = values if empty is None else traced.masked_fill(values, wrap(empty), -math.inf)
        return (values, index) if return_indices else values

    return _pair(name, max_pool, f"""The largest element of each window of the last dimensions: {SHAPES[rank]} gives (N, C, ...).

    N may be missing. The windows are `stride` apart, by default the size of the kernel; its elements are `dilation` apart. `padding` is at most half
    of a kernel, and the border is never the largest. With `ceil_mode` windows may reach beyond the end. Of equal elements the first one is taken and
    has the gradient; NaN is the largest. With `return_indices` also the positions in the flattened image.

    {MISFIT}
    """)


max_pool1d, max_pool1d_with_indices = _define_max(1)
max_pool2d, max_pool2d_with_indices = _define_max(2)
max_pool3d, max_pool3d_with_indices = _define_max(3)


def _adaptive(name: str, input: Tensor, output_size: Any, rank: int) -> tuple[int, ...]:
    """The size after adaptive pooling; None stays as it is."""
    several = isinstance(output_size, (tuple, list))
    given = tuple(output_size) if several else (output_size,) * rank
    check_dims(name, input, rank + 1, rank + 2, error=ValueError if several and 1 < rank and input.ndim <= len(given) else RuntimeError)
    if len(given) != rank:
        raise RuntimeError(f"{name}: output_size must have {rank} elements, but it is {output_size}")
    lead, before = input.shape[:input.ndim - rank], input.shape[input.ndim - rank:]
    size = tuple(n if m is None else m.__index__() for m, n in zip(given, before))
    if min(size) < 0 or math.prod((*lead, *size)) * input.element_size() >= 2**63:
        raise RuntimeError(f"{name}: output_size must not be negative or larger than the memory, but it is {output_size}")
    check_nonempty(name, input, input.ndim - 1 if "max" in name or rank == 3 else rank)
    check_floating(name, input)
    return size


def _define_adaptive(rank: int) -> tuple[Function, Function, Function]:
    name, max_name = f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d"

    def average(input: Tensor, output_size: Any) -> Tensor:
        size = _adaptive(name, input, output_size, rank)
        return _resample(input, tuple(("adaptive", n, m) for n, m in zip(input.shape[input.ndim - rank:], size)), False)

    def max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        size = _adaptive(max_name, input, output_size, rank)
        parts = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(input.shape[input.ndim - rank:], size)]
        found = _selected("adaptive_max_pool", input, largest_in_parts(input.value, parts), rank)
        return found if return_indices else found[0]

    text = f"""windows that cover the last dimensions evenly: {SHAPES[rank]} gives (N, C, *output_size); N may be missing.

    None in the output size keeps the size of a dimension. {MISFIT}
    """
    return (named(average, name, f"The mean over {text}"),
            *_pair(max_name, max_pool, f"The largest element in {text}With `return_indices` also the positions in the flattened image.\n    "))


adaptive_avg_pool1d, adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _define_adaptive(1)
adaptive_avg_pool2d, adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _define_adaptive(2)
adaptive_avg_pool3d, adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _define_adaptive(3)


def _intervals(samples: np.ndarray, n: int, count: int, kernel: int) -> np.ndarray:
    """The starts of windows at distances that a sample decides: (N, C, count)."""
    out = np.full((*samples.shape, count), n - kernel)
    if count > 1:
        step = (n - kernel) / (count - 1)
        out[..., :-1] = np.trunc((np.arange(count - 1) + samples[..., None]) * step) - np.trunc(samples[..., None] * step)
    return out


def _define_fractional(rank: int) -> tuple[Function, Function]:
    name = f"fractional_max_pool{rank}d"

    def max_pool(input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None) -> Any:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name}: give output_size, or output_ratio")
        check_dims(name, input, rank + 1, rank + 2, error=IndexError)
        size = input.shape[input.ndim - rank:]
        if output_size is None:
            ratio = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * rank
            if len(ratio) != rank:
                raise ValueError(f"{name}: output_ratio must be a number, or a tuple of {rank}, but it is {output_ratio}")
            output_size = tuple(int(n * r) for n, r in zip(size, ratio))
        kernel, after = sizes(name, "kernel_size", kernel_size, rank, 1), sizes(name, "output_size", output_size, rank)
        if any(m + k - (rank == 2) > n for k, m, n in zip(kernel, after, size)):  # in three dimensions torch asks for one element more
            raise RuntimeError(f"{name}: kernel_size={kernel_size} is too large for output_size={output_size} of an input of {list(input.shape)}")
        images = input if input.ndim == rank + 2 else traced.unsqueeze(input, 0)
        samples = rand(*images.shape[:2], rank, dtype=input.dtype) if _random_samples is None else _random_samples
        check_dtypes(name, images, _random_samples=samples)
        check_dims(name, samples, 3, word="_random_samples")
        check_shape(name, (max(images.shape[0], samples.shape[0]), images.shape[1], rank), _random_samples=samples)
        order = (1, 0) if rank == 2 else (0, 1, 2)  # torch takes the width first in two dimensions
        starts = [_intervals(np.asarray(samples.value)[:images.shape[0], :, at], n, m, k) for at, n, m, k in zip(order, size, after, kernel)]
        found = _selected("fractional_max_pool", images, largest_in_places(images.value, starts, kernel), rank)
        values, index = found if input.ndim == rank + 2 else (traced.squeeze(x, 0) for x in found)
        return (values, index) if return_indices else values

    return _pair(name, max_pool, f"""The largest elements of windows at pseudorandom distances: {SHAPES[rank]} gives (N, C, *output_size).

    The output size, or its ratio to the size of the input, is given. With `return_indices` also the positions in the flattened image.

    Raises ValueError without an output size, RuntimeError for a kernel that does not fit.
    """)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _define_fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _define_fractional(3)


# Means and norms


def _define_average(rank: int) -> tuple[Function, Function]:
    name, norm_name = f"avg_pool{rank}d", f"lp_pool{rank}d"

    def average(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
        if rank == 1 and divisor_override is not None:
            raise TypeError("avg_pool1d: there is no divisor_override; divide the result")
        kernel, strides, borders, _, places = _windows(name, input, rank, kernel_size, stride, padding, 1, ceil_mode)
        if divisor_override == 0:
            raise RuntimeError(f"{name}: divisor_override must not be 0")
        if rank == 3 and any(n < k for n, k in zip(input.shape[-3:], kernel)):
            raise RuntimeError(f"{name}: kernel_size={kernel_size} is larger than the images of an input of shape {list(input.shape)}")

        def over_windows(x: Tensor, sums: bool) -> Tensor:
            return _resample(x, tuple(("mean", n, m, k, s, p, bool(count_include_pad), sums)
                                      for n, m, k, s, p in zip(input.shape[input.ndim - rank:], places, kernel, strides, borders)), False)

        if input.is_floating_point():
            return over_windows(input, False) if divisor_override is None else in_float32(lambda x: over_windows(x, True) / divisor_override)(input)
        x = input.double()  # exact sums are divided, for a mean of rounded weights may lie below an integer
        ones = traced.ones_like(x)
        divisor = divisor_override or traced.round(over_windows(ones, True) / over_windows(ones, False))
        return traced.trunc(over_windows(x, True) / divisor).to(input.dtype)

    @in_float32
    def norm(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
        sums, count = pool(input ** norm_type, kernel_size, stride, 0, ceil_mode), math.prod(sizes(norm_name, "kernel_size", kernel_size, rank))
        return (traced.sign(sums) * traced.relu(traced.abs(sums)) * count) ** (1.0 / norm_type)

    pool = named(average, name, f"""The mean over each window of the last dimensions: {SHAPES[rank]} gives (N, C, ...); N may be missing.

    The windows are `stride` apart, by default the size of the kernel. The zeros of the border count unless `count_include_pad` is False; a
    `divisor_override` divides the sums in place of the count. With `ceil_mode` windows may reach beyond the end.

    {MISFIT}
    """)
    pool = pool if rank == 1 else taking_out(pool)
    return pool, named(norm, norm_name, f"""The root (Σ x^p)^(1/p) over each window of the last dimensions, p the `norm_type`.

    {SHAPES[rank]} gives (N, C, ...). The windows are `stride` apart, by default the size of the kernel. {MISFIT}
    """)


avg_pool1d, lp_pool1d = _define_average(1)
avg_pool2d, lp_pool2d = _define_average(2)
avg_pool3d, lp_pool3d = _define_average(3)


# Back to the places


def _unpooled_size(name: str, input: Tensor, rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                   output_size: Any) -> tuple[int, ...]:
    """The size of the images that were pooled. Raises ValueError for one that they cannot have had."""
    usual = tuple((n - 1) * s - 2 * p + k for n, k, s, p in zip(input.shape[input.ndim - rank:], kernel, stride, padding))
    if output_size is None:
        return usual
    size = tuple(output_size)[2 if len(output_size) == rank + 2 else 0:]
    if len(size) != rank or not all(m - s < n < m + s for n, m, s in zip(size, usual, stride)):
        raise ValueError(f"{name}: output_size={output_size} must be within the stride, {list(stride)}, of {list(usual)}")
    return size


def _define_unpool(rank: int) -> Function:
    name = f"max_unpool{rank}d"

    def unpool(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               output_size: Any = None) -> Tensor:
        check_dims(name, input, rank + 1, rank + 2)
        kernel, borders = sizes(name, "kernel_size", kernel_size, rank), sizes(name, "padding", padding, rank)
        strides = kernel if stride is None else sizes(name, "stride", stride, rank)
        size = _unpooled_size(name, input, rank, kernel, strides, borders, output_size)
        check_indices(name, indices, names=("int64",))
        check_shape(name, input.shape, indices=indices)
        count = math.prod(size)
        wrong = first_outside(indices.value, 0, count)
        if wrong is not None:
            raise RuntimeError(f"{name}: the index {wrong} does not lie in images of size {list(size)}")
        lead = tuple(input.shape[:input.ndim - rank])
        at, flat = flat_index(indices.value, rank, count).reshape(-1), traced.zeros_like(input, (math.prod(lead) * count,))
        return traced.reshape(traced.index_put(flat, (wrap(at),), traced.reshape(input, (-1,))), (*lead, *size))

    return named(unpool, name, f"""The elements at the places that `max_pool{rank}d` took them from, with zeros elsewhere.

    {SHAPES[rank]} gives images; the size that the stride leaves open may be given as `output_size`.

    Raises ValueError for an output size that it cannot be, RuntimeError for indices that do not fit.
    """)


max_unpool1d, max_unpool2d, max_unpool3d = _define_unpool(1), _define_unpool(2), _define_unpool(3)
