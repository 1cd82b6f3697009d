"""The node of a custom Function, its public face `ctx`, and the tensors that a forward saves for its backward."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.batched import by_members
from symgrad.autograd.formulas import agrees, cotangents_in, op_of
from symgrad.autograd.graph import Node as PublicNode
from symgrad.autograd.recorders import INEXACT, BackwardRecorder, Span, suspect
from symgrad.autograd.saving import Packed, SavedTensor, packed, saved_tensor
from symgrad.carriers import numeric
from symgrad.carriers.batched import levels_of
from symgrad.carriers.duck import is_unbatchable
from symgrad.engine.cotangents import fitted
from symgrad.engine.graph_breaks import explaining_arrays
from symgrad.engine.hooks import attach
from symgrad.engine.recording import convert
from symgrad.engine.saved import changed
from symgrad.engine.storage.versions import first_write_after
from symgrad.engine.tensor import Tensor, new, wrap
from symgrad.engine.traced import traced
from symgrad.errors import FREED
from symgrad.graph.common import Bundle, OutputNode
from symgrad.graph.freed import DETACHED_SINCE
from symgrad.graph.handles import RemovableHandle, add_hook
from symgrad.graph.modes import in_mode, thread
from symgrad.graph.names import Metadata
from symgrad.graph.node import HOOKED, NAMED, PACKED, Leaf, Node
from symgrad.graph.op import Op


class FunctionCtx:
    """The context object of one call of a Function: the forward stores state on it and the backward reads it. `y.grad_fn` is the `ctx` of `y`.

    Its public names are exactly torch's, so that users can use every other name for their attributes.
    """

    __slots__ = ("_node", "__dict__", "__weakref__")
    _node: FunctionNode

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (or None) for the backward, which reads them from `saved_tensors`. A later write in place is detected there.

        Raises TypeError for anything else.
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward: argument {i} must be a Tensor or None, not {type(t).__name__}. Keep it as an attribute of ctx")
        self._node.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which reads them from `saved_tensors`."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise AssertionError(f"save_for_forward: an argument must be a Tensor or None, not {type(t).__name__}")
        self._node.to_save_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare the inputs that the forward wrote in place; they must be among its outputs."""
        self._node.dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare the outputs that are not differentiable."""
        self._node.constant = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether an undefined output gradient is passed to the backward as zeros (the default) or as None."""
        self._node.materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that the forward saved.

        Raises RuntimeError after the graph was freed, and for a tensor that was written in place since it was saved.
        """
        return self._node.unpack()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("saved_variables: the name is old; use saved_tensors", DeprecationWarning, stacklevel=2)
        return self._node.unpack()

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The saved tensors as objects on which hooks can be registered.

        Raises RuntimeError after the graph was freed.
        """
        if self._node.saved is None:
            raise RuntimeError(FREED)
        return tuple(saved_tensor(self._node, i, _SavedArgument) for i in range(len(self._node.saved)))

    @property
    def _input_metadata(self) -> tuple[Metadata, ...]:
        """The shape, dtype and device of each gradient of an output."""
        return self._node._input_metadata

    @property
    def saved_for_forward(self) -> tuple[Tensor | None, ...]:
        """The tensors that the forward saved for `jvp`."""
        return tuple(None if each is None else each.unpack(self._node) for each in self._node.saved_for_jvp or ())

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The pairs (node, output number) of the tensor arguments."""
        return self._node.next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary in which users can store data with the node."""
        return attach(self._node).metadata

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through the node."""
        return self._node.requires_grad

    def name(self) -> str:
        """The name of the node: the name of the Function followed by `Backward`."""
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return self._node.sequence_nr

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call fn(grad_inputs, grad_outputs) after the node's pullback; what it returns replaces grad_inputs."""
        return add_hook(attach(self._node).post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call fn(grad_outputs) before the node's pullback; what it returns replaces grad_outputs."""
        return add_hook(attach(self._node).pre, fn)

    def __getattr__(self, name: str) -> Any:
        output_attributes = object.__getattribute__(self, "_node").output_attributes
        if name in output_attributes:  # an output is stored by number, since a reference would be a cycle through its node
            return self._node.output(output_attributes[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


PublicNode.register(FunctionCtx)


class _SavedArgument(SavedTensor):
    """One of the tensors that a Function saved."""

    def _state(self) -> str:
        saved = self._node.saved
        if saved is None:
            return "freed"
        entry = saved[self._position]
        return "None" if entry is None else "packed" if isinstance(entry.value, Packed) else "saved"

    def _set(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        entry = self._node.saved[self._position]
        entry.value = Packed(entry.unpack(self._node), pack, unpack)
        entry.tensor = None
        self._node.flags |= PACKED


class Saved:
    """A tensor saved by a Function: its value and node, or for an output its number, since its node would refer to itself."""

    __slots__ = ("value", "node", "output", "since", "is_argument", "tensor")

    def __init__(self, t: Tensor, output: int | None, since: int, given: bool):
        kept = packed(t)
        self.value, self.node, self.output, self.since = kept or t._value, None if output is not None else t._node, output, since
        self.is_argument = given  # whether the tensor is an argument or an output
        self.tensor = None if kept is not None or output is not None else weakref.ref(t)

    def unpack(self, owner: FunctionNode) -> Tensor:
        """The saved tensor: the same object if it is alive and still has its node, else a new one.

        Raises RuntimeError if it was written or detached in place.
        """
        if isinstance(self.value, Packed):
            held, node = self.value.tensor(), self.node if self.output is None else owner.output_node(self.output)
            return held if node is None and held._node is None else wrap(held._value, node)
        tensor = None if self.tensor is None else self.tensor()
        current = None if tensor is None or tensor._node_slot is None else tensor._node_slot.current(True)
        node = current if tensor is not None else self.node if self.output is None else owner.output_node(self.output)
        if node is None and self.node is not None and not isinstance(self.node, Leaf):
            raise RuntimeError(DETACHED_SINCE)
        found = first_write_after(self.value, self.since)
        if found is not None:
            raise changed(self.value, *found, node if node is not None and node.requires_grad else None)
        return tensor if tensor is not None and node is self.node else wrap(self.value, self.node if self.output is None else node)


class FunctionNode(Node):
    """The node of a custom Function."""

    __slots__ = ("attributes", "ctx_reference", "output_attributes", "to_save", "to_save_for_forward", "dirty", "constant", "unmaterialized",
                 "materialize", "places", "needs", "call", "inner", "span", "outputs", "saved", "saved_for_jvp", "last_push", "_op")
    broadcasts = selects = False
    saves = None  # `release` decides
    calls_code = outside = none_is_undefined = True  # an undefined cotangent does not change `.grad`
    function: type[Any]  # the Function
    context: type[FunctionCtx]
    places: tuple[int, ...]  # the positions of the tensors among the arguments
    needs: tuple[bool, ...]
    span: Span
    outputs: tuple[weakref.ref[Node], ...]  # the nodes of the outputs, if they are a tuple

    def __init__(self) -> None:
        super().__init__((), (), None, 0)
        self.attributes: dict[str, Any] = {}
        self.ctx_reference: Any = None
        self.output_attributes: dict[str, int] = {}
        self.saved: tuple[Saved | None, ...] | None = ()
        self.saved_for_jvp: tuple[Saved | None, ...] | None = ()
        self.inner: tuple[Node | None, ...] | None = None  # the nodes of the outputs in the recorded forward, if a formula may be read
        self.call: tuple | None = None  # the arguments, if a formula may be read
        self._op: Op | None = None
        self.last_push: tuple[tuple, Any] | None = None  # the tangents of the last push, and its result
        self.to_save: tuple = ()
        self.to_save_for_forward: tuple = ()
        self.dirty: tuple = ()
        self.constant: tuple = ()
        self.outputs = ()
        self.unmaterialized = frozenset[int]()  # the numbers of outputs whose gradients stay None
        self.materialize = True

    @property
    def reading(self) -> bool:
        """Whether the formula of this call is read."""
        return thread.modes.formula_of is self

    @property
    def public_node(self) -> FunctionCtx:
        """The public face of the node: `ctx`, created again if no reference to it is left."""
        ctx = None if self.ctx_reference is None else self.ctx_reference()
        if ctx is None:
            ctx = new(self.context)
            ctx._node, ctx.__dict__ = self, self.attributes
            self.ctx_reference = weakref.ref(ctx)
        return ctx

    @property
    def formula_disagrees(self) -> bool:
        """Whether the declared formula and the forward have different values at these arguments."""
        return hasattr(self.function, "symbolic") and not agrees(self)

    def torch_named(self) -> FunctionNode:
        """The node itself, since its class already has the name of the Function."""
        return self

    def __copy__(self) -> FunctionNode:
        duplicate = new(type(self))
        for name in (*FunctionNode.__slots__, "args", "parents", "value", "sequence_nr", "flags"):
            setattr(duplicate, name, getattr(self, name))
        duplicate.ctx_reference, duplicate.outputs = None, ()
        return duplicate

    @property
    def many(self) -> bool:
        """Whether the outputs are a tuple."""
        return isinstance(self.value, tuple)

    def output_node(self, k: int) -> Node:
        """The node of output number k, a new one if no reference to it is left."""
        if not self.many:
            return super().output_node(k)
        return self.outputs and self.outputs[k]() or OutputNode(self, k)

    def output(self, k: int) -> Tensor:
        """Output number k as a tensor."""
        return wrap(self.value[k] if self.many else self.value, self.output_node(k))

    def unpack(self) -> tuple[Tensor | None, ...]:
        """The saved tensors."""
        entries = self.saved_for_jvp if thread.modes.jvp_of is self else self.saved
        if entries is None:
            raise RuntimeError(FREED)
        return tuple(None if each is None else each.unpack(self) for each in entries)

    @property
    def op(self) -> Op:  # type: ignore[override]
        """The op by which other carriers compute this call, created on first use."""
        if self._op is None:
            self._op = op_of(self)
        return self._op

    def undefined(self) -> Bundle:
        """The bundle of undefined cotangents. The backward is called even if all are undefined, with zeros where they are materialized."""
        return Bundle([None] * (len(self.value) if self.many else 1))

    def vjp(self, xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        """The cotangents of the arguments, computed by the user's backward."""
        if xp is not numeric and xp is not traced:
            return cotangents_in(self, xp, g, y, args, needs)
        try:
            if xp is traced:
                return self.recorded_on_copies(lambda: self.pulled(g, needs, lambda x: x))
            with in_mode(grad=False):
                return tuple(None if c is None else c._value for c in self.pulled(g, needs, wrap))
        except RuntimeError as error:
            if not is_unbatchable(error):
                raise
            parts = g.parts if isinstance(g, Bundle) else (g,)
            return by_members(xp, lambda parts: self.vjp(xp, Bundle(parts), y, args, needs), parts, args, error)

    def recorded_on_copies(self, compute: Callable[[], tuple[Tensor | None, ...]]) -> tuple[Tensor | None, ...]:
        """The results of the user's code, recorded on differentiable copies of the forward's nodes."""
        recorder = BackwardRecorder(self.span, self.parents, thread.modes.recorder, self.reading)
        with in_mode(recorder=recorder):
            found = compute()
        lost = self._untracked_state()
        return tuple(recorder.result(c, None if lost is None else self.span.refusal_message(lost)) for c in found)

    def pulled(self, g: Any, needs: Sequence, lift: Callable[[Any], Tensor]) -> tuple[Tensor | None, ...]:
        """Call the user's backward with cotangents as Tensors, and fit the returned gradients to the tensor arguments."""
        values = self.value if self.many else (self.value,)
        parts = g.parts if isinstance(g, Bundle) else (g,)
        given = [lift(c) if c is not None else wrap(np.zeros_like(v)) if self.materialize and v is not None and k not in self.unmaterialized else None
                 for k, (c, v) in enumerate(zip(parts, values))]
        with explaining_arrays(numbers=True):
            found = self.function._backward_rule()(self.public_node, *given)
        return self._fitted(found if isinstance(found, tuple) else (found,), needs)

    def _fitted(self, found: tuple, needs: Sequence) -> tuple[Tensor | None, ...]:
        count = len(self.needs)
        if len(found) < count or any(c is not None for c in found[count:]):
            raise RuntimeError(f"{self.name()}: backward must return {count} gradients, one for each argument of forward, not {len(found)}")
        for i, c in enumerate(found[:count]):
            if i not in self.places and c is not None:
                raise RuntimeError(f"{self.name()}: gradient {i + 1} must be None, since that argument of forward is not a Tensor")
            if c is not None and not isinstance(c, Tensor):
                raise RuntimeError(f"{self.name()}: gradient {i + 1} must be a Tensor or None, not {type(c).__name__}")
        shown = bool(self.flags & HOOKED)  # posthooks see what is not needed, too, and unfitted what no tensor in a graph would receive
        return tuple(None if (c := found[i]) is None or need is None and not shown else
                     c if need is None and (p is None or p.origin is None or not p.requires_grad) else self._fitted_to(c, a, i)
                     for i, need, p, a in zip(self.places, needs, self.parents, self.args or ()))

    def _fitted_to(self, c: Tensor, like: Any, i: int) -> Tensor:
        """A gradient reduced to the shape and converted to the dtype of argument i."""
        shape = like.shape
        if c._value.shape != shape:
            have = c._value.shape
            if len(have) < len(shape) or any(n not in (1, m) for n, m in zip(shape[::-1], have[::-1])):
                raise RuntimeError(f"{self.name()}: gradient {i + 1} must have the shape {list(shape)}, not {list(have)}")
            widest = max(self.value if self.many else (self.value,), key=lambda v: len(levels_of(v)))
            c = fitted(traced, c, widest, like)  # an argument without the batch dimension gets the sum over the members
        if c._value.dtype != like.dtype:
            if c._value.dtype.kind == "c" and like.dtype.kind != "c":
                raise RuntimeError(f"{self.name()}: gradient {i + 1} of a real argument must be real, not {c.dtype}. Return its real part")
            c = convert(c, like.dtype)
        return c

    def _untracked_state(self) -> str | None:
        """The name of state left for the backward that may depend on the inputs without being recorded; None if there is none."""
        span = self.span
        if not span.first_escape < float("inf"):
            return None
        given = {id(each) for each in (self.call or ())}

        def trusted(value: Any) -> bool:
            return id(value) in given or isinstance(value, (Node, FunctionCtx))

        for name, value in self.attributes.items():
            if name != "needs_input_grad" and (found := suspect(value, f"ctx.{name}", trusted)) is not None:
                return found
        for i, each in enumerate(self.saved or ()):
            if each is not None and not each.is_argument and each.node is None and each.value.dtype.kind in INEXACT:
                return f"ctx.saved_tensors[{i}]"
        return span.leaked

    def release(self) -> None:
        """Release the saved tensors after a pullback."""
        if not self.flags & NAMED:
            self.inner = None
            if self.saved:
                self.saved = None

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangents of the outputs, computed by the user's `jvp`."""
        with in_mode(jvp_of=self), explaining_arrays(numbers=True):
            return self.function.jvp(self.public_node, *tangents)
