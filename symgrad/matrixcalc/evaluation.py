"""Evaluation of a normal form and of matrix notation: in floats, with many digits, or in SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.values import value
from symgrad.carriers import numeric, precise, symbolic
from symgrad.matrixcalc.functions import ElementwiseFunction
from symgrad.matrixcalc.printing import MatrixForm
from symgrad.matrixcalc.terms import Applied, AxisLength, Delta, Dimension, Factor, Head, Index, Pairing, Sum, Symbol, Term

Sizes = Callable[[Dimension], int]


class Field:
    """A kind of numbers: a carrier `xp`, its class of arrays, and the conversion of SymPy numbers; `exact` is false for floats only."""

    def __init__(self, xp: Any, cells: Any, number: Callable[[Any], Any]):
        self.xp, self.cells, self.number, self.exact = xp, cells, number, cells is not None

    def full(self, number: Any, shape: tuple[int, ...]) -> Any:
        out = np.empty(shape, object if self.exact else float)
        out[...] = self.number(sympy.sympify(number))
        return self.lift(out)

    def lift(self, x: Any) -> Any:
        """An array of the carrier."""
        return np.asarray(x).view(self.cells) if self.exact else x

    def eye(self, n: int) -> Any:
        out = self.full(0, (n, n))
        out[np.arange(n), np.arange(n)] = self.number(sympy.S.One)
        return out

    def apply(self, function: ElementwiseFunction, x: Any) -> Any:
        """An elementwise function of an array, without overflow."""
        if function.name == "softplus" and not self.exact:
            return np.logaddexp(0, x)
        with np.errstate(over="ignore"):
            return function.sympy(self.xp, x)

    def power(self, x: Any, power: Any) -> Any:
        return x if power == 1 else x ** (int(power) if power.is_Integer and self.exact else self.number(power))


FLOATS = Field(numeric, None, float)
PRECISE = Field(precise, precise.Digits, lambda number: value(number)([]))
SYMPY = Field(symbolic, symbolic.ExactExpressions, lambda number: number)

MATRIX_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "inverse": lambda xp, x: xp.matrix_inverse(x), "cholesky": lambda xp, x: xp.cholesky_factor(x), "det": lambda xp, x: xp.determinant(x),
    "logdet": lambda xp, x: xp.log(xp.determinant(x)), "softmax": lambda xp, x: xp.softmax(x, tuple(range(x.ndim)))}


def of_sum(total: Sum, values: Mapping[str, Any], field: Field, sizes: Sizes, memo: dict[Head, Any] | None = None) -> Any:
    """The elements of a sum by its definition: products over all indices, added up."""
    memo = {} if memo is None else memo
    out = field.full(0, tuple(sizes(i.dimension) for i in total.out))
    for term in total.terms:
        arrays, free = _operands(term, total.out, values, field, sizes, memo)
        found, kept = _contracted([(field.full(term.coefficient, ()), []), *arrays], free, field)
        found = found[tuple(slice(None) if i in kept else None for i in free)]
        if len(free) > len(total.out):  # axes of pairs that were split
            found = np.broadcast_to(found, [sizes(i.dimension) for i in free]).reshape(out.shape)
        out = out + field.lift(found)
    return np.asarray(out)


def _contracted(operands: list[tuple[Any, list[Index]]], out: Sequence[Index], field: Field) -> tuple[Any, list[Index]]:
    """The sum of the products over all indices outside the output, of two operands at a time; with the indices that it has."""
    array, at = operands.pop(0)
    while operands:
        other, indices = operands.pop(next((n for n, (_, some) in enumerate(operands) if not set(some).isdisjoint(at)), 0))
        left = set(out).union(*[some for _, some in operands])
        numbers = {i: n for n, i in enumerate(dict.fromkeys([*at, *indices]))}
        kept = [i for i in (out if not operands else numbers) if i in numbers and i in left]
        rows = [[numbers[i] for i in some] for some in (at, indices, kept)]
        array, at = np.asarray(np.einsum(np.asarray(array), rows[0], np.asarray(other), rows[1], rows[2], optimize=not field.exact)), kept
    return array, at


def _operands(term: Term, out: Sequence[Index], *given: Any) -> tuple[list[tuple[Any, list[Index]]], list[Index]]:
    """The arrays of a term at their indices, and the indices of the output; an axis of pairs is split into two instead of a sum over a pairing."""
    _, field, sizes, _ = given
    split: dict[Index, tuple[Index, ...]] = {}
    for f in term.factors:
        more = {f.indices[0]: f.indices[1:], **split} if isinstance(f.head, Pairing) else split
        split = more if len(set(free := _separated(out, more))) == len(free) else split
    found = []
    for f in term.factors:
        pair, parts = split.get(f.indices[0], ()) if isinstance(f.head, Pairing) else (), f.indices[1:]
        lengths = [sizes(i.dimension) for i in parts]
        if pair and [sizes(i.dimension) for i in pair] == lengths:
            found += [(field.full(1, (n,)), [i]) if i is k else (field.eye(n), [i, k]) for n, i, k in zip(lengths, pair, parts)]
        else:
            found.append((field.power(_head_value(f, *given), f.power), list(f.indices)))
    for n, (array, indices) in enumerate(found):
        while at := next((k + 1 for k, i in enumerate(indices) if i in split), 0):
            pair = split[indices[at - 1]]
            array = array.reshape(*array.shape[:at - 1], *(sizes(i.dimension) for i in pair), *array.shape[at:])
            indices = [*indices[:at - 1], *pair, *indices[at:]]
        found[n] = array, indices
    return found, _separated(out, split)


def _separated(indices: Sequence[Index], split: Mapping[Index, tuple[Index, ...]]) -> list[Index]:
    return [k for i in indices for k in (_separated(split[i], split) if i in split else [i])]


def _head_value(f: Factor, values: Mapping[str, Any], field: Field, sizes: Sizes, memo: dict[Head, Any]) -> Any:
    head = f.head
    if head in memo:
        return memo[head]
    out: Any
    if isinstance(head, Symbol):
        out = field.lift(values[head.name])
    elif isinstance(head, Delta):
        out = field.eye(sizes(head.dimensions[0].root()))
    elif isinstance(head, Pairing):
        lengths = [sizes(d.root()) for d in head.dimensions[1:]]
        out = field.eye(lengths[0] * lengths[1]).reshape(-1, *lengths)
    elif isinstance(head, AxisLength):
        out = field.full(sizes(head.dimension.root()), ())
    else:
        inner = field.lift(of_sum(head.argument, values, field, sizes, memo))
        if isinstance(head, Applied):
            out = inner if head.function is None else field.apply(head.function, inner)
        else:
            out = MATRIX_FUNCTIONS[head.kind](field.xp, inner)
    memo[head] = out
    return out


def of_form(form: MatrixForm, values: Mapping[str, Any], field: Field, sizes: Sizes) -> Any:
    """The value of matrix notation as a matrix: a column for a vector, one element for a scalar."""
    def evaluated(f: MatrixForm) -> Any:
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
    if kind == "unvec":
        rows, columns = map(sizes, form.value)
        return first.reshape(columns, rows).T
    if kind in MATRIX_FUNCTIONS:
        found = MATRIX_FUNCTIONS[kind](field.xp, first)
        return found if found.ndim else found.reshape(1, 1)
    simple = {"transpose": lambda: first.T, "apply": lambda: field.apply(form.value, first),
              "diag": lambda: field.eye(len(first)) * first, "diagonal": lambda: np.diagonal(first).reshape(-1, 1),
              "trace": lambda: np.asarray(np.add.reduce(np.diagonal(first))).reshape(1, 1), "sum": lambda: np.asarray(first.sum()).reshape(1, 1),
              "square": lambda: np.asarray((first * first).sum()).reshape(1, 1), "vec": lambda: first.T.reshape(-1, 1)}
    return simple[kind]()


def _commutation(field: Field, m: int, n: int) -> Any:
    """K with K vec(X) = vec(Xᵀ) for X of m by n."""
    out = field.full(0, (m * n, m * n))
    for i in range(m):
        for k in range(n):
            out[i * n + k, k * m + i] = field.number(sympy.S.One)
    return out
