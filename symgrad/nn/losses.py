"""Loss modules."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.module import Module
from symgrad.nn.reductions import reduction_of

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


class _Loss(Module):
    """A loss, and its reduction: "mean", "sum" or "none"."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with weights, which are a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The mean of (input - target)².

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.MSELoss()(symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean of |input - target|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        return F.l1_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """The mean of -weight (target log(input) + (1 - target) log(1 - input)), of probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """`BCELoss` of sigmoid(input), without cancellation or overflow; `pos_weight` weighs the targets that are 1."""

    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 pos_weight: Tensor | None = None):
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """-Σ weight[target] input[target] / Σ weight[target], for log-probabilities (N, C, ...) and classes (N, ...)."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
                 reduction: str = "mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of logits (N, C, ...) and classes (N, ...), or class probabilities (N, C, ...).

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.CrossEntropyLoss()(symgrad.tensor([[2.0, 0.0], [0.0, 2.0]]), symgrad.tensor([0, 1]))
    tensor(0.1269)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
                 reduction: str = "mean", label_smoothing: float = 0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        options: dict[str, Any] = {"ignore_index": self.ignore_index, "reduction": self.reduction, "label_smoothing": self.label_smoothing}
        return F.cross_entropy(input, target, weight=self.weight, **options)
