"""Modules of patches of images as columns."""

from symgrad.nn import functional as F
from symgrad.nn.modules.declarations import module_of

__all__ = ["Fold", "Unfold"]

Unfold = module_of("Unfold", F.unfold, "kernel_size dilation padding stride", module=__name__)
Fold = module_of("Fold", F.fold, "output_size kernel_size dilation padding stride", module=__name__)
