"""The refusal of arguments that are no tensors, by name and without a check before each call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from symgrad.engine.tensor import Tensor

__all__ = ["expect_tensors", "no_tensor", "of_wrong_kind", "taking_tensors"]

P = ParamSpec("P")
R = TypeVar("R")


def _parts(x: Any) -> Iterator[Any]:
    yield x
    if isinstance(x, (tuple, list)) or isinstance(x, str) and len(x) > 1:
        for part in x:
            yield from _parts(part)


def no_tensor(name: str, error: AttributeError, given: Iterable[tuple[str, Any]]) -> Exception:
    """The TypeError of the argument that is not a Tensor and lacks an attribute of tensors; if there is none, the error itself."""
    given = list(given)
    for place, (word, x) in enumerate(given):
        for item in _parts(x):
            if not isinstance(item, Tensor) and (item is error.obj or getattr(item, "dtype", x) is error.obj):
                return TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {type(item).__name__}")
    if not any(isinstance(item, Tensor) for _, x in given for item in _parts(x)):
        return TypeError(f"{name}() {GOT} ({', '.join(type(x).__name__ for _, x in given)}): {error}")
    return error


OF_PYTHON = re.compile(  # what Python and NumPy say of an object that an operation of theirs cannot use
    r"not supported between instances|unsupported operand type|object cannot be interpreted|bad operand type|is not (iterable|callable|subscriptable)"
    r"|has no len|scalar arrays can be converted|indices must be integers|can't multiply sequence|ufunc|UFunc|must be real number|cannot unpack|"
    r"argument must be a string|unhashable type|can only concatenate|not a real number|must be a sequence")
GOT = "received an invalid combination of arguments - got"


def of_wrong_kind(name: str, error: TypeError, given: Iterable[Any]) -> TypeError:
    """The error of arguments of a kind that a function cannot use, with its name and their kinds; another error as it is."""
    if GOT in str(error) or not OF_PYTHON.search(str(error)):
        return error
    return TypeError(f"{name}() {GOT} ({', '.join(type(x).__name__ for x in given)}): {error}")


def expect_tensors(name: str, **given: Any) -> None:
    """Raise TypeError for the first argument that is not a Tensor."""
    for place, (word, x) in enumerate(given.items()):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {type(x).__name__}")


def taking_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises TypeError with the name of an argument in the place of a tensor that is none, or with the kinds of all.

    >>> taking_tensors(lambda input: input.numel())(2)
    Traceback (most recent call last):
    TypeError: <lambda>(): argument 'input' (position 1) must be Tensor, not int
    """
    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            found: Exception = no_tensor(function.__name__, error, inspect.signature(function).bind(*args, **kwargs).arguments.items())
            if found is error:
                raise
            raise found from None
        except TypeError as error:
            found = of_wrong_kind(function.__name__, error, (*args, *kwargs.values()))
            if found is error:
                raise
            raise found from None

    return checked
