"""Caches of results by signature: bounded in entries, and for caches that outlive their function also in bytes."""

from __future__ import annotations

from typing import Any

__all__ = ["Cache", "shared"]

BUDGET = 16_000_000  # bytes in the cache that outlives its functions


class Cache:
    """A least-recently-used cache with at most `room` values, and with at most `budget` bytes if a budget is given.

    A value larger than a quarter of the budget is not stored. Threads may share a cache: at worst a value is computed twice.
    """

    def __init__(self, room: int, budget: int | None = None):
        self._entries: dict[Any, tuple[Any, int]] = {}
        self._room, self._budget = room, budget

    def get(self, key: Any) -> Any:
        """The value of a key; None if there is none."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        """Store a value, and return it."""
        entries, budget = self._entries, self._budget
        if budget is None or nbytes <= budget // 4:
            entries[key] = value, nbytes
            while len(entries) > self._room or budget is not None and self.nbytes > budget:
                entries.pop(next(iter(entries)), None)
        return value

    @property
    def nbytes(self) -> int:
        """The memory of all stored values."""
        return sum([nbytes for _, nbytes in list(self._entries.values())])

    def values(self) -> list[Any]:
        """The stored values, the most recently used last."""
        return [value for value, _ in list(self._entries.values())]

    def clear(self) -> None:
        """Remove all values."""
        self._entries.clear()


shared = Cache(64, BUDGET)
