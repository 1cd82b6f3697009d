"""Checks of an op against itself: the pullback against the pushforward, and what every pullback must obey."""

from __future__ import annotations

import numpy as np

from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check, differentiable
from symgrad.testing.drawing import Example
from symgrad.testing.failure import Wrong

__all__ = ["check_linearity"]

ROUNDINGS = 16


@check("linearity", when=differentiable)
def check_linearity(attack: Attack, example: Example) -> None:
    """The pullback is linear in the cotangent: vjp(2g) = 2 vjp(g), exactly."""
    once = attack.subject.gradient(example.xs, example.cotangent)
    twice = attack.subject.gradient(example.xs, 2 * example.cotangent)
    for i, (a, b) in enumerate(zip(once, twice)):
        if a is not None and b is not None and np.all(np.isfinite(a)) and not np.array_equal(2 * a, b):
            raise Wrong("the pullback of twice the cotangent is not twice the pullback", b, 2 * a, order=1, wrt=(i,))
