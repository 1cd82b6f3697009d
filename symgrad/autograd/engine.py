"""`backward` and `grad`: torch's interface to the pullback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.graph import GradientEdge
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of, new_level
from symgrad.engine.hooks import Pullback, accumulate, hooks_of
from symgrad.engine.passes import pullback
from symgrad.engine.saved import traced_args
from symgrad.engine.storage.views import UnrecordedLeaf
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, as_value, wrap
from symgrad.engine.traced import traced
from symgrad.graph.modes import in_mode, special, thread
from symgrad.graph.node import GRADIENT, NAMED, Leaf, Link, Node, all_threads, tied, upstream
from symgrad.types.strides import dense

__all__ = ["backward", "grad", "one", "run"]

METHODS = MethodTable()

ONE = np.float64(1.0)


def _sequence(what: Any, name: str) -> tuple[Tensor, ...]:
    out = (what,) if isinstance(what, (Tensor, GradientEdge)) else tuple(what)
    if any(type(t) is GradientEdge for t in out):
        out = tuple(_tensor_at(t) if type(t) is GradientEdge else t for t in out)
    for i, t in enumerate(out):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}[{i}] must be a Tensor, not {type(t).__name__}")
    return out


def _tensor_at(edge: GradientEdge) -> Tensor:
    """The tensor of a gradient edge: the leaf itself, or a new tensor with the edge's node."""
    place = edge.place
    tensor = place.variable if isinstance(place, Leaf) else None
    return wrap(place.value, place) if tensor is None else tensor


def one(like: Any) -> Any:
    """The cotangent 1 of a scalar output."""
    return ONE if type(like) is np.float64 else np.ones_like(like)[()]


def _seeds(outputs: Sequence[Tensor], cotangents: Any, create_graph: bool) -> list[tuple[Node, Any]]:
    if cotangents is None or isinstance(cotangents, (Tensor, np.ndarray, int, float)):
        cotangents = (cotangents,) if cotangents is not None else (None,) * len(outputs)
    cotangents = tuple(cotangents)
    if len(cotangents) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(cotangents)} gradients; give one gradient (or None) per tensor")
    seeds = []
    for i, (y, g) in enumerate(zip(outputs, cotangents)):
        node = y._node
        if special and not create_graph:
            y._escape()
        if node is None or not node.flags & GRADIENT or isinstance(node, UnrecordedLeaf):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn; make an input with "
                               f"requires_grad=True and compute it outside no_grad()")
        if g is None:
            if y._value.size != 1:
                raise RuntimeError(f"grad can be implicitly created only for scalar outputs; this one has shape {list(y.shape)}: give a "
                                   f"gradient of that shape, or reduce it with .sum()")
            if y._value.dtype.kind == "c":
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got " + repr(y.dtype))
            g = wrap(one(y._value))
        else:
            if not isinstance(g, Tensor):
                g = wrap(as_value(g, y.dtype))
            if g.shape != y.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {y.shape}.")
            if g._value.dtype != y._value.dtype:
                g = g.to(y.dtype)
        if type(y._value) is Batched and not set(levels_of(y._value)) <= set(levels_of(g._value)):
            g = g * wrap(np.ones_like(y._value))  # one cotangent per member, so that unbatched inputs get the sum
        seeds.append((node, g if create_graph else g._value))
    return seeds


def run(seeds: list[tuple[Node, Any]], keep: frozenset[Node], wanted: set[Node] | None, retain: bool, create_graph: bool,
        deliver: Any = None) -> dict[Node, Any]:
    """A pullback with hooks and anomaly mode. `keep` are the nodes whose cotangents are returned, `wanted` the nodes on paths to them."""
    checks = None if all_threads.anomaly is None else all_threads.anomaly.checks(seeds)
    hooks = checks.hooks_of if checks is not None else hooks_of if all_threads.hooked else None
    if hooks is None and not create_graph:  # numeric rules record nothing, and a FunctionNode sets the modes for user code
        return pullback(numeric, seeds, None, wanted, keep, release=not retain, deliver=deliver)
    with in_mode(grad=create_graph, checks=checks, pullback=None if hooks is None else Pullback(seeds, wanted)):
        try:
            return pullback(traced if create_graph else numeric, seeds, traced_args if create_graph else None, wanted, keep,
                            release=not retain, hooks=hooks, instrumented=checks is not None, deliver=deliver)
        except Exception:
            if checks is not None:
                checks.failed()
            raise


def _run(seeds: list[tuple[Node, Any]], inputs: Sequence[Tensor] | None, retain_graph: bool | None, create_graph: bool,
         deliver: Any = None) -> dict[Node, Any]:
    wanted, keep = None, frozenset[Node]()
    if inputs is not None:
        keep = frozenset(x._node for x in inputs if x._node is not None)
        wanted = _paths(seeds, keep)
    return run(seeds, keep, wanted, create_graph if retain_graph is None else retain_graph, create_graph, deliver)


def _paths(seeds: Sequence[tuple[Node, Any]], keep: frozenset[Node]) -> set[Node]:
    """The nodes on paths from the seeds to the nodes in `keep`."""
    wanted: set[Node] = set(keep)
    for node in upstream([node for node, _ in seeds], differentiable=True):
        if not wanted.isdisjoint(node.parents):
            wanted.add(node)
    return wanted


def _own_memory(g: Any, like: Any = None) -> Any:
    """A cotangent in memory without other references, copied only if necessary. The caller must hold it in exactly one local variable.

    The result has the layout of `like` if that is dense, else that of a contiguous array.
    """
    alone = sys.getrefcount(g) <= 3  # the references of the caller's variable, of the parameter, and of `getrefcount`
    if not isinstance(g, np.ndarray):
        return g if alone or not isinstance(g, np.generic) else g.copy()
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
    outputs = _sequence(tensors, "tensors")
    inputs_asked = None if inputs is None else _sequence(inputs, "inputs")
    if inputs_asked is not None and not inputs_asked:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for i, x in enumerate(inputs_asked or ()):
        if not x.requires_grad:
            raise RuntimeError(f"inputs[{i}] does not require grad; only tensors that do can receive a gradient")
    seeds = _seeds(outputs, grad_tensors, create_graph)

    delivered: set[Node] = set()

    def give(t: Any, node: Node, g: Any) -> None:
        if t is None:
            return
        if create_graph:
            with in_mode(grad=True):
                accumulate(t, _linked(g, t, [node]))
            return
        accumulate(t, np.zeros_like(t._value) if g is None else _own_memory(g, t._value))
        if node.flags & NAMED:
            t._grad._formula = [*getattr(t._grad, "_formula", ()), (seeds, node)]

    def deliver(leaf: Any, g: Any) -> None:
        delivered.add(leaf)
        give(leaf.variable, leaf, g)
        holder = leaf.reference()  # alive even if it has left the graph
        for hook in list(leaf.hooks.accumulated.values()) if holder is not None else ():
            found = hook(holder)
            if found is not None and not isinstance(found, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(found).__name__}'")

    out = _run(seeds, inputs_asked, retain_graph, create_graph, deliver)
    leaves: list[tuple[Any, Any]] = [(node.variable, node) for node in out if isinstance(node, Leaf)]
    targets: list[tuple[Any, Any]] = leaves if inputs_asked is None else [(x, x._node) for x in inputs_asked]
    for t, node in targets:
        if node not in delivered and not isinstance(node, UnrecordedLeaf):
            give(t, node, out.pop(node, None))


def _linked(g: Tensor | None, x: Tensor, inputs: Sequence[Node]) -> Tensor:
    """A derivative linked to the inputs, so that even a constant one can be differentiated again; in memory without other references."""
    if g is None:
        return wrap(value := np.zeros_like(x._value), Link(value, None, inputs))
    held = g._value
    value = _own_memory(held, x._value)
    return wrap(value, Link(value, g._node, inputs))


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> Any:
    """The gradients of `outputs` with respect to `inputs`, returned and not accumulated: Σ gᵢ · ∂yᵢ/∂x.

    With `create_graph` the result can be differentiated again, to any order; a derivative that is constant has derivative
    zero. An input the outputs do not depend on raises, unless `allow_unused` (None is returned) or `materialize_grads` (zeros).
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
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the "
                      "graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)
    if isinstance(inputs, dict):
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, True, allow_unused, is_grads_batched,
                     materialize_grads)
        return dict(zip(inputs, found))
    ys, xs = _sequence(outputs, "outputs"), _sequence(inputs, "inputs")
    if is_grads_batched:
        return _batched(ys, xs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    seeds = _seeds(ys, grad_outputs, create_graph)
    for i, x in enumerate(xs):
        if not x.requires_grad:
            raise RuntimeError(f"One of the differentiated Tensors does not require grad: inputs[{i}]; make it with requires_grad=True")
    out = _run(seeds, xs, retain_graph, create_graph)
    nodes = [x._node for x in xs]
    tie = tied(nodes) if create_graph else ()  # type: ignore[arg-type]
    results: list[Tensor | None] = []
    for i, (x, node) in enumerate(zip(xs, nodes)):
        if node in out and not isinstance(node, UnrecordedLeaf):
            g = out[node]
            if create_graph:
                results.append(_linked(g, x, tie))
                continue
            result = wrap(np.zeros_like(x._value) if g is None else _own_memory(g))
            if node.flags & NAMED:
                result._formula = [(seeds, node)]
            results.append(result)
        elif materialize_grads:
            zeros = wrap(np.zeros_like(x._value))
            results.append(zeros.requires_grad_() if create_graph else zeros)
        elif allow_unused:
            results.append(None)
        else:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is "
                               f"the desired behavior: inputs[{i}] is not part of the outputs.")
    return tuple(results)


def _batched(ys: Sequence[Tensor], xs: Sequence[Tensor], cotangents: Any, retain_graph: bool | None, create_graph: bool, allow_unused: bool | None,
             materialize_grads: bool) -> tuple[Tensor | None, ...]:
    """The gradients for a batch of cotangents, with the batch as first dimension."""
    given = (cotangents,) if isinstance(cotangents, (Tensor, np.ndarray)) else tuple(cotangents or ())
    gs = [g if g is None or isinstance(g, Tensor) else wrap(as_value(g, y.dtype)) for g, y in zip(given, ys)]
    for i, (g, y) in enumerate(zip(gs, ys)):
        if g is not None and (not g.ndim or g.shape[1:] != y.shape):
            raise RuntimeError(f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes "
                               f"of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                               f"grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {y.shape}. If you only want some tensors "
                               f"in `grad_output` to be considered batched, consider using vmap.")
    counts = {g.shape[0] for g in gs if g is not None}
    if not counts:
        raise RuntimeError("vmap: Expected at least one Tensor to vmap over: with is_grads_batched=True give at least one grad_output")
    if len(counts) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{[g.shape[0] for g in gs if g is not None]} for the mapped dimension of grad_outputs")
    level, count = new_level(), counts.pop()
    with in_mode(grad=create_graph, batches=(*thread.modes.batches, (level, count, "error"))):
        found = grad(ys, xs, [None if g is None else traced.batch(g, 0, level) for g in gs] + [None] * (len(given) - len(gs)), retain_graph,
                     create_graph, True, allow_unused, False, materialize_grads)
        out = [None if t is None else traced.unbatch(t, 0, level, count) for t in found]
    memory = [g._value for g in gs if g is not None]
    for i, t in enumerate(out):
        if t is not None and any(np.may_share_memory(t._value, other) for other in memory):
            out[i] = traced.clone(t) if create_graph else wrap(np.array(t._value))
        if out[i] is not None:
            memory.append(out[i]._value)  # type: ignore[union-attr]
    return tuple(out)


def _backward_method(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Add the gradient of this tensor to the `.grad` of the leaves; see `symgrad.autograd.backward`."""
    backward(self, gradient, retain_graph, create_graph, inputs)


METHODS["backward"] = _backward_method
