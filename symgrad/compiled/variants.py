"""A recorded program: the calls for which it holds, and its run."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.guarding import has_nan
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.arguments import looks_of
from symgrad.compiled.captures import Captures
from symgrad.compiled.contents import same_bits
from symgrad.compiled.effects import Raised
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread
from symgrad.program.backends import Running
from symgrad.program.program import ArraySpec, Program
from symgrad.system.locks import reentrant_lock
from symgrad.trees import LEAF
from symgrad.trees import Spec as Form

__all__ = ["GUARDED", "OUTPUT", "Variant", "swapping"]

swapping = reentrant_lock()  # while captured tensors have recorded values


class Marker(enum.Enum):
    """What stands for a leaf of a result that a program computes; an enumeration, since it must be the same after a pickle."""

    OUTPUT = 0


OUTPUT = Marker.OUTPUT
GUARDED = object()  # the result of a run with a NaN, for which a guarded pass may give a number


class Variant:
    """A recorded program: what it is valid for, and how its outputs become the function's result."""

    def __init__(self, running: Running, captures: Captures, used: Sequence[int], captured: Sequence[ArraySpec], reads: Sequence[Any], form: Form,
                 leaves: Sequence[Any], guarded: bool, seconds: float, recorded: int, left: Sequence[int] = (),
                 looks: tuple[Sequence[str], Sequence[Any]] = ((), ())):
        self.running, self.captures, self.used = running, captures, used
        self.reads, self.form, self.leaves, self.guarded = reads, form, leaves, guarded
        self.seconds, self.recorded, self.runs = seconds, recorded, 0
        # captured tensors with their shapes and dtypes: those that the program reads, then those of which no more was read, if at all
        self.watched = [(captures.tensors[i], spec.shape, spec.dtype) for i, spec in zip(used, captured)]
        self.watched += [(read, t._value.shape, t._value.dtype) for i, (read, t) in enumerate(zip(captures.tensors, captures.present()))
                         if i not in set(used)]
        # the inputs of which numbers left the graph, what the function may read of tensors besides their elements, and whether either is there
        self.left, self.looks, self.particular = left, looks, bool(left or looks[0])
        self.single = form is LEAF and leaves[0] is OUTPUT
        self.raised: Raised = []  # exceptions of libraries that the function caught
        self.mismatch = self.why = ""  # why it did not hold for a call, and why it was recorded beside another

    def saved(self) -> tuple[Any, ...]:
        """The variant as data: captured tensors are constants with their present values."""
        values = [np.array(self.captures.tensors[i]()._value) for i in self.used]
        return self.running.program.with_constants(values), self.running.wanted, self.reads, self.form, self.leaves, self.guarded, \
            self.recorded, [i for i in self.left if i < len(self.running.program.inputs) - len(self.used)], self.looks

    @property
    def program(self) -> Program:
        """The program of the function's results, without the values that it reads to choose a branch."""
        whole = self.running.program
        return Program(whole.inputs, whole.constants, whole.steps, whole.outputs[:len(whole.outputs) - len(self.reads)])

    @classmethod
    def restored(cls, program: Any, backend: str, reads: Any, form: Any, leaves: Any, guarded: bool, recorded: int,
                 left: Sequence[int] = (), looks: tuple[Sequence[str], Sequence[Any]] = ((), ())) -> Variant:
        return cls(Running(program, backend), Captures(None), (), (), reads, form, leaves, guarded, 0.0, recorded, left, looks)

    def suits(self, leaves: Sequence[Any]) -> bool:
        """Whether the tensors are as the function has found them when it was recorded, in the properties that it may read."""
        self.mismatch = f"the function may read {' and '.join(self.looks[0])} of its tensors, which differ"
        return not self.looks[0] or looks_of(self.looks[0], [*leaves, *self.captures.present()]) == self.looks[1]

    def loses_derivatives(self, leaves: Sequence[Any], arguments: Sequence[Any]) -> bool:
        """Whether numbers left the graph of a tensor that requires a gradient: the function itself warns or raises, as in an eager call."""
        given = [x for x, a in zip(leaves, arguments) if a[0] != "fixed"] + self.captures.present()
        return thread.modes.grad and any([isinstance(given[i], Tensor) and given[i].requires_grad for i in self.left])

    def tensors_now(self) -> Any:
        """The numbers of the captured tensors that the program reads; NotImplemented if the program is not valid for the captured tensors."""
        own = list[Any]()
        try:
            for read, shape, dtype in self.watched:
                t = read()
                if not isinstance(t, Tensor) or (value := t._value).shape != shape or value.dtype != dtype:
                    self.mismatch = f"a captured tensor had shape {list(shape)} and dtype {dtype}"
                    return NotImplemented
                own.append(value)
            if Recorded in map(type, own):  # another thread records a function that captures them
                with swapping: own = [read()._value for read, *_ in self.watched]  # noqa: E701  on one line: no interrupt before the lock is released
        except (LookupError, AttributeError, ValueError):
            self.mismatch = "a captured tensor is not there any more"
            return NotImplemented
        return own[:len(self.used)]

    def run(self, values: Sequence[Any]) -> Any:
        """The result for the values of the arguments; NotImplemented where the program is not valid for them, or GUARDED."""
        captures = self.captures
        if (name := captures.changed()) is not None:
            self.mismatch = f"the captured value {name} has changed"
            return NotImplemented
        if self.watched:
            own = self.tensors_now()
            if own is NotImplemented:
                return NotImplemented
            values = [*values, *own]
        try:
            found = self.running(values)
        except Exception as error:  # such as a singular matrix: the function raises it, catches it, or does not come to this step
            self.mismatch = f"a step of the program raised {type(error).__name__}"
            return NotImplemented
        if self.reads:
            count = len(found) - len(self.reads)
            for now, before in zip(found[count:], self.reads):
                if before is not None and not same_bits(now, before):
                    texts = [np.array2string(np.asarray(x), threshold=4) for x in (before, now)]
                    self.mismatch = f"the function read {texts[0]}, and now {texts[1]}"
                    return NotImplemented
            found = found[:count]
        if self.guarded and any([has_nan(numeric, y) for y in found]):
            return GUARDED
        self.runs += 1
        if self.single:
            return wrap(found[0])
        outputs = iter(found)
        return self.form.unflatten([wrap(next(outputs)) if leaf is OUTPUT else leaf for leaf in self.leaves])
