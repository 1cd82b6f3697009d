"""The library's one cache: programs and analyses of graphs by signature, bounded in bytes.

A signature is independent of the values of a graph: a program is valid for every graph with its signature.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import Node
from symgrad.graph.op import Op

BUDGET = 256_000_000  # bytes
LEAST = 1000  # bytes that every entry counts


class Cache:
    """A least-recently-used cache of at most `budget` bytes. A value larger than a quarter of that is not stored.

    Threads may share a cache: at worst a value is computed twice.
    """

    def __init__(self, budget: int):
        self._entries: dict[Any, list[Any]] = {}  # for each key [value, bytes, time of last use]
        self.budget, self._now, self.nbytes = budget, itertools.count().__next__, 0

    def get(self, key: Any) -> Any:
        entry = self._entries.get(key)  # a single lookup, since the hash of a long key dominates the cost
        if entry is None:
            return None
        entry[2] = self._now()
        return entry[0]

    def put(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        nbytes += LEAST
        if nbytes <= self.budget // 4:
            self._entries[key] = [value, nbytes, self._now()]
            self.nbytes = sum([entry[1] for entry in list(self._entries.values())])
            if self.nbytes > self.budget:
                self._shrink()
        return value

    def _shrink(self) -> None:
        """Remove the entries that were not used for longest, until a tenth of the budget is free."""
        for key, (_, nbytes, _) in sorted(list(self._entries.items()), key=lambda item: item[1][2]):
            if self.nbytes <= self.budget * 9 // 10:
                break
            if self._entries.pop(key, None) is not None:
                self.nbytes -= nbytes

    def discard(self, key: Any) -> None:
        self._entries.pop(key, None)

    def values(self) -> list[Any]:
        """The stored values, the most recently used last."""
        return [entry[0] for entry in sorted(list(self._entries.values()), key=lambda entry: entry[2])]

    def clear(self) -> None:
        self._entries.clear()


programs = Cache(BUDGET)


SMALL = 4096  # larger index arrays are not compared by their elements
PLAIN = frozenset((int, float, bool, str, type(None)))


def signature_of(inputs: Sequence[Node], path: Sequence[Node], root: Node | None) -> Any:
    """The signature of a graph: its ops, their parameters, the edges, and all shapes and dtypes; None if an argument cannot be compared."""
    at: dict[Node | None, int] = {node: -1 - i for i, node in enumerate(inputs)}
    at.update(zip(path, range(len(path))))
    out: list[Any] = [_shapes(inputs)]
    append, get = out.append, at.get  # those of the inputs and ops determine the shapes and dtypes of all values
    try:
        for node in path:
            args: Any = node.args
            cls: Any = type(node)
            if type(cls.op) is not Op:  # a FunctionNode, whose op belongs to one call
                return None
            append(cls)  # the class determines the op, and whether passes are guarded
            i = 0
            for p in node.parents:
                k = get(p)
                append(_constant(args[i]) if k is None else k)
                i += 1
            for a in args[i:]:
                if (kind := type(a)) in PLAIN:
                    append(kind)
                    append(a)
                else:
                    append(_key(a))
        append(get(root))
    except (TypeError, AttributeError, IndexError):  # a node of a derivative has edges and no arguments
        return None
    return tuple(out)


def _shapes(inputs: Sequence[Node]) -> tuple:
    return tuple([(x.value.shape, x.value.dtype) for x in inputs])


def _constant(x: Any) -> Any:
    """The entry of a constant in a signature: the shape and dtype of an array, and the value of a number."""
    return (x.shape, x.dtype) if hasattr(x, "shape") else (type(x), x)


def _key(x: Any) -> Any:
    """A hashable key of a parameter."""
    kind = type(x)
    if kind is slice:
        return slice, x.start, x.stop, x.step
    if kind is tuple or kind is list:
        return (kind, *map(_key, x))
    if kind is np.ndarray:
        if x.nbytes > SMALL:
            raise TypeError("too large to compare")
        return x.shape, x.dtype, x.tobytes()
    if kind.__hash__ is object.__hash__:  # type: ignore[comparison-overlap]  # which equals nothing but itself, and would be kept alive
        raise TypeError("nothing to compare by")
    hash(x)  # raises TypeError
    return kind, x
