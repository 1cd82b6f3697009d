"""Modules of distances and similarities."""

from symgrad.nn import functional as F
from symgrad.nn.modules.declarations import module_of

__all__ = ["CosineSimilarity", "PairwiseDistance"]

CosineSimilarity = module_of("CosineSimilarity", F.cosine_similarity, module=__name__, shown="")
PairwiseDistance = module_of("PairwiseDistance", F.pairwise_distance, module=__name__, shown="")
