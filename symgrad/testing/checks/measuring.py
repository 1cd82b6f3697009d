"""The errors of numbers in units in the last place (ULP), the bounds on them, and the sizes of the terms that a number is computed from."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers.digits import working_precision
from symgrad.checks.measuring import Features, is_ordinary
from symgrad.dtypes.ulp import Ulp, ulp_of
from symgrad.frameworks.adapter import Adapter, is_active
from symgrad.frameworks.calling import flat_names
from symgrad.reports.base import ulp_text
from symgrad.system.restoring import workdps
from symgrad.testing.attack import Attack
from symgrad.testing.failure import Wrong, counted

MARGIN = 256  # from the end of the range of a dtype, where a factor of a derivative may overflow
FLUSHES = 1024  # times the smallest normal number: the result of flushing an intermediate number to zero, times a factor
NEXT = (0.875, 1.0, 1.125)  # points next to a point, relative to it
Index = tuple[int, ...]


def compare(attack: Attack, what: str, got: Any, true: np.ndarray, xs: Sequence[np.ndarray], i: int | None = None,
            cotangent: np.ndarray | None = None, *tangents: Sequence[np.ndarray | None], wrt: Index = (), of: Any = None) -> None:
    """Raise Wrong if an element's error is larger than allowed; an element whose reference is None is not compared.

    An error that rounding makes of the formula's own steps is entered in `attack.lost` instead.

    Compared are values at xs, with tangents their tangent, and with an argument i gradients by it; `of` is the reference. An error counts in
    ULP of the true number, or of its change when every input changes by its own size, if that is more. Beyond the range of the dtype
    only the direction is compared.
    """
    of = of or attack.truth
    order = len(tangents) + (i is not None)
    details: dict[str, Any] = {"order": order, "wrt": wrt, "exact": of.exact}
    attack.compared.append((what, xs))
    counted(sum(t is not None for t in true.ravel().tolist()))
    got = np.zeros(true.shape) if got is None else np.asarray(got)
    if got.shape != true.shape:
        raise Wrong(f"{what} has the shape {got.shape}, and should have {true.shape}", got, **details)
    if got.dtype.kind == "c":
        raise Wrong(f"{what} is complex", got, **details)
    if got.dtype.kind in "biu":
        for at in np.ndindex(true.shape):
            if true[at] is not None and true[at] != int(got[at]):
                raise Wrong(f"{what} is wrong", got[at], true[at], index=at, **details)
        return
    kind, allowed = ulp_of(got.dtype.name), attack.ulp(got.dtype, order)
    numbers = got.astype(np.float64)
    plain = np.array([np.nan if t is None else float(t) for t in true.ravel().tolist()]).reshape(true.shape)
    size = np.abs(plain)
    unit = float(kind.epsilon) * np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
    clear = (np.abs(numbers - plain) <= (allowed - 1) * unit) & (size >= float(kind.tiny)) & (size <= float(kind.largest))
    single = attack.elementwise and np.broadcast_shapes(*(x.shape for x in xs)) == true.shape  # each element depends on single numbers
    for at in (tuple(map(int, row)) for row in np.argwhere(~(clear | (numbers == 0) & (plain == 0) & (true == 0)))):
        value, truth = float(numbers[at]), true[at]
        point = [float(np.broadcast_to(x, true.shape)[at]) for x in xs if x.dtype.kind in "fV"] if single else []
        few = max((float(kind.tiny / abs(x)) for x in point if 0 < abs(x) < kind.tiny), default=1.0) if len(point) > 1 else 1.0
        if truth is None or few > 1 and not np.isfinite(value):
            continue  # no reference; or several arguments, one of them subnormal, of which a quotient overflows
        bar = allowed * few  # a subnormal number has few digits
        measure = functools.partial(_error, attack, of, kind, got.dtype.name, bar, point, (xs, at, i, cotangent, *tangents), order)
        error = measure(value, truth)
        if not error <= bar:
            truth = of.certain(xs, at, i, cotangent, *tangents)
            error = 0.0 if truth is None else measure(value, truth)
        if order > 1 and len(point) > 1 and not np.isfinite(value) and not error <= bar:
            whole = of.value(xs)[at]
            error = 0.0 if whole is not None and abs(whole) > kind.largest else error  # the derivative is computed from the value, which overflows
        if not error <= bar and not of.may_jump(xs, at, value, float(kind.epsilon), i, cotangent, *tangents):
            if truth is None or not attack.rounding.explains(value, truth, kind, xs, at, i, cotangent, *tangents):
                raise Wrong(f"{what} is wrong", got[at], truth, index=at, ulp=error, **details)
            lost = Wrong(what, got[at], truth, index=at, ulp=error, **details)
            lost.imprecise = True
            parts = attack.truth.parts(xs, at, i, cotangent, *tangents) if attack.elementwise else ()
            lost.points = [p for _, p, _ in parts] or points_of(attack, xs)
            attack.lost.append(lost)


def points_of(attack: Attack, xs: Sequence[np.ndarray]) -> list[tuple[float, ...]]:
    """The arguments of each element of an elementwise op, or all numbers of the arguments as one point."""
    if attack.elementwise:
        return list(zip(*(np.ravel(x).tolist() for x in np.broadcast_arrays(*xs))))
    return [tuple(v for x in xs for v in np.ravel(x).tolist())]


def report_lost_digits(attack: Attack, wrong: Wrong, compared: Sequence[tuple[str, Sequence[np.ndarray]]], lost: Sequence[Wrong],
                       fixed: bool) -> None:
    """Say of lost digits where they are lost, and how many at most.

    Except at fixed points, the result is wrong after all unless most ordinary points keep their digits.
    """
    lost = [wrong, *(w for w in lost if w.what == wrong.what)]
    bad = {p for w in lost for p in w.points}
    points = list({p for what, xs in compared if what == wrong.what for p in points_of(attack, xs) if any(p)} | bad)
    ordinary = [p not in bad for p in points if is_ordinary(np.array(p))]
    if not fixed and ordinary and 2 * sum(ordinary) <= len(ordinary):
        wrong.imprecise, wrong.what = False, f"{wrong.what} is wrong"
        return
    region = ""
    if len({len(p) for p in points}) == 1:
        names = attack.names if attack.elementwise else flat_names(attack.names, attack.shapes)
        region = Features(names, []).region(np.array(points, np.float64), np.array([p in bad for p in points]))
    span = f", {attack.names[0]} from {min(bad)[0]:.3g} to {max(bad)[0]:.3g}" if len(min(bad)) == 1 < len(bad) else ""
    where = f"at {len(bad)} of {len(points)} points{span}" if not region else region if region == "everywhere" else f"where {region}"
    worst = max(w.ulp or 0.0 for w in lost)
    wrong.what = f"imprecise: digits are lost in {wrong.what} {where}, at worst {'all' if worst == np.inf else ulp_text(worst) + ' ULP'}"


def _error(attack: Attack, of: Any, kind: Ulp, name: str, bar: float, point: Sequence[float], place: tuple[Any, ...], order: int, value: float,
           true: Any) -> float:
    """The error of one number in ULP; infinite for a number that is wrong in another way.

    Without a claimed error, an error also passes if it is small relative to the derivative near the point: few functions keep their digits
    where a derivative passes through zero. A claimed error is strict: the condition of an op of one argument then counts only where the
    derivative passes through zero next to the point.
    """
    tiny, largest, claimed = kind.tiny, kind.largest, attack.claims.ulp
    is_claimed = claimed is not None and not (isinstance(claimed, Mapping) and name not in claimed)
    in_range = all(1 / largest < abs(mpmath.mpf(x)) ** order < largest for x in point if x)
    if order > 1 and not in_range and (len(point) > 1 or not np.isfinite(value) and not is_claimed):
        return 0.0  # a higher derivative is a product of powers that overflow or underflow
    if not attack.subject.subnormals and name != "float16" and np.isfinite(value) and abs(mpmath.mpf(value) - true) <= FLUSHES * tiny:
        return 0.0
    if abs(true) > largest:
        return 0.0 if not abs(value) < largest / MARGIN and not (order == 0 and value * mpmath.sign(true) < 0) else np.inf
    if 0 < abs(true) < tiny:
        widest = name == attack.dtype  # kernels of the narrower types may flush
        if order == 0 and len(point) == 1 and 0 < abs(point[0]) < tiny and value == 0 and abs(true) >= kind.least and widest:
            return np.inf  # a subnormal number is flushed to zero
        if abs(value) <= 4 * tiny or not in_range and not np.isfinite(value):
            return 0.0
    if not np.isfinite(value):
        if order and abs(true) > largest / MARGIN and value * mpmath.sign(true) > 0:
            return 0.0
        return 0.0 if order and of.condition(*place) > largest / MARGIN else np.inf  # infinite terms

    def ulps(size: Any) -> float:
        return float(abs(error) / kind.unit(max(abs(size), tiny)))

    with workdps(mpmath.mp, 60):
        error = mpmath.mpf(value) - true
        plain = (0.0 if abs(value) < tiny else np.inf) if true == 0 else ulps(true)
        strict = is_claimed and attack.truth is not None and attack.elementwise and len(attack.names) == len(point) == 1 and (
            not attack.truth.changes_sign(order, [x * part for part in NEXT for x in point if x * part in attack.domains[0]]))
        if plain <= bar or strict:
            return plain
        xs, _, i, *directions = place
        least = ulps(max(abs(true), of.largest(xs, *directions))) if i is not None and hasattr(of, "largest") else plain
        if least > bar and not is_claimed and order and point and hasattr(of, "nearby"):
            least = ulps(max(abs(true), of.nearby(*place)))
        if least <= bar:
            return least
        moved = of.condition(*place)
        return ulps(max(abs(true), moved)) if mpmath.isfinite(moved) and (moved or true) else plain


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
    sides = []  # the smaller one counts: a kink on one side of a number is no rounding
    for sign in (1, -1):
        near = [[x * (1 + sign * STEP * k * (1 + np.sin(1e3 * x) / 2)) if is_active(x) else x for x in inputs]  # equal numbers change alike
                for k in range(1, 2 * ORDER + 1)]
        sides.append(np.max(np.abs(np.diff([read(subject, at, count, wrt) for at in near], ORDER, 0)), axis=0))
    return np.asarray(np.maximum(found, np.nan_to_num(np.fmin(*sides)) / math.comb(2 * ORDER, ORDER) ** 0.5 / 2.0**-52))


def changes(subject: Adapter, inputs: Arrays, count: int, wrt: int | None, followed: bool = True, tangents: Sequence[Any] = ()) -> np.ndarray:
    """The largest of several changes of each number, divided by that of the inputs, and of the steps of an op that is followed.

    What does not shrink with that of the inputs is a jump at the point itself, and does not count.
    """
    base, out = read(subject, inputs, count, wrt, followed, tangents=tangents), 0.0

    def size(part: float, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        moved = [x * (1 + part * rng.uniform(-1, 1, x.shape)) if is_active(x) else x for x in inputs]
        return np.abs(np.asarray(read(subject, moved, count, wrt, followed, part, seed, tangents) - base, np.float64)) / part

    large, small = PARTS[followed]
    for seed in range(DRAWS):
        found = size(large, seed)
        if np.any(found > STEEP * np.max(np.abs(np.asarray(base, np.float64)), initial=0.0)):
            found = np.where(size(small, seed) > JUMP * found, 0.0, found)
        out = np.maximum(out, found)
    return np.asarray(out)


def read(subject: Adapter, inputs: Arrays, count: int, wrt: int | None, followed: bool = False, part: float = 0.0, seed: int = 0,
         tangents: Sequence[Any] = ()) -> Any:
    """The value, or the gradient by one argument along tangents; in many digits if the op is followed, whose steps then change by a part."""
    xs = [x.copy() for x in inputs[:count]]
    if followed:
        with working_precision(DIGITS), subject.following(part, seed):
            found: Any = (next(iter(subject.derivatives(xs, np.ones_like, (), ()))) if wrt is None else
                          subject.gradient(xs, inputs[-1], *tangents)[wrt])
            return found.view(np.ndarray)
    return np.asarray(subject.value(xs) if wrt is None else subject.gradient(xs, inputs[-1], *tangents)[wrt], np.float64)
