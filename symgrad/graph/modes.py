"""The modes of a thread: whether operations are recorded, by which recorder, and who observes.

The modes of a thread are one immutable `Modes` object, `thread.modes`. A change replaces the object, and the end of the change puts the old values
back, so no interrupt finds half of a change. `special` holds a weak reference to each living object that turns the hot path off: it is empty
where every thread simply records, and a thread that ends inside a mode leaves nothing behind.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from symgrad.graph.node import NAMED, TRACKED, Node, all_threads, make_node
from symgrad.graph.op import Op

__all__ = ["DEFAULT", "Modes", "Recorder", "Scope", "SetAtOnce", "in_mode", "observed", "special", "thread", "turn_hot_path_off"]

special: set[weakref.ref[Any]] = set()  # empty: every thread records by the hot path


def turn_hot_path_off(owner: Any) -> None:
    """Let every thread ask for its own modes while `owner` lives."""
    special.add(weakref.ref(owner, special.discard))  # a callback in C: no interrupt falls into it


class Recorder:
    """Makes the nodes of a thread. This one makes the nodes that the hot path makes; others override what they need.

    The observers of a thread are recorders, too: of them `observe` and `write` are called.
    """

    flags = TRACKED  # the flags of the nodes whose results are recorded
    hides = False  # whether tensors that are written return to their nodes when this recorder is left
    follows = False  # whether a detached tensor has a node

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation; None if it has none."""
        return node_by_flags(op, args, parents, value) if thread.modes.grad else None

    def observe(self, node: Node) -> None:
        """A node was recorded."""

    def detach(self, tensor: Any) -> Node | None:
        """The node of a tensor that is being detached."""
        return None

    def escape(self, tensor: Any, shared: bool = False) -> None:
        """A tensor is read as plain numbers; with `shared`, its memory is given away."""

    def write(self, target: Any) -> None:
        """An array is about to be written in place."""

    def rebase(self, *places: tuple[Any, Node | None]) -> None:
        """Tensors, each given with its node, are about to get other nodes by a write."""

    def outdate(self, view: weakref.ref[Any]) -> None:
        """The node of a view is out of date, because its base was written."""

    def branch(self, node: Node, truth: bool) -> None:
        """An `if` asked a tensor for its truth value."""

    def knows(self, node: Node | None) -> bool:
        """Whether what is computed from a node is recorded."""
        return node is not None and bool(node.flags & self.flags)


DEFAULT = Recorder()


class Modes:
    """The modes of one thread; immutable."""

    grad: bool  # whether operations are recorded
    inference: bool
    complete: bool  # whether nodes keep all that a formula may need
    recorder: Recorder
    observers: tuple[Recorder, ...]  # are shown each node that is recorded
    batches: tuple[tuple[int, int, str], ...]  # those of vmap: for each its level, its number of members, and what random numbers are in it
    level: Any  # of forward mode
    saving: Any  # the innermost pair of hooks for saved tensors
    saving_refused: str | None  # why there may be none
    pullback: Any  # the one that runs, where there are hooks
    checks: Any  # those of anomaly mode in the pullback that runs
    reading: Any  # the node of the Function whose formula is read
    pushing: Any  # the node of the Function whose `jvp` is called

    plain = True  # whether the hot path records; no thread's does in anomaly mode

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)
        if self.inference:
            self.grad = False
        if not self.grad or self.recorder is not DEFAULT or self.observers:
            self.plain = False
            turn_hot_path_off(self)

    def changed(self, **fields: Any) -> Modes:
        """The same modes but for some."""
        fields = {**self.__dict__, **fields}
        fields.pop("plain", None)
        return Modes(**fields)


class _Thread(threading.local):
    """What a thread has of its own."""

    modes = Modes(grad=True, inference=False, complete=False, recorder=DEFAULT, observers=(), batches=(), level=None, saving=None,
                  saving_refused=None, pullback=None, checks=None, reading=None, pushing=None)


thread = _Thread()


class Scope:
    """The base of `with` blocks that change a state: it is restored whatever line is interrupted.

    Python can be interrupted after the last line of a block and before `__exit__`; then the end of the scope object itself restores the state.
    """

    __slots__ = ("fields", "_entered", "__weakref__")
    fields: dict[str, Any]  # what changes
    # the states before and after, what restores them if this object ends, and the entry around this one
    _entered: tuple[Any, Any, Any, Any] | None

    def __init__(self, **fields: Any):
        self.fields, self._entered = fields, None

    def _read(self) -> Any:
        """The state."""
        raise NotImplementedError

    def _write(self, state: Any, entered: Any) -> None:
        """Set the state and `_entered`, on one line: no interrupt comes between."""
        raise NotImplementedError

    def _changed(self, state: Any) -> Any:
        """The state inside, from the one before."""
        raise NotImplementedError

    def _restored(self, state: Any, before: Any) -> Any:
        """The state afterwards, from the one at the end of the block and the one before."""
        return before

    def __enter__(self) -> Any:
        before = self._read()
        after = self._changed(before)
        self._write(after, (before, after, self._guard(before, after), self._entered))

    def _guard(self, before: Any, after: Any) -> Any:
        twin = object.__new__(type(self))
        twin.fields, twin._entered = self.fields, (before, after, threading.get_ident(), None)
        return weakref.ref(self, twin._end)

    def __exit__(self, *exception: Any) -> None:
        try: self._leave()  # noqa: E701  an interrupt at the first line of a function is inside its `try` only where they are one line
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        if self._entered is not None:
            before, after, _, outer = self._entered
            state = self._read()
            self._write(before if state is after else self._restored(state, before), outer)

    def _end(self, _: Any) -> None:
        """The object that was entered ended inside its block."""
        if self._entered is not None and self._entered[2] == threading.get_ident():
            self._leave()


class SetAtOnce(Scope):
    """The base of scopes whose state is set when they are made, so that they can be called as functions, too."""

    __slots__ = ()

    def __init__(self, **fields: Any):
        super().__init__(**fields)
        before = self._read()
        self._write(after := self._changed(before), (before, after, None, None))

    def __enter__(self) -> None:
        try: self._hold()  # noqa: E701  as in `__exit__`
        except BaseException:
            self._leave()
            raise

    def _hold(self) -> None:
        if self._entered is not None and self._entered[2] is None:
            before, after, _, outer = self._entered
            self._entered = before, after, self._guard(before, after), outer
        else:  # entered again
            super().__enter__()


class in_mode(Scope):
    """Some modes of this thread for a `with` block, by the names of `Modes`."""

    __slots__ = ()

    def _read(self) -> Modes:
        return thread.modes

    def _write(self, state: Modes, entered: Any) -> None:
        thread.modes, self._entered = state, entered

    def _changed(self, state: Modes) -> Modes:
        return state.changed(**self.fields)

    def _restored(self, state: Modes, before: Modes) -> Modes:
        return state.changed(**{name: getattr(before, name) for name in self.fields})


def node_by_flags(op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
    """The node of an operation as the hot path makes it; None if nothing is to be recorded."""
    flags = 0
    for p in parents:
        flags |= 0 if p is None else p.flags
    flags &= TRACKED if op.differentiable else NAMED
    return make_node(op, args, parents, value, flags) if flags else None


def observed(node: Any) -> Any:
    """The node, after this thread's observers and anomaly mode have seen it."""
    if node is not None:
        for observer in thread.modes.observers:
            observer.observe(node)
        if all_threads.anomaly is not None:
            all_threads.anomaly.observe(node)
    return node
