"""Modules of patches of images as columns."""

from symgrad.nn import functional as F
from symgrad.nn.modules.activation import REQUIRED, module_of

__all__ = ["Fold", "Unfold"]

Unfold = module_of("Unfold", __name__, F.unfold, "The patches of images under a kernel as columns: (N, C, H, W) gives (N, C kh kw, L).",
                   kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Fold = module_of("Fold", __name__, F.fold,
                 "The sum of patches at their places in an image, the transpose of `Unfold`: (N, C kh kw, L) gives (N, C, H, W).",
                 output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
