"""Distances of vectors, with torch's names: of pairs along a dimension, and of all pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.dtypes.promotion import promote_types
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.methods.predicates import broadcast_tensors
from symgrad.ops.norms import unit_vectors

__all__ = ["cdist", "cosine_similarity", "pairwise_distance", "pdist"]

MODES = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@taking_tensors
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.

    Raises RuntimeError for shapes that do not broadcast, and for integers, TypeError for several dimensions.

    >>> import symgrad
    >>> cosine_similarity(symgrad.tensor([1.0, 0.0]), symgrad.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    if not hasattr(dim, "__index__"):
        raise TypeError(f"cosine_similarity(): argument 'dim' must be int, not {type(dim).__name__}")
    dtype = promote_types(x1.dtype, x2.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype.scalar_type}")
    x1, x2 = broadcast_tensors(x1.to(dtype), x2.to(dtype))
    return traced.sum(unit_vectors(traced, x1, dim, eps) * unit_vectors(traced, x2, dim, eps), dim)


@taking_tensors
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> import symgrad
    >>> pairwise_distance(symgrad.tensor([3.0, 0.0]), symgrad.tensor([0.0, 4.0]))
    tensor(5.0000)
    """
    return traced.norm(x1 - x2 + eps, p, -1, keepdim)


def _check(name: str, p: float, **inputs: Any) -> None:
    for word, x in inputs.items():
        if not x.is_floating_point():
            raise RuntimeError(f"{name} only supports floating-point dtypes, {word + ' ' * bool(word)}got: {x.dtype.scalar_type}")
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values")


def _length(differences: Any, p: float) -> Any:
    """The p-norm along the last dimension, which is 0 for vectors without elements."""
    if not differences.shape[-1]:
        return traced.sum(differences, -1)
    return traced.norm(differences, p, -1)


@taking_tensors
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distances |x1ᵢ - x2ⱼ| in the p-norm of all pairs of rows: (..., P, M) and (..., R, M) give (..., P, R), the leading dimensions broadcast.

    The distances are computed from differences, so that none is lost by cancellation; `compute_mode` is checked and has no other effect. The
    derivative at distance zero is 0. Raises RuntimeError for fewer than two dimensions, different numbers of columns, integers and negative p,
    ValueError for an unknown `compute_mode`.

    >>> import symgrad
    >>> cdist(symgrad.tensor([[0.0, 0.0], [3.0, 0.0]]), symgrad.tensor([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for word, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {word} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    _check("cdist", p, X1=x1, X2=x2)
    return _length(traced.unsqueeze(x1, -2) - traced.unsqueeze(x2, -3), p)


@taking_tensors
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances in the p-norm of all pairs of rows i < j of a matrix, as a vector: the triangle of `cdist` above the diagonal, row by row.

    Raises RuntimeError unless the input is a matrix of floats, and for negative p.

    >>> import symgrad
    >>> pdist(symgrad.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    _check("pdist", p, **{"": input})
    first, second = (wrap(at) for at in np.triu_indices(input.shape[0], 1))
    return _length(traced.index_select(input, 0, first) - traced.index_select(input, 0, second), p)
