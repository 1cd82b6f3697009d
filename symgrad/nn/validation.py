"""Checks that the functions of `nn` share, beside those of `symgrad.arguments`; each raises one sentence with the argument and its value."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from symgrad.engine.refusals import taking_tensors

__all__ = ["Sizes", "check_dtypes", "check_floating", "check_indices", "check_nonempty", "check_shape", "named", "sizes"]

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
