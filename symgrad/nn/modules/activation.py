"""Modules of activations: each calls its function with the parameters that it was made with."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn.init import constant_
from symgrad.nn.modules.attention import MultiheadAttention
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "Mish",
           "LogSigmoid", "LogSoftmax", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "module_of", "OfFunction"]

REQUIRED = inspect.Parameter.empty


class OfFunction(Module):
    """A module that calls a function with its inputs and with parameters of the same names."""

    function: ClassVar[Callable[..., Tensor]]
    names: ClassVar[tuple[str, ...]]
    shown: ClassVar[str] = "{name}={value}"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        try:
            bound = inspect.signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            name, words = type(self).__name__, str(error).replace("a required argument", "1 required positional argument")
            raise TypeError(f"{name}.__init__() {words}; it is called as {name}{inspect.signature(type(self))}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """The value of the function."""
        if not inputs and not named:
            raise TypeError(f"{type(self).__name__}.forward() missing 1 required positional argument: 'input'")
        return type(self).function(*inputs, **named, **{name: getattr(self, name) for name in self.names})

    def extra_repr(self) -> str:
        """The parameters; `inplace` where it is set."""
        own = self.__dict__
        return ", ".join(self.shown.format(name=name, value=own[name]) for name in self.names if self.shown and (name != "inplace" or own[name]))


def module_of(name: str, module: str, function: Callable[..., Tensor], doc: str, base: type[OfFunction] = OfFunction, shown: str = "{name}={value}",
              **defaults: Any) -> Any:
    """The class of a module from a function and from the defaults of its parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(p, kind, default=value) for p, value in defaults.items()])
    return type(name, (base,), {"__doc__": doc, "__module__": module, "__signature__": signature, "function": staticmethod(function),
                                "names": tuple(p for p in defaults if p not in ("size_average", "reduce")), "shown": shown})


_module = partial(module_of, module=__name__)

LeakyReLU = _module("LeakyReLU", function=F.leaky_relu,
                    doc="The input where it is positive, else negative_slope input.", negative_slope=0.01, inplace=False)
ELU = _module("ELU", function=F.elu, doc="The input where it is positive, else alpha (exp(input) - 1).", alpha=1.0, inplace=False)
CELU = _module("CELU", function=F.celu, doc="The input where it is positive, else alpha (exp(input / alpha) - 1).", alpha=1.0, inplace=False)
SELU = _module("SELU", function=F.selu, doc="`ELU` times a scale, with which layers keep mean 0 and variance 1.", inplace=False)
SiLU = _module("SiLU", function=F.silu, doc="input sigmoid(input).", inplace=False)
Mish = _module("Mish", function=F.mish, doc="input tanh(softplus(input)).", inplace=False)
Softsign = _module("Softsign", function=F.softsign, doc="input / (1 + |input|).")
Tanhshrink = _module("Tanhshrink", function=F.tanhshrink, doc="input - tanh(input).")
Hardsigmoid = _module("Hardsigmoid", function=F.hardsigmoid, doc="(input + 3) / 6 limited to [0, 1].", shown="", inplace=False)
Hardswish = _module("Hardswish", function=F.hardswish, doc="input hardsigmoid(input).", shown="", inplace=False)
Threshold = _module("Threshold", function=F.threshold,
                    doc="The input where it is above `threshold`, else `value`.",
                    threshold=REQUIRED, value=REQUIRED, inplace=False)
GELU = _module("GELU", function=F.gelu,
               doc="input Φ(input), Φ the distribution function of the standard normal distribution, or an approximation by 'tanh'.",
               shown="{name}={value!r}", approximate="none")
GLU = _module("GLU", function=F.glu, doc="The first half of the input along `dim` times the sigmoid of the second half.", dim=-1)
Hardshrink = _module("Hardshrink", function=F.hardshrink, doc="The input, and 0 where its absolute value is at most `lambd`.", shown="{value}",
                     lambd=0.5)
Softshrink = _module("Softshrink", function=F.softshrink, shown="{value}", lambd=0.5,
                     doc="The input moved towards 0 by `lambd`, and 0 where its absolute value is at most `lambd`.")


class Hardtanh(Module):
    """The input limited to [min_val, max_val]; `min_value` and `max_value` are deprecated names of the bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
                 max_value: float | None = None):
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=2)
        self.min_val, self.max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """The limited input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + ", inplace=True" * self.inplace


class ReLU6(Hardtanh):
    """The input limited to [0, 6]."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """`inplace`, if it is set."""
        return "inplace=True" * self.inplace


class RReLU(Module):
    """`LeakyReLU` with a random slope for each element in training, uniform between the bounds, and their mean in evaluation."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with a slope where it is negative."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"lower={self.lower}, upper={self.upper}" + ", inplace=True" * self.inplace


class PReLU(Module):
    """The input where it is positive, else the input times a parameter: one, or one for each channel.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.PReLU()(symgrad.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameter to its first value again."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The input with a slope where it is negative."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of parameters."""
        return f"num_parameters={self.num_parameters}"


class ReLU(Module):
    """max(input, 0), written into the input itself if `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """max(input, 0)."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return "inplace=True" if self.inplace else ""


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """tanh(input)."""
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-input))."""

    def forward(self, input: Tensor) -> Tensor:
        """sigmoid(input)."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(input)), without cancellation."""

    def forward(self, input: Tensor) -> Tensor:
        """log(sigmoid(input))."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """softplus(input)."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _Normalised(Module):
    """An activation along one axis."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax(_Normalised):
    """exp(input) / Σ exp(input) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input)."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Normalised):
    """log(softmax(input)) along `dim`, without cancellation."""

    def forward(self, input: Tensor) -> Tensor:
        """log(softmax(input))."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_Normalised):
    """softmax(-input) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """softmin(input)."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of an image (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input) over the channels."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
