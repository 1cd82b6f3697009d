"""Back ends: what runs a program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from symgrad.program.program import Program, interpreter
from symgrad.program.source import numpy_source

__all__ = ["BACKENDS", "Running"]

BACKENDS = ("auto", "numpy", "c", "interpreter")
PATIENCE = 0.5  # seconds of runs after which "auto" compiles a program to C


class Running:
    """A program with its back end. "auto" begins with NumPy, and goes on in C when the runs have taken as long as compiling takes."""

    def __init__(self, program: Program, backend: str):
        self.program, self.wanted, self.note = program, backend, ""
        self.seconds = 0.0
        if backend == "c":
            self._run, self.backend = self._native(), "c"
        elif backend == "interpreter":
            self._run, self.backend = interpreter(program), "interpreter"
        else:
            self._run, self.backend = numpy_source(program), "numpy"
        self._may_change = backend == "auto"

    def _native(self) -> Any:
        from symgrad.program.native import native  # brings ctypes and the compiler's search

        return native(self.program)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if not self._may_change:
            return self._run(inputs)
        start = time.perf_counter()
        out = self._run(inputs)
        self.seconds += time.perf_counter() - start
        if self.seconds > PATIENCE:
            self._change()
        return out

    def _change(self) -> None:
        self._may_change = False
        try:
            self._run, self.backend = self._native(), "c"
        except (RuntimeError, ImportError, OSError) as error:
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
