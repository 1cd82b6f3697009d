"""Back ends: what runs a program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from symgrad.program.buffers import Pool
from symgrad.program.lowering import Lowered
from symgrad.program.program import Program, interpreter
from symgrad.program.scalars import FAILURES
from symgrad.program.slices import SlicedWriter
from symgrad.system.errorstate import again, run_long

__all__ = ["BACKENDS", "NumpySource", "Running", "has_compiler", "numpy_source"]

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
            self._run, self.backend = numpy_source(program), "numpy"

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


def has_compiler() -> bool:
    """Whether programs can be compiled to C here."""
    from symgrad.program.native import find_compiler  # brings ctypes

    return find_compiler() is not None


class NumpySource:
    """A program as Python source: `source` is the text, `nbytes` the memory of its buffers, and `buffers` their number."""

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


def numpy_source(program: Program) -> NumpySource:
    """The back end that writes a program as Python source: a fresh result at each call, from buffers that are reused between calls."""
    return NumpySource(program)
