"""Strategies for trees of values: tuples, lists, dictionaries, named tuples, dataclasses and None, nested in each other."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from symgrad.testing.strategies.needed import require_hypothesis
from symgrad.trees import flatten

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Pair", "DrawnRecord", "pytrees"]

KEYS = ("a", "b", "c")


class Pair(NamedTuple):
    """A named tuple that `pytrees` draws."""

    first: Any
    second: Any


@dataclass(frozen=True)
class DrawnRecord:
    """A dataclass that `pytrees` draws."""

    left: Any
    right: Any


def pytrees(leaves: SearchStrategy[Any], max_leaves: int = 6, *, empty: bool = True) -> SearchStrategy[Any]:
    """Trees with leaves from a strategy, of every container that `symgrad.trees` flattens.

    A tree is a leaf, None, or a tuple, list, dict, OrderedDict, named tuple (`Pair`) or dataclass (`DrawnRecord`) of trees; it has about
    `max_leaves` leaves at most. Without `empty` it has one at least. They shrink to a single leaf.

    Raises ValueError if not even one leaf is allowed.

    >>> from hypothesis import find, strategies as st
    >>> find(pytrees(st.integers(0, 9), empty=False), lambda tree: isinstance(tree, Pair) and tree.second == 2)
    Pair(first=0, second=2)
    """
    st = require_hypothesis().strategies
    if max_leaves < 1:
        raise ValueError(f"pytrees: max_leaves is {max_leaves}; a tree has one leaf or more")

    def branches(below: Any) -> Any:
        rows = st.lists(below, max_size=3)
        named = rows.map(lambda row: list(zip(KEYS, row)))
        return st.one_of(rows.map(tuple), rows, named.map(dict), st.builds(Pair, below, below), named.map(OrderedDict),
                         st.builds(DrawnRecord, below, below))

    trees = st.recursive(st.one_of(leaves, st.none()) if empty else leaves, branches, max_leaves=max_leaves)
    return trees if empty else st.tuples(trees, leaves).map(lambda both: both[0] if flatten(both[0])[0] else both[1])
