"""The optional package hypothesis, and the reader of shapes given to strategies."""

from __future__ import annotations

import numbers
from typing import Any

__all__ = ["read_shape", "require_hypothesis"]


def require_hypothesis() -> Any:
    """The package hypothesis with its strategies. Raises ImportError, which names the extra, if it is not installed."""
    try:
        import hypothesis
        import hypothesis.strategies
    except ImportError as error:
        raise ImportError("symgrad.testing draws its examples with hypothesis: pip install 'symgrad[testing]'") from error
    return hypothesis


def read_shape(given: Any) -> Any:
    """A shape (a number is one axis), or a strategy of shapes, unchanged. Raises TypeError for other values, ValueError for negative sides.

    >>> read_shape(3), read_shape([2, 0])
    ((3,), (2, 0))
    """
    if hasattr(given, "flatmap"):
        return given
    sides = (given,) if isinstance(given, numbers.Integral) else given
    if not isinstance(sides, (tuple, list)) or not all(isinstance(n, numbers.Integral) for n in sides):
        raise TypeError(f"a shape is {given!r}; expected a tuple such as (2, 3), a number, or a strategy of shapes")
    if any(int(n) < 0 for n in sides):
        raise ValueError(f"a shape is {given!r}, with a negative side")
    return tuple(int(n) for n in sides)
