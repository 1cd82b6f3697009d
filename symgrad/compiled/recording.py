"""One function of tensors as programs: recorded for the shapes of its arguments, and again where the values that it has read differ."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.captures import Captures
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import DEFAULT, in_mode, special, thread
from symgrad.graph.node import Leaf, all_threads
from symgrad.program.backends import Running
from symgrad.program.cache import programs
from symgrad.program.program import Spec
from symgrad.program.recorder import ProgramRecorder
from symgrad.types.trees import Spec as Form
from symgrad.types.trees import flatten

__all__ = ["Recorder", "Variant", "is_plain", "substituted"]

number = itertools.count().__next__
swapping = threading.RLock()  # while captured tensors have recorded values


class Variant:
    """A recorded program: what it is valid for, and how its outputs become the function's result."""

    def __init__(self, running: Running, captures: Captures, used: Sequence[int], captured: Sequence[Spec], reads: Sequence[Any], form: Form,
                 leaves: Sequence[Any], guarded: bool, seconds: float, recorded: int):
        self.running, self.captures, self.used, self.captured = running, captures, used, captured
        self.reads, self.form, self.leaves, self.guarded = reads, form, leaves, guarded
        self.seconds, self.recorded, self.runs = seconds, recorded, 0

    def run(self, values: Sequence[Any]) -> Any:
        """The result for the values of the arguments; NotImplemented where the program is not valid for them, or GUARDED."""
        captures = self.captures
        if captures.checks and not captures.hold():
            return NotImplemented
        if self.used:
            present = [captures.tensors[i]() for i in self.used]
            for t, spec in zip(present, self.captured):
                if not isinstance(t, Tensor) or t._value.shape != spec.shape or t._value.dtype != spec.dtype:
                    return NotImplemented
            values = [*values, *[t._value for t in present]]
        found = self.running(values)
        count = len(found) - len(self.reads)
        for now, before in zip(found[count:], self.reads):
            if not np.array_equal(now, before, equal_nan=before.dtype.kind in "fc"):
                return NotImplemented
        if self.guarded and any([y.dtype.kind in "fc" and np.isnan(y).any() for y in found[:count]]):
            return GUARDED
        self.runs += 1
        outputs = iter(found)
        return self.form.unflatten([wrap(next(outputs)) if leaf is OUTPUT else leaf for leaf in self.leaves])


OUTPUT = object()
GUARDED = object()  # the result of a run with a NaN, for which a guarded pass may give a number


class Argument(NamedTuple):
    """The kind of an argument's leaf: a tensor, an array or a number that may differ, with its shape and dtype; or a fixed value."""

    kind: str
    what: Any


def _argument(x: Any) -> Argument:
    if isinstance(x, Tensor):
        return Argument("tensor", (x._value.shape, x._value.dtype))
    if isinstance(x, (np.ndarray, np.generic)):
        return Argument("array", (x.shape, x.dtype))
    if type(x) is float:
        return Argument("float", None)
    return Argument("fixed", (type(x), x))


def is_plain(leaves: Sequence[Any]) -> bool:
    """Whether a call can run as a program: no other transform, recorder or mode is around it, and its tensors have plain values."""
    modes = thread.modes
    if special and (modes.recorder is not DEFAULT or modes.observers or modes.batches or modes.level is not None or modes.inference
                    or modes.program is not None) or all_threads.anomaly is not None:
        return False
    return not any([isinstance(x, Tensor) and isinstance(x._value, DuckArray) or isinstance(x, DuckArray) for x in leaves])


@contextlib.contextmanager
def substituted(tensors: Sequence[Tensor], values: Sequence[Any]) -> Iterator[None]:
    """Give tensors other values, and detach them from graphs, for a `with` block."""
    with swapping:
        before = [(t, t._value, t._node_slot, t._view) for t in tensors]
        try:
            for t, x in zip(tensors, values):
                node = t._node_slot
                t._value, t._view = (x._value, None) if isinstance(x, Tensor) else (x, None)
                t._node_slot = x._node_slot if isinstance(x, Tensor) else _leaf_like(t, node, x)
            yield
        finally:
            for t, value, node, view in before:
                t._value, t._node_slot, t._view = value, node, view


def _leaf_like(t: Tensor, node: Any, value: Any) -> Any:
    """A leaf for another value of a tensor, which requires a gradient if the tensor does."""
    return Leaf(t, value, True, None) if node is not None and node.requires_grad else None


def _forget(keys: set[Any]) -> None:
    for key in keys:
        programs.discard(key)


class Recorder:
    """The programs of one function of trees of tensors."""

    def __init__(self, function: Callable[..., Any], subject: Any, name: str, backend: str, max_programs: int):
        self.function, self.subject, self.name, self.backend, self.max_programs = function, subject, name, backend, max_programs
        self.key = number()
        self._keys: set[Any] = set()  # of this function in the library's cache
        weakref.finalize(self, _forget, self._keys)
        self.reasons: dict[Any, str] = {}  # why calls of a kind are not compiled
        self.variants: list[Variant] = []
        self.pullbacks: dict[Any, Recorder] = {}

    def call(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Variant | None]:
        """The result of a call, and the program that computed it; None for the function itself."""
        leaves, form = flatten((args, kwargs))
        if not is_plain(leaves):
            return self.function(*args, **kwargs), None
        arguments = tuple([_argument(x) for x in leaves])
        key = self.key, form, arguments
        try:
            found = programs.get(key)
        except TypeError:
            return self._uncompiled(args, kwargs, "unhashable", "an argument that is neither a tensor nor a number cannot be compared")
        if found is None:
            if key in self.reasons:
                return self.function(*args, **kwargs), None
            found = []
        values = [x._value if isinstance(x, Tensor) else np.float64(x) if type(x) is float else x
                  for x, a in zip(leaves, arguments) if a.kind != "fixed"]
        for variant in found:
            out = variant.run(values)
            if out is GUARDED:
                return self.function(*args, **kwargs), None
            if out is not NotImplemented:
                return out, variant
        if len(found) >= self.max_programs:
            return self._uncompiled(args, kwargs, key, f"{len(found)} programs were recorded for these shapes (max_programs), "
                                                       f"and the values that the function reads differ again")
        try:
            variant = self.record(leaves, form, arguments, values)
        except Exception as error:  # whatever a function does not support on recorded values, it may support on others
            return self._uncompiled(args, kwargs, key, f"{type(error).__name__}: {error}")
        self.variants.append(variant)
        found = [variant, *found]
        self._keys.add(key)
        programs.put(key, found, sum(v.running.nbytes for v in found))
        out = variant.run(values)
        return (self.function(*args, **kwargs), None) if out is NotImplemented or out is GUARDED else (out, variant)

    def _uncompiled(self, args: tuple, kwargs: dict[str, Any], key: Any, reason: str) -> tuple[Any, None]:
        out = self.function(*args, **kwargs)
        self.reasons[key] = reason
        return out, None

    def record(self, leaves: Sequence[Any], form: Form, arguments: Sequence[Argument], values: Sequence[Any] | None) -> Variant:
        """The program of the function for arguments of these shapes.

        Raises Unrecordable for a function that cannot be recorded, and what the function raises.
        """
        start = time.perf_counter()
        captures = Captures(self.subject)
        present = captures.present()
        specs = [Spec((), np.dtype(np.float64)) if a.kind == "float" else Spec(tuple(a.what[0]), a.what[1]) for a in arguments if a.kind != "fixed"]
        captured = [Spec(tuple(t._value.shape), t._value.dtype) for t in present]
        recorder = ProgramRecorder(specs + captured, None if values is None else [*values, *[t._value for t in present]])
        inputs = iter(recorder.inputs)
        given: list[Any] = []
        for x, a in zip(leaves, arguments):
            given.append(x if a.kind == "fixed" else wrap(next(inputs)))
            if a.kind == "tensor" and thread.modes.grad and x.requires_grad:
                given[-1]._make_leaf(True)
        with in_mode(program=recorder), substituted(present, list(inputs)):
            args, kwargs = form.unflatten(given)
            output = self.function(*args, **kwargs)
            found, shape = flatten(output)
        outputs = [as_value(y) if isinstance(y, Tensor) else y for y in found]
        places = [isinstance(y, (np.ndarray, np.generic, Recorded)) for y in outputs]
        if any(isinstance(y, DuckArray) and type(y) is not Recorded for y in outputs):
            raise Unrecordable("a result that is a batch")
        kept = [y for y, there in zip(outputs, places) if there]
        program = recorder.program(kept)
        read = {i for step in program.steps for i in step.ins}.union(program.outputs)
        used = [i for i in range(len(program.inputs)) if i in read]
        on = [i - len(specs) for i in used if i >= len(specs)]
        program = program.without_inputs([i for i in range(len(specs), len(program.inputs)) if i not in used])
        return Variant(Running(program, self.backend), captures, on, [captured[i] for i in on], [v for _, v in recorder.reads], shape,
                       [OUTPUT if there else y for y, there in zip(outputs, places)], recorder.guarded, time.perf_counter() - start,
                       recorder.count)
