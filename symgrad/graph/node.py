"""The graph: nodes with a value, edges and a sequence number.

A node holds what its rule was called with and its value; it never holds a Tensor, so a graph that nobody looks at
is freed at once, by reference counts alone. Creation order is a topological order: `sequence_nr` is the only schedule.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from typing import Any

from symgrad.graph.freed import freed, released
from symgrad.graph.names import NamedAsInTorch
from symgrad.graph.op import Op

__all__ = ["BARRED", "DETACHED", "GRADIENT", "HOOKED", "INFERENCE", "Leaf", "NAMED", "RELEASED", "IN_FORWARD", "TANGENT", "TRACKED", "Node",
           "all_threads", "choosing", "make_node", "next_sequence", "node_class"]

GRADIENT, NAMED, RELEASED, TANGENT, IN_FORWARD, DETACHED, HOOKED = 1, 2, 4, 8, 16, 32, 64
TRACKED = GRADIENT | NAMED | TANGENT  # why an op is recorded
SMALL = 4096  # bytes; a value no larger than this is not worth forgetting
next_sequence = itertools.count(1).__next__


class _AllThreads:
    """What all threads share."""

    written = 0  # the sequence number of the newest write into the memory of a tensor
    hooked = False  # whether a hook was ever attached to a node
    anomaly: Any = None  # anomaly mode, while it is on: a recorder, as whose observer each thread has it


all_threads = _AllThreads()


def make_node(op: Op, args: tuple, parents: tuple, value: Any, flags: int) -> Node:
    """A node, off the hot path."""
    return node_class(op)(args, parents, value, flags)


class Node(NamedAsInTorch):
    """One recorded operation; `type(node)` is named after it, in torch's spelling.

    `args` are the values the rule was called with (tensors first, then parameters), `parents` the nodes that produced the
    tensors (None for a constant), `value` what came out. `flags` says why the node was recorded: GRADIENT because a leaf
    that requires grad is upstream, NAMED because a named one is; RELEASED once a pullback has used it up, HOOKED once `hooks` is there.
    """

    __slots__ = ("args", "parents", "value", "sequence_nr", "flags", "hooks", "record", "__weakref__")
    op: Op
    vjp: Any
    broadcasts: bool
    chooses = False
    calls_code = False  # whether its rule may call a user's code
    saves: bool
    outlet: int | None = None  # which output of its only parent this node is, if it is nothing else
    along: Any = None  # how a number's tangent is carried along, where the forward kept what makes that cheap
    protects = False  # whether its rule reads values that must not be written meanwhile
    silent = False  # whether a cotangent of None is nothing at all, where it is zero otherwise
    args: tuple | None
    parents: tuple[Node | None, ...]
    value: Any
    sequence_nr: int
    flags: int
    hooks: Any
    record: Any  # who called the operation, where that is noted

    def __init__(self, args: tuple | None, parents: tuple[Node | None, ...], value: Any, flags: int):
        self.args = args
        self.parents = parents
        self.value = value
        self.flags = flags
        self.sequence_nr = next_sequence()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through this node."""
        return bool(self.flags & GRADIENT)

    @property
    def output_nr(self) -> int:
        """Which output of `origin` this node stands for."""
        return 0

    @property
    def origin(self) -> Node:
        """The node that this one is a part of."""
        return self

    def current(self, always: bool = False) -> Node | None:
        """The node itself; for what stands in place of a stale view's node, the node that it has now."""
        return self

    def undefined(self) -> Any:
        """What a silent node is given where no cotangent arrives."""
        raise NotImplementedError

    def release(self) -> None:
        """Forget values once a pullback has run, where the rule needs only shapes; a graph with names keeps them for its formulas.

        A node whose rule saves values is emptied by the pullback itself.
        """
        if self.flags & NAMED or self.args is None:
            return
        value = self.value
        if value.nbytes > SMALL:
            if self.op.kind == "elementwise":
                self.args = None
            else:
                count = len(self.parents)
                self.args = tuple(released(a) if hasattr(a, "shape") else a for a in self.args[:count]) + self.args[count:]
            self.value = released(value)


class Leaf(Node):
    """The end of the graph at a tensor the user made: it accumulates the gradient, and carries the symbol.

    It refers to its tensor weakly, since the tensor holds it.
    """

    __slots__ = ("reference", "symbol", "conditions")
    conditions: list[Any]

    def __init__(self, tensor: Any, value: Any, requires_grad: bool, symbol: Any = None):
        super().__init__((), (), value, GRADIENT * requires_grad | NAMED * (symbol is not None))
        self.reference, self.symbol, self.conditions = weakref.ref(tensor), symbol, []

    @property
    def variable(self) -> Any:
        """The tensor, while it is alive and asks for gradients here.

        Raises RuntimeError where it became the result of an operation meanwhile.
        """
        t = self.reference()
        if t is None or t._node is self:
            return t
        if t.requires_grad and not t.is_leaf:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        return None

    def release(self) -> None:
        """A leaf keeps its value: it belongs to the tensor."""


class _Barred(int):
    """The flags of what no graph may hold: none, and with any others still these."""

    def _same(self, _: Any) -> _Barred:
        return self

    __or__ = __ror__ = __and__ = __rand__ = _same  # type: ignore[assignment]


BARRED = _Barred()
INFERENCE = Node((), (), None, BARRED)  # in place of the node of a tensor that was made in inference mode
Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


_classes: dict[tuple[Op, bool], type[Node]] = {}


def _index(self: Node) -> tuple:
    """The parts of the index that a node was called with."""
    at = next(i for i, p in enumerate(self.op.parameters) if p.name == "index") + len(self.parents)
    index = self.args[at]  # type: ignore[index]
    return index if isinstance(index, tuple) else (index,)


def _release_saved(self: Node) -> None:
    """Forget what the pullback into the arguments that asked for it has used up, where others would not have needed anything."""
    needed = {names for p, names in zip(self.parents, self.op.saved or ()) if p is not None and p.flags & GRADIENT} - {""}
    if self.args is None or not needed or needed == {"index"} and not any(hasattr(part, "__len__") for part in _index(self)):
        Node.release(self)
        return
    self.flags |= RELEASED
    if not self.flags & NAMED:
        self.args, self.value = None, freed


@functools.cache
def choosing(cls: type[Node]) -> type[Node]:
    """The class of nodes of an op that were recorded where a pass treats 0 · ∞ as 0: a pass over these does so, too."""
    words = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__, "chooses": True}
    return cls if cls.chooses else type(cls.__name__, (cls,), words)


def node_class(op: Op, broadcasts: bool | None = None) -> type[Node]:
    """The class of the nodes of one op: its name is what `grad_fn` shows.

    `broadcasts` False is for nodes whose tensors are known to have one shape, so that no cotangent needs to be summed.
    """
    if broadcasts is None:
        broadcasts = op.arity != 1 or any([p.name == "index" for p in op.parameters])  # an index may differ between members that share an input
    key = op, broadcasts
    found = _classes.get(key)
    if found is None:
        vjp = None if op.vjp is None else staticmethod(op.vjp)
        words = {"__slots__": (), "op": op, "vjp": vjp, "broadcasts": key[1], "saves": op.saves, "protects": op.saves and op.kind != "linear",
                 "chooses": op.chooses, "calls_code": op.kind == "function", "__doc__": op.doc, "__module__": "symgrad"}
        if op.saves and op.saved is not None and (not all(op.saved) or "index" in op.saved):
            words |= {"saves": False, "release": _release_saved}
        if op.view == "many":
            words["output_nr"] = property(lambda self: self.args[-1])
        indices = ("indices",) if op.saved is not None and "index" in op.saved else ()
        for name in ("self" if n == "input" else n for n in (*op.argument_names, "result", *(p.name for p in op.parameters), *indices)):
            for prefix in ("_saved_", "_raw_saved_"):
                words[prefix + name] = property(operator.methodcaller("saved_as", prefix + name))
        found = type(op.node_name, (Node,), words)
        if op.kind != "function":  # those are of one call each
            _classes[key] = found
    return found


