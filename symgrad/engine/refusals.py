"""Errors for arguments of a wrong kind, found by the annotations of a function after it failed, without a check before each call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.errors import kind_name

P = ParamSpec("P")
R = TypeVar("R")
NAMED = re.compile(r"[\w.]+(\(\))?: ")  # what begins with the name of a function


def _parts(x: Any) -> Iterator[Any]:
    yield x
    if isinstance(x, (tuple, list)) or isinstance(x, str) and len(x) > 1:
        for part in x:
            yield from _parts(part)


def no_tensor(name: str, error: AttributeError, given: Iterable[tuple[str, Any]]) -> Exception:
    """The TypeError of the argument that is not a Tensor and lacks an attribute of tensors; if there is none, the error itself."""
    given = list(given)
    for word, x in given:
        for item in _parts(x):
            if not isinstance(item, Tensor) and (item is error.obj or getattr(item, "dtype", x) is error.obj):
                return _not_of_kind(name, word, "a Tensor", item)
    if not any(isinstance(item, Tensor) for _, x in given for item in _parts(x)):
        return TypeError(f"{name}: no argument is a Tensor, they are {', '.join(kind_name(x) for _, x in given)}: {error}")
    return error


def named(name: str, error: Exception) -> Exception:
    """An error of Python, of NumPy or of a function inside with the name of the function that was called."""
    kind = next(kind for kind in type(error).__mro__ if not kind.__module__.startswith("numpy"))
    return error if NAMED.match(str(error)) and kind is type(error) else kind(f"{name}: {error}")


def _not_of_kind(name: str, word: str, wanted: str, x: Any) -> TypeError:
    remedy = "; pass x.detach() to take it as a constant" if isinstance(x, Tensor) and x.requires_grad and wanted != "a Tensor" else ""
    return TypeError(f"{name}: {word} must be {wanted}, not {kind_name(x)}{remedy}")


def expect_tensors(name: str, **given: Any) -> None:
    """Raise TypeError for the first argument that is not a Tensor."""
    for word, x in given.items():
        if not isinstance(x, Tensor):
            raise _not_of_kind(name, word, "a Tensor", x)


def _whole(x: Any) -> bool:
    """Whether an argument can be an integer: no bool, and of tensors one of integers without dimensions."""
    if isinstance(x, Tensor):
        return not x.ndim and not x.requires_grad and x._value.dtype.kind in "iu"
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_)) and not isinstance(x, np.ndarray)


FITS: dict[str, tuple[str, Callable[[Any], bool]]] = {  # the annotations that are checked, with their words
    "None": ("None", lambda x: x is None),
    "Tensor": ("a Tensor", lambda x: isinstance(x, Tensor)),
    "int": ("an integer", _whole),
    "float": ("a number that does not require grad",
              lambda x: isinstance(x, (int, float, np.floating, np.integer)) or isinstance(x, Tensor) and not x.ndim and not x.requires_grad),
    "bool": ("a bool", lambda x: isinstance(x, (bool, np.bool_))),
    "str": ("a string", lambda x: isinstance(x, str)),
    "Sequence[int]": ("integers", lambda x: isinstance(x, (tuple, list)) and all(map(_whole, x))),
    "Sizes": ("an integer or a tuple of integers", lambda x: _whole(x) or isinstance(x, (tuple, list)) and all(map(_whole, x))),
}


def misfit(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> TypeError | None:
    """The error of the first argument that is not of the kind that the annotation of its parameter states."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for word, parameter in signature.parameters.items():
        kinds = str(parameter.annotation).split(" | ")
        if word in given and kinds[0] != "str" and FITS.keys() >= set(kinds) and not any(FITS[kind][1](given[word]) for kind in kinds):
            return _not_of_kind(function.__name__, word, " or ".join([FITS[kind][0] for kind in kinds]), given[word])
    return None


def taking_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises TypeError if it fails and an argument is not of the kind that the annotation of its parameter states.

    What is annotated as a tensor may be an array where the function computes with one; nothing is checked before a call.

    >>> def count(input: Tensor) -> int: return input.numel()
    >>> taking_tensors(count)(2)
    Traceback (most recent call last):
    TypeError: count: input must be a Tensor, not int
    """
    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            found: Exception | None = misfit(checked, args, kwargs)
            if found is None and isinstance(error, AttributeError):
                found = no_tensor(function.__name__, error, inspect.signature(function).bind(*args, **kwargs).arguments.items())
            elif found is None and isinstance(error, TypeError):
                found = named(function.__name__, error)
            if found is None or found is error:
                raise
            raise found from None

    return checked
