"""Tapes: straight-line programs of scalars in ball arithmetic, traced once and evaluated at many points with any precision.

While a tape is traced, a `Ref` stands for a scalar: an operation on it becomes a step. Equal steps are one step. A truth value or an integer that the
traced code asks for becomes a guard: the program is valid at the points where it is the same. This module needs python-flint.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from symgrad.carriers import ball
from symgrad.carriers.ball import MAYBE, Maybe, acb, arb
from symgrad.carriers.digits import Undecided
from symgrad.system.restoring import collection_paused

ONE = arb(1)
_tracing = threading.local()


class Changed(Exception):
    """The error for a point at which a program is not valid, since the traced code takes another branch there."""


class Straddles(Undecided):
    """The error for a condition that the balls do not decide."""


class Guard:
    """A step that compares an integer or a truth value with the one of the traced point."""

    def __init__(self, kind: type, expected: Any):
        self.kind, self.expected = kind, expected

    def __call__(self, x: Any) -> None:
        if _whole(x) != self.expected if self.kind is int else _truth(x) is not self.expected:
            raise Changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and (self.kind, self.expected) == (other.kind, other.expected)

    def __hash__(self) -> int:
        return hash((self.kind, self.expected))


def _truth(x: Any) -> bool:
    """The truth value of a condition, or whether a number is not 0. Raises Undecided if the balls do not determine it."""
    condition = ball._as_condition(x)
    if condition is MAYBE:
        raise Straddles("two numbers are too close to each other to be compared")
    return bool(condition)


def _whole(x: Any) -> int:
    found = x if isinstance(x, int) else x.unique_fmpz()
    if found is None:
        raise Straddles("an integer is not known exactly")
    return int(found)


class Ref:
    """A scalar of a tape; `value` is its ball at the traced point."""

    __slots__ = ("place", "tape", "value")

    def __init__(self, tape: Tape, place: int, value: Any):
        self.tape, self.place, self.value = tape, place, value

    def __bool__(self) -> bool:
        return bool(self.tape.guard(self, bool, _truth(self.value)))

    def __int__(self) -> int:
        return int(self.tape.guard(self, int, _whole(self.value)))

    __index__ = __int__
    __hash__ = object.__hash__

    def unique_fmpz(self) -> int:
        return int(self)

    def conjugate(self) -> Any:
        return emit(_conjugate, self)

    @property
    def real(self) -> Any:
        return emit(_real_part, self)

    @property
    def imag(self) -> Any:
        return emit(_imaginary_part, self)

    def __abs__(self) -> Any:
        return emit(abs, self)

    def __neg__(self) -> Any:
        return emit(operator.neg, self)


def _operators() -> None:
    def add(symbol: str, function: Any, reflected: bool) -> None:
        setattr(Ref, f"__{symbol}__", lambda a, b: NotImplemented if isinstance(b, np.ndarray) else a.tape.emit(function, (a, b)))
        if reflected:
            setattr(Ref, f"__r{symbol}__", lambda a, b: a.tape.emit(function, (b, a)))

    for symbol, function in {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "pow": ball._power}.items():
        add(symbol, function, True)
    for symbol, function in {"eq": ball._equal, "ne": _differ, "lt": ball._less, "le": ball._at_most, "gt": _more, "ge": _at_least}.items():
        add(symbol, function, False)


def _conjugate(x: Any) -> Any:
    return x.conjugate() if isinstance(x, acb) else x


def _real_part(x: Any) -> Any:
    return x.real


def _imaginary_part(x: Any) -> Any:
    return x.imag


def _differ(a: Any, b: Any) -> Any:
    return ball._not(ball._equal(a, b))


def _more(a: Any, b: Any) -> Any:
    return ball._less(b, a)


def _at_least(a: Any, b: Any) -> Any:
    return ball._at_most(b, a)


_operators()


class Tape:
    """A tape that is being traced. `kinks` are conditions that hold where a derivative is a convention."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, tuple[int, ...]]] = []  # the function None is that of inputs and constants
        self.values: list[Any] = []
        self.known: dict[Any, Ref] = {}
        self.constants: dict[Any, int] = {}
        self.held: list[Any] = []
        self.guards: list[int] = []
        self.kinks: list[Ref] = []
        self.always_kinked = False

    def _add(self, function: Any, places: tuple[int, ...], value: Any) -> Ref:
        self.steps.append((function, places))
        self.values.append(value)
        return Ref(self, len(self.steps) - 1, value)

    def input(self, value: Any) -> Ref:
        return self._add(None, (), value)

    def place(self, x: Any) -> int:
        if type(x) is Ref:
            return x.place
        found = self.constants.get(id(x))
        if found is None:
            number = ball._number(x)
            key = _key(number)
            found = self.constants.get(key)
            if found is None:
                found = self.constants[key] = self._add(None, (), number).place
            self.constants[id(x)] = found
            self.held.append(x)  # so that no other object has its id
        return found

    def emit(self, function: Any, xs: Sequence[Any]) -> Any:
        if function is operator.mul:
            a, b = xs
            if b is ONE or a is ONE:
                return a if b is ONE else b
        places = tuple([x.place if type(x) is Ref else self.place(x) for x in xs])
        key = function, places
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._add(function, places, function(*[self.values[k] for k in places]))
        return found

    def guard(self, x: Ref, kind: type, expected: Any) -> Any:
        """An integer or a truth value of the traced point, for which the program is valid."""
        guard = self.emit(Guard(kind, expected), [x])
        if guard.place not in self.guards:
            self.guards.append(guard.place)
        return expected

    def note_kink(self, condition: Any) -> None:
        if type(condition) is Ref:
            self.kinks.append(condition)
        else:
            self.always_kinked |= condition is True

    def program(self, inputs: int, outputs: Sequence[Any]) -> Program:
        return Program(self, inputs, [self.place(arb(x) if isinstance(x, int) else x) for x in outputs])


def _key(x: Any) -> Any:
    if isinstance(x, (bool, Maybe)):
        return bool, x
    parts = (x.real, x.imag) if isinstance(x, acb) else (x,)
    if all(p.is_exact() and p.is_finite() for p in parts):
        return type(x), *[tuple(map(int, p.man_exp())) for p in parts]
    return str, type(x), str(x) if not x.is_finite() else x


@contextmanager
def tracing(bits: int) -> Iterator[Tape]:
    """A new tape, on which the operations on scalars are recorded in a `with` block, with the values at the point to that many bits."""
    before = getattr(_tracing, "tape", None)
    tape = _tracing.tape = Tape()
    try:
        with ball.precision(bits), collection_paused():  # of thousands of small objects that all stay
            yield tape
    finally:
        _tracing.tape = before


def emit(function: Any, *xs: Any) -> Any:
    """A step of the current tape; a constant if all operands are constants and the result is exact."""
    for x in xs:
        if type(x) is Ref:
            return x.tape.emit(function, xs)
    value = function(*xs)
    if isinstance(value, bool) or isinstance(value, (arb, acb)) and _is_exact(value):
        return value
    return _tracing.tape.emit(function, xs)


def _is_exact(x: Any) -> bool:
    return all(p.is_exact() and p.is_finite() for p in ((x.real, x.imag) if isinstance(x, acb) else (x,)))


class Program:
    """The steps for some outputs of a tape."""

    value: Program  # that of the first output, if the numbers are compared with its differences
    rules: Program  # that of the outputs by rules alone

    def __init__(self, tape: Tape, inputs: int, outputs: Sequence[int]):
        self.outputs, self.inputs, self.kinks = outputs, inputs, [x.place for x in tape.kinks]
        self.always_kinked = tape.always_kinked
        needed = {*outputs, *tape.guards, *self.kinks}
        for place in range(len(tape.steps) - 1, -1, -1):
            if place in needed:
                needed.update(tape.steps[place][1])
        self.steps: list[tuple[Any, int, int, int, tuple[int, ...] | None]] = []
        self.initial: list[Any] = [None] * len(tape.steps)
        for place, (function, places) in enumerate(tape.steps):
            if place < inputs or place not in needed:
                continue
            if function is None:
                self.initial[place] = tape.values[place]
            elif len(places) in (1, 2):
                self.steps.append((function, place, places[0], places[-1] if len(places) == 2 else -1, None))
            else:
                self.steps.append((function, place, 0, 0, places))

    def evaluate(self, values: Sequence[Any], bits: int) -> tuple[list[Any], bool]:
        """The outputs at values of the inputs, and whether the point is at a kink.

        Raises Changed where the program is not valid, and Undecided if a condition is not decided with that many bits.
        """
        v = self.initial.copy()
        v[:self.inputs] = values
        with ball.precision(bits):
            for function, place, i, j, many in self.steps:
                if many is not None:
                    v[place] = function(*[v[k] for k in many])
                elif j >= 0:
                    v[place] = function(v[i], v[j])
                else:
                    v[place] = function(v[i])
        kinks = [v[place] for place in self.kinks]
        if not any(x is True for x in kinks) and any(x is MAYBE for x in kinks):
            raise Straddles("a number is too close to a kink")
        return [v[place] for place in self.outputs], self.always_kinked or any(x is True for x in kinks)


def total(*xs: Any) -> Any:
    """The sum of balls."""
    return sum(xs[1:], xs[0]) if xs else arb(0)


def item(i: int) -> Callable[[Any], Any]:
    """The function that takes an element of a list; the same object for the same position."""
    if i not in _items:
        _items[i] = operator.itemgetter(i)
    return _items[i]


_items: dict[int, Any] = {}
