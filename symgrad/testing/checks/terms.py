"""The size of the terms that a number is computed from, by perturbation of an op's inputs and of its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers.digits import working_precision
from symgrad.frameworks.adapter import Adapter, is_active

__all__ = ["changes", "read", "sizes_of_terms"]

PARTS = {True: (2.0**-36, 2.0**-44), False: (2.0**-20, 2.0**-26)}  # by which inputs change, if the op is followed and if not
DIGITS, DRAWS = 60, 3
STEEP, JUMP = 1e3, 16  # how large a change is that may be a jump, and by how much the change of a smaller part is then larger
STEP, ORDER = 2.0**-16, 8  # of differences: what is smooth vanishes in them, and rounding changes from step to step
Arrays = Sequence[np.ndarray]


def sizes_of_terms(subject: Adapter, inputs: Arrays, count: int, wrt: int | None) -> np.ndarray:
    """How much each number of a value, or of a gradient, changes when the inputs and the results of the op's steps do, divided by their change.

    The inputs are `count` arguments, with a cotangent for a gradient. A number may depend little on them and yet be the difference of large terms,
    as 1 - (1 - x**2)**3 is near 0. Terms inside a step, and those of an op that cannot be followed, show in the rounding of float64.
    """
    try:
        found = changes(subject, inputs, count, wrt, True)
    except Exception:  # NoShadow, and whatever numbers with many digits make a user's function raise
        found = changes(subject, inputs, count, wrt, False)
    return np.asarray(np.maximum(found, _rounding(subject, inputs, count, wrt)))


def changes(subject: Adapter, inputs: Arrays, count: int, wrt: int | None, followed: bool = True) -> np.ndarray:
    """The largest of several changes of each number, divided by that of the inputs, and of the steps of an op that is followed.

    What does not shrink with that of the inputs is a jump at the point itself, and does not count.
    """
    base, out = read(subject, inputs, count, wrt, followed), 0.0

    def size(part: float, seed: int) -> np.ndarray:
        return np.abs(np.asarray(read(subject, _moved(inputs, part, seed), count, wrt, followed, part, seed) - base, np.float64)) / part

    large, small = PARTS[followed]
    for seed in range(DRAWS):
        found = size(large, seed)
        if np.any(found > STEEP * np.max(np.abs(np.asarray(base, np.float64)), initial=0.0)):
            found = np.where(size(small, seed) > JUMP * found, 0.0, found)
        out = np.maximum(out, found)
    return np.asarray(out)


def _moved(inputs: Arrays, part: float, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return [x * (1 + part * rng.uniform(-1, 1, x.shape)) if is_active(x) else x for x in inputs]


def _rounding(subject: Adapter, inputs: Arrays, count: int, wrt: int | None) -> np.ndarray:
    """The rounding of each number in float64, by what is left of it in higher differences.

    The smaller one of the two sides: a kink on one side of a number is no rounding.
    """
    sides = []
    for sign in (1, -1):
        near = [[x * (1 + sign * STEP * k * (1 + np.sin(1e3 * x) / 2)) if is_active(x) else x for x in inputs]  # equal numbers change alike
                for k in range(1, 2 * ORDER + 1)]
        sides.append(np.max(np.abs(np.diff([read(subject, at, count, wrt) for at in near], ORDER, 0)), axis=0))
    return np.asarray(np.nan_to_num(np.fmin(*sides)) / math.comb(2 * ORDER, ORDER) ** 0.5 / 2.0**-52)


def read(subject: Adapter, inputs: Arrays, count: int, wrt: int | None, followed: bool = False, part: float = 0.0, seed: int = 0) -> Any:
    """The value, or the gradient by one argument; in many digits if the op is followed, whose steps then change by a part."""
    xs = [x.copy() for x in inputs[:count]]
    if followed:
        with working_precision(DIGITS), subject.following(part, seed):
            found: Any = next(iter(subject.derivatives(xs, np.ones_like, (), ()))) if wrt is None else subject.gradient(xs, inputs[-1])[wrt]
            return found.view(np.ndarray)
    return np.asarray(subject.value(xs) if wrt is None else subject.gradient(xs, inputs[-1])[wrt], np.float64)
