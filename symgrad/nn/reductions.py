"""Reductions, shared by all losses."""

from __future__ import annotations

import warnings

from symgrad.engine.tensor import Tensor

__all__ = ["reduction_of", "reduced", "warn_about_sizes", "checked_reduction"]


def checked_reduction(reduction: str) -> str:
    """The reduction itself. Raises ValueError for an unknown one."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction for torch's two legacy arguments, with a warning, or else `reduction` itself."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.", UserWarning, stacklevel=3)
    return meant


def warn_about_sizes(input: Tensor, target: Tensor) -> None:
    """Warn if two tensors that should have one size will broadcast."""
    if input.shape != target.shape:
        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to "
                      f"incorrect results due to broadcasting. Please ensure they have the same size.", UserWarning, stacklevel=3)


def reduced(each: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the terms, or the terms."""
    return each.mean() if reduction == "mean" else each.sum() if reduction == "sum" else each
