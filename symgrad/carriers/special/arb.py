"""Arb's numbers of many digits, by python-flint where it is installed."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def arb_module() -> Any:
    """The module `flint`, or None."""
    try:
        import flint
    except ImportError:
        return None
    return flint
