"""Conversion to matrix notation: a term of the normal form, a network of factors joined by indices, becomes a tree of matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symgrad.matrixcalc.kronecker import kronecker_form, resolve_pairings
from symgrad.matrixcalc.printing import MatrixForm, transpose
from symgrad.matrixcalc.terms import ONE, Applied, AxisLength, Delta, Factor, Index, NoCompactForm, Pairing, Sum, Symbol, Term


def with_recorded_lengths(form: MatrixForm) -> MatrixForm:
    """A form with unnamed lengths replaced by the recorded numbers."""
    args = tuple(map(with_recorded_lengths, form.args))
    if form.kind == "size" and form.value.name is None:
        return MatrixForm("number", value=sympy.Integer(form.value.size), rank=0)
    if form.kind == "add" and all(f.kind == "number" for f in args):
        return MatrixForm("number", value=sum((f.value * n for f, n in zip(args, form.value)), ONE * 0), rank=0)
    if form.kind == "scale":
        number, powers = form.value
        for f, p in zip(args, powers):
            number = number * f.value**p if f.kind == "number" else number
        scalars = [(f, p) for f, p in zip(args, powers) if f.kind != "number"]
        return _scale(number, scalars, args[-1] if len(args) > len(powers) else None)
    return form if args == form.args else MatrixForm(form.kind, args, form.value, form.rank, form.symmetric)


def weight(form: MatrixForm) -> int:
    """The length of a form: the number of its arrays and numbers, counted with their integer powers."""
    if not form.args:
        return 1
    if form.kind in ("hadamard", "scale"):
        powers = form.value if form.kind == "hadamard" else (*form.value[1], ONE)
        return sum(weight(f) * (1 if f.kind == "square" else max(1, int(abs(p)))) for f, p in zip(form.args, powers))
    return sum(map(weight, form.args))


def _transpose_count(form: MatrixForm) -> int:
    return sum(map(_transpose_count, form.args)) + (form.kind == "transpose")


def _product(*forms: MatrixForm) -> MatrixForm:
    """A flattened matrix product without identity matrices."""
    chain = [g for f in forms for g in (f.args if f.kind == "product" else (f,)) if g.kind != "eye"]
    if not chain:
        return forms[0]
    left, right = chain[0].rank, chain[-1].rank
    rank = 0 if left == -1 and right == 1 else 1 if right == 1 else -1 if left == -1 else 2
    flat = tuple(chain)
    symmetric = rank == 2 and tuple(map(transpose, reversed(flat))) == flat
    return flat[0] if len(flat) == 1 else MatrixForm("product", flat, rank=rank, symmetric=symmetric)


def _hadamard(items: Sequence[tuple[MatrixForm, Any]], rank: int) -> MatrixForm:
    powers: dict[MatrixForm, Any] = {}
    for form, power in items:
        for part, inner in zip(form.args, form.value) if form.kind == "hadamard" else ((form, ONE),):
            powers[part] = powers.get(part, 0) + inner * power
    kept = {f: p for f, p in powers.items() if p != 0 and f.kind != "ones"}
    if not kept:
        return next(iter(powers))
    if len(kept) == 1 and next(iter(kept.values())) == 1:
        return next(iter(kept))
    return MatrixForm("hadamard", tuple(kept), tuple(kept.values()), rank, rank == 2 and all(f.symmetric for f in kept))


def form_of(total: Sum, broadcast: bool = False) -> MatrixForm:
    """A sum in matrix notation. Raises NoCompactForm if there is none.

    With `broadcast` a number may be broadcast to a vector or a matrix.
    """
    rank = len(total.out)
    if rank > 2 and rank != 4:
        raise NoCompactForm(f"an array of {rank} axes has no matrix notation")
    if not total.terms:
        return MatrixForm("zero", value=tuple(i.dimension for i in total.out), rank=min(rank, 2))
    parts = [_term_form(t, total.out, broadcast or len(total.terms) > 1) for t in total.terms]
    if len(parts) == 1:
        number, form = parts[0]
        return form if number == 1 else _scale(number, (), form)
    shape = 2 if rank == 4 else rank
    symmetric = shape == 2 and Sum(total.out[::-1], total.terms).key == total.key if rank == 2 else False
    return MatrixForm("add", tuple(f for _, f in parts), tuple(n for n, _ in parts), shape, symmetric)


def _scale(number: Any, scalars: Sequence[tuple[MatrixForm, Any]], body: MatrixForm | None) -> MatrixForm:
    """A number times powers of scalars times a form."""
    if body is not None and body.kind == "scale":
        before, powers = body.value
        inner = tuple(zip(body.args[:-1], powers)) if len(body.args) > len(powers) else tuple(zip(body.args, powers))
        tail = body.args[-1] if len(body.args) > len(powers) else None
        return _scale(number * before, (*scalars, *inner), tail)
    if body is not None and body.kind == "number":
        number, body = number * body.value, None
    if body is not None and body.rank == 0:
        scalars, body = (*scalars, (body, ONE)), None
    joined: dict[MatrixForm, Any] = {}
    for form, power in scalars:
        joined[form] = joined.get(form, 0) + power
    kept = sorted(((f, p) for f, p in joined.items() if p != 0), key=lambda pair: pair[0].kind != "size")
    if body is None and not kept:
        return MatrixForm("number", value=number, rank=0)
    if number == 1 and not kept and body is not None:
        return body
    if number == 1 and body is None and len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    forms = tuple(f for f, _ in kept) + (() if body is None else (body,))
    return MatrixForm("scale", forms, (number, tuple(p for _, p in kept)), 0 if body is None else body.rank, body is not None and body.symmetric)


def _factor_form(f: Factor) -> MatrixForm:
    head, rank = f.head, len(f.indices)
    if rank > 2:
        raise NoCompactForm(f"a factor of {rank} axes has no matrix notation")
    if isinstance(head, Symbol):
        return MatrixForm("symbol", value=head.name, rank=rank, symmetric=head.symmetric)
    if isinstance(head, Delta):
        return MatrixForm("eye", value=head.dimensions[0].root(), symmetric=True)
    if isinstance(head, AxisLength):
        return MatrixForm("size", value=head.dimension.root(), rank=0)
    if isinstance(head, Applied):
        inner = form_of(head.argument, broadcast=True)
        if rank == 2 and inner.kind == "add":
            other = form_of(Sum(head.argument.out[::-1], head.argument.terms), broadcast=True)
            inner = transpose(other) if _transpose_count(other) < _transpose_count(inner) else inner
        return inner if head.function is None else MatrixForm("apply", (inner,), head.function, rank, head.symmetric)
    inner = form_of(head.argument)
    if head.kind == "inverse" and inner.kind == "transpose":
        return MatrixForm("transpose", (MatrixForm("inverse", inner.args),))
    return MatrixForm(head.kind, (inner,), rank=rank, symmetric=head.symmetric)


def _term_form(term: Term, out: Sequence[Index], broadcast: bool) -> tuple[Any, MatrixForm]:
    """A term as a number and a form of the output's shape."""
    if broadcast and not term.factors:
        return term.coefficient, MatrixForm("number", value=ONE, rank=0)
    network = _Network(term, out)
    resolve_pairings(network)
    body = kronecker_form(network, out) if len(out) == 4 else network.form()
    return term.coefficient, _scale(ONE, network.scalars, body)


class _Network:
    """The factors of a term as forms with one or two indices, which are contracted until only the indices of the output remain."""

    def __init__(self, term: Term, out: Sequence[Index]):
        self.out = tuple(out)
        self.scalars: list[tuple[MatrixForm, Any]] = []
        self.items: list[tuple[MatrixForm, tuple[Index, ...]]] = []
        self.deltas: list[tuple[Index, ...]] = []
        self.pairings: list[tuple[Index, ...]] = []
        for f in term.factors:
            if isinstance(f.head, Delta):
                self.deltas.append(f.indices)
                continue
            if isinstance(f.head, Pairing):
                self.pairings.append(f.indices)
                continue
            form = _factor_form(f)
            if not f.indices:
                self.scalars.append((form, f.power))
                continue
            form = _hadamard([(form, f.power)], form.rank)
            if len(f.indices) == 2 and f.indices[0] is f.indices[1]:
                self.items.append((MatrixForm("diagonal", (form,), rank=1), f.indices[:1]))
            else:
                self.items.append((form, f.indices))

    def degree(self, index: Index) -> int:
        return sum(index in indices for _, indices in self.items) + (index in self.out)

    def bound(self) -> list[Index]:
        return list(dict.fromkeys(i for _, indices in self.items for i in indices if i not in self.out))

    def remove(self, *items: Any) -> None:
        self.items = [item for item in self.items if all(item is not other for other in items)]

    def contract(self) -> None:
        """Sum over every index that is not in the output. Raises NoCompactForm."""
        while self.bound():
            if not (self._merge() or any(self._single(i) for i in self.bound()) or any(self._vector(i) for i in self.bound())
                    or any(self._matrices(i) for i in self.bound()) or self._diagonal()):
                raise NoCompactForm("an index that joins three matrices has no matrix notation")
        while self._merge():
            pass

    def _merge(self) -> bool:
        """Merge items with the same indices into elementwise products."""
        for n, (form, indices) in enumerate(self.items):
            for other in self.items[n + 1:]:
                if set(other[1]) != set(indices):
                    continue
                closed = all(i not in self.out and self.degree(i) == 2 for i in indices)
                second = other[0] if other[1] == indices else transpose(other[0])
                self.remove(self.items[n], other)
                if closed:
                    self.scalars.append((_dot(form, second) if len(indices) == 1 else _trace(transpose(form), second), ONE))
                else:
                    self.items.insert(n, (_hadamard([(form, ONE), (second, ONE)], form.rank), indices))
                return True
        return False

    def _items_at(self, index: Index) -> list[tuple[MatrixForm, tuple[Index, ...]]]:
        return [item for item in self.items if index in item[1]]

    def _single(self, index: Index) -> bool:
        """The sum over an index of only one factor."""
        found = self._items_at(index)
        if len(found) != 1:
            return False
        (form, indices), = found
        others = [i for i in indices if i is not index]
        if others and self.degree(others[0]) == 1:  # the sum of all elements
            others = []
        self.remove(found[0])
        if not others:
            squared = form.kind == "hadamard" and len(form.args) == 1 and form.value[0] == 2
            total = MatrixForm("trace", form.args, rank=0) if form.kind == "diagonal" else MatrixForm("sum", (form,), rank=0)
            self.scalars.append((MatrixForm("square", form.args, rank=0) if squared else total, ONE))
            return True
        matrix = form if indices[1] is index else transpose(form)
        self.items.append((_product(matrix, MatrixForm("ones", value=index.dimension, rank=1)), (others[0],)))
        return True

    def _vector(self, index: Index) -> bool:
        found = self._items_at(index)
        if len(found) != 2 or {len(indices) for _, indices in found} != {1, 2}:
            return False
        vector, matrix = sorted(found, key=lambda item: len(item[1]))
        form = matrix[0] if matrix[1][1] is index else transpose(matrix[0])
        at = self.items.index(matrix)
        self.remove(*found)
        self.items.insert(min(at, len(self.items)), (_product(form, vector[0]), tuple(i for i in matrix[1] if i is not index)))
        return True

    def _matrices(self, index: Index) -> bool:
        found = self._items_at(index)
        if len(found) != 2 or any(len(indices) != 2 for _, indices in found):
            return False
        (left, one), (right, two) = found
        left = left if one[1] is index else transpose(left)
        right = right if two[0] is index else transpose(right)
        i = next(k for k in one if k is not index)
        k = next(k for k in two if k is not index)
        at = self.items.index(found[0])
        self.remove(*found)
        if i is not k:
            self.items.insert(at, (_product(left, right), (i, k)))
        elif self.degree(i) == 0:
            self.scalars.append((_trace(left, right), ONE))
        else:
            self.items.insert(at, (MatrixForm("diagonal", (_product(left, right),), rank=1), (i,)))
        return True

    def _diagonal(self) -> bool:
        """A vector that shares an index with several matrices becomes a diagonal matrix that multiplies one of them."""
        for vector in self.items:
            if len(vector[1]) == 1:
                for matrix in self.items:
                    if len(matrix[1]) == 2 and vector[1][0] in matrix[1]:
                        self._multiply_diagonal(vector, matrix)
                        return True
        return False

    def _multiply_diagonal(self, vector: Any, matrix: Any) -> None:
        diagonal = MatrixForm("diag", (vector[0],), symmetric=True)
        at = self.items.index(matrix)
        form = _product(matrix[0], diagonal) if matrix[1][1] is vector[1][0] else _product(diagonal, matrix[0])
        self.items[at] = (form, matrix[1])
        self.remove(vector)

    def form(self) -> MatrixForm | None:
        """The form of an output of up to two axes; None for a scalar that is completely in `scalars`."""
        if self.deltas and len(self.out) == 2:
            output, self.out = self.out, self.out[:1]
            if any(output[1] in indices for _, indices in self.items):
                self.items = [(form, tuple(output[0] if i is output[1] else i for i in indices)) for form, indices in self.items]
            plain = not any(output[0] in indices for _, indices in self.items)
            inner = self.form()
            eye = MatrixForm("eye", value=output[0].dimension, symmetric=True)
            return eye if plain or inner is None else MatrixForm("diag", (inner,), symmetric=True)
        self.contract()
        if not self.out:
            return None
        if len(self.out) == 1:
            return self.items[0][0] if self.items else MatrixForm("ones", value=self.out[0].dimension, rank=1)
        return self.matrix(*self.out)

    def matrix(self, i: Index, k: Index) -> MatrixForm:
        """The form of the items at two indices of the output; there are no other items."""
        found = next((item for item in self.items if set(item[1]) == {i, k}), None)
        vectors = [next((item for item in self.items if item[1] == (index,)), None) for index in (i, k)]
        if found is None:
            column, row = (MatrixForm("ones", value=index.dimension, rank=1) if v is None else v[0] for v, index in zip(vectors, (i, k)))
            return _product(column, transpose(row))
        for v in vectors:
            if v is not None:
                self._multiply_diagonal(v, next(item for item in self.items if set(item[1]) == {i, k}))
        form, indices = next(item for item in self.items if set(item[1]) == {i, k})
        return form if indices[0] is i else transpose(form)


def _dot(a: MatrixForm, b: MatrixForm) -> MatrixForm:
    """The inner product, in the order with fewer transposes."""
    if a == b:
        return MatrixForm("square", (a,), rank=0)
    one, two = _product(transpose(a), b), _product(transpose(b), a)
    return one if _transpose_count(one) <= _transpose_count(two) else two


def _trace(a: MatrixForm, b: MatrixForm) -> MatrixForm:
    """The trace of a product, cyclically permuted so that it has the fewest transposes."""
    if transpose(a) == b and a.kind != "product":
        return MatrixForm("square", (b,), rank=0)
    output = _product(a, b)
    chain = output.args if output.kind == "product" else (output,)
    reversed_chain = tuple(map(transpose, reversed(chain)))
    candidates = [c[n:] + c[:n] for c in (chain, reversed_chain) for n in range(len(c))]
    best = min(candidates, key=lambda c: sum(map(_transpose_count, c)))
    return MatrixForm("trace", (_product(*best),), rank=0)
