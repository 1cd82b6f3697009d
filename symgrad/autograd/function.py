"""`Function`: an operation whose forward and backward the user writes, with Tensors.

Its forward is recorded out of sight: what it computes knows the inputs it came from, though it requires no grad. So a second derivative
through an intermediate that was put on `ctx` is right, and the forward gives the formula of the operation unless it declares one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.bundles import Bundle, Output
from symgrad.autograd.formulas import cotangents_in, op_of
from symgrad.autograd.saving import Packed, packed
from symgrad.autograd.saving import Packed, packed
from symgrad.carriers import numeric
from symgrad.graph import FREED, NAMED, RELEASED, SHADOW, TANGENT, TRACKED, Node, make_node, mode, next_sequence, observed, record, upstream, watch
from symgrad.lift import traced
from symgrad.op import Op
from symgrad.saved import changed
from symgrad.tensor import Tensor, wrap
from symgrad.versions import first_write_after
from symgrad.views import CUSTOM, KIN, adopt, rebase

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What a Function's forward leaves for its backward. It is the node of the graph as well: `y.grad_fn` is the `ctx` of `y`."""

    needs_input_grad: tuple[bool, ...]
    _to_save: tuple[Any, ...] = ()
    _to_forward: tuple[Any, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _constant: tuple[Tensor, ...] = ()
    _materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for the backward, which finds them in `saved_tensors`, and finds out if they were written meanwhile.

        Raises TypeError for anything else.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(t).__name__}; keep other things as "
                                f"attributes of ctx")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        self._to_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs the forward wrote in place; they must be among its outputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs no gradient flows through."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether the gradient of an output that was not used arrives as zeros (the default) or as None."""
        self._materialize = value


class FunctionNode(Node, FunctionCtx):
    """The node of a custom Function."""

    broadcasts = saves = chooses = False
    silent = True  # a None among its cotangents leaves `.grad` alone
    function: type[Function]
    inner: tuple[Any, ...] | None = None
    escaped = False
    _saved: tuple[Any, ...] | None = ()
    _saved_for_forward: tuple[Any, ...] = ()
    _op: Op | None = None

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that the forward saved.

        Raises RuntimeError once the graph was freed, and for a tensor that was written in place since.
        """
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple(self._unpack(entry) for entry in self._saved)

    saved_variables = saved_tensors

    def _unpack(self, entry: Any) -> Tensor | None:
        if entry is None:
            return None
        value, node, output, since = entry[:4]
        source = self if output == 0 and not self._many else Output(self, output) if output is not None else node
        found = first_write_after(value, since)
        if found is not None:
            raise changed(value, *found, source if source is None or source.requires_grad else None)
        return wrap(value.unpack() if type(value) is Packed else value, source)

    @property
    def _many(self) -> bool:
        return isinstance(self.value, tuple)

    @property
    def op(self) -> Op:  # type: ignore[override]
        """The op this node stands for in other carriers, made when one asks."""
        if self._op is None:
            self._op = op_of(self)
        return self._op

    def vjp(self, xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:  # type: ignore[override]
        """The cotangents by the user's backward."""
        if xp is numeric:
            return tuple(None if c is None else c._value for c in self.pulled(g, needs, wrap))
        if xp is traced:
            self.promote()
            return self.pulled(g, needs, lambda x: x)
        return cotangents_in(self, xp, g, y, args, needs)

    def pulled(self, g: Any, needs: Sequence, lift: Callable[[Any], Tensor]) -> tuple[Tensor | None, ...]:
        """Call the user's backward with cotangents as Tensors; what it returns is fitted to the tensor arguments."""
        values = self.value if self._many else (self.value,)
        parts = g.parts if isinstance(g, Bundle) else (g,)
        given = [lift(c) if c is not None else wrap(np.zeros_like(v)) if self._materialize and v is not None else None
                 for c, v in zip(parts, values)]
        found = self.function.backward(self, *given)
        found = found if isinstance(found, tuple) else (found,)
        return self._fitted(found, needs)

    def _fitted(self, found: tuple, needs: Sequence) -> tuple[Tensor | None, ...]:
        name, count = type(self).__name__, len(self.needs_input_grad)
        if len(found) > count and any(c is not None for c in found[count:]) or len(found) < count:
            raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected {count}, got {len(found)})")
        out: list[Tensor | None] = []
        tensors = iter(zip(self._places, needs, self.parents))
        place, need, parent = next(tensors, (None, None, None))
        for i, c in enumerate(found[:count]):
            if i != place:
                if c is not None:
                    raise RuntimeError(f"function {name} returned a gradient different from None at position {i + 1}, but the corresponding forward "
                                       f"input was not a Variable")
                continue
            if c is not None and not isinstance(c, Tensor):
                raise TypeError(f"expected Variable or None (got {type(c).__name__}) as gradient {i} of {name}")
            out.append(None if need is None or c is None else self._reduced(c, self._shapes[len(out)], i))
            place, need, parent = next(tensors, (None, None, None))
        return tuple(out)

    def _reduced(self, c: Tensor, shape: tuple[int, ...], i: int) -> Tensor:
        if c.shape == shape:
            return c
        fits = len(c.shape) >= len(shape) and all(n in (1, m) for n, m in zip(shape[::-1], c.shape[::-1]))
        if not fits:
            raise RuntimeError(f"Function {type(self).__name__} returned an invalid gradient at index {i} - got {list(c.shape)} but expected shape "
                               f"compatible with {list(shape)}")
        return traced.sum_to_size(c, tuple(shape))

    def promote(self) -> None:
        """Let what the forward left on ctx take part in a graph of the derivative.

        Raises RuntimeError where it left numbers there that were computed from an input and do not know it.
        """
        kept = [t for t in _tensors([entry for entry in vars(self).values() if entry is not self.parents])]
        kept += [wrap(entry[0], entry[1]) for entry in self._saved or () if entry is not None]
        for node in upstream([t._node for t in kept]):
            if node.flags & SHADOW:
                for p in node.parents:
                    node.flags |= 0 if p is None else p.flags & TRACKED
        if self.escaped and (lost := self._lost()):
            raise RuntimeError(f"{type(self).__name__}: the second derivative would be wrong: the forward turned a tensor into plain numbers (by "
                               f"numpy(), item() or the like) and left {lost}, which may depend on its inputs and cannot know it. Save the inputs "
                               f"with save_for_backward and compute it in backward, or mark the backward with once_differentiable")

    def _lost(self) -> str | None:
        for name, value in vars(self).items():
            if name not in OWN and isinstance(value, (float, complex, np.ndarray, np.generic)):
                return f"ctx.{name}"
        for i, entry in enumerate(self._saved or ()):
            if entry is not None and entry[1] is None and entry[2] is None and entry[0].dtype.kind in "fc" and not entry[4:]:
                return f"ctx.saved_tensors[{i}]"
        return None

    def release(self) -> None:
        """Forget what was saved, once a pullback has run."""
        if not self.flags & NAMED:
            self.inner = None
            if self._saved:
                self._saved = None

    def jvp(self, *tangents: Any) -> Any:
        """The tangents of the outputs, by the user's `jvp`."""
        self.saved_for_forward = tuple(self._unpack(entry) for entry in self._saved_for_forward)
        return self.function.jvp(self, *tangents)


OWN = frozenset({"value", "needs_input_grad", "inner", "escaped", "args", "parents", "flags", "sequence_nr"})


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


class _Shadow:
    """Records a Function's forward out of sight: the nodes know their inputs, but no tensor requires grad by them."""

    def __init__(self) -> None:
        self.escaped = False

    def __call__(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        if not op.differentiable or not any(p is not None and p.flags & (TRACKED | SHADOW) for p in parents):
            return None
        return make_node(op, args, parents, value, SHADOW)

    def escape(self, t: Tensor) -> None:
        """Note that a tensor which depends on an input was read as plain numbers."""
        self.escaped |= t._node is not None

    def detach(self, t: Tensor) -> Node | None:
        """The node of a tensor that is detached here, where nothing requires grad anyway."""
        return t._node if t._node is not None and t._node.flags & SHADOW else None


class _Meta(type):
    """Gives each Function the class of its nodes."""

    def __init__(cls, name: str, bases: tuple, namespace: dict) -> None:
        super().__init__(name, bases, namespace)
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"function": cls, "__module__": "torch.autograd.function"})


class Function(metaclass=_Meta):
    """An operation with a forward and a backward of its own.

    Write `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs, output)`, and `backward(ctx, *grads)`, which returns one
    gradient (or None) per argument of the forward; call it by `apply`. `jvp(ctx, *tangents)` is for forward-mode derivatives, and
    `symbolic(xp, *args)` declares the formula, in the words of the rules; without it, the formula is the recorded forward.

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
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
                           f"class itself. Instantiating an autograd function is not allowed; call {type(self).__name__}.apply")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The values of the outputs."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on `ctx` what the backward needs, where the forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
                                  "mode AD.")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the arguments."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The outputs for a batch of arguments, and where their batch dimension is."""
        raise NotImplementedError("You must implement the vmap method of this custom autograd.Function, or set generate_vmap_rule = True, to use it "
                                  "with vmap.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the operation and record its node.

        Raises what the forward raises, and RuntimeError for a tensor marked dirty that is no output.
        """
        ctx = cls._node_class.__new__(cls._node_class)
        places = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor))
        inputs = [args[i] for i in places]
        ctx.parents = tuple(x._node for x in inputs)
        flags = 0
        for p in ctx.parents:
            flags |= 0 if p is None else p.flags & (TRACKED | SHADOW)
        hidden = isinstance(mode.watcher, _Shadow)  # called in the forward of another Function
        recorded = bool(flags) and (mode.grad or hidden)
        flags = SHADOW if hidden else flags & TRACKED
        ctx.needs_input_grad = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        shadow = _Shadow() if recorded else None
        before, watcher = record(False), watch(shadow or mode.watcher)
        try:
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            watch(watcher)
            record(before)
        outputs = output if isinstance(output, tuple) else (output,)
        for t in ctx._dirty:
            if not any(t is y for y in outputs):
                raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                                   "modified inplace must all be outputs of the Function.")
        if shadow is None or not recorded:
            finished = tuple(_fresh(y, inputs, ctx._dirty) for y in outputs)
        else:
            ctx._places, ctx._shapes, ctx.escaped = places, tuple(x.shape for x in inputs), shadow.escaped
            finished = _recorded(ctx, args, inputs, outputs, flags)
        return finished if isinstance(output, tuple) else finished[0]


def _fresh(y: Any, inputs: Sequence[Tensor], dirty: Sequence[Tensor]) -> Any:
    """An output that no graph knows; an input that is returned as it is becomes a view of itself."""
    if isinstance(y, Tensor) and any(y is x for x in inputs) and not any(y is t for t in dirty):
        return wrap(y._array())
    return y


def _recorded(ctx: Any, args: tuple, inputs: Sequence[Tensor], outputs: tuple, flags: int) -> tuple:
    """The outputs with their places in the graph."""
    many = len(outputs) > 1 or not isinstance(outputs[0], Tensor)
    complete = flags & (NAMED | TANGENT) or mode.complete
    ctx.inner = tuple(y._node if isinstance(y, Tensor) else None for y in outputs) if complete else None
    ctx.call = args if complete else None
    values = tuple(y._value if isinstance(y, Tensor) else None for y in outputs)
    ctx.args = tuple(x._value for x in inputs)
    ctx.value, ctx.flags = values if many else values[0], flags
    to_save = ctx._to_save
    saved = [_entry(t, inputs, outputs, ctx) for t in to_save]
    ctx._saved_for_forward = tuple(_entry(t, inputs, outputs, ctx) for t in ctx._to_forward)
    ctx._to_save = ctx._to_forward = ()
    ctx.sequence_nr = since = next_sequence()
    ctx._saved = tuple(None if entry is None else (*entry[:3], since, *entry[3:]) for entry in saved)
    ctx._saved_for_forward = tuple(None if entry is None else (*entry[:3], since, *entry[3:]) for entry in ctx._saved_for_forward)
    finished = []
    for k, y in enumerate(outputs):
        if not isinstance(y, Tensor) or any(y is t for t in ctx._constant) or y._value.dtype.kind not in "fcV":
            finished.append(y if not isinstance(y, Tensor) else _plain(y))
            continue
        node = Output(ctx, k) if many else ctx
        if any(y is t for t in ctx._dirty):
            rebase(y, y._node, node)
        else:
            y = _placed(y, inputs, node)
        finished.append(y)
    ctx._dirty = ctx._constant = ()
    observed(ctx)
    ctx._saved = tuple(entry if entry is None else (packed(t if entry[2] is None else finished[entry[2]]) or entry[0], *entry[1:])
                       for entry, t in zip(ctx._saved, to_save))
    return tuple(finished)


def _plain(y: Tensor) -> Tensor:
    y._node = None
    return y


def _placed(y: Tensor, inputs: Sequence[Tensor], node: Node) -> Tensor:
    """An output at its node; one that shows an input's memory is a view that may not be written."""
    source = next((x for x in inputs if y is x), None)
    if source is not None:
        return adopt(wrap(y._array(), node), source, CUSTOM)
    y._node = node
    kin = KIN.get(id(y))
    if kin is not None and kin.base is not None:
        kin.made = CUSTOM
    return y


def _entry(t: Tensor | None, inputs: Sequence[Tensor], outputs: Sequence[Any], ctx: Any) -> tuple | None:
    """A saved tensor as its value with its node, or the number of the output it is (which would refer to itself)."""
    if t is None:
        return None
    for k, y in enumerate(outputs):
        if t is y and (not any(t is x for x in inputs) or any(t is d for d in ctx._dirty)):
            return (t._value, None, k) if not any(t is c for c in ctx._constant) else (t._value, None, None, "constant")
    return (t._value, t._node, None, *(("input",) if any(t is x for x in inputs) else ()))


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a Function's backward as one that cannot be differentiated: trying to raises RuntimeError instead of being wrong."""

    @functools.wraps(function)
    def backward(ctx: Any, *args: Any) -> Any:
        before = record(False)
        try:
            outputs = function(ctx, *args)
        finally:
            record(before)
        if not mode.grad or not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            return outputs
        from symgrad.autograd.bundles import once

        given = [x for x in args if isinstance(x, Tensor)]
        many = isinstance(outputs, tuple)
        refused = tuple(once(y, given) if isinstance(y, Tensor) else y for y in (outputs if many else (outputs,)))
        return refused if many else refused[0]

    return backward
