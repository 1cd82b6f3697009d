"""The reductions of losses: one decorator for all."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec

from symgrad.arguments import check_option
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.errors import TARGET_SIZE

__all__ = ["difference", "floating", "loss", "reduced", "reduction_of", "warn_about_sizes"]

P = ParamSpec("P")
REDUCTIONS = ("mean", "sum", "none")


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction for torch's two legacy arguments, with a warning, or else `reduction` itself."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce are deprecated; use reduction='{meant}'", UserWarning, stacklevel=3)
    return meant


def loss(function: Callable[P, Tensor], *more: str) -> Callable[P, Tensor]:
    """A loss, in which `size_average` and `reduce` become a reduction; an unknown reduction raises ValueError, and what is no tensor TypeError."""
    checked, signature, known = taking_tensors(function), inspect.signature(function), (*REDUCTIONS, *more)
    tensors = [word for word, parameter in signature.parameters.items() if parameter.annotation == "Tensor"]
    first = min(place for place, word in enumerate(signature.parameters) if word in ("size_average", "reduction"))

    @functools.wraps(function)
    def of_reduction(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        reduction: Any = kwargs.get("reduction", "mean")
        if not all([isinstance(x, Tensor) for x in args[:len(tensors)]]):
            expect_tensors(function.__name__, **dict(zip(tensors, args)))
        if len(args) > first or "size_average" in kwargs or "reduce" in kwargs:
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            reduction = reduction_of(given.pop("size_average", None), given.pop("reduce", None), given.get("reduction", "mean"))
            given["reduction"] = reduction
            check_option(function.__name__, "reduction", reduction, known, ValueError)
            return checked(*bound.args, **bound.kwargs)
        if reduction not in known:
            check_option(function.__name__, "reduction", reduction, known, ValueError)
        return checked(*args, **kwargs)

    return of_reduction


def warn_about_sizes(name: str, input: Tensor, target: Tensor) -> None:
    """Warn if two tensors that should have one size will broadcast."""
    if input.shape != target.shape:
        warnings.warn(TARGET_SIZE.format(target.shape, input.shape), UserWarning, stacklevel=5)


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
