"""A tape: what a reading of rules computed, as a list of steps that can be run again on other numbers.

A `Taped` value stands for a number that may differ the next time; whatever a carrier's function makes of one is a call on the tape. What is computed
from other things alone happens once. A `Program` has the steps that lead to some outputs, and none of the numbers of the recording; it is right
for every graph of one form, for no rule looks at the numbers themselves.
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

SHAPED = frozenset({"zeros_like", "ones_like", "eye_like"})  # which read of a value its shape and dtype alone
Step = Callable[[list[Any]], Any]
COMMUTING = (operator.add, operator.mul)
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
float64 = np.float64


class Tape:
    """The inputs of a reading, and the calls that it made."""

    def __init__(self) -> None:
        self.count = 0
        self.calls: list[tuple[Callable[..., Any], tuple, Any]] = []  # with what each gave when it was written down
        self._known: dict[Any, Taped] = {}  # what was computed already, by the function and its arguments, which `calls` keeps alive

    def enter(self, value: Any) -> Taped:
        """A number that is an input of the tape."""
        if self.calls:
            raise RuntimeError("the inputs of a tape come before its steps")
        self.count += 1
        return Taped(self, self.count - 1, value)

    def call(self, function: Any, args: tuple) -> Taped:
        """What a function makes of values of which one at least is on the tape."""
        rewrite = REWRITTEN.get(function)
        if rewrite is not None and type(args[0]) is Taped:
            simpler, args = rewrite(*args)
            if simpler is None:
                return args[0]
            function = simpler
        keys = [_key(a) for a in args]
        key = function, *(sorted(keys, key=repr) if function in COMMUTING else keys)
        known = self._known.get(key)
        if known is None:
            value = function(*map(_value, args))
            self.calls.append((function, args, value))
            known = self._known[key] = Taped(self, self.count + len(self.calls) - 1, value)
        return known

    def made(self, x: Any) -> tuple[Any, tuple]:
        """The call that gave a value of the tape; None for others."""
        return self.calls[x.place - self.count][:2] if type(x) is Taped and x.place >= self.count else (None, ())

    def note(self, function: Callable[..., Any], args: tuple, value: Taped) -> None:
        """Let a call be something that is on the tape already."""
        self._known[function, *map(_key, args)] = value


class Program:
    """The steps from the inputs of a tape to rows of outputs, on the tape or not; each row needs the steps of those before it, too.

    Batches of plain arrays travel as their data. `inputs` are the places of the inputs that are read, `size` is how many values there are on the way,
    and `nbytes` the memory of constants.
    """

    def __init__(self, tape: Tape, rows: Sequence[Sequence[Any]]):
        at = {place: place for place in range(tape.count)}
        read, constants, self.stages = set[int](), list[Any](), list[tuple[list[tuple[int, Step]], list[Any], list[Step | None]]]()
        for row in rows:
            stack, needed = [y.place for y in row if type(y) is Taped], set[int]()
            while stack:
                place = stack.pop()
                if place < tape.count:
                    read.add(place)
                elif place not in at and place not in needed:
                    needed.add(place)
                    stack += [t.place for t in _taped(tape.calls[place - tape.count][1])]
            steps = []
            for place in sorted(needed):
                function, args, value = tape.calls[place - tape.count]
                constants += args
                step = _step(function, args, value, at)
                at[place] = len(at)
                steps.append((at[place], step))
            constants += row
            self.stages.append((steps, [None if type(y) is Taped else y for y in row],
                                [_reader(at[y.place], y.value) if type(y) is Taped else None for y in row]))
        self.inputs, self.size, self.count = sorted(read), len(at), tape.count
        self.nbytes = sum({id(x): x.nbytes for x in map(_memory, _leaves(constants)) if x is not None}.values())

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The one row of outputs."""
        values = [*inputs, *[None] * (self.size - self.count)]
        self.take(values, 0)
        return self.given(values, 0)

    def take(self, values: list[Any], stage: int) -> None:
        """Take the steps of a row."""
        for place, step in self.stages[stage][0]:
            values[place] = step(values)

    def given(self, values: list[Any], stage: int) -> list[Any]:
        """A row of outputs, once its steps are taken."""
        _, constants, ends = self.stages[stage]
        return [y if end is None else end(values) for y, end in zip(constants, ends)]


class Taped(ValueProxy):
    """A value with its place on a tape."""

    __slots__ = ("tape", "place", "value")

    def __init__(self, tape: Tape, place: int, value: Any):
        self.tape, self.place, self.value = tape, place, value

    def expand(self, shape: Any) -> Taped:
        """The value stretched to a shape."""
        return self.tape.call(numeric.broadcast_to, (self, tuple(shape)))

    def __getitem__(self, index: Any) -> Taped:
        return self.tape.call(operator.getitem, (self, index))

    def __neg__(self) -> Taped:
        return self.tape.call(operator.neg, (self,))


def _holds(x: Any) -> bool:
    """Whether a value is a dual or a series, which holds values of the tape, and not the other way round."""
    return hasattr(x, "tangent") or hasattr(x, "terms")


def _operator(function: Callable[[Any, Any], Any]) -> None:
    name = function.__name__.strip("_")
    setattr(Taped, f"__{name}__", lambda self, other: NotImplemented if _holds(other) else self.tape.call(function, (self, other)))
    turned = function in COMMUTING
    setattr(Taped, f"__r{name}__", lambda self, other: NotImplemented if _holds(other) else self.tape.call(
        function, (self, other) if turned else (other, self)))


for _function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
    _operator(_function)


# Calls that give the same numbers, but for the sign of zeros, from fewer steps; no function is what gives its argument

Call = tuple[Any, tuple]


def _sum(a: Any, b: Any) -> Call:
    for x, y in ((a, b), (b, a)):
        function, args = a.tape.made(y)
        if function is operator.neg:
            return operator.sub, (x, *args)
    return operator.add, (a, b)


def _difference(a: Any, b: Any) -> Call:
    function, args = a.tape.made(b)
    return (operator.add, (a, *args)) if function is operator.neg else (operator.sub, (a, b))


def _product(a: Any, b: Any) -> Call:
    factor = _number(b, a.value)
    if factor is not None:
        return _scaled(a, factor)
    function, args = a.tape.made(a)
    if function is operator.mul and type(args[1]) is float and _level(b) is not None and a.value.dtype == b.dtype == float64 and _unrounded(b.data):
        return operator.mul, (args[0], b * args[1])  # such as a batch of unit vectors
    return operator.mul, (a, b)


def _scaled(a: Any, factor: float) -> Call:
    """A value by a number, together with the number that it was multiplied by before."""
    function, args = a.tape.made(a)
    if a.value.dtype == float64 and (function is operator.neg or function is operator.mul and type(args[1]) is float):
        x, first = (*args, -1.0)[:2]
        both = first * factor
        if (_unrounded(first) or _unrounded(factor)) and 1e-300 < abs(both) < math.inf:  # then it is rounded once either way
            a, factor = x, both
    if factor == 1:
        return None, (a,)
    return (operator.neg, (a,)) if factor == -1 else (operator.mul, (a, factor))


def _unrounded(factors: Any) -> bool:
    """Whether nothing is rounded where these are multiplied by: powers of two, and zeros."""
    part = np.abs(np.frexp(factors)[0])
    return bool(np.all((part == 0.5) | (part == 0)))


def _number(x: Any, like: Any) -> float | None:
    """A factor as a number where it is one, or an array no larger than `like` that repeats one."""
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
    """What says that an argument is the same as another."""
    kind = type(x)
    if kind is Taped:
        return x.place, Taped
    if kind in (list, tuple):
        return kind, tuple(map(_key, x))
    return (kind, repr(x)) if kind in (int, float, bool, str, type(None)) else (id(x), None)  # 0.0 and -0.0 are equal


def _value(x: Any) -> Any:
    if type(x) is Taped:
        return x.value
    return type(x)(map(_value, x)) if type(x) in (list, tuple) and any(type(e) is Taped for e in x) else x


def _leaves(args: Any) -> list[Any]:
    """Arguments, and what is in their sequences."""
    return [x for a in args for x in (_leaves(a) if type(a) in (list, tuple) else [a])]


def _taped(args: Any) -> list[Taped]:
    """The values on a tape among arguments and in their sequences."""
    return [t for t in _leaves(args) if type(t) is Taped]


def _memory(x: Any) -> np.ndarray | None:
    """The array whose memory a value shows; None for what is no array."""
    while type(x) is Batched:
        x = x.data
    return None if type(x) is not np.ndarray else x.base if type(x.base) is np.ndarray else x


def _level(x: Any) -> int | None:
    """The level of a batch of plain arrays, which travels as its data; None for anything else."""
    return x.level if type(x) is Batched and type(x.data) is np.ndarray else None


def _reader(i: int, value: Any) -> Step:
    """How a value is read from its place, given what it was like."""
    level = _level(value)
    return operator.itemgetter(i) if level is None else lambda values: Batched(values[i], level)


OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.neg)


def _step(function: Callable[..., Any], args: tuple, value: Any, at: Mapping[int, int]) -> Step:
    """The call of a function, with the places of what is on the tape; on the data alone where an operator treats all members alike."""
    if not any([type(t.value) is Batched for t in _taped(args)]) and type(value) is not Batched:
        return _applied(function, _constants(function, args, value), at)
    level, now = _level(value), [_value(a) for a in args]
    if function is numeric.place and level is not None and type(args[0]) is Taped and is_basic(args[1]):
        index = args[1] if type(args[1]) is tuple else (args[1],)
        return _placed(at[args[0].place], (slice(None), *index), value.data)
    sizes = {x.data.ndim for x in now if type(x) is Batched}
    if function in OPERATORS and level is not None and len(sizes) == 1 and all([
            _level(x) == level or type(x) in (int, float, float64) or type(x) is np.ndarray and x.ndim < max(sizes) for x in now]):
        return _applied(function, _constants(function, tuple([np.ascontiguousarray(a.data) if type(a) is Batched else a for a in args]), value), at)
    apply = _applied(function, args, at, True)
    return apply if level is None else lambda values: apply(values).data


def _constants(function: Callable[..., Any], args: tuple, value: Any) -> tuple:
    """Arguments with numbers as arrays of no dimensions, with which NumPy does arithmetic on other arrays in half the time."""
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
    """The call of a function on what stands at places; `whole` says that batches are not given as their data."""
    if len(args) <= 2 and not whole:
        a, b = (*args, None)[:2]
        if len(args) == 1 and type(a) is Taped:
            i = at[a.place]
            return lambda values: function(values[i])
        if type(a) is Taped and type(b) is Taped:
            i, k = at[a.place], at[b.place]
            return lambda values: function(values[i], values[k])
        if type(a) is Taped and type(b) not in (list, tuple):
            i = at[a.place]
            return lambda values: function(values[i], b)
        if type(b) is Taped and type(a) not in (list, tuple):
            k = at[b.place]
            return lambda values: function(a, values[k])
    readers = [_filling(a, at, whole) for a in args]
    return lambda values: function(*[read(values) for read in readers])


def _filling(x: Any, at: Mapping[int, int], whole: bool) -> Step:
    """How an argument is made anew, from what is on the tape in it."""
    if type(x) is Taped:
        return _reader(at[x.place], x.value if whole else None)
    if type(x) in (list, tuple) and _taped(x):
        kind, parts = type(x), [_filling(e, at, whole) for e in x]
        return lambda values: kind([read(values) for read in parts])
    return lambda values: x


class TapingCarrier:
    """The numeric carrier on values that may be on a tape."""

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
