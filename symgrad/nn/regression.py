"""Losses of regression, of margins and of embeddings, with torch's names, arguments and reductions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.nn.distances import pairwise_distance
from symgrad.nn.reductions import checked_reduction, difference, floating, reduced, reduction_of, warn_about_sizes
from symgrad.ops.rules import every

__all__ = ["cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "margin_ranking_loss", "multi_margin_loss",
           "multilabel_margin_loss", "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
           "triplet_margin_loss", "triplet_margin_with_distance_loss"]


def _number(margin: Any) -> Any:
    """A margin as a number, of a truth value, too. Raises TypeError for what has no sign, such as a list."""
    return +margin


def _in_dtype_of(input: Tensor, each: Tensor) -> Tensor:
    """The terms in the dtype of the input, as torch's kernels write them, unless that is one of integers."""
    return each.to(input.dtype) if each.dtype is not input.dtype and input.is_floating_point() else each


@taking_tensors
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """The mean (or sum, or each) of error² / (2 beta) where |error| is below beta, else of |error| - beta / 2.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction, RuntimeError for a negative `beta`.

    >>> import symgrad
    >>> smooth_l1_loss(symgrad.tensor([0.5, 3.0]), symgrad.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    warn_about_sizes("smooth_l1_loss", input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    error = difference(input, target)
    return reduced(traced.abs(error) if beta == 0 else traced.huber_of_real(error, beta) / beta, reduction)


@taking_tensors
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or each) of error² / 2 where |error| is below delta, else of delta (|error| - delta / 2), times the weights.

    Sizes that differ broadcast, with a warning. Raises ValueError for an unknown reduction and weights of another size, RuntimeError unless `delta`
    is positive.
    """
    warn_about_sizes("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    each = _in_dtype_of(input, traced.huber_of_real(difference(input, target), delta))
    if weight is not None and weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return reduced(each if weight is None else each * weight, checked_reduction(reduction))


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """The mean (or sum, or each, or the mean over the batch by "batchmean") of target (log(target) - input), for log-probabilities `input`.

    The target holds probabilities, or their logarithms if `log_target`; where it is 0 the loss is 0. Raises ValueError for an unknown reduction.
    """
    expect_tensors("kl_div", input=input, target=target)
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch "
                      "size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
                      "release.", UserWarning, stacklevel=2)
    for x in (input, target):
        if not x.is_floating_point():
            raise RuntimeError(f"kl_div: {'Complex' if x.is_complex() else 'Integral'} inputs not supported, but the dtypes are {input.dtype} and "
                               f"{target.dtype}; convert them with .to()")
    if log_target:
        each = traced.exp(target) * (target - input)
    else:
        zero = target == 0
        each = traced.where(zero, 0.0, -traced.entropy_of_positive(traced.where(zero, 1.0, target))) - target * input
    if reduction == "batchmean" and input.ndim:
        return each.sum() / input.shape[0]
    return reduced(each, checked_reduction("mean" if reduction == "batchmean" else reduction))


@taking_tensors
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of exp(input) - target input, or without `log_input` of input - target log(input + eps).

    `full` adds Stirling's approximation of log(target!) for targets above 1. Raises ValueError for an unknown reduction.
    """
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    each = traced.exp(input) - target * input if log_input else input - target * traced.log(input + eps)
    if full:
        large = target > 1
        inside = traced.where(large, target, 2.0)
        stirling = inside * traced.log(inside) - inside + 0.5 * traced.log(2 * math.pi * inside)
        each = each + traced.where(large, stirling, 0.0)
    return reduced(each, reduction)


@taking_tensors
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of (log(var) + (input - target)² / var) / 2 for variances `var`, which are at least `eps`.

    The variances have the shape of the input, with one dimension of size 1, or without the last, where they are shared. `full` adds log(2π) / 2.
    The limit `eps` has no part in the derivative. Raises ValueError for negative variances, a wrong shape and an unknown reduction.
    """
    expect_tensors("gaussian_nll_loss", input=input, target=target, **({} if isinstance(var, float) else {"var": var}))
    input, target = floating(input), floating(target)
    spread: Any = var * traced.ones_like(input) if isinstance(var, float) else floating(var)
    if bool((every(spread) < 0).any()):
        raise ValueError("var has negative entry/entries")
    if spread.shape != input.shape:
        if input.shape[:-1] == spread.shape:
            spread = spread.unsqueeze(-1)
        elif input.ndim != spread.ndim or sum(b for a, b in zip(input.shape, spread.shape) if a != b) != 1:
            raise ValueError("var is of incorrect size")
    checked_reduction(reduction)
    spread = traced.where(spread < eps, eps + (spread - spread.detach()), spread)
    each = 0.5 * (traced.log(spread) + traced.square(input - target) / spread)
    return reduced(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


@taking_tensors
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of the input where the target is 1, and of max(0, margin - input) where it is -1."""
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    if not isinstance(target, Tensor):
        raise TypeError(f"hinge_embedding_loss(): argument 'target' (position 2) must be Tensor, not {type(target).__name__}")
    input, target = floating(input), floating(target)
    near, far = traced.where(target != 1, traced.relu(_number(margin) - input), 0.0), traced.where(target != -1, input, 0.0)
    return reduced(near + far, reduction)


@taking_tensors
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of max(0, -target (input1 - input2) + margin). Raises RuntimeError for different numbers of dimensions."""
    expect_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.shape}, "
                           f"input2: {input2.shape}, target: {target.shape} ")
    return reduced(traced.relu(_number(margin) - floating(target) * difference(input1, input2)), reduction)


@taking_tensors
def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of log(1 + exp(-target input)), without overflow."""
    expect_tensors("soft_margin_loss", input=input)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    return reduced(_in_dtype_of(input, traced.softplus(-floating(input) * target)), reduction)


def _rows(input: Tensor, name: str) -> Tensor:
    """The scores of each member of the batch."""
    if input.ndim not in (0, 1, 2) or not all(input.shape[-1:]):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}; {name} takes (N, C) "
                           f"or (C,)")
    return input if input.ndim == 2 else input.reshape(1, -1)


@taking_tensors
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of Σ max(0, weight[y] (margin - x[y] + x[i]))ᵖ / C over the classes i other than the target y.

    Raises ValueError for p other than 1 and 2 and for weights of another size, RuntimeError for targets out of range or of another shape.
    """
    expect_tensors("multi_margin_loss", input=input, target=target)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    rows = _rows(input, "multi_margin_loss")
    if target.numel() != rows.shape[0] or target.ndim > 1:
        raise RuntimeError(f"multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
                           f"target size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape {list(input.shape)}")
    if weight is not None and weight.shape[0] != rows.shape[1]:
        raise RuntimeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_type}; convert the target with .long()")
    at, classes = target.reshape(-1, 1), raw(target.value)
    if ((classes < 0) | (classes >= rows.shape[1])).any():
        raise RuntimeError("target out of range")
    terms = traced.relu(margin - traced.gather(rows, 1, at) + rows)
    terms = terms if p == 1 else traced.square(terms)
    terms = terms if weight is None else terms * weight[at]
    each = traced.where(at == wrap(np.arange(rows.shape[1])), 0.0, terms).sum(1) / rows.shape[1]
    return reduced(each if input.ndim == 2 or reduction != "none" else each.reshape(()), reduction)


@taking_tensors
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of Σ max(0, 1 - x[y] + x[i]) / C over the target classes y and all other classes i.

    The target has the shape of the input; its rows hold classes, up to the first -1. Raises RuntimeError for another shape or for a class out of
    range.
    """
    expect_tensors("multilabel_margin_loss", input=input, target=target)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    rows = _rows(input, "multilabel_margin_loss")
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    labels = target.value.reshape(input.shape if input.ndim == 2 else (1, -1))
    if labels.size and (labels.min() < -1 or labels.max() >= rows.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    counted = np.logical_and.accumulate(labels >= 0, axis=1)
    at = np.where(counted, labels, 0)
    is_target = np.zeros(labels.shape, bool)
    np.logical_or.at(is_target, (np.arange(len(labels))[:, None], at), counted)
    margins = traced.relu(1 - traced.gather(rows, 1, wrap(at)).unsqueeze(2) + rows.unsqueeze(1))
    each = (margins * wrap((counted[:, :, None] & ~is_target[:, None, :]).astype(rows.value.dtype))).sum((1, 2)) / rows.shape[1]
    return reduced(each if input.ndim == 2 or reduction != "none" else each.reshape(()), reduction)


@taking_tensors
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of the mean over the classes of -weight (target log(s(input)) + (1 - target) log(s(-input))), s the sigmoid.

    The classes are the last dimension of the input. Raises IndexError for an input without dimensions, RuntimeError for a target with more.
    """
    expect_tensors("multilabel_soft_margin_loss", input=input)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    input, target = floating(input), floating(target)
    if not input.ndim:
        raise IndexError("multilabel_soft_margin_loss: the input has no dimensions; its last dimension is that of the classes")
    if input.ndim < getattr(target, "ndim", 0):
        raise RuntimeError(f"multilabel_soft_margin_loss: a target of shape {list(target.shape)} has more dimensions than the input of shape "
                           f"{list(input.shape)}; expand the input")
    loss = -(target * traced.logsigmoid(input) + (1 - target) * traced.logsigmoid(-input))
    return reduced((loss if weight is None else loss * weight).sum(-1) / input.shape[-1], reduction)


@taking_tensors
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
                          reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of 1 - cos(input1, input2) where the target is 1, and of max(0, cos(input1, input2) - margin) where it is -1.

    Raises RuntimeError for shapes that do not fit.
    """
    expect_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    if target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: the target has shape {list(target.shape)}")
    if target.ndim + 1 != input1.ndim or input1.ndim != input2.ndim:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")
    dot = (input1 * input2).sum(-1)
    least = 1e-12  # torch's, added to the squares of the lengths
    cosine = dot / traced.sqrt((traced.square(input1).sum(-1) + least) * (traced.square(input2).sum(-1) + least))
    each = traced.where(target == 1, 1 - cosine, 0.0) + traced.where(target == -1, traced.relu(cosine - _number(margin)), 0.0)
    return reduced(each, reduction)


@taking_tensors
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or each) of max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance `pairwise_distance`.

    With `swap` the distance of the positive from the negative counts where it is smaller than that of the anchor. Raises ValueError unless the
    margin is positive, RuntimeError for different numbers of dimensions.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return triplet_margin_with_distance_loss(anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
                                             distance_function=lambda a, b: pairwise_distance(a, b, p, eps))


@taking_tensors
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Any, Any], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with another distance function."""
    expect_tensors("triplet_margin_with_distance_loss", anchor=anchor, positive=positive, negative=negative)
    checked_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = traced.minimum(far, distance(positive, negative))
    return reduced(traced.relu(margin + near - far), reduction)
