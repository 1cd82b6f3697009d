"""Simplification of numbers while a condition holds: zeros and small integers first, then short decimals, then powers of ten."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["FROM_ONE", "FROM_ZERO", "shrink_values", "simpler_numbers", "simplicity", "weight"]

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
