"""Simplifying a refuting point: few digits, small integers, zeros where nothing depends on a coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

__all__ = ["shrunk", "simplicity"]


def simplicity(x: float) -> tuple[int, float, bool]:
    """A sort key, simplest first: 0, then small integers, then few digits; positive before negative.

    >>> sorted([0.3, -1.0, 2.0, 0.0, 1.0, 0.25], key=simplicity)
    [0.0, 1.0, -1.0, 2.0, 0.3, 0.25]
    """
    digits = 0 if float(x).is_integer() and abs(x) < 1e6 else len(repr(abs(float(x))).strip("0").replace(".", ""))
    return digits, abs(x), x < 0


def _simpler(x: float) -> Iterator[float]:
    """Candidates in place of a number, simplest first."""
    integers = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 5.0, -5.0, 10.0, -10.0]
    near = [float(math.trunc(x)), float(math.floor(x)), float(math.ceil(x))] if abs(x) < 1e15 else []
    rounded = [float(f"{x:.{k}g}") for k in (1, 2, 3)]
    halves = [float(math.trunc(x / 2)), x / 2] if abs(x) > 1 else []
    seen = set()
    for candidate in sorted([*integers, *near, *rounded, *halves, 0.5, -0.5, 0.1, -0.1], key=simplicity):
        if simplicity(candidate) < simplicity(x) and candidate not in seen:
            seen.add(candidate)
            yield candidate


def _weight(vector: np.ndarray) -> tuple[float, ...]:
    """The simplicity of all coordinates together."""
    return tuple(map(sum, zip(*(simplicity(float(x)) for x in vector))))


def shrunk(vector: np.ndarray, refutes: Callable[[np.ndarray], bool], limit: int = 300) -> np.ndarray:
    """The simplest point found that still refutes: all coordinates at once, then each alone, until none can be simplified.

    `refutes` is called at most `limit` times.

    >>> shrunk(np.array([3.7, -8.125]), lambda v: v[1] < -1)
    array([ 0., -2.])
    """
    best, tries = vector.copy(), 0
    tried: set[bytes] = {best.tobytes()}

    def accepted(candidate: np.ndarray) -> bool:
        nonlocal tries, best
        if candidate.tobytes() in tried or tries >= limit or _weight(candidate) >= _weight(best):
            return False
        tried.add(candidate.tobytes())
        tries += 1
        if not refutes(candidate):
            return False
        best = candidate
        return True

    for value in (0.0, 1.0, -1.0, 2.0, -2.0):
        if accepted(np.full(best.shape, value)):
            break
    else:
        for round_to in (np.round, lambda v: np.round(v, 1)):
            if accepted(np.asarray(round_to(best))):
                break
    improved = True
    while improved and tries < limit:
        improved = False
        for i in range(best.size):
            for candidate in _simpler(float(best[i])):
                moved = best.copy()
                moved[i] = candidate
                if accepted(moved):
                    improved = True
                    break
    return best
