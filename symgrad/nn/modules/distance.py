"""Modules of distances and similarities."""

from __future__ import annotations

from functools import partial

from symgrad.nn import functional as F
from symgrad.nn.modules.activation import module_of

__all__ = ["CosineSimilarity", "PairwiseDistance"]

_module = partial(module_of, module=__name__)

CosineSimilarity = _module("CosineSimilarity", function=F.cosine_similarity,
                           doc="The cosine of the angle between vectors along `dim`.", shown="", dim=1,
                           eps=1e-8)
PairwiseDistance = _module("PairwiseDistance", function=F.pairwise_distance, doc="The norm of x1 - x2 + eps along the last dimension.", shown="",
                           p=2.0, eps=1e-6, keepdim=False)
