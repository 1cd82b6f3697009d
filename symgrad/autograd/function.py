"""`Function`: an operation whose forward and backward the user writes, with Tensors.

The forward is recorded as well, although its results do not require grad. Hence second derivatives through intermediates stored on `ctx` are
right, and the recorded forward is the formula of the operation unless the Function declares one.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.autograd.batched import apply_to_batch
from symgrad.autograd.context import FunctionCtx, FunctionNode, Saved
from symgrad.autograd.recorders import ForwardRecorder, reach_of
from symgrad.autograd.tangents import held_tangents, set_tangents
from symgrad.engine.inference import CANNOT_BE_SAVED, is_inference
from symgrad.engine.storage.copyslices import rebase_history
from symgrad.engine.storage.versions import stamp
from symgrad.engine.storage.views import CUSTOM, MANY, base_of, is_leaf_unrefreshed, refuse_in_place, register_view
from symgrad.engine.storage.writes import InferenceError
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import LEAF_WRITTEN
from symgrad.graph.classes import derived
from symgrad.graph.common import OutputNode, OutputValues, refusal
from symgrad.graph.modes import in_mode, observed, thread
from symgrad.graph.node import CALLS, IN_FORWARD, INFERENCE, NAMED, PACKED, TANGENT, TRACKED, Node, next_sequence

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class _Meta(type):
    """The metaclass that creates for each Function the class of its nodes and of their `ctx`."""

    def __init__(cls, name: str, bases: tuple, namespace: dict) -> None:
        super().__init__(name, bases, namespace)
        module = "torch.autograd.function"
        cls._backward_cls = context = derived(FunctionCtx, f"{name}Backward", __module__=module)
        cls._node_class = derived(FunctionNode, f"{name}Backward", __module__=module, function=cls, context=context)


def _undefined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a default rule as undefined. A rule defined by a subclass has no such mark."""
    function.undefined = True  # type: ignore[attr-defined]
    return function


class Function(metaclass=_Meta):
    """The base class of operations with a user-defined forward and backward.

    Write `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`, and `backward(ctx, *grads)`, which returns one
    gradient (or None) per argument of the forward; call it by `apply`. `jvp(ctx, *tangents)` is for forward-mode derivatives, and
    `symbolic(xp, *args)` declares the formula with the functions of a carrier `xp`; without it, the formula is the recorded forward.

    >>> import symgrad
    >>> class Cube(symgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.square = x * x
    ...         return ctx.square * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 3 * ctx.square
    >>> x = symgrad.tensor(2.0, requires_grad=True)
    >>> (first,) = symgrad.autograd.grad(Cube.apply(x), x, create_graph=True)
    >>> symgrad.autograd.grad(first, x)
    (tensor(12.),)
    """

    _node_class: type[FunctionNode]
    _backward_cls: type[FunctionCtx]
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(f"{type(self).__name__}: a Function has no instances; call its apply", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__}: a Function has no instances that are called; call its apply")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The values of the outputs."""
        raise NotImplementedError("Function: forward is not implemented")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on `ctx` what the backward needs, for a forward without the argument `ctx`."""
        raise NotImplementedError("Function: setup_context is not implemented")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the outputs; `vjp` is another name for it."""
        raise NotImplementedError("Function: backward is not implemented")

    vjp = backward

    @staticmethod
    @_undefined
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the arguments."""
        raise NotImplementedError("Function: jvp is not implemented")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The outputs for batched arguments, and their batch dimensions: `(outputs, out_dims)`.

        `info` has `batch_size` and `randomness`; `in_dims` has the batch dimension of each argument. Without this rule the forward is batched.
        """
        raise NotImplementedError("Function: vmap is not implemented; define it, or set generate_vmap_rule=True")

    @classmethod
    def _backward_rule(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(f"{cls.__name__}: backward and vjp are one method; define one of them")
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the operation and record its node.

        Raises every exception of the forward, and RuntimeError for a tensor marked dirty that is not an output.
        """
        split = cls.setup_context is not Function.setup_context
        if split or kwargs:
            args, kwargs = _bound(cls.forward, args, kwargs, split)
        if thread.modes.batches and cls.vmap is not Function.vmap and (found := apply_to_batch(cls, args)) is not NotImplemented:
            return found
        node = cls._node_class()
        node.places = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor))
        inputs = [args[i] for i in node.places]
        node.parents = tuple(None if (p := x._node) is INFERENCE else p for x in inputs)
        node.needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        ctx = node.public_node
        ctx.needs_input_grad = node.needs
        modes = thread.modes
        outer: Any = modes.recorder if modes.recorder.restores_nodes else None  # the recorder of an enclosing Function's forward
        flags = 0
        for p in node.parents:
            flags |= p.flags & TRACKED if p is not None and (outer is None or outer.tracks(p)) else 0
        hidden = outer is not None and any(map(outer.tracks, node.parents))
        recorded = hidden or bool(flags) and modes.grad
        flags = flags * modes.grad | IN_FORWARD * hidden
        recorder = ForwardRecorder(cls.__name__, lambda: reach_of(cls, cls._backward_rule(), Function),
                                   bool(flags & (NAMED | TANGENT)) or modes.keep_values, outer) if recorded else None
        with in_mode(grad=False) if recorder is None else _forward(recorder):
            output = cls.forward(*args, **kwargs) if split else cls.forward(ctx, *args, **kwargs)
            if split:
                cls.setup_context(ctx, args, output)
            many = isinstance(output, tuple)
            outputs = output if many else (output,)
            if recorder is not None and recorder.keep_values:  # here, since a written input gets its former node back
                node.inner = tuple(y._node if isinstance(y, Tensor) else None for y in outputs)
        for t in node.dirty:
            if not any(t is x for x in inputs):
                warnings.warn("mark_dirty: a tensor is no input of the Function", UserWarning, stacklevel=2)
            stamp(t._array(), "mark_dirty")
        if not all(any(t is y for y in outputs) for t in node.dirty):
            raise RuntimeError(f"{cls.__name__}: what mark_dirty names must be returned by forward")
        if recorder is None:
            finished = tuple(_fresh(y, inputs, node.dirty) for y in outputs)
        else:
            node.flags, node.span = flags | CALLS, recorder.close()
            node.call = args if recorder.keep_values or node.span.first_escape < float("inf") else None
            if outer is not None and node.span.first_escape < float("inf") and not all(isinstance(y, Tensor) for y in outputs):
                outer.span.first_escape = min(outer.span.first_escape, node.span.first_escape)
            finished = _recorded(node, inputs, outputs, many)
        return finished if many else finished[0]


class InplaceFunction(Function):
    """A Function with a flag `inplace`, for old programs.

    >>> import symgrad
    >>> issubclass(symgrad.autograd.function.InplaceFunction, symgrad.autograd.Function)
    True
    """

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


BackwardCFunction = FunctionCtx  # torch's name of the class of `ctx`


class _forward(in_mode):
    """The modes of a Function's forward: its recorder is active. At the end the tensors that it wrote get their former nodes back."""

    __slots__ = ()

    def __init__(self, recorder: ForwardRecorder):
        super().__init__(grad=False, recorder=recorder)

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        recorder = self.fields["recorder"]
        if self._entered is not None:
            recorder.refresh_views()
        super()._leave(kind)
        recorder.restore()


def _bound(forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any], split: bool) -> tuple[tuple, dict[str, Any]]:
    """The arguments in the order of the forward; with the defaults if `setup_context` receives them."""
    bound = inspect.signature(forward).bind(*(() if split else (None,)), *args, **kwargs)
    if split:
        bound.apply_defaults()
    return bound.args[not split:], bound.kwargs


def _fresh(y: Any, inputs: Sequence[Tensor], dirty: Sequence[Tensor]) -> Any:
    """An output of a call that is not recorded. An input that is returned becomes a view of itself, or a constant if it requires grad."""
    if not isinstance(y, Tensor):
        return y
    if not any(y is x for x in inputs):
        if base_of(y) is not None:
            y._view.made = CUSTOM
        return y
    if y.requires_grad:
        return y.detach()
    return y if any(y is t for t in dirty) else _view_as_self(y, INFERENCE if y._node_slot is INFERENCE else None, CUSTOM)


def _view_as_self(y: Tensor, node: Node | None, made: str) -> Tensor:
    """A view of all of an input that is returned, in every mode as one that a Function made."""
    view = register_view(wrap(y._array(), node), y, made)
    if base_of(view) is not None:
        view._view.made = made
    return view


def _recorded(node: FunctionNode, inputs: Sequence[Tensor], outputs: tuple, many: bool) -> tuple:
    """The outputs with their nodes in the graph."""
    for t in node.dirty if thread.modes.grad else ():
        if t.requires_grad and is_leaf_unrefreshed(t):
            raise RuntimeError(LEAF_WRITTEN)
        refuse_in_place(t)
        if len(outputs) > 1 and base_of(t) is not None:
            raise RuntimeError(f"{node.name()}: a Function that writes to a view must return one Tensor; clone the view before, or use two Functions")
    held = None if thread.modes.level is None else held_tangents(node, inputs)
    many = many or not isinstance(outputs[0], Tensor)
    values = tuple(y._value if isinstance(y, Tensor) else None for y in outputs)
    node.args, node.value = tuple(x._value for x in inputs), OutputValues(values) if many else values[0]
    node.sequence_nr = since = next_sequence()
    kinds = [_kind(y, inputs, node) for y in outputs]
    if node.attributes.get("_materialize_non_diff_grads") is False:
        node.unmaterialized = frozenset(k for k, kind in enumerate(kinds) if kind == CONSTANT)
    output_nodes = [OutputNode(node, k) for k in reversed(range(len(outputs)))][::-1] if many else [node]  # the latest is visited first
    node.outputs = tuple(map(weakref.ref, output_nodes)) if many else ()
    finished = tuple(_finished(y, kind, output_node, inputs, len(outputs) > 1) for y, kind, output_node in zip(outputs, kinds, output_nodes))
    observed(node)
    node.saved, node.saved_for_jvp = (tuple(None if t is None else _saved(t, outputs, finished, kinds, inputs, since) for t in kept)
                                      for kept in (node.to_save, node.to_save_for_forward))
    for name, value in list(node.attributes.items()):
        for k, y in enumerate(finished):
            if value is y and kinds[k] in (NEW, DIRTY) and isinstance(y, Tensor):
                node.output_attributes[name] = k
                node.attributes.pop(name, None)
    if thread.modes.saving is not None:
        node.flags |= PACKED
    if held is not None:
        set_tangents(node, inputs, finished, [kind in (PLAIN, CONSTANT) for kind in kinds], held)
    node.to_save = node.to_save_for_forward = node.dirty = node.constant = ()
    return finished


PLAIN, CONSTANT, DIRTY, GIVEN, NEW = "plain", "constant", "dirty", "given", "new"


def _kind(y: Any, inputs: Sequence[Tensor], node: FunctionNode) -> str:
    """How an output enters the graph: one of the kinds above."""
    if not isinstance(y, Tensor):
        return PLAIN
    if any(y is t for t in node.constant) or y._value.dtype.kind not in "fcV":
        return CONSTANT
    if any(y is t for t in node.dirty):
        return DIRTY
    return GIVEN if any(y is x for x in inputs) else NEW


def _finished(y: Any, kind: str, output_node: Node, inputs: Sequence[Tensor], many: bool) -> Any:
    """An output with its node. An output that shares an input's memory becomes a view that must not be written; a written input loses its `.grad`."""
    if kind == DIRTY:
        rebase_history(y, y._node, output_node)
        y.grad = None
    elif kind == GIVEN:
        return _view_as_self(y, output_node, MANY if many else CUSTOM)
    elif kind == CONSTANT:
        if not any(y is x for x in inputs):
            y._node = None
            return y
        return wrap(y._array())
    elif kind == NEW:
        y._node = output_node
        if base_of(y) is not None:
            y._view.made = MANY if many else CUSTOM
    return y


def _saved(t: Tensor, outputs: tuple, finished: tuple, kinds: Sequence[str], inputs: Sequence[Tensor], since: int) -> Saved:
    if is_inference(t):
        raise InferenceError(CANNOT_BE_SAVED)
    for k, y in enumerate(outputs):
        if t is y and kinds[k] in (NEW, DIRTY):
            return Saved(finished[k], k, since, True)
    return Saved(t, None, since, any(t is x for x in (*inputs, *outputs)))


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a Function's backward as not differentiable: differentiating it raises RuntimeError.

    So does `grad` with `allow_unused`, where torch finds no path to the inputs and returns None.
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any) -> Any:
        node = ctx._node
        if node.reading:
            return fn(ctx, *args)
        with in_mode(grad=False):
            outputs = fn(ctx, *args)
        if not thread.modes.grad:
            return outputs
        sources = [p for p in (*(x._node for x in args if isinstance(x, Tensor)), *node.parents) if p is not None and p.flags & TRACKED]
        why = "trying to differentiate twice a function that was marked with @once_differentiable"
        refused = tuple(wrap(y._value, refusal(y._value, sources, why)) if isinstance(y, Tensor) else y
                        for y in (outputs if isinstance(outputs, tuple) else (outputs,)))
        return refused if isinstance(outputs, tuple) else refused[0]

    return backward
