"""A linear map or a convolution and the batch normalisation after it as one, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(w: Any, b: Any, axis: int, mean: Any, var: Any, eps: float, weight: Any, bias: Any) -> tuple[Parameter, Parameter]:
    factor = traced.rsqrt(var + eps) if weight is None else weight * traced.rsqrt(var + eps)
    shift = -mean * factor if b is None else (b - mean) * factor
    shift = shift if bias is None else shift + bias
    shape = (*(1,) * axis, -1, *(1,) * (w.ndim - axis - 1))
    return (Parameter((w * factor.reshape(shape)).detach().to(w.dtype), w.requires_grad),
            Parameter(shift.detach().to(w.dtype if b is None else b.dtype), b is not None and b.requires_grad))


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
                         bn_b: Tensor | None, transpose: bool = False) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution, or of a transposed one, that is followed by a batch normalisation with running statistics."""
    return _fused(conv_w, conv_b, 1 if transpose else 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor,
                           bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear map that is followed by a batch normalisation with running statistics."""
    return _fused(linear_w, linear_b, 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fuse(module: Any, bn: Any, axis: int) -> Any:
    if module.training or bn.training or bn.running_mean is None or bn.running_var is None:
        raise AssertionError("fuse: both modules must be in evaluation, and the normalisation must have running statistics")
    out = copy.deepcopy(module)
    out.weight, out.bias = _fused(out.weight, out.bias, axis, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return out


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and the batch normalisation after it do in evaluation.

    Raises AssertionError for modules in training, and without running statistics.
    """
    return _fuse(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear map that does what a linear map and the batch normalisation after it do in evaluation.

    Raises AssertionError for modules in training, without running statistics, and for numbers of features that differ.

    >>> import symgrad
    >>> from symgrad import nn
    >>> linear, bn, x = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval(), symgrad.ones(4, 2)
    >>> symgrad.allclose(fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)))
    True
    """
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(f"fuse: bn.num_features={bn.num_features} must be 1 or linear.out_features={linear.out_features}")
    return _fuse(linear, bn, 0)
