"""Evaluation of a normal form and of matrix notation: in floats, with many digits, or in SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.values import value
from symgrad.carriers import numeric, precise, symbolic
from symgrad.matrixcalc.form import Form
from symgrad.matrixcalc.functions import Elementwise
from symgrad.matrixcalc.linalg import determinant, inverse
from symgrad.matrixcalc.terms import Applied, Delta, Determinant, Dimension, Factor, Index, Inverse, Size, Softmax, Sum, Symbol

__all__ = ["FLOATS", "PRECISE", "SYMPY", "Field", "of_form", "of_sum"]

Sizes = Callable[[Dimension], int]


class Field:
    """A kind of numbers: a carrier `xp`, its class of arrays, and the conversion of SymPy numbers; `exact` is false for floats only."""

    def __init__(self, xp: Any, cells: Any, number: Callable[[Any], Any]):
        self.xp, self.cells, self.number, self.exact = xp, cells, number, cells is not None

    def full(self, number: Any, shape: tuple[int, ...]) -> Any:
        """An array filled with a number."""
        out = np.empty(shape, object if self.exact else float)
        out[...] = self.number(sympy.sympify(number))
        return self.lift(out)

    def lift(self, x: Any) -> Any:
        """An array of the carrier."""
        return np.asarray(x).view(self.cells) if self.exact else x

    def eye(self, n: int) -> Any:
        """The identity matrix."""
        out = self.full(0, (n, n))
        out[np.arange(n), np.arange(n)] = self.number(sympy.S.One)
        return out

    def apply(self, function: Elementwise, x: Any) -> Any:
        """An elementwise function of an array, without overflow."""
        if function.name == "softplus" and not self.exact:
            return np.logaddexp(0, x)
        with np.errstate(over="ignore"):
            return function.sympy(self.xp, x)

    def power(self, x: Any, power: Any) -> Any:
        """An elementwise power."""
        return x if power == 1 else x ** (int(power) if power.is_Integer and self.exact else self.number(power))


FLOATS = Field(numeric, None, float)
PRECISE = Field(precise, precise.Digits, lambda number: value(number)([]))
SYMPY = Field(symbolic, symbolic.ExactExpressions, lambda number: number)


def of_sum(total: Sum, values: Mapping[str, Any], field: Field, sizes: Sizes, memo: dict[int, Any] | None = None) -> Any:
    """The elements of a sum by its definition: products over all indices, added up."""
    memo = {} if memo is None else memo
    if not field.exact:
        return _floats(total, values, field, sizes, memo)
    out = field.full(0, tuple(sizes(i.dimension) for i in total.out))
    for term in total.terms:
        left = list(term.factors)
        letters: list[Index] = []
        product = field.full(term.coefficient, ())
        while left:
            f = next((g for g in left if any(i in letters for i in g.indices)), left[0])
            left.remove(f)
            array, indices = _at_distinct_indices(field.power(_head_value(f, values, field, sizes, memo), f.power), f.indices)
            joined = letters + [i for i in indices if i not in letters]
            product = product[(...,) + (None,) * (len(joined) - len(letters))] * _align(array, indices, joined)
            summed = [n for n, i in enumerate(joined) if i not in total.out and not any(i in g.indices for g in left)]
            product = np.asarray(np.add.reduce(product, axis=tuple(summed)) if summed else product)
            letters = [i for n, i in enumerate(joined) if n not in summed]
        out = out + _align(product, letters, total.out)
    return np.asarray(out)


def _at_distinct_indices(array: Any, indices: Sequence[Index]) -> tuple[Any, list[Index]]:
    """An array at distinct indices: its diagonal for a repeated index."""
    found = list(indices)
    for n in range(len(found) - 1, 0, -1):
        first = found.index(found[n])
        if first != n:
            array = np.moveaxis(np.diagonal(array, axis1=first, axis2=n), -1, first)
            del found[n]
    return array, found


def _align(array: Any, indices: Sequence[Index], letters: Sequence[Index]) -> Any:
    """An array with its axes in the order of the letters, and an axis of size one for each missing letter."""
    order = sorted(range(len(indices)), key=lambda n: letters.index(indices[n]))
    return array.transpose(order)[tuple(slice(None) if i in indices else None for i in letters)]


def _floats(total: Sum, values: Mapping[str, Any], field: Field, sizes: Sizes, memo: dict[int, Any]) -> Any:
    """The elements of a sum in floats, by matrix products."""
    out = np.zeros(tuple(sizes(i.dimension) for i in total.out))
    for term in total.terms:
        numbers: dict[Index, int] = {}
        operands: list[Any] = [np.asarray(float(term.coefficient)), []]
        for f in term.factors:
            operands += [field.power(_head_value(f, values, field, sizes, memo), f.power), [numbers.setdefault(i, len(numbers)) for i in f.indices]]
        kept = [i for i in total.out if i in numbers]
        found = np.einsum(*operands, [numbers[i] for i in kept], optimize=len(term.factors) > 1)
        out += found[tuple(slice(None) if i in kept else None for i in total.out)]
    return out


def _head_value(f: Factor, values: Mapping[str, Any], field: Field, sizes: Sizes, memo: dict[int, Any]) -> Any:
    head = f.head
    if id(head) in memo:
        return memo[id(head)]
    out: Any
    if isinstance(head, Symbol):
        out = field.lift(values[head.name])
    elif isinstance(head, Delta):
        out = field.eye(sizes(head.dimensions[0].root()))
    elif isinstance(head, Size):
        out = field.full(sizes(head.dimension.root()), ())
    else:
        inner = field.lift(of_sum(head.argument, values, field, sizes, memo))
        if isinstance(head, Applied):
            out = inner if head.function is None else field.apply(head.function, inner)
        elif isinstance(head, Softmax):
            out = field.xp.softmax(inner, tuple(range(inner.ndim)))
        elif isinstance(head, Inverse):
            out = inverse(field.xp, inner)
        else:
            out = determinant(field.xp, inner) if isinstance(head, Determinant) else field.xp.log(determinant(field.xp, inner))
    memo[id(head)] = out
    return out


def of_form(form: Form, values: Mapping[str, Any], field: Field, sizes: Sizes) -> Any:
    """The value of matrix notation as a matrix: a column for a vector, one element for a scalar."""
    def evaluated(f: Form) -> Any:
        return field.lift(of_form(f, values, field, sizes))

    kind, args = form.kind, form.args
    if kind == "symbol":
        x = field.lift(values[form.value])
        return x.reshape(-1, 1) if x.ndim == 1 else x.reshape(1, 1) if not x.ndim else x
    if kind == "number":
        return field.full(form.value, (1, 1))
    if kind == "zero":
        lengths = tuple(map(sizes, form.value))
        rows, columns = (lengths[0] * lengths[1], lengths[2] * lengths[3]) if len(lengths) == 4 else (*lengths, 1, 1)[:2]
        return field.full(0, (rows, columns))
    if kind == "size":
        return field.full(sizes(form.value), (1, 1))
    if kind == "ones":
        return field.full(1, (sizes(form.value), 1))
    if kind == "eye":
        return field.eye(sizes(form.value))
    if kind == "commutation":
        return _commutation(field, *map(sizes, form.value))
    if kind in ("hadamard", "scale"):
        number, powers = form.value if kind == "scale" else (1, form.value)
        out = field.full(number, (1, 1))
        for f, p in zip(args, powers):
            out = out * field.power(evaluated(f), p)
        return out * evaluated(args[-1]) if len(args) > len(powers) else out
    if kind == "add":
        out = field.full(0, (1, 1))
        for f, number in zip(args, form.value):
            out = out + field.full(number, (1, 1)) * evaluated(f)
        return out
    first = evaluated(args[0])
    if kind == "product":
        for f in args[1:]:
            first = first.dot(evaluated(f))
        return first
    if kind == "kron":
        second = evaluated(args[1])
        (a, b), (c, d) = first.shape, second.shape
        return (first[:, None, :, None] * second[None, :, None, :]).reshape(a * c, b * d)
    simple = {"transpose": lambda: first.T, "inverse": lambda: inverse(field.xp, first), "apply": lambda: field.apply(form.value, first),
              "diag": lambda: field.eye(len(first)) * first, "diagonal": lambda: np.diagonal(first).reshape(-1, 1),
              "trace": lambda: np.asarray(np.add.reduce(np.diagonal(first))).reshape(1, 1), "sum": lambda: np.asarray(first.sum()).reshape(1, 1),
              "square": lambda: np.asarray((first * first).sum()).reshape(1, 1), "det": lambda: determinant(field.xp, first).reshape(1, 1),
              "logdet": lambda: field.xp.log(determinant(field.xp, first)).reshape(1, 1), "softmax": lambda: field.xp.softmax(first, (0, 1)),
              "vec": lambda: first.T.reshape(-1, 1)}
    return simple[kind]()


def _commutation(field: Field, m: int, n: int) -> Any:
    """K with K vec(X) = vec(Xᵀ) for X of m by n."""
    out = field.full(0, (m * n, m * n))
    for i in range(m):
        for k in range(n):
            out[i * n + k, k * m + i] = field.number(sympy.S.One)
    return out
