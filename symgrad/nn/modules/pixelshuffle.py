"""Modules that exchange channels for height and width."""

from symgrad.nn import functional as F
from symgrad.nn.modules.declarations import module_of

__all__ = ["PixelShuffle", "PixelUnshuffle"]

PixelShuffle = module_of("PixelShuffle", F.pixel_shuffle, "upscale_factor", module=__name__)
PixelUnshuffle = module_of("PixelUnshuffle", F.pixel_unshuffle, "downscale_factor", module=__name__)
