"""Numbers that leave the graph: where a function reads a tensor as plain numbers, and whether its graph depends on them.

A number that was read by `float()`, `item()`, `numpy()` or `detach()` enters the graph again as a constant. The graph is then not the function: its
formula and its derivatives are those at one value of the constant. Two calls at neighbouring points show it: the constants of their graphs differ.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import numpy as np

from symgrad.engine.storage.versions import PACKAGE, user_frame
from symgrad.graph.modes import DEFAULT, Recorder, Scope, in_mode, thread
from symgrad.graph.node import TRACKED, Leaf, Node
from symgrad.graph.order import upstream

__all__ = ["FAR", "ArrayNeeded", "Escapes", "departure", "difference", "explaining_arrays", "observing", "refuse_number"]

LIBRARIES = (PACKAGE, *(os.path.join(os.path.dirname(os.path.dirname(np.__file__)), name) for name in ("numpy", "scipy")))
FAR = (7.3, -3.1, 0.013, 1300.0)  # factors from a point to others
SPELLING = {"__float__": "float()", "__int__": "int()", "__complex__": "complex()", "__array__": "numpy.asarray()", "__index__": "an index",
            "_data": ".data", "__contains__": "in", "__copy__": "copy.copy()", "__deepcopy__": "copy.deepcopy()", "__reduce_ex__": "pickle",
            "__format__": "a format string", "__repr__": "repr()", "__str__": "str()"}


VALUES = os.path.join(PACKAGE, "methods", "values.py")
REFUSALS = {"Can't call numpy() on Tensor that requires grad": "has a graph, since the derivative is differentiated again",
            "__array_ufunc__": "is no array", "no op computes it for": "is no array",
            "vmap: the plain array": "is a batch, with a value for each member"}


class ArrayNeeded(TypeError, RuntimeError):
    """The error for a rule that gives NumPy a tensor that is no array: one with a graph, or one of a batch."""


class explaining_arrays(Scope):
    """The scope of a user's rule: NumPy's error for a tensor that is no array becomes `ArrayNeeded`, with the line of the rule and the remedy.

    Where the rule is recorded, numbers of its tensors are refused: as constants they would lose their derivatives. Not so with `numbers`, for
    rules that are watched otherwise.
    """

    __slots__ = ()

    def __init__(self, numbers: bool = False) -> None:
        super().__init__(rule=not numbers)

    def __enter__(self) -> None:
        """Enter the mode of a recorded rule."""
        if thread.modes.grad:
            super().__enter__()

    def __exit__(self, kind: Any = None, *exception: Any) -> None:
        """Leave the mode, and explain an error."""
        super().__exit__(kind, *exception)
        error, trace = exception or (None, None)
        if not isinstance(error, (TypeError, RuntimeError)) or isinstance(error, ArrayNeeded):
            return
        why = next((why for words, why in REFUSALS.items() if words in str(error)), None)
        if why is not None:
            own = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(LIBRARIES)]
            place = f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else "a rule"
            raise ArrayNeeded(f"{place}\n    this rule calls NumPy with a tensor that {why}. Call symgrad's functions, or declare the NumPy function "
                              f"with symgrad.func.foreign, which takes such tensors") from error


def refuse_number(tensor: Any) -> None:
    """Refuse the number of a tensor with a graph for the lines of a user's rule; the library's own lines read numbers to check them."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == VALUES:
        frame = frame.f_back
    if tensor._node.flags & TRACKED and not frame.f_code.co_filename.startswith(PACKAGE):
        line = traceback.extract_stack(frame, 1)[0]
        raise ArrayNeeded(f"{line.filename}, line {line.lineno}: {line.line}\n    this rule makes a plain number of a tensor that has a graph, since "
                          f"the derivative is differentiated again: the number would be a constant there. Compute with the tensor, or write "
                          f".detach() before a number that only decides what is done")


class Escapes(Recorder):
    """An observer that notes each line at which a tensor with a graph is read as plain numbers, and the truth value of each `if`."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}
        self.truths: list[bool] = []

    def escape(self, tensor: Any, shared: bool = False) -> None:
        """Note the conversion and its line."""
        node = tensor._node
        if thread.modes.recorder is DEFAULT and node is not None and node.flags & TRACKED:
            outside = user_frame(1)
            inside: Any = sys._getframe(1)
            while inside.f_back is not outside and inside.f_back is not None:
                inside = inside.f_back
            name = inside.f_code.co_name
            self.lines[f"{SPELLING.get(name, name + '()')} at {outside.f_code.co_filename}:{outside.f_lineno}"] = None

    def detach(self, tensor: Any) -> None:
        """Note a tensor that is detached."""
        self.escape(tensor)

    def branch(self, node: Node, truth: bool) -> None:
        """Keep the truth value."""
        self.truths.append(truth)

    def __str__(self) -> str:
        """The conversions and their lines."""
        return ", ".join(self.lines) or "a computation without grad mode, or by grad without create_graph"


@contextmanager
def observing() -> Iterator[Escapes]:
    """A context in which the graph keeps all values, and what leaves it is noted."""
    found = Escapes()
    with in_mode(keep_values=True, observers=(*thread.modes.observers, found)):
        yield found


def departure(here: Any, call: Callable[[list[np.ndarray]], Any], far: bool = False) -> str | None:
    """How the graph of a call differs from the function around its point, by further calls beside it; None where it is the function.

    A call has the node of its result as `root`, those of its inputs as `nodes`, and its `escapes`.

    A constant of the graph that changes when the inputs move a little is a number that left the graph. With `far`, where numbers left it, the
    graphs of far points are compared, too: a whole number changes only there. Where an `if` goes another way, nothing is said.
    """
    def found(places: Iterable[list[np.ndarray]]) -> Iterator[str | None]:
        for point in places:
            try:
                other = call(point)
            except Exception:  # whatever a user's function raises outside its domain
                continue
            if other.escapes.truths == here.escapes.truths:
                yield difference(here, other)

    values = [leaf.value for leaf in here.nodes]
    beside = list(found([_beside(v, sign) for v in values] for sign in (1, -1)))
    how = beside[0] if beside and None not in beside else None
    if how is None and far and here.escapes.lines:
        how = next(filter(None, found([(factor * v).astype(v.dtype) for v in values] for factor in FAR)), None)
    return how and f"{how}, because numbers leave the graph by {here.escapes}"


def _beside(value: np.ndarray, sign: int) -> np.ndarray:
    """A point near another: half of the digits are the same."""
    step = float(np.finfo(value.dtype).eps) ** 0.5 if value.dtype.kind == "f" else 2.0**-4
    shares = 0.5 + np.modf((1 + np.arange(value.size)) * 0.6180339887498949)[0].reshape(value.shape) / 2
    return (value + sign * step * shares * np.where(value == 0, 1.0, value)).astype(value.dtype)


def difference(first: Any, second: Any) -> str | None:
    """What differs in the graphs of two calls but for the values of the inputs; None if nothing does."""
    one, other = upstream([first.root]), upstream([second.root])
    places: list[dict[Any, Any]] = [{None: None} | {leaf: i for i, leaf in enumerate(call.nodes)} for call in (first, second)]
    count = len(first.nodes)
    one, other = ([n for n in nodes if n not in known] for nodes, known in zip((one, other), places))
    for k, (a, b) in enumerate(zip(one, other)):
        if _name(a) != _name(b):
            return f"the operation {_name(a)} is {_name(b)} at another point"
        if [places[0].get(p) for p in a.parents] != [places[1].get(p) for p in b.parents]:
            return f"the operation {_name(a)} has other operands at another point"
        if isinstance(a, Leaf):
            if not _same(a.value, b.value):
                return "a tensor that requires grad has another value at another point"
        elif not all(map(_same, _constants(a), _constants(b))):
            return f"a constant of the operation {_name(a)} changes with the inputs"
        places[0][a] = places[1][b] = count + k
    if len(one) != len(other):
        return f"there are {len(one)} operations at one point and {len(other)} at another"
    return None


def _constants(node: Node) -> list[Any]:
    """What an operation was called with that has no node; the level of a vmap, which is a number of each call, left out."""
    args, count = node.args or (), len(node.parents)
    operands = [x for p, x in zip(node.parents, args) if p is None]
    return operands + [x for p, x in zip_longest(node.op.parameters, args[count:]) if p is None or p.name != "level"]


def _name(node: Node) -> str:
    return "of a leaf" if isinstance(node, Leaf) else node.op.name


def _same(a: Any, b: Any) -> bool:
    """Whether two constants are the same: of truth values, which choose a branch, and of objects that are not numbers, the kind alone."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and (a.dtype == bool or a.tobytes() == b.tobytes())
    return a == b or a != a and b != b if isinstance(a, (int, float, complex, str, slice)) else True
