"""A tape: what a reading of rules computed, as a list of steps that can be run again on other numbers.

A `Taped` value stands for a number that may differ the next time; whatever a carrier's function makes of one is a step. What is computed from other
things alone happens once. A tape is right for every graph of one form, for no rule looks at the numbers themselves.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.carriers import PROTOCOL, numeric

__all__ = ["Tape", "Taped", "TapingCarrier"]

SHAPED = frozenset({"zeros_like", "ones_like", "eye_like"})  # which read of a value its shape and dtype alone
Step = Callable[[list[Any]], Any]


class Tape:
    """The inputs of a reading and its steps; `run` takes the steps again."""

    def __init__(self) -> None:
        self.count = 0
        self.steps: list[Step] = []

    def enter(self, value: Any) -> Taped:
        """A number that is an input of the tape."""
        if self.steps:
            raise RuntimeError("the inputs of a tape come before its steps")
        self.count += 1
        return Taped(self, self.count - 1, value)

    def call(self, function: Callable[..., Any], args: tuple) -> Taped:
        """What a function makes of values of which one at least is on the tape."""
        value = function(*map(_value, args))
        self.steps.append(_step(function, args))
        return Taped(self, self.count + len(self.steps) - 1, value)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """The outputs, on the tape or not, for other inputs."""
        values = list(inputs)
        for step in self.steps:
            values.append(step(values))
        return [values[y.place] if type(y) is Taped else y for y in outputs]


class Taped:
    """A value with its place on a tape."""

    __slots__ = ("tape", "place", "value")
    __array_ufunc__ = None  # so that a NumPy array leaves arithmetic to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tape: Tape, place: int, value: Any):
        self.tape, self.place, self.value = tape, place, value

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.value.size

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.value.dtype

    def expand(self, shape: Any) -> Taped:
        """The value stretched to a shape."""
        return self.tape.call(numeric.broadcast_to, (self, tuple(shape)))

    def __getitem__(self, index: Any) -> Taped:
        return self.tape.call(operator.getitem, (self, index))

    def __neg__(self) -> Taped:
        return self.tape.call(operator.neg, (self,))


def _operator(function: Callable[[Any, Any], Any]) -> None:
    name = function.__name__.strip("_")
    setattr(Taped, f"__{name}__", lambda self, other: NotImplemented if hasattr(other, "tangent") else self.tape.call(function, (self, other)))
    setattr(Taped, f"__r{name}__", lambda self, other: NotImplemented if hasattr(other, "tangent") else self.tape.call(function, (other, self)))


for _function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
    _operator(_function)


def _value(x: Any) -> Any:
    if type(x) is Taped:
        return x.value
    return type(x)(map(_value, x)) if type(x) in (list, tuple) and any(type(e) is Taped for e in x) else x


def _step(function: Callable[..., Any], args: tuple) -> Step:
    """The call of a function, with the places of what is on the tape."""
    if len(args) == 2:
        a, b = args
        if type(a) is Taped and type(b) is Taped:
            i, k = a.place, b.place
            return lambda values: function(values[i], values[k])
        if type(a) is Taped and type(b) not in (list, tuple):
            i = a.place
            return lambda values: function(values[i], b)
        if type(b) is Taped and type(a) not in (list, tuple):
            k = b.place
            return lambda values: function(a, values[k])
    if len(args) == 1 and type(args[0]) is Taped:
        i = args[0].place
        return lambda values: function(values[i])
    return lambda values: function(*[_filled(a, values) for a in args])


def _filled(x: Any, values: list[Any]) -> Any:
    if type(x) is Taped:
        return values[x.place]
    return type(x)([_filled(e, values) for e in x]) if type(x) in (list, tuple) and any(type(e) is Taped for e in x) else x


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
