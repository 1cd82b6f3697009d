"""The modes of a thread: grad mode, anomaly mode, the recorder, the observers, and others.

The modes of a thread are one immutable `Modes` object, `thread.modes`. A change replaces the object in one assignment, so that an interrupt never
finds a partial change. `special` holds a weak reference to each live object that disables the hot path: it is empty while every thread has the
default modes, and the entries of a thread disappear with it.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
import weakref
from typing import Any

from symgrad.graph.node import NAMED, TRACKED, Node, make_node
from symgrad.graph.op import Op
from symgrad.system.errorstate import quietly

special: set[weakref.ref[Any]] = set()  # empty: the hot path records in every thread
computers: set[weakref.ref[Any]] = set()  # the modes in which something else than NumPy gives the values of ops; empty: in no thread


def turn_hot_path_off(owner: Any) -> None:
    """Make every op look up the modes of its thread while `owner` is alive."""
    special.add(weakref.ref(owner, special.discard))  # a callback in C cannot be interrupted


class Recorder:
    """Creates the nodes of a thread. This class creates the same nodes as the hot path; subclasses override methods.

    Observers have the same interface; only their `observe`, `write`, `branch`, `escape` and `detach` are called.
    """

    flags = TRACKED  # the flags of the nodes whose results are recorded
    restores_nodes = False  # whether written tensors get their previous nodes back when this recorder ends
    tracks_detached = False  # whether a detached tensor has a node

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation, None if it is not recorded."""
        return node_by_flags(op, args, parents, value) if thread.modes.grad else None

    def observe(self, node: Node) -> None:
        """A node was recorded."""

    def detach(self, tensor: Any) -> Node | None:
        """The node of a tensor that is being detached."""
        return None

    def escape(self, tensor: Any, shared: bool = False) -> None:
        """A tensor is converted to plain numbers; with `shared`, the result shares its memory."""

    def write(self, target: Any) -> None:
        """An array is about to be written in place."""

    def rebase_history(self, *places: tuple[Any, Node | None]) -> None:
        """A write is about to replace the nodes of tensors; `places` are pairs of a tensor and its present node."""

    def after_write(self, tensor: Any, former: Node | None) -> None:
        """A write has replaced the node of a tensor, which was `former`."""

    def stale_view(self, view: weakref.ref[Any]) -> None:
        """The node of a view became stale, because its base was written."""

    def branch(self, node: Node, truth: bool) -> None:
        """Python took the truth value of a tensor, as in an `if`."""

    def tracks(self, node: Node | None) -> bool:
        """Whether this recorder records ops on a node."""
        return node is not None and bool(node.flags & self.flags)


DEFAULT = Recorder()


class Modes:
    """The modes of one thread; immutable."""

    grad: bool  # whether operations are recorded
    inference: bool
    keep_values: bool  # whether nodes keep the values that a formula may need
    recorder: Recorder
    observers: tuple[Recorder, ...]  # called with each node that is recorded
    batches: tuple[tuple[int, int, str], ...]  # of vmap: the level, the size and the randomness of each
    level: Any  # the dual level of forward mode
    forward: bool  # whether dual tensors have tangents
    saving: Any  # the innermost pair of saved-tensor hooks
    saving_refused: str | None  # the error text where saved-tensor hooks are not allowed
    replays_calls: bool  # whether a pass calls the functions of transforms again
    task: Any  # the running pullback, if it may call a user's code
    unpacking: Any  # the identity of the running pass, if it may unpack saved tensors
    multithreading: bool  # what `set_multithreading_enabled` was told; a pullback runs in one thread either way
    anomaly: Any  # the observer of anomaly mode, None while it is off
    check_nan: bool  # whether a NaN raises in anomaly mode
    checks: Any  # the anomaly checks of the running pullback
    early_stop: bool | None  # of checkpoints, in place of their arguments; None leaves it to these
    debug: bool | None  # the same
    formula_of: Any  # the node of the Function whose formula is computed
    program: Any  # the recorder of the program that is being recorded
    computing: Any  # what gives the values of ops in place of NumPy, by `compute(op, call, args)`
    jvp_of: Any  # the node of the Function whose `jvp` runs
    rule: Any  # whether a user's rule runs whose operations are recorded; CONSTANTS where numbers of tensors are constants on purpose

    plain = True  # whether the hot path records

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)

    def changed(self, fields: dict[str, Any]) -> Modes:
        """A copy with other values of some fields; self if nothing differs."""
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
        if out.computing is not None:
            computers.add(weakref.ref(out, computers.discard))
        if out.grad and out.recorder is DEFAULT and not out.observers and out.anomaly is None:
            del out.plain
            if out.program is not None:  # writes in place look the modes up
                turn_hot_path_off(out)
        else:
            out.plain = False
            turn_hot_path_off(out)
        return out


class _ThreadState(threading.local):
    """Thread-local state."""

    modes = Modes(grad=True, inference=False, keep_values=False, recorder=DEFAULT, observers=(), batches=(), level=None, forward=True,
                  saving=None, saving_refused=None, replays_calls=False, task=None, unpacking=None, multithreading=True,
                  anomaly=None, check_nan=True, checks=None, early_stop=None, debug=None, formula_of=None, program=None, computing=None,
                  jvp_of=None, rule=False)


thread = _ThreadState()


class Scope:
    """The base of `with` blocks that change the modes of this thread, and restore them even if any line is interrupted.

    An interrupt can arrive between the last line of a block and `__exit__`; then the finalizer of the scope object restores the modes.
    """

    __slots__ = ("fields", "_entered", "__weakref__")
    fields: dict[str, Any]  # the changed modes
    # the modes before and after, the finalizer that restores them, and the enclosing entry
    _entered: tuple[Any, Any, Any, Any] | None

    def __init__(self, **fields: Any):
        self.fields, self._entered = fields, None

    def _changed(self, modes: Any) -> Any:
        """The modes inside, from those before."""
        return modes.changed(self.fields)

    def __enter__(self) -> Any:
        before = thread.modes
        after = self._changed(before)
        if after is before:  # nothing to restore
            self._entered = before, after, False, self._entered
            return
        guard = weakref.ref(self, functools.partial(_abandoned, type(self), self.fields, before, after))
        thread.modes, self._entered = after, (before, after, guard, self._entered)  # one statement, so that no interrupt comes between

    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None:
        try: self._leave(kind)  # noqa: E701  an interrupt at the first line of a function is inside its `try` only where they are one line
        except BaseException:
            self._leave(kind)
            raise

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        """Restore the modes: all of them after an interrupt, which may have prevented an inner block from doing so."""
        if self._entered is not None:
            before, after, _, outer = self._entered
            if thread.modes is not after and (kind is None or issubclass(kind, Exception)):  # changes of other modes made inside are kept
                before = thread.modes.changed({name: getattr(before, name) for name in self.fields})
            thread.modes, self._entered = before, outer


def _abandoned(kind: type[Scope], fields: dict[str, Any], before: Any, after: Any, _: Any) -> None:
    """Restore the modes of a scope object that was finalized while they were still in effect."""
    if thread.modes is after:
        scope = object.__new__(kind)
        scope.fields, scope._entered = fields, (before, after, None, None)
        scope._leave()


class ImmediateScope(Scope):
    """The base of scopes that set their modes on construction, so that they can be called as functions, too."""

    __slots__ = ()

    def __init__(self, **fields: Any):
        super().__init__(**fields)
        before = thread.modes
        after = self._changed(before)
        thread.modes, self._entered = after, (before, after, None, None)

    def __enter__(self) -> None:
        try: self._hold()  # noqa: E701  as in `__exit__`
        except BaseException:
            self._leave()
            raise

    def _hold(self) -> None:
        """Enter the block; on the first entry, from the modes before the construction."""
        if self._entered is not None and self._entered[2] is None:
            self._leave()
        super().__enter__()


class in_mode(Scope):
    """Set fields of `Modes` of this thread for a `with` block."""

    __slots__ = ()


UNCHANGED = contextlib.nullcontext()  # the scope that sets no modes


def computed(op: Op, call: Any, xp: Any, *args: Any) -> Any:
    """The value call(xp, *args) of an op by what computes in this thread: NumPy, unless `Modes.computing` is set."""
    computing, compute = thread.modes.computing, functools.partial(operator.call if op.outside else quietly, call, xp)
    return compute(*args) if computing is None else computing.compute(op, compute, args)


def node_by_flags(op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
    """The node of an operation as the hot path creates it, None if it is not recorded."""
    flags = 0
    for p in parents:
        flags |= 0 if p is None else p.flags
    flags &= TRACKED if op.differentiable else NAMED
    return make_node(op, args, parents, value, flags) if flags else None


def observed(node: Any) -> Any:
    """The node, after the calls of this thread's observers and of its anomaly mode."""
    if node is not None:
        modes = thread.modes
        for observer in modes.observers:
            observer.observe(node)
        if modes.anomaly is not None:
            modes.anomaly.observe(node)
    return node
