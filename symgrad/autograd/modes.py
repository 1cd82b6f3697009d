"""Whether operations are recorded: torch's modes, each a context manager and a decorator, each of one thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from symgrad.graph import mode, record

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


class _Switch:
    """Sets the modes of the thread on entry and puts them back on exit."""

    enabled: bool
    inference: bool | None = None

    def __enter__(self) -> None:
        if not hasattr(self, "_before"):
            self._before: list[tuple[bool, bool]] = []
        self._before.append((mode.grad, mode.inference))
        self._set()

    def _set(self) -> None:
        if self.inference is not None:
            mode.inference = self.inference
        record(self.enabled and not mode.inference)

    def __exit__(self, *exception: Any) -> None:
        enabled, mode.inference = self._before.pop()
        record(enabled)

    def _again(self) -> _Switch:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            raise TypeError(f"{type(self).__name__}: a generator function runs in pieces; use the context manager inside it")

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


class no_grad(_Switch):
    """Nothing inside is recorded: no graph and no expression.

    >>> import symgrad
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> with symgrad.no_grad():
    ...     (2 * x).requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(no_grad):
    """Operations inside are recorded, also within `no_grad`."""

    enabled = True


class set_grad_enabled(_Switch):
    """Record, or do not; takes effect at once and, as a context manager, until its end."""

    def __init__(self, mode: bool):
        self.enabled = bool(mode)
        self._before = [_now()]
        self._set()

    def __enter__(self) -> None:
        self._set()

    def __call__(self, function: F) -> F:
        enabled, mode.inference = self._before.pop()
        record(enabled)
        return super().__call__(function)

    def _again(self) -> _Switch:
        return set_grad_enabled(self.enabled)


class inference_mode(_Switch):
    """As `no_grad`, for code whose results never meet a graph; `enable_grad` inside it records nothing."""

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.enabled, self.inference = False, True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self.enabled, self.inference = not mode, bool(mode)

    def _again(self) -> _Switch:
        return inference_mode(bool(self.inference))


def _now() -> tuple[bool, bool]:
    return mode.grad, mode.inference


def is_grad_enabled() -> bool:
    """Whether this thread records operations."""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return mode.inference
