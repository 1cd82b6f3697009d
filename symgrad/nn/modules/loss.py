"""Loss modules."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.activation import OfFunction, module_of
from symgrad.nn.modules.distance import PairwiseDistance
from symgrad.nn.modules.linear import Linear
from symgrad.nn.modules.module import Module
from symgrad.nn.reductions import reduction_of

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss",
           "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
           "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss"]


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


class NLLLoss2d(NLLLoss):
    """`NLLLoss` under a deprecated name."""

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
                      "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


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


class CTCLoss(_Loss):
    """-log of the probability of labels, summed over all alignments to the steps of log-probabilities (T, N, C); see `nn.functional.ctc_loss`."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The loss of log-probabilities for labels."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class LinearCrossEntropyLoss(_WeightedLoss):
    """`CrossEntropyLoss` of a linear map of the input: (N, in_features) and classes (N,), or (N, *out_features).

    Raises RuntimeError for weights of another shape and for a smoothing outside [0, 1]. The `options` of torch's kernel have no effect.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.LinearCrossEntropyLoss(3, 4)(symgrad.zeros(2, 3), symgrad.tensor([0, 3])).item() == symgrad.tensor(4.0).log().item()
    True
    """

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None,
                 dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
                 label_smoothing: float = 0.0, options: Any = None):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, out_features, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of an input for a target."""
        shape = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else self.linear.bias.reshape(shape)
        return F.linear_cross_entropy(input, self.linear.weight.reshape(*shape, self.linear.in_features), target, linear_bias=bias,
                                      weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
                                      label_smoothing=self.label_smoothing)

    def extra_repr(self) -> str:
        """The sizes and options."""
        names = ("num_classes", "out_features", "bias", "reduction", "ignore_index", "label_smoothing", "options")
        shown = {**vars(self), "bias": self.linear.bias is not None}
        return f"in_features={self.linear.in_features}, " + ", ".join(f"{name}={shown[name]}" for name in names)


class _LossOfFunction(OfFunction, _Loss):
    """A loss that calls a function; weights are a buffer, and a distance that is a module is a part of it."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        own = self.__dict__
        own["reduction"] = reduction_of(own.pop("size_average", None), own.pop("reduce", None), own["reduction"])
        if "weight" in own:
            self.register_buffer("weight", own.pop("weight"))
        if "distance_function" in own:
            given = own.pop("distance_function")
            self.distance_function = PairwiseDistance() if given is None else given


class _WeightedOfFunction(_LossOfFunction, _WeightedLoss):
    """A loss that calls a function, with weights."""


class _HuberOfFunction(_LossOfFunction):
    """A loss whose `delta` is a number."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if not isinstance(self.delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(self.delta)}")


class _TripletOfFunction(_LossOfFunction):
    """A loss whose margin is positive."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.margin <= 0:
            raise ValueError(f"{type(self).__name__}: expected margin to be greater than 0, got {self.margin} instead")


class _PoissonOfFunction(_LossOfFunction):
    """A loss whose input has another name than that of the function."""

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """The value of the function."""
        return super().forward(log_input, target)


class _MultiMarginOfFunction(_WeightedOfFunction):
    """A loss whose power is 1 or 2, with weights of classes."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, but got {self.p!r}")
        if self.weight is not None and self.weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {self.weight.ndim}D instead")


_loss = partial(module_of, module=__name__, base=_LossOfFunction, shown="")
LEGACY: dict[str, Any] = {"size_average": None, "reduce": None, "reduction": "mean"}

SmoothL1Loss = _loss("SmoothL1Loss", function=F.smooth_l1_loss,
                     doc="The mean of error² / (2 beta) where |error| is below beta, else of |error| - beta / 2.",
                     **LEGACY, beta=1.0)
HuberLoss = _loss("HuberLoss", function=F.huber_loss, doc="The mean of error² / 2 where |error| is below delta, else of delta (|error| - delta / 2).",
                  base=_HuberOfFunction, reduction="mean", delta=1.0)
KLDivLoss = _loss("KLDivLoss", function=F.kl_div, doc="The mean of target (log(target) - input), for log-probabilities `input`.", **LEGACY,
                  log_target=False)
PoissonNLLLoss = _loss("PoissonNLLLoss", function=F.poisson_nll_loss, doc="The mean of exp(input) - target input.", base=_PoissonOfFunction,
                       log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean")
GaussianNLLLoss = _loss("GaussianNLLLoss", function=F.gaussian_nll_loss, doc="The mean of (log(var) + (input - target)² / var) / 2.", full=False,
                        eps=1e-6, reduction="mean")
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", function=F.hinge_embedding_loss, margin=1.0, **LEGACY,
                           doc="The mean of the input where the target is 1, and of max(0, margin - input) where it is -1.")
MarginRankingLoss = _loss("MarginRankingLoss", function=F.margin_ranking_loss, doc="The mean of max(0, -target (input1 - input2) + margin).",
                          margin=0.0, **LEGACY)
SoftMarginLoss = _loss("SoftMarginLoss", function=F.soft_margin_loss, doc="The mean of log(1 + exp(-target input)), without overflow.", **LEGACY)
MultiMarginLoss = _loss("MultiMarginLoss", base=_MultiMarginOfFunction, function=F.multi_margin_loss, p=1, margin=1.0, weight=None, **LEGACY,
                        doc="The mean of Σ max(0, weight[y] (margin - x[y] + x[i]))ᵖ / C over the classes i other than the target y.")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", function=F.multilabel_margin_loss, **LEGACY,
                             doc="The mean of Σ max(0, 1 - x[y] + x[i]) / C over the target classes y and all other classes i.")
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", base=_WeightedOfFunction, function=F.multilabel_soft_margin_loss, weight=None, **LEGACY,
                                 doc="The mean over the classes of binary cross entropies of sigmoid(input).")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", function=F.cosine_embedding_loss, margin=0.0, **LEGACY,
                            doc="The mean of 1 - cos(input1, input2) where the target is 1, else of max(0, cos(input1, input2) - margin).")
TripletMarginLoss = _loss("TripletMarginLoss", base=_TripletOfFunction, function=F.triplet_margin_loss,
                          doc="The mean of max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance `pairwise_distance`.",
                          margin=1.0, p=2.0, eps=1e-6, swap=False, **LEGACY)
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", base=_TripletOfFunction, function=F.triplet_margin_with_distance_loss,
                                      doc="`TripletMarginLoss` with another distance function.", distance_function=None, margin=1.0, swap=False,
                                      reduction="mean")
