"""A recorded program: the arguments and captured values for which it holds, and its run."""

from __future__ import annotations

import enum
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.guarding import has_nan
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.captures import Captures
from symgrad.compiled.contents import bits_of, same_bits
from symgrad.compiled.effects import Raised
from symgrad.compiled.kinds import is_plain_object
from symgrad.dtypes.dtype import DType
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread
from symgrad.program.backends import Running
from symgrad.program.program import ArraySpec, Program
from symgrad.system.locks import reentrant_lock
from symgrad.trees import LEAF
from symgrad.trees import Spec as Form

FLOAT = ("float",)
KEYS = {int, bool, str, bytes, type(None), DType}  # types of arguments that are equal only if they are the same to every computation
MOST_ATTRIBUTES = 16


class Given:
    """An object that was given as an argument, as a key: programs for it hold for this object, whose content they compare."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return type(other) is Given and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def key_of(x: Any) -> Any:
    """What is equal for arguments for which the same program holds: what a small object contains, or the object itself."""
    if (bits := bits_of(x)) is not None:
        return bits
    if is_plain_object(x) and type(x).__dictoffset__ and len(x.__dict__) <= MOST_ATTRIBUTES and not hasattr(type(x), "__slots__"):
        found = tuple([(name, bits_of(y)) for name, y in x.__dict__.items()])
        if all([bits is not None for _, bits in found]):
            return found
    return Given(x)


# What a function may read of tensors besides their elements, shapes and dtypes


def _graphs(xs: Sequence[Any]) -> list[Any]:
    return [(x.requires_grad, x.is_leaf, getattr(x, "_grad", None) is None) for x in xs if isinstance(x, Tensor)]


def _identities(xs: Sequence[Any]) -> list[int]:
    """For each tensor or array, the first that is the same object."""
    first: dict[int, int] = {}
    return [first.setdefault(id(x), i) for i, x in enumerate(xs) if isinstance(x, (Tensor, np.ndarray))]


# each with the names by which code reads it
PROPERTIES: dict[str, tuple[Callable[[Sequence[Any]], list[Any]], tuple[str, ...]]] = {
    "requires_grad, is_leaf or grad": (_graphs, ("requires_grad", "is_leaf", "grad", "grad_fn", "retains_grad")),
    "the strides": (lambda xs: [x._value.strides for x in xs if isinstance(x, Tensor)], ("stride", "strides", "is_contiguous")),
    "the type": (lambda xs: [*map(type, xs)],
                 ("isinstance", "issubclass", "type", "__class__", "is_tensor", "is_parameter", "getattr", "hasattr", "vars")),
    "the identity": (_identities, ("is", "id")),
}


def properties_read(names: Container[str]) -> list[str]:
    """The properties of tensors that code with some names may read."""
    return [name for name, (_, words) in PROPERTIES.items() if any([word in names for word in words])]


def looks_of(properties: Sequence[str], xs: Sequence[Any]) -> list[list[Any]]:
    """Each of the properties of the tensors among some values."""
    return [PROPERTIES[name][0](xs) for name in properties]


def has_attributes(form: Form) -> str:
    """The name of a type of sequences in a tree whose instances have attributes, which are no part of the tree."""
    kind = form.kind
    if kind is not None and issubclass(kind, (tuple, list)) and kind.__dictoffset__ and not hasattr(kind, "_fields"):
        return kind.__name__
    return next((name for part in form.parts if (name := has_attributes(part))), "")


def kinds_of_arguments(leaves: Sequence[Any]) -> tuple[list[tuple[Any, ...]], list[Any], bool, bool]:
    """The kind of each leaf: a tensor, an array or a number that may differ, with its shape and dtype, or a fixed value; the values that may differ.

    Then whether a tensor may require a gradient, and whether all values are plain arrays. One loop, since it is part of the overhead of each call.
    """
    arguments: list[tuple[Any, ...]] = []
    values: list[Any] = []
    tracked, plain = False, True
    for x in leaves:
        if isinstance(x, Tensor):
            value = x._value
            arguments.append(("tensor", value.shape, value.dtype))
            values.append(value)
            if x._node_slot is not None:
                tracked = True
            if isinstance(value, DuckArray):
                plain = False
        elif type(x) is float:
            arguments.append(FLOAT)
            values.append(np.float64(x))
        elif isinstance(x, (np.ndarray, np.generic)):
            arguments.append(("array", x.shape, x.dtype))
            values.append(x)
        else:
            arguments.append(("fixed", type(x), x if type(x) in KEYS else key_of(x)))
            plain = plain and not isinstance(x, DuckArray)
    return arguments, values, tracked, plain


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
