"""The reference for an op on arrays: difference quotients of <cotangent, value> along its inputs and tangents, with a hundred digits or more."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.frameworks.adapter import is_active
from symgrad.testing.truths_quotients import number
from symgrad.testing.truths_reading import Reader

__all__ = ["ArrayTruth"]

Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]
Move = tuple[int, int] | Tangents  # an element of an argument, or a direction
BITS, DIGITS, MORE, FINEST, MOST = 100, 160, 30, 600, 900
ENTRIES = (6, 3, 2)  # the number of elements of each argument in gradients of order 1, 2 and 3; the choice depends on the point
AGREED, EXTRAPOLATED = mpmath.mpf(10) ** -20, mpmath.mpf(10) ** -26
NARROW = 5 / 16


class ArrayTruth:
    """The reference for an op on arrays that a reader evaluates."""

    def __init__(self, reader: Reader, exact: str):
        self.reader, self.exact = reader, exact
        self._values: dict[Any, np.ndarray] = {}
        self._sizes: dict[Any, Any] = {}

    # The numbers

    def value(self, xs: Arrays) -> np.ndarray:
        """The value, with as many digits as are certain."""
        key = tuple((x.shape, x.dtype.name, x.tobytes()) for x in xs)
        if key not in self._values:
            for digits in (DIGITS, MOST):
                first, second = (self.reader(xs, [precise.lift_value(x) for x in xs], d) for d in (digits, digits + MORE))
                with precise.working(digits):
                    found = np.frompyfunc(_agreed, 2, 1)(first.view(np.ndarray), second.view(np.ndarray))
                self._values[key] = np.asarray(found, object).reshape(first.shape)
                if not any(v is None for v in self._values[key].ravel().tolist()):
                    break
        return self._values[key]

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents) -> list[np.ndarray | None]:
        """The derivatives of <g, f> by a choice of elements, which depends on the point, and along the tangents; None for the other elements."""
        return self._gradient(xs, [precise.lift_value(x) for x in xs], precise.lift_value(cotangent), [_lifted(ts) for ts in tangents])

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        """The derivative of the value along the tangents."""
        return self._along(xs, [precise.lift_value(x) for x in xs], [_lifted(ts)], _plain, False, {})

    def condition(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """Σ |input ∂ number / ∂ input| over arguments, cotangent and tangents, by changing each by 10⁻¹⁰ of itself.

        A 0 among the arguments changes by 10⁻¹⁰ of the largest element: it is as uncertain as the other elements.
        """
        cells, g = [precise.lift_value(x) for x in xs], None if cotangent is None else precise.lift_value(cotangent)
        directions = [_lifted(ts) for ts in tangents]
        with precise.working(DIGITS):
            base, total, part = self._number(xs, cells, at, wrt, g, directions), mpmath.mpf(0), mpmath.mpf(10) ** -10
            if base is None:
                return mpmath.inf
            for changed in _each_moved([cells, g, directions], [is_active(x) for x in xs], 1 + part):
                found = self._number(xs, changed[0], at, wrt, *changed[1:])
                if found is None or not mpmath.isfinite(found):
                    return mpmath.inf
                total += abs(found - base) / part
        return total

    def largest(self, xs: Arrays, cotangent: Any, *tangents: Tangents) -> Any:
        """The largest element of the gradients by all arguments: a matrix product has rounding errors of that size in every element."""
        key = tuple(x.tobytes() for x in (*xs, cotangent, *(t for ts in tangents for t in ts if t is not None))), len(tangents)
        if key not in self._sizes:
            cells = [precise.lift_value(x) for x in xs]
            found = self._gradient(xs, cells, precise.lift_value(cotangent), [_lifted(ts) for ts in tangents], most=10**6)
            self._sizes[key] = max((abs(v) for g in found if g is not None for v in g.ravel().tolist() if v is not None), default=mpmath.mpf(0))
        return self._sizes[key]

    def certain(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """One number, with so many digits that a zero is certain for every float."""
        return self._number(xs, [precise.lift_value(x) for x in xs], at, wrt, None if cotangent is None else precise.lift_value(cotangent),
                            [_lifted(ts) for ts in tangents], True)

    def may_jump(self, xs: Arrays, at: Index, value: float, epsilon: float) -> bool:
        """False: jumps of functions of arrays are not searched for."""
        return False

    def _number(self, xs: Arrays, cells: Sequence[Any], at: Index, wrt: int | None, g: Any, tangents: Sequence[Any], certain: bool = False) -> Any:
        if wrt is not None:
            place = int(np.ravel_multi_index(at, xs[wrt].shape)) if at else 0
            found = self._gradient(xs, cells, g, tangents, certain, (wrt, place))[wrt]
            assert found is not None
            return found.ravel()[place]
        if tangents:
            return self._along(xs, cells, [tangents[0]], _plain, certain, {})[at]
        return number(self.reader(xs, cells, MOST if certain else DIGITS)[at].item())

    def _gradient(self, xs: Arrays, cells: Sequence[Any], g: Any, tangents: Sequence[Any], certain: bool = False,
                  only: tuple[int, int] | None = None, most: int = 0) -> list[np.ndarray | None]:
        def paired(y: Any) -> np.ndarray:
            one = np.empty((), object)
            one[()] = precise.context.fdot(zip(g.ravel().tolist(), y.ravel().tolist()))
            return one

        out: list[np.ndarray | None] = []
        start, most = zlib.crc32(b"".join(x.tobytes() for x in xs)), most or ENTRIES[min(len(tangents), 2)]
        base: dict[Any, Any] = {}
        for i, x in enumerate(xs):
            if not is_active(x):
                out.append(None)
                continue
            entries = np.empty(x.size, object)
            places = [only[1]] * (only[0] == i) if only else [(start + n) % x.size for n in range(0, x.size, math.ceil(x.size / most))]
            for place in places:
                entries[place] = self._along(xs, cells, [(i, place), *tangents], paired, certain, base).item()
            out.append(entries.reshape(x.shape))
        return out

    # Along directions

    def _along(self, xs: Arrays, cells: Sequence[Any], moves: Sequence[Any], seen: Callable[[Any], np.ndarray], certain: bool,
               base: dict[Any, Any]) -> np.ndarray:
        """The derivative of a part of the value along several directions, one after the other; `base` holds the constant cells."""
        found: np.ndarray | None = None
        for rung in ("finest",) if certain else ("wide", "relative", "finest"):
            digits = MOST if rung == "finest" else DIGITS
            sides = [self._quotient(xs, cells, moves, seen, rung, digits, side, base) for side in (1, -1)]
            with precise.working(digits):
                now = np.frompyfunc(_decided, 2, 1)(*sides)
                now = np.asarray(now, object).reshape(sides[0].shape)
            found = now if found is None else np.where(found == None, now, found)  # noqa: E711  (element by element)
            if not any(v is None for v in found.ravel().tolist()):
                break
        assert found is not None
        return found

    def _quotient(self, xs: Arrays, cells: Sequence[Any], moves: Sequence[Any], seen: Callable[[Any], np.ndarray], rung: str, digits: int,
                  side: int, base: dict[Any, Any]) -> np.ndarray:
        digits += MORE * (side < 0)
        with precise.working(digits):
            steps = [self._step(rung, cells, move) * (1 if side > 0 else NARROW) * side for move in moves]
            total: Any = 0
            for chosen in itertools.product((0, 1), repeat=len(moves)):
                key = (rung, side, chosen)
                y = base.get(key)
                if y is None:
                    floats = [np.nextafter(x, side * np.inf) if any(chosen) and x.dtype.kind == "f" else x for x in xs]
                    y = seen(self.reader(floats, _moved(cells, [(m, h) for m, h, c in zip(moves, steps, chosen) if c]), digits))
                    if not chosen[0]:
                        base[key] = y
                total = total + (-1) ** (len(moves) - sum(chosen)) * y
            return np.asarray(total / math.prod(steps), object)

    def _step(self, rung: str, cells: Sequence[Any], move: Any) -> Any:
        context = precise.context
        bits = FINEST if rung == "finest" else BITS
        if isinstance(move[0], int):
            sizes = [abs(cells[move[0]].ravel().tolist()[move[1]])]
        else:
            pairs = [(x, t) for c, ts in zip(cells, move) if ts is not None for x, t in zip(c.ravel().tolist(), ts.ravel().tolist())]
            sizes = [abs(x / t) for x, t in pairs if t and x]
        size = min(sizes, default=context.one) or context.one
        if rung != "relative":
            size = max(size, context.one)
        return context.ldexp(context.one, int(context.mag(size)) - bits)


def _plain(y: Any) -> np.ndarray:
    return np.asarray(y.view(np.ndarray))


def _lifted(ts: Tangents) -> list[Any]:
    return [None if t is None else precise.lift_value(t) for t in ts]


def _moved(cells: Sequence[Any], moves: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The cells changed by steps along elements and directions."""
    out = [c.copy() for c in cells]
    for move, h in moves:
        if isinstance(move[0], int):
            out[move[0]].reshape((-1,)).view(np.ndarray)[move[1]] += h
        else:
            out = [c if t is None else c + t * h for c, t in zip(out, move)]
    return out


def _each_moved(inputs: Sequence[Any], active: Sequence[bool], factor: Any) -> Iterator[Any]:
    """The inputs with one number scaled, for each number in turn."""
    cells, g, tangents = inputs

    def scaled(x: Any, least: Any = 0) -> Iterator[Any]:
        for place, v in enumerate(x.ravel().tolist()):
            if v or least:
                out = x.copy()
                out.reshape((-1,)).view(np.ndarray)[place] = v * factor if v else least * (factor - 1)
                yield out

    for i, c in enumerate(cells):
        if active[i]:
            largest = max(map(abs, c.ravel().tolist()), default=0)
            yield from (([*cells[:i], moved, *cells[i + 1:]], g, tangents) for moved in scaled(c, largest))
    if g is not None:
        yield from ((cells, moved, tangents) for moved in scaled(g))
    for n, ts in enumerate(tangents):
        for i, t in enumerate(ts):
            if t is not None:
                yield from ((cells, g, [*tangents[:n], [*ts[:i], moved, *ts[i + 1:]], *tangents[n + 1:]]) for moved in scaled(t))


def _agreed(a: Any, b: Any) -> Any:
    if isinstance(a, (bool, int)):
        return mpmath.mpf(int(b))
    if not precise.context.isfinite(b):
        return number(b) if precise.context.isinf(b) else None
    return number(b) if abs(a - b) <= abs(b) * AGREED or max(abs(a), abs(b)) < mpmath.mpf("1e-390") else None


def _decided(a: Any, b: Any) -> Any:
    if not (precise.context.isfinite(a) and precise.context.isfinite(b)):
        return None
    if abs(a - b) <= max(abs(a), abs(b)) * AGREED:
        return number((a * NARROW + b) / (1 + NARROW))
    if abs(a * NARROW + b) <= max(abs(a), abs(b)) * EXTRAPOLATED:  # each value is only its own step
        return mpmath.mpf(0)
    return None
