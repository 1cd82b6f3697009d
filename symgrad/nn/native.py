"""Functions of `nn` as torch has them in its top module.

Losses take their reduction as a number, by default 0 for none, as calls of torch do; parameters stand in another order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.nn import functional
from symgrad.nn.activations import feature_dropout
from symgrad.nn.normalization import native_batch_norm
from symgrad.nn.validation import named, reduced

NONE = 0
WORDS = {NONE: "none", 1: "mean", 2: "sum"}


def _word(reduction: Any) -> str:
    """The reduction of a number. Raises ValueError for another value, RuntimeError for a word."""
    if isinstance(reduction, str):
        raise TypeError(f"reduction: it is an integer, 0 for none, 1 for the mean and 2 for the sum; symgrad.nn.functional takes {reduction!r}")
    reduction = reduction.__index__() if hasattr(reduction, "__index__") else reduction  # of a tensor with one integer
    if reduction not in WORDS:
        raise ValueError(f"reduction: it is 0 for none, 1 for the mean and 2 for the sum, not {reduction!r}")
    return WORDS[reduction]


def _reordered(name: str, words: str, reduction: int = NONE, required: bool = False) -> Callable[..., Tensor]:
    """A function of `nn.functional` with these parameters in their order: a reduction is a number, and others that it does not have are ignored."""
    function = getattr(functional, name)
    known, kind = inspect.signature(function).parameters, inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = [known.get(word, inspect.Parameter(word, kind, default=True, annotation="bool")) for word in words.split()]
    given = [p.replace(default=reduction, annotation="int") if p.name == "reduction" else p for p in given]
    signature = inspect.Signature([p.replace(default=p.empty) for p in given] if required else given, return_annotation="Tensor")

    def reordered(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(**{word: _word(x) if word == "reduction" else x for word, x in bound.arguments.items() if word in known})

    setattr(reordered, "__signature__", signature)  # noqa: B010  functions have no such attribute for mypy
    text = "; the reduction is 0 for none, 1 for the mean and 2 for the sum" * ("reduction" in known)
    return named(reordered, name, f"`nn.functional.{name}`{text}.")


binary_cross_entropy_with_logits = _reordered("binary_cross_entropy_with_logits", "input target weight pos_weight reduction")
cosine_embedding_loss = _reordered("cosine_embedding_loss", "input1 input2 target margin reduction")
ctc_loss = _reordered("ctc_loss", "log_probs targets input_lengths target_lengths blank reduction zero_infinity", 1)
hinge_embedding_loss = _reordered("hinge_embedding_loss", "input target margin reduction")
margin_ranking_loss = _reordered("margin_ranking_loss", "input1 input2 target margin reduction")
poisson_nll_loss = _reordered("poisson_nll_loss", "input target log_input full eps reduction", required=True)
triplet_margin_loss = _reordered("triplet_margin_loss", "anchor positive negative margin p eps swap reduction")


def kl_div(input: Tensor, target: Tensor, reduction: int = NONE, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`; the reduction is 0 for none, 1 for the mean over all elements and 2 for the sum."""
    return reduced(functional.kl_div(input, target, reduction="none", log_target=log_target), _word(reduction))


@taking_tensors
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """`nn.functional.embedding`, with the weight first; `padding_idx` -1 is none."""
    return functional.embedding(indices, weight, None if padding_idx == -1 else padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


layer_norm = _reordered("layer_norm", "input normalized_shape weight bias eps cudnn_enable")
group_norm = _reordered("group_norm", "input num_groups weight bias eps cudnn_enabled")
instance_norm = _reordered("instance_norm", "input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled", required=True)


@taking_tensors
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,
               momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    """`nn.functional.batch_norm`, with the weight and the bias first."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Tensor:
    """`nn.functional.rrelu`, with slopes from a generator."""
    return functional.rrelu(input, lower, upper, training, generator=generator)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Tensor:
    """`rrelu`, written into the input itself."""
    return functional.rrelu(input, lower, upper, training, True, generator=generator)


def _with_switch(function: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    """A dropout in torch's order, where the probability and the switch have no defaults."""
    def dropped(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, inplace)

    name = function.__name__ + "_" * inplace
    dropped.__name__ = dropped.__qualname__ = name
    dropped.__doc__ = f"`nn.functional.{function.__name__}`{', written into the input itself' * inplace}; `train` switches it on."
    return dropped


dropout, dropout_ = (_with_switch(functional.dropout, inplace) for inplace in (False, True))
alpha_dropout, alpha_dropout_ = (_with_switch(functional.alpha_dropout, inplace) for inplace in (False, True))
feature_alpha_dropout, feature_alpha_dropout_ = (_with_switch(functional.feature_alpha_dropout, inplace) for inplace in (False, True))
feature_dropout_ = _with_switch(feature_dropout, True)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """`nn.functional.adaptive_max_pool1d` with the positions of the elements."""
    return functional.adaptive_max_pool1d_with_indices(input, output_size)
