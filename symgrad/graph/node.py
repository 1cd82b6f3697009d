"""The graph: nodes with a value, edges and a place in time.

A node holds what its rule was called with and its value; it never holds a Tensor, so a graph that nobody looks at
is freed at once, by reference counts alone. Creation order is a topological order: `sequence_nr` is the only schedule.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from symgrad.graph.op import Op

__all__ = ["BARRED", "DETACHED", "FREED", "GRADIENT", "HOOKED", "INFERENCE", "Leaf", "Link", "NAMED", "RELEASED", "IN_FORWARD", "TANGENT", "TRACKED",
           "Node", "Released", "all_threads", "choosing", "freed", "make_node", "next_sequence", "node_class", "released", "tied", "upstream"]

GRADIENT, NAMED, RELEASED, TANGENT, IN_FORWARD, DETACHED, HOOKED = 1, 2, 4, 8, 16, 32, 64
TRACKED = GRADIENT | NAMED | TANGENT  # why an op is recorded
SMALL = 4096  # bytes; a value no larger than this is not worth forgetting
next_sequence = itertools.count(1).__next__


class _AllThreads:
    """What all threads share."""

    written = 0  # the place in time of the newest write into the memory of a tensor
    hooked = False  # whether a hook was ever attached to a node
    anomaly: Any = None  # anomaly mode, while it is on: a recorder, as whose observer each thread has it


all_threads = _AllThreads()


def make_node(op: Op, args: tuple, parents: tuple, value: Any, flags: int) -> Node:
    """A node, off the hot path."""
    return node_class(op)(args, parents, value, flags)


class _Freed:
    """In place of the value of a node that a pullback has used up."""

    __slots__ = ()

    @property
    def shape(self) -> Any:
        raise RuntimeError(FREED)


FREED = ("Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
         "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
         "backward through the graph a second time or if you need to access saved tensors after calling backward.")
freed = _Freed()


class Released:
    """What is left of a value after the graph that held it was freed: its shape and dtype."""

    __slots__ = ("shape", "dtype", "ndim")
    nbytes = 0

    def __init__(self, value: Any):
        self.shape, self.dtype, self.ndim = value.shape, value.dtype, value.ndim

    def conjugate(self) -> Released:
        """A pullback of complex values conjugates whatever a node holds."""
        return self


_shapes: dict[tuple, Released] = {}


def released(value: Any) -> Released:
    """The one object that stands for all forgotten values of this shape and dtype."""
    key = value.shape, value.dtype
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) > 1000:
            _shapes.clear()
        found = _shapes[key] = Released(value)
    return found


class Node:
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

    def __repr__(self) -> str:
        return f"<{type(self.titled()).__name__} object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        """The position of the node in the order of recording."""
        return self.sequence_nr

    def name(self) -> str:
        """The node's name in torch's spelling, such as `AddBackward0`."""
        name = type(self.titled()).__name__
        return f"torch::autograd::{name}" if name in PREFIXED else name

    def short_name(self) -> str:
        """The name of the operation in torch's errors, such as `Add`, or `Sum1` for `SumBackward1`."""
        name, found, number = self.name().rpartition("Backward")
        return name + number.removeprefix("0") if found and (number.isdigit() or not number) else name + found + number

    def titled(self) -> Node:
        """The node itself, under the name that torch gives to a call of this kind."""
        cls = type(self)
        names = getattr(cls, "op", None) and self.op.names
        name = names(self) if names and self.args is not None else None
        if name is not None and name != cls.__name__:
            self.__class__ = _titled(cls, name)  # type: ignore[arg-type]
        return self

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes whose outputs this one consumed, with the number of the output; None for a constant."""
        return tuple((None, 0) if p is None or not p.requires_grad else (p.seen, p.output_nr) for p in self.parents)

    @property
    def output_nr(self) -> int:
        """Which output of `origin` this node stands for."""
        return 0

    @property
    def origin(self) -> Node:
        """The node that this one is a part of."""
        return self

    @property
    def seen(self) -> Any:
        """What a person should see in place of this node."""
        origin = self.origin
        return self.titled() if origin is self else None if origin is None else origin.seen

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
PREFIXED = ("AccumulateGrad", "CopySlices", "CopyBackwards", "NotImplemented")  # whose full name in torch has a namespace


class Link(Node):
    """A derivative, tied to what it was taken by: so the derivative of a constant derivative is zero, not an error.

    Its first parent is where the value came from (None if nothing was recorded), the others are the inputs.
    """

    __slots__ = ()

    def __init__(self, value: Any, source: Node | None, inputs: Sequence[Node]):
        super().__init__((), (source, *inputs), value, GRADIENT)
        for p in self.parents:
            self.flags |= 0 if p is None else p.flags & (NAMED | TANGENT)

    op = Op("link", "linear", lambda xp, source, *inputs: source, lambda xp, g, y, args, needs: (g,) + (None,) * (len(needs) - 1),
            lambda xp, tangents, y, args: tangents[0], None, (), (), "ConstantBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = chooses = False

    @property
    def origin(self) -> Node:
        return self if self.parents[0] is None else self.parents[0].origin

    def release(self) -> None:
        """Nothing is held here but the value."""


Link.__name__ = Link.__qualname__ = "ConstantBackward0"


def tied(inputs: Sequence[Node]) -> Sequence[Node]:
    """What the derivatives by these inputs are linked to: one node for all of them, so that n derivatives have n edges and not n²."""
    return inputs if len(inputs) < 2 else (Link(_ZERO, None, inputs),)


_ZERO = np.float64(0.0)


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


@functools.cache
def _titled(cls: type[Node], name: str) -> type[Node]:
    return type(name, (cls,), {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__})




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
                 "chooses": op.chooses, "__doc__": op.doc, "__module__": "symgrad"}
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


def upstream(roots: Sequence[Node | None], differentiable: bool = False, stop: Container[Node] = ()) -> list[Node]:
    """Every node the roots depend on, oldest first; without recursion. `differentiable` keeps to edges that carry a gradient.

    What nodes in `stop` depend on is left out, and they too.
    """
    seen: set[Any] = {None}
    stack: list[Any] = [*roots]
    while stack:
        node = stack.pop()
        if node in seen or differentiable and not node.flags & GRADIENT or stop and node in stop:
            continue
        seen.add(node)
        stack += node.parents
    seen.discard(None)
    return sorted(seen, key=_sequence)


_sequence = operator.attrgetter("sequence_nr")
