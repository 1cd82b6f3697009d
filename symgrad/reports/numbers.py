"""Numbers, points and expressions as reports write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["at", "first_line", "label", "message_of", "number", "pair", "short", "ulp_text"]

WIDE = 72  # characters of a formula that a line shows


def number(x: Any) -> str:
    """A number with ten digits, an array in brackets."""
    if isinstance(x, np.ndarray) and x.ndim:
        return np.array2string(x + 0.0, precision=6, threshold=8, separator=", ", max_line_width=10_000).replace("\n", "")
    return f"{float(x) + 0.0:.10g}"


def pair(value: float, truth: float) -> tuple[str, str]:
    """Two numbers with eight digits, or with as many as it takes to see that they differ.

    >>> pair(1.0, 1.5), pair(1.0, 1.0 + 1e-14)
    (('1', '1.5'), ('1', '1.00000000000001'))
    """
    both = [(f"{value + 0.0:.{digits}g}", f"{truth + 0.0:.{digits}g}") for digits in range(8, 18)]
    return next((texts for texts in both if texts[0] != texts[1]), both[0])


def at(point: Mapping[str, Any], shown: int = 8) -> str:
    """A point in one line, with its first coordinates."""
    texts = [f"{name} = {number(np.asarray(v))}" for name, v in list(point.items())[:shown]]
    return ", ".join(texts + ["..."] * (len(point) > shown))


def ulp_text(ulp: float) -> str:
    """An error in units in the last place, with three digits.

    >>> ulp_text(1e-20), ulp_text(0.5), ulp_text(3.1e6), ulp_text(float("inf"))
    ('0', '0.5', '3.1e+06', 'not finite')
    """
    if not np.isfinite(ulp):
        return "not finite"
    return "0" if ulp < 0.005 else f"{ulp:.0f}" if 100 <= ulp < 1e5 else f"{ulp:.3g}"


def short(e: Any) -> str:
    """An expression as text that fits in a line."""
    return _cut(str(e), WIDE)


def first_line(text: Any, longest: int = 120) -> str:
    """The first line of a text or of an error's message, cut where it is very long."""
    return _cut(str(text).strip().partition("\n")[0], longest)


def message_of(error: BaseException) -> str:
    """The type and the message of an error; the type alone if the message raises an exception itself."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException:
        return type(error).__name__


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest - 2].rstrip() + " …"


def label(order: int, index: Sequence[int], names: Sequence[str], directional: bool = False) -> str:
    """A derivative's name in plain letters, such as f, df/dx or d2f/dx dy.

    >>> label(2, (0, 1), ["x", "y"])
    'd2f/dx dy'
    """
    if order == 0:
        return "f"
    by = " ".join("d" + names[i] for i in index) + (" du" * (order - 1) if directional else "")
    return f"d{order if order > 1 else ''}f/{by}"
