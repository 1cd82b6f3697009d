"""Norms of gradients, and gradients limited by them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import tensor
from symgrad.ops.rules import constant

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Parameters = Tensor | Iterable[Tensor]


def _listed(parameters: Parameters) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors: Parameters, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all tensors as one vector: (Σ |x|^p)^(1/p), the largest |x| for p = inf.

    Raises RuntimeError for a norm that is not finite, if `error_if_nonfinite`.

    >>> import symgrad
    >>> get_total_norm([symgrad.tensor([3.0]), symgrad.tensor([4.0])])
    tensor(5.)
    """
    norm_type = float(constant("get_total_norm", "norm_type", norm_type))
    with no_grad():
        norms = [FUNCTIONS["norm"](t, norm_type) for t in _listed(tensors)]
        total = FUNCTIONS["norm"](FUNCTIONS["stack"](norms), norm_type) if norms else tensor(0.0)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"get_total_norm: the norm of order {norm_type} is {total.item()}. Pass error_if_nonfinite=False to take it")
    return total


def clip_grads_with_norm_(parameters: Parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients, in place, by max_norm / (total_norm + 1e-6) where that is less than 1."""
    with no_grad():
        factor = (float(constant("clip_grad_norm_", "max_norm", max_norm)) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _gradients(_listed(parameters)):
            gradient.mul_(factor.to(gradient.dtype))


def clip_grad_norm_(parameters: Parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:
    """Scale the gradients, in place, so that their norm as one vector is at most `max_norm`; return the norm before.

    Raises RuntimeError for a norm that is not finite, if `error_if_nonfinite`.

    >>> import symgrad
    >>> x = symgrad.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> clip_grad_norm_(x, 1.0)
    tensor(10.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    given = _listed(parameters)
    total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_value_(parameters: Parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients, in place, to [-clip_value, clip_value]."""
    largest = float(constant("clip_grad_value_", "clip_value", clip_value))
    with no_grad():
        for gradient in _gradients(_listed(parameters)):
            gradient.clamp_(min=-largest, max=largest)


def clip_grad_norm(parameters: Parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The deprecated name of `clip_grad_norm_`."""
    warnings.warn("nn.utils.clip_grad_norm is deprecated; use clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
