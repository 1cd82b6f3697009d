"""Activations and their kin as functions, with torch's names and arguments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import rand_like
from symgrad.methods.inplace import in_place
from symgrad.nn.validation import check_indices

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
           "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "normalize", "one_hot", "prelu", "relu", "relu6", "relu_", "rrelu",
           "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
           "threshold", "threshold_"]

hardshrink, softshrink, prelu, softsign, tanhshrink = traced.hardshrink, traced.softshrink, traced.prelu, traced.softsign, traced.tanhshrink
logsigmoid, softplus, gelu, glu, tanh, sigmoid = traced.logsigmoid, traced.softplus, traced.gelu, traced.glu, traced.tanh, traced.sigmoid
Activation = Callable[..., Tensor]


def _with_inplace(name: str, *words: str) -> tuple[Activation, Activation]:
    """An op of the registry with a parameter `inplace` after those of these names; and the form that is always in place."""
    plain = getattr(traced, name)
    written, known, place = in_place(name + "_", plain), inspect.signature(plain).parameters, len(words) + 1
    accepted = {"input", "inplace", *words}

    def function(*args: Any, **kwargs: Any) -> Tensor:
        if not kwargs.keys() <= accepted:
            raise TypeError(f"{name}: got an unexpected keyword argument {min(kwargs.keys() - accepted)!r}")
        inplace = kwargs.pop("inplace", False)
        if len(args) > place:
            *args, inplace = args  # type: ignore[assignment]
        return (written if inplace else plain)(*args, **kwargs)

    def always(*args: Any, **kwargs: Any) -> Tensor:
        return written(*args, **kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("input", kind, annotation="Tensor"), *(known[word].replace(annotation="float", kind=kind) for word in words)]
    flag = inspect.Parameter("inplace", kind, default=False, annotation="bool")
    for each, own, doc, flags in ((function, name, plain.__doc__, [flag]), (always, name + "_", f"`{name}`, written into the input itself.", [])):
        each.__name__ = each.__qualname__ = own
        each.__doc__ = doc.partition("\n")[0]
        setattr(each, "__signature__", inspect.Signature([*parameters, *flags], return_annotation="Tensor"))  # noqa: B010  mypy knows no such attribute
    return taking_tensors(function), taking_tensors(always)


elu, elu_ = _with_inplace("elu", "alpha")
celu, celu_ = _with_inplace("celu", "alpha")
selu, selu_ = _with_inplace("selu")
silu, mish, hardsigmoid, hardswish = (_with_inplace(name)[0] for name in ("silu", "mish", "hardsigmoid", "hardswish"))
hardtanh, hardtanh_ = _with_inplace("hardtanh", "min_val", "max_val")
leaky_relu, leaky_relu_ = _with_inplace("leaky_relu", "negative_slope")
threshold, threshold_ = _with_inplace("threshold", "threshold", "value")


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), written into the input itself if `inplace`."""
    return Tensor.relu_(input) if inplace else traced.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(input, 0), written into the input itself."""
    return relu(input, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The input limited to [0, 6]; the derivative is 1 strictly inside and 0 elsewhere."""
    return hardtanh(input, 0.0, 6.0, inplace)


@taking_tensors
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False, *,
          generator: Any = None) -> Tensor:
    """`leaky_relu` with a random slope for each element, uniform between the bounds, or in evaluation with their mean.

    Raises RuntimeError for bounds that are not in order.
    """
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must be at most upper, but they are {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = lower + (upper - lower) * rand_like(input.detach(), generator=generator)
    factor = traced.where(input.detach() > 0, 1.0, slope)
    return input.mul_(factor) if inplace else input * factor


@taking_tensors
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, written into the input itself."""
    return rrelu(input, lower, upper, training, True)


def _axis(name: str, input: Tensor, dim: int | None, stacklevel: int) -> int:
    """The axis to normalise over; without one, torch's legacy choice with its warning."""
    if dim is not None:
        return dim
    expect_tensors(name, input=input)
    warnings.warn(f"{name}: the choice of an axis is deprecated; pass dim", UserWarning, stacklevel=stacklevel)
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`, in another dtype if one is given.

    >>> import symgrad
    >>> softmax(symgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return traced.softmax(input, _axis("softmax", input, dim, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-input) along `dim`, in another dtype if one is given."""
    return traced.softmax(-input, _axis("softmin", input, dim, _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation, in another dtype if one is given."""
    return traced.log_softmax(input, _axis("log_softmax", input, dim, _stacklevel), dtype)


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
    check_indices("one_hot", tensor, "classes", ("int64",))
    classes = tensor.value
    count = num_classes if num_classes != -1 else int(classes.max()) + 1 if classes.size else 0
    if count <= 0 or classes.size and not 0 <= classes.min() <= classes.max() < count:
        raise RuntimeError(f"one_hot: the classes must lie between 0 and num_classes={num_classes}, but they are {classes.tolist()}")
    return wrap((classes[..., None] == np.arange(count)).astype(np.int64))
