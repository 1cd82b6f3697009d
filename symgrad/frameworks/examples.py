"""The inputs of a function: those attached by a decorator, and those of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

__all__ = ["as_inputs", "example", "examples_of"]

F = TypeVar("F", bound=Callable[..., Any])


def example(*inputs: Any, **named: Any) -> Callable[[F], F]:
    """Declare, as a decorator, the inputs with which `check` and the command line check a function.

    Raises TypeError for inputs that the function does not take.

    >>> import symgrad
    >>> @symgrad.example(x=1.0, y=[1.0, 2.0])
    ... def energy(x, y):
    ...     return (x * y).sum()
    >>> symgrad.check(energy).verdict
    'proved'
    """
    def mark(function: F) -> F:
        try:
            bound = inspect.signature(function).bind(*inputs, **named)
        except TypeError as error:
            raise TypeError(f"example: {getattr(function, '__name__', function)}{inspect.signature(function)}: {error}") from None
        function.symgrad_example = {**_by_name(bound)}  # type: ignore[attr-defined]
        return function

    return mark


def _by_name(bound: Any) -> dict[str, Any]:
    """Bound arguments by name; those of *args cannot be named, so they are refused."""
    out: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind in (kind.VAR_POSITIONAL, kind.POSITIONAL_ONLY):
            raise TypeError(f"example: the inputs of a function with *{name} or positional-only parameters have no names to keep; pass them to check")
        out.update(value if kind is kind.VAR_KEYWORD else {name: value})
    return out


def examples_of(function: Any) -> dict[str, Any] | None:
    """The inputs a function carries by `@symgrad.example`, or the first of a tuple of functions; None if it carries none."""
    return getattr(function[0] if isinstance(function, tuple) and function else function, "symgrad_example", None)


def as_inputs(inputs: Any) -> Sequence[Any] | Mapping[str, Any]:
    """The inputs of a function as a sequence or by name; a single number, array or list of numbers is one input."""
    if inputs is None:
        return ()
    return inputs if isinstance(inputs, (tuple, Mapping)) or isinstance(inputs, list) and any(not isinstance(x, (int, float)) for x in inputs) \
        else (inputs,)
