"""The transposes of convolutions: gradients by the input and by the weight, for a gradient of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import zeros
from symgrad.func import vjp
from symgrad.nn import functional as F
from symgrad.nn.validation import named

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _transposes(name: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    convolution: Any = getattr(F, name)

    def by_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Tensor:
        start = zeros(input_size, dtype=weight.dtype)
        return vjp(lambda x: convolution(x, weight, None, stride, padding, dilation, groups), start)[1](grad_output)[0]

    def by_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                  groups: int = 1) -> Tensor:
        start = zeros(weight_size, dtype=input.dtype)
        return vjp(lambda w: convolution(input, w, None, stride, padding, dilation, groups), start)[1](grad_output)[0]

    doc = "The gradient of `nn.functional.{0}` by the {1}, of shape `{1}_size`, for a gradient of the output."
    return named(by_input, f"{name}_input", doc.format(name, "input")), named(by_weight, f"{name}_weight", doc.format(name, "weight"))


conv1d_input, conv1d_weight = _transposes("conv1d")
conv2d_input, conv2d_weight = _transposes("conv2d")
conv3d_input, conv3d_weight = _transposes("conv3d")
