"""Programs compiled from C text, as functions of NumPy values."""

from __future__ import annotations

import _ctypes
import ctypes
import pickle
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.program.native.blas import addresses
from symgrad.program.native.compiler import compiled
from symgrad.program.native.emission import Emission
from symgrad.program.native.keys import program_key
from symgrad.program.native.lowering import lower
from symgrad.program.native.schedule import ALIGNMENT, Schedule
from symgrad.program.program import Program

__all__ = ["Native", "native"]

KEPT = 8  # sets of work memory
pointer_at = ctypes.c_void_p.from_address


def _data_offset() -> int:
    """Where an array object has its pointer to the elements, which NumPy's ABI puts after the head of the object; 0 if it is not there.

    To read it so takes a tenth of the time of `x.ctypes.data`, which counts for small arrays.
    """
    x = np.empty(1)
    return object.__basicsize__ if sys.implementation.name == "cpython" and pointer_at(id(x) + object.__basicsize__).value == x.ctypes.data else 0


DATA = _data_offset()


class Native:
    """A compiled program. It may be called by several threads at a time: each call has work memory of its own."""

    def __init__(self, program: Program):
        self._program = program
        self._object, notes = compiled(program_key(program), self._written)
        weakref.finalize(self, _ctypes.dlclose, self._object._handle).atexit = False
        self._run = self._object.run
        self._run.argtypes, self._run.restype = [ctypes.c_void_p] * 4, None
        self._layout: _Layout = pickle.loads(notes)
        self._blas = ctypes.addressof(addresses()) if self._layout.blas else 0
        self._constants = [np.asarray(program.constants[x], order="C") if type(x) is int else x for x in self._layout.constants]
        self._inputs = [(tuple(x.shape), np.dtype(x.dtype)) for x in program.inputs]
        self._outputs = [program.spec(slot) for slot in program.outputs]
        self._pool: list[_Memory] = []

    @property
    def source(self) -> str:
        """The text in C."""
        return self._written()[0]

    def _written(self) -> tuple[str, bytes]:
        """The text, and the notes that a run needs beside the object."""
        graph, outputs = lower(self._program)
        schedule = Schedule(graph, outputs, len(self._program.inputs))
        emission = Emission(schedule)
        return emission.text, pickle.dumps(_Layout(schedule, emission))

    @property
    def nbytes(self) -> int:
        """The work memory of a call, and the constants."""
        return self._layout.nbytes + sum(x.nbytes for x in self._constants)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        try:
            memory = self._pool.pop()
        except IndexError:
            memory = _Memory(self._layout, self._constants)
        table, kept = memory.table, []
        for i, (x, (shape, dtype)) in enumerate(zip(inputs, self._inputs, strict=True)):
            if not shape:
                if i in memory.scalars:  # a step reads it
                    memory.scalars[i][()] = x
                continue
            if x.shape != shape or x.dtype != dtype:
                raise TypeError(f"input {i} has shape {x.shape} and dtype {x.dtype}; the program was compiled for {shape} and {dtype}")
            if not x.flags.c_contiguous:
                x = np.ascontiguousarray(x)
                kept.append(x)
            table[i] = pointer_at(id(x) + DATA).value if DATA else x.ctypes.data
        out: list[Any] = []
        at = memory.first_output
        for shape, dtype in self._outputs:
            if shape:
                y = np.empty(shape, dtype)
                table[at] = pointer_at(id(y) + DATA).value if DATA else y.ctypes.data
                at += 1
                out.append(y)
            else:
                out.append(None)
        self._run(memory.table_address, memory.work_address, memory.scratch_address, self._blas)
        if memory.flag[()]:
            memory.flag[()] = 0
            raise IndexError("an index is out of bounds")
        for i, result in memory.results:
            out[i] = result[()]
        if len(self._pool) < KEPT:
            self._pool.append(memory)
        return out


class _Layout:
    """The sizes and the places in the memory of a call."""

    def __init__(self, schedule: Schedule, emission: Emission):
        self.work, self.scratch = schedule.work + ALIGNMENT, emission.scratch + ALIGNMENT
        self.table_size = schedule.table_size
        self.inputs = [(node.params[0], node.place.offset, node.dtype) for node in schedule.nodes if node.op == "input" and not node.shape]
        self.results = [(i, node.place.offset, node.dtype) for i, node in enumerate(schedule.outputs) if node.place.table is None]
        self.first_constant = schedule.inputs
        self.constants = [schedule.graph.numbers.get(i, schedule.graph.constants[i]) for i in schedule.constants]  # those of the program by number
        self.blas = "blas, " in emission.text
        self.nbytes = self.work + self.scratch


class _Memory:
    """The work memory of one call, with the table of pointers."""

    def __init__(self, layout: _Layout, constants: Sequence[np.ndarray]):
        self._base = np.zeros(layout.work + layout.scratch + ALIGNMENT, np.uint8)
        start = -self._base.ctypes.data % ALIGNMENT
        work = self._base[start:]
        self.work_address = work.ctypes.data
        self.scratch_address = self.work_address + -(-layout.work // ALIGNMENT) * ALIGNMENT
        self.table = (ctypes.c_void_p * max(1, layout.table_size))()
        self.table_address = ctypes.addressof(self.table)
        for i, x in enumerate(constants, layout.first_constant):
            self.table[i] = x.ctypes.data
        self.first_output = layout.first_constant + len(constants)
        self.flag = np.ndarray((), np.int64, work)
        self.scalars = {i: np.ndarray((), dtype, work, offset) for i, offset, dtype in layout.inputs}
        self.results = [(i, np.ndarray((), dtype, work, offset)) for i, offset, dtype in layout.results]


def native(program: Program) -> Native:
    """A program compiled for this machine. Raises Unsupported if a step cannot be written in C, or if there is no compiler."""
    return Native(program)

