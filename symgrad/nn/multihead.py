"""Attention with several heads, with torch's name and arguments."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.arguments import check_dims
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import zeros
from symgrad.nn.activations import dropout
from symgrad.nn.padding import constant_pad_nd
from symgrad.nn.products import scaled_dot_product_attention
from symgrad.nn.validation import check_shape

__all__ = ["multi_head_attention_forward"]


def added_mask(mask: Any, name: str, dtype: Any, other: Any = None, other_name: str = "") -> Any:
    """A mask to be added to the scores: of a boolean one, which is True where nothing is attended, -∞ there and 0 elsewhere.

    Raises AssertionError for integers; warns where the other mask has another dtype.
    """
    if mask is None:
        return None
    boolean = mask.dtype.name == "bool"
    if not boolean and not mask.is_floating_point():
        raise AssertionError(f"attention: {name} must have a boolean or floating-point dtype, not {mask.dtype}")
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(f"attention: {name} and {other_name} should have one dtype, not {mask.dtype} and {other.dtype}", stacklevel=3)
    return traced.masked_fill(zeros(mask.shape, dtype=dtype), mask, -math.inf) if boolean else mask


def _check(query: Any, key: Any, value: Any, masks: dict[str, Any], num_heads: int, separate: bool) -> None:
    """Raise AssertionError for shapes that do not fit."""
    n = query.ndim
    check_dims("attention", query, 2, 3, word="query", error=AssertionError)
    for word, x in (("key", key), ("value", value)):
        check_dims("attention", x, n, word=word, error=AssertionError)
    if masks["key_padding_mask"] is not None:
        check_dims("attention", masks["key_padding_mask"], n - 1, word="key_padding_mask", error=AssertionError)
    mask = masks["attn_mask"]
    if mask is not None:
        check_dims("attention", mask, 2, 3, word="attn_mask", error=AssertionError)
        if n == 2 and mask.ndim == 3:
            check_shape("attention", (num_heads, query.shape[0], key.shape[0]), AssertionError, attn_mask=mask)
    if key.shape[:-1] != value.shape[:-1] or not separate and key.shape != value.shape:
        raise AssertionError(f"attention: key and value must fit, but their shapes are {list(key.shape)} and {list(value.shape)}")


def _project(inputs: tuple[Any, ...], weights: Any, bias: Any, separate: bool) -> list[Any]:
    """Query, key and value times their weights: three matrices, or one that has them one after the other."""
    size = inputs[0].shape[-1]
    biases = (None,) * 3 if bias is None else traced.chunk(bias, 3)
    if any(w is None for w in weights) if separate else weights is None:
        raise AssertionError(f"attention: the weights of the inputs are needed; with use_separate_proj_weight={separate} they must not be None")
    if separate:
        for name, x, w in zip(("query", "key", "value"), inputs, weights):
            check_shape("attention", (size, x.shape[-1]), AssertionError, **{f"the weight of {name}": w})
    else:
        weights = traced.chunk(weights, 3)
    out = (traced.matmul(x, w.t()) for x, w in zip(inputs, weights))
    return [y if b is None else y + b for y, b in zip(out, biases)]


def _heads(given: Any, name: str, projected: Any, rows: int, size: int) -> Any:
    """Keys or values of all heads as a batch: (N heads, S, size), from the projected ones, or given."""
    if given is None:
        return traced.transpose(traced.reshape(projected, (projected.shape[0], rows, size)), 0, 1)
    check_shape("attention", (rows, given.shape[1], size), AssertionError, **{name: given})
    return given


@taking_tensors
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
                                 in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
                                 out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
                                 key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
                                 use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
                                 average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """out_proj(softmax(q kᵀ / √d + mask) v) for each head, q, k and v the projected query, key and value; and the weights of the values.

    (L, N, E), (S, N, E) and (S, N, E) give (L, N, E) and weights (N, L, S), the mean over the heads, or (N, heads, L, S); N may be missing. Boolean
    masks are True where nothing is attended. (Vaswani et al., Attention is all you need, 2017.)

    Raises AssertionError and RuntimeError for shapes that do not fit.
    """
    batched = query.ndim == 3
    _check(query, key, value, {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}, num_heads, use_separate_proj_weight)
    if not batched:
        query, key, value = (traced.unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else traced.unsqueeze(key_padding_mask, 0)
    (steps, count, embed_dim), sources = query.shape, key.shape[0]
    padding = added_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError("attention: is_causal needs attn_mask. `Transformer.generate_square_subsequent_mask` makes it")
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else added_mask(attn_mask, "attn_mask", query.dtype)
    size, rows = embed_dim // num_heads, count * num_heads
    if embed_dim != embed_dim_to_check or size * num_heads != embed_dim:
        raise AssertionError(f"attention: the query must have embed_dim={embed_dim_to_check} features, a multiple of num_heads={num_heads}, but it "
                             f"has {embed_dim}")
    q, k, v = _project((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight,
                       in_proj_bias, use_separate_proj_weight)
    if mask is not None:
        check_shape("attention", (steps, sources) if mask.ndim == 2 else (rows, steps, sources), attn_mask=mask)
        mask = traced.unsqueeze(mask, 0) if mask.ndim == 2 else mask
    if (bias_k is None) != (bias_v is None) or bias_k is not None and not (static_k is static_v is None):
        raise AssertionError("attention: give both bias_k and bias_v or none, and none with static_k and static_v")
    more = add_zero_attn + (bias_k is not None)
    if bias_k is not None:
        biases: Any = (bias_k, bias_v)
        k, v = (traced.cat([x, b.expand(1, count, embed_dim)]) for x, b in zip((k, v), biases))
    q, k, v = _heads(None, "", q, rows, size), _heads(static_k, "static_k", k, rows, size), _heads(static_v, "static_v", v, rows, size)
    if add_zero_attn:
        k, v = (traced.cat([x, zeros(rows, 1, size, dtype=x.dtype)], 1) for x in (k, v))
    mask, padding = (constant_pad_nd(m, (0, more)) if m is not None and more else m for m in (mask, padding))
    total = k.shape[1]
    if padding is not None:
        check_shape("attention", (count, total), AssertionError, key_padding_mask=padding)
        padding = traced.reshape(traced.reshape(padding, (count, 1, 1, total)).expand(count, num_heads, 1, total), (rows, 1, total))
        mask = padding if mask is None else mask + padding
    rate = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = traced.matmul(q * math.sqrt(1 / size), traced.transpose(k, -2, -1))
        weights = traced.softmax(scores if mask is None else scores + mask, -1)
        weights = dropout(weights, rate) if rate else weights
        out = traced.matmul(weights, v)
        weights = traced.reshape(weights, (count, num_heads, steps, total))
        weights = traced.mean(weights, 1) if average_attn_weights else weights
    else:
        out = scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
    out = traced.reshape(traced.transpose(out, 0, 1), (steps, count, embed_dim))
    out = traced.matmul(out, out_proj_weight.t())
    out = out if out_proj_bias is None else out + out_proj_bias
    if not batched:
        out, weights = traced.squeeze(out, 1), None if weights is None else traced.squeeze(weights, 0)
    return out, weights
