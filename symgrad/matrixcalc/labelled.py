"""Values of the carrier of matrix calculus: sums of generic products whose axes have indices instead of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import sympy

from symgrad.carriers.symbolic import exact_number
from symgrad.matrixcalc.functions import FUNCTIONS
from symgrad.matrixcalc.terms import (
    Applied,
    Delta,
    Dimension,
    Factor,
    Index,
    NoCompactForm,
    Sum,
    Term,
    as_one_factor,
    constant,
    plus,
    rename_indices,
    times,
)

Axes = tuple[Index | None, ...]


Operator = Callable[["Labelled", Any], "Labelled"]


def _operators(compute: Operator) -> tuple[Operator, Operator]:
    """An operator and its reflection, of two values."""
    return lambda a, b: compute(a, lift(b)), lambda a, b: compute(lift(b), a)


class Labelled:
    """A value of the carrier: a sum, and the index of each axis, None for an axis of one element."""

    __slots__ = ("axes", "total")
    __array_ufunc__ = None
    dtype = np.dtype(np.float64)

    def __init__(self, axes: Axes, total: Sum):
        self.axes, self.total = axes, total

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(1 if i is None else i.dimension.size for i in self.axes)

    @property
    def ndim(self) -> int:
        return len(self.axes)

    @property
    def indices(self) -> tuple[Index, ...]:
        """The indices of all axes with more than one element."""
        return tuple(i for i in self.axes if i is not None)

    __add__, __radd__ = _operators(lambda a, b: _added(a, b, 1))
    __sub__, __rsub__ = _operators(lambda a, b: _added(a, b, -1))
    __mul__, __rmul__ = _operators(lambda a, b: _multiplied(a, b))
    __truediv__, __rtruediv__ = _operators(lambda a, b: _multiplied(a, power_of(b, -1)))
    __pow__, __rpow__ = _operators(lambda a, b: general_power(a, b))

    def __neg__(self) -> Labelled:
        return self * -1

    def __getitem__(self, index: Any) -> Labelled:
        return get_item(self, index)


class Condition:
    """A comparison of a difference with 0: "eq" or "gt", possibly negated."""

    dtype = np.dtype(bool)

    def __init__(self, kind: str, difference: Labelled, negated: bool = False):
        self.kind, self.difference, self.negated = kind, difference, negated

    @property
    def shape(self) -> tuple[int, ...]:
        return self.difference.shape


def lift(value: Any) -> Labelled:
    """A number, an array of equal numbers or an identity matrix in the carrier. Raises NoCompactForm for another array."""
    if isinstance(value, Labelled):
        return value
    if isinstance(value, sympy.Basic):
        return number_of(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise NoCompactForm(f"matrix_expr: the graph has a value of dtype {array.dtype}; a compact form is of real numbers")
    axes = tuple(None if n == 1 else Index(Dimension(n)) for n in array.shape)
    if array.size and (array == array.flat[0]).all():
        return Labelled(axes, Sum(tuple(i for i in axes if i is not None), constant(exact_number(array.flat[0].item())).terms))
    rows = array.shape[:array.ndim // 2]
    if array.shape == rows * 2 and (array.reshape(prod(rows), -1) == np.eye(prod(rows))).all():
        return _identities(rows)
    raise NoCompactForm(f"matrix_expr: a constant of shape {list(array.shape)} has no name; make it a tensor with a symbol, as "
                        f"symgrad.tensor(b, symbol=\"b\")")


def align(values: Sequence[Labelled]) -> tuple[Axes, list[tuple[Index, ...]]]:
    """The common axes of values that are broadcast, and the indices of each value among them."""
    rank = max(v.ndim for v in values)
    axes: list[Index | None] = [None] * rank
    for v in values:
        for n, index in enumerate(v.axes, rank - v.ndim):
            if index is not None:
                found = axes[n]
                if found is None:
                    axes[n] = Index(index.dimension)
                else:
                    found.dimension.join(index.dimension)
    placed = [tuple(_index(axes[n]) for n, index in enumerate(v.axes, rank - v.ndim) if index is not None) for v in values]
    return tuple(axes), placed


def _index(i: Index | None) -> Index:
    assert i is not None
    return i


def indices_of(axes: Axes) -> tuple[Index, ...]:
    """The indices among axes."""
    return tuple(i for i in axes if i is not None)


def _added(a: Labelled, b: Labelled, sign: int) -> Labelled:
    axes, (first, second) = align([a, b])
    return Labelled(axes, plus(indices_of(axes), [(1, a.total, first), (sign, b.total, second)]))


def _multiplied(a: Labelled, b: Labelled) -> Labelled:
    axes, (first, second) = align([a, b])
    return Labelled(axes, times(indices_of(axes), [(a.total, first), (b.total, second)]))


def power_of(x: Labelled, power: Any) -> Labelled:
    """An elementwise power with a number."""
    power = sympy.sympify(power)
    if power == 0:
        return x * 0 + 1
    terms = x.total.terms
    if not terms:
        return x
    inside = one_plus_exp(x) if power == -1 else None
    if inside is not None:
        return apply_function("sigmoid", -inside)
    if len(terms) == 1 and not terms[0].factors:
        return Labelled(x.axes, Sum(x.total.out, (Term(terms[0].coefficient**power),)))
    if len(terms) == 1 and terms[0].coefficient == 1 and len(terms[0].factors) == 1 and set(terms[0].indices()) <= set(x.total.out) \
            and (power.is_Integer or terms[0].factors[0].power == 1):  # (x²)^½ is |x|
        head, indices, before = terms[0].factors[0]
        return Labelled(x.axes, Sum(x.total.out, (Term(sympy.S.One, (Factor(head, indices, before * power),)),)))
    return Labelled(x.axes, Sum(x.total.out, (Term(sympy.S.One, (as_one_factor(x.total, x.total.out, power),)),)))


def one_plus_exp(x: Labelled) -> Labelled | None:
    """z if x is 1 + exp(z), else None."""
    numbers = [t for t in x.total.terms if not t.factors]
    others = [t for t in x.total.terms if t.factors]
    if len(numbers) != 1 or len(others) != 1 or numbers[0].coefficient != 1 or others[0].coefficient != 1 or len(others[0].factors) != 1:
        return None
    head, indices, power = others[0].factors[0]
    if not isinstance(head, Applied) or head.function is not FUNCTIONS["exp"] or power != 1 or set(indices) != set(x.total.out):
        return None
    return Labelled(x.axes, Sum(x.total.out, head.argument.rename(indices)))


def apply_function(name: str, x: Any) -> Labelled:
    """The elementwise function with a name, applied to a value."""
    x = lift(x)
    if len(x.total.terms) == 1 and not x.total.terms[0].factors:
        value = FUNCTIONS[name].sympy(sympy, x.total.terms[0].coefficient)
        if value.is_Rational:
            return Labelled(x.axes, Sum(x.total.out, constant(value).terms))
    used = {i for t in x.total.terms for i in t.indices()}
    kept = tuple(i for i in x.total.out if i in used)
    inner = Sum(kept, x.total.terms)
    indices = tuple(Index(i.dimension) for i in kept)
    inner = Sum(indices, inner.rename(indices))
    return Labelled(x.axes, Sum(x.total.out, (Term(sympy.S.One, (Factor(Applied(FUNCTIONS[name], inner), kept),)),)))


def with_axes(x: Labelled, axes: Axes, order: Sequence[Index] | None = None) -> Labelled:
    """The same elements with axes of size one inserted or removed, or with permuted axes."""
    return Labelled(axes, Sum(tuple(indices_of(axes)) if order is None else tuple(order), x.total.terms))


def fresh_axes(axes: Axes) -> Axes:
    """Axes of the same lengths with new indices."""
    return tuple(None if i is None else Index(i.dimension) for i in axes)


def number_of(x: Any) -> Labelled:
    """A SymPy number as a value."""
    return Labelled((), constant(x))


def square(x: Labelled) -> Sum:
    """A square matrix as a sum with new indices; the lengths of its axes are merged."""
    i, k = x.indices
    i.dimension.join(k.dimension)
    indices = Index(i.dimension), Index(i.dimension)
    return Sum(indices, tuple(rename_indices(t, dict(zip(x.total.out, indices))) for t in x.total.terms))


def identity(n: int) -> Labelled:
    """The identity matrix."""
    return _identities((n,))


def _identities(rows: Sequence[int]) -> Labelled:
    """The identity of arrays of some shape, with the axes of the shape twice."""
    dimensions = [None if n == 1 else Dimension(n) for n in rows]
    first, second = (tuple(None if d is None else Index(d) for d in dimensions) for _ in range(2))
    deltas = tuple(Factor(Delta(i.dimension), (i, k)) for i, k in zip(indices_of(first), indices_of(second)))
    return Labelled(first + second, Sum(indices_of(first + second), (Term(sympy.S.One, deltas),)))


def general_power(a: Any, b: Any) -> Labelled:
    """a^b for a number b, otherwise exp(b log a)."""
    b = lift(b)
    if not b.total.terms:
        return lift(a) * 0 + 1
    if not b.axes and len(b.total.terms) == 1 and not b.total.terms[0].factors:
        return power_of(lift(a), b.total.terms[0].coefficient)
    return apply_function("exp", apply_function("log", a) * b)


def get_item(x: Labelled, index: Any) -> Labelled:
    """The value at an index that consists of full slices and new axes of size one."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(p is not None and p is not Ellipsis and not (isinstance(p, slice) and p == slice(None)) for p in parts):
        raise NoCompactForm("matrix_expr: indexing has no compact form; select elements by a product, as symgrad.dot(e, x) with a named vector e, or "
                            "use .expr, which has a formula for every element")
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    at = parts.index(Ellipsis)
    parts[at:at + 1] = [slice(None)] * (x.ndim - sum(p == slice(None) for p in parts if isinstance(p, slice)))
    axes = iter(x.axes)
    return with_axes(x, tuple(None if p is None else next(axes) for p in parts))
