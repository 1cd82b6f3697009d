"""Random zeros with torch's names and arguments: dropout of elements and of channels, and samples from categories."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from symgrad.arguments import check_dims
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import bernoulli
from symgrad.nn.validation import named

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax"]

ALPHA = 1.7580993408473766  # to which `selu` tends, negated


def check_probability(p: Any) -> None:
    """Raise TypeError for what is no number, and ValueError for one outside [0, 1]."""
    if not isinstance(p, (int, float)) and not hasattr(p, "item"):
        raise TypeError(f"dropout: p must be a float, not {type(p).__name__} {p!r}")
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout: p must be a probability between 0 and 1, but it is {p}")


def _dropped(input: Any, p: Any, training: bool, inplace: bool, features: bool = False, alpha: bool = False) -> Any:
    """The input times noise of mean 1; with `alpha` zeros become the limit of `selu`, and mean and variance are kept."""
    check_probability(p)
    if features and input.ndim < 2 and training and p:
        raise RuntimeError(f"feature_dropout: the input must have channels in its second dimension, but its shape is {list(input.shape)}")
    if not input.numel() or not training or p == 0:
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


def _define(rank: int, shapes: str) -> Callable[..., Tensor]:
    """`dropout` of whole channels of images in so many dimensions, of a batch or of one image."""
    name = f"dropout{rank}d"

    def channels(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if rank == 1:
            check_probability(p)
            check_dims(name, input, 2, 3)
        elif input.ndim not in (rank + 1, rank + 2) or (rank, input.ndim) == (2, 3):
            warnings.warn(f"{name}: an input of shape {list(input.shape)} is taken as a batch with channels in its second dimension. "
                          f"That is deprecated; use dropout or dropout1d", UserWarning, stacklevel=3)
        if input.ndim != rank + 1 or rank == 2:
            return _dropped(input, p, training, inplace, features=True)
        out = _dropped(traced.unsqueeze(input, 0), p, training, inplace, features=True)
        return input if inplace else out.squeeze(0)

    return named(channels, name, f"""`dropout` of whole channels of {shapes}.

    Raises ValueError for a probability outside [0, 1]; other numbers of dimensions are {"a RuntimeError" if rank == 1 else "deprecated"}.
    """)


dropout1d, dropout2d = _define(1, "(N, C, L), or of (C, L)"), _define(2, "(N, C, H, W)")
dropout3d = _define(3, "(N, C, D, H, W), or of (C, D, H, W)")


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


@taking_tensors
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + g) / tau) along `dim`, g from the Gumbel distribution: samples of categories that are differentiable by the logits.

    With `hard` the value has a 1 at the largest element and 0 elsewhere, and the derivative is that of the softmax (Jang et al. 2017).
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: eps is deprecated and has no effect", UserWarning, stacklevel=3)
    noise = -traced.log(traced.ones_like(logits.detach()).exponential_())
    soft = traced.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = traced.argmax(soft.detach(), dim, True)
    ones = traced.scatter(traced.zeros_like(soft.detach()), dim, index, 1.0)
    return ones - soft.detach() + soft
