"""Programs compiled from C text, as functions of NumPy values."""

from __future__ import annotations

import _ctypes
import ctypes
import json
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.program.native.compiler import compiled, program_key
from symgrad.program.native.emission import Emission
from symgrad.program.native.internals import HEAD, ITEMS, READS_OBJECTS, addresses
from symgrad.program.native.lowering import lower
from symgrad.program.native.schedule import ALIGNMENT, KernelSchedule
from symgrad.program.program import ArraySpec, Program

KEPT = 8  # sets of work memory
WRONG_INDEX, UNEXPECTED = 1, 2  # what a run returns
FRAME = 4  # pointers before the table


class Native:
    """A compiled program. It may be called by several threads at a time: each call has work memory of its own."""

    def __init__(self, program: Program):
        self._program = program
        self._object, notes = compiled(program_key(program), self._written)
        weakref.finalize(self, _ctypes.dlclose, self._object._handle).atexit = False
        self._run = self._object.run
        self._run.argtypes, self._run.restype = [ctypes.c_void_p] * 2, ctypes.c_long
        layout = _Layout.read(notes)
        self._layout = layout
        self._constants = [np.asarray(program.constants[x], order="C") if type(x) is int else x for x in layout.constants]
        inputs, outputs = [ArraySpec(tuple(x.shape), np.dtype(x.dtype)) for x in program.inputs], [program.spec(slot) for slot in program.outputs]
        self._arrays = [spec for spec in outputs if spec.shape]
        self._count = len(outputs)
        first = layout.first_constant + len(self._constants)
        self._places = [*enumerate(inputs), *enumerate(self._arrays, first)]  # in the table, of inputs and outputs
        self._expected = np.array([HEAD, len(self._places), *[number for at, (shape, dtype) in self._places for number in (
            (at, len(shape), id(np.ndarray), id(dtype), *shape) if shape else (at, -1))]], ctypes.c_long)
        self._blas = ctypes.addressof(addresses()) if layout.blas else 0
        self._pool: list[_Memory] = []

    @property
    def source(self) -> str:
        """The text in C."""
        return self._written()[0]

    def _written(self) -> tuple[str, bytes]:
        """The text, and the notes that a run needs beside the object."""
        graph, outputs = lower(self._program)
        schedule = KernelSchedule(graph, outputs, len(self._program.inputs))
        emission = Emission(schedule)
        return emission.text, _Layout.of(schedule, emission).written()

    @property
    def nbytes(self) -> int:
        """The work memory of a call, and the constants."""
        return self._layout.nbytes + sum(x.nbytes for x in self._constants)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        arrays = [np.empty(shape, dtype) for shape, dtype in self._arrays]
        objects = *inputs, *arrays
        if len(objects) != len(self._places):
            raise TypeError(f"{len(inputs)} inputs for a program with {len(self._places) - len(arrays)}")
        try:
            memory = self._pool.pop()
        except IndexError:
            memory = _Memory(self._layout, self._constants, self._blas, self._expected)
        for i, scalar in memory.scalars:
            scalar[()] = objects[i]
        status = self._run(memory.address, id(objects) + ITEMS) if READS_OBJECTS else UNEXPECTED
        if status == UNEXPECTED:
            kept = self._fill(memory, objects)
            status = self._run(memory.address, 0)
            del kept
        out = arrays
        if memory.results:
            rest = iter(arrays)
            out = [next(rest) if i not in memory.results else memory.results[i][()] for i in range(self._count)]
        if len(self._pool) < KEPT:
            self._pool.append(memory)
        if status == WRONG_INDEX:
            raise IndexError("an index is out of bounds")
        return out

    def _fill(self, memory: _Memory, objects: Sequence[Any]) -> list[np.ndarray]:
        """Put pointers to the inputs and outputs into the table; return copies of inputs in row-major order, which must stay alive."""
        kept = []
        for i, (x, (at, (shape, dtype))) in enumerate(zip(objects, self._places)):
            if not shape:
                continue
            if x.shape != shape or x.dtype != dtype:
                raise TypeError(f"input {i} has shape {x.shape} and dtype {x.dtype}; the program was compiled for {shape} and {dtype}")
            if not x.flags.c_contiguous:
                x = np.ascontiguousarray(x)
                kept.append(x)
            memory.frame[FRAME + at] = x.ctypes.data
        return kept


class _Layout(NamedTuple):
    """The sizes and the places in the memory of a call."""

    work: int
    scratch: int
    table_size: int
    inputs: list[tuple[int, int, str]]  # the number, the offset in the work memory and the dtype of each input without dimensions
    results: list[tuple[int, int, str]]
    first_constant: int
    constants: list[Any]  # those of the program by number
    blas: bool

    @classmethod
    def of(cls, schedule: KernelSchedule, emission: Emission) -> _Layout:
        inputs = [(node.params[0], node.place.offset, node.dtype.str) for node in schedule.nodes if node.op == "input" and not node.shape]
        results = [(i, node.place.offset, node.dtype.str) for i, node in enumerate(schedule.outputs) if node.place.table is None]
        constants = [schedule.graph.numbers.get(i, schedule.graph.constants[i]) for i in schedule.constants]
        return cls(schedule.work + ALIGNMENT, emission.scratch + ALIGNMENT, schedule.table_size, inputs, results, schedule.inputs, constants,
                   "blas, " in emission.text)

    def written(self) -> bytes:
        """The layout as JSON, in which an array is its dtype, its shape and its bytes."""
        arrays = [x if type(x) is int else (np.asarray(x).dtype.str, np.shape(x), np.asarray(x).tobytes().hex()) for x in self.constants]
        return json.dumps(self._replace(constants=arrays)).encode()

    @classmethod
    def read(cls, notes: bytes) -> _Layout:
        self = cls(*json.loads(notes))
        arrays = [x if type(x) is int else np.frombuffer(bytes.fromhex(x[2]), x[0]).reshape(x[1]) for x in self.constants]
        return self._replace(constants=arrays)

    @property
    def nbytes(self) -> int:
        """The bytes of the memory of one call."""
        return self.work + self.scratch


class _Memory:
    """The work memory of one call, with the table of pointers."""

    def __init__(self, layout: _Layout, constants: Sequence[np.ndarray], blas: int, expected: np.ndarray):
        self._base = np.zeros(layout.work + layout.scratch + ALIGNMENT, np.uint8)
        work = self._base[-self._base.ctypes.data % ALIGNMENT:]
        scratch = work[-(-layout.work // ALIGNMENT) * ALIGNMENT:]
        self.frame = (ctypes.c_void_p * (FRAME + layout.table_size))(work.ctypes.data, scratch.ctypes.data, blas, expected.ctypes.data)
        self.address = ctypes.addressof(self.frame)
        for i, x in enumerate(constants, FRAME + layout.first_constant):
            self.frame[i] = x.ctypes.data
        self.scalars = [(i, np.ndarray((), dtype, work, offset)) for i, offset, dtype in layout.inputs]
        self.results = {i: np.ndarray((), dtype, work, offset) for i, offset, dtype in layout.results}


def native(program: Program) -> Native:
    """A program compiled for this machine. Raises Unsupported if a step cannot be written in C, or if there is no compiler."""
    return Native(program)

