"""Activations, dropout of elements and of channels, and samples from categories, with torch's names and arguments."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_dims
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.random_tensors import bernoulli, rand_like
from symgrad.methods.inplace import in_place
from symgrad.nn.validation import check_indices, named

__all__ = ["alpha_dropout", "celu", "celu_", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "feature_alpha_dropout", "gelu", "glu",
           "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax",
           "logsigmoid", "mish", "normalize", "one_hot", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu",
           "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_"]

hardshrink, softshrink, prelu, softsign, tanhshrink = traced.hardshrink, traced.softshrink, traced.prelu, traced.softsign, traced.tanhshrink
logsigmoid, softplus, gelu, glu, tanh, sigmoid = traced.logsigmoid, traced.softplus, traced.gelu, traced.glu, traced.tanh, traced.sigmoid
Activation = Callable[..., Tensor]


def _with_inplace(name: str, *words: str) -> tuple[Activation, Activation]:
    """An op of the registry with a parameter `inplace` after those of these names; and the form that is always in place."""
    plain = getattr(traced, name)
    written, known, place = in_place(name + "_", plain), inspect.signature(plain).parameters, len(words) + 1
    accepted = frozenset(("input", *words))

    def checked(name: str, most: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) > most:
            raise TypeError(f"{name}: takes {most} arguments at most, and {len(args)} were given")
        if not kwargs.keys() <= accepted:
            raise TypeError(f"{name}: got an unexpected keyword argument {min(kwargs.keys() - accepted)!r}")

    def function(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) <= place:
            inplace = kwargs.pop("inplace", False)
            checked(name, place, args, kwargs)
        else:
            checked(name, place + 1, args, kwargs)  # in which a second `inplace` is not accepted
            *args, inplace = args  # type: ignore[assignment]
        return (written if inplace else plain)(*args, **kwargs)

    def always(*args: Any, **kwargs: Any) -> Tensor:
        checked(name + "_", place, args, kwargs)
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


ALPHA = 1.7580993408473766  # to which `selu` tends, negated


def check_probability(p: Any) -> None:
    """Raise TypeError for what is no number, and ValueError for one outside [0, 1]."""
    if not isinstance(p, (int, float)) and not hasattr(p, "item"):
        raise TypeError(f"dropout: p must be a float, not {type(p).__name__} {p!r}")
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout: p must be a probability between 0 and 1, but it is {p}")


def _dropped(input: Any, p: Any, training: bool, inplace: bool, features: bool = False, alpha: bool = False) -> Any:
    """The input times noise of mean 1; with `alpha` zeros become the limit of `selu`, and mean and variance are kept."""
    check_probability(p)
    if features and input.ndim < 2 and training and p:
        raise RuntimeError(f"feature_dropout: the input must have channels in its second dimension, but its shape is {list(input.shape)}")
    if not input.numel() or not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2)) if features else tuple(input.shape)
    kept = bernoulli(traced.ones_like(input.detach(), shape), 1 - p)
    if not alpha:
        noise = kept / (1 - p)
        return input.mul_(noise) if inplace else input * noise
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (kept - 1) * (ALPHA * scale) + ALPHA * scale * p
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift


@taking_tensors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The input with elements that are zero with probability `p`, and the others divided by 1 - p; not in training the input itself.

    Raises ValueError for a probability outside [0, 1].

    >>> import symgrad
    >>> symgrad.nn.functional.dropout(symgrad.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    return _dropped(input, p, training, inplace)


@taking_tensors
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The input with random zeros, and the mask of the elements that are kept."""
    if train is False or not p:
        return traced.clone(input), traced.ones_like(input.detach()).bool()
    if p == 1:
        return input * 0.0, traced.zeros_like(input.detach()).bool()
    kept = bernoulli(traced.ones_like(input.detach()), 1 - p)
    return input * (kept / (1 - p)), kept.bool()


@taking_tensors
def feature_dropout(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels, which are the second dimension."""
    return _dropped(input, p, train, inplace, features=True)


def _define(rank: int, shapes: str) -> Callable[..., Tensor]:
    """`dropout` of whole channels of images in so many dimensions, of a batch or of one image."""
    name = f"dropout{rank}d"

    def channels(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if rank == 1:
            check_probability(p)
            check_dims(name, input, 2, 3)
        elif input.ndim not in (rank + 1, rank + 2) or (rank, input.ndim) == (2, 3):
            warnings.warn(f"{name}: an input of shape {list(input.shape)} is taken as a batch with channels in its second dimension. "
                          f"That is deprecated; use dropout or dropout1d", UserWarning, stacklevel=3)
        if input.ndim != rank + 1 or rank == 2:
            return _dropped(input, p, training, inplace, features=True)
        out = _dropped(traced.unsqueeze(input, 0), p, training, inplace, features=True)
        return input if inplace else out.squeeze(0)

    return named(channels, name, f"""`dropout` of whole channels of {shapes}.

    Raises ValueError for a probability outside [0, 1]; other numbers of dimensions are {"a RuntimeError" if rank == 1 else "deprecated"}.
    """)


dropout1d, dropout2d = _define(1, "(N, C, L), or of (C, L)"), _define(2, "(N, C, H, W)")
dropout3d = _define(3, "(N, C, D, H, W), or of (C, D, H, W)")


@taking_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that sets elements to the limit of `selu`, and keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Raises ValueError for a probability outside [0, 1].
    """
    return _dropped(input, p, training, inplace, alpha=True)


@taking_tensors
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, which are the second dimension."""
    return _dropped(input, p, training, inplace, features=True, alpha=True)


@taking_tensors
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + g) / tau) along `dim`, g from the Gumbel distribution: samples of categories that are differentiable by the logits.

    With `hard` the value has a 1 at the largest element and 0 elsewhere, and the derivative is that of the softmax (Jang et al. 2017).
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: eps is deprecated and has no effect", UserWarning, stacklevel=3)
    noise = -traced.log(traced.ones_like(logits.detach()).exponential_())
    soft = traced.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = traced.argmax(soft.detach(), dim, True)
    ones = traced.scatter(traced.zeros_like(soft.detach()), dim, index, 1.0)
    return ones - soft.detach() + soft
