"""Derivatives by finite differences, with a bound of their error: for functions without a derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["differences"]

RATIO, STEPS = 3.0, 9
EPSILON = 2.0**-52


def differences(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, room: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of a function of a vector by each coordinate, along a new first axis, and bounds of their errors.

    Central differences at shrinking steps, extrapolated to the step 0 (Ridders 1982); of all extrapolations the one that moves least
    is taken. The bound is by how much it moved, or what rounding of the values can do to it, whichever is larger; infinite where the two
    one-sided quotients do not come together, as at a kink, or where a value is not finite. No step goes farther than `room` in a coordinate.

    >>> found, bound = differences(lambda x: np.sin(x[0]), np.array([1.0]))
    >>> bool(abs(found[0] - np.cos(1.0)) <= bound[0] <= 1e-11)
    True
    """
    base = np.asarray(function(x), dtype=np.float64)
    found, bounds = [], []
    for i in range(x.size):
        largest = 0.1 * max(abs(float(x[i])), 0.1)
        if room is not None:
            largest = min(largest, float(room[i]))
        if not largest > 0:
            found.append(np.full(base.shape, np.nan))
            bounds.append(np.full(base.shape, np.inf))
            continue
        estimate, bound = _one(function, x, i, largest, base)
        found.append(estimate)
        bounds.append(bound)
    return np.array(found), np.array(bounds)


def _one(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, i: int, largest: float, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    best, bound = np.full(base.shape, np.nan), np.full(base.shape, np.inf)
    row: list[np.ndarray] = []
    gaps = []
    for k in range(STEPS):
        up, down = x.copy(), x.copy()
        up[i], down[i] = x[i] + largest * RATIO**-k, x[i] - largest * RATIO**-k
        above, below = (np.asarray(function(v), dtype=np.float64) for v in (up, down))
        h = (up[i] - down[i]) / 2
        noise = 4 * EPSILON * np.maximum(np.maximum(np.abs(above), np.abs(below)), np.abs(base)) / h
        new = [(above - below) / (up[i] - down[i])]
        gaps.append((np.abs((above - base) / (up[i] - x[i]) - (base - below) / (x[i] - down[i])), noise))
        factor = 1.0
        for j, previous in enumerate(row):
            factor *= RATIO**2
            new.append(new[j] + (new[j] - previous) / (factor - 1))
            moved = np.maximum(np.abs(new[j + 1] - new[j]), np.abs(new[j + 1] - previous)) + noise
            better = moved < bound
            best, bound = np.where(better, new[j + 1], best), np.where(better, moved, bound)
        row = new
    (first, _), (last, noise) = gaps[1], gaps[-1]
    kink = (last > 0.2 * first) & (last > 100 * noise)
    return best, np.where(kink | ~np.isfinite(best), np.inf, bound)
