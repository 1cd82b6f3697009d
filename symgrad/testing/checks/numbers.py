"""Checks of an op's results against the reference: the value, and derivatives up to the third order; and at special points."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.ulp import ulp_of
from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import ORDINALS, check, reason_without_order
from symgrad.testing.checks.measuring import compare
from symgrad.testing.claimed import special_points
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong

__all__ = ["check_pullback", "check_pushforward", "check_second", "check_special", "check_third", "check_value"]

MAX_THIRD_EXAMPLES = 16  # examples at which third derivatives are checked; those with edges come first


def applies_with_reference(attack: Attack) -> str:
    """A check for ops with a reference."""
    return "" if attack.truth is not None else "nothing is claimed of it that it could be compared with; give a formula"


def _applies_up_to_order(order: int) -> object:
    def applies(attack: Attack) -> str:
        return reason_without_order(attack, order) or applies_with_reference(attack)

    return applies


@check("value", when=applies_with_reference)
def check_value(attack: Attack, example: Example) -> None:
    """The value is that of the formula.

    >>> import symgrad
    >>> check_value(symgrad.tanh).verdict
    'passed'
    """
    compare(attack, "the value", attack.subject.value(example.xs), attack.truth.value(example.xs), example.xs)


def _compare_gradient(attack: Attack, example: Example, *tangents: Sequence[np.ndarray | None], wrt: tuple[int, ...] = ()) -> None:
    """Compare every gradient of Σ tangent * (... Σ tangent * gradient of <cotangent, value>) with the reference."""
    xs, g = example.xs, example.cotangent
    for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g, *tangents), attack.truth.gradient(xs, g, *tangents))):
        if true is not None:
            compare(attack, f"the {ORDINALS[len(tangents) + 1]}", got, true, xs, i, g, *tangents, wrt=(*wrt, i))


@check("pullback", when=_applies_up_to_order(1))  # type: ignore[arg-type]
def check_pullback(attack: Attack, example: Example) -> None:
    """The pullback of a cotangent is that of the formula.

    >>> import symgrad
    >>> check_pullback(symgrad.tanh).verdict
    'passed'
    """
    _compare_gradient(attack, example)


@check("pushforward", 
       when=lambda attack: applies_with_reference(attack) if attack.subject.forward and attack.order else "it has no pushforward")
def check_pushforward(attack: Attack, example: Example) -> None:
    """The pushforward of tangents is that of the formula.

    >>> import symgrad
    >>> check_pushforward(symgrad.tanh).verdict
    'passed'
    """
    xs, ts = example.xs, example.tangents[0]
    compare(attack, "the tangent", attack.subject.tangent(xs, ts), attack.truth.tangent(xs, ts), xs, None, None, ts)


@check("second", when=_applies_up_to_order(2))  # type: ignore[arg-type]
def check_second(attack: Attack, example: Example) -> None:
    """The gradient of the gradient, along a tangent of each argument, is that of the formula.

    >>> import symgrad
    >>> check_second(symgrad.tanh).verdict
    'passed'
    """
    if not attack.elementwise:
        _compare_gradient(attack, example, example.tangents[0])
    for a, x in enumerate(example.xs):
        if attack.elementwise and is_active(x):
            _compare_gradient(attack, example, only_tangent(example.tangents[0], a), wrt=(a,))


@check("third", when=_applies_up_to_order(3), most=MAX_THIRD_EXAMPLES)  # type: ignore[arg-type]
def check_third(attack: Attack, example: Example) -> None:
    """The third derivatives, along tangents of every two arguments, are those of the formula.

    >>> import symgrad
    >>> check_third(symgrad.tanh).verdict
    'passed'
    """
    if not attack.elementwise:
        return _compare_gradient(attack, example, *example.tangents[:2])
    if attack.subject.compiles and example.cotangent.ndim != 1:
        return None  # every shape is compiled for, so only vectors are checked
    active = [i for i, x in enumerate(example.xs) if is_active(x)]
    for a, b in itertools.combinations_with_replacement(active, 2):
        _compare_gradient(attack, example, only_tangent(example.tangents[0], a), only_tangent(example.tangents[1], b), wrt=(a, b))
    return None


KINK_DISTANCE = 1e-9  # distance of the points next to a kink at which derivatives are taken
DIRECTIONS = 32
STEEP = 1e4


@check("special", draws="special", when=lambda attack: "" if special_points(attack) else "it has no special points")
def check_special(attack: Attack, example: Example) -> None:
    """At every special point value and derivatives up to the second are finite, and the gradient is a valid (sub)gradient.

    It is the gradient claimed with the point; otherwise the reference, if there is one; otherwise it lies between the derivatives on both sides,
    or in the convex hull of the gradients nearby for several arguments. At an end of the domain derivatives may be infinite. Where the gradient
    is finite, so is the pushforward; that they are adjoint is another check.

    >>> import symgrad
    >>> check_special(symgrad.relu).verdict
    'passed'
    """
    xs, subject = example.xs, attack.subject
    ones = np.ones(example.cotangent.shape)
    _check_finite("the value", subject.value(xs), 0)
    if not attack.order:
        return
    gradient = subject.gradient(xs, ones)
    agreed = {tuple(map(float, point)): g for point, g in special_points(attack) if g is not None}
    points = [tuple(map(float, p)) for p in zip(*(np.broadcast_to(x, ones.shape).ravel().tolist() for x in xs))]
    ends = np.array([any(x + s * KINK_DISTANCE not in d for x, d in zip(p, attack.domains) for s in (1, -1) if x in d) for p in points], bool)
    true = attack.truth.gradient(xs, ones) if attack.truth is not None else [None] * len(xs)
    for place, point in enumerate(points):
        at = tuple(map(int, np.unravel_index(place, ones.shape))) if ones.shape else ()
        got = [0.0 if g is None else float(g[at]) for g in gradient]
        if point in agreed:
            _check_agreed_gradient(got, np.ravel(agreed[point]).astype(np.float64).tolist(), at)
        elif attack.elementwise and not ends[place] and any(t is not None and t[at] is None for t in true):
            _check_in_hull(attack, xs, point, got, at)
    for i, (g, t) in enumerate(zip(gradient, true)):
        if t is not None:
            known = np.array([None if p in agreed else v for p, v in zip(points, t.ravel().tolist())], object).reshape(t.shape)
            compare(attack, "the gradient", g, known, xs, i, ones, wrt=(i,))
    active = [i for i, x in enumerate(xs) if is_active(x)]
    units = {a: only_tangent([np.ones(x.shape) for x in xs], a) for a in active}
    for a in active if subject.forward else ():
        if gradient[a] is None or np.all(np.isfinite(np.asarray(gradient[a]).astype(np.float64))):
            with contextlib.suppress(NotApplicable):
                _check_finite("the tangent", subject.tangent(xs, units[a]), 1, (a,))
    if attack.order > 1:
        kinked = np.array([point in agreed for point in points])  # where the gradient is a convention, which may have an infinite derivative
        for a in active:
            for i, second in enumerate(subject.gradient(xs, ones, units[a])):
                inner = None if second is None else np.where((ends | kinked).reshape(ones.shape), 0.0, np.asarray(second, np.float64))
                _check_finite("the second derivative", inner, 2, (a, i))


def _check_finite(what: str, got: Any, order: int, wrt: tuple[int, ...] = ()) -> None:
    if got is not None and not np.all(np.isfinite(np.asarray(got).astype(np.float64))):
        raise Wrong(f"{what} is not finite at a special point", got, order=order, wrt=wrt)


def _check_agreed_gradient(got: list[float], agreed: list[float], at: tuple[int, ...]) -> None:
    for i, (a, b) in enumerate(zip(got, agreed)):
        if not (a == b or ulp_of("float64").error(a, b) <= 8):
            raise Wrong("the gradient is not the one that is agreed on", a, b, index=at, order=1, wrt=(i,),
                        exact="the gradient claimed with the point")


def _check_in_hull(attack: Attack, xs: Any, point: tuple[float, ...], got: list[float], at: tuple[int, ...]) -> None:
    """Raise `Wrong` unless the gradient at a kink is in the convex hull of those around it."""
    active = [i for i, x in enumerate(xs) if is_active(x)]
    around = []
    for signs in itertools.product((1, -1, 2, -2), repeat=len(active)):
        moved = list(point)
        for i, s in zip(active, signs):
            moved[i] += s * KINK_DISTANCE * max(abs(point[i]), 1.0)
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
