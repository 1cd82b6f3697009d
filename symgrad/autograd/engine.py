"""`backward` and `grad`: torch's interface to the pullback."""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.batched import batched
from symgrad.autograd.graph import GradientEdge, current
from symgrad.autograd.seeds import plain_seeds, seeds_of, tensors_of
from symgrad.carriers import numeric
from symgrad.engine.cotangents import in_dtype
from symgrad.engine.data import copied
from symgrad.engine.hooks import accumulate, hooks_of
from symgrad.engine.malloc_workaround import LEAST, hold_heap
from symgrad.engine.method_table import MethodTable
from symgrad.engine.passes import along_paths, is_short, pullback
from symgrad.engine.saved import traced_args
from symgrad.engine.storage.views import UnrecordedLeaf
from symgrad.engine.tasks import GraphTask
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.errors import UNUSED
from symgrad.graph.derivative import DerivativeNode, joined_inputs, sources
from symgrad.graph.freed import freed
from symgrad.graph.modes import in_mode, special, thread
from symgrad.graph.node import CALLS, HOOKED, NAMED, Leaf, Node, all_threads
from symgrad.graph.order import reached
from symgrad.layouts.strides import dense

METHODS = MethodTable()
NONE = frozenset[Node]()


def run(seeds: list[tuple[Node, Any]], keep: frozenset[Node], wanted: set[Node] | None, retain: bool, create_graph: bool,
        deliver: Any = None, task: GraphTask | None = None) -> dict[Node, Any]:
    """A pullback with hooks and anomaly mode. `keep` are the nodes whose cotangents are returned, `wanted` the nodes on paths to them.

    `task` is needed where a user's code may be called.
    """
    checks = None if not special or (anomaly := thread.modes.anomaly) is None else anomaly.checks(seeds)
    hooks = checks.hooks_of if checks is not None else None if task is None else hooks_of
    xp, read = (traced, traced_args) if create_graph else (numeric, None)
    if not retain and seeds and type(value := seeds[0][0].value) is np.ndarray and value.nbytes > LEAST:
        hold_heap(value.nbytes)
    if task is None:
        if not create_graph or not special:  # numeric rules record nothing
            return pullback(xp, seeds, read, wanted, keep, release=not retain, deliver=deliver)
        with in_mode(grad=True):
            return pullback(xp, seeds, read, wanted, keep, release=not retain, deliver=deliver)
    task.wanted = wanted
    compute = functools.partial(pullback, xp, seeds, read, wanted, keep, release=not retain, hooks=hooks, instrumented=checks is not None,
                                deliver=deliver)
    try:
        return task.run(compute, grad=create_graph, checks=checks)
    except Exception:
        if checks is not None:
            checks.failed()
        raise


def task_of(seeds: list[tuple[Node, Any]]) -> GraphTask | None:
    """The task of a pullback that may call a user's code, None for any other."""
    if not all_threads.hooked and (not special or thread.modes.anomaly is None):
        for node, _ in seeds:
            if node.flags & CALLS:
                break
        else:
            return None
    return GraphTask(seeds)


def _run(seeds: list[tuple[Node, Any]], inputs: Sequence[Tensor] | None, retain: bool, create_graph: bool, deliver: Any = None,
         task: GraphTask | None = None) -> dict[Node, Any]:
    wanted, keep = None, frozenset[Node]()
    if inputs is not None:
        keep = frozenset([node for x in inputs if (node := x._node) is not None and type(node) is not UnrecordedLeaf])
        nodes = reached([node for node, _ in seeds], differentiable=True)
        if any([node.parents for node in keep]) or not keep.issuperset([node for node in nodes if not node.parents]):  # else all ends are asked for
            calls = {node.origin for node in keep if node.origin is not node and node.origin.flags & HOOKED} if all_threads.hooked else ()
            wanted = _leading(nodes, keep if not calls else keep.union([node for node in nodes if node.origin in calls]))  # hooks see all outputs
            if len(seeds) > 1:  # of several outputs, those of calls that depend on no input take no part
                calls = {node.origin for node in wanted}
                seeds = [seed for seed in seeds if seed[0].origin in calls]
    return run(seeds, keep, wanted, retain, create_graph, deliver, task)


def _paths(seeds: Sequence[tuple[Node, Any]], keep: frozenset[Node]) -> set[Node]:
    """The nodes on paths from the seeds to the nodes in `keep`."""
    return _leading(reached([node for node, _ in seeds], differentiable=True), keep)


def _leading(nodes: set[Node], keep: frozenset[Node]) -> set[Node]:
    """Those of some nodes that depend on a node in `keep`, and these."""
    wanted: set[Node] = set(keep)
    for node in sorted(nodes, key=_sequence):
        if not wanted.isdisjoint(node.parents):
            wanted.add(node)
    return wanted


_sequence = operator.attrgetter("sequence_nr")


def _own_memory(g: Any, like: Any = None) -> Any:
    """A cotangent in memory without other references, copied only if necessary. The caller must hold it in exactly one local variable.

    The result has the layout of `like` if that is dense, else that of a contiguous array.
    """
    alone = sys.getrefcount(g) <= 3  # the references of the caller's variable, of the parameter, and of `getrefcount`
    if type(g) is np.ndarray and type(like) is np.ndarray and like.flags.c_contiguous:
        if alone and (flags := g.flags).c_contiguous and flags.writeable:
            if (base := g.base) is None:
                return g
            sole = type(base) is np.ndarray and sys.getrefcount(base) <= 3
            if sole and base.shape == g.shape and base.strides == g.strides and base.dtype is g.dtype:
                return base  # of a matrix that was transposed twice
    elif not isinstance(g, np.ndarray):
        return g if alone or not isinstance(g, np.generic) else copied(g)
    packed = isinstance(like, np.ndarray) and not like.flags.c_contiguous and dense(like)
    if alone and g.base is None and g.flags.writeable:
        if like is None or (g.flags.c_contiguous if not packed else dense(g) and g.strides == like.strides):
            return g
    out = np.empty_like(like, g.dtype) if packed else np.empty(g.shape, g.dtype)
    out[...] = g
    return out


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves (or of `inputs`): Σ gᵢ · ∂yᵢ/∂x.

    `grad_tensors` gives the cotangent gᵢ of each tensor, which a scalar does not need. The graph is freed unless
    `retain_graph`; with `create_graph` the gradients can be differentiated again.

    Raises RuntimeError for a tensor outside every graph, a cotangent of another shape, and a graph that was freed.

    >>> import symgrad
    >>> x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> symgrad.autograd.backward([x.square().sum(), x.sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    if inputs is None and not create_graph and not special and not all_threads.hooked and (seeds := plain_seeds(tensors, grad_tensors)) is not None:
        task = None
        if seeds[0][0].flags & CALLS or len(seeds) > 1:
            task = task_of(seeds)
        if task is None and seeds[0][1].nbytes <= LEAST and (len(seeds) == 1 or is_short(seeds)):
            out = along_paths(seeds, not retain_graph)
        else:
            out = run(seeds, NONE, None, bool(retain_graph), False, None if task is None else functools.partial(_deliver, seeds, False), task)
        while out:  # emptied, so that nothing else refers to the cotangents
            node, g = out.popitem()
            if isinstance(node, Leaf) and (t := node.variable) is not None:
                value = t._value
                if t._node_slot is not node:
                    g = _in_shape(numeric, g, t)
                g = numeric.zeros_like(value) if g is None else _own_memory(g, value)
                accumulate(t, g if g.dtype is value.dtype else in_dtype(g, value))
                if node.flags & NAMED:
                    t._grad._formula = [*getattr(t._grad, "_formula", ()), (seeds, node)]
        if task is not None and task.callbacks:
            task.call_back()
        return
    outputs = tensors_of(tensors, "tensors")
    asked = None if inputs is None else tensors_of(inputs, "inputs")
    if asked is not None and not asked:
        raise RuntimeError("backward: `inputs` must not be empty")
    seeds = seeds_of(outputs, grad_tensors, create_graph)
    for i, x in enumerate(asked or ()):
        if not x.requires_grad:
            raise RuntimeError(f"backward: inputs[{i}] does not require grad, and gets no gradient")
        current(x)
        if not x.is_leaf:  # as in PyTorch, it keeps its gradient from now on
            x.retain_grad()

    delivered: set[Node] = set()

    def deliver(leaf: Any, given: list[Any]) -> None:
        delivered.add(leaf)
        _deliver(seeds, create_graph, leaf, given)

    retain = create_graph if retain_graph is None else bool(retain_graph)
    task = task_of(seeds)
    out = _run(seeds, asked, retain, create_graph, deliver, task)
    leaves: list[tuple[Any, Any]] = [(node.variable, node) for node in out if isinstance(node, Leaf)]
    targets: list[tuple[Any, Any]] = leaves if asked is None else [(x, x._node) for x in asked if x.is_leaf]
    for t, node in targets:
        if node in out and node not in delivered and not isinstance(node, UnrecordedLeaf):
            _give(seeds, create_graph, t, node, out.pop(node))
    if task is not None and task.callbacks:
        task.call_back()


def _in_shape(xp: Any, g: Any, t: Tensor) -> Any:
    """A cotangent in the shape of its leaf, which may have got another one after it was used."""
    if g is None or (shape := tuple(g.shape)) == tuple(t.shape):
        return g
    try:
        return xp.copy(xp.broadcast_to(g, tuple(t.shape))) if xp is numeric else xp.broadcast_to(g, tuple(t.shape))
    except (ValueError, RuntimeError):
        raise RuntimeError(f"backward: a gradient has shape {list(shape)}, but its leaf has shape {list(t.shape)} now: it got another shape in place "
                           f"after it was used. Give it that shape before the computation, or compute with a copy, x.clone().") from None


def _give(seeds: Sequence[tuple[Node, Any]], create_graph: bool, t: Any, node: Node, g: Any) -> Any:
    """Add the cotangent of a node to the `.grad` of its tensor, if that is alive; returns what was added."""
    if t is None:
        return g
    if t._node_slot is not node and type(node) is Leaf:
        g = _in_shape(traced if create_graph else numeric, g, t)
    if create_graph:
        with in_mode(grad=True):
            accumulate(t, g := _derivative(g, t, [node]))
        return g
    g = numeric.zeros_like(t._value) if g is None else _own_memory(g, t._value)
    accumulate(t, g := in_dtype(g, t._value))
    if node.flags & NAMED:
        t._grad._formula = [*getattr(t._grad, "_formula", ()), (seeds, node)]
    return g


def _deliver(seeds: Sequence[tuple[Node, Any]], create_graph: bool, leaf: Any, given: list[Any]) -> None:
    """Add the cotangent of a hooked leaf, the only item of a list, as soon as it is complete, and call the hooks that wait for that."""
    given.append(_give(seeds, create_graph, leaf.variable, leaf, given.pop()))
    holder = leaf.reference()  # alive even if it has left the graph
    for hook in list(leaf.hooks.accumulated.values()) if holder is not None else ():
        found = hook(holder)
        if found is not None:
            raise (RuntimeError if isinstance(found, Tensor) else TypeError)(f"a hook of a leaf must return None, not {type(found).__name__}")


def _derivative(g: Tensor | None, x: Tensor, inputs: Sequence[Node]) -> Tensor:
    """A derivative with a `DerivativeNode`, so that even a constant one can be differentiated again; in memory without other references."""
    if g is None:
        return wrap(value := np.zeros_like(x._value), DerivativeNode(value, None, inputs))
    like = g._value if x._value is freed else x._value
    g = in_dtype(g, like)
    if isinstance(g._node, Leaf):  # the given cotangent itself, of which the derivative is a copy
        g = traced.overwrite(np.zeros_like(g._value), g)
    held = g._value
    value = _own_memory(held, like)
    return wrap(value, DerivativeNode(value, g._node, inputs))


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> Any:
    """The gradients of `outputs` with respect to `inputs`, returned and not accumulated: Σ gᵢ · ∂yᵢ/∂x.

    With `create_graph` the result can be differentiated again, to any order; a derivative that is constant has derivative
    zero, or None with `allow_unused`. An input the outputs do not depend on raises, unless `allow_unused` (None is returned) or
    `materialize_grads` (zeros).
    With `is_grads_batched` every cotangent has one more leading dimension, and so has every gradient: all of them in one pass.
    For a dict of inputs there is a dict of gradients. `only_inputs` has no effect.

    Raises RuntimeError for an output outside every graph, an unused input, a graph that was freed, and cotangents of other shapes.

    >>> import symgrad
    >>> x = symgrad.tensor(2.0, requires_grad=True)
    >>> (first,) = symgrad.autograd.grad(x**3, x, create_graph=True)
    >>> symgrad.autograd.grad(first, x)
    (tensor(12.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: allow_unused=False contradicts materialize_grads=True, which gives zeros for unused inputs")
    if not only_inputs:
        warnings.warn("grad: only_inputs has no effect; backward accumulates gradients", FutureWarning, stacklevel=2)
    if isinstance(inputs, dict):
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, True, allow_unused, is_grads_batched,
                     materialize_grads)
        return dict(zip(inputs, found))
    if not isinstance(inputs, (Tensor, tuple, list)):
        inputs = tuple(inputs)  # it may be an iterator
    ys, xs = tensors_of(outputs, "outputs"), tensors_of(inputs, "inputs")
    if is_grads_batched:
        return batched(grad, ys, xs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    seeds = seeds_of(ys, grad_outputs, create_graph)
    for i, x in enumerate(xs):
        if not x.requires_grad:
            raise RuntimeError(f"grad: inputs[{i}] does not require grad; make it with requires_grad=True")
        current(x)
    retain = create_graph if retain_graph is None else bool(retain_graph)
    task = None
    if len(seeds) != 1 or seeds[0][0].flags & CALLS or all_threads.hooked or special and thread.modes.anomaly is not None:
        task = task_of(seeds)
    out = _run(seeds, xs, retain, create_graph, None, task)
    if task is not None and task.callbacks:
        task.call_back()
    nodes = [x._node for x in xs]
    constant = {node for node in nodes if node is not None and out.get(node, NONE) is None} if allow_unused and not materialize_grads else ()
    if constant:  # what a constant derivative was computed by is unused
        for unused in constant - sources([node for node, _ in seeds]):
            del out[unused]
    parents = joined_inputs(nodes) if create_graph else ()  # type: ignore[arg-type]
    results: list[Tensor | None] = []
    for i, (x, node) in enumerate(zip(xs, nodes)):
        if node in out and not isinstance(node, UnrecordedLeaf):
            g = out[node]
            if create_graph:
                results.append(_derivative(g, x, parents))
                continue
            result = wrap(np.zeros_like(x._value) if g is None else _own_memory(g) if x._value is freed else in_dtype(_own_memory(g), x._value))
            if node.flags & NAMED:
                result._formula = [(seeds, node)]
            results.append(result)
        elif materialize_grads:
            if type(inputs) is GradientEdge or type(inputs) in (list, tuple) and type(inputs[i]) is GradientEdge:
                raise RuntimeError(f"grad: materialize_grads has no shape for the unused GradientEdge inputs[{i}]")
            zeros = wrap(np.zeros_like(x._value))
            results.append(zeros.requires_grad_() if create_graph else zeros)
        elif allow_unused:
            results.append(None)
        else:
            raise RuntimeError(f"{UNUSED.format(i)} inputs[{i}] is no part of the outputs")
    return tuple(results)


def clear_gradients(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Set the gradient of each tensor to None, or to zero in place and detached."""
    for t in tensors:
        if set_to_none or t.grad is None:
            t.grad = None
        else:
            (t.grad.requires_grad_(False) if t.grad.grad_fn is None else t.grad.detach_()).zero_()


def _backward_method(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Add the gradient of this tensor to the `.grad` of the leaves; see `symgrad.autograd.backward`."""
    backward(self, gradient, retain_graph, create_graph, inputs)


METHODS["backward"] = _backward_method
