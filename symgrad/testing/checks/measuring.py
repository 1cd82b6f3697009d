"""How far numbers are from the true ones, in units in the last place (ULP), and how far they may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.testing.attack import Attack
from symgrad.testing.failure import Wrong
from symgrad.testing.tolerances import finfo

__all__ = ["compare"]

MARGIN = 256  # from the end of the range of a dtype, where a factor of a derivative may be infinite by itself


def compare(attack: Attack, what: str, got: Any, true: np.ndarray, order: int, *, moves: Callable[[tuple[int, ...]], Any], surely: Callable[[], Any],
            xs: Sequence[np.ndarray] = (), wrt: tuple[int, ...] = (), exact: str = "") -> None:
    """Raise Wrong if an element is farther from the true one than is allowed; None among the true ones is not compared.

    An error counts in ULP of the true number, or of how far it `moves` when every input moves by its own size, where that is more. Beyond the range
    of the dtype nothing but the direction is asked for.
    """
    if got is None:
        got = np.zeros(true.shape)
    got = np.asarray(got)
    if got.shape != true.shape:
        raise Wrong(f"{what} has the shape {got.shape}, and should have {true.shape}", got, order=order, wrt=wrt, exact=exact)
    if got.dtype.kind in "biu":
        for at in np.ndindex(true.shape):
            if true[at] is not None and true[at] != int(got[at]):
                raise Wrong(f"{what} is wrong", got[at], true[at], index=tuple(map(int, at)), order=order, wrt=wrt, exact=exact)
        return
    if got.dtype.kind == "c":
        raise Wrong(f"{what} is complex", got, order=order, wrt=wrt, exact=exact)
    kind, bar = finfo(got.dtype), attack.ulp(got.dtype, order)
    numbers = got.astype(np.float64)
    for at in map(tuple, np.argwhere(~_close(numbers, true, kind, bar))):
        if true[at] is None:
            continue
        value, truth, point = float(numbers[at]), true[at], _point(attack, xs, at, true.shape)
        if order and len(point) > 1 and any(0 < abs(x) < float(kind.smallest_normal) for x in point):
            continue  # what is made of several numbers with few digits has few digits
        if truth == 0 and value:
            truth = surely()[at]
            if truth is None:
                continue
        error = _error(attack, value, truth, kind, order, bar, moves, at, point)
        if not error <= bar:
            raise Wrong(f"{what} is wrong", got[at], truth, index=tuple(map(int, at)), order=order, ulp=error, wrt=wrt, exact=exact)


def _close(numbers: np.ndarray, true: np.ndarray, kind: Any, bar: float) -> np.ndarray:
    """Which elements are right by far; the others are looked at with all digits."""
    plain = np.array([np.nan if t is None else float(t) for t in true.ravel().tolist()]).reshape(true.shape)
    size = np.abs(plain)
    unit = float(kind.eps) * np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
    return np.asarray((np.abs(numbers - plain) <= (bar - 1) * unit) & (size >= float(kind.smallest_normal)) & (size <= float(kind.max))
                      | (numbers == 0) & (plain == 0) & (true == 0))


def _point(attack: Attack, xs: Sequence[np.ndarray], at: tuple[int, ...], shape: tuple[int, ...]) -> list[float]:
    if not attack.elementwise or not xs or np.broadcast_shapes(*(x.shape for x in xs)) != shape:
        return []
    return [float(np.broadcast_to(x, shape)[at]) for x in xs if x.dtype.kind in "fV"]


def _ulps(error: Any, size: Any, kind: Any) -> float:
    size = max(abs(size), mpmath.mpf(float(kind.smallest_normal)))
    return float(abs(error) / mpmath.ldexp(mpmath.mpf(float(kind.eps)), int(mpmath.mag(size)) - 1)) if mpmath.isfinite(size) else 0.0


def _error(attack: Attack, value: float, true: Any, kind: Any, order: int, bar: float, moves: Callable[[tuple[int, ...]], Any],
           at: tuple[int, ...], point: Sequence[float]) -> float:
    """The error of one number in ULP; infinite for one that is wrong in another way.

    Where an error is claimed, it is meant: an op of one argument may be measured by the movement of the truth only where that passes through zero
    next to the point.
    """
    largest, tiny = float(kind.max), float(kind.smallest_normal)
    if abs(true) > largest:
        away = not abs(value) < largest / MARGIN and (order > 0 or value * mpmath.sign(true) > 0)
        return 0.0 if away else np.inf
    in_range = all(1 / largest < abs(mpmath.mpf(v)) ** order < largest for v in point if v)
    if 0 < abs(true) < tiny:
        return 0.0 if abs(value) <= 4 * tiny or not in_range else np.inf
    if not np.isfinite(value):
        overflow = order > 0 and abs(true) > largest / MARGIN and value * mpmath.sign(true) > 0
        return 0.0 if overflow or order > 1 and len(point) > 1 and not in_range else np.inf
    with mpmath.workdps(60):
        error = mpmath.mpf(value) - true
        plain = (0.0 if abs(value) < tiny else np.inf) if true == 0 else _ulps(error, true, kind)
        if plain <= bar:
            return plain
        moved = moves(at)
        return _ulps(error, max(abs(true), moved), kind) if mpmath.isfinite(moved) and (moved or true) else plain
