"""The values of a program in its source: their names, the objects that the names of constants stand for, and the memory that they take in turns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.contracting import added
from symgrad.program.lowering import Lowered
from symgrad.program.program import ArraySpec
from symgrad.program.scalars import NAMES, literal

FUNCTIONS = {name: getattr(np, name) for name in ("copyto", "where", "matmul", "concatenate", "broadcast_to", "asarray", "empty", "zeros",
                                                  "float64", "bool_")} | {"added": added}
PYTHON_NUMBERS = (float, int, bool)


class Name(str):
    """The name of an operand among the parameters of a call."""


class Values:
    """The names of values. An array has one; a 0-d value may have three: a Python number (t), a NumPy number (n), and a 0-d array (b or a).

    Ufuncs are faster with 0-d arrays than with numbers. A name that a value has not had yet is made by a line of the source.
    """

    def __init__(self, lowered: Lowered):
        self.lowered, self.specs = lowered, lowered.specs
        self.blocks = Blocks()
        self.block_of: dict[int, int] = {}
        self.names: dict[str, Any] = {"__name__": "symgrad.program.generated", "xp": numeric, **FUNCTIONS, **NAMES}
        self.lines: list[str] = []
        inputs = range(lowered.first_register)
        self.arrays = {i: f"x{i}" for i in inputs if self.specs[i].shape}
        self.numpy = {i: f"x{i}" for i in inputs if not self.specs[i].shape}
        self.numbers: dict[int, str] = {}
        self._bound: dict[Any, str] = {}

    def bind(self, value: Any, key: Any = None) -> str:
        """The name of a constant; `key` is for equal ones to have one name."""
        if key is None or key not in self._bound:
            name = f"c{len(self._bound)}"
            self._bound[name if key is None else key] = name
            self.names[name] = value
            return name
        return self._bound[key]

    def text(self, x: Any) -> str:
        """A parameter: integers and what is made of them as they are, anything else as the name of a constant."""
        if x is None or type(x) in (int, bool):
            return repr(x)
        if type(x) is Name:
            return x
        if x is Ellipsis:
            return "..."
        if type(x) is list:
            return f"[{', '.join(map(self.text, x))}]"
        if type(x) is slice:
            return f"slice({self.text(x.start)}, {self.text(x.stop)}, {self.text(x.step)})"
        if type(x) is tuple:
            return f"({', '.join(map(self.text, x))}{',' * (len(x) == 1)})"
        return self.bind(x)

    def index(self, x: Any) -> str:
        """An index as it stands between brackets."""
        if type(x) is slice:
            start, stop, step = ("" if at is None else self.text(at) for at in (x.start, x.stop, x.step))
            return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
        return ", ".join(map(self.index, x)) if type(x) is tuple and x else self.text(x)

    def array(self, x: int, dtype: np.dtype | None = None) -> str:
        """A value as an array; `dtype` is for Python numbers, and that of the other operands."""
        if x in self.arrays:
            return self.arrays[x]
        if x in self.lowered.constants:
            value = self.lowered.constants[x]
            if type(value) not in PYTHON_NUMBERS + (complex,):
                return self.bind(np.asarray(value), (x, None))
            if dtype is None or dtype.kind != "f" or type(value) is complex:
                return self.bind(value, (x, None))
            return self.bind(np.array(value, dtype), (x, dtype))
        if x < self.lowered.first_register:
            self.arrays[x] = f"a{x}"
            self.lines.append(f"a{x} = asarray(x{x})")
            return self.arrays[x]
        self.block_of[x] = self.blocks.take(self.specs[x])
        self.arrays[x] = self.blocks.name(self.block_of[x], self.specs[x])
        self.lines.append(f"{self.arrays[x]}[()] = {self.some_number(x)}")
        return self.arrays[x]

    def number(self, x: int) -> str:
        """A 0-d value as a Python number."""
        if x in self.lowered.constants:
            text = literal(self.lowered.constants[x])
            return text if text is not None else self.bind(float(self.lowered.constants[x]), (x, float))
        if x not in self.numbers:
            self.numbers[x] = f"t{x}"
            self.lines.append(f"t{x} = {'bool' if self.specs[x].dtype.kind == 'b' else 'float'}({self.numpy[x]})")
        return self.numbers[x]

    def some_number(self, x: int) -> str:
        """A 0-d value in the form that there is."""
        return self.numbers[x] if x in self.numbers else self.numpy[x] if x in self.numpy else self.array(x)

    def argument(self, x: int) -> str:
        """A value for a function of the numeric carrier."""
        if x in self.lowered.constants:
            return self.bind(self.lowered.constants[x], (x, object))
        if self.specs[x].shape:
            return self.arrays[x]
        if x not in self.numpy:
            self.numpy[x] = f"n{x}"
            self.lines.append(f"n{x} = {'bool_' if self.specs[x].dtype.kind == 'b' else 'float64'}({self.numbers[x]})")
        return self.numpy[x]


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
