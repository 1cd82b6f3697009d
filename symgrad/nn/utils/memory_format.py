"""The order in memory of the weights of convolutions."""

from __future__ import annotations

from typing import Any

from symgrad.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from symgrad.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, kinds: tuple[type[Module], ...], memory_format: Any) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part._parameters["weight"]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Write the weights of all two-dimensional convolutions in a module anew, in an order such as `channels_last`; returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Write the weights of all three-dimensional convolutions in a module anew, in an order such as `channels_last_3d`; returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
