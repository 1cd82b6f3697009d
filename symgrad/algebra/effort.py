"""Effort: counted work. What an answer may cost is counted, so that it is the same on every machine and under any load."""

from __future__ import annotations

from symgrad.algebra.limits import poll


class TooLarge(Exception):
    """The error for a computation that needs more work than it is allowed."""


class Effort:
    """An allowance of work, by default counted in term pairs of polynomial products.

    >>> whole = Effort(100)
    >>> part = whole.part(30)
    >>> part.spend(20)
    >>> whole.left, part.left
    (80, 10)
    """

    __slots__ = ("left", "outer")

    def __init__(self, work: float, outer: Effort | None = None):
        self.left, self.outer = work, outer

    def spend(self, work: float = 1) -> None:
        """Count some work. Raises TooLarge once more than the allowance is spent."""
        poll()
        self.left -= work
        if self.outer is not None:
            self.outer.spend(work)
        if self.left < 0:
            raise TooLarge

    def part(self, work: float) -> Effort:
        """An allowance of at most some of the work that is left; what is spent of it is spent of the whole."""
        return Effort(max(0, min(work, self.left)), self)
