"""Closures that the interpreter specializes one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["specialized"]

F = TypeVar("F", bound=Callable[..., Any])


def specialized(function: F) -> F:
    """The function, with a copy of its code.

    The interpreter specializes the instructions of a code object for the types that they meet. The closures of one definition share their code,
    so that each meets the types of all the others, and nothing is specialized.
    """
    function.__code__ = function.__code__.replace()
    return function
