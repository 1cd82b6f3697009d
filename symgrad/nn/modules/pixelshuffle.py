"""Modules that exchange channels for height and width."""

from symgrad.nn import functional as F
from symgrad.nn.modules.activation import REQUIRED, module_of

__all__ = ["PixelShuffle", "PixelUnshuffle"]

PixelShuffle = module_of("PixelShuffle", __name__, F.pixel_shuffle,
                         "Groups of r² channels as images r times as high and wide: (..., C r², H, W) gives (..., C, H r, W r).",
                         upscale_factor=REQUIRED)
PixelUnshuffle = module_of("PixelUnshuffle", __name__, F.pixel_unshuffle,
                           "The inverse of `PixelShuffle`: (..., C, H r, W r) gives (..., C r², H, W).", downscale_factor=REQUIRED)
