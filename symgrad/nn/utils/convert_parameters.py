"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.methods.predicates import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector, differentiably.

    >>> import symgrad
    >>> parameters_to_vector([symgrad.ones(2, 2), symgrad.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    return FUNCTIONS["cat"]([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to slices of one vector, as views of its memory. Raises TypeError for a vector that is not a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start: Any = 0
    for parameter in parameters:
        parameter.data = vec[start:start + parameter.numel()].view(parameter.shape).data
        start += parameter.numel()
