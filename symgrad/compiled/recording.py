"""One function of tensors as programs: recorded for the shapes of its arguments, and again where the values that it has read differ."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.captures import Captures, Unwatched
from symgrad.compiled.effects import (
    LASTING,
    HasEffects,
    MayHaveEffects,
    OwnError,
    Raised,
    effects_observed,
    effects_undone,
    is_own,
    reaches_recorded,
    watching_exceptions,
)
from symgrad.compiled.outside import looking
from symgrad.compiled.variants import GUARDED, KEYS, OUTPUT, Given, Variant, has_attributes, kinds_of_arguments, looks_of, properties_read, swapping
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import DEFAULT, in_mode, special, thread
from symgrad.graph.node import Leaf
from symgrad.program.backends import Running
from symgrad.program.cache import programs
from symgrad.program.program import ArraySpec
from symgrad.program.recorder import ProgramRecorder
from symgrad.reports.base import message_of
from symgrad.system.restoring import collection_paused, restored
from symgrad.trees import Spec as Form
from symgrad.trees import flatten

number = itertools.count().__next__
EFFECTS = 3  # recordings in which a function changes what it captures, or the program fails, after which it is not recorded again
MOST_KEYS = 1000  # of calls that are remembered because of what the function has done in them


def call_tree(function: Callable[..., Any], tree: Any) -> Any:
    """The result for arguments as they were flattened: a tuple of positional ones, or a list of these and of those by name."""
    return function(*tree[0], **tree[1]) if type(tree) is list else function(*tree)


def is_plain() -> bool:
    """Whether a call can run as a program: no other transform, recorder or mode is around it."""
    if not special:
        return True
    modes = thread.modes
    return not (modes.recorder is not DEFAULT or modes.observers or modes.batches or modes.level is not None or modes.inference
                or modes.program is not None or modes.anomaly is not None)


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


class Specializer:
    """The programs of one function of trees of tensors."""

    def __init__(self, function: Callable[..., Any], subject: Any, name: str, backend: str, max_programs: int):
        self.function, self.subject, self.name, self.backend, self.max_programs = function, subject, name, backend, max_programs
        self.key = number()
        self._keys: set[Any] = set()  # of this function in the library's cache
        weakref.finalize(self, _forget, self._keys)
        self.reasons: dict[Any, str] = {}  # why calls of a kind are not compiled
        self.variants: list[Variant] = []
        self.pullbacks: dict[Any, Specializer] = {}
        self._failures: dict[Any, int] = {}  # programs that failed in their first run, by the key of the call
        self._effects = 0  # recordings in which the function had effects, and other calls in which it had them
        self._quiet: set[Any] = set()  # the keys of calls in which a function with signs of effects had none
        self._erring: set[Any] = set()  # the keys of calls in which the function raised an error
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
            captures: Captures | None = None
            try:
                variant, reason = self._new_variant(leaves, form, arguments, values, key, found)
            except MayHaveEffects as signs:
                captures = signs.captures
            if captures is not None:
                return self._observed(captures, key, args, kwargs), None, leaves, form
            if variant is not None and variant.raised:
                return self._checked(variant, key, found, args, kwargs), None, leaves, form
            out = GUARDED if variant is None or variant.left and variant.loses_derivatives(leaves, arguments) else variant.run(values)
            if variant is not None and out is not NotImplemented and out is not GUARDED:
                return out, variant if tracked or variant.used else None, leaves, form
            if variant is not None and out is NotImplemented:
                self._drop(key, variant)
            try:
                out = self.function(*args, **kwargs)
            except Exception:
                self._remember(self._erring, key)
                raise
            if reason:
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
        except MayHaveEffects:
            raise
        except OwnError as own:
            error_of_function = own.error
        except HasEffects as error:  # it may have them in its first call alone, as what fills a cache
            self._effects += 1
            return None, str(error) if self._effects >= EFFECTS else ""
        except Exception as error:  # whatever a function does not support on recorded values, it may support on others
            return None, message_of(error)
        else:
            self._effects = 0
            variant.why = found[0].mismatch if found else ""
            if not variant.raised:
                self._keep(key, [variant, *found])
            return variant, ""
        try:
            raise error_of_function
        finally:
            del error_of_function  # its traceback refers to this frame

    def _observed(self, captures: Captures, key: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call that runs as ever, since the function has signs of effects, or raised an error in the last call.

        The next one is recorded if it had none.
        """
        try:
            with effects_observed(captures, (args, kwargs)) as effects:
                out = self.function(*args, **kwargs)
        except Unwatched as error:
            raise Unwatched(f"{self.label}: {error}") from None
        self._erring.discard(key)
        if not effects:
            self._effects = 0
            self._remember(self._quiet, key)
            return out
        self._effects += 1
        lasting = [each for each in effects if each in LASTING]
        if lasting or self._effects >= EFFECTS:
            self.reasons[key] = [*lasting, *effects][0]
        return out

    @staticmethod
    def _remember(keys: set[Any], key: Any) -> None:
        if len(keys) >= MOST_KEYS:
            keys.clear()
        keys.add(key)

    @property
    def when(self) -> str:
        """When the function is recorded, for messages."""
        return "again, since its first call has run uncompiled to see whether it has effects" if self._quiet or self._effects else "first"

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
        return [(key[1:], [v.saved() for v in programs.get(key) or ()]) for key in self._keys]

    def restore(self, saved: Sequence[tuple[Any, list[Any]]]) -> None:
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
        return getattr(self.subject, "__name__", type(self.subject).__name__)

    def _record(self, leaves: Sequence[Any], form: Form, arguments: Sequence[Any], values: Sequence[Any] | None) -> Variant:
        start = time.perf_counter()
        objects = [(f"argument {i}", x, type(a[2]) is Given) for i, (x, a) in enumerate(zip(leaves, arguments))
                   if a[0] == "fixed" and type(x) not in KEYS]
        captures = Captures(self.subject, [(name, x if watched else type(x)) for name, x, watched in objects])  # or the key has the content
        key = self.key, form, tuple(arguments)
        if values is not None and (captures.signs and key not in self._quiet or key in self._erring):
            raise MayHaveEffects(captures)
        small = [(x.__dict__, dict(x.__dict__)) for _, x, watched in objects if not watched and type(getattr(x, "__dict__", None)) is dict]
        present = captures.present()
        specs = [ArraySpec((), np.dtype(np.float64)) if a[0] == "float" else ArraySpec(tuple(a[1]), a[2]) for a in arguments if a[0] != "fixed"]
        captured = [ArraySpec(tuple(t._value.shape), t._value.dtype) for t in present]
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
        raised: Raised = []
        effects: list[str] = []
        try:
            with effects_undone(captures, tree, given, present, small) as effects:
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
        except Exception as error:
            unsure = values is None or recorder.refused or effects or raised or captures.catches and sys.gettrace() is not None
            if unsure or any([a[0] == "array" for a in arguments]) or not is_own(error):  # a message may say what a tensor has in place of an array
                raise
            for t, value in zip([t for t, a in zip(given, arguments) if a[0] != "fixed"], values or ()):  # for who looks at the frames of the error
                t._value = value
            raise OwnError(error) from None
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
