"""The refusal of arguments of a wrong kind, in torch's words and without a check before each call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.errors import kind_name

__all__ = ["expect_tensors", "misfit", "no_tensor", "not_unpacked", "of_wrong_kind", "taking_tensors"]

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
                return TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {kind_name(item)}")
    if not any(isinstance(item, Tensor) for _, x in given for item in _parts(x)):
        return TypeError(f"{name}() {GOT} ({', '.join(kind_name(x) for _, x in given)}): {error}")
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
    return TypeError(f"{name}() {GOT} ({', '.join(map(kind_name, given))}): {error}")


def expect_tensors(name: str, **given: Any) -> None:
    """Raise TypeError for the first argument that is not a Tensor."""
    for place, (word, x) in enumerate(given.items()):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument '{word}' (position {place + 1}) must be Tensor, not {kind_name(x)}")


def not_unpacked(name: str, word: str, at: int, x: Any) -> TypeError:
    """Torch's error for an element of a sequence of sizes after the first."""
    return TypeError(f"{name}(): argument '{word}' failed to unpack the object at pos {at + 1} with error \"type must be tuple of ints,but got "
                     f"{kind_name(x)}\": {x!r} is no size")


def _whole(x: Any) -> bool:
    """Whether an argument can be an integer: no bool, and of tensors one of integers without dimensions."""
    if isinstance(x, Tensor):
        return not x.ndim and not x.requires_grad and x._value.dtype.kind in "iu"
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_)) and not isinstance(x, np.ndarray)


FITS: dict[str, Callable[[Any], bool]] = {  # the annotations that are checked
    "None": lambda x: x is None,
    "Tensor": lambda x: isinstance(x, Tensor),
    "int": _whole,
    "float": lambda x: isinstance(x, (int, float, np.floating, np.integer)) or isinstance(x, Tensor) and not x.ndim and not x.requires_grad,
    "bool": lambda x: isinstance(x, (bool, np.bool_)),
    "str": lambda x: isinstance(x, str),
    "Sequence[int]": lambda x: isinstance(x, (tuple, list)) and all(map(_whole, x)),
}
FITS["Sizes"] = lambda x: _whole(x) or FITS["Sequence[int]"](x)
UNNUMBERED = re.compile(  # functions that are built in in torch, where only arguments without a name have a number
    "conv|avg_pool|adaptive_avg_pool1d|pixel_|channel_|cosine_similarity|pairwise|scaled_dot|gelu|softplus|prelu|bilinear|linear$")


def misfit(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> TypeError | None:
    """Torch's error for the first argument that is not of the kind that the annotation of its parameter states.

    The position of an argument that was given by its name is left out where the function is one of torch's built-in ones.
    """
    signature, name = inspect.signature(function), function.__name__
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for place, (word, parameter) in enumerate(signature.parameters.items()):
        kinds = str(parameter.annotation).split(" | ")
        if word not in given or kinds[0] == "str" or not FITS.keys() >= set(kinds) or any(FITS[kind](given[word]) for kind in kinds):
            continue
        x = given[word]
        if "Sizes" in kinds and "str" in kinds or name.startswith("conv") and name[4:5].isdigit():  # several signatures in torch
            break
        wanted = "tuple of ints" if kinds[0] == "Sizes" or "Sequence[int]" in kinds else kinds[0]
        found = f"not {kind_name(x)}"
        if wanted == "tuple of ints" and isinstance(x, (tuple, list)):
            at = next(i for i, item in enumerate(x) if not _whole(item))
            if at:
                return not_unpacked(name, word, at, x[at])
            found = f"but found element of type {kind_name(x[at])} at pos {at}"
        numbered = place < len(args) or not UNNUMBERED.match(name)
        tracked = "float" in kinds and isinstance(x, Tensor) and x.requires_grad and not x.ndim
        remedy = f"; it requires grad, and there is no derivative by it: pass {word}.detach() or {word}.item()" * tracked
        return TypeError(f"{name}(): argument '{word}'{f' (position {place + 1})' * numbered} must be {wanted}, {found}{remedy}")
    else:
        return None
    kinds = [*map(kind_name, args), *(f"{word}={kind_name(kwargs[word])}" for word in sorted(kwargs))]
    return TypeError(f"{name}() {GOT} ({', '.join(kinds)}), but expected one of:\n * {name}{signature}")


def taking_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises torch's TypeError if it fails and an argument is not of the kind that the annotation of its parameter states.

    What is annotated as a tensor may be an array where the function computes with one; nothing is checked before a call.

    >>> def count(input: Tensor) -> int: return input.numel()
    >>> taking_tensors(count)(2)
    Traceback (most recent call last):
    TypeError: count(): argument 'input' (position 1) must be Tensor, not int
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
                found = of_wrong_kind(function.__name__, error, (*args, *kwargs.values()))
            if found is None or found is error:
                raise
            raise found from None

    return checked
