"""The graph: nodes with a value, edges and a sequence number.

A node holds the arguments of its rule and its value, but no Tensor, so that an unreferenced graph is freed at once by
reference counts alone. Creation order is a topological order: `sequence_nr` is the only schedule.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.graph.classes import blanks, derived, specialized
from symgrad.graph.freed import freed, released
from symgrad.graph.names import NamedAsInTorch
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.powers import BASES, LENGTHS, note_class, smooth_power

GRADIENT, NAMED, RELEASED, TANGENT, IN_FORWARD, DETACHED, HOOKED, SELECTED, CALLS, PACKED, PARTED = 1, 2, 4, 8, 16, 32, 64, 256, 512, 1024, 2048
TRANSFORMED = 128  # below 256, since Python makes no new object for small integers
REASONS = GRADIENT | NAMED | TANGENT  # the flags for which an op is recorded
TRACKED = REASONS | SELECTED | CALLS | TRANSFORMED  # the flags that a node inherits
HELD = 2  # saved values that tell which elements do not reach the outputs of a guarded pass
SMALL = 4096  # bytes; smaller values are not worth releasing
sequence = itertools.count(1)  # `next` of it takes less time than a call of its method
next_sequence = sequence.__next__


class _AllThreads:
    """State shared by all threads."""

    written = 0  # the sequence number of the newest write to any tensor
    hooked = False  # whether a hook was ever attached to a node
    packed = False  # whether a saved tensor was ever packed by a hook


all_threads = _AllThreads()


def make_node(op: Op, args: tuple, parents: tuple, value: Any, flags: int) -> Node:
    """A node of an op."""
    if op.exponent is not None and type(parents[0]) in BASES and (node := _smooth_power(op, args, parents, value, flags)) is not None:
        return node
    return node_class(op)(args, parents, value, flags)


class Node(NamedAsInTorch):
    """One recorded operation; the name of its class is torch's name of the node.

    `args` are the arguments of the rule (tensors first, then parameters), `parents` the nodes of the tensors (None for a constant) and `value`
    the result. `flags`: GRADIENT if a leaf that requires grad is upstream, NAMED if a leaf with a symbol is, RELEASED after a pullback freed the
    saved values, HOOKED if `hooks` is set, PACKED if hooks packed saved tensors, SELECTED if this node's op or one upstream selects, CALLS
    if the rule of one of them may call a user's code, PARTED if it is an output of a part of a batch, TRANSFORMED if an argument of a transform is
    upstream.
    """

    __slots__ = ("args", "parents", "value", "sequence_nr", "flags", "hooks", "record", "output_of", "__weakref__")
    op: Op
    vjp: Any
    broadcasts: bool
    selects = False
    calls_code = False  # whether it is a call of a Function, whose rule is a user's code
    outside = False  # whether its rules may call a user's code, so that they run outside of the error state of the library
    saves: int | None  # whether the rule reads saved values, so that a pullback empties the node, at its end if HELD; None if `release` decides
    output_index: int | None = None  # the output number, if this node is only one output of its only parent
    residual_jvp: Any = None  # the numeric jvp from a residual of the forward, if it kept one
    reads_saved = False  # whether the rule reads saved values, whose versions must be verified
    keeps_index = False  # whether it has a copy of its index
    kept: Any = None  # what the value of a call of many numbers keeps for its pullback
    by_numbers: Any = None  # the pullbacks of the class as flat functions, written on first use
    by_tensors: Any = None
    shares_memory = False  # whether its tensor has the memory of its parent's tensor without being a view of it
    in_inference = False  # whether it stands for an inference tensor
    finite = False  # whether the factors of the cotangents are finite if the value is not NaN, so that none comes from elements not selected
    skips_undefined = False  # whether an undefined cotangent passes by the second parent without a look at what was saved
    none_is_undefined = False  # whether a cotangent of None is undefined; otherwise it is zero
    args: tuple | None
    parents: tuple[Node | None, ...]
    value: Any
    sequence_nr: int
    flags: int
    hooks: Any
    record: Any  # the line of user code, if anomaly mode recorded it
    output_of: tuple[Node, int]  # for an output of a call that has several: the node of the whole call, and the output number

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object: graphs are neither copied nor stored")

    def __init_subclass__(cls) -> None:
        cls.by_numbers = cls.by_tensors = None

    def __init__(self, args: tuple | None, parents: tuple[Node | None, ...], value: Any, flags: int):
        self.args = args
        self.parents = parents
        self.value = value
        self.flags = flags
        self.sequence_nr = next_sequence()

    def __lt__(self, other: Node) -> bool:
        """The order of nodes of one sequence number in a pullback's heap: any, since they are a node with hooks and its copy without."""
        return True

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through this node."""
        return bool(self.flags & GRADIENT)

    @property
    def output_nr(self) -> int:
        """Which output of `origin` this node stands for."""
        return self.output_of[1] if hasattr(self, "output_of") else 0

    @property
    def origin(self) -> Node:
        """The node of the whole call, of which this node is an output."""
        return self.output_of[0] if hasattr(self, "output_of") else self

    def current(self, always: bool = False) -> Node | None:
        """The node itself; for the placeholder of a stale view, the regenerated node."""
        return self

    @property
    def source(self) -> Node | None:
        """The node on which the numbers of a tensor depend: that of the base for a stale view, whose own node may be refused."""
        return self

    def output_node(self, k: int) -> Node:
        """The node of output number k.

        Raises RuntimeError if there is none.
        """
        if k:
            raise RuntimeError(f"{self.name()} has no output number {k}: it has one output")
        return self

    def undefined(self) -> Any:
        """The cotangent passed to the rule in place of an undefined gradient, if `none_is_undefined`."""
        raise NotImplementedError

    def release(self) -> None:
        """Release values after a pullback, for a rule that needs only shapes; a NAMED node keeps them for its formula.

        The pullback itself empties a node whose rule saves values.
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
    """The node of a leaf tensor: it accumulates the gradient and holds the symbol.

    It refers to its tensor weakly, since the tensor refers to it.
    """

    __slots__ = ("reference", "symbol", "conditions")
    conditions: list[Any]

    def __init__(self, tensor: Any, value: Any, requires_grad: bool, symbol: Any = None):
        super().__init__((), (), value, GRADIENT * requires_grad | NAMED * (symbol is not None))
        self.reference, self.symbol, self.conditions = weakref.ref(tensor), symbol, []

    @property
    def variable(self) -> Any:
        """The tensor, None if it was freed or its gradients no longer accumulate here.

        Raises RuntimeError if the tensor was written in place and is not a leaf any more.
        """
        t = self.reference()
        if t is None or t._node_slot is self or type(t._node_slot) is Leaf or t._node is self:  # another leaf: the tensor got other memory by set_
            return t
        if t.requires_grad and not t.is_leaf:
            raise RuntimeError("a leaf was written in place after it was used, and is no leaf any more")
        return None

    def release(self) -> None:
        """Keep the value, which belongs to the tensor."""


class _Barred(int):
    """The flags of inference tensors: 0, and `|` and `&` with any other flags return these again, so that the hot path notices them."""

    def _same(self, _: Any) -> _Barred:
        return self

    __or__ = __ror__ = __and__ = __rand__ = _same


BARRED = _Barred()


class InferenceNode(Node):
    """The content of the node slot of inference tensors."""

    __slots__ = ()
    in_inference = True


INFERENCE: Node = InferenceNode((), (), None, BARRED)
Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


_classes: dict[tuple[Op, bool], type[Node]] = {}
NAME_INPUT = ("ConvolutionBackward0",)  # whose first tensor torch calls "input" and not "self"


@functools.cache
def _place_of_index(op: Op) -> int:
    """Which of the parameters of an op is the index."""
    return [p.name for p in op.parameters].index("index")


def _index(self: Node) -> tuple:
    """The index of a node's call as a tuple."""
    index = self.args[_place_of_index(self.op) + len(self.parents)]  # type: ignore[index]
    return index if isinstance(index, tuple) else (index,)


def _release_saved(self: Any) -> None:
    """Release a node some of whose cotangents need no saved values; it counts as released only if one that does was asked for."""
    read = False
    if self.args is not None:
        for p, names in zip(self.parents, self.named_saved):
            if names and p is not None and p.flags & GRADIENT and (names != "index" or any([hasattr(part, "__len__") for part in _index(self)])):
                read = True
                break
    if not read:
        Node.release(self)
        return
    self.flags |= RELEASED
    if not self.flags & NAMED:
        self.args, self.value = None, freed


def _with_own_index(args: tuple, at: int) -> tuple:
    """The arguments with a copy of the index, so that a later write to it does not change a derivative."""
    index = args[at]
    if type(index) is np.ndarray:
        index = index.copy()
    elif type(index) is tuple:
        index = tuple([part.copy() if type(part) is np.ndarray else part for part in index])
    return (*args[:at], index, *args[at + 1:])


def constructor(cls: type[Node]) -> Callable[[tuple, tuple, Any, int], Node]:
    """The function that makes the nodes of a class, as a call of the class does, in less time."""
    allocated = blanks(cls)
    own = SELECTED * cls.selects | CALLS * cls.outside
    if cls.op.exponent is not None:
        op = cls.op

        @specialized
        def make_power(args: tuple, parents: tuple, value: Any, flags: int) -> Node:
            base = type(parents[0])
            if (base in LENGTHS or type(args[-1]) is float and base in BASES) and (
                    node := _smooth_power(op, args, parents, value, flags)) is not None:
                return node
            node = next(allocated)
            node.args = args
            node.parents = parents
            node.value = value
            node.flags = flags
            node.sequence_nr = next(sequence)
            return node

        @specialized
        def make_product(args: tuple, parents: tuple, value: Any, flags: int) -> Node:
            p, q = parents
            if p is q and type(p) in LENGTHS and (node := _smooth_power(op, args, parents, value, flags)) is not None:
                return node
            node = next(allocated)
            node.args = args
            node.parents = parents
            node.value = value
            node.flags = flags
            node.sequence_nr = next(sequence)
            return node

        return make_product if op.name == "mul" else make_power

    if own:
        @specialized
        def make_flagged(args: tuple, parents: tuple, value: Any, flags: int) -> Node:
            node = next(allocated)
            node.args = args
            node.parents = parents
            node.value = value
            node.flags = flags | own
            node.sequence_nr = next(sequence)
            return node

        return make_flagged

    if cls.keeps_index:
        place = _place_of_index(cls.op)

        @specialized
        def make_with_index(args: tuple, parents: tuple, value: Any, flags: int) -> Node:
            node = next(allocated)
            node.args = _with_own_index(args, place + len(parents))
            node.parents = parents
            node.value = value
            node.flags = flags
            node.sequence_nr = next(sequence)
            return node

        return make_with_index

    @specialized
    def make(args: tuple, parents: tuple, value: Any, flags: int) -> Node:
        node = next(allocated)
        node.args = args
        node.parents = parents
        node.value = value
        node.flags = flags
        node.sequence_nr = next(sequence)
        return node

    return make


def _make(name: str, args: tuple, parents: tuple, value: Any, flags: int) -> Node:
    return node_class(REGISTRY[name])(args, parents, value, flags & TRACKED)


def _smooth_power(op: Op, args: tuple, parents: tuple, value: Any, flags: int) -> Node | None:
    """The node of a power with a base that is 0, or may be, if `smooth_power` knows one."""
    found = smooth_power(op, args, parents, _make)
    if found is None:
        return None
    name, args, parents = found
    return node_class(REGISTRY[name])(args, parents, value, flags | parents[0].flags & SELECTED)


@functools.cache
def guarded_class(cls: type[Node]) -> type[Node]:
    """The class for nodes recorded by a guarded pass, one that treats 0 · ∞ as 0: passes over such nodes are guarded, too."""
    saves = HELD if cls.saves is True else cls.saves
    return cls if cls.selects else derived(cls, selects=True, saves=saves)


def node_class(op: Op, broadcasts: bool | None = None) -> type[Node]:
    """The node class of an op, with the name that `grad_fn` shows.

    `broadcasts` False is for nodes whose operands are known to have one shape, so that no cotangent has to be summed.
    """
    if broadcasts is None:
        broadcasts = op.arity != 1 or any([p.name == "index" for p in op.parameters])  # members of a batch may share an input but not the index
    key = op, broadcasts
    found = _classes.get(key)
    if found is None:
        vjp, saves, saved, node_name = None if op.vjp is None else staticmethod(op.vjp), op.numerics.saves, op.numerics.saved, op.surface.node_name
        words: dict[str, Any] = {
            "op": op, "vjp": vjp, "broadcasts": key[1], "saves": saves, "reads_saved": saves and op.kind != "linear",
            "selects": op.selects, "calls_code": op.kind == "function", "outside": op.outside or op.kind == "function", "__doc__": op.docs.doc,
            "__module__": "symgrad"}
        if saves and op.may_drop:
            words["saves"] = HELD
        if saves and saved is not None and (not all(saved) or "index" in saved):
            words |= {"saves": None, "release": _release_saved, "named_saved": saved}
        own = SELECTED * op.selects | CALLS * words["outside"]
        if own:
            words["__init__"] = lambda self, args, parents, value, flags: Node.__init__(self, args, parents, value, flags | own)
        elif saves and any([p.name == "index" for p in op.parameters]):
            place = _place_of_index(op)
            words["__init__"] = lambda self, args, parents, value, flags: Node.__init__(
                self, _with_own_index(args, place + len(parents)), parents, value, flags)
            words["keeps_index"] = True
        indices = ("indices",) if saved is not None and "index" in saved else ()
        first = "input" if node_name in NAME_INPUT else "self"
        for name in (first if n == "input" else n for n in (*op.argument_names, "result", *(p.name for p in op.parameters), *indices)):
            for prefix in ("_saved_", "_raw_saved_"):
                words[prefix + name] = property(operator.methodcaller("saved_as", prefix + name))
        found = derived(Node, node_name, **words)
        note_class(found)
        if op.kind != "function":  # an op of kind "function" belongs to one call
            _classes[key] = found
    return found
