"""What an op should be: its formula, or its own forward rule, read with as many digits as it takes.

Derivatives are difference quotients of the formula with a few hundred digits, of which about thirty are right: no rule of the op and no
derivative of SymPy's is among what they are made of. See `truths_points` for single numbers and `truths_arrays` for arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import mpmath
import numpy as np

from symgrad.testing.subjects.base import is_active
from symgrad.testing.truths_points import Points
from symgrad.testing.truths_reading import Reader, reader_of

if TYPE_CHECKING:
    from symgrad.testing.attack import Attack

__all__ = ["ElementTruth", "Truth", "truth_of"]

Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]


class Truth(Protocol):
    """What is true of an op. Numbers are mpmath's; None stands where there is none.

    `exact` says in words what is exact. The derivatives are those of `Subject.gradient` and `Subject.tangent`. With `surely` a zero is certain to
    hundreds of digits, and not to about a hundred. Movements say how far a number moves, at most, when every input moves by its own size.
    """

    exact: str

    def value(self, xs: Arrays, surely: bool = False) -> np.ndarray:
        """The value."""
        ...

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents, surely: bool = False) -> list[np.ndarray | None]:
        """The gradient by each argument, as `Subject.gradient` has it; None for an argument that is not active."""
        ...

    def tangent(self, xs: Arrays, ts: Tangents, surely: bool = False) -> np.ndarray:
        """The pushforward of tangents."""
        ...

    def value_moves(self, xs: Arrays, at: Index) -> Any:
        """The movement of an element of the value."""
        ...

    def gradient_moves(self, xs: Arrays, i: int, at: Index, cotangent: np.ndarray, *tangents: Tangents) -> Any:
        """The movement of an element of the gradient by argument i."""
        ...

    def tangent_moves(self, xs: Arrays, ts: Tangents, at: Index) -> Any:
        """The movement of an element of the tangent."""
        ...


def truth_of(attack: Attack) -> Truth | None:
    """The truth about an op: the claimed formula, else its own forward rule; None where there is neither, or where it takes complex numbers."""
    if any(d.name == "COMPLEX" for d in attack.domains):
        return None
    found = reader_of(attack)
    if found is None:
        return None
    reader, said = found
    if attack.elementwise:
        return ElementTruth(reader, f"{said}, read with {160} digits or more")
    from symgrad.testing.truths_arrays import ArrayTruth

    return ArrayTruth(reader, f"{said}, read with 100 digits or more")


class ElementTruth:
    """The truth about an op that acts on elements: per element, whatever the shapes."""

    def __init__(self, reader: Reader, exact: str):
        self.points, self.exact = Points(reader), exact

    def value(self, xs: Arrays, surely: bool = False) -> np.ndarray:
        """The value at every element."""
        points, shape = _points(xs)
        return _array([_where_continuous(d, p, self, surely) for d, p in zip(self.points.derivative((0,) * len(xs), points, surely), points)], shape)

    def gradient(self, xs: Arrays, cotangent: np.ndarray, *tangents: Tangents, surely: bool = False) -> list[np.ndarray | None]:
        """Σ g t t' ∂ᵢ∂ₐ∂ₑf over all arguments a, e, ... that have tangents, summed over what was broadcast."""
        points, shape = _points(xs)
        out: list[np.ndarray | None] = []
        for i, x in enumerate(xs):
            if not is_active(x):
                out.append(None)
                continue
            total = [mpmath.mpf(0)] * len(points)
            for k, coefficients in self._terms(xs, shape, (i,), cotangent, *tangents):
                total = [_plus(a, c, d) for a, c, d in zip(total, coefficients, self.points.derivative(k, points, surely))]
            out.append(_summed(_array(total, shape), x.shape))
        return out

    def tangent(self, xs: Arrays, ts: Tangents, surely: bool = False) -> np.ndarray:
        """Σ t ∂ₐf over all arguments a that have tangents."""
        points, shape = _points(xs)
        total = [mpmath.mpf(0)] * len(points)
        for k, coefficients in self._terms(xs, shape, (), np.ones(shape), ts):
            total = [_plus(a, c, d) for a, c, d in zip(total, coefficients, self.points.derivative(k, points, surely))]
        return _array(total, shape)

    def value_moves(self, xs: Arrays, at: Index) -> Any:
        """Σ |x ∂f|."""
        points, shape = _points(xs)
        (point,) = [points[int(np.ravel_multi_index(at, shape))] if shape else points[0]]
        return self._moves((0,) * len(xs), point, [i for i, x in enumerate(xs) if is_active(x)])

    def gradient_moves(self, xs: Arrays, i: int, at: Index, cotangent: np.ndarray, *tangents: Tangents) -> Any:
        """Σ |g t ∂ᵢ∂ₐf| + |g t x ∂ᵢ∂ₐ∂ₑf|, over everything that goes into the element."""
        points, shape = _points(xs)
        places = np.broadcast_to(np.arange(xs[i].size).reshape(xs[i].shape), shape).ravel()
        chosen = np.flatnonzero(places == (np.ravel_multi_index(at, xs[i].shape) if at else 0)).tolist()
        return self._moved(xs, points, chosen, self._terms(xs, shape, (i,), cotangent, *tangents))

    def tangent_moves(self, xs: Arrays, ts: Tangents, at: Index) -> Any:
        """Σ |t ∂ₐf| + |t x ∂ₐ∂ₑf|."""
        points, shape = _points(xs)
        return self._moved(xs, points, [int(np.ravel_multi_index(at, shape)) if at else 0], self._terms(xs, shape, (), np.ones(shape), ts))

    def _terms(self, xs: Arrays, shape: Index, fixed: Index, cotangent: np.ndarray, *tangents: Tangents) -> Iterator[tuple[Index, list[float]]]:
        """The derivatives that a number is made of, with their coefficients at every point."""
        given = [[a for a, t in enumerate(ts) if t is not None and is_active(xs[a])] for ts in tangents]
        for chosen in itertools.product(*given):
            k = [0] * len(xs)
            for a in (*fixed, *chosen):
                k[a] += 1
            factors = [cotangent, *(ts[a] for ts, a in zip(tangents, chosen))]
            yield tuple(k), _products([np.broadcast_to(np.asarray(f, np.float64), shape) for f in factors])  # type: ignore[arg-type]

    def _moves(self, k: Index, point: tuple[Any, ...], active: Sequence[int]) -> Any:
        total = mpmath.mpf(0)
        for j in active:
            (d,) = self.points.derivative((*k[:j], k[j] + 1, *k[j + 1:]), [point])
            total += mpmath.inf if d is None else abs(mpmath.mpf(point[j]) * d) if point[j] else 0
        return total

    def _moved(self, xs: Arrays, points: Sequence[Any], chosen: Sequence[int], terms: Iterator[tuple[Index, list[Any]]]) -> Any:
        active = [i for i, x in enumerate(xs) if is_active(x)]
        total = mpmath.mpf(0)
        for k, coefficients in terms:
            for place in chosen:
                (d,) = self.points.derivative(k, [points[place]])
                if d is not None and coefficients[place]:
                    total += abs(coefficients[place]) * (abs(d) + self._moves(k, points[place], active))
        return total


def _where_continuous(value: Any, point: tuple[Any, ...], truth: ElementTruth, surely: bool) -> Any:
    """No value at -0.0 where the function jumps: it may be the limit from that side."""
    for i, x in enumerate(point):
        if value is not None and isinstance(x, float) and x == 0 and math.copysign(1.0, x) < 0:
            near = truth.points.derivative((0,) * len(point), [(*point[:i], -5e-324, *point[i + 1:])], surely)[0]
            if near is None or abs(near - value) > 1e-100 * max(1, abs(value)):
                return None
    return value


def _points(xs: Arrays) -> tuple[list[tuple[Any, ...]], Index]:
    """The arguments of every element, and the shape of all of them."""
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    columns = [np.broadcast_to(x.astype(np.float64) if x.dtype.kind == "V" else x, shape).ravel().tolist() for x in xs]
    return list(zip(*columns)), shape


def _array(numbers: Sequence[Any], shape: Index) -> np.ndarray:
    out = np.empty(len(numbers), object)
    out[:] = numbers
    return out.reshape(shape)


def _products(factors: Sequence[np.ndarray]) -> list[Any]:
    """The products of floats, element by element, exact."""
    with mpmath.workdps(60):
        rows = [f.ravel().tolist() for f in factors]
        return [math.prod(map(mpmath.mpf, row[1:]), start=mpmath.mpf(row[0])) for row in zip(*rows)]


def _plus(total: Any, coefficient: Any, d: Any) -> Any:
    if not coefficient:
        return total
    if total is None or d is None:
        return None
    with mpmath.workdps(60):
        return total + coefficient * d


def _summed(x: np.ndarray, shape: Index) -> np.ndarray:
    """An array summed down to the shape of an argument that was broadcast."""
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and x.shape[i + lead] != 1)
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(*kept, *axes).reshape(math.prod(x.shape[i] for i in kept), -1).tolist()
    with mpmath.workdps(60):
        return _array([None if any(v is None for v in row) else mpmath.fsum(row) for row in rows], shape)
