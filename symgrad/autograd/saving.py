"""Hooks for saved tensors, and writing in place to saved tensors.

A node with packed tensors has the flag PACKED: the hot path stops there, and whoever reads its values gets those of the unpack hooks.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.saved import _needed, changed
from symgrad.engine.storage.versions import Alias, first_write_after, owner, version
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import FREED
from symgrad.graph.classes import become, derived
from symgrad.graph.freed import released
from symgrad.graph.modes import Modes, Recorder, in_mode, thread
from symgrad.graph.node import CALLS, GRADIENT, NAMED, PACKED, RELEASED, TANGENT, Leaf, Node, all_threads, next_sequence
from symgrad.graph.op import Op
from symgrad.layouts.devices import device
from symgrad.layouts.strides import address
from symgrad.system.restoring import restored
from symgrad.system.weakkeys import WeakKeys

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
VALUES = (np.ndarray, np.generic, DuckArray)


# Pack and unpack hooks


class Packed:
    """The result of a pack hook for a saved tensor, with the shape and dtype of the tensor."""

    __slots__ = ("content", "hook", "shape", "dtype")

    def __init__(self, tensor: Tensor, pack: Pack, unpack: Unpack):
        self.hook, self.shape, self.dtype = unpack, tensor._value.shape, tensor._value.dtype
        since, all_threads.packed = version(tensor._value), True
        with in_mode(grad=False):
            self.content = pack(tensor)
        if version(tensor._value) != since:
            raise RuntimeError("a pack hook of a saved tensor wrote to the tensor in place; let it compute a new one")

    def tensor(self) -> Tensor:
        """The tensor that the unpack hook returns."""
        found = self.hook(self.content)
        if not isinstance(found, Tensor):
            raise TypeError(f"an unpack hook of a saved tensor must return a Tensor, not {type(found).__name__}")
        return found

    def unpack(self) -> Any:
        """The value of that tensor."""
        return self.tensor()._value


def packed(tensor: Tensor) -> Packed | None:
    """A tensor packed by the innermost hooks; None if there are none."""
    hooks = thread.modes.saving
    return None if hooks is None else Packed(tensor, *hooks)


class _Args(tuple):
    """The arguments of a node with packed tensors. `kept` maps positions to packed tensors; the position of the result is -1."""

    kept: dict[int, Packed]


@functools.cache
def _plain_class(kind: type[Node]) -> type[Node]:
    """The class for nodes of a class with a rule of its own, whose rule is that of the op, which reads only the unpacked values."""
    op: Any = kind.op
    return derived(kind, vjp=staticmethod(op.vjp), residual_jvp=None)


def _pack(node: Any, positions: Sequence[int], pack: Pack, unpack: Unpack) -> None:
    """Pack the saved values of a node at these positions."""
    args, kept = node.args, getattr(node.args, "kept", {})  # by position, -1 for the result
    for position in positions:
        value, source = (node.value, node) if position < 0 else (args[position], node.parents[position])
        kept[position] = Packed(_tensor_of(value, source), pack, unpack)
    node.args = _Args(args)
    node.args.kept = kept
    node.flags |= PACKED | CALLS
    become(node, _plain_class(node.__class__))


def _copied(value: Any) -> Any:
    return value.copy()


def _release(node: Any, positions: Collection[int]) -> None:
    """Release the values of a node at these positions.

    A node with a formula or a tangent needs its values, so it keeps copies, which later writes in place do not change.
    """
    rest: Any = _copied if node.flags & (NAMED | TANGENT) or thread.modes.keep_values else released
    if -1 in positions:
        node.value = rest(node.value)
    args = node.args
    node.args = type(args)(rest(a) if i in positions and isinstance(a, VALUES) else a for i, a in enumerate(args))
    if type(args) is _Args:
        node.args.kept = args.kept


def _tensor_of(value: Any, source: Node | None) -> Tensor:
    """The user's tensor if the node is a leaf, else a new tensor with the same memory and node."""
    tensor = source.variable if isinstance(source, Leaf) else None
    return tensor if tensor is not None and tensor._value is value else wrap(value, source)


class _Packing(Recorder):
    """The observer that packs the saved values of each recorded node with the innermost hooks."""

    def observe(self, node: Any) -> None:
        """Pack the saved values of a node in torch's order: sorted by torch's names, the result last."""
        if not node.flags & GRADIENT or not isinstance(type(node).op, Op):
            return
        node.torch_named()  # while it has the arguments that the name depends on
        needed = _needed(node, tuple(p if p is not None and p.flags & GRADIENT else None for p in node.parents))
        positions = [position for *_, position in sorted((position < 0, "self" if name == "input" else name, position) for name, position in needed)]
        positions = [position for position in positions if isinstance(node.value if position < 0 else node.args[position], VALUES)]
        if positions:
            _pack(node, positions, *thread.modes.saving)
        _release(node, range(-1, len(node.parents)))


PACKING = _Packing()


class saved_tensors_hooks(in_mode):
    """Save the results of `pack_hook` in place of the tensors that operations save for their backward; `unpack_hook` restores the tensors.

    Inside, `pack_hook(tensor)` is called at once, without recording, for every tensor that an operation saves. `unpack_hook(packed)` is called
    each time a backward reads the tensor, and returns a Tensor of that shape and dtype. The innermost of nested pairs is used. A packed tensor
    is not checked for writes in place.

    Raises TypeError for hooks that are not callable and for an `unpack_hook` that does not return a Tensor, RuntimeError for a `pack_hook` that
    writes into its argument.

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
                raise TypeError(f"saved_tensors_hooks: a hook must be a function of one argument, not {type(hook).__name__}")
        if state.saving_refused is not None:
            raise RuntimeError(state.saving_refused)
        return state.changed({**self.fields, "observers": (*(o for o in state.observers if o is not PACKING), PACKING)})


class save_on_cpu(saved_tensors_hooks):
    """Save copies of tensors, so that a later write in place to a saved tensor does not affect the backward.

    Every tensor is on the CPU already, so `pin_memory` and `device_type` have no effect.
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
    """One saved tensor of a node, such as `node._raw_saved_self`, on which a pair of hooks can be registered."""

    _node: Any
    _position: int

    def __init__(self) -> None:
        raise RuntimeError("SavedTensor: it has no constructor; read an attribute _raw_saved_... of a node")

    def register_hooks(self, *hooks: Any) -> None:
        """Replace this saved tensor by the result of the first hook, `pack`; the second one, `unpack`, restores it.

        Raises TypeError for anything but two functions, RuntimeError after the graph was freed, for None, and if the tensor is packed already.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(f"register_hooks: give two functions, pack and unpack, not ({', '.join(type(hook).__name__ for hook in hooks)})")
        state = self._state()
        if state != "saved":
            raise RuntimeError(FREED if state == "freed" else f"register_hooks: the tensor is {state}; one pair of hooks is registered on a value")
        self._set(*hooks)
        all_threads.hooked = True  # the flags of nodes that were made already do not tell of these hooks

    def _state(self) -> str:
        node = self._node
        if node.args is None or node.flags & RELEASED:
            return "freed"
        return "packed" if isinstance(node.args, _Args) and self._position in node.args.kept else "saved"

    def _set(self, pack: Pack, unpack: Unpack) -> None:
        node = self._node
        _pack(node, (self._position,), pack, unpack)
        _release(node, {self._position} | ({-1} if all(position >= 0 for _, position in _needed(node, node.parents)) else set()))


def saved_tensor(node: Any, position: int, kind: type[SavedTensor] = SavedTensor) -> SavedTensor:
    """The saved tensor of a node at a position."""
    out = object.__new__(kind)
    out._node, out._position = node, position
    return out


# Writing in place to saved tensors


def _memory(array: np.ndarray) -> int:
    """A key of the memory of an array: the same for all arrays that share it, also for aliases with separate version counters."""
    root: Any = owner(array)
    while isinstance(root.base, Alias):
        root = owner(root.base.base)
    return id(root)


class _Original:
    """A saved tensor whose memory may be written. It is replaced by a copy before the write."""

    __slots__ = ("value", "since", "__weakref__")

    def __init__(self, value: Any):
        self.value, self.since = value, next_sequence()


class _Originals(Recorder):
    """The observer of `allow_mutation_on_saved_tensors`: it stores the tensors saved in the context by their memory.

    The names of `tid_to_weakhandle`, the saved tensors that a graph still needs, and of `cloned`, those of them that were copied, are torch's.
    """

    def __init__(self) -> None:
        self.active = True
        self.saved: dict[int, weakref.WeakSet[_Original]] = {}
        self.tid_to_weakhandle: weakref.WeakValueDictionary[tuple, _Original] = weakref.WeakValueDictionary()
        self.cloned: WeakKeys[_Original, Any] = WeakKeys()

    def pack(self, tensor: Tensor) -> _Original:
        """The entry of a tensor, one for all operations that save it between two writes."""
        value = tensor._value
        if not isinstance(value, np.ndarray):
            return _Original(value)
        memory = _memory(value)
        key = memory, address(value), value.shape, value.strides, value.dtype, version(value)
        found = self.tid_to_weakhandle.get(key)
        if found is None:
            found = self.tid_to_weakhandle[key] = _Original(value)
            self.saved.setdefault(memory, weakref.WeakSet()).add(found)
        return found

    def unpack(self, original: _Original) -> Tensor:
        if not self.active:
            raise AssertionError("allow_mutation_on_saved_tensors: a graph that was recorded in the context is differentiated in it, too")
        value = original.value
        if isinstance(value, np.ndarray) and (found := first_write_after(value, original.since)) is not None:
            raise changed(value, *found, None)
        return wrap(value)

    def write(self, target: np.ndarray) -> None:
        """Copy the saved tensors in this memory before it is written."""
        for original in self.saved.pop(_memory(target), ()):
            original.value = self.cloned[original] = original.value.copy()

    def clear(self) -> None:
        """Release all saved tensors."""
        self.saved.clear()
        self.tid_to_weakhandle.clear()
        self.cloned.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Allow writing in place to tensors that were saved for a backward: they are copied before the write, and the backward uses the copy.

    Raises RuntimeError if such a context is active already, AssertionError for a backward through the graph after the end of the context.

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
        raise RuntimeError("allow_mutation_on_saved_tensors: the contexts are not nested")
    originals = _Originals()

    def end() -> None:
        originals.active = False
        originals.clear()

    with restored(end), saved_tensors_hooks(originals.pack, originals.unpack), in_mode(observers=(*thread.modes.observers, originals, PACKING)):
        yield originals
