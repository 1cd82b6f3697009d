"""Normalisations, with torch's names: of layers, groups, batches and instances, by mean squares and by neighbouring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_dims
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import DTYPES, finfo
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.layouts.devices import FORMATS
from symgrad.nn.padding import constant_pad_nd
from symgrad.nn.validation import check_dtypes, check_floating, check_shape
from symgrad.ops.rules import constant, in_float32

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]

IMAGES = FORMATS["channels_last"], FORMATS["channels_last_3d"]


def _standardized(input: Any, dims: Sequence[int], eps: float, weight: Any = None, bias: Any = None, shape: Any = None) -> Any:
    """(x - mean) / sqrt(var + eps) weight + bias, with mean and variance over some dimensions; the two are optional and are brought into a shape.

    For two bytes all are in four, because the derivative of the root overflows in float16 where the variance is small.
    """
    dtype, eps = input.dtype, eps if type(eps) is float else float(constant("normalization", "eps", eps))
    weight, bias = (w if w is None or shape is None else traced.reshape(w, shape) for w in (weight, bias))
    if dtype.is_complex:
        mean, scale = _statistics(input, dims, eps)
        return _affine(dtype, (input - mean) * scale, weight, bias)
    input, weight, bias = (w.float() if w is not None and w.dtype.name in ("float16", "bfloat16") else w for w in (input, weight, bias))
    out = traced.standardized(input, 1.0 if weight is None else weight, 0.0 if bias is None else bias, tuple(dims), eps)
    return out if dtype is out.dtype else out.to(dtype)


def _statistics(input: Any, dims: Sequence[int], eps: float) -> tuple[Any, Any]:
    """The mean and 1 / sqrt(var + eps) over some dimensions."""
    input = input.float() if input.dtype.name in ("float16", "bfloat16") else input
    var, mean = traced.var_mean(input, tuple(dims), correction=0, keepdim=True)
    return mean, traced.rsqrt(var + eps)


def _in_order(input: Any, images: bool = True) -> Any:
    """The input row by row, or in the format of images if it has that and `images` may: the result has its order."""
    value = input._value
    if type(value) is not np.ndarray or value.flags.c_contiguous or images and any(input.is_contiguous(memory_format=order) for order in IMAGES):
        return input
    return input.contiguous()


def _affine(dtype: Any, x: Any, weight: Any, bias: Any) -> Any:
    """x weight + bias in a dtype, where the two are optional."""
    x = x if weight is None else x * weight
    x = x if bias is None else x + bias
    return x if x.dtype == dtype else x.to(dtype)


def _last_dims(name: str, input: Any, given: int | Sequence[int], **parameters: Any) -> tuple[int, ...]:
    """The normalized dimensions. Raises RuntimeError unless the input ends with the shape, and parameters have it."""
    shape = (given,) if isinstance(given, int) else tuple(given)
    if not shape or tuple(input.shape[max(input.ndim - len(shape), 0):]) != shape:
        raise RuntimeError(f"{name}: the last dimensions of an input of shape {list(input.shape)} must be normalized_shape={list(shape)}")
    check_shape(name, shape, **parameters)
    check_floating(name, input, "complex")
    return tuple(range(input.ndim - len(shape), input.ndim))


@taking_tensors
def layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """(x - mean) / √(var + eps) weight + bias, with mean and variance over the last dimensions, which have the `normalized_shape`.

    Raises RuntimeError for shapes that do not fit.

    >>> import symgrad
    >>> layer_norm(symgrad.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    dims = _last_dims("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    check_dtypes("layer_norm", input, True, weight=weight, bias=bias)
    return _standardized(_in_order(input, False) if input.ndim > 3 else input, dims, eps, weight, bias)


@taking_tensors
def native_layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, the means, and the factors 1 / √(var + eps)."""
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    mean, scale = _statistics(input, _last_dims("layer_norm", input, normalized_shape), eps)
    return out, mean.to(input.dtype), scale.to(input.dtype)


@taking_tensors
def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / √(mean(x²) + eps) weight over the last dimensions, which have the `normalized_shape`; `eps` is by default that of the dtype, of
    two bytes that of float32.

    Raises RuntimeError for shapes that do not fit.
    """
    dims = _last_dims("rms_norm", input, normalized_shape, weight=weight)
    computed = DTYPES["float32"] if input.dtype.name in ("float16", "bfloat16") else input.dtype
    return _rms(_in_order(input), dims, finfo(computed).eps if eps is None else eps, weight)


@in_float32
def _rms(input: Any, dims: Any, eps: float, weight: Any) -> Any:
    return _affine(input.dtype, input * traced.rsqrt(traced.mean(traced.square(input), dims, True) + eps), weight, None)


@taking_tensors
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Normalisation over groups of channels, which are the second dimension, and all further dimensions, for each member of the batch.

    Raises RuntimeError unless the number of channels is divisible, and for shapes that do not fit.
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm: the input must have at least 2 dimensions, but its shape is {list(input.shape)}")
    n, c, *rest = input.shape
    if num_groups > 0 and n * c // num_groups * math.prod(rest) == 1:
        raise ValueError(f"group_norm: num_groups={num_groups} leaves one value for each group of an input of shape {list(input.shape)}")
    return _group_norm(input, weight, bias, n, c, math.prod(rest), num_groups, eps)[0]


@taking_tensors
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` of N members with C channels of HxW elements, the means, and the factors 1 / √(var + eps)."""
    out, grouped = _group_norm(input, weight, bias, N, C, HxW, group, eps)
    mean, scale = (traced.reshape(s, (N, group)).to(input.dtype) for s in _statistics(grouped, (2, 3), eps))
    return out, mean, scale


def _group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> tuple[Any, Any]:
    """The normalised input, and the input as (N, group, C / group, HxW)."""
    if group <= 0 or C % group:
        raise RuntimeError(f"group_norm: num_groups={group} must be positive and divide the {C} channels of an input of shape {list(input.shape)}")
    check_shape("group_norm", (C,), weight=weight, bias=bias)
    check_dtypes("group_norm", input, True, weight=weight, bias=bias)
    check_floating("group_norm", input, "complex")
    grouped = traced.reshape(input, (N, group, C // group, HxW))
    out = _standardized(grouped, (2, 3), eps, weight, bias, (group, C // group, 1))
    out = traced.reshape(out, input.shape)
    order = next((order for order in IMAGES if not input.is_contiguous() and input.is_contiguous(memory_format=order)), None)
    return out if order is None else out.clone(memory_format=order), grouped


def _update(running: Any, new: Any, momentum: float) -> None:
    """Move running statistics towards new ones."""
    if running is not None:
        with no_grad():
            running.copy_((1 - momentum) * running + momentum * new.detach())


@taking_tensors
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalisation of each channel, which are the second dimension, over the batch and all further dimensions.

    In training the statistics are those of the input, and the running ones, if they are given, move towards them in place; else the running ones
    are used. Raises ValueError for one value per channel in training and for an `eps` that is not positive there, or negative; RuntimeError for
    shapes that do not fit and without statistics.
    """
    if input.ndim < 2 and not input.numel():
        return input.clone()
    if training and input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(f"batch_norm: in training there must be more than one value for each channel, but the input has {list(input.shape)}")
    if eps < 0 or training and eps == 0:
        raise ValueError(f"batch_norm: eps must be positive in training and must not be negative, but it is {eps}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _check_channels(name: str, count: int, **parameters: Tensor | None) -> None:
    """Raise RuntimeError unless each parameter has one element for each channel."""
    for word, w in parameters.items():
        if w is not None and w.numel() != count:
            raise RuntimeError(f"{name}: {word} must have an element for each of {count} channels, but its shape is {list(w.shape)}")


@taking_tensors
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                      training: bool, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm`, and in training the means and the factors 1 / √(var + eps); else two empty tensors."""
    out = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        empty = traced.zeros_like(input.detach(), (0,))
        return out, empty, empty
    mean, scale = (traced.reshape(s, (input.shape[1],)).to(input.dtype) for s in _statistics(input, (0, *range(2, input.ndim)), eps))
    return out, mean, scale


def _batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float) -> Any:
    name, parameters = "batch_norm", {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    if not hasattr(eps, "__float__"):
        raise TypeError(f"{name}: eps must be a float, not {type(eps).__name__}")
    check_floating(name, input, "complex")
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError(f"{name}: in evaluation running_mean and running_var are needed")
    if input.ndim < 2:
        raise IndexError(f"{name}: the input must have channels in its second dimension, but its shape is {list(input.shape)}")
    c, dims = input.shape[1], (0, *range(2, input.ndim))
    _check_channels(name, c, **parameters)
    check_dtypes(name, input, True, **parameters)
    shape = (c, *(1,) * (input.ndim - 2))
    if training:
        out = _standardized(input, dims, eps, weight, bias, shape)
        if (count := input.numel() // max(c, 1)) and not (running_mean is running_var is None):
            var, mean = traced.var_mean(input.detach(), dims, correction=count > 1)
            _update(running_mean, mean, momentum)
            _update(running_var, var, momentum)
        return out
    mean, var = (traced.reshape(s, shape) for s in (running_mean, running_var))
    weight, bias = (w if w is None else traced.reshape(w, shape) for w in (weight, bias))
    return _affine(input.dtype, (_in_order(input) - mean) * traced.rsqrt(var + eps), weight, bias)


@taking_tensors
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalisation of each channel of each member of the batch over all further dimensions.

    The running statistics, if they are given, move towards the means over the batch in place; without `use_input_stats` they are used themselves.
    Raises ValueError for one element per channel, RuntimeError without statistics.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"instance_norm: there must be more than one element for each channel, but the input has {list(input.shape)}")
    if not use_input_stats:
        return batch_norm(_in_order(input, False), running_mean, running_var, weight, bias, False, momentum, eps)
    check_floating("instance_norm", input, "complex")
    _check_channels("instance_norm", input.shape[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    dims = tuple(range(2, input.ndim))
    rows = _in_order(input, False) if input.ndim > 3 else input
    out = _standardized(rows, dims, eps, weight, bias, (-1, *(1,) * (input.ndim - 2)))
    if not (running_mean is running_var is None):
        var, mean = traced.var_mean(input.detach(), dims, correction=1)
        _update(running_mean, traced.mean(mean, 0), momentum)
        _update(running_var, traced.mean(var, 0), momentum)
    return out


@taking_tensors
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean(x²))^beta, the mean over `size` neighbouring channels, with zeros beyond the first and the last.

    Raises ValueError for fewer than three dimensions.
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: the input must have at least 3 dimensions, but its shape is {list(input.shape)}")
    check_floating("local_response_norm", input, "complex", "int64")
    whole = input.dtype.name == "int64"
    squares = constant_pad_nd(traced.square(input), (*(0,) * (2 * (input.ndim - 2)), size // 2, (size - 1) // 2))
    windows = traced.unfold(squares, 1, size, 1)
    means = traced.sum(windows, -1) // size if whole else traced.mean(windows, -1)  # of integers rounded down, as their average pools
    return input / (k + alpha * means) ** beta


@taking_tensors
def cross_map_lrn2d(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
    """x / (k + alpha Σx² / size)^beta for (N, C, H, W), the sum over the channels less than (size + 1) / 2 away.

    Raises ValueError for another number of dimensions.
    """
    check_dims("cross_map_lrn2d", input, 4, error=ValueError)
    reach = (size + 1) // 2 - 1
    squares = constant_pad_nd(traced.square(input), (0, 0, 0, 0, reach, reach))
    return input / (k + alpha / size * traced.sum(traced.unfold(squares, 1, 2 * reach + 1, 1), -1)) ** beta


@taking_tensors
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The p-norm over all dimensions but one, of which the others keep size 1; over all for `dim` -1.

    >>> import symgrad
    >>> norm_except_dim(symgrad.tensor([[3.0, 4.0], [0.0, 2.0]]), 2, 0)
    tensor([[5.],
            [2.]])
    """
    if dim == -1:
        return traced.norm(v, pow)
    if dim not in (0, v.ndim - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    rows = traced.reshape(v, (v.shape[0], -1)) if dim == 0 else traced.reshape(v, (-1, v.shape[-1]))
    shape = (v.shape[0], *(1,) * (v.ndim - 1)) if dim == 0 else (*(1,) * (v.ndim - 1), v.shape[-1])
    return traced.reshape(traced.norm(rows, pow, 1 if dim == 0 else 0), shape)
