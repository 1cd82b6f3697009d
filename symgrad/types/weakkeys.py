"""A mapping that does not keep its keys alive."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeVar
from weakref import ref

__all__ = ["WeakKeys"]

K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(MutableMapping[K, V]):
    """As `weakref.WeakKeyDictionary`, but entries are removed in C, so that no interrupt is lost in a callback.

    >>> import symgrad
    >>> colours = WeakKeys()
    >>> x = symgrad.tensor(1.0)
    >>> colours[x] = "red"
    >>> del x
    >>> len(colours)
    0
    """

    __slots__ = ("_entries", "__weakref__")

    def __init__(self) -> None:
        self._entries: dict[ref[K], V] = {}

    def __getitem__(self, key: K) -> V:
        return self._entries[ref(key)]

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[ref(key, self._entries.pop)] = value

    def __delitem__(self, key: K) -> None:
        del self._entries[ref(key)]

    def __iter__(self) -> Iterator[K]:
        for reference in list(self._entries):
            if (key := reference()) is not None:
                yield key

    def __len__(self) -> int:
        return len(self._entries)
