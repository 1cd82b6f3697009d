"""Caches of what was found out about computations of one form: bounded in entries, and those that outlive their function bounded in bytes, too."""

from __future__ import annotations

from typing import Any

__all__ = ["Cache", "shared"]

BUDGET = 16_000_000  # bytes of what is kept for functions that may be forgotten


class Cache:
    """The values of the keys that were used last: at most `room` of them, and at most `budget` bytes where one is given.

    A value larger than a quarter of the budget is not kept. Threads may share a cache: at worst one finds out what another one knew.
    """

    def __init__(self, room: int, budget: int | None = None):
        self._known: dict[Any, tuple[Any, int]] = {}
        self._room, self._budget = room, budget

    def get(self, key: Any) -> Any:
        """The value of a key; None where it is not known."""
        entry = self._known.pop(key, None)
        if entry is None:
            return None
        self._known[key] = entry
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        """Keep a value, and return it."""
        known, budget = self._known, self._budget
        if budget is None or nbytes <= budget // 4:
            known[key] = value, nbytes
            while len(known) > self._room or budget is not None and self.nbytes > budget:
                known.pop(next(iter(known)), None)
        return value

    @property
    def nbytes(self) -> int:
        """The memory of all that is kept."""
        return sum([nbytes for _, nbytes in list(self._known.values())])

    def values(self) -> list[Any]:
        """What is kept, the newest last."""
        return [value for value, _ in list(self._known.values())]

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


shared = Cache(64, BUDGET)
