"""Programs as Python source that calls NumPy: the back end for every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.program.buffers import Pool
from symgrad.program.lowering import Lowered
from symgrad.program.program import Program
from symgrad.program.scalars import FAILURES
from symgrad.program.slices import SlicedWriter

__all__ = ["NumpySource", "numpy_source"]


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
