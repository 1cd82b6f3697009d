"""Loss modules, and the softmax over many classes, of which the rare ones stand in clusters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence as Numbers
from functools import partial
from typing import Any, NamedTuple

from symgrad.arguments import check_dims, check_option
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn import functional as F
from symgrad.nn.modules.container import ModuleList, Sequential
from symgrad.nn.modules.declarations import OfFunction, module_of
from symgrad.nn.modules.linear import Linear
from symgrad.nn.modules.module import Module
from symgrad.nn.modules.simple import PairwiseDistance
from symgrad.nn.validation import check_shape, reduction_of

__all__ = ["AdaptiveLogSoftmaxWithLoss", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
           "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
           "TripletMarginLoss", "TripletMarginWithDistanceLoss"]


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


class _LossOfFunction(OfFunction, _Loss):
    """A loss that calls a function; weights are buffers, and a distance that is a module is a part of it."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        own = self.__dict__
        own["reduction"] = reduction_of(own.pop("size_average", None), own.pop("reduce", None), own["reduction"])
        for name in ("weight", "pos_weight"):
            if name in own:
                self.register_buffer(name, own.pop(name))
        if "distance_function" in own:
            given = own.pop("distance_function")
            self.distance_function = PairwiseDistance() if given is None else given
        self._check()

    def _check(self) -> None:
        """Raise for options that have no meaning."""
        if "margin" in self._names and "swap" in self._names and self.margin <= 0:
            raise ValueError(f"{type(self).__name__}: margin must be positive, but it is {self.margin}")


class _WeightedOfFunction(_LossOfFunction, _WeightedLoss):
    """A loss that calls a function, with weights."""


class _HuberOfFunction(_LossOfFunction):
    """A loss whose `delta` is a number."""

    def _check(self) -> None:
        if not isinstance(self.delta, (float, int)):
            raise TypeError(f"HuberLoss: delta must be a number, not {type(self.delta).__name__} {self.delta!r}")


class _PoissonOfFunction(_LossOfFunction):
    """A loss whose input has another name than that of the function."""

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """The value of the function."""
        return super().forward(log_input, target)


class _MultiMarginOfFunction(_WeightedOfFunction):
    """A loss whose power is 1 or 2, with weights of classes."""

    def _check(self) -> None:
        check_option("MultiMarginLoss", "p", self.p, (1, 2), ValueError)
        if self.weight is not None:
            check_dims("MultiMarginLoss", self.weight, 1, word="weight", error=ValueError)


_loss = partial(module_of, module=__name__, base=_LossOfFunction, shown="")
_weighted = partial(_loss, base=_WeightedOfFunction)
LEGACY = "size_average reduce reduction"

MSELoss, L1Loss = _loss("MSELoss", F.mse_loss, LEGACY), _loss("L1Loss", F.l1_loss, LEGACY)
BCELoss, BCEWithLogitsLoss = _weighted("BCELoss", F.binary_cross_entropy), _weighted("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
NLLLoss, CrossEntropyLoss = _weighted("NLLLoss", F.nll_loss), _weighted("CrossEntropyLoss", F.cross_entropy)
CTCLoss, SmoothL1Loss = _loss("CTCLoss", F.ctc_loss), _loss("SmoothL1Loss", F.smooth_l1_loss)
HuberLoss = _loss("HuberLoss", F.huber_loss, "reduction delta", base=_HuberOfFunction)
KLDivLoss, SoftMarginLoss = _loss("KLDivLoss", F.kl_div), _loss("SoftMarginLoss", F.soft_margin_loss)
PoissonNLLLoss, GaussianNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, base=_PoissonOfFunction), _loss("GaussianNLLLoss", F.gaussian_nll_loss)
HingeEmbeddingLoss, MarginRankingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss), _loss("MarginRankingLoss", F.margin_ranking_loss)
MultiMarginLoss = _loss("MultiMarginLoss", F.multi_margin_loss, base=_MultiMarginOfFunction)
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss)
MultiLabelSoftMarginLoss = _weighted("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss)
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss)
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss)


class NLLLoss2d(NLLLoss):  # type: ignore[valid-type, misc]
    """`NLLLoss` under a deprecated name."""

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn("NLLLoss2d is deprecated; use NLLLoss", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


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
        check_shape("LinearCrossEntropyLoss", (num_classes,), weight=weight)
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"LinearCrossEntropyLoss: label_smoothing must lie between 0 and 1, but it is {label_smoothing}")
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


class _ASMoutput(NamedTuple):
    """The log-probabilities of the targets, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of the targets and minus their mean: (N, in_features) and classes (N,) give (N,) and (); N may be missing.

    The head has the classes below the first of the `cutoffs`, and one output for each cluster of the others; the cluster i has a hidden layer
    of in_features / div_valueⁱ⁺¹. Classes are ordered by frequency. (Grave et al., Efficient softmax approximation for GPUs, 2017.)

    Raises ValueError for cutoffs that do not increase from 1 to n_classes - 1, RuntimeError for sizes that do not fit and targets out of range.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5], div_value=2.0)
    >>> layer.log_prob(symgrad.ones(3, 4)).exp().sum(1).round(decimals=6).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Numbers[int], div_value: float = 4.0, head_bias: bool = False, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: cutoffs must be integers that increase from 1 to at most {n_classes - 1}, but they are "
                             f"{cutoffs}")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, hidden, False, device, dtype), Linear(hidden, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Initialize all linear maps again."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of the targets, and minus their mean."""
        alone = not target_.ndim
        check_dims("AdaptiveLogSoftmaxWithLoss", target_, 0, 1, word="target")
        check_shape("AdaptiveLogSoftmaxWithLoss", (*target_.shape, input_.shape[-1]), input=input_)
        input, target = (traced.unsqueeze(x, 0) if alone else x for x in (input_, target_))
        if ((target < 0) | (target >= self.n_classes)).any():
            raise RuntimeError(f"AdaptiveLogSoftmaxWithLoss: the targets must be classes from 0 to {self.n_classes - 1}, but they are "
                               f"{target.tolist()}")
        place, within = target, traced.zeros_like(input.detach(), target.shape)
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().reshape(-1)
            if rows.numel():
                logs = F.log_softmax(self.tail[i](traced.index_select(input, 0, rows)), 1)
                own = traced.gather(logs, 1, traced.unsqueeze(traced.index_select(target, 0, rows) - low, 1))
                within = traced.index_copy(within, 0, rows, traced.squeeze(own, 1))
                place = traced.masked_fill(place, inside, self.shortlist_size + i)
        logs = F.log_softmax(self.head(input), 1)
        output = within + traced.squeeze(traced.gather(logs, 1, traced.unsqueeze(place, 1)), 1)
        return _ASMoutput(traced.squeeze(output, 0) if alone else output, -traced.mean(output))

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, in_features) gives (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [traced.narrow(head, 1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + traced.narrow(head, 1, self.shortlist_size + i, 1))
        return traced.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The class of the largest output of the head, or where that is a cluster the class of the largest log-probability."""
        best = traced.argmax(self.head(input), 1)
        return traced.where(best < self.shortlist_size, best, traced.argmax(self.log_prob(input), 1))
