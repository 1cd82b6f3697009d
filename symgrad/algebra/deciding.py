"""Whether a difference is literally zero."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import sympy

from symgrad.algebra.limits import OutOfTime, limited, stoppable

__all__ = ["vanishes"]


def vanishes(a: Any, b: Any, ranges: Mapping[Any, Any], deadline: float) -> bool:
    """Whether a - b reduces to a literal 0 before the deadline."""
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        return bool(a == b)
    difference = a - b
    if difference == 0:
        return True
    if not stoppable() and difference.count_ops() > 100:
        return False
    try:
        with limited(max(deadline - time.monotonic(), 0.01)):
            for method in (sympy.expand, sympy.cancel, sympy.simplify):
                if method(difference) == 0:
                    return True
    except (OutOfTime, NotImplementedError, sympy.PolynomialError, RecursionError, TypeError, ValueError, ZeroDivisionError, AttributeError):
        pass
    return False
