"""A mapping that does not keep its keys alive."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import partial
from typing import TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(MutableMapping[K, V]):
    """As `weakref.WeakKeyDictionary`, but keys are compared by identity, since == of tensors is elementwise.

    Entries are removed in C, so that no interrupt is lost in a callback.

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
        self._entries: dict[int, tuple[ref[K], V]] = {}

    def __getitem__(self, key: K) -> V:
        return self._entries[id(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        # The dead reference arrives as the second argument of pop, its default.
        self._entries[id(key)] = ref(key, partial(self._entries.pop, id(key))), value

    def __delitem__(self, key: K) -> None:
        del self._entries[id(key)]

    def __iter__(self) -> Iterator[K]:
        for reference, _ in list(self._entries.values()):
            if (key := reference()) is not None:
                yield key

    def __len__(self) -> int:
        return len(self._entries)
