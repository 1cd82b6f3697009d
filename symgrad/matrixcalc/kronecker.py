"""Derivatives of matrices by matrices as Kronecker products.

    ∂vec(Y) / ∂vec(X)ᵀ, where vec stacks the columns of a matrix; K is the commutation matrix, K vec(X) = vec(Xᵀ)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.matrixcalc.form import Form, transpose
from symgrad.matrixcalc.terms import Index, NoCompactForm

__all__ = ["kronecker_form"]


def kronecker_form(network: Any, out: Sequence[Index]) -> Form:
    """The form of a term with the indices (i, j) of a matrix and (k, l) of the differentiation variable. Raises NoCompactForm."""
    i, j, k, l = out
    deltas = [set(d) for d in network.deltas]
    if {i, k} in deltas and {j, l} in deltas and any(set(indices) & set(out) for _, indices in network.items):
        network.deltas, network.out = [], (i, j)
        network.items = [(form, tuple({k: i, l: j}.get(x, x) for x in indices)) for form, indices in network.items]
        return Form("diag", (Form("vec", (network.form(),), rank=1),), symmetric=True)
    network.contract()
    for d in network.deltas:
        network.items.append((Form("eye", value=d[0].dimension, symmetric=True), d))
    for first, second, crossed in (((i, k), (j, l), False), ((i, l), (j, k), True)):
        if _separates(network, first, second):
            one, two = _matrix_between(network, *first), _matrix_between(network, *second)
            both = Form("kron", (two, one), symmetric=one.symmetric and two.symmetric and not crossed)
            return Form("product", (both, Form("commutation", value=(k.dimension, l.dimension)))) if crossed else both
    if _separates(network, (i, j), (k, l)):
        left, right = (Form("vec", (_matrix_between(network, *pair),), rank=1) for pair in ((i, j), (k, l)))
        return Form("product", (left, transpose(right)), symmetric=left == right)
    raise NoCompactForm("a product that couples rows with columns has no Kronecker form")


def _separates(network: Any, first: tuple[Index, Index], second: tuple[Index, Index]) -> bool:
    """Whether every item is at one of two pairs of indices."""
    return all(set(indices) <= set(first) or set(indices) <= set(second) for _, indices in network.items)


def _matrix_between(network: Any, i: Index, k: Index) -> Form:
    """The matrix formed by the items at two indices."""
    while network._merge():
        pass
    form: Form = network.matrix(i, k)
    return form
