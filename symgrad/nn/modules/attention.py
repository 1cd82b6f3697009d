"""The module of attention with several heads."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.linear import NonDynamicallyQuantizableLinear
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of queries to keys and values in `num_heads` heads: (L, N, embed_dim), (S, N, kdim) and (S, N, vdim) give (L, N, embed_dim).

    The result is a pair with the weights (N, L, S), which are the mean over the heads, (N, num_heads, L, S) without `average_attn_weights`,
    or None without `need_weights`. Boolean masks are True where nothing is attended. With `batch_first` N is the first dimension; it may be missing.
    (Vaswani et al., Attention is all you need, 2017.)

    Raises ValueError and AssertionError for numbers of heads that do not fit, AssertionError and RuntimeError for shapes that do not.

    >>> import symgrad
    >>> from symgrad import nn
    >>> x = symgrad.ones(3, 5, 4)
    >>> output, weights = nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 4]), torch.Size([5, 3, 3]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"MultiheadAttention: embed_dim={embed_dim} and num_heads={num_heads} must be positive")
        super().__init__()
        self.embed_dim, self.kdim, self.vdim = embed_dim, embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first, self.head_dim = num_heads, dropout, batch_first, embed_dim // num_heads
        if embed_dim % num_heads:
            raise AssertionError(f"MultiheadAttention: num_heads={num_heads} must divide embed_dim={embed_dim}")
        separate = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        shapes: dict[str, Any] = {"in_proj_weight": (3 * embed_dim, embed_dim), **dict.fromkeys(separate)}
        if not self._qkv_same_embed_dim:
            shapes = {**{name: (embed_dim, size) for name, size in separate.items()}, "in_proj_weight": None}
        shapes["in_proj_bias"] = 3 * embed_dim if bias else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(empty(shape, device=device, dtype=dtype)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v"):
            parameter = getattr(self, name)
            if parameter is not None and name.endswith("weight"):
                init.xavier_uniform_(parameter)
            elif parameter is not None and name == "in_proj_bias":
                init.constant_(parameter, 0.0)
                init.constant_(getattr(self.out_proj, "bias"), 0.0)  # noqa: B009  it is there where this one is
            elif parameter is not None:
                init.xavier_normal_(parameter)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The outputs and the weights."""
        first = self.batch_first and query.ndim == 3
        given = tuple(traced.transpose(x, 0, 1) for x in (query, key, value)) if first else (query, key, value)
        out, weights = F.multi_head_attention_forward(
            given[0], given[1], given[2], self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return traced.transpose(out, 0, 1) if first else out, weights
