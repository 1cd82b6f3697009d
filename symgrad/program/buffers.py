"""Memory that a program reuses: blocks that values take in turns, and sets of them for runs at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.program.program import ArraySpec

__all__ = ["Blocks", "Pool"]

ALIGNMENT = 64  # bytes of a cache line
PAGE = 4096  # blocks at the same offset in a page slow each other down


class Blocks:
    """Blocks of one piece of memory, each with the arrays that values see in it; a block that is given back is used again, the latest first."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._free: dict[int, list[int]] = {}
        self._count: dict[int, int] = {}
        self.arrays: dict[tuple[int, tuple[int, ...], np.dtype], str] = {}

    def take(self, spec: ArraySpec) -> int:
        size = max(ALIGNMENT, -(-spec.dtype.itemsize * math.prod(spec.shape) // ALIGNMENT) * ALIGNMENT)
        if self._free.get(size):
            return self._free[size].pop()
        if fits := [n for n, blocks in self._free.items() if blocks and size <= n <= 4 * size]:
            return self._free[min(fits)].pop()
        self.sizes.append(size)
        return len(self.sizes) - 1

    def give_back(self, block: int) -> None:
        self._free.setdefault(self.sizes[block], []).append(block)

    def name(self, block: int, spec: ArraySpec) -> str:
        """The name of the array of a shape and a dtype in a block."""
        key = block, *spec
        if key not in self.arrays:
            others = self._count[block] = self._count.get(block, -1) + 1
            self.arrays[key] = f"b{block}" + (f"_{others}" if others else "")
        return self.arrays[key]

    @property
    def nbytes(self) -> int:
        return sum(self.sizes)

    def allocate(self) -> tuple[np.ndarray, ...]:
        """New memory, and the arrays in it."""
        offsets, end = [], 0
        for size in self.sizes:
            offsets.append(end)
            end += size + (2 * ALIGNMENT if size % PAGE == 0 else 0)
        memory = np.empty(end + ALIGNMENT, np.uint8)
        start = -memory.__array_interface__["data"][0] % ALIGNMENT
        return memory, *(np.ndarray(shape, dtype, memory, start + offsets[block]) for block, shape, dtype in self.arrays)


class Pool:
    """Sets of buffers. A run takes one and puts it back, so that two runs at the same time have one each; a run that fails drops its own."""

    def __init__(self, allocate: Callable[[], tuple[Any, ...]]):
        self._allocate = allocate
        self._sets: list[tuple[Any, ...]] = []

    def take(self) -> tuple[Any, ...]:
        try:
            return self._sets.pop()
        except IndexError:
            return self._allocate()

    def put_back(self, buffers: tuple[Any, ...]) -> None:
        self._sets.append(buffers)
