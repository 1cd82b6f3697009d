"""Axes of pairs: axes that are merged or split, sums over them, and the inverse of a Kronecker product.

    (A ⊗ B)[I, J] = Σ A[i, j] B[k, l] π[I, i, k] π[J, j, l],   π[I, i, k] = 1 where I = i q + k
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from symgrad.matrixcalc.labelled import Labelled
from symgrad.matrixcalc.terms import ONE, AxisLength, Delta, Dimension, Factor, Index, MatrixFunction, NoCompactForm, Pairing, Sum, Term, times


def pairing(whole: Index, first: Index, second: Index) -> Factor:
    """The factor that makes one index the place of a pair."""
    return Factor(Pairing(whole.dimension, first.dimension, second.dimension), (whole, first, second))


# Merging and splitting


def reshaped(x: Labelled, shape: Sequence[int]) -> Labelled:
    """The elements in another shape: axes of size one inserted or removed, neighbours merged, or an axis split. Raises NoCompactForm."""
    left, sizes = list(x.indices), [n for n in shape if n != 1]
    found: list[Index] = []
    pairs: list[Factor] = []
    while left and sizes:
        some, new = [left.pop(0)], [sizes.pop(0)]
        while (difference := prod(i.dimension.size for i in some) - prod(new)) and (left if difference < 0 else sizes):
            (some.append(left.pop(0)) if difference < 0 else new.append(sizes.pop(0)))
        if difference or len(some) > 1 < len(new) or len(new) > 1 and not _may_split(some[0].dimension, new):
            raise NoCompactForm(f"matrix_expr: reshape from {list(x.shape)} to {list(shape)} moves the borders between axes, which has no compact "
                                f"form; merge whole axes, or split one where it was merged")
        found += _split(some[0], new, pairs) if len(new) > 1 else [_merge(some, pairs)]
    rest = iter(found)
    axes = tuple(None if n == 1 else next(rest) for n in shape)
    if not pairs:
        return Labelled(axes, Sum(tuple(found), x.total.terms))
    return Labelled(axes, times(found, [(x.total, x.total.out), *((Sum(f.indices, (Term(ONE, (f,)),)), f.indices) for f in pairs)]))


def _merge(parts: Sequence[Index], pairs: list[Factor]) -> Index:
    """The index of the places of tuples."""
    first, *others = parts
    if not others:
        return first
    second = _merge(others, pairs)
    whole = Index(Dimension.of_pairs(first.dimension, second.dimension))
    pairs.append(pairing(whole, first, second))
    return whole


def _cuts(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The lengths of the two axes into which an axis may be split first."""
    return [(prod(sizes[:n]), prod(sizes[n:])) for n in range(1, len(sizes))]


def _may_split(dimension: Dimension, sizes: Sequence[int]) -> bool:
    """Whether an axis was not merged, or was merged at one of the borders."""
    if len(sizes) == 1 or not dimension.parts:
        return True
    known = tuple(part.size for part in dimension.parts)
    if known not in _cuts(sizes):
        return False
    n = _cuts(sizes).index(known) + 1
    return all(_may_split(part, some) for part, some in zip(dimension.parts, (sizes[:n], sizes[n:])))


def _split(whole: Index, sizes: Sequence[int], pairs: list[Factor]) -> list[Index]:
    """The indices of the tuples whose places an index has."""
    if len(sizes) == 1:
        return [whole]
    if not whole.dimension.parts:
        whole.dimension.join(Dimension.of_pairs(*map(Dimension, _cuts(sizes)[0])))
    first, second = map(Index, whole.dimension.parts)
    n = _cuts(sizes).index((first.dimension.size, second.dimension.size)) + 1
    pairs.append(pairing(whole, first, second))
    return [*_split(first, sizes[:n], pairs), *_split(second, sizes[n:], pairs)]


# Sums over pairs


def contract_pairings(factors: Sequence[Factor], out: Sequence[Index]) -> list[Factor] | None:
    """The factors without one pairing that a sum over its indices, or another pairing, makes superfluous; None if there is none."""
    for n, f in enumerate(factors):
        if not isinstance(f.head, Pairing):
            continue
        rest = [*factors[:n], *factors[n + 1:]]
        whole, first, second = f.indices
        used = {i for g in rest for i in g.indices} | set(out)
        if whole not in used:  # every pair has one place
            return [*rest, *(Factor(AxisLength(i.dimension)) for i in dict.fromkeys((first, second)) if i not in used)]
        if not used & {first, second} and first is not second:  # every place has one pair
            return rest
        for g in rest:
            if isinstance(g.head, Pairing):
                if g.indices[0] is whole and [i.dimension.size for i in g.indices] == [i.dimension.size for i in f.indices]:
                    return [*rest, *_deltas(f.indices[1:], g.indices[1:])]
                if g.indices[1] is first and g.indices[2] is second:
                    return [*rest, *_deltas((whole,), g.indices[:1])]
    return None


def _deltas(some: Sequence[Index], others: Sequence[Index]) -> list[Factor]:
    for i, k in zip(some, others):
        i.dimension.join(k.dimension)
    return [Factor(Delta(i.dimension), (i, k)) for i, k in zip(some, others) if i is not k]


# Kronecker products


def inverse_of_kronecker(matrix: Sum, at: Sequence[Index]) -> list[Factor] | None:
    """The inverse of a Kronecker product of square matrices as the product of their inverses; None for another matrix."""
    if len(matrix.terms) != 1 or matrix.terms[0].coefficient != 1:
        return None
    factors = matrix.terms[0].factors
    ends = [f for i in matrix.out for f in factors if isinstance(f.head, Pairing) and f.indices[0] is i]
    if len(ends) != 2 or ends[0].indices[0] is ends[1].indices[0]:
        return None
    corners = list(zip(ends[0].indices[1:], ends[1].indices[1:]))
    others = [f for f in factors if f is not ends[0] and f is not ends[1]]
    parts: list[list[Factor]] = []
    for i, k in corners:
        reached, part = {i, k}, []
        while any(set(f.indices) & reached for f in others):
            part += [f for f in others if set(f.indices) & reached]
            others = [f for f in others if not set(f.indices) & reached]
            reached |= {index for f in part for index in f.indices}
        if i.dimension.size != k.dimension.size or reached & {index for pair in corners if pair != (i, k) for index in pair}:
            return None
        parts.append(part)
    for i, k in corners:  # with other factors the product would have no inverse
        i.dimension.join(k.dimension)
    parts[0] += others
    firsts, seconds = ([Index(i.dimension) for i in end.indices[1:]] for end in ends)
    inverses = [Factor(_inverse(part, *pair), indices) for part, pair, indices in zip(parts, corners, zip(firsts, seconds))]
    return [pairing(at[0], *firsts), pairing(at[1], *seconds), *inverses]


def _inverse(factors: Sequence[Factor], i: Index, k: Index) -> MatrixFunction:
    """The inverse of the matrix of some factors, which are diagonal where both indices are the same."""
    if i is k:
        k = Index(i.dimension)
        factors = [*factors, Factor(Delta(i.dimension), (i, k))]
    return MatrixFunction("inverse", Sum((i, k), (Term(ONE, tuple(factors)),)))
