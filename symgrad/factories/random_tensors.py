"""Random tensors, with torch's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_kind, check_range
from symgrad.carriers.batched import Batched, raw
from symgrad.dtypes.dtype import DType, dtype_of, finfo, numpy_dtype
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.factory import factory_function, like_function, new_leaf, sizes_of, write_out
from symgrad.factories.generators import BatchedGenerator, numpy_generator
from symgrad.layouts.devices import check_cpu
from symgrad.system.errorstate import quiet, quietly

__all__ = ["bernoulli", "binomial", "gamma_numbers", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn",
           "randn_like", "random_integers", "randperm"]


def _floating_dtype(name: str, dtype: DType | None) -> np.dtype:
    """The NumPy dtype. Raises NotImplementedError for integers and booleans."""
    check_kind(name, np.empty(0, numpy_dtype(dtype)), "fc", "the result")
    return numpy_dtype(dtype)


def _as_array(drawn: Any) -> Any:
    return drawn if type(drawn) is Batched else np.asarray(drawn)


def _uniform(shape: tuple[int, ...], target: np.dtype, generator: Any) -> Any:
    source = numpy_generator(generator)
    if target.kind == "c":
        return (source.random(shape) + 1j * source.random(shape)).astype(target)
    if target in (np.float32, np.float64):
        return _as_array(source.random(shape, target))
    bits = 8 if target.name == "bfloat16" else 11  # so that rounding never gives 1
    return (np.floor(_as_array(source.random(shape)) * 2**bits) / 2**bits).astype(target)


def _normal(shape: tuple[int, ...], target: np.dtype, generator: Any) -> Any:
    source = numpy_generator(generator)
    if target.kind == "c":
        return ((source.standard_normal(shape) + 1j * source.standard_normal(shape)) * math.sqrt(0.5)).astype(target)
    return _as_array(source.standard_normal(shape)).astype(target)


@factory_function
def rand(dtype: DType | None, *sizes: Any, size: Any = None, generator: Any = None) -> Any:
    """Uniform numbers from [0, 1)."""
    return _uniform(sizes_of("rand", sizes, size), _floating_dtype("rand", dtype), generator)


@factory_function
def randn(dtype: DType | None, *sizes: Any, size: Any = None, generator: Any = None) -> Any:
    """Numbers from the standard normal distribution; the parts of complex numbers have variance 1/2."""
    return _normal(sizes_of("randn", sizes, size), _floating_dtype("randn", dtype), generator)


def random_integers(low: int, high: int, shape: tuple[int, ...], target: np.dtype, generator: Any) -> Any:
    """Random integers from [low, high) in a dtype."""
    check_range("random integers", "the lower bound", low, high=high - 1)
    check_kind("random integers", np.empty(0, target), "fiub", "the result")
    limits = (0, 1) if target.kind == "b" else (np.iinfo(target).min, np.iinfo(target).max) if target.kind in "iu" else (
        int(finfo(dtype_of(target)).min), int(finfo(dtype_of(target)).max))
    for number in (low, high - 1):
        check_range("random integers", f"a bound in {target.name}", number, *limits)
    return _as_array(numpy_generator(generator).integers(low, high, shape, np.uint64 if high > 2**63 else np.int64)).astype(target)


@factory_function
def randint(dtype: DType | None, low: Any = None, high: Any = None, size: Any = None, *, generator: Any = None) -> Any:
    """Random integers from [low, high); randint(high, size) starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint: size must be a tuple of integers, not {size!r}")
    if isinstance(low, float) or isinstance(high, float):
        raise TypeError(f"randint: low and high must be integers, not {low} and {high}")
    target = np.dtype(np.int64) if dtype is None else dtype.numpy
    return random_integers(0 if low is None else int(low), int(high), sizes_of("randint", (size,)), target, generator)


@factory_function
def randperm(dtype: DType | None, n: int, *, generator: Any = None) -> Any:
    """The integers from 0 to n - 1 in random order."""
    sizes_of("randperm", (n,))
    return numpy_generator(generator).permutation(int(n)).astype(np.int64 if dtype is None else dtype.numpy)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Tensor | None = None, dtype: Any = None,
           layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Numbers from normal distributions with the given means and standard deviations: tensors, or numbers and a `size`.

    Raises RuntimeError for a negative or complex standard deviation and for shapes that do not broadcast, TypeError for a tensor with a size.
    """
    check_cpu(device)
    if size is not None and (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        raise TypeError("normal(): a tensor of means or standard deviations has a size of its own; leave out 'size', or give two numbers")
    for x in (mean, std):
        if isinstance(x, Tensor):
            constant_made(x, "symgrad.normal()")
    mu, sigma = (as_value(x) if isinstance(x, Tensor) else as_value(x, np.float64) for x in (mean, std))
    check_kind("normal", sigma, "fiub", "std")
    if np.any(raw(sigma) < 0):
        raise RuntimeError("normal: std must not be negative")
    if size is None and not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError("normal(): two numbers need a size, as in normal(0.0, 1.0, (2, 3))")
    if size is None:
        try:
            shape = np.broadcast_shapes(mu.shape, sigma.shape)
        except ValueError:
            raise RuntimeError(f"normal: the shapes {list(mu.shape)} of mean and {list(sigma.shape)} of std do not broadcast") from None
        target = dtype_of((mu if isinstance(mean, Tensor) else sigma).dtype) if dtype is None else dtype_of(dtype)
    else:
        shape, target = sizes_of("normal", (size,)), out.dtype if dtype is None and out is not None else dtype_of(numpy_dtype(dtype))
    _floating_dtype("normal", target)
    value = quietly(lambda: _as_array(mu + sigma * _normal(shape, target.numpy, generator)).astype(target.numpy))
    if out is None:
        return new_leaf(value if value.ndim else value[()], requires_grad)
    return write_out("normal", out, value, f"normal: out of shape {list(out.shape)} is resized to {list(shape)}" if size is None else "")


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """1 with the probabilities of the input, or with probability `p`, else 0.

    Raises RuntimeError for a probability outside [0, 1].
    """
    x = as_value(input)
    if p is None:
        check_kind("bernoulli", x, "fc")
    chance, source = x if p is None else as_value(p), numpy_generator(generator)
    if not np.all((raw(chance) >= 0) & (raw(chance) <= 1)):
        raise RuntimeError("bernoulli: probabilities must be from 0 to 1")
    value = _as_array(source.random(tuple(x.shape)) < chance).astype(x.dtype)
    return new_leaf(value if value.ndim else value[()]) if out is None else write_out("bernoulli", out, value)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Numbers from Poisson distributions with the rates of the input.

    Raises RuntimeError for a negative rate.
    """
    x = as_value(input)
    check_kind("poisson", x, "f")
    if np.any(raw(x) < 0):
        raise RuntimeError("poisson: rates must not be negative")
    value = _drawn("poisson", numpy_generator(generator), x)
    return new_leaf(value if value.ndim else value[()])


@quiet
def gamma_numbers(concentration: Any, generator: Any) -> Any:
    """The values of numbers from gamma distributions with scale 1, at least the smallest normal number of their dtype.

    Raises NotImplementedError for integers and complex numbers, RuntimeError unless all concentrations are positive.
    """
    check_kind("gamma", concentration, "f")
    if not np.all(raw(concentration > 0)):
        raise RuntimeError("a gamma distribution has a positive concentration")
    value = np.maximum(_drawn("standard_gamma", numpy_generator(generator), concentration), finfo(dtype_of(concentration.dtype)).tiny)
    return value.astype(concentration.dtype)


@quiet
def _drawn(name: str, source: Any, x: Any) -> Any:
    """Numbers of a distribution of NumPy with a parameter, of its shape and dtype."""
    if type(x) is Batched or isinstance(source, BatchedGenerator):
        return _drawn_for_batch(name, source, x)
    return np.asarray(getattr(source, name)(x.astype(np.float64))).astype(x.dtype)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """The numbers of successes in `count` trials of probability `prob`, broadcast.

    Raises ValueError for integers, RuntimeError for negative counts and probabilities outside [0, 1].
    """
    n, p = as_value(count), as_value(prob)
    for word, x in (("count", n), ("prob", p)):
        if x.dtype.kind in "biuc":
            raise ValueError(f"binomial: {word} must be floating-point, not {x.dtype.name}")
    if not np.all(raw((p >= 0) & (p <= 1))) or not np.all(raw(n >= 0)):
        raise RuntimeError("binomial: counts are at least 0, and probabilities are from 0 to 1")
    source = numpy_generator(generator)
    if type(n) is Batched or type(p) is Batched or isinstance(source, BatchedGenerator):
        raise RuntimeError("binomial: vmap has no random numbers of batched counts; draw them outside of it")
    value = quietly(lambda: np.asarray(source.binomial(n.astype(np.int64), p.astype(np.float64))).astype(n.dtype))
    return new_leaf(value if value.ndim else value[()])


def _drawn_for_batch(name: str, source: Any, x: Any) -> Any:
    """The same for each member of the batches, whose parameters may differ."""
    if not isinstance(source, BatchedGenerator):
        raise RuntimeError(f"{name}: vmap has no equal random numbers for parameters that differ; give randomness='different'")
    spread, levels = x + source.random(tuple(x.shape)) * 0, []
    out = getattr(source.source, name)(raw(spread).astype(np.float64)).astype(x.dtype)
    while type(spread) is Batched:
        levels.append(spread.level)
        spread = spread.data
    for level in reversed(levels):
        out = Batched(out, level)
    return out


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """`num_samples` random indices with the weights of a vector, or of each row of a matrix, without repetition unless `replacement`.

    Raises RuntimeError for weights that are negative, not finite or all zero, and for more samples than elements without `replacement`.
    """
    x = as_value(input)
    check_dims("multinomial", x, 1, 2)
    check_kind("multinomial", x, "fc")
    if isinstance(num_samples, bool) or not hasattr(num_samples, "__index__"):
        raise TypeError(f"multinomial: num_samples must be an integer, not {num_samples!r}")
    check_range("multinomial", "num_samples", num_samples, 1, None if replacement else x.shape[-1])
    weights = np.atleast_2d(x).astype(np.float64)
    if not np.all(raw(np.isfinite(weights) & (weights >= 0))) or np.any(raw(quietly(weights.sum, -1) <= 0)):
        raise RuntimeError("multinomial: weights must be finite and not negative, with a positive sum")
    value = quietly(_sampled, weights, num_samples, replacement, numpy_generator(generator)).astype(np.int64).reshape((*x.shape[:-1], num_samples))
    return wrap(value) if out is None else write_out("multinomial", out, value)


def _sampled(weights: Any, num_samples: int, replacement: bool, source: Any) -> Any:
    if replacement:
        ends = np.cumsum(weights, -1)
        drawn = source.random((weights.shape[0], num_samples)) * ends[:, -1:]
        return np.add.reduce(ends[:, None, :] <= drawn[:, :, None], axis=-1, dtype=np.int64)
    # sorting exponential times with these rates samples without replacement
    return np.argsort(source.standard_exponential(tuple(weights.shape)) / weights, -1)[:, :num_samples]


# Like another tensor


def _fill_from(draw: Callable[..., Any], kernel: str) -> Callable[..., Any]:
    def fill(array: np.ndarray, *, generator: Any = None) -> None:
        array[...] = draw(array.shape, _floating_dtype(kernel, dtype_of(array.dtype)), generator)

    return fill


def _fill_integers(array: np.ndarray, low: Any = None, high: Any = None, *, generator: Any = None) -> None:
    low, high = (0, low) if high is None else (low, high)
    array[...] = random_integers(int(low), int(high), array.shape, array.dtype, generator)


rand_like = like_function(_fill_from(_uniform, "rand_like"),
                          "Uniform numbers from [0, 1) of the shape and dtype of another tensor.", "rand_like")
randn_like = like_function(_fill_from(_normal, "randn_like"), "Normal numbers of the shape and dtype of another tensor.", "randn_like")
randint_like = like_function(_fill_integers, "Integers from `low` up to, but not with, `high`, of the shape and dtype of another tensor; "
                             "randint_like(x, high) starts at 0.", "randint_like")
