"""References for ops on tensors: the value, pullbacks and pushforwards with many digits, and the condition of each of their numbers."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.reference.quotients import DIGITS, Quotients, Reader, number

Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]
MOST, MORE = 900, 30  # the digits of a certain number, and the difference of two precisions at which values must agree
RULES = 100  # the digits at which rules are evaluated
POINTS = 40  # points whose values are kept
ENTRIES = (6, 3, 2)  # the number of elements of each argument in gradients of order 1, 2 and 3; the choice depends on the point
AGREED = mpmath.mpf(10) ** -20
PART = mpmath.mpf(10) ** -10  # the relative change of an input for the measurement of conditions


def is_active(x: Any) -> bool:
    """Whether an argument has a gradient: it consists of real or complex floats (bfloat16 has the kind V)."""
    return x.dtype.kind in "fcV"


class Reference:
    """A reference for an op. Its numbers are mpmath's; None stands for a missing number.

    `exact` is a description of the reference. The derivatives are those of `Adapter.gradient` and `Adapter.tangent`; a zero among them is
    certain to about a hundred digits.
    """

    exact: str
    digits = DIGITS  # the precision for the measurement of conditions

    def value(self, xs: Arrays) -> np.ndarray:
        raise NotImplementedError

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents) -> list[np.ndarray | None]:
        """The gradient by each argument, as of `Adapter.gradient`; None for an inactive argument."""
        raise NotImplementedError

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        raise NotImplementedError

    def certain(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """One number, with enough digits to distinguish it from 0.

        The number is an element of the gradient by argument `wrt`; without `wrt`, of the tangent; without tangents, of the value.
        """
        return self.number(xs, at, wrt, *_lift_all(xs, cotangent, tangents), certain=True)

    def condition(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """The condition of one number, chosen as in `certain`: Σ |input ∂ number / ∂ input| over arguments, cotangent and tangents.

        Each input is changed by a relative 10⁻¹⁰, which also changes a variance of 0.
        """
        inputs = _lift_all(xs, cotangent, tangents)
        with precise.working_precision(self.digits):
            base, total = self.number(xs, at, wrt, *inputs), mpmath.mpf(0)
            for changed in self.perturbed(xs, inputs):
                found = None if base is None else self.number(xs, at, wrt, *changed)
                if found is None or not mpmath.isfinite(found):
                    return mpmath.inf
                total += abs(found - base) / PART
        return total

    def number(self, xs: Arrays, at: Index, wrt: int | None, cells: list[Any], g: Any, tangents: list[Any], certain: bool = False) -> Any:
        """One number for many-digit inputs next to xs; with `certain`, with enough digits to distinguish it from 0."""
        raise NotImplementedError

    def perturbed(self, xs: Arrays, inputs: tuple[list[Any], Any, list[Any]]) -> Iterator[tuple[list[Any], Any, list[Any]]]:
        """The inputs with one number changed, for each number.

        A 0 among the arguments changes by a part of the largest element, since it has the same uncertainty as the other elements.
        """
        cells, g, tangents = inputs
        for i, c in enumerate(cells):
            if is_active(xs[i]):
                yield from (([*cells[:i], x, *cells[i + 1:]], g, tangents) for x in _perturbations(c, max(map(abs, c.ravel().tolist()), default=0)))
        if g is not None:
            yield from ((cells, x, tangents) for x in _perturbations(g))
        for n, ts in enumerate(tangents):
            for i, t in enumerate(ts):
                if t is not None:
                    yield from ((cells, g, [*tangents[:n], [*ts[:i], x, *ts[i + 1:]], *tangents[n + 1:]]) for x in _perturbations(t))

    def may_jump(self, xs: Arrays, at: Index, value: float, epsilon: float, *derivative: Any) -> bool:
        """Whether an element of the value may differ by rounding of the inputs, as next to a jump of a function of numbers."""
        return False


def _lift_all(xs: Arrays, cotangent: np.ndarray | None, tangents: Sequence[Tangents]) -> tuple[list[Any], Any, list[Any]]:
    return ([precise.lift_value(x) for x in xs], None if cotangent is None else precise.lift_value(cotangent),
            [[None if t is None else precise.lift_value(t) for t in ts] for ts in tangents])


def _perturbations(x: Any, least: Any = 0) -> Iterator[Any]:
    for place, v in enumerate(x.ravel().tolist()):
        if (v or least) and not isinstance(v, bool):
            yield _shift_element(x, place, (v or least) * precise.context.convert(PART))


def _shift_element(x: Any, place: int, h: Any) -> Any:
    out = x.copy()
    out.reshape((-1,)).view(np.ndarray)[place] += h
    return out


def array_of(found: Sequence[Any], shape: Index) -> np.ndarray:
    """Numbers as an array of objects."""
    out = np.empty(len(found), object)
    out[:] = found
    return out.reshape(shape)


class ArrayReference(Reference):
    """The reference for an op on arrays, given by a reader: difference quotients along elements of its arguments and along tangents."""

    def __init__(self, reader: Reader, exact: str):
        self.reader, self.exact = reader, exact
        self._values: dict[Any, np.ndarray] = {}
        self._sizes: dict[Any, Any] = {}
        self._near: dict[Any, _Values] = {}

    def value(self, xs: Arrays) -> np.ndarray:
        key = _key(xs)
        if key not in self._values:
            for digits in (DIGITS, MOST):
                first, second = (self.reader(xs, [precise.lift_value(x) for x in xs], d) for d in (digits, digits + MORE))
                with precise.working_precision(digits):
                    found = [_common_value(a, b) for a, b in zip(first.ravel().tolist(), second.ravel().tolist())]
                self._values[key] = array_of(found, first.shape)
                if None not in found:
                    break
        return self._values[key]

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents) -> list[np.ndarray | None]:
        """The derivatives of <g, f> by some elements and along the tangents; None for the other elements. The choice depends on the point."""
        return self._gradient(xs, cotangent, tangents, ENTRIES[min(len(tangents), 2)])

    def _gradient(self, xs: Arrays, cotangent: np.ndarray, tangents: Sequence[Tangents], most: int) -> list[np.ndarray | None]:
        base = self._values_near(xs)
        g, directions = base.part(cotangent), [base.direction(ts) for ts in tangents]
        out: list[np.ndarray | None] = []
        start = zlib.crc32(b"".join(x.tobytes() for x in xs))
        for i, x in enumerate(xs):
            entries = np.empty(x.size, object)
            for place in [(start + n) % x.size for n in range(0, x.size, math.ceil(x.size / most))] if is_active(x) else ():
                entries[place] = base.derivative([(i, place), *directions], g)
            out.append(entries.reshape(x.shape) if is_active(x) else None)
        return out

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        base = self._values_near(xs)
        direction, shape = base.direction(ts), self.value(xs).shape
        return array_of([base.derivative([direction], place) for place in range(math.prod(shape))], shape)

    def _values_near(self, xs: Arrays) -> _Values:
        """The values near a point, which all derivatives there share."""
        key = _key(xs)
        if key not in self._near:
            if len(self._near) >= POINTS:
                self._near.clear()
            self._near[key] = _Values(self.reader, xs, [precise.lift_value(x) for x in xs])
        return self._near[key]

    def number(self, xs: Arrays, at: Index, wrt: int | None, cells: list[Any], g: Any, tangents: list[Any], certain: bool = False) -> Any:
        if wrt is not None:
            place = int(np.ravel_multi_index(at, xs[wrt].shape)) if at else 0
            return _Values(self.reader, xs, cells).derivative([(wrt, place), *tangents], g, certain)
        if tangents:
            place = int(np.ravel_multi_index(at, self.value(xs).shape)) if at else 0
            return _Values(self.reader, xs, cells).derivative([tangents[0]], place, certain)
        return number(self.reader(xs, cells, MOST if certain else DIGITS)[at].item())

    def largest(self, xs: Arrays, cotangent: Any, *tangents: Tangents) -> Any:
        """The largest element of the gradients by all arguments: every element of a matrix product has rounding errors of that size."""
        key = tuple(x.tobytes() for x in (*xs, cotangent, *(t for ts in tangents for t in ts if t is not None))), len(tangents)
        if key not in self._sizes:
            found = self._gradient(xs, cotangent, tangents, 10**6)
            self._sizes[key] = max((abs(v) for g in found if g is not None for v in g.ravel().tolist() if v is not None), default=mpmath.mpf(0))
        return self._sizes[key]


class _Values:
    """The values of a function near a point, along elements of its arguments and directions."""

    def __init__(self, reader: Reader, xs: Arrays, cells: Sequence[Any]):
        self.reader, self.xs, self.cells = reader, xs, cells
        self.known: dict[Any, Any] = {}
        self._lifted: dict[Any, Any] = {}
        self._along: dict[Any, _Along] = {}

    def part(self, cotangent: np.ndarray) -> Any:
        """A cotangent in many digits, the same object for the same numbers."""
        key = _key([cotangent])
        if key not in self._lifted:
            self._lifted[key] = precise.lift_value(cotangent)
        return self._lifted[key]

    def direction(self, ts: Tangents) -> list[Any]:
        """Tangents in many digits, the same object for the same numbers."""
        key = "tangents", _key(ts)
        if key not in self._lifted:
            self._lifted[key] = [None if t is None else precise.lift_value(t) for t in ts]
        return self._lifted[key]

    def derivative(self, moves: Sequence[Any], part: Any, certain: bool = False) -> Any:
        """The derivative of <part, value>, or of the element with the index `part`, along each move: an element (argument, place) or a direction."""
        found = self.along(moves, part)
        return found.derivative((1,) * len(moves), [found.sizes], certain)[0]

    def along(self, moves: Sequence[Any], part: Any) -> _Along:
        """The derivatives along some moves, which those along more moves share."""
        key = tuple(move if isinstance(move[0], int) else id(move) for move in moves), part if isinstance(part, int) else id(part)
        if key not in self._along:
            self._along[key] = _Along(self, moves, part)
        return self._along[key]

    def at(self, moves: Sequence[Any], steps: Sequence[Any], part: Any, digits: int) -> Any:
        nonzero = [(move, h) for move, h in zip(moves, steps) if h]
        key = digits, tuple((move if isinstance(move[0], int) else id(move), h) for move, h in nonzero)
        if key not in self.known:
            cells = list(self.cells)
            for move, h in nonzero:
                if isinstance(move[0], int):
                    cells[move[0]] = _shift_element(cells[move[0]], move[1], h)
                else:
                    cells = [c if t is None else c + t * h for c, t in zip(cells, move)]
            side = np.copysign(np.inf, float(nonzero[0][1])) if nonzero else 0.0
            floats = [np.nextafter(x, side) if nonzero and x.dtype.kind == "f" else x for x in self.xs]
            self.known[key] = self.reader(floats, cells, digits).ravel().tolist()
        y = self.known[key]
        return y[part] if isinstance(part, int) else precise.context.fdot(zip(part.ravel().tolist(), y))

    def size(self, move: Any) -> float:
        """The scale of a step along a move: that of the smallest number that it changes; 1 for zeros."""
        if isinstance(move[0], int):
            sizes = [self.cells[move[0]].ravel().tolist()[move[1]]]
        else:
            pairs = [(x, t) for c, ts in zip(self.cells, move) if ts is not None for x, t in zip(c.ravel().tolist(), ts.ravel().tolist())]
            sizes = [x / t for x, t in pairs if t and x]
        bits = min((int(precise.context.mag(x)) for x in sizes if x), default=1)
        return math.ldexp(0.5, max(-1000, min(bits, 1000)))


class _Along(Quotients):
    """The derivatives of <part, value>, or of an element, along moves; those of lower order are those along fewer moves."""

    def __init__(self, values: _Values, moves: Sequence[Any], part: Any):
        super().__init__(self._read_steps)
        self.values, self.moves, self.wanted, self.sizes = values, moves, part, tuple(map(values.size, moves))

    def _read_steps(self, floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> list[Any]:
        with precise.working_precision(digits):
            return [self.values.at(self.moves, [h - size for h, size in zip(row, self.sizes)], self.wanted, digits)
                    for row in zip(*(c.tolist() for c in cells))]

    def _lower(self, k: tuple[int, ...], p: Any) -> Any:
        kept = [move for move, n in zip(self.moves, k) if n] or self.moves[:1]
        if len(kept) == len(self.moves):
            return super()._lower(k, p)
        below = self.values.along(kept, self.wanted)
        return below.derivative((int(any(k)),) * len(kept), [below.sizes])[0]


def _key(arrays: Sequence[np.ndarray | None]) -> tuple[Any, ...]:
    return tuple(None if x is None else (x.shape, x.dtype.name, x.tobytes()) for x in arrays)


def _common_value(a: Any, b: Any) -> Any:
    if isinstance(a, (bool, int)):
        return mpmath.mpf(int(b))
    if not precise.context.isfinite(b):
        return number(b) if precise.context.isinf(b) else None
    return number(b) if abs(a - b) <= abs(b) * AGREED or max(abs(a), abs(b)) < mpmath.mpf("1e-390") else None


class RuleReference(Reference):
    """The rules of an op evaluated with many digits: a reference for the accuracy of floats, not for the correctness of rules."""

    digits = 800  # most are lost by cancellation

    def __init__(self, op: Any, parameters: tuple[Any, ...], elementwise: bool = False):
        self.op, self.parameters, self.elementwise = op, parameters, elementwise
        self.exact = f"the rule of {op.name}, evaluated with {RULES} digits"

    def _forward(self, cells: Sequence[Any]) -> Any:
        return precise.lift_value(self.op.forward(precise, *((tuple(cells),) if self.op.arity is None else cells), *self.parameters))

    def _vjp(self, cells: Sequence[Any], g: Any) -> list[Any]:
        found = self.op.vjp(precise, g, self._forward(cells), (*cells, *self.parameters), (True,) * len(cells))
        return [precise.zeros_like(x) if c is None else c if c.shape == x.shape else precise.sum_to_size(c, x.shape) for c, x in zip(found, cells)]

    def _jvp(self, cells: Sequence[Any], ts: Sequence[Any]) -> Any:
        y = self._forward(cells)
        out = self.op.jvp(precise, ts, y, (*cells, *self.parameters))
        return precise.broadcast_to(precise.zeros_like(y) if out is None else out, y.shape)

    def value(self, xs: Arrays) -> np.ndarray:
        with precise.working_precision(RULES):
            return _finite(self._forward(_lift_all(xs, None, ())[0]))

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents) -> list[np.ndarray | None]:
        with precise.working_precision(RULES):
            cells, g, _ = _lift_all(xs, cotangent, ())
            return [_finite(c) if is_active(x) else None for c, x in zip(self._vjp(cells, g), xs)]

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        with precise.working_precision(RULES):
            cells, _, (direction,) = _lift_all(xs, None, [ts])
            return _finite(self._jvp(cells, direction))

    def certain(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """One number with more digits; None for infinity and NaN."""
        xs, at, cotangent, tangents = self._single_element(xs, at, cotangent, tangents)
        return super().certain(xs, at, wrt, cotangent, *tangents)

    def condition(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        xs, at, cotangent, tangents = self._single_element(xs, at, cotangent, tangents)
        return super().condition(xs, at, wrt, cotangent, *tangents)

    def number(self, xs: Arrays, at: Index, wrt: int | None, cells: list[Any], g: Any, tangents: list[Any], certain: bool = False) -> Any:
        with precise.working_precision(self.digits):
            found = self._vjp(cells, g)[wrt] if wrt is not None else self._jvp(cells, tangents[0]) if tangents else self._forward(cells)
            return _finite(found)[at]

    def _single_element(self, xs: Arrays, at: Index, cotangent: np.ndarray | None, tangents: tuple[Tangents, ...]) -> tuple[Any, Index, Any, Any]:
        """The inputs that an element depends on, with its index in them: the elements at the index for an elementwise op, otherwise all inputs."""
        if not self.elementwise or len({x.shape for x in xs}) > 1:
            return xs, at, cotangent, tangents

        def of(x: np.ndarray | None) -> np.ndarray | None:
            return None if x is None else np.asarray(x[at])

        return [of(x) for x in xs], (), of(cotangent), tuple([of(t) for t in ts] for ts in tangents)


def _finite(x: Any) -> np.ndarray:
    cells = [int(v) if isinstance(v, bool) else v for v in x.ravel().tolist()]
    return array_of([number(v) if precise.context.isfinite(v) else None for v in cells], x.shape)
