"""Back ends: what runs a program; and its Python source with loops over slices of large arrays, which stay in the processor's cache."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from symgrad.program.lowering import Lowered, LoweredOp
from symgrad.program.program import ArraySpec, Program, interpreter
from symgrad.program.scalars import FAILURES
from symgrad.program.values import Pool
from symgrad.program.writer import NumpyWriter
from symgrad.system.errorstate import again, run_long

BACKENDS = ("auto", "numpy", "c", "interpreter")
PATIENCE = 0.5, 2e-3  # seconds of runs after which "auto" compiles a program to C: at least, and for each step


class Running:
    """A program with its back end. "auto" begins with NumPy, and goes on in C when the runs have taken as long as compiling takes."""

    def __init__(self, program: Program, backend: str):
        self.program, self.wanted, self.note = program, backend, ""
        self.seconds = 0.0
        self._run: Any = None
        self._may_change = backend == "auto"
        if backend == "c":
            self._change()
        if backend == "interpreter":
            self._run, self.backend = interpreter(program), "interpreter"
        elif self._run is None:
            self._run, self.backend = NumpySource(program), "numpy"

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        start = time.perf_counter() if self._may_change else 0.0
        try:
            out = run_long(self._run, inputs)
        except RuntimeError as error:
            out = again(error, self._run, inputs)
        if not self._may_change:
            return out
        self.seconds += time.perf_counter() - start
        if self.seconds > max(PATIENCE[0], PATIENCE[1] * len(self.program.steps)):
            self._change()
        return out

    def _change(self) -> None:
        """Go on in C; where that cannot be, `note` says why."""
        from symgrad.program.native import native  # brings ctypes and the search for a compiler

        self._may_change = False
        try:
            self._run, self.backend = native(self.program), "c"
        except (RuntimeError, OSError) as error:
            self.note = str(error)

    @property
    def source(self) -> str:
        """The source of the back end; the steps, where they are interpreted."""
        return getattr(self._run, "source", None) or str(self.program)

    @property
    def buffers(self) -> int:
        """The number of buffers that the back end reuses."""
        return getattr(self._run, "buffers", 0)

    @property
    def nbytes(self) -> int:
        """The memory of constants and buffers, and about that of the steps."""
        return self.program.nbytes + getattr(self._run, "nbytes", 0) + 400 * len(self.program.steps)


class NumpySource:
    """A program as Python source: a fresh result at each call, from buffers that are reused between calls.

    `source` is the text, `nbytes` the memory of the buffers, and `buffers` their number.
    """

    def __init__(self, program: Program, scalars: bool = True):
        self.program = program
        writer = SlicedWriter(Lowered(program, scalars))
        self.source, self.nbytes, self.buffers = writer.source(), writer.blocks.nbytes, len(writer.blocks.sizes)
        exec(compile(self.source, "<program>", "exec"), writer.names)
        views, allocate = writer.names["views"], writer.blocks.allocate
        self._run = writer.names["run"]
        self._pool = Pool(lambda: views(*allocate()))
        self._failures = FAILURES if writer.has_scalars else ()
        self._second: NumpySource | None = None

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        buffers = self._pool.take()
        try:
            out = self._run(inputs, buffers)
        except self._failures:
            if self._second is None:
                self._second = NumpySource(self.program, scalars=False)
            return self._second(inputs)
        self._pool.put_back(buffers)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return NumpySource, (self.program,)


ELEMENTWISE = ("ufunc", "copyto", "where")
LARGE = 2**19  # bytes of an array from which slices pay off
SLICE = 2**17  # bytes of a slice


class SlicedWriter(NumpyWriter):
    """A writer that makes loops over slices of elementwise operations on large arrays.

    The last slice overlaps the one before if the length is no multiple. No operation overwrites what the loop reads from outside.
    """

    def __init__(self, lowered: Lowered):
        self._group(lowered)
        super().__init__(lowered)

    @staticmethod
    def _group(lowered: Lowered) -> None:
        """Move operations that do not depend on a group of large elementwise operations before it."""
        ops, group, made, shape = [], list[LoweredOp](), set[int](), None
        for op in lowered.ops:
            large = op.kind in ELEMENTWISE and _size(lowered.specs[op.out]) >= LARGE
            if large and lowered.specs[op.out].shape != shape or not large and not made.isdisjoint(op.ins):
                ops += group
                group, made, shape = [], set(), lowered.specs[op.out].shape
            if large:
                group.append(op)
                made.add(op.out)
            else:
                ops.append(op)
        lowered.ops = ops + group

    def advance(self, number: int) -> int:
        """Write an operation, or a loop of several; the number of the next one."""
        ops, specs = self.lowered.ops, self.specs
        shape, size = specs[ops[number].out].shape, _size(specs[ops[number].out])
        if size < LARGE or ops[number].kind not in ELEMENTWISE:
            return self.write(number)
        end, order = number, self.common_order(ops[number])
        while end < len(ops) and ops[end].kind in ELEMENTWISE and specs[ops[end].out].shape == shape and self.common_order(ops[end]) == order:
            if order is not None:
                self.orders[ops[end].out] = order
            end += 1
        count = -(-size // SLICE)
        axis = next((i for i in order or range(len(shape)) if shape[i] >= count), None)
        if end < number + 3 or axis is None:
            return self.write(number)
        _Loop(self, number, end, axis, -(-shape[axis] // count)).write()
        return end


def _size(spec: ArraySpec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize


class _Loop:
    """A loop over slices of an axis."""

    def __init__(self, writer: NumpyWriter, first: int, end: int, axis: int, length: int):
        self.writer, self.first, self.end, self.length = writer, first, end, length
        self.ops = writer.lowered.ops[first:end]
        self.shape = writer.specs[self.ops[0].out].shape
        self.from_end = axis - len(self.shape)  # the axis, counted as shapes are broadcast
        self.made = {op.out for op in self.ops}

    def write(self) -> None:
        """Write the loop."""
        writer, specs = self.writer, self.writer.specs
        kept = [op.out for op in self.ops if writer.last[op.out] >= self.end]
        read = list(dict.fromkeys(i for op in self.ops for i in op.ins if i not in self.made))
        for x in read:
            if x not in writer.lowered.constants:
                writer.array(x)
        for out in kept:
            if out in writer.fresh:
                writer.arrays[out] = f"y{out}"
                writer.empty(out)
            else:
                writer.block_of[out] = writer.blocks.take(specs[out])
                writer.buffer(out)
        sliced = [x for x in (*read, *kept) if self._is_sliced(specs[x])]
        before = {x: (writer.array(x), specs[x]) for x in sliced}
        held = {root for x in read for root in writer.roots[x]} & writer.block_of.keys()  # must last for the whole loop
        blocks = {root: writer.block_of.pop(root) for root in held}
        length, n = self.length, self.shape[self.from_end]
        writer.lines.append(f"for i in (*range(0, {n - length}, {length}), {n - length}):")
        start = len(writer.lines)
        writer.lines.append(f"j = i + {length}")
        for x in sliced:
            name, spec = before[x]
            axis = len(spec.shape) + self.from_end
            writer.lines.append(f"s{x} = {name}[{':, ' * axis}i:j]")
            writer.arrays[x], specs[x] = f"s{x}", self._slice(spec)
        for out in self.made.difference(kept):
            specs[out] = self._slice(specs[out])
        writer.placed.update(kept)
        for number in range(self.first, self.end):
            writer.write(number)
        writer.placed.difference_update(kept)
        writer.lines[start:] = ["    " + line for line in writer.lines[start:]]
        for x, (name, spec) in before.items():
            writer.arrays[x], specs[x] = name, spec
        for root, block in blocks.items():
            if writer.last[root] < self.end:
                writer.blocks.give_back(block)
            else:
                writer.block_of[root] = block

    def _is_sliced(self, spec: ArraySpec) -> bool:
        return len(spec.shape) >= -self.from_end and spec.shape[self.from_end] == self.shape[self.from_end]

    def _slice(self, spec: ArraySpec) -> ArraySpec:
        shape = list(spec.shape)
        shape[self.from_end] = self.length
        return ArraySpec(tuple(shape), spec.dtype)
