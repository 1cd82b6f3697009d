"""Modules of transformers: layers of attention and of two linear maps, stacks of them, and both stacks together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from symgrad.arguments import check_option
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.container import ModuleList
from symgrad.nn.modules.linear import Linear
from symgrad.nn.modules.module import Module
from symgrad.nn.modules.normalization import LayerNorm
from symgrad.nn.modules.simple import Dropout, MultiheadAttention
from symgrad.nn.multihead import added_mask

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


def _later_positions(size: int, dtype: Any = None) -> Tensor:
    """-∞ above the diagonal and 0 elsewhere; True and False for bool."""
    dtype = get_default_dtype() if dtype is None else dtype
    above = np.tri(size, size, dtype=bool).T & ~np.eye(size, dtype=bool)
    return tensor(above if dtype.name == "bool" else np.where(above, -math.inf, 0.0), dtype=dtype)


def _is_causal(mask: Tensor | None, given: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Whether a mask hides the later positions and nothing else, if that is not given."""
    if given is not None or mask is None:
        return given is True
    size = x.shape[0] if x.ndim == 2 else x.shape[int(batch_first)]
    return tuple(mask.shape) == (size, size) and bool((mask == _later_positions(size, mask.dtype)).all())


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    check_option("transformer", "activation", activation, ("relu", "gelu"), RuntimeError)
    return F.relu if activation == "relu" else F.gelu


class _Layer(Module):
    """Blocks, each of which is added to its input and normalised; or is called with the normalised input, with `norm_first`."""

    attentions: ClassVar[tuple[str, ...]]

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first, self.blocks = norm_first, len(self.attentions) + 1
        for i in range(self.blocks):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in range(self.blocks):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def _add(self, i: int, x: Any, block: Callable[[Any], Any]) -> Any:
        norm = getattr(self, f"norm{i}")
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _attend(self, i: int, x: Any, source: Any, mask: Any, padding: Any, causal: bool) -> Any:
        attention = getattr(self, self.attentions[i - 1])
        found = attention(x, source, source, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal)[0]
        return getattr(self, f"dropout{i}")(found)

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self._attend(1, x, x, attn_mask, key_padding_mask, is_causal)

    def _ff_block(self, x: Any) -> Any:
        return getattr(self, f"dropout{self.blocks}")(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps with an activation: (L, N, d_model) gives (L, N, d_model).

    Each part is added to its input, and normalised; with `norm_first` its input is normalised instead. With `batch_first` the input is
    (N, L, d_model). (Vaswani et al., Attention is all you need, 2017.)

    Raises RuntimeError for an unknown name of an activation, and what `MultiheadAttention` raises.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)(symgrad.ones(3, 5, 4)).shape
    torch.Size([3, 5, 4])
    """

    attentions = ("self_attn",)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """The sequence after both parts."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = added_mask(src_mask, "src_mask", src.dtype)
        x = self._add(1, src, lambda x: self._sa_block(x, mask, padding, is_causal))
        return self._add(2, x, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to the output of an encoder, then two linear maps: (L, N, d_model) gives (L, N, d_model).

    The options are those of `TransformerEncoderLayer`.
    """

    attentions = ("self_attn", "multihead_attn")

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self._attend(2, x, mem, attn_mask, key_padding_mask, is_causal)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        """The sequence after the three parts."""
        x = self._add(1, tgt, lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._add(2, x, lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._add(3, x, self._ff_block)


class TransformerEncoder(Module):
    """Copies of a layer, one after the other, and a normalisation at the end, if one is given.

    There are no nested tensors: `enable_nested_tensor` and `mask_check` have no effect.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True):
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.use_nested_tensor, self.mask_check = enable_nested_tensor, False, mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None) -> Tensor:
        """The sequence after all layers."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = added_mask(mask, "mask", src.dtype)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a layer, one after the other, and a normalisation at the end, if one is given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """The sequence after all layers."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder: (S, N, d_model) and (T, N, d_model) give (T, N, d_model). (Vaswani et al., Attention is all you need, 2017.)

    Raises RuntimeError for numbers of features or members of the batch that do not fit.

    >>> import symgrad
    >>> from symgrad import nn
    >>> model = nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8)
    >>> model(symgrad.ones(3, 5, 4), symgrad.ones(2, 5, 4), tgt_mask=model.generate_square_subsequent_mask(2)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None, custom_decoder: Any = None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name, given, layer, stack, count in (
                ("encoder", custom_encoder, TransformerEncoderLayer, TransformerEncoder, num_encoder_layers),
                ("decoder", custom_decoder, TransformerDecoderLayer, TransformerDecoder, num_decoder_layers)):
            if given is None:
                one = layer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, **made)
                given = stack(one, count, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
            setattr(self, name, given)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that hides the later positions: -∞ above the diagonal, 0 elsewhere."""
        return _later_positions(sz, dtype)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """The output of the decoder for the target and the output of the encoder."""
        dim = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[dim] != tgt.shape[dim] or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(f"Transformer: src and tgt must have d_model={self.d_model} features and the same batch, but their shapes are "
                               f"{list(src.shape)} and {list(tgt.shape)}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
