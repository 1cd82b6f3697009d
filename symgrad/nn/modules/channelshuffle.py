"""The module that mixes the groups of channels."""

from symgrad.nn import functional as F
from symgrad.nn.modules.activation import REQUIRED, module_of

__all__ = ["ChannelShuffle"]

ChannelShuffle = module_of("ChannelShuffle", __name__, F.channel_shuffle, "The channels in turn from each of `groups` groups.", groups=REQUIRED)
