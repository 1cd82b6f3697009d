"""Passes over recorded graphs as programs: the inputs are the values that the nodes hold, and the pass runs in the carrier `recording`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import PROTOCOL, numeric
from symgrad.carriers.batched import raw
from symgrad.carriers.duck import Unrecordable
from symgrad.engine.operands import NUMBERS
from symgrad.engine.saved import verify_all
from symgrad.graph.node import Node
from symgrad.graph.op import REGISTRY, Op
from symgrad.program.backends import Running
from symgrad.program.cache import programs
from symgrad.program.program import ArraySpec
from symgrad.program.recorder import ProgramRecorder


class ProgramCarrier:
    """The functions of the numeric carrier, without the shortcuts that passes take for numbers."""


recording = ProgramCarrier()
recording.__dict__.update({name: getattr(numeric, name) for name in PROTOCOL})
MAX_ELEMENTS = 2_000_000  # the most elements of the values of a path, times the members of a batch
MAX_NODES = 400
RECORDING_USE = 5  # the use of a signature at which a pass is recorded: recording takes about as long as the passes before
Read = Callable[[Node], tuple[Any, tuple]]
Rows = Sequence[Sequence[Any]]


def fits(path: Sequence[Node], count: int = 1) -> bool:
    """Whether a pass over a path can be a program: registered ops that do not select, real floats, and a limited size."""
    return len(path) <= MAX_NODES and sum([node.value.size for node in path]) * count <= MAX_ELEMENTS and all([
        type(node.op) is Op and (REGISTRY.get(node.op.name) is node.op or node.op.name == "input") and not node.selects
        and type(node.value) in (np.ndarray, np.float64, np.float32) and node.value.dtype.kind == "f" and not _is_power(node) for node in path])


def _is_power(node: Node) -> bool:
    """Whether a node is a power with a constant of no dimensions, whose rule chooses its form by the number."""
    return node.op.name == "pow" and any([p is None and isinstance(a, np.generic) for p, a in zip(node.parents, node.args or ())])


def known_program(key: Any, make: Callable[[], Any]) -> Any:
    """The program with a key, from the library's cache or new; None for a pass that cannot be recorded."""
    found = programs.get(key)
    if found is None:
        found = made(make)
        programs.put(key, found or False, found.nbytes if found else 0)
    return found or None


def made(make: Callable[[], Any]) -> Any:
    """A new program; None for a pass that cannot be recorded."""
    try:
        return make()
    except Unrecordable:
        return None


class PassProgram:
    """A pass over a path as programs, one for each row of results, which run for every path with the same signature.

    `compute(read, vectors, ends)` computes the rows from the values of the nodes, of vectors that are given in each run, and of the ends of the path.
    Each row needs the values of the rows before it. A result that is a batch is represented by its data.
    """

    def __init__(self, path: Sequence[Node], compute: Callable[[Read, list[Any], list[Any]], Rows], vectors: Sequence[Any] = (),
                 ends: Sequence[Node] = ()):
        self._sources = list(_sources(path, len(vectors), len(ends)))
        values = _gather(self._sources, path, vectors, ends)
        recorder = ProgramRecorder([ArraySpec(x.shape, x.dtype) for x in values])
        inputs = dict(zip(self._sources, recorder.inputs))
        entered = {}
        for i, node in enumerate(path):
            args: tuple = node.args or ()
            given = tuple([inputs.get(("argument", i, k), a) for k, a in enumerate(args)])
            entered[node] = inputs["value", i, 0], given
            if ("residual", i, 0) in inputs:  # the residual of an op determines its derivative
                slope: Any = numeric.WITH_RESIDUAL[node.op.name][1]
                recorder.define("sech_square", given[0], slope(inputs["residual", i, 0]))
        given_vectors, given_ends = ([inputs[kind, i, 0] for i in range(len(x))] for kind, x in (("vector", vectors), ("end", ends)))
        with recorder.along_fixed_vectors():
            rows = compute(entered.__getitem__, given_vectors, given_ends)
        self._present = [[y is not None for y in row] for row in rows]
        self._stages = [Running(program, "numpy") for program in recorder.stages([[raw(y) for y in row if y is not None] for row in rows])]

    @property
    def rows(self) -> int:
        """The number of rows of results."""
        return len(self._stages)

    @property
    def nbytes(self) -> int:
        """The memory of the programs."""
        return sum([stage.nbytes for stage in self._stages])

    def start(self, path: Sequence[Node], vectors: Sequence[Any] = (), ends: Sequence[Node] = ()) -> PassRun:
        """A run for a path with the signature of this program."""
        verify_all(path)
        return PassRun(self._stages, self._present, _gather(self._sources, path, vectors, ends))

    def run(self, path: Sequence[Node], vectors: Sequence[Any] = (), ends: Sequence[Node] = ()) -> list[Any]:
        """The results of a program with one row."""
        return self.start(path, vectors, ends).row(0)


class PassRun:
    """One run of a pass program, row by row: the values of its inputs, and those that finished rows give to later ones."""

    def __init__(self, stages: Sequence[Running], counts: Sequence[Sequence[bool]], values: list[Any]):
        self._stages, self._present, self._values = stages, counts, values
        self._found: list[list[Any]] = []
        self._lengths: list[int] = []  # the number of values after each row

    def row(self, k: int) -> list[Any]:
        """The results of a row, in memory of their own; None for a zero."""
        while len(self._found) <= k:
            present = self._present[len(self._found)]
            found = self._stages[len(self._found)](self._values)
            count = sum(present)
            self._values += found[count:]
            self._lengths.append(len(self._values))
            results = iter(found[:count])
            self._found.append([next(results) if there else None for there in present])
        return self._found[k]

    def restart(self, vectors: Sequence[Any], kept: int) -> None:
        """Continue with other vectors, on which the first `kept` rows do not depend."""
        if len(self._found) > kept:
            del self._found[kept:]
            del self._values[self._lengths[kept - 1]:], self._lengths[kept:]
        self._values[:len(vectors)] = vectors


def _sources(path: Sequence[Node], vectors: int, ends: int) -> Iterator[tuple[str, int, int]]:
    yield from (("vector", i, 0) for i in range(vectors))
    yield from (("end", i, 0) for i in range(ends))
    for i, node in enumerate(path):
        yield "value", i, 0
        for k, a in enumerate((node.args or ())[:len(node.parents)]):
            if type(a) not in NUMBERS:
                yield "argument", i, k
        if hasattr(node, "residual"):
            yield "residual", i, 0


def _gather(sources: Sequence[tuple[str, int, int]], path: Sequence[Node], vectors: Sequence[Any], ends: Sequence[Node]) -> list[Any]:
    out: list[Any] = []
    for kind, i, k in sources:
        if kind == "value":
            out.append(path[i].value)
        elif kind == "argument":
            out.append(path[i].args[k])  # type: ignore[index]
        else:
            out.append(vectors[i] if kind == "vector" else ends[i].value if kind == "end" else path[i].residual)  # type: ignore[attr-defined]
    return out
