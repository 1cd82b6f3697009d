"""The reference for an elementwise op: difference quotients of its formula at every element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.reference.quotients import Quotients, Reader
from symgrad.reference.tensors import Arrays, Index, Reference, Tangents, array_of, is_active
from symgrad.system.restoring import workdps

NEAR = 2.0**-7  # the absolute distance of nearby points
JUMP = 1000  # the least ratio of a jump to the change by rounding of the inputs


class ElementReference(Reference):
    """The reference for an elementwise op, computed per element."""

    def __init__(self, reader: Reader, exact: str):
        self.quotients, self.exact = Quotients(reader), exact

    def value(self, xs: Arrays) -> np.ndarray:
        points, shape = _points(xs)
        found = self.quotients.derivative((0,) * len(xs), points)
        return array_of([self._unless_jump(d, p) for d, p in zip(found, points)], shape)

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents) -> list[np.ndarray | None]:
        """Σ g t t' ∂ᵢ∂ₐ∂ₑf over all arguments a, e, ... that have tangents, summed over broadcast axes."""
        return [_sum_to_shape(self._total(xs, i, cotangent, *tangents), x.shape) if is_active(x) else None for i, x in enumerate(xs)]

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        return self._total(xs, None, None, ts)

    def condition(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """Σ |g t ∂ᵢ∂ₐf| + |g t x ∂ᵢ∂ₐ∂ₑf|, over all terms of the element."""
        active = [j for j, x in enumerate(xs) if is_active(x)]
        parts = list(self.parts(xs, at, wrt, cotangent, *tangents))
        total = mpmath.mpf(0)
        with workdps(mpmath.mp, 60):
            for k, point, coefficient in parts:
                if len(parts) > 1:
                    (d,) = self.quotients.derivative(k, [point])
                    total += abs(coefficient * d) if d is not None else 0
                for j in active:
                    higher = (*k[:j], k[j] + 1, *k[j + 1:])
                    (d,) = self.quotients.derivative(higher, [point])
                    if d == 0:
                        (d,) = self.quotients.derivative(higher, [point], certain=True)
                    total += mpmath.inf if d is None else abs(coefficient * point[j] * d) if point[j] else 0
        return total

    def certain(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        total = mpmath.mpf(0)
        for k, point, coefficient in self.parts(xs, at, wrt, cotangent, *tangents):
            (d,) = self.quotients.derivative(k, [point], certain=True)
            if d is None:
                return None
            with workdps(mpmath.mp, 60):
                total += coefficient * d
        return total

    def nearby(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """The largest absolute value of one number when every argument changes a little, up or down."""
        total = mpmath.mpf(0)
        for k, point, coefficient in self.parts(xs, at, wrt, cotangent, *tangents):
            around = [tuple(x + s * NEAR if n else x for x, n in zip(point, k)) for s in (1, -1)]
            total += max((abs(coefficient * d) for d in self.quotients.derivative(k, around) if d is not None and mpmath.isfinite(d)), default=0)
        return total

    def may_jump(self, xs: Arrays, at: Index, value: float, epsilon: float, *derivative: Any) -> bool:
        """Whether an element may have the given value by rounding of the inputs: next to a jump, but not at it."""
        points, shape = _points(xs)
        point = points[int(np.ravel_multi_index(at, shape)) if shape else 0]
        active = [j for j, x in enumerate(xs) if is_active(x)]
        if any(part is not None for part in derivative) or not any(point):
            return False
        if any(None in self.quotients.derivative(tuple(int(i == j) for i in range(len(xs))), [point]) for j in active):
            return False
        around = [tuple(x * (1 + 2 * s * epsilon) if i in active else x for i, (x, s) in enumerate(zip(point, signs)))
                  for signs in itertools.product((1, -1), repeat=len(xs))]
        near = [d for d in self.quotients.derivative((0,) * len(xs), around) if d is not None]
        steep = JUMP * epsilon * (self.condition(xs, at, None, None) + mpmath.mpf(10) ** -300)
        return bool(near) and max(near) - min(near) > steep and min(near) <= value <= max(near)

    def changes_sign(self, order: int, xs: Sequence[float]) -> bool:
        """Whether a derivative of a function of one number is zero at one of some numbers, or changes its sign."""
        return len({mpmath.sign(d) for d in self.quotients.derivative((order,), [(x,) for x in xs]) if d is not None} | {0}) != 2

    def _unless_jump(self, value: Any, point: tuple[Any, ...]) -> Any:
        """The value, or None at -0.0 if the function jumps there: the float result may be the limit from below."""
        for i, x in enumerate(point):
            if value is not None and isinstance(x, float) and x == 0 and math.copysign(1.0, x) < 0:
                (near,) = self.quotients.derivative((0,) * len(point), [(*point[:i], -5e-324, *point[i + 1:])])
                if near is None or abs(near - value) > 1e-100 * max(1, abs(value)):
                    return None
        return value

    def _total(self, xs: Arrays, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> np.ndarray:
        """Σ coefficient * derivative, at every point; None where a derivative with a nonzero coefficient is missing."""
        points, shape = _points(xs)
        total: list[Any] = [mpmath.mpf(0)] * len(points)
        for k, coefficients in self._terms(xs, shape, wrt, cotangent, *tangents):
            found = self.quotients.derivative(k, points)
            with workdps(mpmath.mp, 60):
                total = [a if not c else None if a is None or d is None else a + c * d for a, c, d in zip(total, coefficients, found)]
        return array_of([None if a is None or mpmath.isnan(a) else a for a in total], shape)

    def _terms(self, xs: Arrays, shape: Index, wrt: int | None, cotangent: np.ndarray | None,
               *tangents: Tangents) -> Iterator[tuple[Index, list[Any]]]:
        given = [[a for a, t in enumerate(ts) if t is not None and is_active(xs[a])] for ts in tangents]
        for chosen in itertools.product(*given):
            k = [0] * len(xs)
            for a in ((*chosen, wrt) if wrt is not None else chosen):
                k[a] += 1
            factors: list[Any] = [np.ones(()) if cotangent is None else cotangent, *(ts[a] for ts, a in zip(tangents, chosen))]
            yield tuple(k), _products([np.broadcast_to(np.asarray(f, np.float64), shape) for f in factors])

    def parts(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[tuple[Index, Any, Any]]:
        """The terms of one number: a derivative, a point, and a nonzero coefficient."""
        points, shape = _points(xs)
        of = shape if wrt is None else xs[wrt].shape
        places = np.broadcast_to(np.arange(math.prod(of)).reshape(of), shape).ravel()
        chosen = np.flatnonzero(places == (np.ravel_multi_index(at, of) if of else 0)).tolist()
        for k, coefficients in self._terms(xs, shape, wrt, cotangent, *tangents):
            yield from ((k, points[place], coefficients[place]) for place in chosen if coefficients[place])


def _points(xs: Arrays) -> tuple[list[tuple[Any, ...]], Index]:
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    columns = [np.broadcast_to(x.astype(np.float64) if x.dtype.kind == "V" else x, shape).ravel().tolist() for x in xs]
    return list(zip(*columns)), shape


def _products(factors: Sequence[np.ndarray]) -> list[Any]:
    with workdps(mpmath.mp, 60):
        rows = [f.ravel().tolist() for f in factors]
        return [math.prod(map(mpmath.mpf, row[1:]), start=mpmath.mpf(row[0])) for row in zip(*rows)]


def _sum_to_shape(x: np.ndarray, shape: Index) -> np.ndarray:
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and x.shape[i + lead] != 1)
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(*kept, *axes).reshape(math.prod(x.shape[i] for i in kept), -1).tolist()
    with workdps(mpmath.mp, 60):
        return array_of([None if any(v is None for v in row) else mpmath.fsum(row) for row in rows], shape)
