"""Version counters: the writes into each memory, with their sequence numbers and lines.

Saving a value for a pullback costs nothing. A write stamps the counter of the memory with its sequence number, and a pullback verifies only nodes
older than the newest write, so that a program without writes pays nothing.

A node saves arrays, not tensors, and a NumPy array has neither attributes nor a hash, so the counters are in a table by the id of the array that
owns the memory. The table keeps nothing alive: a weak reference removes the entry with its array, and its callback is `dict.pop` itself, which no
signal can interrupt. NumPy scalars have no weak references; a bounded number of those that became arrays is kept.
"""

from __future__ import annotations

import functools
import linecache
import sys
import weakref
from collections import deque
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.batched import Batched, raw
from symgrad.carriers.duck import DuckArray
from symgrad.graph.node import all_threads, next_sequence
from symgrad.layouts.strides import address
from symgrad.system.frames import user_frame

REMEMBERED = 64  # writes of one memory whose sequence number is kept; older ones are only counted


class Write(NamedTuple):
    """One write: its sequence number, the operation, and its line in the user's code."""

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


class Counter:
    """The version counter of one memory: the number of writes, and the latest of them."""

    __slots__ = ("count", "last", "writes", "owners", "bases", "scalar")

    def __init__(self) -> None:
        self.count = self.last = 0  # the sequence number of the last write
        self.writes = deque[tuple[int, str, CodeType, int]](maxlen=REMEMBERED)
        self.owners: list[weakref.ref] = []  # the arrays that own the memory; several after `x.data = y`
        self.scalar = 0  # the id of the scalar that the array replaces
        self.bases: list[weakref.ref] = []  # the `Base` metadata of this memory, whose views a write makes stale

    def own(self, root: np.ndarray) -> None:
        """Use this counter for an array that owns its memory, while it is alive."""
        key = id(root)
        self.owners = [r for r in self.owners if r() is not None] + [weakref.ref(root, functools.partial(_counters.pop, key))]

    def notify(self, base: Any) -> None:
        """Call `base.make_stale()` on every write, while the object is alive."""
        self.bases = [r for r in self.bases if r() is not None] + [weakref.ref(base)]


class Alias:
    """The memory of an array under another owner with a separate version counter, for `.data`."""

    __slots__ = ("base", "__array_interface__")

    def __init__(self, array: np.ndarray):
        self.base, self.__array_interface__ = array, array.__array_interface__

    @classmethod
    def of(cls, array: Any) -> Any:
        """The same elements in the same memory, with a separate version counter.

        The new owner covers the whole memory if that is one block, so that views of it reach as far as before.
        """
        if isinstance(array, DuckArray):  # is never written in place
            return array
        root = owner(array)
        block = root.flags.c_contiguous or root.flags.f_contiguous
        out = np.asarray(cls(root if block else array))
        if not block:
            return out if out.dtype == array.dtype else out.view(array.dtype)
        return np.ndarray(array.shape, array.dtype, out, (address(array) - address(root)) if array.size else 0, array.strides)


_counters: dict[int, Counter] = {}
_scalars: dict[int, tuple[Any, Counter]] = {}  # scalars that became arrays; a graph may have saved them
_limit = 1024


def owner(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of this one."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def counter_of(array: np.ndarray) -> Counter:
    """The counter of an array's memory, created if there is none."""
    root = array if array.base is None else owner(array)
    found = _counters.get(id(root))
    if found is None:
        found = Counter()
        found.own(root)
        found = _counters.setdefault(id(root), found)  # another thread may have created one
    return found


def promote(scalar: Any) -> np.ndarray:
    """A NumPy scalar as an array of no dimensions; a write into the array counts for nodes that saved the scalar.

    Booleans are left out: NumPy has one object for each of the two, which all tensors share.
    """
    global _limit
    array = np.array(scalar)
    if type(scalar) is np.bool_:
        return array
    if len(_scalars) > _limit:
        for key in list(_scalars):  # a copy of the keys in one step, which no other thread can interrupt
            if (entry := _scalars.get(key)) is not None and sys.getrefcount(entry[0]) <= 2:  # nothing else refers to it
                _scalars.pop(key, None)
        _limit = max(1024, 2 * len(_scalars))
    counter = counter_of(array)
    counter.scalar = id(scalar)
    _scalars[id(scalar)] = scalar, counter
    return array


def promoted(array: np.ndarray) -> Any:
    """The NumPy scalar that an array of no dimensions replaces, None if there is none."""
    counter = _known(array)
    entry = None if counter is None else _scalars.get(counter.scalar)
    return entry[0] if entry is not None and entry[1] is counter else None


_outside: set[str] = set()  # files outside of this package


def stamp(array: np.ndarray, operation: str, frame: Any = None) -> None:
    """Count a write into the array's memory, from a frame, by default the nearest one outside of this package.

    It is called before the write, so that an interrupted one is counted, too.
    """
    counter = _counters.get(id(array if array.base is None else owner(array)))
    if counter is None:
        counter = counter_of(array)
    if frame is None:
        frame = sys._getframe(2)
    if frame.f_code.co_filename not in _outside:
        frame = user_frame(1)
        _outside.add(frame.f_code.co_filename)
    now = next_sequence()
    counter.writes.append((now, operation, frame.f_code, frame.f_lasti))
    counter.count += 1
    all_threads.written = counter.last = now
    for reference in counter.bases:
        if (base := reference()) is not None:
            base.make_stale()


def _known(value: Any) -> Counter | None:
    """The counter of an array's memory, or of a scalar that became an array; None if it was never written."""
    if type(value) is Batched:
        value = raw(value)
    if isinstance(value, np.ndarray):
        return _counters.get(id(value if value.base is None else owner(value)))
    entry = _scalars.get(id(value))
    return None if entry is None else entry[1]


def carry_over(old: np.ndarray, array: np.ndarray) -> None:
    """Share the version counter of an array with its replacement."""
    root, counter = owner(array), counter_of(old)
    counter.own(root)
    _counters[id(root)] = counter


def version(value: Any) -> int:
    """The number of writes into the memory."""
    counter = _known(value)
    return 0 if counter is None else counter.count


def first_write_after(value: Any, sequence_nr: int) -> tuple[Write, int, int] | None:
    """The first write after a sequence number, the present version and the version at that number; None without such a write."""
    counter = _known(value)
    if counter is None or counter.last <= sequence_nr:
        return None
    later = [write for write in list(counter.writes) if write[0] > sequence_nr]
    return Write(*later[0]), counter.count, counter.count - len(later)


def written_since(value: Any, sequence_nr: int) -> bool:
    """Whether the memory was written after a sequence number."""
    if type(value) is np.ndarray:  # the most frequent check of a pullback, so it is inlined
        counter = _counters.get(id(value if value.base is None else owner(value)))
    elif _scalars or type(value) is Batched:
        counter = _known(value)
    else:
        return False
    return counter is not None and counter.last > sequence_nr
