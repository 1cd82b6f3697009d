"""Where a partial derivative is zero on a region, and whether it is constant on regions; both are read from its declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Regions", "regions_of"]


class Regions(NamedTuple):
    """What a declaration says about the regions of an elementwise op.

    - `selects`: some partial derivative is zero on a region, where the op does not depend on the argument.
    - `piecewise_linear`: all partial derivatives are constant on regions.
    """

    selects: bool
    piecewise_linear: bool


class _Truth(NamedTuple):
    """A condition: whether it holds on a region, and whether it fails on one."""

    holds: bool = True
    fails: bool = True


class _Value:
    """A value of a partial derivative: whether it is 0 everywhere, whether it is 0 on a region, and whether it is constant on regions."""

    def __init__(self, is_zero: bool, vanishes: bool, is_constant: bool):
        self.is_zero, self.vanishes, self.is_constant = is_zero, is_zero or vanishes, is_constant

    def __add__(self, other: Any) -> _Value:
        other = _value(other)
        return _Value(self.is_zero and other.is_zero, self.vanishes and other.vanishes, self.is_constant and other.is_constant)

    __radd__ = __sub__ = __rsub__ = __add__

    def __mul__(self, other: Any) -> _Value:
        other = _value(other)
        return _Value(self.is_zero or other.is_zero, self.vanishes or other.vanishes, self.is_constant and other.is_constant)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> _Value:
        return _Value(self.is_zero, self.vanishes, self.is_constant and _value(other).is_constant)

    __pow__ = __truediv__

    def __rtruediv__(self, other: Any) -> _Value:
        return _value(other) / self

    def __rpow__(self, other: Any) -> _Value:
        return _Value(False, False, self.is_constant)

    def __neg__(self) -> _Value:
        return self

    def __bool__(self) -> bool:
        raise TypeError("a value of a declaration has no truth value")


def _value(x: Any) -> _Value:
    """A value; numbers are constant."""
    return x if isinstance(x, _Value) else _Value(type(x) in (int, float) and x == 0, False, True)


def _where(condition: Any, a: Any, b: Any) -> _Value:
    a, b = _value(a), _value(b)
    holds, fails = condition if isinstance(condition, _Truth) else _Truth()
    is_zero, vanishes = (a.is_zero or not holds) and (b.is_zero or not fails), holds and a.vanishes or fails and b.vanishes
    return _Value(is_zero, vanishes, a.is_constant and b.is_constant)


def _extreme(a: Any, b: Any) -> _Value:
    a, b = _value(a), _value(b)
    return _Value(a.is_zero and b.is_zero, a.vanishes or b.vanishes, a.is_constant and b.is_constant)


REGION, POINT, STEP = _Truth(), _Truth(holds=False), _Value(False, True, True)
WORDS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "isnan"), lambda *_: REGION),
    "eq": lambda *_: POINT,
    "ne": lambda *_: _Truth(fails=False),
    "logical_not": lambda a: _Truth(a.fails, a.holds),
    "logical_and": lambda a, b: _Truth(a.holds and b.holds, a.fails or b.fails),
    "logical_or": lambda a, b: _Truth(a.holds or b.holds, a.fails and b.fails),
    "indicator": lambda condition, like: _where(condition, 1, 0),
    "where": _where,
    **dict.fromkeys(("maximum", "minimum"), _extreme),
    "relu": lambda x: _extreme(x, 0),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), lambda x: STEP),
    "sign": lambda x: _Value(False, _value(x).vanishes, True),
    **dict.fromkeys(("abs", "conj", "copy", "square"), lambda x: _value(x)),
    "zeros_like": lambda *_: _value(0),
    "ones_like": lambda *_: _value(1),
    **dict.fromkeys(("add", "sub"), lambda a, b: _value(a) + b),
    "mul": lambda a, b: _value(a) * b,
    "div": lambda a, b: _value(a) / b,
    "neg": lambda x: x,
}


class _Declared:
    """The carrier of values of which only the regions are known."""

    def __getattr__(self, word: str) -> Callable[..., Any]:
        return WORDS.get(word, _other)


def _other(*args: Any) -> _Value:
    """The value of any other function, which is constant where its arguments are."""
    return _Value(False, False, all([_value(x).is_constant for x in args]))


def regions_of(partials: Sequence[Any], parameters: bool, examples: Sequence[tuple]) -> Regions:
    """The regions of the partial derivatives of an elementwise op; a rule that asks for values of its arguments says nothing about them."""
    found = []
    for partial in partials:
        if not callable(partial):
            found.append(_value(0 if partial is None else partial))
            found[-1].vanishes = False  # an argument that is not differentiated
            continue
        for example in examples if parameters else ((),):
            try:
                found.append(_value(partial(_Declared(), *[_Value(False, False, False)] * (1 + len(partials)), *example)))
            except (AttributeError, TypeError, ValueError, IndexError):
                found.append(_Value(False, False, False))
    return Regions(any([x.vanishes for x in found]), all([x.is_constant for x in found]))
