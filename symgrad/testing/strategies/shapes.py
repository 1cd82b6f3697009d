"""Shapes of arrays, and shapes that broadcast with each other."""

from __future__ import annotations

from typing import Any

from symgrad.testing.strategies.needed import require_hypothesis

__all__ = ["broadcastable_shapes", "shapes"]

Shape = tuple[int, ...]


def shapes(max_dims: int = 3, max_side: int = 3, *, min_dims: int = 0, min_side: int = 1) -> Any:
    """A strategy for shapes; with `min_side` 0 also those of empty arrays. They shrink to few dimensions of small sides.

    Raises ValueError for bounds that no shape fulfils, ImportError if hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(shapes(), lambda shape: len(shape) > 1)
    (1, 1)
    """
    st = require_hypothesis().strategies
    for what, low, high in (("dims", min_dims, max_dims), ("side", min_side, max_side)):
        if not 0 <= low <= high:
            raise ValueError(f"shapes: min_{what} is {low} and max_{what} is {high}; expected 0 <= min_{what} <= max_{what}")
    return st.integers(min_dims, max_dims).flatmap(lambda dims: st.tuples(*[st.integers(min_side, max_side)] * dims))


def broadcastable_shapes(count: int = 2, max_dims: int = 3, max_side: int = 3, *, min_side: int = 1) -> Any:
    """A strategy for tuples of shapes that broadcast: some without their leading axes, some with sides of 1, some ().

    With `min_side` 0 there are empty ones. They shrink to (), and where shapes must differ, to few dimensions of small sides.

    Raises ImportError where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(broadcastable_shapes(), lambda found: found[0] != found[1])
    ((), (1,))
    """
    st = require_hypothesis().strategies

    def one(common: Shape) -> Any:
        sides = st.tuples(*(st.sampled_from((1, side)) for side in common))
        return st.tuples(st.integers(0, 2 * len(common)), sides).map(lambda drawn: drawn[1][max(len(common) - drawn[0], 0):])

    return shapes(max_dims, max_side, min_side=min_side).flatmap(lambda common: st.tuples(*[one(common)] * count))
