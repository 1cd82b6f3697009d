"""Weights of the elements of an axis in the elements of another one: means of windows, and interpolation.

Each result is a sum of few elements, its taps. A kind of weights is named by a tuple of numbers; the weights are exact fractions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Spec = tuple[Any, ...]
Row = list[tuple[int, Fraction]]  # the elements that a result has, with their weights


class Tap:
    """One element of each result: the places of the results that have one, those of the elements, and the weights."""

    __slots__ = ("denominators", "elements", "floats", "numerators", "results")

    def __init__(self, results: Any, elements: Any, numerators: Any, denominators: Any):
        self.results, self.elements, self.numerators, self.denominators = results, elements, numerators, denominators
        floats = numerators / denominators
        self.floats = floats.astype(float) if isinstance(floats, np.ndarray) else floats


def _tap(results: list[int], elements: list[int], weights: list[Fraction], count: int) -> Tap:
    """A tap of places in lists; `results` is None for all of them."""
    numerators, denominators = ([getattr(w, part) for w in weights] for part in ("numerator", "denominator"))
    return Tap(_progression(results) if len(results) < count else None, _progression(elements), _exact(numerators), _exact(denominators))


def _exact(numbers: Sequence[int]) -> Any:
    """Exact integers, or one that all are."""
    return numbers[0] if len(set(numbers)) == 1 else np.array(numbers, dtype=object)


def _progression(places: list[int]) -> Any:
    """The places as a slice if they are an arithmetic progression, else as an array."""
    step = places[1] - places[0] if len(places) > 1 else 1
    if step > 0 and places == list(range(places[0], places[0] + step * len(places), step)):
        return slice(places[0], places[-1] + 1, step)
    return np.array(places)


@functools.lru_cache(512)
def taps(spec: Spec, transposed: bool) -> tuple[int, tuple[Tap, ...]]:
    """The number of results and their taps; transposed, the results are the elements of the axis before."""
    kind, before, after, *given = spec
    if kind == "mean":
        return before if transposed else after, tuple(_means(before, after, transposed, *given))
    rows = list(ROWS[kind](before, after, *given))
    if transposed:
        columns: list[Row] = [[] for _ in range(before)]
        for i, row in enumerate(rows):
            for j, weight in row:
                columns[j].append((i, weight))
        rows = columns
    out = []
    for t in range(max(map(len, rows), default=0)):
        having = [(i, row[t]) for i, row in enumerate(rows) if len(row) > t]
        out.append(_tap([i for i, _ in having], [j for _, (j, _) in having], [w for _, (_, w) in having], len(rows)))
    return len(rows), tuple(out)


# Windows


def pooled_size(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The number of windows along an axis; with `ceil_mode` one more may reach beyond the end, if it begins in the input or its left border."""
    reach = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-reach // stride) if ceil_mode else reach // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= n + padding else count


def _means(before: int, after: int, transposed: bool, kernel: int, stride: int, padding: int, border: bool, total: bool) -> Iterator[Tap]:
    """The means over windows, or their sums, with a tap for each place in a window; `border` counts the zeros around the axis, too."""
    starts = np.arange(after) * stride - padding
    ends = np.minimum(starts + kernel, before + padding)
    counts = ends - starts if border else np.minimum(ends, before) - np.maximum(starts, 0)
    for k in reversed(range(kernel)) if transposed else range(kernel):  # so that sums are of elements in their order
        first, end = max(-((k - padding) // stride), 0), min((before - 1 - k + padding) // stride + 1, after)  # the windows whose place k is inside
        if first < end:
            at = first * stride - padding + k
            windows, elements = slice(first, end), slice(at, at + (end - first - 1) * stride + 1, stride)
            places, number = (elements, before) if transposed else (windows, after)
            every = len(range(number)[places]) == number
            yield Tap(None if every else places, windows if transposed else elements, 1, 1 if total else _exact(counts[windows].tolist()))


def _adaptive(before: int, after: int) -> Iterator[Row]:
    """The means over windows that cover the axis evenly."""
    for i in range(after):
        inside = range(i * before // after, -(-(i + 1) * before // after))
        yield [(j, Fraction(1, len(inside))) for j in inside]


# Interpolation


LINEAR = ("linear", "bilinear", "trilinear")


def interpolation(shape: tuple[int, ...], output_size: tuple[int, ...], align_corners: bool, scales: Any, mode: str,
                  antialias: bool) -> tuple[Spec | None, ...]:
    """The names of the weights along each of the last axes; `scales` are factors that replace the quotients of the sizes."""
    rank = len(output_size)
    factors = scales if isinstance(scales, tuple) else (scales,) * rank
    out: list[Spec | None] = []
    for before, after, factor in zip(shape[len(shape) - rank:], output_size, factors):
        if mode.startswith("nearest"):
            out.append(("nearest", before, after, mode == "nearest-exact", factor))
        elif antialias:
            out.append(("smoothed", before, after, align_corners, factor, mode))
        else:
            out.append(("linear" if mode in LINEAR else "cubic", before, after, align_corners, factor))
    return tuple(out)


def _source(i: int, scale: Fraction, align_corners: bool, cubic: bool = False) -> Fraction:
    """The coordinate in the axis before of the i-th element of the axis after."""
    if align_corners:
        return scale * i
    at = scale * (i + Fraction(1, 2)) - Fraction(1, 2)
    return at if cubic else max(at, Fraction(0))


def _scale(before: int, after: int, align_corners: bool, factor: float | None) -> Fraction:
    if align_corners:
        return Fraction(before - 1, after - 1) if after > 1 else Fraction(0)
    return Fraction(1.0 / factor) if factor else Fraction(before, after)


def _linear(before: int, after: int, align_corners: bool, factor: float | None) -> Iterator[Row]:
    scale = _scale(before, after, align_corners, factor)
    for i in range(after):
        at = _source(i, scale, align_corners)
        low = min(math.floor(at), before - 1)
        part = min(at - low, Fraction(1))
        yield _merged([(low, 1 - part), (min(low + 1, before - 1), part)])


def _cubic_weight(x: Fraction, a: Fraction) -> Fraction:
    """The kernel of cubic convolution at a distance."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else Fraction(0)


def _cubic(before: int, after: int, align_corners: bool, factor: float | None) -> Iterator[Row]:
    scale, a = _scale(before, after, align_corners, factor), Fraction(-3, 4)
    for i in range(after):
        at = _source(i, scale, align_corners, cubic=True)
        low = math.floor(at)
        yield _merged([(min(max(j, 0), before - 1), _cubic_weight(at - j, a)) for j in range(low - 1, low + 3)])


def _smoothed(before: int, after: int, align_corners: bool, factor: float | None, mode: str) -> Iterator[Row]:
    """Interpolation with a kernel that is as wide as an element of the axis after, so that small ones do not alias."""
    kernel, reach = KERNELS[mode]
    scale = _scale(before, after, align_corners, factor)
    width = max(scale, Fraction(1))
    for i in range(after):
        center = scale * (i + Fraction(1, 2))
        inside = range(max(math.floor(center - reach * width + Fraction(1, 2)), 0), min(math.floor(center + reach * width + Fraction(1, 2)), before))
        weights = [kernel((j - center + Fraction(1, 2)) / width) for j in inside]
        total = sum(weights)
        yield _merged([(j, w / total) for j, w in zip(inside, weights)])


def _lanczos_weight(x: Fraction) -> Fraction:
    """sinc(x) sinc(x / 3) inside of ±3, rounded to a float."""
    return Fraction(float(np.sinc(float(x)) * np.sinc(float(x) / 3))) if abs(x) < 3 else Fraction(0)


KERNELS: dict[str, tuple[Callable[[Fraction], Fraction], int]] = {
    "bilinear": (lambda x: max(1 - abs(x), Fraction(0)), 1), "bicubic": (lambda x: _cubic_weight(x, Fraction(-1, 2)), 2),
    "lanczos": (_lanczos_weight, 3)}


def _nearest(before: int, after: int, exact: bool, factor: float | None) -> Iterator[Row]:
    """The element that is nearest in floats of four bytes, as torch computes it."""
    scale = np.float32(1.0 / factor) if factor else np.float32(before) / np.float32(after)
    for i in range(after):
        at = np.float32((i + 0.5) * float(scale)) if exact else np.float32(i) * scale
        yield [(min(math.floor(at), before - 1), Fraction(1))]


def _merged(row: Row) -> Row:
    """Elements once each, without those of weight 0."""
    weights: dict[int, Fraction] = {}
    for j, weight in row:
        weights[j] = weights.get(j, Fraction(0)) + weight
    return [(j, weight) for j, weight in sorted(weights.items()) if weight]


ROWS: dict[str, Callable[..., Iterator[Row]]] = {"adaptive": _adaptive, "linear": _linear, "cubic": _cubic, "smoothed": _smoothed,
                                                 "nearest": _nearest}
