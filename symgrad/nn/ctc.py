"""Connectionist temporal classification: the probability of a sequence of labels, summed over its alignments to the steps of an input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.nn.reductions import loss, reduced

__all__ = ["ctc_loss"]

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
