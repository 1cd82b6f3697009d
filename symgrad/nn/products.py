"""Products with weights: linear maps, embeddings, bilinear forms and attention; and distances of vectors, with torch's names."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.autograd.modes import no_grad
from symgrad.carriers.batched import raw
from symgrad.dtypes.dtype import promote_types
from symgrad.engine.recording import core
from symgrad.engine.refusals import misfit, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import first_outside
from symgrad.methods.histograms import segment_reduce
from symgrad.methods.predicates import broadcast_tensors
from symgrad.nn.activations import dropout
from symgrad.nn.likelihood import cross_entropy
from symgrad.nn.validation import check_dtypes, check_floating, check_indices, check_shape
from symgrad.ops.norms import unit_vectors
from symgrad.ops.rules import constant

__all__ = ["bilinear", "cosine_similarity", "embedding", "embedding_bag", "linear", "linear_cross_entropy", "pairwise_distance", "pdist",
           "scaled_dot_product_attention"]

_mm, _addmm = core(REGISTRY["mm"]), core(REGISTRY["addmm"])


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias over the last axis: (..., in) with a weight (out, in) gives (..., out).

    Raises RuntimeError for shapes that do not fit together.

    >>> import symgrad
    >>> linear(symgrad.tensor([[1.0, 2.0]]), symgrad.tensor([[3.0, 4.0]]), symgrad.tensor([0.5]))
    tensor([[11.5000]])
    """
    try:
        if weight.ndim == 1 and input.ndim:
            return traced.matmul(input, weight) if bias is None else traced.addmm(bias, input, weight)
        if not input.ndim or not weight.ndim or input.shape[-1] != weight.shape[1]:
            raise RuntimeError(f"linear: a weight of shape {list(weight.shape)} does not fit an input of shape {list(input.shape)}")
        rows = input if input.ndim == 2 else input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        out = _mm(rows, weight.t()) if bias is None else _addmm(bias, rows, weight.t(), 1, 1)
        return out if input.ndim == 2 else out.view(*input.shape[:-1], weight.shape[0])
    except Exception:
        found = misfit(linear, (input, weight, bias), {})
        if found is None:
            raise
        raise found from None


@taking_tensors
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Σ input1ᵢ weightₒᵢⱼ input2ⱼ + biasₒ over the last axes: (..., I) and (..., J) with a weight (O, I, J) give (..., O).

    Raises RuntimeError for shapes that do not fit.
    """
    expected = (*input1.shape[:-1], weight.size(2))
    if not input1.ndim or input1.shape[-1] != weight.size(1) or tuple(input2.shape) != expected:
        raise RuntimeError(f"bilinear: a weight of shape {list(weight.shape)} does not fit inputs of shapes {list(input1.shape)} and "
                           f"{list(input2.shape)}")
    check_shape("bilinear", weight.shape[:1], bias=bias)
    out = traced.einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias


def _checked_rows(name: str, indices: Any, weight: Any, error: type[Exception] = IndexError) -> Any:
    """The indices of rows as an array. Raises RuntimeError for other dtypes and for a weight that is no matrix; an error for one out of range."""
    check_dims(name, weight, 2, word="weight")
    check_indices(name, indices)
    wrong = first_outside(raw(indices.value), 0, weight.shape[0])
    if wrong is not None:
        raise error(f"{name}: the index {wrong} is not one of {weight.shape[0]} rows")
    return indices.value


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
            raise TypeError(f"embedding: padding_idx must be an integer, not {type(padding_idx).__name__} {padding_idx!r}")
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError(f"embedding: padding_idx={padding_idx} is not one of {weight.shape[0]} rows")
        padding_idx %= weight.shape[0]
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    at = _checked_rows("embedding", input, weight)
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
    at = np.unique(_checked_rows("embedding_renorm_", indices, input))
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
    name = "embedding_bag"
    check_option(name, "mode", mode, ("mean", "sum", "max"), ValueError)
    check_dims(name, weight, 2, word="weight", error=ValueError)
    check_dims(name, input, 1, 2, error=ValueError)
    if per_sample_weights is not None:
        check_shape(name, input.shape, ValueError, per_sample_weights=per_sample_weights)
        check_option(name, "mode with per_sample_weights", mode, ("sum",), NotImplementedError)
        check_dtypes(name, weight, per_sample_weights=per_sample_weights)
    if (offsets is None) is (input.ndim == 1) or offsets is not None and offsets.ndim != 1:
        raise ValueError(f"{name}: offsets must be a vector if the input is one, and None if it is a matrix, but they are {offsets!r}")
    if offsets is None:
        ends = np.arange(input.shape[0] + 1) * input.shape[1]
    else:
        check_indices(name, offsets, "offsets")
        given = offsets._value.tolist()
        if given and given[0] != 0 or any(a > b for a, b in itertools.pairwise([*given, input.shape[0]])):
            raise RuntimeError(f"{name}: offsets must begin with 0 and not decrease, up to {input.shape[0]}, but they are {given}")
        ends = np.array([*given[:len(given) - include_last_offset], input.shape[0]])
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(f"{name}: padding_idx={padding_idx} is not one of {weight.shape[0]} rows")
    _checked_rows(name, input, weight, RuntimeError)
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
    if linear_weight.ndim > 2:
        check_dims("linear_cross_entropy", input, 2)
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
    name = "scaled_dot_product_attention"
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"{name}: dropout_p must be a probability between 0 and 1, but it is {dropout_p}")
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name}: give either attn_mask or is_causal, not both")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(f"{name}: query, key and value must have at least 2 dimensions, but their shapes are {list(query.shape)}, "
                           f"{list(key.shape)} and {list(value.shape)}")
    check_dtypes(name, query, key=key, value=value)
    if attn_mask is not None:
        check_option(name, "the dtype of attn_mask", attn_mask.dtype.name, ("bool", "float32", query.dtype.name), RuntimeError)
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


MODES = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@taking_tensors
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.

    Raises RuntimeError for shapes that do not broadcast, and for integers, TypeError for several dimensions.

    >>> import symgrad
    >>> cosine_similarity(symgrad.tensor([1.0, 0.0]), symgrad.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    if not hasattr(dim, "__index__"):
        raise TypeError(f"cosine_similarity: dim must be an integer, not {dim!r}")
    dtype = promote_types(x1.dtype, x2.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"cosine_similarity: there are no cosines of {dtype}. Convert the vectors with .to()")
    x1, x2 = broadcast_tensors(x1.to(dtype), x2.to(dtype))
    return traced.sum(unit_vectors(traced, x1, dim, eps) * unit_vectors(traced, x2, dim, eps), dim)


@taking_tensors
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> import symgrad
    >>> pairwise_distance(symgrad.tensor([3.0, 0.0]), symgrad.tensor([0.0, 4.0]))
    tensor(5.0000)
    """
    return traced.norm(x1 - x2 + eps, p, -1, keepdim)


def _check(name: str, p: float, *inputs: Any) -> None:
    for x in inputs:
        check_floating(name, x, error=RuntimeError)
    if p < 0:
        raise RuntimeError(f"{name}: p must not be negative, but it is {p}")


def _length(differences: Any, p: float) -> Any:
    """The p-norm along the last dimension, which is 0 for vectors without elements."""
    if not differences.shape[-1]:
        return traced.sum(differences, -1)
    return traced.norm(differences, p, -1)


@taking_tensors
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distances |x1ᵢ - x2ⱼ| in the p-norm of all pairs of rows: (..., P, M) and (..., R, M) give (..., P, R), the leading dimensions broadcast.

    The distances are computed from differences, so that none is lost by cancellation; `compute_mode` is checked and has no other effect. The
    derivative at distance zero is 0. Raises RuntimeError for fewer than two dimensions, different numbers of columns, integers and negative p,
    ValueError for an unknown `compute_mode`.

    >>> import symgrad
    >>> cdist(symgrad.tensor([[0.0, 0.0], [3.0, 0.0]]), symgrad.tensor([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    check_option("cdist", "compute_mode", compute_mode, MODES, ValueError)
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist: the inputs must be matrices with equal numbers of columns, but they have {list(x1.shape)} and {list(x2.shape)}")
    _check("cdist", p, x1, x2)
    return _length(traced.unsqueeze(x1, -2) - traced.unsqueeze(x2, -3), p)


@taking_tensors
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances in the p-norm of all pairs of rows i < j of a matrix, as a vector: the triangle of `cdist` above the diagonal, row by row.

    Raises RuntimeError unless the input is a matrix of floats, and for negative p.

    >>> import symgrad
    >>> pdist(symgrad.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    check_dims("pdist", input, 2)
    _check("pdist", p, input)
    first, second = (wrap(at) for at in np.triu_indices(input.shape[0], 1))
    return _length(traced.index_select(input, 0, first) - traced.index_select(input, 0, second), p)
