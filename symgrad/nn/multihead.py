"""Attention with several heads, with torch's name and arguments."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import zeros
from symgrad.nn.borders import constant_pad_nd
from symgrad.nn.dropout import dropout
from symgrad.nn.products import scaled_dot_product_attention

__all__ = ["added_mask", "multi_head_attention_forward"]


def added_mask(mask: Any, name: str, dtype: Any, other: Any = None, other_name: str = "") -> Any:
    """A mask to be added to the scores: of a boolean one, which is True where nothing is attended, -∞ there and 0 elsewhere.

    Raises AssertionError for integers; warns where the other mask has another dtype.
    """
    if mask is None:
        return None
    boolean = mask.dtype.name == "bool"
    if not boolean and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported, not {mask.dtype}")
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=3)
    return traced.masked_fill(zeros(mask.shape, dtype=dtype), mask, -math.inf) if boolean else mask


def _check_dimensions(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether the inputs are a batch. Raises AssertionError for numbers of dimensions that do not fit."""
    if query.ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor")
    batched = query.ndim == 3
    word, n = ("batched", 3) if batched else ("unbatched", 2)
    start = f"For {word} ({n}-D) `query`, expected"
    if key.ndim != n or value.ndim != n:
        raise AssertionError(f"{start} `key` and `value` to be {n}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.ndim != n - 1:
        raise AssertionError(f"{start} `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.ndim}-D tensor instead")
    if attn_mask is not None:
        if attn_mask.ndim not in (2, 3):
            raise AssertionError(f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead")
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.ndim == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _project(inputs: tuple[Any, ...], weights: Any, bias: Any, separate: bool) -> list[Any]:
    """Query, key and value times their weights: three matrices, or one that has them one after the other."""
    size = inputs[0].shape[-1]
    biases = (None,) * 3 if bias is None else traced.chunk(bias, 3)
    if separate:
        for name, x, w in zip(("query", "key", "value"), inputs, weights):
            if tuple(w.shape) != (size, x.shape[-1]):
                raise AssertionError(f"expecting {name} weights shape of {(size, x.shape[-1])}, but got {w.shape}")
    else:
        weights = traced.chunk(weights, 3)
    out = (traced.matmul(x, w.t()) for x, w in zip(inputs, weights))
    return [y if b is None else y + b for y, b in zip(out, biases)]


def _static(given: Any, name: str, projected: Any, rows: int, size: int) -> Any:
    """Keys or values of all heads as a batch: (N heads, S, size), from the projected ones, or given."""
    if given is None:
        return traced.transpose(traced.reshape(projected, (projected.shape[0], rows, size)), 0, 1)
    for axis, expected in ((0, rows), (2, size)):
        if given.shape[axis] != expected:
            raise AssertionError(f"expecting {name}.size({axis}) of {expected}, but got {given.shape[axis]}")
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
    batched = _check_dimensions(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (traced.unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else traced.unsqueeze(key_padding_mask, 0)
    (steps, count, embed_dim), sources = query.shape, key.shape[0]
    padding = added_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else added_mask(attn_mask, "attn_mask", query.dtype)
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    size, rows = embed_dim // num_heads, count * num_heads
    if size * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims torch.Size({list(key.shape[:2])}) do not match value's "
                             f"torch.Size({list(value.shape[:2])})")
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    separate = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    for name, weight in separate.items() if use_separate_proj_weight else (("in_proj_weight", in_proj_weight),):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is {use_separate_proj_weight} but {name} is None")
    q, k, v = _project((query, key, value), tuple(separate.values()) if use_separate_proj_weight else in_proj_weight, in_proj_bias,
                       use_separate_proj_weight)
    if mask is not None:
        expected = (steps, sources) if mask.ndim == 2 else (rows, steps, sources)
        if tuple(mask.shape) != expected:
            raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}.")
        mask = traced.unsqueeze(mask, 0) if mask.ndim == 2 else mask
    if (bias_k is None) != (bias_v is None):
        raise AssertionError(f"bias_{'v' if bias_k is None else 'k'} is set but bias_{'k' if bias_k is None else 'v'} is None")
    more = add_zero_attn + (bias_k is not None)
    if bias_k is not None:
        for name, given in (("key", static_k), ("value", static_v)):
            if given is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        biases: Any = (bias_k, bias_v)
        k, v = (traced.cat([x, b.expand(1, count, embed_dim)]) for x, b in zip((k, v), biases))
    q = _static(None, "", q, rows, size)
    k, v = _static(static_k, "static_k", k, rows, size), _static(static_v, "static_v", v, rows, size)
    if add_zero_attn:
        k, v = (traced.cat([x, zeros(rows, 1, size, dtype=x.dtype)], 1) for x in (k, v))
    mask, padding = (constant_pad_nd(m, (0, more)) if m is not None and more else m for m in (mask, padding))
    total = k.shape[1]
    if padding is not None:
        for axis, expected_size in enumerate((count, total)):
            if padding.shape[axis] != expected_size:
                raise AssertionError(f"Expected key_padded_mask.shape[{axis}] to be {expected_size}, but got {padding.shape[axis]}")
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
