"""The check of an op at its special points."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.checks.measuring import compare
from symgrad.testing.claimed import special_points
from symgrad.testing.examples import Example, only
from symgrad.testing.failure import Wrong
from symgrad.types.ulp import ulp_of

__all__ = ["check_special"]

BESIDE = 1e-9  # distance of the points next to a kink at which derivatives are taken
DIRECTIONS = 32
STEEP = 1e4


@check("special", draws="special", when=lambda attack: "" if special_points(attack) else "it has no special points")
def check_special(attack: Attack, example: Example) -> None:
    """At every special point value and derivatives up to the second are finite, and the gradient is a valid (sub)gradient.

    It is the gradient claimed with the point; otherwise the reference, if there is one; otherwise it lies between the derivatives on both sides,
    or in the convex hull of the gradients nearby for several arguments. At an end of the domain derivatives may be infinite.

    >>> import symgrad
    >>> check_special(symgrad.relu).verdict
    'passed'
    """
    xs, subject = example.xs, attack.subject
    ones = np.ones(example.cotangent.shape)
    _finite("the value", subject.value(xs), 0)
    if not attack.order:
        return
    gradient = subject.gradient(xs, ones)
    agreed = {tuple(map(float, point)): g for point, g in special_points(attack) if g is not None}
    points = [tuple(map(float, p)) for p in zip(*(np.broadcast_to(x, ones.shape).ravel().tolist() for x in xs))]
    ends = np.array([any(x + s * BESIDE not in d for x, d in zip(p, attack.domains) for s in (1, -1) if x in d) for p in points], bool)
    true = attack.truth.gradient(xs, ones) if attack.truth is not None else [None] * len(xs)
    for place, point in enumerate(points):
        at = tuple(map(int, np.unravel_index(place, ones.shape))) if ones.shape else ()
        got = [0.0 if g is None else float(g[at]) for g in gradient]
        if point in agreed:
            _equal(got, np.ravel(agreed[point]).astype(np.float64).tolist(), at)
        elif attack.elementwise and not ends[place] and any(t is not None and t[at] is None for t in true):
            _between(attack, xs, point, got, at)
    for i, (g, t) in enumerate(zip(gradient, true)):
        if t is not None:
            known = np.array([None if p in agreed else v for p, v in zip(points, t.ravel().tolist())], object).reshape(t.shape)
            compare(attack, "the gradient", g, known, xs, i, ones, wrt=(i,))
    if attack.order > 1:
        for a, x in enumerate(xs):
            if is_active(x):
                for i, second in enumerate(subject.gradient(xs, ones, only([np.ones(x.shape) for x in xs], a))):
                    inner = None if second is None else np.where(ends.reshape(ones.shape), 0.0, np.asarray(second, np.float64))
                    _finite("the second derivative", inner, 2, (a, i))


def _finite(what: str, got: Any, order: int, wrt: tuple[int, ...] = ()) -> None:
    if got is not None and not np.all(np.isfinite(np.asarray(got).astype(np.float64))):
        raise Wrong(f"{what} is not finite at a special point", got, order=order, wrt=wrt)


def _equal(got: list[float], agreed: list[float], at: tuple[int, ...]) -> None:
    for i, (a, b) in enumerate(zip(got, agreed)):
        if not (a == b or ulp_of("float64").error(a, b) <= 8):
            raise Wrong("the gradient is not the one that is agreed on", a, b, index=at, order=1, wrt=(i,),
                        exact="the gradient claimed with the point")


def _between(attack: Attack, xs: Any, point: tuple[float, ...], got: list[float], at: tuple[int, ...]) -> None:
    """Raise `Wrong` unless the gradient at a kink is in the convex hull of those around it."""
    active = [i for i, x in enumerate(xs) if is_active(x)]
    around = []
    for signs in itertools.product((1, -1, 2, -2), repeat=len(active)):
        moved = list(point)
        for i, s in zip(active, signs):
            moved[i] += s * BESIDE * max(abs(point[i]), 1.0)
        near = attack.truth.gradient([np.asarray(m, x.dtype) for m, x in zip(moved, xs)], np.ones(()))
        row = [near[i].item() for i in active]
        if any(d is not None and abs(d) > STEEP for d in row):
            return  # a pole
        if all(d is not None for d in row):
            around.append([float(d) for d in row])
    if not around:
        return
    hull, own = np.array(around), np.array([got[i] for i in active])
    rng = np.random.default_rng(0)
    directions = np.eye(len(active)) if len(active) == 1 else np.concatenate([np.eye(len(active)), rng.standard_normal((DIRECTIONS, len(active)))])
    slack = 1e-6 * max(1.0, float(np.max(np.abs(hull))))
    for u in (*directions, *-directions):
        if not u @ own <= np.max(hull @ u) + slack * np.abs(u).sum():
            raise Wrong(f"the gradient is no mean of those around the point, which go from {hull.min(0).tolist()} to {hull.max(0).tolist()}", own,
                        index=at, order=1, wrt=tuple(active), exact=attack.truth.exact)
