"""Saved tensors that users keep elsewhere, or write to.

An op whose tensors are kept elsewhere becomes a node of another class, which fetches them back when its pullback reads them; the nodes
of ops that nobody looks at stay as they are.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.engine.saved import _needed, changed, saved_as
from symgrad.engine.storage.versions import Alias, first_write_after, owner, version
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.freed import Released, released
from symgrad.graph.modes import Modes, Recorder, in_mode, thread
from symgrad.graph.node import GRADIENT, NAMED, RELEASED, TANGENT, Leaf, Node, next_sequence
from symgrad.graph.op import Op
from symgrad.types.devices import device

__all__ = ["Packed", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "packed", "save_on_cpu", "saved_tensors_hooks"]

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
VALUES = (np.ndarray, np.generic, Batched)


# Saved tensors that are kept elsewhere


class Packed:
    """A saved tensor in the form that a pack hook gave it; it has the shape and dtype of the tensor."""

    __slots__ = ("content", "hook", "shape", "dtype")

    def __init__(self, tensor: Tensor, pack: Pack, unpack: Unpack):
        self.hook, self.shape, self.dtype = unpack, tensor._value.shape, tensor._value.dtype
        since = version(tensor._value)
        with in_mode(grad=False):
            self.content = pack(tensor)
        if version(tensor._value) != since:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified "
                               "by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform "
                               "in-place operations on the input to a pack hook.")

    def unpack(self) -> Any:
        """The value that the unpack hook gives for it."""
        found = self.hook(self.content)
        if not isinstance(found, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}")
        return found._value


def packed(tensor: Tensor) -> Packed | None:
    """A tensor as the innermost pack hook keeps it; None where there are no hooks."""
    hooks = thread.modes.saving
    return None if hooks is None else Packed(tensor, *hooks)


class _Args(tuple):
    """The arguments of a node with saved tensors elsewhere: `kept` has these by their places, -1 for the result."""

    kept: dict[int, Packed]


@functools.cache
def _fetching(kind: type[Node]) -> type[Node]:
    """The class of nodes that fetch what they saved."""

    def vjp(self: Any, xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        if not isinstance(g, Tensor) and xp is not numeric:  # a formula is read from the values themselves
            return self.op.vjp(xp, g, y, args, needs)
        with in_mode(grad=isinstance(g, Tensor)):
            found = _complete(self, {place: each.unpack() for place, each in self.args.kept.items()})
        if isinstance(g, Tensor):
            found = {place: wrap(value, self if place < 0 else self.parents[place]) for place, value in found.items()}
        if (g._value if isinstance(g, Tensor) else g).dtype.kind == "c":  # as the pullback does with what a node holds itself
            found = {place: xp.conj(value) for place, value in found.items()}
        return self.op.vjp(xp, g, found.get(-1, y), tuple(found.get(i, a) for i, a in enumerate(args)), needs)

    def saved_as(self: Any, name: str) -> Any:
        place = _place(self, name.removeprefix("_saved_")) if name.startswith("_saved_") and not self.flags & RELEASED else None
        if place is None or self.args is None or place not in self.args.kept:
            return Node.saved_as(self, name)  # type: ignore[attr-defined]
        return wrap(self.args.kept[place].unpack(), self if place < 0 else self.parents[place])

    return type(kind.__name__, (kind,), {"__slots__": (), "vjp": vjp, "saved_as": saved_as, "broadcasts": True, "__module__": kind.__module__,
                                         "__doc__": kind.__doc__})


def _complete(node: Node, values: dict[int, Any]) -> dict[int, Any]:
    """The values by place, with what a rule reads though torch does not save it: computed from the others."""
    op, args = node.op, node.args or ()
    if op.inverse is not None and 0 not in values:
        values[0] = op.inverse(numeric, values[-1])
    if -1 not in values and op.saved is not None and op.arity is not None:
        given = [values.get(i, a) for i, a in enumerate(args)]
        if not any(isinstance(a, Released) for a in given):
            values[-1] = op.forward(numeric, *given)
    return values


def _place(node: Node, name: str) -> int | None:
    """Where a node holds the value that torch calls by this name."""
    names = node.op.argument_names
    if name == "result":
        return -1
    name = "input" if name == "self" and "input" in names else name
    return names.index(name) if name in names and node.op.arity is not None else None


def _keep(node: Any, places: Sequence[int], pack: Pack, unpack: Unpack) -> None:
    """Let a pair of hooks keep the values that a node saved at these places."""
    args, kept = node.args, getattr(node.args, "kept", {})  # the places, -1 for the result
    for place in places:
        value, source = (node.value, node) if place < 0 else (args[place], node.parents[place])
        kept[place] = Packed(_tensor_of(value, source), pack, unpack)
    node.args = _Args(args)
    node.args.kept = kept
    node.__class__ = _fetching(type(node))  # type: ignore[arg-type]


def _copied(value: Any) -> Any:
    return value.copy()


def _forget(node: Any, places: Collection[int]) -> None:
    """Let a node forget the values at these places.

    Formulas and tangents are read from the values themselves, so a node that has these keeps copies, which no write reaches.
    """
    rest: Any = _copied if node.flags & (NAMED | TANGENT) or thread.modes.complete else released
    if -1 in places:
        node.value = rest(node.value)
    args = node.args
    node.args = type(args)(rest(a) if i in places and isinstance(a, VALUES) else a for i, a in enumerate(args))
    if type(args) is _Args:
        node.args.kept = args.kept


def _tensor_of(value: Any, source: Node | None) -> Tensor:
    """The user's own tensor, if it is a leaf, or one that shares its memory and its place."""
    tensor = source.variable if isinstance(source, Leaf) else None
    return tensor if tensor is not None and tensor._value is value else wrap(value, source)


class _Packing(Recorder):
    """The observer that lets the innermost hooks keep what a node saves."""

    def observe(self, node: Any) -> None:
        """Pack what a node saves, in torch's order: by torch's names, and the result last."""
        if not node.flags & GRADIENT or not isinstance(type(node).op, Op):
            return
        needed = _needed(node, tuple(p if p is not None and p.flags & GRADIENT else None for p in node.parents))
        places = [place for *_, place in sorted((place < 0, "self" if name == "input" else name, place) for name, place in needed)]
        places = [place for place in places if isinstance(node.value if place < 0 else node.args[place], VALUES)]
        if places:
            _keep(node, places, *thread.modes.saving)
        _forget(node, range(-1, len(node.parents)))


PACKING = _Packing()


class saved_tensors_hooks(in_mode):
    """Keep the tensors that operations save for their backward as `pack_hook` returns them; `unpack_hook` gives them back.

    Inside, `pack_hook(tensor)` is called at once for every tensor that an operation saves, with recording switched off, and
    `unpack_hook(what it returned)` each time a backward reads it: it returns a Tensor of that shape and dtype. Of nested pairs the innermost
    counts. A value that is kept so is no longer checked for writes in place: what the hooks return is used.

    Raises TypeError for hooks that cannot be called and an `unpack_hook` that returns no Tensor, RuntimeError for a `pack_hook` that writes
    into its argument.

    >>> import symgrad
    >>> x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> with symgrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), symgrad.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack):
        super().__init__(saving=(pack_hook, unpack_hook), observers=())
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def _changed(self, state: Modes) -> Modes:
        for hook in self.pack_hook, self.unpack_hook:
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: a hook is a function of one argument, not {type(hook).__name__}")
        if state.saving_refused is not None:
            raise RuntimeError(state.saving_refused)
        return state.changed({**self.fields, "observers": (*(o for o in state.observers if o is not PACKING), PACKING)})


class save_on_cpu(saved_tensors_hooks):
    """Keep copies of saved tensors in the memory of the CPU: writing to the tensors themselves leaves the backward as it was.

    Every tensor is on the CPU already, so `pin_memory` and `device_type` change nothing.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def unpack(kept: tuple[Any, Tensor]) -> Tensor:
            return kept[1]

        super().__init__(lambda tensor: (device("cpu"), wrap(tensor._value.copy())), unpack)


def disable_saved_tensors_hooks(error_message: str) -> in_mode:
    """Forbid `saved_tensors_hooks` inside.

    Raises RuntimeError with the message where they are used inside or around.
    """
    return _Disabled(saving_refused=error_message)


class _Disabled(ContextDecorator, in_mode):
    __slots__ = ()

    def _changed(self, state: Modes) -> Modes:
        if state.saving is not None:
            raise RuntimeError(self.fields["saving_refused"])
        return super()._changed(state)


class SavedTensor:
    """One tensor that a node saved: `node._raw_saved_self` and its like, by which hooks can be set for it alone."""

    def __init__(self, node: Any, place: int):
        self._node, self._place = node, place

    def register_hooks(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        """Keep this tensor as `pack_hook` returns it, from now on.

        Raises RuntimeError once the graph was freed, and where hooks keep the tensor already.
        """
        node = self._node
        if node.args is None or node.flags & RELEASED:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
                               "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
                               "a second time or if you need to access saved variables after calling backward.")
        if isinstance(node.args, _Args) and self._place in node.args.kept:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                               "at a time.")
        _keep(node, (self._place,), pack_hook, unpack_hook)
        _forget(node, {self._place} | ({-1} if all(place >= 0 for _, place in _needed(node, node.parents)) else set()))


def _raw(node: Node, name: str) -> Any:
    """As `_saved_*`, and the `_raw_saved_*` by which torch sets hooks."""
    if not name.startswith("_raw_saved_"):
        return saved_as(node, name)
    place = _place(node, name.removeprefix("_raw_saved_")) if getattr(type(node), "op", None) is not None else None
    if place is None:
        raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}")
    return SavedTensor(node, place)


NODE_METHODS = MethodTable(saved_as=_raw)


# Writing to what was saved


def _memory(array: np.ndarray) -> int:
    """What all arrays that show the same memory have in common, also those that count their writes apart."""
    root: Any = owner(array)
    while isinstance(root.base, Alias):
        root = owner(root.base.base)
    return id(root)


class _Original:
    """A saved tensor whose memory may be written: before that happens, it becomes a copy."""

    __slots__ = ("value", "since", "__weakref__")

    def __init__(self, value: Any):
        self.value, self.since = value, next_sequence()


class _Originals(Recorder):
    """The observer that knows what was saved in one context, by the memory it shows."""

    def __init__(self) -> None:
        self.active = True
        self.known: dict[int, weakref.WeakSet[_Original]] = {}

    def pack(self, tensor: Tensor) -> _Original:
        found = _Original(tensor._value)
        if isinstance(found.value, np.ndarray):
            self.known.setdefault(_memory(found.value), weakref.WeakSet()).add(found)
        return found

    def unpack(self, original: _Original) -> Tensor:
        if not self.active:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                                 "in which the graph was originally recorded.")
        value = original.value
        if isinstance(value, np.ndarray) and (found := first_write_after(value, original.since)) is not None:
            raise changed(value, *found, None)
        return wrap(value)

    def write(self, target: np.ndarray) -> None:
        """Copy what was saved of this memory, for it will be written."""
        for original in self.known.pop(_memory(target), ()):
            original.value = original.value.copy()

    def clear(self) -> None:
        """Forget everything that was saved."""
        self.known.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Inside, tensors that were saved for a backward may be written in place: what was saved is copied first, and the backward uses the copy.

    Raises RuntimeError if one is open already, AssertionError for a backward through the graph after the end of the context.

    >>> import symgrad
    >>> x = symgrad.tensor([2.0, 3.0], requires_grad=True)
    >>> with symgrad.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y**2).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([4., 6.])
    """
    if any(isinstance(o, _Originals) for o in thread.modes.observers):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    originals = _Originals()
    try:
        with saved_tensors_hooks(originals.pack, originals.unpack), in_mode(observers=(*thread.modes.observers, originals, PACKING)):
            yield originals
    finally:
        originals.active = False
        originals.clear()
