"""Versions of memory: which write changed an array, when, and on whose line.

Nothing is counted where a value is saved for a pullback. A write stamps the owner of the memory with its place in time, and a
pullback asks only about nodes that are older than the newest write of all, so that a program without writes pays nothing.
"""

from __future__ import annotations

import linecache
import os
import sys
import weakref
from collections import deque
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.batched import Batched, raw
from symgrad.graph.node import board, next_sequence
from symgrad.types.strides import address

__all__ = ["Alias", "Write", "carry_over", "first_write_after", "owner", "promote", "stamp", "tell", "user_frame",
           "version", "written_since"]

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
REMEMBERED = 64  # writes of one array whose place in time is kept; older ones are only counted


class Write(NamedTuple):
    """One write: its place in time, the operation, and where in the user's code it stands."""

    sequence_nr: int
    operation: str
    code: CodeType
    instruction: int

    @property
    def line(self) -> str:
        """The file, the line number and the text of the line."""
        number = next((line for start, end, line in self.code.co_lines() if start <= self.instruction < end), None) or self.code.co_firstlineno
        text = linecache.getline(self.code.co_filename, number).strip()
        return f"{self.code.co_filename}:{number}" + (f": {text}" if text else "")


class _Storage:
    """The writes into the memory that one array owns."""

    __slots__ = ("reference", "count", "last", "writes", "families", "sharing")

    def __init__(self, root: np.ndarray):
        key = id(root)
        self.reference = weakref.ref(root, lambda _: _storages.pop(key, None))
        self.count = self.last = 0  # the last write's place in time
        self.writes = deque[tuple[int, str, CodeType, int]](maxlen=REMEMBERED)
        self.sharing: list[weakref.ref] = []
        self.families: list[weakref.ref] = []  # of views on this memory; each is told of a write


class Alias:
    """The memory of an array under another owner, so that its writes are counted by themselves: what `.data` is."""

    __slots__ = ("base", "__array_interface__")

    def __init__(self, array: np.ndarray):
        self.base, self.__array_interface__ = array, array.__array_interface__

    @classmethod
    def of(cls, array: Any) -> Any:
        """An array of the same elements in the same memory, which owns its own version.

        Where the memory is one block, the new owner has all of it, so that views of it reach as far as before.
        """
        if isinstance(array, Batched):  # which nobody writes to
            return array
        root = owner(array)
        block = root.flags.c_contiguous or root.flags.f_contiguous
        out = np.asarray(cls(root if block else array))
        if not block:
            return out if out.dtype == array.dtype else out.view(array.dtype)
        return np.ndarray(array.shape, array.dtype, out, (address(array) - address(root)) if array.size else 0, array.strides)


_storages: dict[int, _Storage] = {}
_scalars: dict[int, tuple[Any, _Storage, np.ndarray | None]] = {}  # NumPy scalars that became arrays, which graphs may have saved
_limit = 1024


def owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory this one shows."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def _storage(array: np.ndarray) -> _Storage:
    root = array if array.base is None else owner(array)
    found = _storages.get(id(root))
    if found is None:
        found = _storages[id(root)] = _Storage(root)
    return found


def promote(scalar: Any) -> np.ndarray:
    """A NumPy scalar as an array of no dimensions; who saved the scalar before is told of writes into the array."""
    global _limit
    array = np.array(scalar)
    if len(_scalars) > _limit:
        for key in list(_scalars):  # the keys alone: nothing is made meanwhile, so that no other thread has its turn
            if (entry := _scalars.get(key)) is not None and sys.getrefcount(entry[0]) <= 2:  # nobody else has it
                _scalars.pop(key, None)
        _limit = max(1024, 2 * len(_scalars))
    _scalars[id(scalar)] = scalar, _storage(array), None
    return array


def user_frame(depth: int) -> FrameType:
    """The nearest frame, from `depth` frames above the caller on, that is not this package's own."""
    frame: Any = sys._getframe(depth + 1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


_others: set[str] = set()  # files that are not this package's


def stamp(array: np.ndarray, operation: str) -> None:
    """Count a write into the array's memory."""
    root = array if array.base is None else owner(array)
    storage = _storages.get(id(root))
    if storage is None:
        storage = _storages[id(root)] = _Storage(root)
    frame: Any = sys._getframe(2)
    code = frame.f_code
    if code.co_filename not in _others:
        while code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        _others.add(code.co_filename)
    storage.count += 1
    board.written = storage.last = now = next_sequence()
    storage.writes.append((now, operation, code, frame.f_lasti))
    if storage.families:
        for reference in storage.families:
            family = reference()
            if family is not None:
                family.outdate()


def _known(value: Any) -> _Storage | None:
    value = raw(value)
    if isinstance(value, np.ndarray):
        return _storages.get(id(value if value.base is None else owner(value)))
    entry = _scalars.get(id(value))
    return None if entry is None else entry[1]


def tell(array: np.ndarray, family: Any) -> None:
    """Let a family of views know of every write into the array's memory."""
    storage = _storage(array)
    storage.families = [r for r in storage.families if r() is not None] + [weakref.ref(family)]


def carry_over(old: np.ndarray, array: np.ndarray) -> None:
    """Let an array that takes the place of another share its version: writes into either count for both."""
    root = owner(array)
    key = id(root)
    storage = _storages[key] = _storage(old)
    storage.sharing.append(weakref.ref(root, lambda _: _storages.pop(key, None)))


def version(value: Any) -> int:
    """How often the memory was written."""
    storage = _known(value)
    return 0 if storage is None else storage.count


def first_write_after(value: Any, sequence_nr: int) -> tuple[Write, int, int] | None:
    """The first write after a place in time with the versions now and then; None if there was none."""
    storage = _known(value)
    if storage is None or storage.last <= sequence_nr:
        return None
    later = [write for write in storage.writes if write[0] > sequence_nr]
    return Write(*later[0]), storage.count, storage.count - len(later)


def written_since(value: Any, sequence_nr: int) -> bool:
    """Whether the memory was written after a place in time."""
    if type(value) is np.ndarray:
        storage = _storages.get(id(value if value.base is None else owner(value)))
        return storage is not None and storage.last > sequence_nr
    if type(value) is Batched:
        return written_since(raw(value), sequence_nr)
    return bool(_scalars) and (entry := _scalars.get(id(value))) is not None and entry[1].last > sequence_nr
