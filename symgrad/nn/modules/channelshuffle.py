"""The module that mixes the groups of channels."""

from symgrad.nn import functional as F
from symgrad.nn.modules.declarations import module_of

__all__ = ["ChannelShuffle"]

ChannelShuffle = module_of("ChannelShuffle", F.channel_shuffle, "groups", module=__name__)
