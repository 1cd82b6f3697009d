"""Modules that set random elements or channels to zero in training."""

from __future__ import annotations

from functools import partial
from typing import Any

from symgrad.nn import functional as F
from symgrad.nn.dropout import check_probability
from symgrad.nn.modules.declarations import OfFunction, module_of

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(OfFunction):
    """A function with a probability, which is the identity in evaluation. Raises ValueError for a probability outside [0, 1]."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        check_probability(self.p)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


_module = partial(module_of, module=__name__, base=_DropoutNd)

Dropout, Dropout1d = _module("Dropout", F.dropout), _module("Dropout1d", F.dropout1d)
Dropout2d, Dropout3d = _module("Dropout2d", F.dropout2d), _module("Dropout3d", F.dropout3d)
AlphaDropout = _module("AlphaDropout", F.alpha_dropout, called=("p", "training"))
FeatureAlphaDropout = _module("FeatureAlphaDropout", F.feature_alpha_dropout, called=("p", "training"))
