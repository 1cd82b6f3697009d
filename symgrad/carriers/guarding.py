"""Guarded passes: 0 · ∞ is 0 in a graph with an op that selects elements, such as `where`.

Such an op has derivative 0 by the elements that it does not select, even if they are infinite or NaN. So in a pass over a graph with such an op
0 · ∞ is 0, if 0 is a derivative of the outputs by a value, and ∞ or NaN a derivative of that value. The 0 is the cotangent in a pullback, and the
next factor in a pushforward.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.batched import raw

__all__ = ["guarded_product", "has_nan"]


def guarded_product(xp: Any, x: Any, factor: Any) -> Any:
    """The product of a tangent and a derivative, which is 0 where the derivative is 0."""
    out = x * factor
    if not has_nan(xp, out):
        return out
    return xp.where(xp.logical_and(xp.eq(factor, 0), xp.isnan(out)), xp.zeros_like(out), out)


def has_nan(xp: Any, x: Any) -> bool:
    """Whether some element of a value of a carrier is NaN."""
    value = raw(getattr(x, "_value", getattr(x, "value", x)))
    return xp.any(xp.isnan(x)).item() if value.dtype.kind == "O" else np.isnan(value).any()
