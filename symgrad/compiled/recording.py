"""One function of tensors as programs: recorded for the shapes of its arguments, and again where the values that it has read differ."""

from __future__ import annotations

import contextlib
import enum
import itertools
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.carriers.guarding import has_nan
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.arguments import KEYS, Given, has_attributes, kinds_of_arguments, looks_of, properties_read
from symgrad.compiled.captures import Captures, Unwatched
from symgrad.compiled.catching import Raised, watching_exceptions
from symgrad.compiled.contents import same_bits
from symgrad.compiled.effects import HasEffects, effects_undone, reaches_recorded
from symgrad.compiled.outside import looking
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import DEFAULT, in_mode, special, thread
from symgrad.graph.node import Leaf, all_threads
from symgrad.program.backends import Running
from symgrad.program.cache import programs
from symgrad.program.program import Program, Spec
from symgrad.program.recorder import ProgramRecorder
from symgrad.types.locks import reentrant_lock
from symgrad.types.restoring import collection_paused, restored
from symgrad.types.trees import LEAF, flatten
from symgrad.types.trees import Spec as Form

__all__ = ["Recorder", "Variant", "call_tree", "substituted"]

number = itertools.count().__next__
swapping = reentrant_lock()  # while captured tensors have recorded values


class Variant:
    """A recorded program: what it is valid for, and how its outputs become the function's result."""

    def __init__(self, running: Running, captures: Captures, used: Sequence[int], captured: Sequence[Spec], reads: Sequence[Any], form: Form,
                 leaves: Sequence[Any], guarded: bool, seconds: float, recorded: int, left: Sequence[int] = (),
                 looks: tuple[Sequence[str], Sequence[Any]] = ((), ())):
        self.running, self.captures, self.used, self.captured = running, captures, used, captured
        self.reads, self.form, self.leaves, self.guarded = reads, form, leaves, guarded
        self.seconds, self.recorded, self.runs = seconds, recorded, 0
        # captured tensors whose shapes and dtypes alone were read, if at all
        self.unused = [(read, t._value.shape, t._value.dtype) for i, (read, t) in enumerate(zip(captures.tensors, captures.present()))
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
        """The variant of saved data."""
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
        captures = self.captures
        try:
            for read, shape, dtype in self.unused:
                t = read()
                if not isinstance(t, Tensor) or t._value.shape != shape or t._value.dtype != dtype:
                    self.mismatch = f"a captured tensor had shape {list(shape)} and dtype {dtype}"
                    return NotImplemented
            present = [captures.tensors[i]() for i in self.used]
        except (LookupError, AttributeError, ValueError):
            self.mismatch = "a captured tensor is not there any more"
            return NotImplemented
        for t, spec in zip(present, self.captured):
            if not isinstance(t, Tensor) or t._value.shape != spec.shape or t._value.dtype != spec.dtype:
                self.mismatch = f"a captured tensor had shape {list(spec.shape)} and dtype {spec.dtype}"
                return NotImplemented
        own = [t._value for t in present]
        if Recorded in map(type, own):  # another thread records a function that captures them
            with swapping: own = [t._value for t in present]  # noqa: E701  on one line: no interrupt comes before the release of the lock
        return own

    def run(self, values: Sequence[Any]) -> Any:
        """The result for the values of the arguments; NotImplemented where the program is not valid for them, or GUARDED."""
        captures = self.captures
        if (name := captures.changed()) is not None:
            self.mismatch = f"the captured value {name} has changed"
            return NotImplemented
        if self.used or self.unused:
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


class Marker(enum.Enum):
    """What stands for a leaf of a result that a program computes; an enumeration, since it must be the same after a pickle."""

    OUTPUT = 0


OUTPUT = Marker.OUTPUT
GUARDED = object()  # the result of a run with a NaN, for which a guarded pass may give a number


EFFECTS = 3  # recordings in which a function changes what it captures, or the program fails, after which it is not recorded again


def call_tree(function: Callable[..., Any], tree: Any) -> Any:
    """The result for arguments as they were flattened: a tuple of positional ones, or a list of these and of those by name."""
    return function(*tree[0], **tree[1]) if type(tree) is list else function(*tree)


def is_plain() -> bool:
    """Whether a call can run as a program: no other transform, recorder or mode is around it."""
    if all_threads.anomaly is not None:
        return False
    if not special:
        return True
    modes = thread.modes
    return not (modes.recorder is not DEFAULT or modes.observers or modes.batches or modes.level is not None or modes.inference
                or modes.program is not None)


@contextlib.contextmanager
def substituted(tensors: Sequence[Tensor], values: Sequence[Any]) -> Iterator[None]:
    """Give tensors other values, and detach them from graphs, for a `with` block."""
    with swapping:
        before = [(t, t._value, t._node_slot, t._view) for t in tensors]

        def restore() -> None:
            for t, value, node, view in before:
                t._value, t._node_slot, t._view = value, node, view

        with restored(restore):
            for t, x in zip(tensors, values):
                node = t._node_slot
                t._value, t._view = (x._value, None) if isinstance(x, Tensor) else (x, None)
                t._node_slot = x._node_slot if isinstance(x, Tensor) else _leaf_like(t, node, x)
            yield


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
        self._failures: dict[Any, int] = {}  # programs that failed in their first run, by the key of the call
        self._effects = 0  # recordings in which the function had effects
        self._newest: Any = None  # the structure and kinds of the last call's arguments, their key, and the programs for them

    def call(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Variant | None, Sequence[Any], Any]:
        """The result of a call, the program that computed it if it may require a gradient, the leaves of the arguments, and their structure."""
        leaves, form = flatten([args, kwargs] if kwargs else args)
        arguments, values, tracked, plain = kinds_of_arguments(leaves)
        if not (plain and is_plain()):
            return self.function(*args, **kwargs), None, leaves, form
        newest = self._newest
        if newest is not None and form is newest[0] and arguments == newest[1]:
            key, found = newest[2], newest[3]
        else:
            key = self.key, form, tuple(arguments)
            try:
                found = programs.get(key)
            except TypeError:
                self.reasons["unhashable"] = "an argument that is neither a tensor nor a number cannot be compared"
                return self.function(*args, **kwargs), None, leaves, form
            if found is None:
                found = []
            else:
                self._newest = form, arguments, key, found
        for variant in found:
            if variant.particular:
                if not variant.suits(leaves):
                    continue
                if variant.loses_derivatives(leaves, arguments):
                    break
            out = variant.run(values)
            if out is GUARDED:
                break
            if out is not NotImplemented:
                return out, variant if tracked or variant.used else None, leaves, form
        else:
            variant, reason = self._new_variant(leaves, form, arguments, values, key, found)
            if variant is not None and variant.raised:
                return self._checked(variant, key, found, args, kwargs), None, leaves, form
            out = GUARDED if variant is None or variant.left and variant.loses_derivatives(leaves, arguments) else variant.run(values)
            if variant is not None and out is not NotImplemented and out is not GUARDED:
                return out, variant if tracked or variant.used else None, leaves, form
            if variant is not None and out is NotImplemented:
                self._drop(key, variant)
            if reason:
                out = self.function(*args, **kwargs)
                self.reasons[key] = reason  # not before: an error of the function itself is no reason
                return out, None, leaves, form
        return self.function(*args, **kwargs), None, leaves, form

    def _new_variant(self, leaves: Sequence[Any], form: Form, arguments: Sequence[Any], values: Sequence[Any], key: Any,
                     found: list[Variant]) -> tuple[Variant | None, str]:
        """A further program for arguments of a kind; None where there can be none, with the reason."""
        if key in self.reasons:
            return None, ""
        if len(found) >= self.max_programs:
            return None, f"{len(found)} programs were recorded for these shapes (max_programs); again {found[0].mismatch}"
        try:
            variant = self.record(leaves, form, arguments, values)
        except Unwatched as error:
            raise Unwatched(f"{self.label}: {error}") from None
        except HasEffects as error:  # it may have them in its first call alone, as what fills a cache
            self._effects += 1
            return None, str(error) if self._effects >= EFFECTS else ""
        except Exception as error:  # whatever a function does not support on recorded values, it may support on others
            return None, f"{type(error).__name__}: {error}"
        self._effects = 0
        variant.why = found[0].mismatch if found else ""
        if not variant.raised:
            self._keep(key, [variant, *found])
        return variant, ""

    def _checked(self, variant: Variant, key: Any, found: list[Variant], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call that runs uncompiled; the program is kept if the function catches the exceptions that it caught when recorded."""
        with watching_exceptions() as raised:
            out = self.function(*args, **kwargs)
        if raised == variant.raised:
            self._keep(key, [variant, *found])
        else:
            kind, function, line = next((x for x in variant.raised if x not in raised), variant.raised[0])
            self.reasons[key] = f"{kind} was caught in {function} (line {line}), and does not come unless the function is recorded"
        return out

    def prepare(self, args: tuple) -> None:
        """Record the program for arguments of these shapes, whose values are not read; if that cannot be, the first call records it."""
        leaves, form = flatten(args)
        arguments = tuple(kinds_of_arguments(leaves)[0])
        key = self.key, form, arguments
        if programs.get(key) is None:
            with contextlib.suppress(Exception):  # a function that reads values, or without this derivative
                if not (variant := self.record(leaves, form, arguments, None)).raised:
                    self._keep(key, [variant])

    def saved(self) -> list[tuple[Any, list[Any]]]:
        """The programs as data, by the kind of the arguments."""
        return [(key[1:], [v.saved() for v in programs.get(key) or ()]) for key in self._keys]

    def restore(self, saved: Sequence[tuple[Any, list[Any]]]) -> None:
        """Take programs over that were saved."""
        for key, variants in saved:
            for data in reversed(variants):
                self._keep((self.key, *key), [Variant.restored(*data), *(programs.get((self.key, *key)) or ())])

    def _keep(self, key: Any, found: list[Variant]) -> None:
        """Put programs, the newest first, into the library's cache."""
        self.variants.append(found[0])
        self._newest = None
        self._keys.add(key)
        programs.put(key, found, sum([v.running.nbytes for v in found]))

    def _drop(self, key: Any, variant: Variant) -> None:
        """Remove a program that does not even hold for the values for which it was recorded, such as one that inverts a singular matrix."""
        self._failures[key] = self._failures.get(key, 0) + 1
        if self._failures[key] >= EFFECTS:
            self.reasons[key] = variant.mismatch
        self.variants.remove(variant)
        self._newest = None
        left = [v for v in programs.get(key) or () if v is not variant]
        programs.put(key, left, sum([v.running.nbytes for v in left]))

    def record(self, leaves: Sequence[Any], form: Form, arguments: Sequence[Any], values: Sequence[Any] | None) -> Variant:
        """The program of the function for arguments of these shapes.

        Raises Unrecordable for a function that cannot be recorded, and what the function raises.
        """
        with swapping: return self._record(leaves, form, arguments, values)  # noqa: E701  on one line: as in `run`

    @property
    def label(self) -> str:
        """The name of the function, for messages."""
        return getattr(self.subject, "__name__", type(self.subject).__name__)

    def _record(self, leaves: Sequence[Any], form: Form, arguments: Sequence[Any], values: Sequence[Any] | None) -> Variant:
        start = time.perf_counter()
        objects = [(f"argument {i}", x, type(a[2]) is Given) for i, (x, a) in enumerate(zip(leaves, arguments))
                   if a[0] == "fixed" and type(x) not in KEYS]
        captures = Captures(self.subject, [(name, x if watched else type(x)) for name, x, watched in objects])  # or the key has the content
        small = [(x.__dict__, dict(x.__dict__)) for _, x, watched in objects if not watched and type(getattr(x, "__dict__", None)) is dict]
        present = captures.present()
        specs = [Spec((), np.dtype(np.float64)) if a[0] == "float" else Spec(tuple(a[1]), a[2]) for a in arguments if a[0] != "fixed"]
        captured = [Spec(tuple(t._value.shape), t._value.dtype) for t in present]
        recorder = ProgramRecorder(specs + captured, None if values is None else [*values, *[t._value for t in present]])
        inputs = iter(recorder.inputs)
        given: list[Any] = []
        for x, a in zip(leaves, arguments):
            given.append(x if a[0] == "fixed" else wrap(next(inputs)))
            if a[0] == "tensor" and thread.modes.grad and x.requires_grad:
                given[-1]._make_leaf(True)
            recorder.keep_memory(given[-1])
        for t in present:
            recorder.keep_memory(t)
        if name := has_attributes(form):
            raise Unrecordable(f"an argument of type {name}, which may have attributes")
        tree = form.unflatten(given)
        properties = properties_read(captures.names)
        looks = looks_of(properties, [*leaves, *present])
        with effects_undone(captures, tree, given, present, small):
            refusing: Any = looking(Unwatched, HasEffects) if captures.looks else contextlib.nullcontext()
            catching: Any = watching_exceptions() if captures.catches else contextlib.nullcontext([])
            with collection_paused(), in_mode(program=recorder), substituted(present, list(inputs)):
                for name, own, now in zip(properties, looks, looks_of(properties, [*given, *present])):
                    if own != now:
                        raise Unrecordable(f"a function that may read {name} of a tensor, which a recorded value does not have")
                with refusing, catching as raised:
                    output = call_tree(self.function, tree)
                found, shape = flatten(output)
            if recorder.refused:
                raise Unrecordable(recorder.refused)
        outputs = [as_value(y) if isinstance(y, Tensor) else y for y in found]
        places = [isinstance(y, (np.ndarray, np.generic, Recorded)) for y in outputs]
        if any(isinstance(y, DuckArray) and type(y) is not Recorded for y in outputs):
            raise Unrecordable("a result that is a batch")
        for y, there in zip(outputs, places):
            if not there and captures.objects.get(id(y)) is not y and reaches_recorded(y):
                raise Unrecordable(f"a result of type {type(y).__name__}, which may refer to recorded values")
        kept = [y for y, there in zip(outputs, places) if there]
        program, used = recorder.program(kept, len(specs))
        on = [i - len(specs) for i in used[len(specs):]]
        variant = Variant(Running(program, self.backend), captures, on, [captured[i] for i in on], [v for _, v in recorder.reads], shape,
                          [OUTPUT if there else y for y, there in zip(outputs, places)], recorder.guarded, time.perf_counter() - start,
                          recorder.count, recorder.inputs_of(recorder.left), (properties, looks))
        variant.raised = raised
        return variant
