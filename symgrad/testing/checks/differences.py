"""The check of derivatives against finite differences of the op's own values, which needs no formula."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.ulp import ulp_of
from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.reference.sources import MARGIN, RATIO, STEPS, VAGUE, extrapolated_derivative
from symgrad.sampling.points import room_in
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import ORDINALS, check, differentiable
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong, counted

SHORTEST = 2.0**-40  # lower bound of the longest step, relative to the size of the argument
LONGEST = 0.1  # upper bound of the longest step: kinks and periods of functions are on the scale of 1
FAR, NEAR, BESIDE = 1e8, 1e-100, 1e-6  # magnitudes beyond which steps are on another scale; BESIDE replaces NEAR with several arguments
POINT_SHIFT, LEAST = 2.0**-20, 2.0**-46  # shifts of a point, relative to the longest step, and at least to the number
SHIFTED_POINTS = 8
TURNS = 4
Arrays = Sequence[np.ndarray]
Slope = tuple[np.ndarray, np.ndarray]  # a derivative by differences, and an estimate of its error
Side = tuple[np.ndarray, np.ndarray, np.ndarray]  # the op's own derivative, followed by a Slope


def smooth(attack: Attack) -> str:
    """A check for deterministic ops of real numbers with derivatives."""
    if attack.claims.random:
        return "it is random"
    if attack.dtype != "float64":
        return f"it takes no float64, and differences of {attack.dtype} tell little"
    return differentiable(attack) or attack.of_complex


@check("differences", when=smooth)
def check_differences(attack: Attack, example: Example) -> None:
    """Every derivative is the limit of difference quotients of the op's results for the order below, as far as these converge.

    Where arguments of an op on arrays are equal, they are also changed alike: a largest element, or a sorted array, is smooth in such directions,
    though not in others.

    The gradient is compared with the values, the second derivative with the gradient, and, for an op without a reference, the third
    with the second.
    """
    xs, g, subject = example.xs, example.cotangent, attack.subject
    active = [i for i, x in enumerate(xs) if is_active(x)]
    if not active or np.asarray(subject.value(xs)).dtype.kind != "f" or not g.size:
        raise NotApplicable("it has no real values")
    most = min(attack.order, 2 if attack.truth is not None else 3)
    shape = np.shape(subject.value(xs))
    rows = [np.broadcast_to(x, (1 + 2 * STEPS, *shape)).copy() for x in xs] if attack.elementwise else []
    single = attack.elementwise and np.array_equal(subject.value(rows)[0], subject.value([r[0] for r in rows]), equal_nan=True)
    for order in range(1, most + 1):
        if single:
            for a in active:
                _by_elements(attack, example, a, order)
        else:
            along(attack, example, order)
            if (tied := _tied_tangents(xs)) is not None:
                along(attack, example._replace(tangents=(tied, *example.tangents[1:])), order, keeps_ties=True)


def _by_elements(attack: Attack, example: Example, a: int, order: int) -> None:
    """The derivatives by argument a of every element of the value, or of the gradients of the order below, at all steps at once."""
    xs, subject = example.xs, attack.subject
    shape = example.cotangent.shape
    whole = [np.broadcast_to(x, shape) for x in xs]
    longest = _longest_steps(attack, whole, a, a)
    h = longest * RATIO ** -np.arange(STEPS).reshape(-1, *[1] * len(shape))
    first = next(i for i, x in enumerate(xs) if is_active(x))

    def unit(i: int, like: np.ndarray) -> list[np.ndarray | None]:
        return [np.ones(like.shape) if j == i else None for j in range(len(xs))]

    def sides(middle: np.ndarray) -> list[Side | None]:
        moved = np.concatenate([middle[None], middle + h, middle - h])
        stacked = [moved if i == a else np.broadcast_to(x, moved.shape).copy() for i, x in enumerate(whole)]
        plain = [(middle if i == a else x).copy() for i, x in enumerate(whole)]
        below: list[Any] = [subject.value(stacked)]
        here: list[Any] = [subject.gradient(plain, np.ones(shape))[a]]
        if order > 1:
            below = subject.gradient(stacked, np.ones(moved.shape), *[unit(first, moved)] * (order - 2))
            here = subject.gradient(plain, np.ones(shape), *[unit(first, middle)] * (order - 2), unit(a, middle))
        return [None if v is None else (_numbers(got, shape), *extrapolated_derivative(np.asarray(v, np.float64), moved - middle, np.abs(middle)))
                for v, got in zip(below, here)]

    for i, side in enumerate(sides(whole[a])):
        if side is not None:
            _compare_sides(attack, side, lambda k, i=i: sides(_shifted_points(whole[a], longest, k))[i], order, (a,) if order == 1 else (i, a))  # type: ignore[misc]


def _numbers(got: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape) if got is None else np.asarray(got, np.float64)


def _longest_steps(attack: Attack, xs: Arrays, a: int, place: int) -> np.ndarray:
    out = np.minimum(LONGEST * np.maximum(np.abs(xs[a]), 0.1), LONGEST)
    domain = attack.domain_of(place)
    flat = xs[a].ravel()
    if any(i.low != -np.inf or i.high != np.inf for i in domain.intervals) or domain.excluded:
        room = room_in([domain] * flat.size, flat).reshape(out.shape)
        out = np.minimum(out, np.where(np.isfinite(room), room, np.inf))
    sizes = np.max([np.abs(x) for x in xs if is_active(x)], axis=0)
    least = np.min([np.where(x == 0, 1.0, np.abs(x)) for x in xs if is_active(x)], axis=0)
    return np.asarray(np.where((sizes < FAR) & (least > (NEAR if len(xs) == 1 else BESIDE)), out, 0.0))


def _tied_tangents(xs: Arrays) -> tuple[np.ndarray | None, ...] | None:
    """Tangents that are equal where the arguments are equal; None if all arguments differ."""
    numbers = np.concatenate([x.ravel() for x in xs if is_active(x)])
    if np.unique(numbers).size == numbers.size:
        return None
    return tuple(1.25 + np.cos(1e3 * x) if is_active(x) else None for x in xs)


def along(attack: Attack, example: Example, order: int, keeps_ties: bool = False) -> None:
    """The derivatives along the tangents of an op on arrays."""
    xs, g, subject = example.xs, example.cotangent, attack.subject
    direction, rest = example.tangents[0], example.tangents[1:order - 1]
    longest = LONGEST / 4
    for x, t, a in zip(xs, direction, range(len(xs))):
        if t is not None and t.size:
            room = _longest_steps(attack, [x], 0, a)
            longest = min(longest, float(np.min(room / np.maximum(np.abs(t), 1e-300))))
    size = max((float(np.max(np.abs(x))) for x in xs if is_active(x) and x.size), default=0.0)
    if not longest * RATIO**-STEPS > SHORTEST * size:
        return

    def below(at: Arrays) -> list[Any]:
        return [_sum(subject.value(at) * g)] if order == 1 else subject.gradient(at, g, *rest)

    def here(at: Arrays, direction: Sequence[np.ndarray | None] = direction) -> list[Any]:
        if order > 1:
            return subject.gradient(at, g, *rest, direction)
        terms = [np.ravel(c * t) for c, t in zip(subject.gradient(at, g), direction) if c is not None and t is not None]
        return [_sum(np.concatenate(terms or [np.zeros(0)]))]

    def rounding(i: int) -> float:
        """One rounding of the terms that cancel along the direction, by the op's own derivative with other signs of the tangents."""
        turned = ([None if t is None else t * np.where(np.sin(k + 1e3 * np.arange(t.size)) > 0, 1.0, -1.0).reshape(t.shape) for t in direction]
                  for k in range(TURNS))
        sizes = [np.max(np.abs(_numbers(here(xs, ts)[i], ())), initial=0.0) for ts in turned]
        return max((float(size) for size in sizes if np.isfinite(size)), default=0.0) * 2.0**-52

    h = longest * RATIO ** -np.arange(STEPS)
    steps = np.concatenate([[0.0], h, -h])

    def slopes(direction: Sequence[np.ndarray | None], xs: Arrays = xs) -> list[Slope | None]:
        columns = [below([x if t is None else x + s * t for x, t in zip(xs, direction)]) for s in steps]
        found = [None if c is None else np.array([np.asarray(column[i], np.float64) for column in columns]) for i, c in enumerate(columns[0])]
        return [None if values is None else extrapolated_derivative(values, steps.reshape(-1, *[1] * (values.ndim - 1)), size) for values in found]

    def sides(at: Arrays) -> list[Side | None]:
        return [None if slope is None else (_numbers(mine, slope[0].shape), *slope) for mine, slope in zip(here(at), slopes(direction, at))]

    for i, side in enumerate(sides(xs)):
        try:
            if side is not None:
                _compare_sides(attack, side, lambda k, i=i: sides([_shifted_points(x, longest, k) for x in xs])[i],  # type: ignore[misc]
                               order, () if order == 1 else (i,), functools.partial(rounding, i))
        except Wrong:  # at a tie, say, the function has one-sided slopes, and no derivative
            if keeps_ties or side[0].shape != side[1].shape or _is_additive(slopes, direction, i, side[1]):  # type: ignore[index]
                raise


def _sum(terms: np.ndarray) -> float:
    """The sum, rounded once: otherwise terms that a large one swallows before it cancels would be missing from differences without a trace."""
    total = float(np.sum(terms))
    return math.fsum(terms.ravel().tolist()) if np.isfinite(np.abs(terms).sum()) else total


def _is_additive(slopes: Callable[..., Any], direction: Sequence[np.ndarray | None], i: int, true: np.ndarray) -> bool:
    """Whether the slope along a direction is the sum of those along its components, as for every differentiable function."""
    total, size = np.zeros(true.shape), np.max(np.abs(true), initial=0.0)
    for a, t in enumerate(direction):
        if t is None:
            continue
        for at in np.ndindex(t.shape):
            unit = np.zeros(t.shape)
            unit[at] = 1.0
            part, bound = slopes([unit if b == a else None for b in range(len(direction))])[i]
            if not np.all(bound <= VAGUE * np.maximum(np.abs(part), size)):
                return False
            total += part * t[at]
    return bool(np.all(np.abs(total - true) <= VAGUE * np.maximum(np.abs(total), size)))


def _shifted_points(x: np.ndarray, length: Any, k: int) -> np.ndarray:
    """An array with every number shifted by a small part of a length: equal numbers alike, each k differently."""
    if not is_active(x):
        return x
    return np.asarray(x + np.sin(k + 1e3 * np.where(np.abs(x) < FAR, x, 0.0)) * np.maximum(length * POINT_SHIFT, LEAST * np.abs(x)))


def _compare_sides(attack: Attack, side: Side, again: Callable[[int], Side | None], order: int, wrt: tuple[int, ...],
            rounding: Callable[[], float] = float) -> None:
    """Compare both sides; where they differ, measure how much the difference varies next to the point, and how large the terms are.

    Rounding inside the op, as in 1 - cos(x), does not show in its values. It varies from point to point, whereas a mistake does not. If the
    op's own derivative varies by rounding, this counts only as far as the derivative by differences varies, too.
    """
    got, true, bound = side
    try:
        _compare(attack, got, true, bound, order, wrt)
    except Wrong:
        beside = [side, *filter(None, map(again, range(1, SHIFTED_POINTS)))]
        varies = np.fmin(_variation([t for _, t, _ in beside]), _variation([t - g for g, t, _ in beside]))
        _compare(attack, got, true, np.maximum(np.maximum(bound, varies), rounding()), order, wrt)


def _variation(rows: Sequence[np.ndarray]) -> np.ndarray:
    finite = [np.where(np.isfinite(row), row, np.nan) for row in rows]
    return np.asarray(np.nan_to_num(np.fmax.reduce(finite) - np.fmin.reduce(finite)))


def _compare(attack: Attack, numbers: np.ndarray, true: np.ndarray, bound: np.ndarray, order: int, wrt: tuple[int, ...]) -> None:
    if numbers.shape != true.shape:
        raise Wrong(f"the {ORDINALS[order]} has the shape {numbers.shape}, and should have {true.shape}", numbers, order=order, wrt=wrt)
    resolved = bound <= VAGUE * np.fmax(np.abs(true), np.where(np.isfinite(numbers), np.abs(numbers), 1.0 if order == 1 else 0.0))
    counted(np.sum(resolved))
    allowed = MARGIN * bound + attack.ulp("float64", order) * 2.0**-52 * np.abs(true)
    for at in map(tuple, np.argwhere(resolved & ~(np.abs(numbers - true) <= allowed))):
        raise Wrong(f"the {ORDINALS[order]} is not the limit of differences of the {ORDINALS[order - 1]}", numbers[at], float(true[at]),
                    index=tuple(map(int, at)), order=order, wrt=wrt, ulp=ulp_of("float64").error(numbers[at], true[at]),
                    exact=f"the difference quotients, to within {bound[at]:.1g}")
