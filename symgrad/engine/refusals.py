"""The refusal of arguments that are no tensors, by name and without a check before each call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from symgrad.engine.tensor import Tensor

__all__ = ["expect_tensors", "no_tensor", "taking_tensors"]

P = ParamSpec("P")
R = TypeVar("R")


def _parts(x: Any) -> Iterator[Any]:
    yield x
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _parts(part)


def no_tensor(name: str, error: AttributeError, given: Iterable[tuple[str, Any]]) -> Exception:
    """The TypeError of the argument that is not a Tensor and lacks an attribute of tensors; if there is none, the error itself."""
    for place, (word, x) in enumerate(given):
        for item in _parts(x):
            if item is error.obj and not isinstance(item, Tensor):
                return TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {type(item).__name__}")
    return error


def expect_tensors(name: str, **given: Any) -> None:
    """Raise TypeError for the first argument that is not a Tensor."""
    for place, (word, x) in enumerate(given.items()):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {type(x).__name__}")


def taking_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises TypeError with the name of an argument in the place of a tensor that is none.

    >>> taking_tensors(lambda input: input.numel())(2)
    Traceback (most recent call last):
    TypeError: <lambda>(): argument 'input' (position 1) must be Tensor, not int
    """
    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            found = no_tensor(function.__name__, error, inspect.signature(function).bind(*args, **kwargs).arguments.items())
            if found is error:
                raise
            raise found from None

    return checked
