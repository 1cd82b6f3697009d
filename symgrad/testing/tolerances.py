"""The error allowed, in units in the last place (ULP) of a dtype, times the condition of the point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DEFAULT", "allowed", "finfo"]

DEFAULT = {"float64": 1000.0, "float32": 256.0, "float16": 32.0, "bfloat16": 32.0, "complex128": 1000.0, "complex64": 256.0}


def allowed(claimed: float | Mapping[str, Any] | None, dtype: Any, order: int) -> float:
    """The ULP that are allowed for a derivative of an order: as claimed for the dtype (a number, or one per order), else the default.

    >>> allowed(None, "float64", 1), allowed(8, "float64", 2), allowed({"float64": (8, 8, 64, 512)}, "float64", 3)
    (1000.0, 8.0, 512.0)
    """
    name = np.dtype(dtype).name
    found = claimed.get(name) if isinstance(claimed, Mapping) else claimed
    if found is None:
        return DEFAULT[name]
    return float(found[min(order, len(found) - 1)]) if isinstance(found, (tuple, list)) else float(found)


def finfo(dtype: Any) -> Any:
    """The limits of a floating-point type, NumPy's or ml_dtypes'."""
    return ml_dtypes.finfo(dtype)
