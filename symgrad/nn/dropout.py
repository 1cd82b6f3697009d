"""Random zeros with torch's names and arguments: dropout of elements and of channels, and samples from categories."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import bernoulli

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "feature_dropout", "gumbel_softmax",
           "native_dropout"]

ALPHA = 1.7580993408473766  # to which `selu` tends, negated


def _dropped(input: Any, p: Any, training: bool, inplace: bool, features: bool = False, alpha: bool = False) -> Any:
    """The input times noise of mean 1; with `alpha` zeros become the limit of `selu`, and mean and variance are kept."""
    expect_tensors(f"{'feature_' * features}{'alpha_' * alpha}dropout", input=input)
    if not isinstance(p, (int, float)) and not hasattr(p, "item"):
        raise TypeError(f"dropout(): argument 'p' (position 2) must be float, not {type(p).__name__}")
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if features and input.ndim < 2 and training and p:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2)) if features else tuple(input.shape)
    kept = bernoulli(traced.ones_like(input.detach(), shape), 1 - p)
    if not alpha:
        noise = kept / (1 - p)
        return input.mul_(noise) if inplace else input * noise
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (kept - 1) * (ALPHA * scale) + ALPHA * scale * p
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift


@taking_tensors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The input with elements that are zero with probability `p`, and the others divided by 1 - p; not in training the input itself.

    Raises ValueError for a probability outside [0, 1].

    >>> import symgrad
    >>> symgrad.nn.functional.dropout(symgrad.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    return _dropped(input, p, training, inplace)


@taking_tensors
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The input with random zeros, and the mask of the elements that are kept."""
    if train is False or not p:
        return traced.clone(input), traced.ones_like(input.detach()).bool()
    if p == 1:
        return input * 0.0, traced.zeros_like(input.detach()).bool()
    kept = bernoulli(traced.ones_like(input.detach()), 1 - p)
    return input * (kept / (1 - p)), kept.bool()


@taking_tensors
def feature_dropout(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels, which are the second dimension."""
    return _dropped(input, p, train, inplace, features=True)


def _channels(input: Any, p: float, training: bool, inplace: bool, alone: int) -> Any:
    """`dropout` of whole channels of a batch, or of one member, which has `alone` dimensions."""
    if input.ndim == alone:
        if inplace:
            _dropped(input.unsqueeze(0), p, training, True, features=True)
            return input
        return _dropped(traced.unsqueeze(input, 0), p, training, False, features=True).squeeze(0)
    return _dropped(input, p, training, inplace, features=True)


@taking_tensors
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (N, C, L), or of (C, L).

    Raises ValueError for a probability outside [0, 1], RuntimeError for another number of dimensions.
    """
    expect_tensors("dropout1d", input=input)
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to provide channel-"
                           f"wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
                           f"inputs).")
    return _channels(input, p, training, inplace, 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (N, C, H, W), or of each row of a matrix. Other numbers of dimensions give a warning."""
    expect_tensors("dropout2d", input=input)
    if input.ndim not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result in an error in a future "
                      f"release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists to provide "
                      f"channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 3D or "
                      f"4D inputs).", UserWarning, stacklevel=2)
    if input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the "
                      "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please "
                      "switch to using dropout1d instead.", UserWarning, stacklevel=2)
    return _dropped(input, p, training, inplace, features=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (N, C, D, H, W), or of (C, D, H, W). Other numbers of dimensions give a warning."""
    expect_tensors("dropout3d", input=input)
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result in an error in a future "
                      f"release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d exists to provide "
                      f"channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 4D or "
                      f"5D inputs).", UserWarning, stacklevel=2)
    return _channels(input, p, training, inplace, 4)


@taking_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that sets elements to the limit of `selu`, and keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Raises ValueError for a probability outside [0, 1].
    """
    return _dropped(input, p, training, inplace, alpha=True)


@taking_tensors
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, which are the second dimension."""
    return _dropped(input, p, training, inplace, features=True, alpha=True)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + g) / tau) along `dim`, g from the Gumbel distribution: samples of categories that are differentiable by the logits.

    With `hard` the value has a 1 at the largest element and 0 elsewhere, and the derivative is that of the softmax (Jang et al. 2017).
    """
    expect_tensors("gumbel_softmax", logits=logits)
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    noise = -traced.log(traced.ones_like(logits.detach()).exponential_())
    soft = traced.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = traced.argmax(soft.detach(), dim, True)
    ones = traced.scatter(traced.zeros_like(soft.detach()), dim, index, 1.0)
    return ones - soft.detach() + soft
