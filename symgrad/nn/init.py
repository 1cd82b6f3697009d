"""Initialization of tensors, in place and outside every graph; each function returns the tensor."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.creation import eye as eye_matrix
from symgrad.factories.random_tensors import rand, randn
from symgrad.system.errorstate import quiet

__all__ = ["calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_", "kaiming_uniform",
           "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform",
           "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_"]

_DOUBLE = DTYPES["float64"]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers from [a, b). Raises RuntimeError if b < a."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of a mean and a standard deviation. Raises RuntimeError for a negative one."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
@quiet
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers under the condition that they lie in [a, b].

    The numbers are the quantiles F⁻¹(u) of uniform u, F(x) = (Φ(z) - Φ(α)) / (Φ(β) - Φ(α)) with z = (x - mean) / std, α and β the bounds
    likewise. They are computed with the logarithm of Φ in the left tail, so that the bounds may lie anywhere.

    Raises ValueError if a > b or std <= 0.

    >>> import symgrad
    >>> x = trunc_normal_(symgrad.empty(1000), 0.0, 1.0, 40.0, 50.0)
    >>> 40 <= x.min() < 40.001 and x.max() < 41
    tensor(True)
    """
    if a > b or not std > 0:
        raise ValueError(f"trunc_normal_: a must be at most b and std positive, but they are {a}, {b} and {std}")
    from scipy.special import log_ndtr, ndtri_exp  # takes a tenth of a second, and nothing else here needs it

    low, high = (a - mean) / std, (b - mean) / std
    sign = -1 if low > 0 else 1
    low, high = (low, high) if sign > 0 else (-high, -low)
    u = np.maximum(rand(tensor.shape, dtype=_DOUBLE, generator=generator).numpy(), np.finfo(float).tiny)
    ratio = np.exp(log_ndtr(low) - log_ndtr(high))
    drawn = mean + sign * std * ndtri_exp(log_ndtr(high) + np.log(ratio + u * (1 - ratio)))
    return tensor.copy_(wrap(np.clip(drawn, a, b)))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix. Raises ValueError for a tensor that is not a matrix."""
    check_dims("eye_", tensor, 2, word="tensor", error=ValueError)
    return tensor.copy_(eye_matrix(*tensor.shape))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight (out, in, ...) of a convolution so that each of its groups passes on as many of its inputs as it has outputs.

    Raises ValueError for a tensor without one to three dimensions of space, and where the groups do not divide the outputs.

    >>> import symgrad
    >>> dirac_(symgrad.empty(2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    check_dims("dirac_", tensor, 3, 4, 5, word="tensor", error=ValueError)
    if tensor.shape[0] % groups:
        raise ValueError(f"dirac_: groups={groups} must divide the first dimension of a tensor of shape {list(tensor.shape)}")
    tensor.zero_()
    outputs, centre = tensor.shape[0] // groups, tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for k in range(min(outputs, tensor.shape[1])):
            tensor[(group * outputs + k, k, *centre)] = 1
    return tensor


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with gain Q, Q a random matrix with orthonormal rows or columns, uniform among them; a tensor is a matrix of its flattened rows.

    Q is that of the QR decomposition of a normal matrix whose R has a positive diagonal (Mezzadri, arXiv math-ph/0609050).

    Raises ValueError for fewer than two dimensions.

    >>> import symgrad
    >>> x = orthogonal_(symgrad.empty(2, 3, 4))
    >>> symgrad.allclose(x.reshape(2, 12) @ x.reshape(2, 12).T, symgrad.eye(2))
    True
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: the tensor must have at least 2 dimensions, but its shape is {list(tensor.shape)}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    dtype = tensor.dtype if tensor.dtype.itemsize > 2 else _DOUBLE
    q, r = np.linalg.qr(randn(max(rows, columns), min(rows, columns), dtype=dtype, generator=generator).numpy())
    q = q * np.sign(np.diagonal(r))
    return tensor.copy_(wrap(gain * (q.T if rows < columns else q).reshape(tensor.shape)))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal numbers, and a fraction of each column, chosen at random, with zeros.

    Raises ValueError for a tensor that is not a matrix.

    >>> import symgrad
    >>> (sparse_(symgrad.empty(10, 2), 0.25) == 0).sum(0)
    tensor([3, 3])
    """
    check_dims("sparse_", tensor, 2, word="tensor", error=ValueError)
    tensor.normal_(0, std, generator=generator)
    order = rand(tensor.shape, generator=generator).argsort(0)
    return tensor.masked_fill_(order < math.ceil(sparsity * tensor.shape[0]), 0)


GAINS = {**dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1),
         "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The recommended gain for a nonlinearity; `param` is the slope of a leaky relu below zero.

    Raises ValueError for an unknown nonlinearity and for a slope that is not a number.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"calculate_gain: the slope of leaky_relu must be a number, not {param!r}")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    check_option("calculate_gain", "nonlinearity", nonlinearity, (*GAINS, "leaky_relu"), ValueError)
    return GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The fan in and the fan out of a weight (out, in, ...)."""
    if tensor.ndim < 2:
        raise ValueError(f"fan in and out: the tensor must have at least 2 dimensions, but its shape is {list(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan that `mode` names. Raises ValueError for another word."""
    modes = ["fan_in", "fan_out"]
    check_option("kaiming", "mode", mode.lower(), modes, ValueError)
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform numbers of variance gain² 2 / (fan in + fan out). Raises ValueError for fewer than two dimensions."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of variance gain² 2 / (fan in + fan out). Raises ValueError for fewer than two dimensions."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _standard_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn(f"kaiming: a tensor of shape {list(tensor.shape)} has no elements to fill", UserWarning, stacklevel=3)
    return 0 in tensor.shape


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Fill with uniform numbers of variance gain² / fan, the fan that `mode` names; `a` is the slope of the leaky relu that follows.

    Raises ValueError for a tensor of fewer than two dimensions, an unknown mode or nonlinearity.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _standard_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Fill with normal numbers of variance gain² / fan, the fan that `mode` names; `a` is the slope of the leaky relu that follows.

    Raises ValueError for a tensor of fewer than two dimensions, an unknown mode or nonlinearity.
    """
    return tensor if _is_empty(tensor) else normal_(tensor, 0.0, _standard_deviation(tensor, a, mode, nonlinearity), generator)


# The deprecated names


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def filled(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"nn.init.{old} is deprecated; use nn.init.{new}", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    filled.__name__ = filled.__qualname__ = old
    filled.__doc__ = f"The deprecated name of `{new}`."
    return filled


uniform, normal, constant, eye = _deprecated(uniform_), _deprecated(normal_), _deprecated(constant_), _deprecated(eye_)
dirac, orthogonal, sparse = _deprecated(dirac_), _deprecated(orthogonal_), _deprecated(sparse_)
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
