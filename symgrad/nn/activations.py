"""Activations and their kin as functions, with torch's names and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import rand_like
from symgrad.methods.inplace import in_place

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
           "leaky_relu", "leaky_relu_", "mish", "normalize", "one_hot", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_",
           "selu", "selu_", "silu", "softshrink", "softsign", "tanhshrink", "threshold", "threshold_"]

hardshrink, prelu, softsign, tanhshrink = traced.hardshrink, traced.prelu, traced.softsign, traced.tanhshrink


def _apply(name: str, inplace: bool, input: Tensor, *parameters: Any) -> Tensor:
    """An op of the registry, whose result is written into the input if `inplace`."""
    function = getattr(traced, name)
    return in_place(name + "_", function)(input, *parameters) if inplace else function(input, *parameters)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), written into the input itself if `inplace`."""
    return Tensor.relu_(input) if inplace else traced.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(input, 0), written into the input itself."""
    return relu(input, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The input limited to [0, 6]; the derivative is 1 strictly inside and 0 elsewhere."""
    return _apply("hardtanh", inplace, input, 0.0, 6.0)


@taking_tensors
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The input limited to [min_val, max_val]; the derivative is 1 strictly inside and 0 elsewhere."""
    return _apply("hardtanh", inplace, input, min_val, max_val)


@taking_tensors
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, written into the input itself."""
    return _apply("hardtanh", True, input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(input + 3) / 6 limited to [0, 1]."""
    return _apply("hardsigmoid", inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input hardsigmoid(input)."""
    return _apply("hardswish", inplace, input)


@taking_tensors
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The input where it is positive, else negative_slope input; the derivative at 0 is that from below."""
    return _apply("leaky_relu", inplace, input, negative_slope)


@taking_tensors
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, written into the input itself."""
    return _apply("leaky_relu", True, input, negative_slope)


@taking_tensors
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where it is positive, else alpha (exp(input) - 1); the derivative at 0 is that from below.

    >>> import symgrad
    >>> elu(symgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _apply("elu", inplace, input, alpha)


@taking_tensors
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, written into the input itself."""
    return _apply("elu", True, input, alpha)


@taking_tensors
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where it is positive, else alpha (exp(input / alpha) - 1)."""
    return _apply("celu", inplace, input, alpha)


@taking_tensors
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, written into the input itself."""
    return _apply("celu", True, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` times a scale, with which layers keep mean 0 and variance 1."""
    return _apply("selu", inplace, input)


def selu_(input: Tensor) -> Tensor:
    """`selu`, written into the input itself."""
    return selu(input, True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input Φ(input), Φ the distribution function of the standard normal distribution, or its approximation by 'tanh'.

    Raises RuntimeError for another approximation.

    >>> import symgrad
    >>> gelu(symgrad.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    return traced.gelu(input, approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input sigmoid(input)."""
    return _apply("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input tanh(softplus(input))."""
    return _apply("mish", inplace, input)


@taking_tensors
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The input moved towards 0 by `lambd`, and 0 where its absolute value is at most `lambd`."""
    return traced.softshrink(input, lambd)


@taking_tensors
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The input where it is above `threshold`, else `value`."""
    return _apply("threshold", inplace, input, threshold, value)


@taking_tensors
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, written into the input itself."""
    return _apply("threshold", True, input, threshold, value)


@taking_tensors
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False, *,
          generator: Any = None) -> Tensor:
    """`leaky_relu` with a random slope for each element, uniform between the bounds, or in evaluation with their mean.

    Raises RuntimeError for bounds that are not in order.
    """
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, but got lower {lower} and upper {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = lower + (upper - lower) * rand_like(input.detach(), generator=generator)
    factor = traced.where(input.detach() > 0, 1.0, slope)
    return input.mul_(factor) if inplace else input * factor


@taking_tensors
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, written into the input itself."""
    return rrelu(input, lower, upper, training, True)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of the input along `dim` times the sigmoid of the second half. Raises RuntimeError for an odd size."""
    return traced.glu(input, dim)


@taking_tensors
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """The input divided by its norms along `dim`, or by `eps` where they are smaller.

    >>> import symgrad
    >>> normalize(symgrad.tensor([3.0, 4.0]), dim=0)
    tensor([0.6000, 0.8000])
    """
    if p == 2 and out is None and input.is_floating_point():
        return traced.normalized(input, dim, eps)
    length = traced.clamp_min(traced.norm(input, p, dim, True), eps)
    return traced.div(input, length) if out is None else traced.div(input, length, out=out)


@taking_tensors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension with 1 at the class of each element and 0 elsewhere; by default there are as many classes as occur.

    Raises RuntimeError for classes that are negative or not below `num_classes`.

    >>> import symgrad
    >>> one_hot(symgrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    classes = tensor.value
    if classes.dtype != np.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, but got {tensor.dtype.scalar_type}")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if classes.size and classes.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == 0 or num_classes < -1:
        raise RuntimeError("num_classes should be positive")
    if classes.size and -1 < num_classes <= classes.max():
        raise RuntimeError("Class values must be smaller than num_classes.")
    count = int(classes.max()) + 1 if num_classes == -1 else num_classes
    return wrap((classes[..., None] == np.arange(count)).astype(np.int64))
