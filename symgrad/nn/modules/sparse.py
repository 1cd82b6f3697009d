"""Modules of embeddings: rows of a weight at indices."""

from __future__ import annotations

from typing import Any, Self

from symgrad.arguments import check_dims
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.declarations import shown_options
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.validation import check_shape

__all__ = ["Embedding", "EmbeddingBag"]


class _Rows(Module):
    """A weight (num_embeddings, embedding_dim), which starts standard normal, with 0 in the row `padding_idx`."""

    weight: Parameter
    padding_idx: int | None

    def _set_weight(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, weight: Tensor | None, freeze: bool, device: Any,
                    dtype: Any) -> None:
        if padding_idx is not None and not -num_embeddings <= padding_idx < max(num_embeddings, 1):
            raise AssertionError(f"{type(self).__name__}: padding_idx={padding_idx} is not one of {num_embeddings} rows")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else padding_idx + num_embeddings
        check_shape(type(self).__name__, (num_embeddings, embedding_dim), AssertionError, weight=weight)
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype) if weight is None else weight, not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def _from(cls, embeddings: Tensor, **options: Any) -> Self:
        check_dims(cls.__name__, embeddings, 2, word="embeddings", error=AssertionError)
        return cls(*embeddings.shape, _weight=embeddings, **options)


class Embedding(_Rows):
    """The rows of the weight (num_embeddings, embedding_dim) at indices: any shape gives that shape with embedding_dim after it.

    The weight starts standard normal; the row `padding_idx` starts at 0 and gets no gradient. Rows that are longer than `max_norm` are shortened
    in place when they are used. Gradients are dense also where `sparse` is given.

    Raises AssertionError for a padding_idx out of range, IndexError for an index out of range.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.Embedding.from_pretrained(symgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> layer(symgrad.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self._set_weight(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The rows at the indices."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the default."""
        return shown_options(self, self.num_embeddings, self.embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                             sparse=False)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Self:
        """A module whose weight is a given matrix; it is trained unless `freeze`."""
        return cls._from(embeddings, _freeze=freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type, sparse=sparse,
                         scale_grad_by_freq=scale_grad_by_freq)


class EmbeddingBag(_Rows):
    """The mean, the sum or the largest elements of the rows in each bag: the rows of a matrix of indices, or parts of a vector from `offsets`.

    The options are those of `Embedding` and `nn.functional.embedding_bag`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.EmbeddingBag.from_pretrained(symgrad.tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
    >>> layer(symgrad.tensor([0, 1, 1]), symgrad.tensor([0, 2]))
    tensor([[4., 6.],
            [3., 4.]])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None):
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset
        self._set_weight(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """One row for each bag."""
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes, the mode, and the options that are not the default."""
        out = shown_options(self, self.num_embeddings, self.embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False)
        return f"{out}, mode={self.mode!r}" + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> Self:
        """A module whose weight is a given matrix; it is trained unless `freeze`."""
        out = cls._from(embeddings, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
                        sparse=sparse, include_last_offset=include_last_offset, padding_idx=padding_idx)
        out.weight.requires_grad_(not freeze)
        return out
