"""Derivatives of matrices by matrices as Kronecker products.

    ∂vec(Y) / ∂vec(X)ᵀ, where vec stacks the columns of a matrix; K is the commutation matrix, K vec(X) = vec(Xᵀ)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.matrixcalc.printing import MatrixForm, transpose
from symgrad.matrixcalc.terms import Index, NoCompactForm


def kronecker_form(network: Any, out: Sequence[Index]) -> MatrixForm:
    """The form of a term with the indices (i, j) of a matrix and (k, l) of the differentiation variable. Raises NoCompactForm."""
    i, j, k, l = out
    deltas = [set(d) for d in network.deltas]
    if {i, k} in deltas and {j, l} in deltas and any(set(indices) & set(out) for _, indices in network.items):
        network.deltas, network.out = [], (i, j)
        network.items = [(form, tuple({k: i, l: j}.get(x, x) for x in indices)) for form, indices in network.items]
        return MatrixForm("diag", (MatrixForm("vec", (network.form(),), rank=1),), symmetric=True)
    network.contract()
    for d in network.deltas:
        network.items.append((MatrixForm("eye", value=d[0].dimension, symmetric=True), d))
    for first, second, crossed in (((i, k), (j, l), False), ((i, l), (j, k), True)):
        if _separates(network, first, second):
            one, two = _matrix_between(network, *first), _matrix_between(network, *second)
            both = MatrixForm("kron", (two, one), symmetric=one.symmetric and two.symmetric and not crossed)
            return MatrixForm("product", (both, MatrixForm("commutation", value=(k.dimension, l.dimension)))) if crossed else both
    if _separates(network, (i, j), (k, l)):
        left, right = (MatrixForm("vec", (_matrix_between(network, *pair),), rank=1) for pair in ((i, j), (k, l)))
        return MatrixForm("product", (left, transpose(right)), symmetric=left == right)
    raise NoCompactForm("a product that couples rows with columns has no Kronecker form")


def _separates(network: Any, first: tuple[Index, Index], second: tuple[Index, Index]) -> bool:
    """Whether every item is at one of two pairs of indices."""
    return all(set(indices) <= set(first) or set(indices) <= set(second) for _, indices in network.items)


def _matrix_between(network: Any, i: Index, k: Index) -> MatrixForm:
    """The matrix formed by the items at two indices."""
    while network._merge():
        pass
    form: MatrixForm = network.matrix(i, k)
    return form


# Pairings


def resolve_pairings(network: Any) -> None:
    """Replace the pairings of a network by Kronecker products, by vec of matrices and by its inverse. Raises NoCompactForm."""
    while network.pairings:
        out = network.out
        network.out = tuple(dict.fromkeys([*out, *(i for indices in network.pairings for i in indices)]))
        network.contract()
        network.out = out
        if not (_product_of_matrices(network) or _vector_of_pairs(network) or _matrix_of_vector(network)):
            raise NoCompactForm("an axis of pairs that is not one of a Kronecker product has no matrix notation")


def _ends(network: Any, *pairings: tuple[Index, ...]) -> bool:
    """Whether the parts of some pairings are at items only."""
    others = {i for p in network.pairings for i in (p[:1] if p in pairings else p)} | {i for d in network.deltas for i in d} | set(network.out)
    return not any(i in others for p in pairings for i in p[1:])


def _touching(network: Any, *ends: Index) -> list[tuple[MatrixForm, tuple[Index, ...]]]:
    return [item for item in network.items if set(item[1]) & set(ends)]


def _product_of_matrices(network: Any) -> bool:
    """Two pairings whose first parts are at one matrix, and whose second parts are at another."""
    for n, one in enumerate(network.pairings):
        for other in network.pairings[n + 1:]:
            slots = list(zip(one[1:], other[1:]))
            joined = [i is k or any(len(indices) == 2 for _, indices in _touching(network, i, k)) for i, k in slots]
            alone = all(set(indices) <= set(slot) for slot in slots for _, indices in _touching(network, *slot))
            if one[0] is other[0] or not (_ends(network, one, other) and alone and any(joined)):
                continue
            matrices = [_diagonal(network, i) if i is k else network.matrix(i, k) for i, k in slots]
            network.remove(*_touching(network, *one[1:], *other[1:]))
            network.pairings = [p for p in network.pairings if p is not one and p is not other]
            network.items.append((_kron(*matrices), (one[0], other[0])))
            return True
    return False


def _diagonal(network: Any, i: Index) -> MatrixForm:
    """The diagonal matrix at an index that stands for its rows and its columns."""
    vectors = [form for form, _ in _touching(network, i)]
    return MatrixForm("diag", (vectors[0],), symmetric=True) if vectors else MatrixForm("eye", value=i.dimension, symmetric=True)


def _kron(one: MatrixForm, two: MatrixForm) -> MatrixForm:
    rank = 1 if one.rank == two.rank == 1 else 2
    return MatrixForm("kron", (one, two), rank=rank, symmetric=rank == 2 and one.symmetric and two.symmetric)


def _vector_of_pairs(network: Any) -> bool:
    """A pairing of the indices of one matrix, of two vectors, or of a vector and a matrix."""
    for found in network.pairings:
        whole, first, second = found
        if not _ends(network, found) or first is second:
            continue
        if all(set(indices) <= {first, second} for _, indices in _touching(network, first, second)) and any(
                len(indices) == 2 for _, indices in _touching(network, first, second)):
            form, at = MatrixForm("vec", (transpose(network.matrix(first, second)),), rank=1), (whole,)
        else:
            sides = [_side(network, i) for i in (first, second)]
            others = [i for side in sides if side is not None for i in side[1]]
            if any(side is None for side in sides) or len(others) > 1:
                continue
            form, at = _kron(*(side[0] for side in sides if side is not None)), (whole, *others)
        network.remove(*_touching(network, first, second))
        network.pairings = [p for p in network.pairings if p is not found]
        network.items.append((form, at))
        return True
    return False


def _side(network: Any, i: Index) -> tuple[MatrixForm, list[Index]] | None:
    """What is at one part of a pairing: a vector, or the rows of a matrix, with the index of its columns; None for several matrices."""
    matrices = [item for item in _touching(network, i) if len(item[1]) == 2]
    if len(matrices) > 1:
        return None
    for _, indices in matrices:
        other = next(k for k in indices if k is not i)
        for vector in [item for item in network.items if item[1] == (i,)]:
            network._multiply_diagonal(vector, next(item for item in network.items if item[1] == indices))
        form = next(form for form, at in network.items if at == indices)
        return (form if indices[0] is i else transpose(form)), [other]
    vectors = [form for form, _ in _touching(network, i)]
    return (vectors[0] if vectors else MatrixForm("ones", value=i.dimension, rank=1)), []


def _matrix_of_vector(network: Any) -> bool:
    """A pairing whose whole is summed over at a vector: the matrix whose rows, one after the other, are the vector."""
    for found in network.pairings:
        whole, first, second = found
        items = _touching(network, whole)
        if whole in network.out or len(items) != 1 or len(items[0][1]) != 1 or any(whole in p for p in network.pairings if p is not found):
            continue
        form = MatrixForm("unvec", (items[0][0],), value=(second.dimension, first.dimension))
        network.remove(*items)
        network.pairings = [p for p in network.pairings if p is not found]
        network.items.append((transpose(form), (first, second)))
        return True
    return False
