"""The losses of classifiers: the negative log likelihood, and the cross entropy of logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw
from symgrad.carriers.duck import DuckArray
from symgrad.engine.recording import core
from symgrad.engine.refusals import no_tensor, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.reductions import checked_reduction, of_one_size, reduction_of
from symgrad.ops.rules import in_float32

__all__ = ["cross_entropy", "nll_loss"]

_nll = {(name, weighted): core(REGISTRY["weighted_" * weighted + name]) for name in ("nll_loss", "nll_loss2d") for weighted in (False, True)}


@taking_tensors
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
             reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The negative log likelihood -Σ weight[target] input[target] / Σ weight[target] of log-probabilities `input`.

    The input has classes in its second axis, (N, C) or (N, C, d1, ...), or is a vector (C,); the target holds class indices, (N,) or
    (N, d1, ...). Targets equal to `ignore_index` do not count. The reduction may also be "sum" or "none".

    Raises IndexError for a target out of range, ValueError and RuntimeError for shapes and dtypes that do not fit.

    >>> import symgrad
    >>> nll_loss(symgrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), symgrad.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    try:
        _check(input, target, weight)
    except AttributeError as error:
        raise no_tensor("nll_loss", error, (("input", input), ("target", target), ("weight", weight))) from None
    if _is_traced(target, weight):
        return _traced_nll_loss(input, target, weight, ignore_index, reduction)
    index, at, chosen = _target_indices(target.value.reshape(target.shape if input.ndim > 1 else ()), input.shape, ignore_index)
    loss = _nll["nll_loss" if input.ndim < 3 else "nll_loss2d", weight is not None]
    given = (input,) if weight is None else (input, wrap(weight.value[chosen]))
    if reduction == "none" and input.ndim > 1:
        return loss(*given, index, None, (at, target.shape))
    total = len(chosen) if weight is None else _total(weight.value[chosen])
    return loss(*given, index, float(total) if reduction == "mean" else 1.0, None)


def _total(weights: Any) -> Any:
    """The sum of the weights, of which that of float16 may overflow, and bfloat16 has few digits."""
    return (weights.astype(np.float32) if weights.dtype.itemsize == 2 else weights).sum()


def _is_traced(target: Tensor, weight: Tensor | None) -> bool:
    """Whether the targets or the weights are batched or recorded, or the weights differentiated."""
    return isinstance(target.value, DuckArray) or weight is not None and (weight._node is not None or isinstance(weight.value, DuckArray))


def _traced_nll_loss(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """The loss by ops of the targets and the weights."""
    axis = _class_axis(input)
    target = target.reshape(1) if input.ndim == 1 else target.unsqueeze(axis)
    at, weights = _target_weights(target, weight, ignore_index)
    classes = raw(at.value)
    outside = (classes < 0) | (classes >= input.shape[axis])
    if outside.any():
        raise IndexError(f"Target {classes[outside][0]} is out of bounds.")
    each = -traced.gather(input, axis, at) * (weights if weight is not None else weights.to(input.dtype))
    if reduction == "none":
        return traced.squeeze(each, axis)
    return each.sum() if reduction == "sum" else _ratio_of_sums(each, weights)


@in_float32
def _ratio_of_sums(each: Tensor, weights: Tensor) -> Tensor:
    return each.sum() / weights.sum()


def _target_weights(target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The target classes, with a valid one for ignored targets, and the weight of each, which is 0 for ignored ones."""
    counts = traced.ne(target, ignore_index)
    at = traced.where(counts, target, traced.zeros_like(target))
    return at, counts if weight is None else traced.where(counts, weight[at], 0.0)


def _target_indices(classes: Any, shape: tuple[int, ...], ignore_index: int) -> tuple[tuple, tuple, Any]:
    """The indices of the target classes in the input, their indices in the target, and the classes."""
    classes, count = classes.astype(np.int64), shape[len(shape) > 1]  # copied, so that a later write to the target changes no gradient
    if classes.ndim == len(shape) - 1 == 1 and classes.size and not 0 <= ignore_index < count and classes.view(np.uint64).max() < count:
        at: tuple = (np.arange(len(classes)),)  # no class is ignored, and none is out of range
        return (*at, classes), at, classes
    counted = classes != ignore_index
    chosen = np.asarray(classes[counted])
    outside = chosen.view(np.uint64) >= count  # as an unsigned number, a negative one is large
    if outside.any():
        raise IndexError(f"Target {chosen[outside][0]} is out of bounds.")
    at = np.nonzero(counted) if len(shape) > 1 else ()
    return (*at[:1], chosen, *at[1:]), at, chosen


def _dtype_name(t: Tensor) -> str:
    """The name of a dtype in torch's errors, such as Long."""
    return t.type()[len("torch."):-len("Tensor")]


def _check(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise torch's errors if the shapes and dtypes of a classifier's output and of the targets do not fit."""
    x, t = input.value, target.value
    if weight is None and x.ndim == 2 and t.shape == x.shape[:1] and t.dtype == np.int64:
        return
    rank, sizes = x.ndim, list(t.shape)
    if not rank:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if rank > 1:
        if input.shape[0] != (sizes[0] if sizes else 0):
            raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({sizes[0] if sizes else 0}).")
    wanted = [*input.shape[:1], *input.shape[2:]]
    if rank < 3 and len(sizes) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if rank == 1 and sizes not in ([], [1]):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {sizes[0]}")
    if rank == 4 and len(sizes) != 3:
        raise RuntimeError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(sizes)}")
    if rank == 4 and sizes != wanted:
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {sizes}")
    if rank > 2 and sizes != wanted:
        raise RuntimeError(f"Expected target size {wanted}, got {sizes}")
    if target.value.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {_dtype_name(target)}")
    _check_weight(input, weight, "")


def _check_weight(input: Tensor, weight: Tensor | None, name: str) -> None:
    classes = input.shape[_class_axis(input)]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"{name}weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
                           f"{list(weight.shape)}")


def _class_axis(input: Tensor) -> int:
    return 0 if input.ndim == 1 else 1


@taking_tensors
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
                  reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """The mean (or sum, or each) of -Σ target log(softmax(input)) over the classes, which are in the second axis (or the only one).

    The target holds class indices, or, in the shape of the input, probabilities. `weight` has one number for
    each class; targets equal to `ignore_index` do not count; `label_smoothing` is the share of the uniform distribution in the target.

    Raises IndexError for a target out of range, ValueError and RuntimeError for shapes, dtypes and numbers that do not fit.

    >>> import symgrad
    >>> logits = symgrad.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> cross_entropy(logits, symgrad.tensor([0, 1]))
    tensor(0.1269)
    >>> cross_entropy(logits, symgrad.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.1269)
    """
    reduction = checked_reduction(reduction_of(size_average, reduce, reduction))
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    probabilities = of_one_size("cross_entropy", input, target)
    axis = _class_axis(input)
    if probabilities:
        if not target.is_floating_point():
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {_dtype_name(target)}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        _check_weight(input, weight, "cross_entropy: ")
    logs = traced.log_softmax(input, axis)
    if probabilities:
        return _of_class_probabilities(logs, target, _along_classes(weight, logs), axis, reduction, label_smoothing)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return loss if not label_smoothing else _smoothed(loss, logs, target, weight, ignore_index, axis, reduction, label_smoothing)


def _along_classes(weight: Tensor | None, logs: Tensor) -> Tensor | None:
    """One number for each class, along the class axis."""
    return weight if weight is None or logs.ndim == 1 else weight.reshape(-1, *[1] * (logs.ndim - 2))


@in_float32
def _of_class_probabilities(logs: Tensor, target: Tensor, weight: Tensor | None, axis: int, reduction: str, smoothing: float) -> Tensor:
    classes = logs.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    terms = logs * target if weight is None else logs * target * weight
    if reduction == "none":
        return -terms.sum(axis)
    total = -terms.sum()
    count = math.prod(size for i, size in enumerate(logs.shape) if i != axis % logs.ndim)
    return total if reduction == "sum" else total / (count or math.nan)


@in_float32
def _smoothed(loss: Tensor, logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, axis: int, reduction: str,
              smoothing: float) -> Tensor:
    """The loss with label smoothing: a share of it is the loss for the uniform distribution over the classes."""
    weights = _along_classes(weight, logs)
    uniform = -(logs if weights is None else logs * weights).sum(axis)
    ignored = target == ignore_index
    is_traced = _is_traced(target, weight)
    if is_traced or ignored.any():
        uniform = uniform.masked_fill(ignored.reshape(uniform.shape), 0.0)
    if reduction == "mean" and is_traced:
        uniform = uniform.sum() / _target_weights(target, weight, ignore_index)[1].sum()
    elif reduction == "mean":
        counted = target.value[~ignored.value]
        uniform = uniform.sum() / float(len(counted) if weight is None else _total(weight.value[counted]))
    elif reduction == "sum":
        uniform = uniform.sum()
    return (1 - smoothing) * loss + uniform * (smoothing / logs.shape[axis])
