"""What modules of other devices than the CPU are made of: functions that answer a query, and functions that need the device and refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["answers", "refusals"]


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def answers(value: Any, doc: str, *names: str) -> dict[str, Callable[..., Any]]:
    """Functions of these names that return a value for any arguments, a new list if it is one.

    >>> answers(False, "Whether it is there: False.", "is_available")["is_available"]()
    False
    """
    return {name: _named(lambda *args, **kwargs: [*value] if isinstance(value, list) else value, name, doc) for name in names}


def refusals(error: Callable[[], Exception], *names: str) -> dict[str, Callable[..., Any]]:
    """Functions of these names that raise an error for any arguments.

    >>> refusals(lambda: RuntimeError("there is no such device"), "synchronize")["synchronize"]()
    Traceback (most recent call last):
        ...
    RuntimeError: there is no such device
    """
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error()

    doc = f"Needs another device.\n\nRaises {type(error()).__name__}, as torch without it does."
    return {name: _named(lambda *args, **kwargs: refuse(), name, doc) for name in names}
