"""Caches by signature, bounded in entries, and, for a cache shared by functions, in bytes."""

from __future__ import annotations

import itertools
from typing import Any

__all__ = ["Cache", "programs", "shared"]

BUDGET = 16_000_000  # bytes of the shared cache


class Cache:
    """A least-recently-used cache with at most `room` values, and with at most `budget` bytes if a budget is given.

    A value larger than a quarter of the budget is not stored. Threads may share a cache: at worst a value is computed twice.
    """

    def __init__(self, room: int, budget: int | None = None):
        self._entries: dict[Any, list[Any]] = {}  # for each key [value, bytes, time of last use]
        self._room, self._budget, self._now = room, budget, itertools.count().__next__

    def get(self, key: Any) -> Any:
        """The value of a key; None if there is none."""
        entry = self._entries.get(key)  # a single lookup, since the hash of a long key dominates the cost
        if entry is None:
            return None
        entry[2] = self._now()
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        """Store a value, and return it."""
        entries, budget = self._entries, self._budget
        if budget is None or nbytes <= budget // 4:
            entries[key] = [value, nbytes, self._now()]
            while len(entries) > self._room or budget is not None and self.nbytes > budget:
                oldest, _ = min(list(entries.items()), key=_used, default=(key, None))
                entries.pop(oldest, None)
        return value

    @property
    def nbytes(self) -> int:
        """The memory of all stored values."""
        return sum([nbytes for _, nbytes, _ in list(self._entries.values())])

    def values(self) -> list[Any]:
        """The stored values, the most recently used last."""
        return [entry[0] for _, entry in sorted(list(self._entries.items()), key=_used)]

    def clear(self) -> None:
        """Remove all values."""
        self._entries.clear()


def _used(item: tuple[Any, list[Any]]) -> int:
    return item[1][2]


shared = Cache(64, BUDGET)
programs = Cache(100_000, 256_000_000)
