"""Strategies for axes, permutations and index expressions, valid for the shape they are drawn for; and for trees of values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.testing.strategies.arrays import require_hypothesis

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from symgrad.trees import flatten

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ARRAYS = ((1,), (2,), (3,), (2, 1), (2, 2), (0,))  # shapes of integer arrays in an index


def axes(ndim: int, *, several: bool = True, negative: bool = True, empty: bool = False) -> SearchStrategy[int | tuple[int, ...]]:
    """One axis of an array with `ndim` dimensions, or a tuple of different ones in any order, as reductions take them.

    An axis k is written as k or, where `negative`, as k - ndim. Without `several` there are no tuples; with `empty` there is the empty one.
    For a 0-d array only the empty tuple is drawn, whatever the options are. They shrink to 0, and to short tuples.

    Raises ValueError for a negative number of dimensions.

    >>> from hypothesis import find
    >>> find(axes(3), lambda axis: isinstance(axis, tuple) and len(axis) == 2)
    (0, 1)
    """
    st = require_hypothesis().strategies
    if ndim < 0:
        raise ValueError(f"axes: an array has no {ndim} dimensions")
    if not ndim:
        return st.just(())
    sign = st.sampled_from((0, ndim)) if negative else st.just(0)

    def written(axis: int) -> Any:
        return sign.map(lambda down: axis - down)

    one = st.integers(0, ndim - 1).flatmap(written)
    if not several:
        return one
    kept = st.lists(st.integers(0, ndim - 1), unique=True, min_size=0 if empty else 1, max_size=ndim)
    return st.one_of(one, kept.flatmap(lambda row: st.tuples(*map(written, row))))


def permutations(ndim: int, *, negative: bool = False) -> SearchStrategy[tuple[int, ...]]:
    """The axes of an array with `ndim` dimensions in any order, as `permute` takes them; they shrink to 0, 1, 2, ...

    Where `negative`, some axes k are written as k - ndim. Raises ValueError for a negative number of dimensions.

    >>> from hypothesis import find
    >>> find(permutations(2), lambda order: order[0] == 1)
    (1, 0)
    """
    st = require_hypothesis().strategies
    if ndim < 0:
        raise ValueError(f"permutations: an array has no {ndim} dimensions")
    order = st.permutations(range(ndim)).map(tuple)
    if not negative or not ndim:
        return order
    downs = st.tuples(*[st.sampled_from((0, ndim))] * ndim)
    return st.tuples(order, downs).map(lambda both: tuple(map(operator.sub, *both)))


def indices(shape: Sequence[int], *, advanced: bool = True, new_axes: bool = True, negative_steps: bool = False) -> SearchStrategy[Any]:
    """A strategy for index expressions: x[index] is valid for an array x of the shape.

    An index is an int, a slice, None, `...`, an array of integers, a boolean mask of one or more axes, or a tuple of these. The integer
    arrays of one index have one shape. Without `advanced` there are no arrays, without `new_axes` no None. Steps of slices
    are negative only with `negative_steps`, since only NumPy takes these. Everything is valid in NumPy, symgrad and PyTorch; if an int
    is next to arrays, NumPy may order the axes of the result differently from the other two. They shrink to `...`, the whole array.

    Raises ValueError for a negative size.

    >>> from hypothesis import find
    >>> found = find(indices((2, 3)), lambda index: np.zeros((2, 3))[index].shape == (2,))
    >>> found[-1]
    0
    """
    st = require_hypothesis().strategies
    shape = tuple(map(operator.index, shape))
    if any(n < 0 for n in shape):
        raise ValueError(f"indices: {shape} is no shape")

    def slices(n: int) -> Any:
        end = st.one_of(st.none(), st.integers(-n - 1, n + 1))
        steps = [None, 1, 2, 3] + ([-1, -2, -3] if negative_steps else [])
        return st.builds(slice, end, end, st.sampled_from(steps))

    def arrays(n: int, of: tuple[int, ...]) -> Any:
        count = int(np.prod(of))
        return st.lists(st.integers(-n, max(n - 1, 0)), min_size=count, max_size=count).map(lambda row: np.array(row, np.int64).reshape(of))

    def masks(of: tuple[int, ...]) -> Any:
        count = int(np.prod(of))
        return st.lists(st.booleans(), min_size=count, max_size=count).map(lambda row: np.array(row, np.bool_).reshape(of))

    @st.composite
    def drawn(draw: Any) -> Any:
        kind = draw(st.sampled_from(["basic", "arrays", "mask"])) if advanced else "basic"
        of = draw(st.sampled_from(ARRAYS)) if kind == "arrays" else ()
        hidden = draw(st.integers(0, len(shape)))  # axes from here on may follow ...
        left = kind == "mask" and len(shape) > 0
        parts: list[Any] = []
        axis = 0
        while axis < len(shape):
            n = shape[axis]
            if axis == hidden and Ellipsis not in map(_plain, parts) and draw(st.booleans()):
                parts.append(...)
                axis += draw(st.integers(0, len(shape) - axis))
                continue
            if new_axes and draw(st.integers(0, 7)) == 7:
                parts.append(None)
            ways = ["all", "int", "slice"] if n else ["all", "slice"]
            ways += ["array"] if kind == "arrays" and (n or 0 in of) else ["mask"] if left else []
            way = draw(st.sampled_from(ways))
            if way == "mask":
                covered = draw(st.integers(1, len(shape) - axis))
                parts.append(draw(masks(shape[axis:axis + covered])))
                left = False
                axis += covered
                continue
            parts.append(slice(None) if way == "all" else draw(st.integers(-n, n - 1)) if way == "int" else
                         draw(slices(n)) if way == "slice" else draw(arrays(n, of)))
            axis += 1
        if all(_plain(part) in (slice(None), ...) for part in parts):
            return ...
        while _plain(parts[-1]) == slice(None) and Ellipsis not in map(_plain, parts):
            parts.pop()
        return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)

    return drawn()


def _plain(part: Any) -> Any:
    """A part of an index that can be compared: an array is replaced by its type."""
    return np.ndarray if isinstance(part, np.ndarray) else part


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
