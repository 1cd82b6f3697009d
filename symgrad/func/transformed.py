"""Functions that transforms make of other functions: named like these, methods in a class, and picklable."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

__all__ = ["Transformed", "own_name", "transform"]

T = TypeVar("T", bound=Callable[..., Any])


class Transformed:
    """The function that a transform makes of another one, with the name and the documentation of that one.

    A decorated function is pickled by its name. Any other is pickled as the call of the transform, so that its arguments must be picklable.
    """

    def __init__(self, transform: Callable[..., Any], func: Callable[..., Any], settings: tuple[Any, ...] = (),
                 words: Mapping[str, Any] = types.MappingProxyType({}), body: Callable[..., Any] | None = None):
        functools.update_wrapper(self, func)
        self._transform, self._settings = transform, (func, settings, dict(words))
        self._body: Any = body  # None where a subclass computes the result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._body(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        func, settings, words = self._settings
        return own_name(self) or (functools.partial(self._transform, **words), (func, *settings))

    def __repr__(self) -> str:
        func = self._settings[0]
        return f"<{self._transform.__name__} of {getattr(func, '__qualname__', type(func).__name__)}>"


def own_name(x: Any) -> str | None:
    """The qualified name of an object, if its module has it under that name, as it has a decorated function; then pickle needs no more."""
    name = getattr(x, "__qualname__", None) or ""
    found: Any = sys.modules.get(getattr(x, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is x else None


def transform(make: T) -> T:
    """Decorate a transform: what it returns for a function becomes a `Transformed` of that function."""
    @functools.wraps(make)
    def transforming(func: Callable[..., Any], *settings: Any, **words: Any) -> Transformed:
        return Transformed(transforming, func, settings, words, make(func, *settings, **words))

    return cast(T, transforming)
