"""Modules with linear and bilinear maps and with tables of vectors, and the identity."""

from __future__ import annotations

import math
from typing import Any, Self

from symgrad.arguments import check_dims
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.declarations import LazyModuleMixin, shown_options
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.validation import check_shape

__all__ = ["Bilinear", "Embedding", "EmbeddingBag", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """The identity; it takes any arguments, so that it can replace another module."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


class Linear(Module):
    """x @ weightᵀ + bias over the last axis: (..., in_features) gives (..., out_features).

    Weight (out_features, in_features) and bias (out_features,) start uniform in ±1/√in_features.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.Linear(3, 2)
    >>> layer(symgrad.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    weight: Parameter
    bias: Parameter | None
    _shown = "in_features out_features bias"

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The linear map of the input."""
        return F.linear(input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that the printed text of attention has in torch; there are no quantized tensors."""


class Bilinear(Module):
    """x1ᵀ weight[k] x2 + bias[k] over the last axes: (..., in1_features) and (..., in2_features) give (..., out_features).

    Weight (out_features, in1_features, in2_features) and bias (out_features,) start uniform in ±1/√in1_features.

    Raises ValueError if in1_features is not positive.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Bilinear(3, 4, 2)(symgrad.ones(5, 3), symgrad.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None
    _shown = "in1_features in2_features out_features bias"

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive, but it is {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The bilinear map of the inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose in_features are those of the first input: the first call makes it a `Linear`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> net = nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(1))
    >>> net(symgrad.ones(7, 3)).shape, net[2].in_features
    (torch.Size([7, 1]), 4)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._without_shapes(("weight", "bias")[:1 + bias], device, dtype)

    def _shapes(self, input: Tensor) -> dict[str, tuple[int, ...]]:
        self.in_features = input.shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}

    def initialize_parameters(self, input: Tensor) -> None:
        """Initialize the parameters for the last axis of an input. Raises AssertionError for one that does not fit a weight that was loaded."""
        super().initialize_parameters(input)
        self.in_features = input.shape[-1]
        check_shape("LazyLinear", (self.weight.shape[0], self.in_features), AssertionError, **{"the weight that was loaded": self.weight})


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
