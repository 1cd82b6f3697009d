"""Recording a computation as a program: each word that is applied to a recorded value becomes an entry, from shapes and dtypes alone.

Equal entries are one, entries of constants alone are computed once, and entries are simplified where that changes no value.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.program.program import ArraySpec, Operand, Program, Step, call
from symgrad.program.rewrites import REWRITES, elementwise_operands, result_dtype, spec_of, unused_failures
from symgrad.system.restoring import changed

SMALL = 4096  # bytes of an array up to which it is compared by its elements
LARGEST_FOLDED = 2**22  # bytes of a constant that is computed in place of a step
SPECS: dict[Any, ArraySpec] = {}
MOST_SPECS = 4096
COMMUTING = ("add", "mul", "maximum", "minimum")


class Entry:
    """A value of a program that is being recorded: an "input", a "constant", or the result of a word."""

    __slots__ = ("name", "operands", "params", "shape", "dtype", "kind", "number", "value")

    def __init__(self, name: str, operands: tuple[Entry, ...], params: tuple, spec: ArraySpec, number: int, value: Any = None):
        self.name, self.operands, self.params, (self.shape, self.dtype) = name, operands, params, spec
        self.number, self.value = number, value  # the value of a constant, and of an entry whose elements were read
        # what determines the dtype of a result: a dtype, or the type of a Python number
        self.kind: Any = type(value) if name == "constant" and type(value) in (int, float, complex, bool) else self.dtype


class ProgramRecorder:
    """The entries of a program that is being recorded, and the values that the recorded function has read.

    `values` are those of the inputs, with which values that are read are computed.
    """

    def __init__(self, inputs: Sequence[ArraySpec], values: Sequence[Any] | None = None):
        self._known: dict[Any, Entry] = {}
        self.count = 0  # the number of entries that were made
        self._entries: list[Entry] = []  # keeps arrays alive whose ids are keys
        self.inputs = [Recorded(self._new("input", (), (i,), spec, None if values is None else values[i]), self) for i, spec in enumerate(inputs)]
        self.refused = ""  # why the computation cannot be recorded, if a word could not
        self.selects = False  # whether derivatives along fixed vectors are computed
        self.guarded = False  # whether a NaN in a result may have another value in a guarded pass
        self._kept: dict[int, Any] = {}  # tensors that exist outside of the recording, by id
        self._groups: dict[int, tuple[Any, list[Any]]] = {}  # a tensor with the group of those that share its memory, all weakly, by id
        self.reads: list[tuple[Entry, Any]] = []  # each with the value that was read; None if it is computed only because it may raise
        self._shared: list[Any] = []  # the values of `share_value`
        self._arrays: list[tuple[np.ndarray, np.ndarray]] = []  # that the user's code got for values, with copies
        self.left: list[Entry] = []  # those that the user's code read as plain numbers, which are constants to every derivative

    def _new(self, name: str, operands: tuple[Entry, ...], params: tuple, spec: ArraySpec, value: Any = None) -> Entry:
        self.count += 1
        out = Entry(name, operands, params, spec, self.count, value)
        self._entries.append(out)
        return out

    def constant(self, value: Any) -> Recorded:
        """A recorded value with fixed elements."""
        return Recorded(self.entry(value), self)

    def entry(self, x: Any) -> Entry:
        """The entry of an operand: a recorded value, an array or a number."""
        if type(x) is Recorded:
            if x.recorder is not self:
                raise Unrecordable("a value of another recording")
            return x.entry
        if type(x) is Entry:
            return x
        if type(x) is Batched:
            raise Unrecordable("a batch as an operand")
        key = constant_key(x)
        found = self._known.get(key)
        if found is None:
            y = np.asarray(x)
            if y.dtype.kind not in "fciub" and y.dtype.kind != "V":
                raise Unrecordable(f"an operand of type {type(x).__name__}")
            found = self._known[key] = self._new("constant", (), (), ArraySpec(y.shape, y.dtype), x)
        return found

    def along_fixed_vectors(self) -> AbstractContextManager[None]:
        """A context in which derivatives along fixed vectors are computed."""
        return changed(self, "selects", True)

    # Words

    def emit(self, name: str, operands: Sequence[Any], params: tuple) -> Recorded:
        """The value of a word for operands."""
        return Recorded(self.add(name, tuple([self.entry(x) for x in operands]), params), self)

    def emit_ufunc(self, name: str, ufunc: Any, operands: Sequence[Any]) -> Recorded:
        """The value of an elementwise word for operands."""
        entries = tuple([x.entry if type(x) is Recorded and x.recorder is self else self.entry(x) for x in operands])
        key = name, *[(e.shape, e.kind) for e in entries]
        spec = SPECS.get(key)
        if spec is None:
            spec = _remembered(key, ArraySpec(_broadcast(entries), result_dtype(ufunc, [e.kind for e in entries])))
        return Recorded(self.add(name, entries, (), spec), self)

    def emit_where(self, condition: Any, a: Any, b: Any) -> Recorded:
        """The value of `where`."""
        entries = tuple([self.entry(x) for x in (condition, a, b)])
        return Recorded(self.add("where", entries, (), ArraySpec(_broadcast(entries), result_dtype(np.add, [e.kind for e in entries[1:]]))), self)

    def emit_index(self, name: str, operands: Sequence[Any], index: Any, *rest: Any) -> Recorded:
        """The value of a word with an index, whose parts may be recorded."""
        ins = [self.entry(x) for x in operands]

        def part(x: Any) -> Any:
            if type(x) is Recorded:
                if x.dtype.kind == "b" and x.ndim:
                    raise Unrecordable("a mask as an index, which selects different numbers of elements")
                ins.append(self.entry(x))
                return Operand(len(ins) - 1)
            if type(x) in (tuple, list):
                return type(x)(map(part, x))
            if type(x) is slice:
                return slice(*(None if at is None else int(at) for at in (x.start, x.stop, x.step)))
            if type(x) is np.ndarray:
                return x.copy()
            return int(x) if isinstance(x, np.integer) else x

        params = part(index), *rest  # adds to the operands
        return Recorded(self.add(name, tuple(ins), params), self)

    def add(self, name: str, operands: tuple[Entry, ...], params: tuple, spec: ArraySpec | None = None) -> Entry:
        """The entry of a word for entries: an equal one, a simpler one, a constant, or a new one. Elementwise words come with `spec`."""
        if spec is None:
            spec = _spec(name, operands, params)
        else:
            operands = elementwise_operands(self, name, operands, spec)
        rewrite = REWRITES.get(name)
        found = None if rewrite is None else rewrite(self, operands, params, spec)
        return self.add_plain(name, operands, params, spec) if found is None else found

    def add_plain(self, name: str, operands: tuple[Entry, ...], params: tuple, spec: ArraySpec) -> Entry:
        """As `add`, without simplification."""
        numbers = [e.number for e in operands]
        if name in COMMUTING:
            numbers.sort()
        key = (name, *numbers, parameter_key(params)) if params else (name, *numbers)
        found = self._known.get(key)
        if found is None:
            found = self._folded(name, operands, params, spec) or self._new(name, operands, params, spec)
            self._known[key] = found
        return found

    def _folded(self, name: str, operands: tuple[Entry, ...], params: tuple, spec: ArraySpec) -> Entry | None:
        """The constant that a word of constants gives; None if an operand is no constant, or the result is large."""
        for e in operands:
            if e.name != "constant":
                return None
        if np.prod(spec.shape, dtype=float) * spec.dtype.itemsize > LARGEST_FOLDED:
            return None
        with np.errstate(all="ignore"):
            y = call(_step(name, operands, params, spec), [e.value for e in operands])
        return self._new("constant", (), (), spec, y)

    # Memory, which values in a program do not have

    def keep_memory(self, tensor: Any) -> None:
        """Note a tensor that exists outside of the recording, so that it cannot be written."""
        self._kept[id(tensor)] = tensor

    def share_value(self, value: Any) -> None:
        """Note a value whose memory was given to another tensor, or to an array, so that no tensor with that memory can be written."""
        self._shared.append(value)

    def share_memory(self, tensor: Any, view: Any) -> None:
        """Note that two tensors share their memory."""
        group = self._group(tensor) or self._group(view) or []
        for t in (tensor, view):
            if all([r() is not t for r in group]):
                group.append(weakref.ref(t))
            self._groups[id(t)] = weakref.ref(t), group

    def _group(self, tensor: Any) -> list[Any]:
        reference, group = self._groups.get(id(tensor), (None, []))
        return group if reference is not None and reference() is tensor else []

    def shares_memory(self, tensor: Any) -> bool:
        """Whether a write into a tensor would be seen by another that is alive."""
        return (id(tensor) in self._kept or any([(t := r()) is not None and t is not tensor for r in self._group(tensor)])
                or any([_has_memory_of(tensor._value, x) for x in self._shared]))

    # Reading values, and the finished program

    def read(self, x: Recorded) -> Any:
        """The elements of a recorded value, for the inputs of this recording; the program is valid for inputs that give the same."""
        value = self.value_of(x.entry)
        if x.entry.name != "constant" and all(x.entry is not e for e, _ in self.reads):
            self.reads.append((x.entry, np.array(value)[()]))  # a copy: the memory of an input may be written before the next run
        return value

    def array(self, x: Recorded, dtype: Any = None) -> np.ndarray:
        """The elements of a recorded value as an array of their own, into which nothing may be written."""
        out = np.array(self.read(x), dtype)
        self._arrays.append((out, out.copy()))
        return out

    def value_of(self, entry: Entry) -> Any:
        """The elements of an entry, computed from the values of the inputs."""
        for e in _upstream([entry], lambda e: e.value is not None):
            if e.name == "input" and e.value is None:
                raise Unrecordable("a value that depends on the inputs, of which only the shapes are known")
            if e.value is None:
                with np.errstate(all="ignore"):
                    y = np.asarray(call(_step(e.name, e.operands, e.params, ArraySpec(e.shape, e.dtype)), [o.value for o in e.operands]))
                e.value = y if y.ndim else y[()]
        return entry.value

    def program(self, outputs: Sequence[Any], required: int) -> tuple[Program, list[int]]:
        """The program that computes the outputs, followed by the values that were read; and the numbers of its inputs.

        Its inputs are the first `required` ones, and those of the others that are used.
        """
        if any([out.shape != before.shape or out.tobytes() != before.tobytes() for out, before in self._arrays]):
            raise Unrecordable("a write into an array that shares its memory with a tensor")
        ends = [self.entry(x) for x in outputs] + [entry for entry, _ in self.reads]
        used = _upstream(ends)
        if failing := unused_failures(self._entries, used):
            self.reads += [(e, None) for e in failing]
            ends += failing
            used = _upstream(ends)
        read = {e.params[0] for e in used if e.name == "input"}
        numbers = [i for i in range(len(self.inputs)) if i < required or i in read]
        return self._program(ends, [self.inputs[i].entry for i in numbers], used), numbers

    @staticmethod
    def inputs_of(entries: Sequence[Entry]) -> list[int]:
        """The numbers of the inputs on which some entries depend."""
        return [e.params[0] for e in _upstream(entries) if e.name == "input"]

    def stages(self, rows: Sequence[Sequence[Any]]) -> list[Program]:
        """A program for each row of outputs: its inputs are those of the recording and the last outputs of the programs before it."""
        ends = [[self.entry(x) for x in row] for row in rows]
        inputs = [x.entry for x in self.inputs]
        known, needed = set(inputs), list[list[Entry]]()
        for row in ends:
            needed.append([e for e in _upstream(row, known.__contains__) if e not in known])
            known.update(needed[-1])
        out = []
        for k, row in enumerate(ends):
            later = {e for each in ends[k + 1:] for e in each} | {o for each in needed[k + 1:] for e in each for o in e.operands}
            carried = [e for e in needed[k] if e in later and e.name != "constant"]
            out.append(self._program([*row, *carried], inputs, _upstream([*row, *carried], set(inputs).__contains__)))
            inputs = inputs + carried
        return out

    def define(self, name: str, operand: Any, value: Recorded) -> None:
        """Let a word of an operand be a value that is recorded already."""
        self._known[name, self.entry(operand).number] = value.entry

    @staticmethod
    def _program(ends: Sequence[Entry], inputs: Sequence[Entry], entries: Sequence[Entry]) -> Program:
        """The program of some inputs; `entries` are those that the ends need beyond them, in order."""
        at = {e: i for i, e in enumerate(inputs)}
        steps, constants = [], []
        for e in entries:
            if e.name == "constant":
                constants.append(e)
            elif e not in at:
                steps.append(e)
        at.update((e, i) for i, e in enumerate([*constants, *steps], len(at)))
        return Program([ArraySpec(e.shape, e.dtype) for e in inputs], [_kept(e.value) for e in constants],
                       [Step(e.name, tuple([at[o] for o in e.operands]), e.params, e.shape, e.dtype) for e in steps], [at[e] for e in ends])


def _step(name: str, operands: Sequence[Entry], params: tuple, spec: ArraySpec) -> Step:
    return Step(name, tuple(range(len(operands))), params, *spec)


def _upstream(ends: Sequence[Entry], known: Callable[[Entry], bool] = lambda e: False) -> list[Entry]:
    """The entries from which others are computed, and these, in order; not beyond those that are known."""
    seen, stack = set[Entry](ends), list(ends)
    while stack:
        e = stack.pop()
        if not known(e):
            new = [o for o in e.operands if o not in seen]
            seen.update(new)
            stack += new
    return sorted(seen, key=lambda e: e.number)


def _broadcast(entries: Sequence[Entry]) -> tuple[int, ...]:
    shapes = {e.shape for e in entries if e.shape}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def _spec(name: str, operands: tuple[Entry, ...], params: tuple) -> ArraySpec:
    """The shape and dtype of a word's result, remembered for operands and parameters without arrays."""
    if any([e.name == "constant" for e in operands]) or any(map(_has_array, params)):
        return spec_of(name, operands, params)
    key = name, *[(e.shape, e.dtype) for e in operands], parameter_key(params)
    return SPECS.get(key) or _remembered(key, spec_of(name, operands, params))


def _has_array(x: Any) -> bool:
    return type(x) is np.ndarray or type(x) in (tuple, list) and any(map(_has_array, x))


def _remembered(key: Any, spec: ArraySpec) -> ArraySpec:
    if len(SPECS) > MOST_SPECS:
        SPECS.clear()
    SPECS[key] = spec
    return spec


def _kept(value: Any) -> Any:
    """A constant in memory that nobody writes."""
    if type(value) is np.ndarray and not (value.ndim and not any(value.strides)):
        value = value.copy()
        value.flags.writeable = False
    return value


def constant_key(x: Any) -> Any:
    """A key that is equal for equal constants."""
    if isinstance(x, np.ndarray):
        if x.size and not any(x.strides):
            first = x[(0,) * x.ndim]
            return "filled", x.shape, x.dtype, first.tobytes()
        return (x.shape, x.dtype, x.tobytes()) if x.nbytes <= SMALL else ("array", id(x))
    return (x.dtype, x.tobytes()) if isinstance(x, np.generic) else (type(x), repr(x))


def parameter_key(x: Any) -> Any:
    """A key that is equal for equal parameters."""
    kind = type(x)
    if kind is tuple or kind is list:
        return (kind, *map(parameter_key, x)) if x else kind
    if kind is slice:
        return slice, x.start, x.stop, x.step
    if kind is np.ndarray:
        return constant_key(x)
    if kind is int:
        return x
    if kind is float or kind is bool:
        return kind, repr(x)
    try:
        hash(x)
    except TypeError:
        return kind, id(x)
    return kind, x


def _has_memory_of(value: Any, other: Any) -> bool:
    return value is other or type(value) is np.ndarray and type(other) is np.ndarray and np.may_share_memory(value, other)
