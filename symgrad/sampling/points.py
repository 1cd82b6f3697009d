"""Points of a check: near the given one, far from it, and special ones. They are constructed and never filtered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream

__all__ = ["Point", "as_point", "direction", "flat", "random_points", "special_points"]

SPECIAL = (0.0, 1.0, -1.0, 20.0, -20.0)
Point = list[np.ndarray]


def as_point(point: Sequence[np.ndarray], vector: np.ndarray) -> Point:
    """A flat vector in the shapes and dtypes of a point."""
    out, at = [], 0
    for value in point:
        out.append(vector[at:at + value.size].reshape(value.shape).astype(value.dtype))
        at += value.size
    return out


def flat(point: Sequence[np.ndarray]) -> np.ndarray:
    """A point as one vector."""
    return np.concatenate([np.ravel(v).astype(np.float64) for v in point])


def random_points(point: Sequence[np.ndarray], rng: np.random.Generator) -> Iterator[Point]:
    """An endless sequence of points, alternately near the given one, with its signs and other magnitudes, and anywhere among short numbers.

    A short number is a multiple of 1/8 up to 9. Near points keep the function in its domain; the others reach its other branches.
    Where a coordinate is 0, its magnitude counts as 1.
    """
    base = flat(point)
    size = np.where(base == 0, 1.0, np.abs(base))
    while True:
        sign = np.where(base == 0, rng.choice([-1.0, 1.0], base.size), np.sign(base))
        yield as_point(point, base + size * rng.uniform(-0.3, 0.3, base.size))
        yield as_point(point, rng.integers(-72, 73, base.size) / 8)
        yield as_point(point, sign * size * np.exp(rng.uniform(-1.5, 1.5, base.size)))
        yield as_point(point, sign * size * np.exp(rng.uniform(-2.0, 2.0)))


def special_points(point: Sequence[np.ndarray], run: Any, limit: int = 24) -> list[Point]:
    """Edges: all inputs at 0, 1, -1 and ±20, each input at the special values of the ops it goes into, and 0 for each input by itself."""
    base = flat(point)
    vectors = [np.full(base.size, value) for value in SPECIAL]
    for i, value in _special_inputs(run):
        moved = base.copy()
        moved[i] = value
        vectors.append(moved)
    for k in range(min(base.size, limit // 2)):
        moved = base.copy()
        moved[k] = 0.0
        vectors.append(moved)
    unique = {v.tobytes(): v for v in vectors if v.tobytes() != base.tobytes()}
    return [as_point(point, v) for v in list(unique.values())[:limit]]


def _special_inputs(run: Any) -> Iterator[tuple[slice, float]]:
    """Each leaf's place in the flat vector with each special value of an op that takes it directly."""
    places: dict[Any, slice] = {}
    at = 0
    for leaf in run.nodes:
        places[leaf] = slice(at, at + leaf.value.size)
        at += leaf.value.size
    for node in upstream([run.root]):
        if isinstance(node, Leaf):
            continue
        for i, p in enumerate(node.parents):
            if p in places:
                for values in node.op.special:
                    if i < len(values):
                        yield places[p], values[i]


def direction(size: int, rng: np.random.Generator) -> np.ndarray:
    """A direction of small nonzero integers, so that no term vanishes and nothing is rounded; for one input, 1."""
    return np.ones(1) if size == 1 else rng.integers(1, 4, size) * rng.choice([-1.0, 1.0], size)
