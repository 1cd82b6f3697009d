"""The losses of classifiers: the negative log likelihood, the cross entropy of logits, and of sequences of labels without their times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.carriers.batched import raw
from symgrad.carriers.duck import DuckArray
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.nn.validation import check_floating, check_indices, check_shape, loss, reduced
from symgrad.ops.rules import in_float32

__all__ = ["cross_entropy", "ctc_loss", "nll_loss"]

_nll = {(name, weighted): core(REGISTRY["weighted_" * weighted + name]) for name in ("nll_loss", "nll_loss2d") for weighted in (False, True)}


@loss
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
    _check(input, target, weight)
    if _is_traced(target, weight):
        return _traced_nll_loss(input, target, weight, ignore_index, reduction)
    index, at, chosen = _target_indices(target.value.reshape(target.shape if input.ndim > 1 else ()), input.shape, ignore_index)
    op = _nll["nll_loss" if input.ndim < 3 else "nll_loss2d", weight is not None]
    given = (input,) if weight is None else (input, wrap(weight.value[chosen]))
    if reduction == "none" and input.ndim > 1:
        return op(*given, index, None, (at, target.shape))
    total = len(chosen) if weight is None else _total(weight.value[chosen])
    return op(*given, index, float(total) if reduction == "mean" else 1.0, None)


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
    _check_range(raw(at.value), input.shape[axis])
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


def _check_range(classes: Any, count: int) -> None:
    outside = (classes < 0) | (classes >= count)
    if outside.any():
        raise IndexError(f"nll_loss: the targets must be classes from 0 to {count - 1}, but one is {classes[outside][0]}")


def _target_indices(classes: Any, shape: tuple[int, ...], ignore_index: int) -> tuple[tuple, tuple, Any]:
    """The indices of the target classes in the input, their indices in the target, and the classes."""
    classes, count = classes.astype(np.int64), shape[len(shape) > 1]  # copied, so that a later write to the target changes no gradient
    if classes.ndim == len(shape) - 1 == 1 and classes.size and not 0 <= ignore_index < count and classes.view(np.uint64).max() < count:
        at: tuple = (np.arange(len(classes)),)  # no class is ignored, and none is out of range
        return (*at, classes), at, classes
    counted = classes != ignore_index
    chosen = np.asarray(classes[counted])
    _check_range(chosen, count)
    at = np.nonzero(counted) if len(shape) > 1 else ()
    return (*at[:1], chosen, *at[1:]), at, chosen


def _check(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise if the shapes and dtypes of a classifier's output and of the targets do not fit."""
    x, t = input.value, target.value
    if weight is None and x.ndim == 2 and t.shape == x.shape[:1] and t.dtype == np.int64:
        return
    rank, wanted = x.ndim, (*x.shape[:1], *x.shape[2:]) if x.ndim > 1 else ()
    if not rank or rank > 1 and t.shape[:1] != x.shape[:1] or rank == 1 and t.ndim == 1 and t.shape != (1,):
        raise ValueError(f"nll_loss: a target of shape {list(t.shape)} does not fit an input of shape {list(x.shape)}")
    if t.shape != wanted and (rank, t.shape) != (1, (1,)):
        check_shape("nll_loss", wanted, target=target)
    check_indices("nll_loss", target, "target", ("int64", "uint8"))
    check_shape("nll_loss", x.shape[_class_axis(input):][:1], weight=weight)


def _class_axis(input: Tensor) -> int:
    return 0 if input.ndim == 1 else 1


@loss
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
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"cross_entropy: label_smoothing must lie between 0 and 1, but it is {label_smoothing}")
    axis = _class_axis(input)
    if input.shape == target.shape:
        check_floating("cross_entropy", target, error=RuntimeError)
        if ignore_index >= 0:
            raise RuntimeError(f"cross_entropy: ignore_index {ignore_index} has no meaning for probabilities; give classes as the target")
        check_shape("cross_entropy", input.shape[axis:][:1], weight=weight)
        logs = traced.log_softmax(input, axis)
        return _of_class_probabilities(logs, target, _along_classes(weight, logs), axis, reduction, label_smoothing)
    logs = traced.log_softmax(input, axis)
    out = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return out if not label_smoothing else _smoothed(out, logs, target, weight, ignore_index, axis, reduction, label_smoothing)


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
def _smoothed(plain: Tensor, logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, axis: int, reduction: str,
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
    return (1 - smoothing) * plain + uniform * (smoothing / logs.shape[axis])


LOG_ZERO = -1e30  # as a logarithm of 0: finite, so that derivatives of every order are, and lost by rounding beside all others


def _lengths(word: str, given: Any, count: int, most: float = math.inf) -> np.ndarray:
    """Lengths as an array. Raises RuntimeError for another number of them, for values out of range, and for numbers that are no integers."""
    array = (given._value if isinstance(given, Tensor) else np.array(given, np.int64 if given == () else None)).reshape(-1)
    if array.dtype.kind not in "iu" or len(array) != count or not ((array >= 0) & (array <= most)).all():
        raise RuntimeError(f"ctc_loss: {word} must be {count} integers from 0 to {most}, but they are {array.tolist()}")
    return array.astype(np.int64)


def _rows_of_labels(targets: Any, lengths: np.ndarray, blank: int, classes: int) -> np.ndarray:
    """The labels of each sequence in a row, with blanks after them, from a matrix or from all of them one after the other."""
    given, (count, longest) = targets._value, (len(lengths), int(max(lengths, default=0)))
    if given.ndim == 2 and (len(given) != count or given.shape[1] < longest) or given.ndim == 1 and len(given) != lengths.sum():
        raise RuntimeError(f"ctc_loss: targets of shape {list(given.shape)} do not have the target_lengths {lengths.tolist()}")
    used = np.arange(longest) < lengths[:, None]
    rows = np.full((count, longest), blank)
    rows[used] = given[:, :longest][used] if given.ndim == 2 else given
    if ((rows < 0) | (rows >= classes)).any():
        raise RuntimeError(f"ctc_loss: targets must be labels from 0 to {classes - 1}, but they are {given.tolist()}")
    return rows


@loss
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """-log of the sum over all alignments of the product of their probabilities: an alignment repeats labels, with blanks between them.

    log_probs (T, N, C) are the logarithms of the probabilities of C labels, targets (N, S) or all labels one after the other; N may be missing.
    The mean is over the batch, of losses divided by the lengths of their targets. A target without an alignment has an infinite loss, or 0 with
    `zero_infinity`, and the gradient 0. Derivatives are those by log_probs, of every order, by the recursion of Graves et al. 2006.

    Raises RuntimeError for sizes, lengths and labels that do not fit, ValueError for an unknown reduction.

    >>> import symgrad
    >>> half = symgrad.full((2, 1, 2), -math.log(2.0))
    >>> symgrad.exp(-ctc_loss(half, symgrad.tensor([[1]]), (2,), (1,)))
    tensor(0.7500)
    """
    check_dims("ctc_loss", log_probs, 2, 3, word="log_probs")
    alone = log_probs.ndim == 2
    logs = traced.unsqueeze(log_probs, 1) if alone else log_probs
    steps, count, classes = logs.shape
    if not log_probs.numel() or not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank={blank} must be a label of log_probs, which must not be empty; their shape is {list(log_probs.shape)}")
    check_option("ctc_loss", "the dtype of log_probs", log_probs.dtype.name, ("float32", "float64"), NotImplementedError)
    sizes, lengths = _lengths("input_lengths", input_lengths, count, steps), _lengths("target_lengths", target_lengths, count)
    labels = _rows_of_labels(targets.reshape(-1) if alone or targets.ndim == 0 else targets, lengths, blank, classes)
    states = np.full((count, 2 * labels.shape[1] + 1), blank)  # a blank before, between and after the labels
    states[:, 1::2] = labels
    jumps = np.zeros(states.shape, bool)  # past a blank, to another label
    jumps[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    at = np.broadcast_to(states, (steps, *states.shape))
    each = traced.gather(traced.clamp(logs, min=LOG_ZERO), 2, wrap(np.ascontiguousarray(at)))
    skips = np.where(jumps, 0.0, LOG_ZERO).astype(log_probs._value.dtype)
    ends = traced.log_path_sums(each, wrap(skips), LOG_ZERO)[np.maximum(sizes, 1) - 1, np.arange(count)]  # after the last step of each sequence
    last, label = (traced.gather(ends, 1, wrap(np.maximum(2 * lengths - i, 0)[:, None])) for i in (0, 1))
    total = traced.where(wrap(lengths[:, None] > 0), traced.logaddexp(last, label), last)
    total = traced.where(wrap(sizes[:, None] > 0), total, wrap(np.where(lengths > 0, LOG_ZERO, 0.0)[:, None].astype(skips.dtype)))
    losses = -traced.squeeze(total, 1)
    losses = traced.where(losses < -LOG_ZERO / 10, losses, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        losses = losses / wrap(np.maximum(lengths, 1).astype(log_probs._value.dtype))
    losses = traced.squeeze(losses, 0) if alone and reduction == "none" else losses
    return reduced(losses, reduction)
