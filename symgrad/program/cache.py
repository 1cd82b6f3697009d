"""The library's one cache: programs and analyses of graphs by signature, bounded in bytes."""

from __future__ import annotations

import itertools
from typing import Any

__all__ = ["Cache", "programs"]

BUDGET = 256_000_000  # bytes
LEAST = 1000  # bytes that every entry counts


class Cache:
    """A least-recently-used cache of at most `budget` bytes. A value larger than a quarter of that is not stored.

    Threads may share a cache: at worst a value is computed twice.
    """

    def __init__(self, budget: int):
        self._entries: dict[Any, list[Any]] = {}  # for each key [value, bytes, time of last use]
        self.budget, self._now, self.nbytes = budget, itertools.count().__next__, 0

    def get(self, key: Any) -> Any:
        entry = self._entries.get(key)  # a single lookup, since the hash of a long key dominates the cost
        if entry is None:
            return None
        entry[2] = self._now()
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        nbytes += LEAST
        if nbytes <= self.budget // 4:
            self._entries[key] = [value, nbytes, self._now()]
            self.nbytes = sum([entry[1] for entry in list(self._entries.values())])
            if self.nbytes > self.budget:
                self._shrink()
        return value

    def _shrink(self) -> None:
        """Remove the entries that were not used for longest, until a tenth of the budget is free."""
        for key, (_, nbytes, _) in sorted(list(self._entries.items()), key=lambda item: item[1][2]):
            if self.nbytes <= self.budget * 9 // 10:
                break
            if self._entries.pop(key, None) is not None:
                self.nbytes -= nbytes

    def discard(self, key: Any) -> None:
        self._entries.pop(key, None)

    def values(self) -> list[Any]:
        """The stored values, the most recently used last."""
        return [entry[0] for entry in sorted(list(self._entries.values()), key=lambda entry: entry[2])]

    def clear(self) -> None:
        self._entries.clear()


programs = Cache(BUDGET)
