"""Names of derivatives in reports."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["label"]


def label(order: int, index: Sequence[int], names: Sequence[str], directional: bool = False) -> str:
    """A derivative's name in plain letters, such as f, df/dx or d2f/dx dy.

    >>> label(2, (0, 1), ["x", "y"])
    'd2f/dx dy'
    """
    if order == 0:
        return "f"
    by = " ".join("d" + names[i] for i in index) + (" du" * (order - 1) if directional else "")
    return f"d{order if order > 1 else ''}f/{by}"
