"""Caches of what was found out about computations of one form: bounded in entries, and those that outlive their function bounded in bytes, too."""

from __future__ import annotations

import itertools
from typing import Any

__all__ = ["Cache", "shared"]

BUDGET = 16_000_000  # bytes of what is kept for functions that may be forgotten


class Cache:
    """The values of the keys that were used last: at most `room` of them, and at most `budget` bytes where one is given.

    A value larger than a quarter of the budget is not kept. Threads may share a cache: at worst one finds out what another one knew.
    """

    def __init__(self, room: int, budget: int | None = None):
        self._known: dict[Any, list[Any]] = {}  # for each key the value, its bytes and when it was used last
        self._room, self._budget, self._now = room, budget, itertools.count().__next__

    def get(self, key: Any) -> Any:
        """The value of a key; None where it is not known."""
        entry = self._known.get(key)  # the one look-up: the hash of a long key costs more than all else here
        if entry is None:
            return None
        entry[2] = self._now()
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        """Keep a value, and return it."""
        known, budget = self._known, self._budget
        if budget is None or nbytes <= budget // 4:
            known[key] = [value, nbytes, self._now()]
            while len(known) > self._room or budget is not None and self.nbytes > budget:
                oldest, _ = min(list(known.items()), key=_used, default=(key, None))
                known.pop(oldest, None)
        return value

    @property
    def nbytes(self) -> int:
        """The memory of all that is kept."""
        return sum([nbytes for _, nbytes, _ in list(self._known.values())])

    def values(self) -> list[Any]:
        """What is kept, the newest last."""
        return [entry[0] for _, entry in sorted(list(self._known.items()), key=_used)]

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


def _used(item: tuple[Any, list[Any]]) -> int:
    return item[1][2]


shared = Cache(64, BUDGET)
