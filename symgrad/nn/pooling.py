"""Pooling: means, largest elements and p-norms of windows of images in one to three dimensions, with torch's names and its checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.writes import taking_out
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import rand
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import first_outside
from symgrad.layouts.resampling_weights import pooled_size
from symgrad.nn.windows import flat_index, largest_in_parts, largest_in_places, largest_in_windows, without_elements
from symgrad.ops.rules import in_float32

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
           "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d",
           "avg_pool2d", "avg_pool3d", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
           "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]

_resample = core(REGISTRY["resample"])
Sizes = int | Sequence[int]
NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}
NOT_LINES = "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {})"
COORDINATES = {1: ("W",), 2: ("H", "W"), 3: ("T", "H", "W")}


def _each(name: str, word: str, given: Any, rank: int, whole: bool = False) -> tuple[int, ...]:
    """A size for each dimension. Raises RuntimeError for another number of sizes; `whole`: also for a tuple of one."""
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,) * (rank if whole else 1)
    if whole and len(sizes) != rank:
        raise RuntimeError(f"{name}: {word} must either be a single Int or tuple of {'three ' * (rank == 3)}Ints, but it is {sizes}")
    if len(sizes) not in (1, rank):
        if rank == 1:
            raise RuntimeError(f"max_pool1d() {word} must be an int, list of ints or tuple of ints of size 1 but got size {len(sizes)}"
                               if name == "max_pool1d" else f"{name}() argument '{word}' should contain one int (got {len(sizes)})")
        raise RuntimeError(f"{name}: {word} must either be a single int, or a tuple of {NUMBERS[rank]}")
    return tuple(n.__index__() for n in sizes) * (rank if len(sizes) == 1 else 1)


def _check_lines(kernel: int, stride: int, padding: int, dilation: int) -> None:
    """Raise torch's errors for the numbers of `max_pool1d`, which has words of its own."""
    for word, n in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if n < 1:
            raise RuntimeError(f"max_pool1d() {word} must be greater than zero, but got {n}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2 and dilation == 1:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and kernel_size={kernel}")


def _windows(name: str, input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> tuple[tuple[int, ...], ...]:
    """The kernel, stride, padding and dilation, and the number of windows, for each dimension. Raises torch's errors."""
    kernel = _each(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None or isinstance(stride, (tuple, list)) and not len(stride) else _each(name, "stride", stride, rank)
    borders, steps = _each(name, "padding", padding, rank), _each(name, "dilation", dilation, rank)
    shape, size, axes = list(input.shape), tuple(input.shape[input.ndim - rank:]), COORDINATES[rank]
    if rank == 1 and input.ndim not in (2, 3):
        if name == "max_pool1d":
            raise RuntimeError(f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}")
        raise RuntimeError(NOT_LINES.format(input.ndim, name))
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input, but its shape is {shape}")
    if name == "max_pool1d":
        _check_lines(kernel[0], strides[0], borders[0], steps[0])
    flat = (1,) * (rank == 1)  # signals are images of one row
    axes = ("H", *axes) if flat else axes
    if min(strides) < 1:
        words = " ".join(f"d{axis}: {n}" for axis, n in zip(axes, (*flat, *strides)))
        raise RuntimeError(f"stride should {'not be zero' if 0 in strides else 'be greater than zero'}, but got {words}")
    for word, sizes in (("kernel size", kernel), ("dilation", steps)):
        if min(sizes) < 1:
            raise RuntimeError(f"{word} should be greater than zero, but got " + " ".join(
                f"{word.partition(' ')[0] if word != 'kernel size' else 'k'}{axis}: {n}" for axis, n in zip(axes, (*flat, *sizes))))
    if not all(shape[input.ndim - rank - 1:]):
        raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}")
    for k, p, d in zip(kernel, borders, steps):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    places = tuple(pooled_size(*given, ceil_mode) for given in zip(size, kernel, strides, borders, steps))
    if min(places) < 1:
        before, after = ("x".join(map(str, (shape[input.ndim - rank - 1], *flat, *sizes))) for sizes in (size, places))
        if name == "max_pool1d":
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {places[0]} for an input of shape {shape}")
        raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")
    return kernel, strides, borders, steps, places


def _check_dtype(name: str, input: Tensor, integers: bool) -> None:
    """Raise NotImplementedError for a dtype without a mean or an order."""
    kind = input.dtype
    if kind.name == "bool" or kind.is_complex or not (integers or kind.is_floating_point):
        raise NotImplementedError(f'"{name}" not implemented for \'{kind.scalar_type}\'')


# The largest elements


def _selected(name: str, input: Tensor, index: Any, rank: int) -> tuple[Tensor, Tensor]:
    """The elements at positions in the last dimensions, and the positions."""
    flat = flat_index(index, rank, math.prod(input.shape[input.ndim - rank:]))
    pick = getattr(traced, f"{name}{max(rank, 2)}d_elements")
    return pick(input, (flat,)), wrap(index)


def _pair(name: str, with_indices: Callable[..., tuple[Tensor, Tensor]], doc: str) -> tuple[Callable[..., Any], Callable[..., tuple[Tensor, Tensor]]]:
    """The function that returns the indices where it is asked to, and the one that always does."""
    def always(*args: Any, return_indices: bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return with_indices(*args[:place], *args[place + 1:], **kwargs)

    def function(*args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
        out = always(*args, **kwargs)
        return out if (args[place] if len(args) > place else return_indices) else out[0]

    given = inspect.signature(with_indices)
    flag = inspect.Parameter("return_indices", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
    parameters = list(given.parameters.values())
    place = next((i for i, p in enumerate(parameters) if p.name.startswith("_")), len(parameters))
    parameters.insert(place, flag)
    for each, own in ((function, name), (always, f"{name}_with_indices")):
        each.__name__ = each.__qualname__ = own
        setattr(each, "__signature__", given.replace(parameters=parameters))  # noqa: B010  functions have no such attribute for mypy
    with_indices.__qualname__ = name  # which Python names where an argument is missing
    function.__doc__ = doc
    always.__doc__ = f"`{name}`, always with the indices."
    return taking_tensors(function), taking_tensors(always)


def _define_max(rank: int, sizes: str) -> tuple[Callable[..., Any], Callable[..., tuple[Tensor, Tensor]]]:
    name = f"max_pool{rank}d"

    def with_indices(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                     ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
        kernel, strides, borders, steps, places = _windows(name, input, rank, kernel_size, stride, padding, dilation, ceil_mode)
        _check_dtype(name, input, True)
        values, index = _selected("max_pool", input, largest_in_windows(input.value, kernel, strides, borders, steps, places), rank)
        gaps = any(borders) and max(steps) > 1  # so that a window may have no element of the input
        empty = without_elements(input.shape[input.ndim - rank:], kernel, strides, borders, steps, places) if gaps else None
        return (values if empty is None else traced.masked_fill(values, wrap(empty), -math.inf)), index

    return _pair(name, with_indices, f"""The largest element of each window of the last dimensions: (N, C, {sizes}) gives (N, C, ...).

    N may be missing. The windows are `stride` apart, by default the size of the kernel; its elements are `dilation` apart. `padding` is at most half
    of a kernel, and the border is never the largest. With `ceil_mode` windows may reach beyond the end. Of equal elements the first one is taken and
    has the gradient; NaN is the largest. With `return_indices` also the positions in the flattened image.

    Raises RuntimeError for shapes and sizes that do not fit together.
    """)


max_pool1d, max_pool1d_with_indices = _define_max(1, "L")
max_pool2d, max_pool2d_with_indices = _define_max(2, "H, W")
max_pool3d, max_pool3d_with_indices = _define_max(3, "D, H, W")


def _adaptive(name: str, input: Tensor, output_size: Any, rank: int) -> tuple[int, ...]:
    """The size after adaptive pooling; None stays as it is. Raises torch's errors."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    kind, shape = name.partition("_pool")[0], list(input.shape)
    if rank > 1 and isinstance(output_size, (tuple, list)) and input.ndim <= len(given):
        raise ValueError(f"Input dimension should be at least {len(given) + 1}: the shape of the input is {shape}, and output_size {list(given)}")
    if len(given) != rank:
        if rank == 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
        words = "(): internal error: output_size.size()" if kind == "adaptive_max" else ": output_size"
        raise RuntimeError(f"{name}{words} must be {rank}, but got {list(given)}")
    if input.ndim not in (rank + 1, rank + 2):
        if rank == 1:
            raise RuntimeError(NOT_LINES.format(input.ndim, name))
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{':' * (kind == 'adaptive_max')} {shape}")
    size = tuple(n if m is None else m.__index__() for m, n in zip(given, input.shape[input.ndim - rank:]))
    if min(size) < 0:
        if kind == "adaptive_max":
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {[*shape[:input.ndim - rank], *size]}")
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {{{', '.join(map(str, size))}}}")
    if math.prod((*shape[:input.ndim - rank], *size)) * input.element_size() >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={[*shape[:input.ndim - rank], *size]}: output_size is {output_size}")
    for i in range(1 if kind == "adaptive_max" or rank == 3 else input.ndim - rank, input.ndim):
        if not shape[i]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} with "
                               f"dimension {i} being empty")
    _check_dtype(name, input, False)
    return size


def _define_adaptive(rank: int, sizes: str) -> tuple[Callable[..., Any], ...]:
    name, max_name = f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d"

    def average(input: Tensor, output_size: Any) -> Tensor:
        size = _adaptive(name, input, output_size, rank)
        return _resample(input, tuple(("adaptive", n, m) for n, m in zip(input.shape[input.ndim - rank:], size)), False)

    def with_indices(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        size = _adaptive(max_name, input, output_size, rank)
        parts = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(input.shape[input.ndim - rank:], size)]
        return _selected("adaptive_max_pool", input, largest_in_parts(input.value, parts), rank)

    text = f"""windows that cover the last dimensions evenly: (N, C, {sizes}) gives (N, C, *output_size); N may be missing.

    None in the output size keeps the size of a dimension.
    """
    average.__name__ = average.__qualname__ = name
    average.__doc__ = f"The mean over {text}\n    Raises RuntimeError for shapes and sizes that do not fit together.\n    "
    return (taking_tensors(average), *_pair(max_name, with_indices, f"""The largest element in {text}
    With `return_indices` also the positions in the flattened image. Raises RuntimeError for shapes and sizes that do not fit together.
    """))


adaptive_avg_pool1d, adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _define_adaptive(1, "L")
adaptive_avg_pool2d, adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _define_adaptive(2, "H, W")
adaptive_avg_pool3d, adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _define_adaptive(3, "D, H, W")


def _intervals(samples: np.ndarray, n: int, count: int, kernel: int) -> np.ndarray:
    """The starts of windows at distances that a sample decides: (N, C, count)."""
    out = np.full((*samples.shape, count), n - kernel)
    if count > 1:
        step = (n - kernel) / (count - 1)
        out[..., :-1] = np.trunc((np.arange(count - 1) + samples[..., None]) * step) - np.trunc(samples[..., None] * step)
    return out


def _check_samples(images: Tensor, samples: Tensor, rank: int) -> None:
    """Raise torch's error for samples that do not fit."""
    if samples.dtype is not images.dtype:
        raise RuntimeError(f"Expect _random_samples to have the same dtype as input; they are {samples.dtype} and {images.dtype}")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < images.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != images.shape[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != rank:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {rank}; got {samples.shape[2]}.")


def _define_fractional(rank: int, sizes: str) -> tuple[Callable[..., Any], Callable[..., tuple[Tensor, Tensor]]]:
    name = f"fractional_max_pool{rank}d"

    def with_indices(input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None,
                     _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if input.ndim not in (rank + 1, rank + 2):
            raise IndexError(f"Dimension out of range: {name} takes inputs of {rank + 1} or {rank + 2} dimensions, but got {list(input.shape)}")
        size = input.shape[input.ndim - rank:]
        if output_size is None:
            ratio = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * rank
            if len(ratio) != rank:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints. It is {output_ratio}")
            output_size = tuple(int(n * r) for n, r in zip(size, ratio))
        kernel, after = _each(name, "kernel_size", kernel_size, rank, True), _each(name, "output_size", output_size, rank, True)
        if min(kernel) < 1:
            raise RuntimeError(f"{name}: kernel_size must be positive, but got {list(kernel)}")
        for word, k, m, n in zip(("time", "height", "width")[3 - rank:], kernel, after, size):
            if m + k - (rank == 2) > n:  # in three dimensions torch asks for one element more
                raise RuntimeError(f"{name}{'(): ' if rank == 2 else '_out(): '}pool {word} {k} too large relative to input {word} {n}")
        images = input if input.ndim == rank + 2 else traced.unsqueeze(input, 0)
        samples = rand(*images.shape[:2], rank, dtype=input.dtype) if _random_samples is None else _random_samples
        _check_samples(images, samples, rank)
        order = (1, 0) if rank == 2 else (0, 1, 2)  # torch takes the width first in two dimensions
        starts = [_intervals(np.asarray(samples.value)[:images.shape[0], :, at], n, m, k) for at, n, m, k in zip(order, size, after, kernel)]
        values, index = _selected("fractional_max_pool", images, largest_in_places(images.value, starts, kernel), rank)
        return (values, index) if input.ndim == rank + 2 else (traced.squeeze(values, 0), traced.squeeze(index, 0))

    return _pair(name, with_indices, f"""The largest elements of windows at pseudorandom distances: (N, C, {sizes}) gives (N, C, *output_size).

    The output size, or its ratio to the size of the input, is given. With `return_indices` also the positions in the flattened image.

    Raises ValueError without an output size, RuntimeError for a kernel that does not fit.
    """)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _define_fractional(2, "H, W")
fractional_max_pool3d, fractional_max_pool3d_with_indices = _define_fractional(3, "D, H, W")


# Means and norms


def _define_average(rank: int, sizes: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    name, norm_name = f"avg_pool{rank}d", f"lp_pool{rank}d"

    def average(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
        if rank == 1 and divisor_override is not None:
            raise TypeError("avg_pool1d() got an unexpected keyword argument 'divisor_override'; divide the result")
        kernel, strides, borders, _, places = _windows(name, input, rank, kernel_size, stride, padding, 1, ceil_mode)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        if rank == 3 and any(n < k for n, k in zip(input.shape[-3:], kernel)):
            words = (" ".join(f"{letter}{axis}: {n}" for axis, n in zip("THW", sizes)) for letter, sizes in (("", input.shape[-3:]), ("k", kernel)))
            raise RuntimeError("input image ({}) smaller than kernel size ({})".format(*words))
        _check_dtype(name, input, True)

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
        sums, count = pool(input ** norm_type, kernel_size, stride, 0, ceil_mode), math.prod(_each(norm_name, "kernel_size", kernel_size, rank))
        return (traced.sign(sums) * traced.relu(traced.abs(sums)) * count) ** (1.0 / norm_type)

    average.__name__ = average.__qualname__ = name
    norm.__name__ = norm.__qualname__ = norm_name
    average.__doc__ = f"""The mean over each window of the last dimensions: (N, C, {sizes}) gives (N, C, ...); N may be missing.

    The windows are `stride` apart, by default the size of the kernel. The zeros of the border count unless `count_include_pad` is False; a
    `divisor_override` divides the sums in place of the count. With `ceil_mode` windows may reach beyond the end.

    Raises RuntimeError for shapes and sizes that do not fit together.
    """
    norm.__doc__ = f"""The root (Σ x^p)^(1/p) over each window of the last dimensions, p the `norm_type`: (N, C, {sizes}) gives (N, C, ...).

    The windows are `stride` apart, by default the size of the kernel. Raises RuntimeError for shapes and sizes that do not fit together.
    """
    pool = taking_tensors(average) if rank == 1 else taking_out(taking_tensors(average))
    return pool, taking_tensors(norm)


avg_pool1d, lp_pool1d = _define_average(1, "L")
avg_pool2d, lp_pool2d = _define_average(2, "H, W")
avg_pool3d, lp_pool3d = _define_average(3, "D, H, W")


# Back to the places


def _unpooled_size(name: str, input: Tensor, rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                   output_size: Any) -> tuple[int, ...]:
    """The size of the images that were pooled. Raises ValueError for one that they cannot have had."""
    usual = tuple((n - 1) * s - 2 * p + k for n, k, s, p in zip(input.shape[input.ndim - rank:], kernel, stride, padding))
    if output_size is None:
        return usual
    size = tuple(output_size)
    if len(size) == rank + 2:
        size = size[2:]
    if len(size) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of '{len(size)}'")
    for i, (n, m, s) in enumerate(zip(size, usual, stride)):
        if not m - s < n < m + s:
            raise ValueError(f'invalid output_size "{size}" (dim {i} must be between {m - s} and {m + s})')
    return size


def _define_unpool(rank: int, sizes: str) -> Callable[..., Tensor]:
    name = f"max_unpool{rank}d"

    def unpool(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               output_size: Any = None) -> Tensor:
        if input.ndim not in (rank + 1, rank + 2):
            raise RuntimeError(f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {input.ndim} "
                               f"dimensions.")
        kernel, borders = _each(name, "kernel_size", kernel_size, rank), _each(name, "padding", padding, rank)
        strides = kernel if stride is None else _each(name, "stride", stride, rank)
        size = _unpooled_size(name, input, rank, kernel, strides, borders, output_size)
        if indices.dtype.name != "int64":
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.scalar_type}")
        if tuple(indices.shape) != tuple(input.shape):
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor with "
                               f"shape: {list(indices.shape)}")
        count = math.prod(size)
        wrong = first_outside(indices.value, 0, count)
        if wrong is not None:
            raise RuntimeError(f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})")
        lead = tuple(input.shape[:input.ndim - rank])
        at, flat = flat_index(indices.value, rank, count).reshape(-1), traced.zeros_like(input, (math.prod(lead) * count,))
        return traced.reshape(traced.index_put(flat, (wrap(at),), traced.reshape(input, (-1,))), (*lead, *size))

    unpool.__name__ = unpool.__qualname__ = name
    unpool.__doc__ = f"""The elements at the places that `max_pool{rank}d` took them from, with zeros elsewhere: (N, C, {sizes}) gives images.

    The size that the stride leaves open may be given as `output_size`.

    Raises ValueError for an output size that it cannot be, RuntimeError for indices that do not fit.
    """
    return taking_tensors(unpool)


max_unpool1d, max_unpool2d, max_unpool3d = _define_unpool(1, "L"), _define_unpool(2, "H, W"), _define_unpool(3, "D, H, W")
