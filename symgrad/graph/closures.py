"""What makes the functions of the hot path fast: closures that the interpreter specializes one by one, and new objects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def specialized(function: F) -> F:
    """The function, with a copy of its code.

    The interpreter specializes the instructions of a code object for the types that they meet. The closures of one definition share their code,
    so that each meets the types of all the others, and nothing is specialized.
    """
    function.__code__ = function.__code__.replace()
    return function


def blanks(cls: type[T]) -> Iterator[T]:
    """New instances of a class, without attributes: `next` of it is object.__new__(cls), without the tuple that a call makes of its arguments."""
    return itertools.starmap(object.__new__, itertools.repeat((cls,)))
