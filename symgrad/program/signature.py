"""Forms: what a recorded graph is without its numbers. What was found out about one graph holds for every other of the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import Node
from symgrad.graph.op import Op

__all__ = ["form_of", "has_form"]

SMALL = 4096  # bytes of an index that is compared by its elements
PLAIN = frozenset((int, float, bool, str, type(None)))


def form_of(inputs: Sequence[Node], path: Sequence[Node], root: Node | None) -> Any:
    """The ops, their parameters, what is wired to what, and all shapes and dtypes; None where a parameter cannot be compared."""
    at: dict[Node | None, int] = {node: -1 - i for i, node in enumerate(inputs)}
    at.update(zip(path, range(len(path))))
    out: list[Any] = [_shapes(inputs)]
    note, get = out.append, at.get  # the shapes and dtypes of values follow from these
    try:
        for node in path:
            args: Any = node.args
            cls: Any = type(node)
            if type(cls.op) is not Op:  # that of one call of a Function
                return None
            note(cls)  # which tells the op, and whether passes are guarded
            i = 0
            for p in node.parents:
                k = get(p)
                note(_constant(args[i]) if k is None else k)
                i += 1
            for a in args[i:]:
                if (kind := type(a)) in PLAIN:
                    note(kind)
                    note(a)
                else:
                    note(_key(a))
        note(get(root))
        form = tuple(out)
        hash(form)
    except (TypeError, AttributeError):
        return None
    return form


def has_form(form: Any, inputs: Sequence[Node], path: Sequence[Node], root: Node | None) -> bool:
    """Whether `form_of` would say so of a graph, which is read without writing that down; where in doubt, not."""
    if form[0] != _shapes(inputs):
        return False
    at, j = [*path, *reversed(inputs)], 1
    try:
        for node in path:
            args: Any = node.args
            if form[j] is not type(node):
                return False
            j += 1
            i = 0
            for p in node.parents:
                k = form[j]
                if type(k) is int:
                    if at[k] is not p:
                        return False
                elif p is not None and p in at or k != _constant(args[i]):
                    return False
                i += 1
                j += 1
            for a in args[i:]:
                if (kind := type(a)) in PLAIN:
                    if form[j] is not kind or form[j + 1] != a:
                        return False
                    j += 2
                elif form[j] == _key(a):
                    j += 1
                else:
                    return False
        return j + 1 == len(form) and form[j] is not None and at[form[j]] is root
    except (TypeError, AttributeError, IndexError):
        return False


def _shapes(inputs: Sequence[Node]) -> tuple:
    return tuple([(x.value.shape, x.value.dtype) for x in inputs])


def _constant(x: Any) -> Any:
    """What the form says of a constant: the shape and dtype of an array, and a number itself."""
    return (x.shape, x.dtype) if hasattr(x, "shape") else (type(x), x)


def _key(x: Any) -> Any:
    """A parameter as something that can be compared and hashed."""
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
    return kind, x
