"""The modes of a thread: whether operations are recorded, by which recorder, and who observes.

The modes of a thread are one immutable `Modes` object, `thread.modes`. A change replaces the object, and the end of the change puts the old values
back, so no interrupt finds half of a change. `special` holds a weak reference to each living object that turns the hot path off: it is empty
where every thread simply records, and a thread that ends inside a mode leaves nothing behind.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

from symgrad.graph.node import NAMED, TRACKED, Node, all_threads, make_node
from symgrad.graph.op import Op

__all__ = ["DEFAULT", "Modes", "Recorder", "Scope", "SetAtOnce", "in_mode", "node_by_flags", "observed", "special", "thread", "turn_hot_path_off"]

special: set[weakref.ref[Any]] = set()  # empty: every thread records by the hot path


def turn_hot_path_off(owner: Any) -> None:
    """Let every thread ask for its own modes while `owner` lives."""
    special.add(weakref.ref(owner, special.discard))  # a callback in C: no interrupt falls into it


class Recorder:
    """Makes the nodes of a thread. This one makes the nodes that the hot path makes; others override what they need.

    The observers of a thread are recorders, too: of them `observe`, `write`, `branch`, `escape` and `detach` are called.
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
    following: bool  # whether a pass calls the functions of transforms again
    pullback: Any  # the one that runs, where there are hooks
    checks: Any  # those of anomaly mode in the pullback that runs
    reading: Any  # the node of the Function whose formula is read
    pushing: Any  # the node of the Function whose `jvp` is called

    plain = True  # whether the hot path records; no thread's does in anomaly mode

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)

    def changed(self, fields: dict[str, Any]) -> Modes:
        """The same modes but for some."""
        own = self.__dict__
        for name, value in fields.items():
            if own[name] is not value:
                break
        else:
            return self
        out = object.__new__(Modes)
        out.__dict__.update(own, plain=True, **fields)
        if out.inference:
            out.grad = False
        if out.grad and out.recorder is DEFAULT and not out.observers:
            del out.plain
        else:
            out.plain = False
            turn_hot_path_off(out)
        return out


class _Thread(threading.local):
    """What a thread has of its own."""

    modes = Modes(grad=True, inference=False, complete=False, recorder=DEFAULT, observers=(), batches=(), level=None, saving=None,
                  saving_refused=None, following=False, pullback=None, checks=None, reading=None, pushing=None)


thread = _Thread()


class Scope:
    """The base of `with` blocks that change the modes at a place: they are restored whatever line is interrupted.

    Python can be interrupted after the last line of a block and before `__exit__`; then the end of the scope object itself restores the modes.
    """

    __slots__ = ("fields", "_entered", "__weakref__")
    fields: dict[str, Any]  # what changes
    place: Any = thread  # whose attribute `modes` changes
    # the modes before and after, what restores them if this object ends, and the entry around this one
    _entered: tuple[Any, Any, Any, Any] | None

    def __init__(self, **fields: Any):
        self.fields, self._entered = fields, None

    def _changed(self, modes: Any) -> Any:
        """The modes inside, from those before."""
        return modes.changed(self.fields)

    def __enter__(self) -> Any:
        place = self.place
        before = place.modes
        after = self._changed(before)
        if after is before:  # nothing to restore if this object ends
            self._entered = before, after, False, self._entered
            return
        guard = weakref.ref(self, functools.partial(_abandoned, type(self), self.fields, before, after))
        place.modes, self._entered = after, (before, after, guard, self._entered)  # on one line: no interrupt comes between

    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None:
        try: self._leave(kind)  # noqa: E701  an interrupt at the first line of a function is inside its `try` only where they are one line
        except BaseException:
            self._leave(kind)
            raise

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        """Restore the modes, all of them after an interrupt, which may have kept an inner block from it."""
        if self._entered is not None:
            before, after, _, outer = self._entered
            place = self.place
            if place.modes is not after and (kind is None or issubclass(kind, Exception)):  # others were changed inside, and stay
                before = place.modes.changed({name: getattr(before, name) for name in self.fields})
            place.modes, self._entered = before, outer


def _abandoned(kind: type[Scope], fields: dict[str, Any], before: Any, after: Any, _: Any) -> None:
    """Leave a scope whose object ended inside the block: this thread is still in the modes that it set."""
    if kind.place.modes is after:
        scope = object.__new__(kind)
        scope.fields, scope._entered = fields, (before, after, None, None)
        scope._leave()


class SetAtOnce(Scope):
    """The base of scopes whose modes are set when they are made, so that they can be called as functions, too."""

    __slots__ = ()

    def __init__(self, **fields: Any):
        super().__init__(**fields)
        before = self.place.modes
        after = self._changed(before)
        self.place.modes, self._entered = after, (before, after, None, None)

    def __enter__(self) -> None:
        try: self._hold()  # noqa: E701  as in `__exit__`
        except BaseException:
            self._leave()
            raise

    def _hold(self) -> None:
        """Enter the block: from the modes before this object was made, if it has not been entered yet."""
        if self._entered is not None and self._entered[2] is None:
            self._leave()
        super().__enter__()


class in_mode(Scope):
    """Some modes of this thread for a `with` block, by the names of `Modes`."""

    __slots__ = ()


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
