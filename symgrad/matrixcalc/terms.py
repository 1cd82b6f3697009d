"""The normal form of matrix calculus: sums of generic products of index-labelled factors.

    Σ over the indices outside the output of  coefficient · factor[i, j]^p · factor[j, k]^q · ...

A factor is a head with one index per axis. The head (the term of term rewriting) is a symbol, a Kronecker delta, a pairing of two indices, an
elementwise function of another sum, an inverse, a (log-)determinant or the length of an axis. Powers are elementwise. An index is a position along an
axis whose length is its `Dimension`; the dimensions of two axes are merged when the axes are multiplied or added elementwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import sympy

from symgrad.matrixcalc.functions import ElementwiseFunction

ONE, ZERO = sympy.S.One, sympy.S.Zero
LABELS = {"inverse": "inv", "cholesky": "chol"}


class NoCompactForm(ValueError, AttributeError):
    """The error for a value without a compact form; the message has the reason and the remedy.

    It is an AttributeError, so that `hasattr` of the property `Tensor.matrix_expr` is False.
    """


class Dimension:
    """The length of an axis. Equal dimensions are merged (union-find). The length of an axis of pairs is the product of two others, its `parts`."""

    __slots__ = ("_size", "_name", "_parent", "_parts")

    def __init__(self, size: int, name: str | None = None, parts: tuple[Dimension, ...] = ()):
        self._size, self._name, self._parent, self._parts = size, name, self, parts

    @classmethod
    def of_pairs(cls, first: Dimension, second: Dimension) -> Dimension:
        """The number of pairs of positions along two axes."""
        return cls(first.size * second.size, None, (first, second))

    def root(self) -> Dimension:
        """The representative of all dimensions merged with this one."""
        found = self
        while found._parent is not found:
            found = found._parent
        return found

    @property
    def size(self) -> int:
        return self.root()._size

    @property
    def name(self) -> str | None:
        """The name of the length, if it has one."""
        return self.root()._name

    @property
    def parts(self) -> tuple[Dimension, ...]:
        """The two lengths whose product this is; empty for an axis without pairs."""
        return tuple(part.root() for part in self.root()._parts)

    def length(self, known: Mapping[Dimension, int]) -> int:
        """The number of elements where some dimensions have other lengths than the recorded ones."""
        found = known.get(self.root())
        return found if found is not None else prod(part.length(known) for part in self.parts) if self.parts else self.size

    def with_parts(self) -> list[Dimension]:
        """This dimension and those that it is a product of."""
        return [self.root(), *(d for part in self.parts for d in part.with_parts())]

    def join(self, other: Dimension) -> None:
        """Merge the lengths of two axes."""
        a, b = self.root(), other.root()
        if a is b:
            return
        if a._size != b._size:
            raise ValueError(f"matrices: axes of lengths {a._size} and {b._size} cannot be the same")
        b._parent, a._name, a._parts = a, a._name or b._name, a._parts or b._parts


class Index:
    """A position along an axis; indices are compared by identity."""

    __slots__ = ("_dimension",)

    def __init__(self, dimension: Dimension):
        self._dimension = dimension

    @property
    def dimension(self) -> Dimension:
        return self._dimension.root()


class Head:
    """The head of a factor: the factor without its indices and its power."""

    kind = ""
    dimensions: tuple[Dimension, ...] = ()
    argument: Any = None
    is_indicator = False  # whether its elements are 0 and 1, so that powers do not change them

    @cached_property
    def key(self) -> str:
        """A text that is equal for equal heads only."""
        return self.describe()

    def describe(self) -> str:
        """The text behind `key`."""
        raise NotImplementedError

    def of(self, argument: Sum) -> Head:
        """The same function of another argument."""
        raise NotImplementedError

    @cached_property
    def symmetric(self) -> bool:
        """Whether the head has two axes and is symmetric in them."""
        argument = self.argument
        if len(self.dimensions) != 2 or argument is None or self.dimensions[0].root() is not self.dimensions[1].root():
            return False
        return Sum(argument.out[::-1], argument.terms).key == argument.key


class Symbol(Head):
    """A named array."""

    def __init__(self, name: str, dimensions: Sequence[Dimension], symmetric: bool = False):
        self.name, self.dimensions = name, tuple(dimensions)
        self.symmetric = symmetric

    def describe(self) -> str:
        return self.name


class Delta(Head):
    """The Kronecker delta: 1 where both indices are equal, and 0 elsewhere."""

    symmetric = is_indicator = True

    def __init__(self, dimension: Dimension):
        self.dimensions = dimension, dimension

    def describe(self) -> str:
        return "δ"


class Pairing(Head):
    """1 where the first index is the place of the pair of the other two in row-major order, and 0 elsewhere: axes are merged and split by it."""

    is_indicator = True

    def __init__(self, whole: Dimension, first: Dimension, second: Dimension):
        self.dimensions = whole, first, second

    def describe(self) -> str:
        return "π" + ",".join(str(d.size) for d in self.dimensions)  # axes of pairs of other lengths are no common factors


class AxisLength(Head):
    """The length of an axis, as a number."""

    def __init__(self, dimension: Dimension):
        self.dimension = dimension

    def describe(self) -> str:
        return f"#{id(self.dimension.root())}"


class Applied(Head):
    """An elementwise function of a sum, or, without a function, the sum itself as one factor."""

    kind = "applied"

    def __init__(self, function: ElementwiseFunction | None, argument: Sum):
        self.function, self.argument = function, argument
        self.dimensions = tuple(i.dimension for i in argument.out)

    def describe(self) -> str:
        return f"{self.function.name if self.function else ''}({self.argument.key})"

    def of(self, argument: Sum) -> Head:
        return Applied(self.function, argument)


class MatrixFunction(Head):
    """The "inverse", "cholesky", "det" or "logdet" of a square matrix, or the "softmax" of a vector, which is introduced after all derivatives."""

    def __init__(self, kind: str, argument: Sum):
        self.kind, self.argument = kind, argument
        self.dimensions = () if kind in ("det", "logdet") else tuple(i.dimension for i in argument.out)
        if kind == "cholesky":
            self.symmetric = False

    def describe(self) -> str:
        return f"{LABELS.get(self.kind, self.kind)}({self.argument.key})"

    def of(self, argument: Sum) -> Head:
        return MatrixFunction(self.kind, argument)


class Factor(NamedTuple):
    """A head at some indices, raised elementwise to a power."""

    head: Head
    indices: tuple[Index, ...] = ()
    power: Any = ONE


class Term(NamedTuple):
    """A coefficient times factors."""

    coefficient: Any
    factors: tuple[Factor, ...] = ()

    def indices(self) -> set[Index]:
        return {i for f in self.factors for i in f.indices}


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of products with the free indices `out`; every other index of a term is summed over within that term."""

    out: tuple[Index, ...]
    terms: tuple[Term, ...]

    @cached_property
    def key(self) -> str:
        """Equal for sums that are equal up to the order of terms and factors and the names of indices."""
        places = {index: f"o{n}" for n, index in enumerate(self.out)}
        return " + ".join(sorted(f"{t.coefficient} {term_key(t, places)}" for t in self.terms))

    def rename(self, indices: Sequence[Index]) -> tuple[Term, ...]:
        """The terms with other output indices, and new summation indices."""
        outer = dict(zip(self.out, indices))
        return tuple(rename_indices(term, outer) for term in self.terms)


def rename_indices(term: Term, outer: Mapping[Index, Index]) -> Term:
    """A term with some indices replaced, and new ones in place of all others."""
    mapping = dict(outer)
    for index in (i for f in term.factors for i in f.indices):
        if index not in mapping:
            mapping[index] = Index(index.dimension)
    return Term(term.coefficient, tuple(Factor(f.head, tuple(mapping[i] for i in f.indices), f.power) for f in term.factors))


def term_key(term: Term, places: Mapping[Index, str]) -> str:
    """A canonical text of the factors of a term, independent of their order and of the names of indices."""
    colours = {i: places.get(i, "b") for f in term.factors for i in f.indices}
    for _ in range(len(colours) + 1):
        described = _descriptions(term, colours)
        bound: dict[str, list[Index]] = {}
        for i in colours:
            if i not in places:
                occurrences = sorted(f"{text}@{[n for n, k in enumerate(f.indices) if k is i] if not f.head.symmetric else 's'}"
                              for f, text in described if i in f.indices)
                bound.setdefault(str(occurrences), []).append(i)
        ranks = {text: n for n, text in enumerate(sorted(bound))}
        new = {i: f"b{ranks[text]}" for text, several in bound.items() for i in several}
        if len(set(new.values())) == len(new):
            return "*".join(sorted(text for _, text in _descriptions(term, colours | new)))
        if all(colours[i] == new[i] for i in new):  # indices with equal neighbours: distinguish one of them
            equal = next(text for text in sorted(bound) if len(bound[text]) > 1)
            new[bound[equal][0]] += "'"
        colours |= new
    return "*".join(sorted(text for _, text in _descriptions(term, colours)))


def _descriptions(term: Term, colours: Mapping[Index, str]) -> list[tuple[Factor, str]]:
    out = []
    for f in term.factors:
        names = [colours[i] for i in f.indices]
        if f.head.symmetric and len(names) == 2:
            names.sort()
        out.append((f, f"{f.head.key}[{','.join(names)}]" + (f"^{f.power}" if f.power != 1 else "")))
    return out


def with_symbols(total: Sum, symbols: Mapping[str, Symbol], memo: dict[Head, Head] | None = None) -> Sum:
    """A sum with symbols replaced by those of the same name."""
    memo = {} if memo is None else memo

    def replaced(head: Head) -> Head:
        if head not in memo:
            if isinstance(head, Symbol):
                memo[head] = symbols.get(head.name, head)
            elif head.argument is None:
                memo[head] = head
            else:
                inner = with_symbols(head.argument, symbols, memo)
                memo[head] = head.of(inner)
        return memo[head]

    return Sum(total.out, tuple(Term(t.coefficient, tuple(Factor(replaced(f.head), f.indices, f.power) for f in t.factors)) for t in total.terms))


# Construction


def constant(number: Any) -> Sum:
    """A number."""
    return Sum((), (Term(sympy.sympify(number)),) if number != 0 else ())


def as_one_factor(total: Sum, indices: Sequence[Index], power: Any = ONE) -> Factor:
    """A sum as one factor, without indices that it does not depend on."""
    used = {i for term in total.terms for i in term.indices()}
    kept = [(o, i) for o, i in zip(total.out, indices) if o in used]
    return Factor(Applied(None, Sum(tuple(o for o, _ in kept), total.terms)), tuple(i for _, i in kept), power)


def as_factors(total: Sum, indices: Sequence[Index]) -> Term:
    """A sum at some indices as a product: its only term, or a bracket."""
    if len(total.terms) == 1:
        return total.rename(indices)[0]
    return Term(ONE, (as_one_factor(total, indices),)) if total.terms else Term(ZERO)


def times(out: Sequence[Index], parts: Iterable[tuple[Sum, Sequence[Index]]], coefficient: Any = ONE) -> Sum:
    """The generic product: the product of sums at given indices, summed over the indices that are not in the output."""
    factors: list[Factor] = []
    several = None
    parts = list(parts)
    numbers = [total for total, _ in parts if len(total.terms) == 1 and not total.terms[0].factors]
    others = [(total, indices) for total, indices in parts if total not in numbers]
    if len(others) == 1 and len(others[0][0].terms) > 1 and set(others[0][1]) >= set(out):  # a number distributes over a sum
        several = others.pop()
    for total, indices in [*others, *((number, ()) for number in numbers)]:
        term = as_factors(total, indices)
        coefficient = coefficient * term.coefficient
        factors += term.factors
    if coefficient == 0:
        return Sum(tuple(out), ())
    if several is None:
        return with_sizes(out, (Term(coefficient, tuple(factors)),), {i for _, indices in parts for i in indices})
    terms = tuple(Term(t.coefficient * coefficient, t.factors) for t in several[0].rename(several[1]))
    return with_sizes(out, terms, set(several[1]))


def with_lengths(term: Term, before: Iterable[Index], out: Sequence[Index]) -> Term:
    """A term times the length of every summation index that it no longer depends on."""
    lost = dict.fromkeys(i for i in before if i not in out and i not in term.indices())
    return Term(term.coefficient, term.factors + tuple(Factor(AxisLength(i.dimension)) for i in lost)) if lost else term


def with_sizes(out: Sequence[Index], terms: Iterable[Term], summed: set[Index]) -> Sum:
    """A sum of terms over `summed` and all indices outside the output; a term gets the lengths of indices on which it does not depend as factors."""
    return Sum(tuple(out), tuple(with_lengths(t, summed, out) for t in terms))


def plus(out: Sequence[Index], parts: Iterable[tuple[Any, Sum, Sequence[Index]]]) -> Sum:
    """The linear combination of sums at given indices."""
    return Sum(tuple(out), tuple(Term(c * t.coefficient, t.factors) for c, total, indices in parts for t in total.rename(indices) if c != 0))
