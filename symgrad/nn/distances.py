"""Distances of vectors, with torch's names: of pairs along a dimension, and of all pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.arguments import check_dims, check_option
from symgrad.dtypes.dtype import promote_types
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.methods.predicates import broadcast_tensors
from symgrad.nn.validation import check_floating
from symgrad.ops.norms import unit_vectors

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]

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
        raise TypeError(f"cosine_similarity: dim must be an integer, not {dim!r}")
    dtype = promote_types(x1.dtype, x2.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"cosine_similarity: there are no cosines of {dtype}. Convert the vectors with .to()")
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


def _check(name: str, p: float, *inputs: Any) -> None:
    for x in inputs:
        check_floating(name, x, error=RuntimeError)
    if p < 0:
        raise RuntimeError(f"{name}: p must not be negative, but it is {p}")


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
    check_option("cdist", "compute_mode", compute_mode, MODES, ValueError)
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist: the inputs must be matrices with equal numbers of columns, but they have {list(x1.shape)} and {list(x2.shape)}")
    _check("cdist", p, x1, x2)
    return _length(traced.unsqueeze(x1, -2) - traced.unsqueeze(x2, -3), p)


@taking_tensors
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances in the p-norm of all pairs of rows i < j of a matrix, as a vector: the triangle of `cdist` above the diagonal, row by row.

    Raises RuntimeError unless the input is a matrix of floats, and for negative p.

    >>> import symgrad
    >>> pdist(symgrad.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    check_dims("pdist", input, 2)
    _check("pdist", p, input)
    first, second = (wrap(at) for at in np.triu_indices(input.shape[0], 1))
    return _length(traced.index_select(input, 0, first) - traced.index_select(input, 0, second), p)
