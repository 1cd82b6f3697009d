"""The module of a softmax over many classes, of which the rare ones stand in clusters."""

from __future__ import annotations

from collections.abc import Sequence as Numbers
from typing import Any, NamedTuple

from symgrad.arguments import check_dims
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn import functional as F
from symgrad.nn.modules.container import ModuleList, Sequential
from symgrad.nn.modules.linear import Linear
from symgrad.nn.modules.module import Module
from symgrad.nn.validation import check_shape

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


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
