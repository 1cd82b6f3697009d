"""Losses of regression, of probabilities, of margins and of embeddings, with torch's names, arguments and reductions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.carriers.batched import raw
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.products import pairwise_distance
from symgrad.nn.validation import check_floating, check_indices, check_nonempty, check_shape, difference, floating, loss, reduced, warn_about_sizes
from symgrad.ops.rules import every, in_float32

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss",
           "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
           "triplet_margin_with_distance_loss"]

_square_error = core(REGISTRY["mse_loss"])
_entropy, _logit_entropy = core(REGISTRY["binary_cross_entropy"]), core(REGISTRY["binary_cross_entropy_with_logits"])


def _in_dtype_of(input: Tensor, each: Tensor) -> Tensor:
    """The terms in the dtype of the input, as torch's kernels write them, unless that is one of integers."""
    return each.to(input.dtype) if each.dtype is not input.dtype and input.is_floating_point() else each


# Of differences


@in_float32
def _weighted(errors: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Errors times weights; the mean is divided by the sum of the weights."""
    check_shape("loss", errors.shape, ValueError, weight=weight)
    each = errors * weight
    return each.sum() / weight.sum() if reduction == "mean" else reduced(each, reduction)


@loss
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of (input - target)²; with weights the weighted mean.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and for weights of another size.

    >>> import symgrad
    >>> mse_loss(symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """
    warn_about_sizes("mse_loss", input, target)
    return _square_error(input, target, reduction) if weight is None else _weighted((input - target) ** 2, weight, reduction)


@loss
def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of |input - target|; with weights the weighted mean.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and for weights of another size.

    >>> import symgrad
    >>> l1_loss(symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """
    warn_about_sizes("l1_loss", input, target)
    errors = (input - target).abs()
    return reduced(errors, reduction) if weight is None else _weighted(errors, weight, reduction)


@loss
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """The mean (or sum, or each) of error² / (2 beta) where |error| is below beta, else of |error| - beta / 2.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction, RuntimeError for a negative `beta`.

    >>> import symgrad
    >>> smooth_l1_loss(symgrad.tensor([0.5, 3.0]), symgrad.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    warn_about_sizes("smooth_l1_loss", input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, but it is {beta}")
    error = difference(input, target)
    return reduced(traced.abs(error) if beta == 0 else traced.huber_of_real(error, beta) / beta, reduction)


@loss
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of error² / 2 where |error| is below delta, else of delta (|error| - delta / 2), times the weights.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and weights of another size, RuntimeError unless `delta`
    is positive.
    """
    warn_about_sizes("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta must be positive, but it is {delta}")
    check_shape("huber_loss", input.shape, ValueError, weight=weight)
    each = _in_dtype_of(input, traced.huber_of_real(difference(input, target), delta))
    return reduced(each if weight is None else each * weight, reduction)


# Of likelihoods


@loss
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of -weight (target log(input) + (1 - target) log(1 - input)), with logarithms clamped to -100.

    Raises ValueError for sizes that differ and for an unknown reduction, RuntimeError for values outside [0, 1].

    >>> import symgrad
    >>> binary_cross_entropy(symgrad.tensor([0.5, 0.0]), symgrad.tensor([1.0, 1.0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    check_shape("binary_cross_entropy", input.shape, ValueError, target=target)
    for name, values in (("input", input), ("target", target)):
        if not np.all(raw((values.value >= 0) & (values.value <= 1))):
            raise RuntimeError(f"binary_cross_entropy: all elements of {name} must lie between 0 and 1")
    return _entropy(input, target, 1.0 if weight is None else weight.expand(np.broadcast_shapes(target.shape, weight.shape)), reduction)


@loss
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                     reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without cancellation or overflow; `pos_weight` is the weight of the positive targets.

    Raises ValueError for sizes that differ and for an unknown reduction.

    >>> import symgrad
    >>> binary_cross_entropy_with_logits(symgrad.tensor([0.0, 800.0]), symgrad.tensor([1.0, 0.0]), reduction="none")
    tensor([6.9315e-01, 8.0000e+02])
    """
    check_shape("binary_cross_entropy_with_logits", input.shape, ValueError, target=target)
    return _logit_entropy(input, target, 1.0 if weight is None else weight, 1.0 if pos_weight is None else pos_weight, reduction)


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """The mean (or sum, or each, or the mean over the batch by "batchmean") of target (log(target) - input), for log-probabilities `input`.

    The target holds probabilities, or their logarithms if `log_target`; where it is 0 the loss is 0. Raises ValueError for an unknown reduction.
    """
    if reduction == "mean":
        warnings.warn("kl_div: 'mean' divides by the number of elements; 'batchmean' divides by the batch, as the definition of the divergence does",
                      UserWarning, stacklevel=4)
    for x in (input, target):
        check_floating("kl_div", x, error=RuntimeError)
    if log_target:
        each = traced.exp(target) * (target - input)
    else:
        zero = target == 0
        each = traced.where(zero, 0.0, -traced.entropy_of_positive(traced.where(zero, 1.0, target))) - target * input
    if reduction == "batchmean" and input.ndim:
        return each.sum() / input.shape[0]
    return reduced(each, "mean" if reduction == "batchmean" else reduction)


kl_div = loss(kl_div, "batchmean")


@loss
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of exp(input) - target input, or without `log_input` of input - target log(input + eps).

    `full` adds Stirling's approximation of log(target!) for targets above 1. Raises ValueError for an unknown reduction.
    """
    each = traced.exp(input) - target * input if log_input else input - target * traced.log(input + eps)
    if full:
        large = target > 1
        inside = traced.where(large, target, 2.0)
        stirling = inside * traced.log(inside) - inside + 0.5 * traced.log(2 * math.pi * inside)
        each = each + traced.where(large, stirling, 0.0)
    return reduced(each, reduction)


@loss
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of (log(var) + (input - target)² / var) / 2 for variances `var`, which are at least `eps`.

    The variances have the shape of the input, with one dimension of size 1, or without the last, where they are shared. `full` adds log(2π) / 2.
    The limit `eps` has no part in the derivative. Raises ValueError for negative variances, a wrong shape and an unknown reduction.
    """
    input, target = floating(input), floating(target)
    spread: Any = var * traced.ones_like(input) if isinstance(var, float) else floating(var)
    if bool((every(spread) < 0).any()):
        raise ValueError("gaussian_nll_loss: the variances must not be negative")
    if spread.shape != input.shape:
        if input.shape[:-1] == spread.shape:
            spread = spread.unsqueeze(-1)
        elif input.ndim != spread.ndim or sum(b for a, b in zip(input.shape, spread.shape) if a != b) != 1:
            raise ValueError(f"gaussian_nll_loss: variances of shape {list(spread.shape)} do not fit an input of shape {list(input.shape)}")
    spread = traced.where(spread < eps, eps + (spread - spread.detach()), spread)
    each = 0.5 * (traced.log(spread) + traced.square(input - target) / spread)
    return reduced(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


# Of margins


@loss
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of the input where the target is 1, and of max(0, margin - input) where it is -1."""
    input, target = floating(input), floating(target)
    near, far = traced.where(target.ne(1), traced.relu(+margin - input), 0.0), traced.where(target.ne(-1), input, 0.0)
    return reduced(near + far, reduction)


@loss
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of max(0, -target (input1 - input2) + margin). Raises RuntimeError for different numbers of dimensions."""
    check_dims("margin_ranking_loss", input2, input1.ndim, word="input2")
    check_dims("margin_ranking_loss", target, input1.ndim, word="target")
    return reduced(traced.relu(+margin - floating(target) * difference(input1, input2)), reduction)


@loss
def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of log(1 + exp(-target input)), without overflow."""
    return reduced(_in_dtype_of(input, traced.softplus(-floating(input) * target)), reduction)


def _rows(name: str, input: Tensor) -> Tensor:
    """The scores of each member of the batch."""
    check_dims(name, input, 0, 1, 2)
    check_nonempty(name, input, 1)
    return input if input.ndim == 2 else input.reshape(1, -1)


@loss
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of Σ max(0, weight[y] (margin - x[y] + x[i]))ᵖ / C over the classes i other than the target y.

    Raises ValueError for p other than 1 and 2 and for weights of another size, RuntimeError for targets out of range or of another shape.
    """
    name = "multi_margin_loss"
    check_option(name, "p", p, (1, 2), ValueError)
    rows = _rows(name, input)
    if weight is not None:
        check_dims(name, weight, 1, word="weight", error=ValueError)
        check_shape(name, rows.shape[1:], weight=weight)
    check_dims(name, target, 0, 1, word="target")
    check_shape(name, rows.shape[:1], target=target.reshape(-1))
    check_indices(name, target, "target", ("int64",))
    at, classes = target.reshape(-1, 1), raw(target.value)
    if ((classes < 0) | (classes >= rows.shape[1])).any():
        raise RuntimeError(f"{name}: the targets must be classes from 0 to {rows.shape[1] - 1}, but they are {classes.tolist()}")
    terms = traced.relu(margin - traced.gather(rows, 1, at) + rows)
    terms = terms if p == 1 else traced.square(terms)
    terms = terms if weight is None else terms * weight[at]
    each = traced.where(at == wrap(np.arange(rows.shape[1])), 0.0, terms).sum(1) / rows.shape[1]
    return reduced(each if input.ndim == 2 or reduction != "none" else each.reshape(()), reduction)


@loss
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of Σ max(0, 1 - x[y] + x[i]) / C over the target classes y and all other classes i.

    The target has the shape of the input; its rows hold classes, up to the first -1. Raises RuntimeError for another shape or for a class out of
    range.
    """
    rows = _rows("multilabel_margin_loss", input)
    check_shape("multilabel_margin_loss", input.shape, target=target)
    labels = target.value.reshape(input.shape if input.ndim == 2 else (1, -1))
    if labels.size and (labels.min() < -1 or labels.max() >= rows.shape[1]):
        raise RuntimeError(f"multilabel_margin_loss: the targets must be classes below {rows.shape[1]}, or -1, but they are {labels.tolist()}")
    counted = np.logical_and.accumulate(labels >= 0, axis=1)
    at = np.where(counted, labels, 0)
    is_target = np.zeros(labels.shape, bool)
    np.logical_or.at(is_target, (np.arange(len(labels))[:, None], at), counted)
    margins = traced.relu(1 - traced.gather(rows, 1, wrap(at)).unsqueeze(2) + rows.unsqueeze(1))
    each = (margins * wrap((counted[:, :, None] & ~is_target[:, None, :]).astype(rows.value.dtype))).sum((1, 2)) / rows.shape[1]
    return reduced(each if input.ndim == 2 or reduction != "none" else each.reshape(()), reduction)


@loss
def multilabel_soft_margin_loss(input: Tensor, target: Tensor | float, weight: Tensor | None = None, size_average: bool | None = None,
                                reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of the mean over the classes of -weight (target log(s(input)) + (1 - target) log(s(-input))), s the sigmoid.

    The classes are the last dimension of the input. Raises IndexError for an input without dimensions, RuntimeError for a target with more.
    """
    input, target = floating(input), floating(target)
    if not input.ndim:
        raise IndexError("multilabel_soft_margin_loss: the input has no dimensions; its last dimension is that of the classes")
    if input.ndim < getattr(target, "ndim", 0):
        check_dims("multilabel_soft_margin_loss", target, input.ndim, word="target")
    terms = -(target * traced.logsigmoid(input) + (1 - target) * traced.logsigmoid(-input))
    return reduced((terms if weight is None else terms * weight).sum(-1) / input.shape[-1], reduction)


# Of distances


@loss
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
                          reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of 1 - cos(input1, input2) where the target is 1, and of max(0, cos(input1, input2) - margin) where it is -1.

    Raises RuntimeError for shapes that do not fit.
    """
    check_dims("cosine_embedding_loss", target, 0, 1, word="target")
    for word, x in (("input1", input1), ("input2", input2)):
        check_dims("cosine_embedding_loss", x, target.ndim + 1, word=word)
    dot = (input1 * input2).sum(-1)
    least = 1e-12  # torch's, added to the squares of the lengths
    cosine = dot / traced.sqrt((traced.square(input1).sum(-1) + least) * (traced.square(input2).sum(-1) + least))
    each = traced.where(target == 1, 1 - cosine, 0.0) + traced.where(target == -1, traced.relu(cosine - +margin), 0.0)
    return reduced(each, reduction)


@loss
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance `pairwise_distance`.

    With `swap` the distance of the positive from the negative counts where it is smaller than that of the anchor. Raises ValueError unless the
    margin is positive, RuntimeError for different numbers of dimensions.
    """
    return triplet_margin_with_distance_loss(anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
                                             distance_function=partial(pairwise_distance, p=p, eps=eps))


@loss
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Any, Any], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with another distance function."""
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss: the margin must be positive, but it is {margin}")
    for word, x in (("positive", positive), ("negative", negative)):
        check_dims("triplet_margin_loss", x, anchor.ndim, word=word)
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = traced.minimum(far, distance(positive, negative))
    return reduced(traced.relu(margin + near - far), reduction)
