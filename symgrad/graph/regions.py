"""Where a partial derivative is zero on a region, and whether it is constant on regions; both are read from its declaration.

A rule is called with a carrier whose values are what is known for any argument: a derivative `xp.indicator(xp.gt(x, 0), y)` is 0 or 1, each on a
region, and with `xp.eq` in place of `xp.gt` it is 1 at a point only.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MANY, NONE, ZERO = 8, frozenset[float](), frozenset((0.0,))


class Regions(NamedTuple):
    """What a declaration says about the regions of an elementwise op.

    - `selects`: some partial derivative is zero on a region, where the op does not depend on the argument.
    - `piecewise_linear`: all partial derivatives are constant on regions.
    - `jumps`: some partial derivative is zero on a region and not on another.
    """

    selects: bool
    piecewise_linear: bool
    jumps: bool


class _Truth(NamedTuple):
    """A condition: whether it holds on a region, and whether it fails on one."""

    holds: bool = True
    fails: bool = True


class _Value:
    """A value on regions: the constants that it may be there, None for any constants, and whether it may vary."""

    def __init__(self, constants: frozenset[float] | None, varies: bool = False):
        self.constants, self.varies = constants if constants is None or len(constants) <= MANY else None, varies

    @property
    def vanishes(self) -> bool:
        """Whether it may be 0 on a region."""
        return self.constants is None or 0 in self.constants

    def __add__(self, other: Any) -> _Value:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> _Value:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> _Value:
        return _value(other) - self

    def __mul__(self, other: Any) -> _Value:
        other = _value(other)
        out = self._with(other, operator.mul)
        return _Value(out.constants | ZERO, out.varies) if out.constants is not None and (self.vanishes or other.vanishes) else out

    def __truediv__(self, other: Any) -> _Value:
        return self * _value(other)._of(lambda x: 1 / x if x else math.inf)

    def __rtruediv__(self, other: Any) -> _Value:
        return _value(other) / self

    def __pow__(self, other: Any) -> _Value:
        return _Value(None if not self.varies else ZERO if self.vanishes else NONE, self.varies or _value(other).varies)

    def __rpow__(self, other: Any) -> _Value:
        return _Value(NONE, self.varies)

    def __neg__(self) -> _Value:
        return self._of(operator.neg)

    __radd__, __rmul__ = __add__, __mul__

    def __bool__(self) -> bool:
        raise TypeError("a value of a declaration has no truth value")

    def _of(self, function: Callable[[float], float]) -> _Value:
        return _Value(self.constants and frozenset(map(function, self.constants)), self.varies)

    def _with(self, other: Any, function: Callable[[float, float], float]) -> _Value:
        other = _value(other)
        if self.constants is None or other.constants is None:
            return _Value(None, self.varies or other.varies)
        return _Value(frozenset(itertools.starmap(function, itertools.product(self.constants, other.constants))), self.varies or other.varies)


def _value(x: Any) -> _Value:
    """A value; a number is a constant."""
    return x if isinstance(x, _Value) else _Value(frozenset((float(x),)) if type(x) in (int, float, bool) else NONE)


def _either(a: Any, b: Any) -> _Value:
    a, b = _value(a), _value(b)
    return _Value(None if a.constants is None or b.constants is None else a.constants | b.constants, a.varies or b.varies)


def _where(condition: Any, a: Any, b: Any) -> _Value:
    holds, fails = _truth(condition)
    return _either(a, b) if holds and fails else _value(a if holds else b)


def _truth(x: Any) -> _Truth:
    """A condition; a number may be 0 or not, each on a region."""
    return x if isinstance(x, _Truth) else REGION


REGION, POINT = _Truth(), _Truth(holds=False)
WORDS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "isnan"), lambda *_: REGION),
    **dict.fromkeys(("eq", "isinf"), lambda *_: POINT),
    **dict.fromkeys(("ne", "isfinite"), lambda *_: _Truth(fails=False)),
    "logical_not": lambda a: _Truth(_truth(a).fails, _truth(a).holds),
    "logical_and": lambda a, b: _Truth(_truth(a).holds and _truth(b).holds, _truth(a).fails or _truth(b).fails),
    "logical_or": lambda a, b: _Truth(_truth(a).holds or _truth(b).holds, _truth(a).fails and _truth(b).fails),
    "indicator": lambda condition, like: _where(condition, 1, 0),
    "where": _where,
    **dict.fromkeys(("maximum", "minimum"), _either),
    "relu": lambda x: _either(x, 0),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), lambda x: _Value(None)),
    "sign": lambda x: _Value(frozenset((-1.0, 1.0)) | (ZERO if _value(x).vanishes else NONE)),
    "abs": lambda x: _value(x)._of(abs),
    **dict.fromkeys(("conj", "copy"), lambda x: _value(x)),
    "square": lambda x: _value(x) * x,
    "zeros_like": lambda *_: _value(0),
    "ones_like": lambda *_: _value(1),
    "add": lambda a, b: _value(a) + b,
    "sub": lambda a, b: _value(a) - b,
    "mul": lambda a, b: _value(a) * b,
    "div": lambda a, b: _value(a) / b,
    "neg": lambda x: -_value(x),
}


class _Declared:
    """The carrier of values of which only the regions are known."""

    def __getattr__(self, word: str) -> Callable[..., Any]:
        return WORDS.get(word, _other)


def _other(*args: Any) -> _Value:
    """The value of any other function, which is constant where its arguments are."""
    return _Value(NONE, any([_value(x).varies for x in args]))


def _found(rule: Callable[..., Any], count: int, example: tuple) -> _Value:
    """The value of a rule on regions; one that asks for values of its arguments says nothing about them."""
    try:
        found = rule(_Declared(), *[_Value(NONE, True)] * count, *example)
    except (ArithmeticError, AttributeError, TypeError, ValueError, LookupError):
        return _Value(NONE, True)
    return _where(found, 1, 0) if isinstance(found, _Truth) else _value(found)


def regions_of(partials: Sequence[Any], parameters: bool, examples: Sequence[tuple]) -> Regions:
    """The regions of the partial derivatives of an elementwise op."""
    found = [_found(partial, 1 + len(partials), example)
             for partial in partials for example in (examples if parameters else ((),)) if callable(partial)]
    return Regions(any([x.vanishes for x in found]), not any([x.varies for x in found]),
                   any([x.vanishes and (x.varies or x.constants != ZERO) for x in found]))


def values_on_regions(forward: Callable[..., Any], count: int) -> frozenset[float] | None:
    """The values that an op of `count` arguments has on regions, None for any; others, such as 0 of sign, it has at single points only."""
    found = _found(forward, count, ())
    return None if found.varies else found.constants
