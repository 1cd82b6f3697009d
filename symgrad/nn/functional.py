"""The functions behind the modules of `nn`: linear maps, activations and losses, with torch's names."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw
from symgrad.engine.recording import core
from symgrad.engine.refusals import expect_tensors, misfit, taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.activations import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    mish,
    normalize,
    one_hot,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    silu,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
    threshold_,
)
from symgrad.nn.borders import channel_shuffle, fold, native_channel_shuffle, pad, pixel_shuffle, pixel_unshuffle, unfold
from symgrad.nn.convolution import conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d
from symgrad.nn.ctc import ctc_loss
from symgrad.nn.distances import cosine_similarity, pairwise_distance, pdist
from symgrad.nn.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax
from symgrad.nn.likelihood import cross_entropy, nll_loss
from symgrad.nn.multihead import multi_head_attention_forward
from symgrad.nn.normalization import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from symgrad.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from symgrad.nn.products import bilinear, embedding, embedding_bag, linear_cross_entropy, scaled_dot_product_attention
from symgrad.nn.reductions import checked_reduction, of_one_size, reduced, reduction_of, warn_about_sizes
from symgrad.nn.regression import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from symgrad.nn.sampling import affine_grid, grid_sample, interpolate, upsample, upsample_bilinear, upsample_nearest
from symgrad.ops.rules import in_float32

__all__ = ["alpha_dropout", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_",
           "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
           "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
           "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
           "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu",
           "glu", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
           "hinge_embedding_loss", "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_",
           "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid", "margin_ranking_loss", "mish",
           "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
           "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle",
           "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention",
           "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink",
           "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss",
           "unfold"]
__all__ += ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]
__all__ += ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
           "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d",
           "avg_pool2d", "avg_pool3d", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
           "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]

_mm, _addmm, _square_error = core(REGISTRY["mm"]), core(REGISTRY["addmm"]), core(REGISTRY["mse_loss"])
_entropy, _logit_entropy = core(REGISTRY["binary_cross_entropy"]), core(REGISTRY["binary_cross_entropy_with_logits"])

logsigmoid, softplus = traced.logsigmoid, traced.softplus


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias over the last axis: (..., in) with a weight (out, in) gives (..., out).

    Raises RuntimeError for shapes that do not fit together.

    >>> import symgrad
    >>> linear(symgrad.tensor([[1.0, 2.0]]), symgrad.tensor([[3.0, 4.0]]), symgrad.tensor([0.5]))
    tensor([[11.5000]])
    """
    try:
        if not input.ndim or not weight.ndim:
            raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D")
        if weight.ndim == 1:
            return traced.matmul(input, weight) if bias is None else traced.addmm(bias, input, weight)
        n, k = math.prod(input.shape[:-1]), input.shape[-1]
        if k != weight.shape[1]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {weight.shape[1]}x{weight.shape[0]})")
        rows = input if input.ndim == 2 else input.reshape(n, k)
        out = _mm(rows, weight.t()) if bias is None else _addmm(bias, rows, weight.t(), 1, 1)
        return out if input.ndim == 2 else out.view(*input.shape[:-1], weight.shape[0])
    except Exception:
        found = misfit(linear, (input, weight, bias), {})
        if found is None:
            raise
        raise found from None


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return traced.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))."""
    return traced.sigmoid(input)


def _axis(name: str, input: Tensor, dim: int | None, stacklevel: int) -> int:
    """The axis to normalise over; without one, torch's legacy choice with its warning."""
    if dim is not None:
        return dim
    expect_tensors(name, input=input)
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.", UserWarning,
                  stacklevel=stacklevel)
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`, in another dtype if one is given.

    >>> import symgrad
    >>> softmax(symgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return traced.softmax(input, _axis("softmax", input, dim, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-input) along `dim`, in another dtype if one is given."""
    return traced.softmax(-input, _axis("softmin", input, dim, _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation, in another dtype if one is given."""
    return traced.log_softmax(input, _axis("log_softmax", input, dim, _stacklevel), dtype)


@in_float32
def _weighted(errors: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Errors times weights; the mean is divided by the sum of the weights."""
    if errors.shape != weight.shape:
        raise ValueError("Weights and input must have the same size.")
    each = errors * weight
    return each.sum() / weight.sum() if reduction == "mean" else reduced(each, reduction)


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of (input - target)²; with weights the weighted mean.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and for weights of another size.

    >>> import symgrad
    >>> mse_loss(symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    warn_about_sizes("mse_loss", input, target)
    if weight is not None:
        return _weighted((input - target) ** 2, weight, checked_reduction(reduction))
    return _square_error(input, target, checked_reduction(reduction))


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of |input - target|; with weights the weighted mean.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and for weights of another size.

    >>> import symgrad
    >>> l1_loss(symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    warn_about_sizes("l1_loss", input, target)
    errors = (input - target).abs()
    return reduced(errors, checked_reduction(reduction)) if weight is None else _weighted(errors, weight, checked_reduction(reduction))


@taking_tensors
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of -weight (target log(input) + (1 - target) log(1 - input)), with logarithms clamped to -100.

    Raises ValueError for sizes that differ and for an unknown reduction, RuntimeError for values outside [0, 1].

    >>> import symgrad
    >>> binary_cross_entropy(symgrad.tensor([0.5, 0.0]), symgrad.tensor([1.0, 1.0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    checked_reduction(reduction)
    if not of_one_size("binary_cross_entropy", input, target):
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please ensure "
                         f"they have the same size.")
    for name, values in (("input", input), ("target", target)):
        if not np.all(raw((values.value >= 0) & (values.value <= 1))):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    return _entropy(input, target, 1.0 if weight is None else weight.expand(np.broadcast_shapes(target.shape, weight.shape)), reduction)


@taking_tensors
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                     reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without cancellation or overflow; `pos_weight` is the weight of the positive targets.

    Raises ValueError for sizes that differ and for an unknown reduction.

    >>> import symgrad
    >>> binary_cross_entropy_with_logits(symgrad.tensor([0.0, 800.0]), symgrad.tensor([1.0, 0.0]), reduction="none")
    tensor([6.9315e-01, 8.0000e+02])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    checked_reduction(reduction)
    if not of_one_size("binary_cross_entropy_with_logits", input, target):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return _logit_entropy(input, target, 1.0 if weight is None else weight, 1.0 if pos_weight is None else pos_weight, reduction)
