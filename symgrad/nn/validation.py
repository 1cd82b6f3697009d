"""Checks that the functions of `nn` share, beside those of `symgrad.arguments`, and the reductions of losses."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Container, Sequence
from typing import Any, ParamSpec

from symgrad.arguments import check_option
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.errors import TARGET_SIZE

Sizes = int | Sequence[int]  # one size, or one for each dimension


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """A function that was defined for one number of dimensions, under its public name."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return taking_tensors(function)


def sizes(name: str, word: str, given: Any, rank: int, least: int | None = None) -> tuple[int, ...]:
    """A size for each of `rank` dimensions. Raises RuntimeError for another number of sizes, and for one below the least."""
    out = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    try:
        out = tuple(n.__index__() for n in out) * (rank if len(out) == 1 else 1)
    except AttributeError:
        raise TypeError(f"{name}: {word} must be an integer, or a tuple of {rank}, not {given!r}") from None
    if len(out) != rank:
        raise RuntimeError(f"{name}: {word} must be an integer, or a tuple of {rank}, but it is {given}")
    if least is not None and min(out, default=least) < least:
        raise RuntimeError(f"{name}: {word} must be at least {least}, but it is {given}")
    return out


def check_nonempty(name: str, input: Any, dims: int) -> None:
    """Raise RuntimeError where one of the last dimensions is empty."""
    if not all(input.shape[-dims:]):
        raise RuntimeError(f"{name}: only the batch may be empty, but the shape of the input is {list(input.shape)}")


def check_shape(name: str, shape: Sequence[int], error: type[Exception] = RuntimeError, **given: Any) -> None:
    """Raise unless each tensor is None or has a shape."""
    for word, t in given.items():
        if t is not None and tuple(t.shape) != tuple(shape):
            raise error(f"{name}: {word} must have the shape {list(shape)}, but it has {list(t.shape)}")


def check_dtypes(name: str, input: Any, mixed: bool = False, **given: Any) -> None:
    """Raise RuntimeError unless each tensor is None or has the dtype of the input; `mixed`: or float32 where that has two bytes."""
    for word, t in given.items():
        if t is not None and t.dtype is not input.dtype and not (mixed and input.dtype.itemsize == 2 and t.dtype.name == "float32"):
            raise RuntimeError(f"{name}: the input has {input.dtype}, but {word} has {t.dtype}. Convert one of them with .to()")


def check_floating(name: str, input: Any, *more: str, error: type[Exception] = NotImplementedError) -> None:
    """Raise unless a tensor has a floating-point dtype; `more` are the names of others, "complex" and "integers"."""
    kind = input.dtype
    if not kind.is_floating_point and not {kind.name, "complex" if kind.is_complex else "bool" if kind.name == "bool" else "integers"} & set(more):
        raise error(f"{name}: there are no results for {kind}. Convert the input with .to()")


def check_indices(name: str, given: Any, word: str = "indices", names: Container[str] = ("int32", "int64")) -> None:
    """Raise RuntimeError unless a tensor has a dtype of indices."""
    if given.dtype.name not in names:
        raise RuntimeError(f"{name}: {word} must be integers, but they are {given.dtype}. Convert them with .long()")


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
