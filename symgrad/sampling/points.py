"""Points of a check, and their simplification.

Random and special points, near a given one or in domains, are constructed, not filtered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.graph.domains import Domain
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.sampling.numbers import PAGE, PAGES, PREFIX, table

COMMON_VALUES = 0.0, 1.0, -1.0, 20.0, -20.0  # values that all inputs take together
Point = list[np.ndarray]


def as_point(point: Sequence[np.ndarray], vector: np.ndarray) -> Point:
    """A flat vector in the shapes and dtypes of a point."""
    out, at = [], 0
    for value in point:
        out.append(vector[at:at + value.size].reshape(value.shape).astype(value.dtype))
        at += value.size
    return out


def flat(point: Sequence[np.ndarray]) -> np.ndarray:
    """A point as one vector."""
    return np.concatenate([np.ravel(v).astype(np.float64) for v in point])


def random_points(point: Sequence[np.ndarray], rng: np.random.Generator) -> Iterator[Point]:
    """An infinite sequence of points: near the given one, with its signs and other magnitudes, and multiples of 1/8 up to 9.

    Near points keep the function in its domain; the others reach other branches. A coordinate that is 0 counts as 1 in magnitude.
    """
    base = flat(point)
    size = np.where(base == 0, 1.0, np.abs(base))
    while True:
        sign = np.where(base == 0, rng.choice([-1.0, 1.0], base.size), np.sign(base))
        yield as_point(point, base + size * rng.uniform(-0.3, 0.3, base.size))
        yield as_point(point, rng.integers(-72, 73, base.size) / 8)
        yield as_point(point, sign * size * np.exp(rng.uniform(-1.5, 1.5, base.size)))
        yield as_point(point, sign * size * np.exp(rng.uniform(-2.0, 2.0)))


def special_points(point: Sequence[np.ndarray], run: Any, limit: int = 24) -> list[Point]:
    """Edge cases: all inputs at 0, ±1 or ±20, each leaf at the special values of the ops that take it, and each input at 0."""
    base = flat(point)
    vectors = [np.full(base.size, value) for value in COMMON_VALUES]
    for i, value in [*_special_inputs(run), *((slice(k, k + 1), 0.0) for k in range(min(base.size, limit // 2)))]:
        vectors.append(base.copy())
        vectors[-1][i] = value
    unique = {v.tobytes(): v for v in vectors if v.tobytes() != base.tobytes()}
    return [as_point(point, v) for v in list(unique.values())[:limit]]


def _special_inputs(run: Any) -> Iterator[tuple[slice, float]]:
    """Each leaf's slice of the flat vector, with each special value of an op that takes the leaf directly."""
    places: dict[Any, slice] = {}
    at = 0
    for leaf in run.nodes:
        places[leaf] = slice(at, at + leaf.value.size)
        at += leaf.value.size
    for node in upstream([run.root]):
        if isinstance(node, Leaf):
            continue
        for i, p in enumerate(node.parents):
            if p in places:
                for values in node.op.docs.special:
                    if i < len(values):
                        yield places[p], values[i]


def random_direction(size: int, rng: np.random.Generator) -> np.ndarray:
    """A direction of small nonzero integers, for which no term vanishes and nothing is rounded; 1 for one input."""
    return np.ones(1) if size == 1 else rng.integers(1, 4, size) * rng.choice([-1.0, 1.0], size)


SIZES = 1e-8, 1e3  # the smallest and the largest random number in an unbounded domain
TAILS = (40.0, 1e3, 1e-8, 20.0, 100.0, 1e-5, 1e-3, 10.0, 700.0, 1e-300, 1e8, 1e5, 1e-16, 1e-100, 2.2250738585072014e-308, 5e-324)
SPECIAL = (0.0, 1.0, -1.0, -0.0, *(s * t for t in TAILS for s in (1.0, -1.0)))
NEAR = (2.0**-10, 2.0**-26)
NORMAL = 2.2250738585072014e-308


def _ends(domain: Domain) -> Iterator[float]:
    """The ends of a domain, and the numbers next to them and to the excluded points."""
    for i in domain.intervals:
        for end, inward in ((i.low, math.inf), (i.high, -math.inf)):
            if math.isfinite(end):
                yield end
                yield float(np.nextafter(end, inward))
                size = abs(end) or 1.0
                yield from (end + math.copysign(step * size, inward) for step in NEAR)
                if abs(end) > 1e9:  # numbers of every size up to a far end
                    yield from (math.copysign(10.0**k, end) for k in (15, 30, 100, 150, 200, 300) if 10.0**k < abs(end))
    for x in domain.excluded:
        yield from (float(np.nextafter(x, math.inf)), float(np.nextafter(x, -math.inf)), *(x + s * (abs(x) or 1.0) for s in NEAR))


def edge_points(domains: Sequence[Domain], base: np.ndarray, found: Sequence[tuple[int, float]], limit: int, subnormals: bool) -> list[np.ndarray]:
    """Points at which functions often fail: the base, ends, ±0, tails, subnormal numbers, the boundaries `found` in the formula, and ties.

    Each coordinate takes its special numbers with the others as in the base; for ties all coordinates take the same number.
    """
    own: list[list[float]] = []
    for k, d in enumerate(domains):
        numbers = [*_ends(d), *(x for i, x in found if i == k), *SPECIAL]
        own.append([x for x in numbers if x in d and (subnormals or x == 0 or abs(x) >= NORMAL)])
    out = {base.tobytes(): base}
    columns: list[Iterator[np.ndarray]] = [iter([np.where(np.arange(base.size) == k, x, base) for x in own[k]]) for k in range(len(domains))]
    if len(domains) > 1:
        columns.append(np.where([x in d for d in domains], x, base) for x in (float(base[0]), *own[0]))
    while columns and len(out) < limit:
        for column in list(columns):
            vector = next(column, None)
            if vector is None:
                columns.remove(column)
            elif len(out) < limit:
                out.setdefault(vector.tobytes(), vector)
    return list(out.values())


def draw_points(domains: Sequence[Domain], count: int, seed: int) -> list[np.ndarray]:
    """Up to `count` different random points of the domains, which depend on the seed only.

    Two thirds of them consist of simple numbers and numbers near these, one third of numbers of every size and every distance from an end.
    """
    rng = np.random.default_rng(seed)
    tables = [table(d, "float64", *SIZES) for d in domains]
    out: dict[bytes, np.ndarray] = {}
    for k in range(20 * count):
        first, last = (3 * PREFIX, PAGE) if k % 3 == 2 else (0, 3 * PREFIX)
        vector = np.array([entries[rng.integers(PAGES), rng.integers(first, last)] for entries in tables])
        out.setdefault(vector.tobytes(), vector)
        if len(out) == count:
            break
    return list(out.values())


def room_in(domains: Sequence[Domain], vector: np.ndarray) -> np.ndarray:
    """For each coordinate, half the distance to the nearest end or excluded point of its domain."""
    out = np.full(vector.size, np.inf)
    for k, (d, x) in enumerate(zip(domains, vector)):
        for i in d.intervals:
            if float(x) in i:
                out[k] = min(float(x) - i.low, i.high - float(x)) / 2
        for hole in d.excluded:
            out[k] = min(out[k], abs(float(x) - hole) / 2)
    return out


SMALL = (1.0, 2.0, -1.0, -2.0, 0.0, 0.5, -0.5, 3.0, -3.0, 4.0, 5.0, 0.25, -0.25, 10.0, -10.0, 100.0, -100.0, 1e3, -1e3, 1e-3, -1e-3, 1e-8, -1e-8)
FROM_ONE = SMALL  # the order for arguments that a zero would make irrelevant
FROM_ZERO = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, *(x for x in SMALL if abs(x) > 3 or 0.01 < abs(x) < 1))
UNITS = ((0, 1), (0, -1), (1, 1), (-1, 1), (-1, -1))  # real and imaginary parts of simple complex numbers
PARTS = (16, 8, 4, 2, 1.5, 1.2)  # divisors of the exponent of a very large or very small number


def simplicity(x: Any, first: Sequence[float] = FROM_ZERO) -> tuple[float, ...]:
    """A sort key for a float, a fraction or a complex number, the simplest first: those of `first`, then short ones, then those near 1.

    >>> sorted([0.3, -1.0, 2.0, 0.0, 1.0, 0.25], key=simplicity)
    [0.0, 1.0, -1.0, 2.0, 0.25, 0.3]
    """
    if x.imag:
        return tuple(map(sum, zip(simplicity(x.real), simplicity(x.imag), (1, 0, 0, 0))))
    x = float(x.real) if isinstance(x.real, float) else x.real
    if x in first:
        return 0, first.index(x), 0, 0
    return 1, len(str(x).removesuffix(".0")), max(abs(x), 1 / abs(x)) if math.isfinite(x) else math.inf, x


def weight(values: Iterable[Any]) -> tuple[float, ...]:
    """The sum of the simplicities of several numbers."""
    return tuple(map(sum, zip(*map(simplicity, values))))


def simpler_numbers(x: Any, first: Sequence[float] = FROM_ZERO, digits: int = 3) -> Iterator[Any]:
    """Numbers of the same type that are simpler than x, the simplest first; roundings have at most `digits` digits."""
    part = type(x.real)
    found = [part(k) for k in first]
    if x.imag:
        found = [*found[:6], *(type(x)(part(a), part(b)) for a, b in UNITS), x.real, type(x)(part(0), x.imag)]
    elif not isinstance(x, complex) and math.isfinite(x) and x not in first:
        found.append(abs(x))
        if abs(x) < 1e6:
            found += [part(math.trunc(x)), part(math.floor(x)), part(math.ceil(x))]
        if 1e-308 < abs(x) < 1e308:
            exponent, sign = math.floor(math.log10(abs(x))), -1 if x < 0 else 1
            powers = {*(math.trunc(exponent / k) for k in PARTS), exponent + 1, exponent}
            found += [sign * part(f"1e{k}") for k in powers if abs(k) < 300]
            found += [part(f"{float(x):.{k}g}") for k in range(1, digits + 1)]
    limit = simplicity(x, first)
    yield from (c for c in dict.fromkeys(sorted(found, key=lambda c: simplicity(c, first))) if simplicity(c, first) < limit)


def shrink_values(values: Any, holds: Callable[[Any], bool], limit: int = 300) -> Any:
    """The simplest values found for which `holds` is still true: equal values are tried first, then each value is simplified by itself.

    The values are an array of floats, or a list of floats, fractions or complex numbers. `holds` is called at most `limit` times.

    >>> shrink_values(np.array([3.7, -8.125]), lambda v: v[1] < -1)
    array([ 0., -2.])
    """
    made: Callable[[Sequence[Any]], Any] = np.array if isinstance(values, np.ndarray) else list
    best = values.tolist() if isinstance(values, np.ndarray) else list(values)
    tried = {tuple(best)}

    def accepted(candidate: list[Any]) -> bool:
        nonlocal best
        if tuple(candidate) in tried or len(tried) > limit or weight(candidate) >= weight(best):
            return False
        tried.add(tuple(candidate))
        if not holds(made(candidate)):
            return False
        best = candidate
        return True

    kinds = [type(x.real) for x in best]
    together = ([kind(k) for kind in kinds] for k in FROM_ZERO[:5])
    rounded = ([type(x)(round(x, k)) for x in best] for k in (0, 1)) if not any(x.imag for x in best) else ()
    any(accepted(candidate) for candidate in itertools.chain(together, rounded))
    improved = True
    while improved:
        improved = False
        for i in range(len(best)):
            improved |= any(accepted([*best[:i], candidate, *best[i + 1:]]) for candidate in simpler_numbers(best[i]))
    return made(best)
