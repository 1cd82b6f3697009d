"""Reductions, shared by all losses."""

from __future__ import annotations

import warnings
from typing import Any

from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.refusals import no_tensor
from symgrad.engine.tensor import Tensor

__all__ = ["checked_reduction", "difference", "floating", "of_one_size", "reduced", "reduction_of", "warn_about_sizes"]


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


def of_one_size(name: str, input: Tensor, target: Tensor) -> bool:
    """Whether two tensors have one size. Raises TypeError for what is no tensor."""
    try:
        return input.shape == target.shape
    except AttributeError as error:
        raise no_tensor(name, error, (("input", input), ("target", target))) from None


def warn_about_sizes(name: str, input: Tensor, target: Tensor) -> None:
    """Warn if two tensors that should have one size will broadcast."""
    if not of_one_size(name, input, target):
        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to "
                      f"incorrect results due to broadcasting. Please ensure they have the same size.", UserWarning, stacklevel=3)


def floating(x: Any) -> Any:
    """The tensor, or numbers of the default dtype for integers, of which those of few bits would wrap around; a number is returned as it is."""
    return x if not isinstance(x, Tensor) or x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


def difference(input: Tensor, target: Tensor) -> Tensor:
    """input - target; of two tensors of integers in the default dtype."""
    if any(x.is_floating_point() or x.is_complex() for x in (input, target)) and not any(x.dtype.name == "bool" for x in (input, target)):
        return input - target
    return floating(input) - floating(target)


def reduced(each: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the terms, or the terms."""
    return each.mean() if reduction == "mean" else each.sum() if reduction == "sum" else each
