"""Sets of real numbers with exact ends: intervals, and whole numbers between two ends."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

__all__ = ["Piece"]


@dataclass(frozen=True)
class Piece:
    """The real numbers between two ends (None: infinite), or those with the remainder `offset` modulo `step`."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    step: int = 0
    offset: int = 0

    def __contains__(self, x: Fraction) -> bool:
        if self.low is not None and (x < self.low or self.open_low and x == self.low):
            return False
        if self.high is not None and (x > self.high or self.open_high and x == self.high):
            return False
        return not self.step or x.denominator == 1 and x.numerator % self.step == self.offset

    def __and__(self, other: Piece) -> Piece:
        low, open_low = _inner(self.low, self.open_low, other.low, other.open_low, max)
        high, open_high = _inner(self.high, self.open_high, other.high, other.open_high, min)
        finer = max(self, other, key=lambda piece: piece.step)
        coarser = other if finer is self else self
        if coarser.step and finer.offset % coarser.step != coarser.offset:
            high, low = Fraction(0), Fraction(1)  # the lattices have no common number
        return Piece(low, high, open_low, open_high, finer.step, finer.offset)

    @property
    def empty(self) -> bool:
        """Whether it is empty."""
        if self.low is None or self.high is None:
            return False
        if self.step:
            return self._whole(self.low, self.high) is None
        return self.low > self.high or self.low == self.high and (self.open_low or self.open_high)

    def _whole(self, low: Fraction, high: Fraction) -> int | None:
        """The smallest number of a lattice inside two ends."""
        n = -(-low.numerator // low.denominator)
        n += (self.offset - n) % self.step
        while n <= high:
            if Fraction(n) in self:
                return n
            n += self.step
        return None

    def draw(self, rng: Random, size: str) -> Fraction:
        """A number inside: of "moderate" size, of "any" size (over many magnitudes, and close to the ends), or "far" from 0."""
        if self.low is not None and self.low == self.high:
            return self.low
        if self.step:
            return self._draw_whole(rng, size)
        if self.low is None or self.high is None:
            x = _length(rng, size)
            if self.low is not None:
                return self.low + x
            if self.high is not None:
                return self.high - x
            return x if rng.random() < 0.5 else -x
        part = Fraction(rng.randint(1, 1023), 1024) if size == "moderate" else Fraction(1, 2 ** rng.randint(1, 30))
        part = 1 - part if rng.random() < 0.5 else part
        return self.low + (self.high - self.low) * part

    def _draw_whole(self, rng: Random, size: str) -> Fraction:
        reach = {"moderate": 8, "any": 30, "far": 200}[size]
        low = self.low if self.low is not None else (self.high - reach if self.high is not None else Fraction(-reach))
        high = min(self.high, low + 2 * reach) if self.high is not None else low + (reach if self.low is not None else 2 * reach)
        x = Fraction(rng.randint(-(-low.numerator // low.denominator), high.numerator // high.denominator))
        if self.step > 1:
            x += (self.offset - x) % self.step
        if x in self:
            return x
        first = self._whole(low, high)
        return Fraction(0 if first is None else first)


def _inner(a: Fraction | None, open_a: bool, b: Fraction | None, open_b: bool, inner: Any) -> tuple[Fraction | None, bool]:
    if a is None or b is None:
        return (b, open_b) if a is None else (a, open_a)
    return (a, open_a or open_b) if a == b else (a, open_a) if inner(a, b) == a else (b, open_b)


def _length(rng: Random, size: str) -> Fraction:
    """A positive number of few bits."""
    if size == "moderate":
        return Fraction(rng.randint(1, 512), 64)
    exponent = rng.randint(-30, 12) if size == "any" else rng.randint(4, 30)
    return Fraction(rng.randint(513, 1023), 1024) * Fraction(2) ** exponent
