"""A tape: the calls of a traced computation, as a list of steps that can be replayed on other values.

A `Taped` value is a traced value, which may differ in the next run; a carrier function of traced values is recorded as a call on the tape. A function
of constants alone is computed once. A `Program` has the steps that some outputs need, without the values of the recording. It is valid
for every graph with the same signature, because no rule branches on values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import PROTOCOL, numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.proxy import ValueProxy
from symgrad.carriers.structure import is_basic

__all__ = ["Program", "Tape", "Taped", "TapingCarrier"]

SHAPED = frozenset({"zeros_like", "ones_like", "eye_like"})  # functions that read only the shape and the dtype of a value
Step = Callable[[list[Any]], Any]
COMMUTING = (operator.add, operator.mul)
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
float64 = np.float64


class Tape:
    """The inputs of a traced computation, and its calls."""

    def __init__(self) -> None:
        self.count = 0
        self.calls: list[tuple[Callable[..., Any], tuple, Any]] = []  # each with its value in the recording
        self._values: dict[Any, Taped] = {}  # the value of each call, by the function and its arguments, which `calls` keeps alive

    def add_input(self, value: Any) -> Taped:
        """Add an input to the tape."""
        if self.calls:
            raise RuntimeError("all inputs of a tape must be added before its first call")
        self.count += 1
        return Taped(self, self.count - 1, value)

    def call(self, function: Any, args: tuple) -> Taped:
        """Record the call of a function with at least one traced argument; an equal call is recorded once."""
        rewrite = REWRITTEN.get(function)
        if rewrite is not None and type(args[0]) is Taped:
            simpler, args = rewrite(*args)
            if simpler is None:
                return args[0]
            function = simpler
        keys = [_key(a) for a in args]
        key = function, *(sorted(keys, key=repr) if function in COMMUTING else keys)
        found = self._values.get(key)
        if found is None:
            value = function(*map(_value, args))
            self.calls.append((function, args, value))
            found = self._values[key] = Taped(self, self.count + len(self.calls) - 1, value)
        return found

    def call_of(self, x: Any) -> tuple[Any, tuple]:
        """The call that computed a value; (None, ()) for an input or a constant."""
        return self.calls[x.slot - self.count][:2] if type(x) is Taped and x.slot >= self.count else (None, ())

    def define(self, function: Callable[..., Any], args: tuple, value: Taped) -> None:
        """Define the value of a call as one that is on the tape already."""
        self._values[function, *map(_key, args)] = value


class Program:
    """The steps from the inputs of a tape to rows of outputs, which are traced values or constants; each row also needs the steps of the rows before.

    Batches of plain arrays are represented by their data. `inputs` are the slots of the inputs that are read, `size` is the number of slots,
    and `nbytes` the memory of constants.
    """

    def __init__(self, tape: Tape, rows: Sequence[Sequence[Any]]):
        at = {slot: slot for slot in range(tape.count)}
        read, constants, self.stages = set[int](), list[Any](), list[tuple[list[tuple[int, Step]], list[Any], list[Step | None]]]()
        for row in rows:
            stack, needed = [y.slot for y in row if type(y) is Taped], set[int]()
            while stack:
                slot = stack.pop()
                if slot < tape.count:
                    read.add(slot)
                elif slot not in at and slot not in needed:
                    needed.add(slot)
                    stack += [t.slot for t in _taped(tape.calls[slot - tape.count][1])]
            steps = []
            for slot in sorted(needed):
                function, args, value = tape.calls[slot - tape.count]
                constants += args
                step = _step(function, args, value, at)
                at[slot] = len(at)
                steps.append((at[slot], step))
            constants += row
            self.stages.append((steps, [None if type(y) is Taped else y for y in row],
                                [_reader(at[y.slot], y.value) if type(y) is Taped else None for y in row]))
        self.inputs, self.size, self.count = sorted(read), len(at), tape.count
        self.nbytes = sum({id(x): x.nbytes for x in map(_memory, _leaves(constants)) if x is not None}.values())

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run all steps of a program with one row, and return its outputs."""
        values = [*inputs, *[None] * (self.size - self.count)]
        self.run_stage(values, 0)
        return self.outputs(values, 0)

    def run_stage(self, values: list[Any], stage: int) -> None:
        """Run the steps of a row."""
        for slot, step in self.stages[stage][0]:
            values[slot] = step(values)

    def outputs(self, values: list[Any], stage: int) -> list[Any]:
        """A row of outputs, after its steps have run."""
        _, constants, ends = self.stages[stage]
        return [y if end is None else end(values) for y, end in zip(constants, ends)]


class Taped(ValueProxy):
    """A traced value: a slot of a tape, and the value in the recording."""

    __slots__ = ("tape", "slot", "value")

    def __init__(self, tape: Tape, slot: int, value: Any):
        self.tape, self.slot, self.value = tape, slot, value

    def expand(self, shape: Any) -> Taped:
        """The value broadcast to a shape."""
        return self.tape.call(numeric.broadcast_to, (self, tuple(shape)))

    def __getitem__(self, index: Any) -> Taped:
        return self.tape.call(operator.getitem, (self, index))

    def __neg__(self) -> Taped:
        return self.tape.call(operator.neg, (self,))


def _has_components(x: Any) -> bool:
    """Whether a value is a dual or a series, whose components are traced values."""
    return hasattr(x, "tangent") or hasattr(x, "terms")


def _operator(function: Callable[[Any, Any], Any]) -> None:
    name = function.__name__.strip("_")
    setattr(Taped, f"__{name}__", lambda self, other: NotImplemented if _has_components(other) else self.tape.call(function, (self, other)))
    turned = function in COMMUTING
    setattr(Taped, f"__r{name}__", lambda self, other: NotImplemented if _has_components(other) else self.tape.call(
        function, (self, other) if turned else (other, self)))


for _function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.le, operator.gt, operator.ge):
    _operator(_function)


# Simplifications of calls that do not change values, except for the sign of zeros; the function None is the identity

Call = tuple[Any, tuple]


def _sum(a: Any, b: Any) -> Call:
    for x, y in ((a, b), (b, a)):
        function, args = a.tape.call_of(y)
        if function is operator.neg:
            return operator.sub, (x, *args)
    return operator.add, (a, b)


def _difference(a: Any, b: Any) -> Call:
    function, args = a.tape.call_of(b)
    return (operator.add, (a, *args)) if function is operator.neg else (operator.sub, (a, b))


def _product(a: Any, b: Any) -> Call:
    factor = _number(b, a.value)
    if factor is not None:
        return _scaled(a, factor)
    function, args = a.tape.call_of(a)
    if function is operator.mul and type(args[1]) is float and _level(b) is not None and a.value.dtype == b.dtype == float64 and _unrounded(b.data):
        return operator.mul, (args[0], b * args[1])  # the second factor is, for example, a batch of unit vectors
    return operator.mul, (a, b)


def _scaled(a: Any, factor: float) -> Call:
    """A value times a number, merged with a number by which the value was multiplied before."""
    function, args = a.tape.call_of(a)
    if a.value.dtype == float64 and (function is operator.neg or function is operator.mul and type(args[1]) is float):
        x, first = (*args, -1.0)[:2]
        both = first * factor
        if (_unrounded(first) or _unrounded(factor)) and 1e-300 < abs(both) < math.inf:  # both round once
            a, factor = x, both
    if factor == 1:
        return None, (a,)
    return (operator.neg, (a,)) if factor == -1 else (operator.mul, (a, factor))


def _unrounded(factors: Any) -> bool:
    """Whether multiplication by these numbers is exact: powers of two, and zeros."""
    part = np.abs(np.frexp(factors)[0])
    return bool(np.all((part == 0.5) | (part == 0)))


def _number(x: Any, like: Any) -> float | None:
    """The number of a factor that is a scalar, or an array of the shape of `like` with equal elements; None for others."""
    if type(x) is int or type(x) is float:
        return float(x) if like.dtype.kind in "fc" else None
    if type(x) is float64:
        return float(x) if like.dtype == float64 else None
    if type(x) is np.ndarray and x.size and x.dtype == like.dtype == float64 and x.shape == tuple(like.shape):
        first = x.item(0)
        return first if first and (not any(x.strides) or bool((x == first).all())) else None
    return None


REWRITTEN: dict[Any, Callable[..., Call]] = {
    operator.add: _sum, operator.sub: _difference, operator.mul: _product, operator.neg: lambda a: _scaled(a, -1.0),
    operator.truediv: lambda a, b: (None, (a,)) if _number(b, a.value) == 1 else (operator.truediv, (a, b)),
    operator.pow: lambda a, b: (None, (a,)) if type(b) in (int, float) and b == 1 else (operator.pow, (a, b)),
}


def _key(x: Any) -> Any:
    """The key of an argument, equal for equal arguments."""
    kind = type(x)
    if kind is Taped:
        return x.slot, Taped
    if kind in (list, tuple):
        return kind, tuple(map(_key, x))
    return (kind, repr(x)) if kind in (int, float, bool, str, type(None)) else (id(x), None)  # 0.0 and -0.0 are equal


def _value(x: Any) -> Any:
    if type(x) is Taped:
        return x.value
    return type(x)(map(_value, x)) if type(x) in (list, tuple) and any(type(e) is Taped for e in x) else x


def _leaves(args: Any) -> list[Any]:
    """The arguments, with the elements of sequences."""
    return [x for a in args for x in (_leaves(a) if type(a) in (list, tuple) else [a])]


def _taped(args: Any) -> list[Taped]:
    """The traced values among the arguments and in their sequences."""
    return [t for t in _leaves(args) if type(t) is Taped]


def _memory(x: Any) -> np.ndarray | None:
    """The array that owns the memory of a value; None for a value that is not an array."""
    while type(x) is Batched:
        x = x.data
    return None if type(x) is not np.ndarray else x.base if type(x.base) is np.ndarray else x


def _level(x: Any) -> int | None:
    """The level of a batch of plain arrays, which is represented by its data; None for any other value."""
    return x.level if type(x) is Batched and type(x.data) is np.ndarray else None


def _reader(i: int, value: Any) -> Step:
    """The function that reads a value from its slot; `value` is the one of the recording."""
    level = _level(value)
    return operator.itemgetter(i) if level is None else lambda values: Batched(values[i], level)


OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.neg)


def _step(function: Callable[..., Any], args: tuple, value: Any, at: Mapping[int, int]) -> Step:
    """The step of a call, which reads traced arguments from their slots; it computes on the data of batches if the op treats all members alike."""
    if not any([type(t.value) is Batched for t in _taped(args)]) and type(value) is not Batched:
        return _applied(function, _constants(function, args, value), at)
    level, now = _level(value), [_value(a) for a in args]
    if function is numeric.place and level is not None and type(args[0]) is Taped and is_basic(args[1]):
        index = args[1] if type(args[1]) is tuple else (args[1],)
        return _placed(at[args[0].slot], (slice(None), *index), value.data)
    sizes = {x.data.ndim for x in now if type(x) is Batched}
    if function in OPERATORS and level is not None and len(sizes) == 1 and all([
            _level(x) == level or type(x) in (int, float, float64) or type(x) is np.ndarray and x.ndim < max(sizes) for x in now]):
        return _applied(function, _constants(function, tuple([np.ascontiguousarray(a.data) if type(a) is Batched else a for a in args]), value), at)
    apply = _applied(function, args, at, True)
    return apply if level is None else lambda values: apply(values).data


def _constants(function: Callable[..., Any], args: tuple, value: Any) -> tuple:
    """The arguments with numbers as 0-d arrays, with which NumPy's arithmetic on arrays takes half the time."""
    if function not in ARITHMETIC or value.dtype != float64 or type(value) is float64:
        return args
    return tuple([np.array(float(a)) if type(a) is int or type(a) is float else a for a in args])


def _placed(i: int, index: Any, like: np.ndarray) -> Step:
    """A batch of arrays, each placed among zeros."""
    shape, dtype = like.shape, like.dtype

    def step(values: list[Any]) -> np.ndarray:
        out = np.zeros(shape, dtype)
        out[index] = values[i]
        return out

    return step


def _applied(function: Callable[..., Any], args: tuple, at: Mapping[int, int], whole: bool = False) -> Step:
    """The function that applies a call to the values in the slots; with `whole` batches are passed as such, not as their data."""
    if len(args) <= 2 and not whole:
        a, b = (*args, None)[:2]
        if len(args) == 1 and type(a) is Taped:
            i = at[a.slot]
            return lambda values: function(values[i])
        if type(a) is Taped and type(b) is Taped:
            i, k = at[a.slot], at[b.slot]
            return lambda values: function(values[i], values[k])
        if type(a) is Taped and type(b) not in (list, tuple):
            i = at[a.slot]
            return lambda values: function(values[i], b)
        if type(b) is Taped and type(a) not in (list, tuple):
            k = at[b.slot]
            return lambda values: function(a, values[k])
    readers = [_argument_reader(a, at, whole) for a in args]
    return lambda values: function(*[read(values) for read in readers])


def _argument_reader(x: Any, at: Mapping[int, int], whole: bool) -> Step:
    """The function that rebuilds an argument from the slots of the traced values in it."""
    if type(x) is Taped:
        return _reader(at[x.slot], x.value if whole else None)
    if type(x) in (list, tuple) and _taped(x):
        kind, parts = type(x), [_argument_reader(e, at, whole) for e in x]
        return lambda values: kind([read(values) for read in parts])
    return lambda values: x


class TapingCarrier:
    """The numeric carrier for arguments that may be traced values."""

    def __getattr__(self, name: str) -> Any:
        if name not in PROTOCOL:
            raise AttributeError(f"the taping carrier has no {name!r}: the protocol of the carriers has no such name")
        function = getattr(numeric, name)

        def call(*args: Any) -> Any:
            on = next((t for a in args for t in (a if type(a) in (list, tuple) else (a,)) if type(t) is Taped), None)
            if on is None or name in SHAPED:
                return function(*map(_value, args))
            return on.tape.call(function, args)

        setattr(self, name, call)
        return call
