"""Products with weights: embeddings, bilinear forms and attention, with torch's names."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from symgrad.autograd.modes import no_grad
from symgrad.carriers.batched import raw
from symgrad.dtypes.dtype import SPOKEN
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.layouts.indices import first_outside
from symgrad.methods.segments import segment_reduce
from symgrad.nn.dropout import dropout
from symgrad.nn.likelihood import cross_entropy
from symgrad.ops.rules import constant

__all__ = ["bilinear", "embedding", "embedding_bag", "embedding_renorm_", "linear_cross_entropy", "scaled_dot_product_attention"]


@taking_tensors
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Σ input1ᵢ weightₒᵢⱼ input2ⱼ + biasₒ over the last axes: (..., I) and (..., J) with a weight (O, I, J) give (..., O).

    Raises RuntimeError for shapes that do not fit.
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for i, (m, n) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}")
    for i, x in ((1, input1), (2, input2)):
        if x.size(-1) != weight.size(i):
            raise RuntimeError(f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[i]}")
    if bias is not None and bias.size(0) != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}")
    out = traced.einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias


def _check_indices(name: str, indices: Any, count: int, place: int = 1) -> Any:
    """The indices as an array. Raises RuntimeError for other dtypes, IndexError for one out of range."""
    at = indices.value
    if at.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"Expected tensor for argument #{place} 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"{indices.type()} instead (while checking arguments for {name})")
    plain = raw(at)
    if plain.size and (plain.min() < 0 or plain.max() >= count):
        raise IndexError("index out of range in self")
    return at


@taking_tensors
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of the weight at the indices of the input: indices of any shape and a weight (V, D) give (..., D).

    The row `padding_idx` gets no gradient. Rows used that are longer than `max_norm` are first shortened in place. `scale_grad_by_freq` divides
    the gradient of a row by the number of its uses. Gradients are dense also where `sparse` is given. Raises RuntimeError for indices of another
    dtype, IndexError for an index out of range.

    >>> import symgrad
    >>> embedding(symgrad.tensor([1, 0, 1]), symgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    if padding_idx is not None:
        if not hasattr(padding_idx, "__index__"):
            raise TypeError(f"padding_idx must be int, not {padding_idx!r}")
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.shape[0]
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    at = _check_indices("embedding", input, weight.shape[0])
    each = traced.reshape(input, (-1,))
    rows = traced.index_select(weight, 0, each)
    if scale_grad_by_freq:
        at = np.ravel(at)
        counts = np.bincount(at, minlength=weight.shape[0])
        share = traced.unsqueeze(wrap((1 / np.maximum(counts, 1))[at].astype(weight._value.dtype)), -1)
        rows = rows.detach() * (1 - share) + rows * share
    if padding_idx is not None:
        rows = traced.where(traced.unsqueeze(each == padding_idx, -1), rows.detach(), rows)
    return traced.reshape(rows, (*input.shape, weight.shape[1]))


@taking_tensors
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten the rows at the indices to `max_norm` where they are longer, in place; returns the input."""
    max_norm, norm_type = constant("embedding", "max_norm", max_norm), constant("embedding", "norm_type", norm_type)
    at = np.unique(_check_indices("embedding_renorm_", indices, input.shape[0], 2))
    with no_grad():
        rows = traced.index_select(input, 0, wrap(at))
        size = traced.norm(rows, norm_type, 1, True)
        short = traced.where(size > max_norm, rows * (max_norm / (size + 1e-7)), rows)
        input.index_copy_(0, wrap(at.astype(np.int64)), short)
    return input


@taking_tensors
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """The mean, the sum or the largest elements of the rows of the weight in each bag; an empty bag gives 0.

    The bags are the rows of a matrix of indices, or parts of a vector that begin at the `offsets`, the last of which is the end with
    `include_last_offset`. `per_sample_weights` multiply the rows of sums, and `padding_idx` does not count. Raises ValueError for other shapes and
    modes, and else as `embedding`.

    >>> import symgrad
    >>> weight = symgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> symgrad.nn.functional.embedding_bag(symgrad.tensor([0, 1, 1]), weight, symgrad.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if mode not in ("mean", "sum", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None:
        if per_sample_weights.shape != input.shape:
            raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
                             f"as the input ({input.shape})")
        if mode != "sum":
            raise NotImplementedError(f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
                                      f"mode='{mode}'); multiply the rows of embedding.")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, "
                             f"found offsets of type {type(offsets)} and an input of shape {list(input.shape)}")
        ends = np.arange(input.shape[0] + 1) * input.shape[1]
    elif input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        if offsets.dtype.name not in ("int32", "int64"):
            _check_indices("embedding_bag", offsets, 0)
        given = offsets._value.tolist()
        if given and given[0] != 0:
            raise RuntimeError(f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
                               f"{given[0]}")
        if given and given[-1] > input.shape[0]:
            raise RuntimeError(f"offsets[-1] can not be greater than input's length {input.shape[0]} but got offsets[-1] of {given[-1]}")
        if any(a > b for a, b in itertools.pairwise(given)):
            raise RuntimeError(f"embedding_bag: offsets must not decrease, but they are {given}")
        ends = np.array([*given[:len(given) - include_last_offset], input.shape[0]])
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(f"Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
                           f"{weight.type()} does not equal {per_sample_weights.type()} (while checking arguments for embedding_bag)")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, {-weight.shape[0]} through {weight.shape[0] - 1}, but got "
                           f"{padding_idx}")
    if input.dtype.name not in ("int32", "int64"):
        _check_indices("embedding_bag", input, 0)
    wrong = first_outside(input._value, 0, weight.shape[0])
    if wrong is not None:
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}")
    places, counted = input.reshape(-1), np.ones(input._value.size, bool)
    if padding_idx is not None:
        counted = places._value != padding_idx % weight.shape[0]
    kept = wrap(np.flatnonzero(counted))
    if max_norm is not None:
        embedding_renorm_(weight.detach(), places, max_norm, norm_type)
    rows: Any = embedding(traced.index_select(places, 0, kept), weight, scale_grad_by_freq=scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * traced.unsqueeze(traced.index_select(per_sample_weights.reshape(-1), 0, kept), -1)
    sizes = np.diff(np.concatenate([[0], np.cumsum(counted)])[ends])
    out = segment_reduce(rows, mode, lengths=wrap(sizes))
    return traced.where(wrap(sizes[:, None] > 0), out, 0.0)


@taking_tensors
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """`cross_entropy` of the logits input @ linear_weightᵀ + linear_bias. The `options` of torch's kernel have no effect."""
    if linear_weight.ndim > 2 and input.ndim != 2:
        raise RuntimeError(f"linear_cross_entropy: weights of shape {list(linear_weight.shape)} need a batch (N, {linear_weight.shape[-1]}) as "
                           f"input, but got shape {list(input.shape)}")
    rows = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = traced.matmul(input, rows.t()).reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(logits if linear_bias is None else logits + linear_bias, target, weight=weight, reduction=reduction,
                         ignore_index=-100 if ignore_index is None else ignore_index, label_smoothing=label_smoothing)


@taking_tensors
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(scale query keyᵀ + mask) value: (..., L, E), (..., S, E) and (..., S, V) give (..., L, V); the scale is 1/√E by default.

    A boolean mask is True where attention is paid, others are added; `is_causal` masks later positions. A query without any key gets 0.
    `dropout_p` always applies; `enable_gqa` repeats the heads of key and value. Raises RuntimeError for a mask beside `is_causal`, and for one of a
    dtype that is neither bool nor float32 nor that of the query.

    >>> import symgrad
    >>> x = symgrad.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if attn_mask is not None and is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError(f"scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got query.dim(): "
                           f"{query.ndim}, key.dim(): {key.ndim} and value.dim(): {value.ndim} instead.")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {SPOKEN[query.dtype.name]} "
                           f"key.dtype: {SPOKEN[key.dtype.name]} and value.dtype: {SPOKEN[value.dtype.name]} instead.")
    if attn_mask is not None and attn_mask.dtype.name not in ("bool", "float32", query.dtype.name):
        raise RuntimeError(f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                           f"{SPOKEN[attn_mask.dtype.name]} and  query.dtype: {SPOKEN[query.dtype.name]} instead.")
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3], query.shape[-3] // value.shape[-3]
        key, value = (traced.repeat_interleave(x, n, -3) for x, n in zip((key, value), times))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = traced.matmul(query * factor, traced.transpose(key, -2, -1))
    if is_causal:
        attn_mask = wrap(np.tri(query.shape[-2], key.shape[-2], dtype=bool))
    if attn_mask is None:
        weights = traced.softmax(scores, -1)
    else:
        boolean = attn_mask.dtype.name == "bool"
        scores = traced.where(attn_mask, scores, -math.inf) if boolean else scores + attn_mask.to(scores.dtype)
        paid = traced.amax(scores.detach(), -1, True) > -math.inf
        weights = traced.where(paid, traced.softmax(traced.where(paid, scores, 0.0), -1), 0.0)
    return traced.matmul(dropout(weights, dropout_p), value)
