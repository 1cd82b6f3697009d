"""Tables of numbers in a domain, and matrices made of them.

A page of a table has 256 numbers: a byte selects one, so that an array is drawn in one call and shrinks to simple numbers.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from symgrad.graph.domains import Domain, Interval, MatrixDomain
from symgrad.sampling.floats import Floats
from symgrad.system.errorstate import quiet

PAGES, PAGE = 64, 256
PREFIX = PAGE // 4  # the number of entries that are the same in every page
SIMPLE = (0.0, *(s * n for n in (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 0.5, 1.5, 2.5, 0.25, 0.75, 0.125) for s in (1.0, -1.0)))
TAILS = (1e-310, 1e-300, 1e-100, 1e-20, 1e-8, 1e-5, 0.12, 1.1, 20.3, 40.7, 300.1, 700.3, 100001.3, 12345678.9, 1e20, 1e100, 1e300)
NEAR = (4, 10, 26)  # powers of one half: distances from an end
WINDOW = 6.0  # the size of ordinary numbers in an unbounded domain
SHORT = 9  # the most characters of a readable number
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def restricted_domain(domain: Domain, smallest: float = 0.0, largest: float = math.inf) -> tuple[Domain, float, float]:
    """The part of a domain between two sizes, with these sizes; the unchanged domain without limits if that part is empty."""
    parts = tuple(Interval(max(i.low, -largest), min(i.high, largest), i.open_low and i.low >= -largest, i.open_high and i.high <= largest)
                  for i in domain.intervals if i.low <= largest and i.high >= -largest)
    parts = tuple(i for i in parts if i.low < i.high or i.low in i and i.low not in domain.excluded)
    if not parts or all(max(abs(i.low), abs(i.high)) < smallest for i in parts):
        return domain, 0.0, math.inf
    return Domain(domain.name, parts, domain.excluded, domain.integer), smallest, largest


def parts_of(domain: Domain, floats: Floats) -> list[tuple[float, float]]:
    """The first and the last number of a type in each interval of a domain. Raises ValueError if there is none."""
    parts = [p for p in (floats.part(i, domain.integer) for i in domain.intervals) if p is not None]
    parts = [p for p in parts if p[0] < p[1] or p[0] not in domain.excluded]
    if not parts:
        raise ValueError(f"the domain {domain} has no number of the type {floats.dtype}")
    return parts


def simple_numbers(domain: Domain, dtype: str = "float64") -> list[float]:
    """The shortest numbers in a domain, the simplest first; at least one.

    Raises ValueError if the type has no number in the domain.
    """
    floats = Floats(dtype)
    parts = parts_of(domain, floats)
    found = [x for x in SIMPLE if x in domain and floats.nearest(x) == x]
    if len(found) < 6:
        for k, (low, high) in enumerate(parts):
            low, high = max(low, min(-WINDOW, high - WINDOW)), min(high, max(WINDOW, low + WINDOW))  # an interval far from 0: its nearer end
            steps = [low / 2 + high / 2, *(low + (high - low) * s for s in (0.25, 0.75, 0.375, 0.625))]
            rounded = [round(x, digits) for x in steps for digits in (0, 1, 2, 3)]
            found += map(float, floats.inside(np.array(sorted(rounded, key=_readability) + steps + [low, high]), parts, domain, k))
    return list(dict.fromkeys(found))


def _readability(x: float) -> tuple[int, float, bool]:
    return len(repr(x)) - (x < 0), abs(x), x < 0


def _page_order(x: float) -> tuple[int, float, bool]:
    if x.is_integer() and abs(x) <= 10:
        return 0, abs(x), x < 0
    return (1, abs(x), x < 0) if abs(x) > 10 and len(repr(x)) <= SHORT else (2, 0.0, False)


def _around(x: float, floats: Floats) -> list[float]:
    """A number, its neighbours, and numbers at distances that are powers of two."""
    size = abs(x) or 1.0
    steps = [size * 2.0**-k for k in (*NEAR, floats.digits) if k <= floats.digits] + ([floats.normal, floats.smallest] if x == 0 else [])
    moved = floats.moved([x, x], [1, -1])
    return [x, *map(float, moved), *(x + s * step for step in steps for s in (1.0, -1.0))]


@functools.lru_cache(maxsize=256)
def edge_numbers(domain: Domain, dtype: str = "float64", smallest: float = 0.0, further: tuple[float, ...] = ()) -> tuple[float, ...]:
    """The numbers of a domain at which functions often fail, the simplest first.

    They are ±0, small integers, numbers of every size, and the ends of the domain, the excluded points and the `further` points, all with
    their neighbours.
    """
    floats = Floats(dtype)
    parts = parts_of(domain, floats)
    found = [s * x for x in (0.0, 1.0, 2.0, 3.0, 0.5, *TAILS, floats.largest, floats.normal, floats.smallest) for s in (1.0, -1.0)]
    places = dict.fromkeys([0.0, *(end for i in domain.intervals for end in (i.low, i.high) if math.isfinite(end)), *domain.excluded, *further])
    for place in places:
        found += _around(place, floats)
    found += [x for part in parts for x in part]
    if domain.integer:
        found = [round(x) for x in found if abs(x) <= 2.0 ** (floats.digits + 1)]
    rounded = map(float, floats.nearest(found))
    inside = {(x, math.copysign(1.0, x)): x for x in rounded if x in domain and (x == 0 or abs(x) >= smallest)}
    return tuple(sorted(inside.values(), key=_readability))


@functools.lru_cache(maxsize=64)
@quiet
def table(domain: Domain, dtype: str = "float64", smallest: float = 0.0, largest: float = math.inf) -> np.ndarray:
    """A table of numbers of a domain, in pages of 256: a read-only float64 array.

    The first quarter of a page holds simple numbers and edges, the same in every page. The second and the third quarter hold numbers near those at
    the same index of the first quarter: hypothesis simplifies by clearing bits of an index, which leads to a simpler number nearby. The last
    quarter holds numbers of every size and every distance from an end, and the edges that do not fit into the first quarter.

    >>> from symgrad.graph.domains import POSITIVE
    >>> table(POSITIVE)[7, :4].tolist(), bool(np.all(table(POSITIVE) > 0))
    ([1.0, 2.0, 3.0, 4.0], True)
    """
    unrestricted, floats = domain, Floats(dtype)
    domain, smallest, largest = restricted_domain(domain, smallest, largest)
    parts = parts_of(domain, floats)
    simple = simple_numbers(domain, dtype)
    edges = [x for x in edge_numbers(unrestricted, dtype, smallest) if abs(x) <= largest] or simple
    known = sorted({(x, math.copysign(1.0, x)): x for x in (*simple, *edges)}.values(), key=_page_order)  # a stable sort keeps simpler numbers first
    prefix, left = np.resize(known, PREFIX), known[PREFIX:]
    share = np.mod((np.arange(PAGES * PAGE).reshape(PAGES, PAGE) + 1) * GOLDEN, 1.0)
    low, high = (np.array([p[k] for p in parts]) for k in (0, 1))
    part = np.argmax((prefix[:, None] >= low) & (prefix[:, None] <= high), axis=1)
    near = _numbers_near(prefix, share[:, PREFIX:3 * PREFIX], low[part], high[part])
    out = np.empty((PAGES, PAGE))
    out[:, :PREFIX] = prefix
    out[:, PREFIX:3 * PREFIX] = floats.inside(near, parts, domain, np.tile(part, 2))
    last, which = share[:, 3 * PREFIX:], np.arange(PREFIX) % len(parts)
    extreme = _extreme_numbers(unrestricted, floats, last, prefix, (smallest, largest), near[:, :PREFIX])
    out[:, 3 * PREFIX:] = floats.inside(extreme, parts, domain, which)
    out = np.where((out != 0) & (np.abs(out) < smallest), np.tile(prefix, PAGE // PREFIX), out)
    if left:
        out[:, 3 * PREFIX::2] = np.resize(left, (PAGES, PREFIX // 2))
    out.flags.writeable = False
    return out


def _numbers_near(prefix: np.ndarray, share: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers near given ones: up to a quarter or a half away, or within three powers of ten of very small or large ones."""
    prefix, low, high = (np.tile(x, 2) for x in (prefix, low, high))
    sizes = np.abs(prefix)
    ordinary = (sizes == 0) | (sizes > 0.1) & (sizes < 100)
    gap = np.minimum(np.maximum(sizes, 1.0), high / 2 - low / 2)
    with np.errstate(over="ignore"):
        out = np.where(ordinary, prefix + (share - 0.5) * gap, prefix * np.power(10.0, 6.0 * share - 3.0))
        return np.where(ordinary & ((out < low) | (out > high)), prefix - (share - 0.5) * gap, out)


def _extreme_numbers(domain: Domain, floats: Floats, share: np.ndarray, prefix: np.ndarray, sizes: tuple[float, float],
                     instead: np.ndarray) -> np.ndarray:
    """Numbers of every size, and at every distance from the ends and excluded points of a domain.

    The signs are those of `prefix`, and the numbers are small where those of `prefix` are below 1. Numbers of `instead` replace those
    outside the domain.
    """
    finer = np.mod(share * 7919.0, 1.0)
    lowest, highest = math.log10(max(sizes[0], floats.smallest)), math.log10(min(sizes[1], floats.largest))
    out = np.copysign(np.power(10.0, np.where(np.abs(prefix) < 1, lowest, highest) * finer**3), prefix)
    places = [e for i in domain.intervals for e in (i.low, i.high) if math.isfinite(e)] + list(domain.excluded)
    places = [x for x in places if x and abs(x) <= sizes[1]]
    if places:
        steps = np.exp2(finer * floats.digits).astype(np.int64)
        sign = np.where(np.mod(share * 104729.0, 1.0) < 0.5, 1, -1)
        near = floats.moved(np.resize(floats.nearest(places), share.shape), sign * steps)
        out = np.where(np.arange(share.size).reshape(share.shape) % 2 == 0, near, out)
    allowed = np.zeros(share.shape, bool)
    for i in domain.intervals:
        allowed |= (out >= i.low) & (out <= i.high)
    return np.where(allowed, out, instead)


def fit(domain: MatrixDomain, x: np.ndarray) -> np.ndarray:
    """A well-conditioned matrix of a kind, made of the numbers of `x`; leading axes are a batch. The elements have like sizes, since the error of
    a factorization is relative to the norm of the matrix.

    >>> from symgrad.graph.domains import SPD
    >>> fit(SPD, np.ones((2, 2)))
    array([[1.75, 0.5 ],
           [0.5 , 1.75]])
    """
    n, size = x.shape[-1], np.abs(x)
    signs = x / np.where(size == 0, 1, size)
    if domain.kind == "distinct":
        return signs / 4 + np.arange(n)
    parts = signs * (size / (size.max(initial=0) or 1)) ** 0.125 / max(n, 1)  # the absolute values of a row have a sum of at most 1
    identity = np.eye(*x.shape[-2:])
    signed = parts + identity * np.copysign(1.25, parts.real)  # so that determinants have both signs
    if domain.kind == "well_separated_singular_values":
        return parts / 2 + identity * 2 * np.arange(1, n + 1)
    if domain.kind == "nonsingular":
        return signed
    if domain.kind == "full":
        return parts + identity * 1.25 + np.tril(np.ones_like(parts), -1)
    symmetric = (parts + np.conj(np.swapaxes(parts, -1, -2))) / 2
    if domain.kind == "spd":
        return symmetric + identity * 1.25
    if domain.kind == "symmetric":
        return symmetric
    if domain.kind == "well_separated_spectrum":
        return symmetric / 2 + identity * np.arange(1, n + 1)
    if domain.kind == "triangular":
        return signed
    return np.tril(signed) if domain.kind == "lower_triangular" else np.linalg.qr(parts + identity * 1.25)[0]
