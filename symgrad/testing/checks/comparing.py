"""Two ways to the same numbers: what they may differ by is rounding, and how much that is the op itself says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.testing.failure import Wrong
from symgrad.testing.subjects.base import Array, Arrays
from symgrad.testing.tolerances import finfo

__all__ = ["ROUNDINGS", "Sides", "agree", "moderate", "moved", "same_bits", "wide"]

ROUNDINGS = 16  # allowed, in units of the sum of the absolute values of the terms
SPREADS = 8  # allowed, in units of what the difference varies by when the inputs move by their last places
PROBES = 64
REACH = (4.0, 64.0, 4096.0, 2.0**20)  # last places that the inputs move by, in each quarter of the probes
TINY = 2.0**-1074
MODERATE = (1e100, 1e50, 1e30)


class Sides(NamedTuple):
    """Two arrays that should be the same up to rounding, with the size of the terms they are made of.

    `identical` says that where one is not finite the other must be the same; elsewhere such places are passed over.
    """

    what: str
    left: Array
    right: Array
    size: Array
    order: int | None = None
    wrt: tuple[int, ...] = ()
    identical: bool = False


def wide(x: Any) -> Array:
    """The numbers as doubles, or as complex numbers of doubles."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def epsilon(arrays: Arrays) -> float:
    """The largest unit in the last place of 1 among the floating-point dtypes of some arrays."""
    return max((float(finfo(x.dtype).eps) for x in arrays if x.dtype.kind in "fcV"), default=2.0**-52)


def moved(x: Array, k: int) -> Array:
    """The array with each number moved by some of its last places, the more the higher k is: up in size for an even k, down for an odd one.

    Equal numbers move alike, so that ties stay ties; and all go to one side, so that at a kink nothing jumps between two calls on the same side.

    >>> a, b, c = moved(np.array([1.0, 1.0, 2.0]), 0)
    >>> bool(a == b > 1.0 and c > 2.0)
    True
    """
    if x.dtype.kind not in "fcV":
        return x
    numbers = np.ascontiguousarray(wide(x)).reshape(x.shape).view(np.float64) if x.ndim else wide(x).reshape(1).view(np.float64)
    mixed = (numbers.view(np.uint64) ^ np.uint64(k * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    parts = (1.0 + (mixed >> np.uint64(32)).astype(np.float64)) * 2.0**-32
    out = numbers + numbers * (parts * (REACH[min(4 * k // PROBES, 3)] * float(finfo(x.dtype).eps) * (-1.0 if k % 2 else 1.0)))
    return (out.view(np.complex128) if x.dtype.kind == "c" else out).reshape(x.shape).astype(x.dtype)


def moderate(xs: Arrays, shape: tuple[int, ...], order: int, each: bool) -> Array:
    """Where every argument is of a size at which derivatives of an order neither overflow nor lose digits to underflow, as an array of a shape.

    With `each` an element of the result depends on the same element of the arguments alone, else on all of them.
    """
    limit = MODERATE[order - 1]
    out = np.ones(shape, dtype=bool)
    for x in xs:
        if x.dtype.kind in "fcV":
            size = np.abs(wide(x))
            fine = (size == 0) | (size > 1 / limit) & (size < limit)
            out &= fine if each and fine.shape == shape else bool(fine.all())
    return out


def agree(sides: Callable[[Sequence[Array]], list[Sides]], arrays: Sequence[Array], exact: str = "") -> None:
    """Raise `Wrong` where two sides differ by more than 16 roundings of their terms, and by more than rounding can explain.

    `sides(arrays)` computes them. Where cancellation leaves more than the 16 roundings, they are computed again with every number in
    `arrays` moved by a few last places: a difference of rounding then varies as much as it is large, one of a mistake stays.
    """
    found = sides(arrays)
    unit = epsilon(arrays)
    suspects: list[tuple[int, Array]] = []
    for n, (what, left, right, size, order, wrt, identical) in enumerate(found):
        if left.shape != right.shape:
            raise Wrong(f"{what}: the shape is {left.shape} and should be {right.shape}", left, right, order=order, wrt=wrt, exact=exact)
        finite = np.isfinite(left) & np.isfinite(right)
        far = finite & ~(np.abs(wide(left) - wide(right)) <= ROUNDINGS * (unit * size + TINY)) & np.isfinite(size)
        if identical and not finite.all():
            odd = ~finite & ~((left == right) | (left != left) & (right != right))
            if odd.any():
                raise _wrong(found[n], odd, exact)
        if far.any():
            suspects.append((n, far))
    if suspects:
        suspects = _unexplained(sides, arrays, found, suspects)
    if suspects:
        n, far = suspects[0]
        raise _wrong(found[n], far, exact)


def _unexplained(sides: Callable[[Sequence[Array]], list[Sides]], arrays: Sequence[Array], found: list[Sides],
                 suspects: list[tuple[int, Array]]) -> list[tuple[int, Array]]:
    """Those of the differences that are larger than what they vary by when the numbers move by their last places."""
    low = {(n, side): np.full(far.shape, np.inf) for n, far in suspects for side in (0, 1)}
    high = {key: -x for key, x in low.items()}
    for k in range(PROBES):
        try:
            again = sides([moved(x, k) for x in arrays])
        except Exception:  # the op refuses what lies outside its domain
            continue
        for n, far in suspects:
            difference = wide(again[n].left) - wide(again[n].right)
            difference = np.abs(difference) if difference.dtype.kind == "c" else difference
            if difference.shape == far.shape:
                low[n, k % 2] = np.fmin(low[n, k % 2], difference)
                high[n, k % 2] = np.fmax(high[n, k % 2], difference)
        if k % 16 == 15:
            left = []
            for n, far in suspects:
                spread = np.fmax(*(np.where(high[n, s] >= low[n, s], high[n, s] - low[n, s], 0.0) for s in (0, 1)))
                far = far & ~(np.abs(wide(found[n].left) - wide(found[n].right)) <= SPREADS * spread)
                if far.any():
                    left.append((n, far))
            suspects = left
            if not suspects:
                break
    return suspects


def _wrong(sides: Sides, far: Array, exact: str) -> Wrong:
    at = tuple(int(i) for i in np.argwhere(far)[0]) if far.ndim else ()
    return Wrong(sides.what, np.asarray(sides.left)[at], np.asarray(sides.right)[at], index=at, order=sides.order, wrt=sides.wrt, exact=exact)


def same_bits(what: str, a: Any, b: Any, **where: Any) -> None:
    """Raise `Wrong` unless two arrays are the same to the bit, NaN included; None is the same as None."""
    if a is None and b is None:
        return
    if a is None or b is None:
        raise Wrong(f"{what}: one is None, the other is not", a, b, **where)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Wrong(f"{what}: shape and dtype are {a.shape}, {a.dtype} and {b.shape}, {b.dtype}", a, b, **where)
    if a.tobytes() != b.tobytes():
        differ = (a != b) & ~((a != a) & (b != b)) | (np.signbit(a) != np.signbit(b) if a.dtype.kind == "f" else False)
        if not differ.any():
            return
        at = tuple(int(i) for i in np.argwhere(differ)[0])
        raise Wrong(what, a[at], b[at], index=at, **where)
