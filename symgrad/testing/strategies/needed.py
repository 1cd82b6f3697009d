"""Hypothesis, which is an extra: imported when something is drawn."""

from __future__ import annotations

from typing import Any

__all__ = ["hypothesis_needed"]


def hypothesis_needed() -> Any:
    """The package hypothesis, with its strategies. Raises ImportError, which names the extra, where it is not installed."""
    try:
        import hypothesis
        import hypothesis.strategies
    except ImportError as error:
        raise ImportError("symgrad.testing draws its examples with hypothesis: pip install 'symgrad[testing]'") from error
    return hypothesis
