"""Checkpointing: a block of a computation saves only its inputs, and is recomputed when a derivative needs its values."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.generators import generator_state, restored_generator
from symgrad.func.calling import Transformed
from symgrad.func.evaluation import RERUN, InputNode, function_name, recording
from symgrad.func.rules import Rule, Tensors, attach_node, check_unwritten, fresh_input, nodes_before, rule_op, tensor_at
from symgrad.graph.modes import thread
from symgrad.graph.node import GRADIENT, IN_FORWARD, Node, next_sequence
from symgrad.graph.order import upstream
from symgrad.trees import flatten, tree_map

OP = rule_op("Checkpoint")


class CheckpointError(RuntimeError):
    """The error for a recomputation that differs from the forward."""


def noop_context_fn() -> tuple[Any, Any]:
    """Two context managers that do nothing, the default of `context_fn`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def replace_known_nodes(outputs: Sequence[Any], known: Sequence[Node], gates: Tensors, since: int) -> None:
    """Replace the known nodes upstream of a computation by `gates`, tensors at fresh input nodes.

    Raises CheckpointError if the computation depends on other nodes that are older than `since`.
    """
    instead = {node: g._node for node, g in zip(known, gates)}
    if any(node not in instead for node in nodes_before(outputs, since)):
        raise CheckpointError("checkpoint: the recomputation depends on tensors that the forward pass did not depend on; a checkpointed function "
                              "must compute the same thing from the same tensors each time it is called")
    roots = [y._node for y in outputs if isinstance(y, Tensor)]
    for node in upstream(roots, stop=instead):
        if node.sequence_nr > since:
            node.parents = tuple([p if p is None else instead.get(p, p) for p in node.parents])
    for y in outputs:
        if isinstance(y, Tensor) and y._node in instead:
            y._node = instead[y._node]


def _operations_hash(outputs: Sequence[Tensor], since: int) -> int:
    """A hash of the operations between the sequence number `since` and the outputs, with their shapes and dtypes."""
    nodes = upstream([y._node for y in outputs], stop=_OlderThan(since))
    described = [(getattr(node, "op", None), type(node).__name__, node.value.shape, node.value.dtype) for node in nodes]
    return hash(tuple(described))  # the type is part of it, since an op has several classes of nodes


class _OlderThan:
    """The set of all nodes older than a sequence number."""

    def __init__(self, since: int):
        self.since = since

    def __contains__(self, node: Any) -> bool:
        return node.sequence_nr < self.since


def metadata_of(t: Any) -> dict[str, Any]:
    """What a recomputed tensor has in common with the first one."""
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


class _CheckpointedBlock(Rule):
    """The rule of a checkpointed call, which saves its arguments and the state of the random generator."""

    records_content = True

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], preserve: bool, context_fn: Any, checked: bool):
        self.function, self.checked = function, checked
        self.args, self.kwargs = tree_map(lambda x: wrap(x._value, x._node) if isinstance(x, Tensor) else x, (args, kwargs))
        self.constants = [x for x in flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        self.state = generator_state() if preserve else None
        self.context, self.again = context_fn()

    def record(self) -> Any:
        """The outputs of the call at its node."""
        since = next_sequence()
        with self.context:
            output = self.function(*self.args, **self.kwargs)
        leaves, form = flatten(output)
        self.places = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and _is_new(y, since)]
        outputs = [leaves[i] for i in self.places]
        self.captured = tuple(nodes_before(outputs, since))
        if not any(node.flags & GRADIENT for node in self.captured) or any(y._node.flags & IN_FORWARD for y in outputs):
            return output
        parents = [tensor_at(node) for node in self.captured]
        self.values, self.since = tuple(node.value for node in self.captured), since
        self.described = [metadata_of(y) for y in outputs]
        self.footprint = _operations_hash(outputs, since) if self.checked else 0
        for i, y in zip(self.places, attach_node(OP, self, parents, outputs)):
            leaves[i] = y
        return form.unflatten(leaves)

    def evaluate(self, tensors: Tensors) -> Tensors:
        return self.recorded(tensors)[0]

    def recorded(self, tensors: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        """The recomputed outputs, recorded from gates at these tensors, and the gates."""
        check_unwritten(self.constants, self.since)
        gates, since = [fresh_input(t) for t in tensors], next_sequence()
        for gate in gates:
            if type(gate._node) is InputNode:
                gate._node.open = RERUN
        with recording(True), restored_generator(self.state), self.again:
            leaves = flatten(self.function(*self.args, **self.kwargs))[0]
        outputs = [leaves[i] for i in self.places if i < len(leaves) and isinstance(leaves[i], Tensor)]
        if self.checked:
            self.compare(outputs, since)
        replace_known_nodes(outputs, self.captured, gates, since)
        return outputs, gates

    def compare(self, outputs: Sequence[Tensor], since: int) -> None:
        """Raise CheckpointError if the shapes and dtypes, or the operations, differ from those of the forward."""
        if len(outputs) != len(self.places):
            raise CheckpointError(f"checkpoint: the forward pass saved {len(self.places)} tensors, but the recomputation {len(outputs)}")
        found = [f"tensor {i}: {a}, then {b}" for i, (a, b) in enumerate(zip(self.described, map(metadata_of, outputs))) if a != b]
        if found:
            raise CheckpointError("checkpoint: the forward pass and the recomputation saved other tensors:\n" + "\n".join(found))
        if _operations_hash(outputs, since) != self.footprint:
            raise CheckpointError(f"checkpoint: {function_name(self.function)} computed with other operations or other shapes when it was called "
                                  f"again in backward; it must do the same each time, or be given determinism_check='none'")


def _is_new(y: Tensor, since: int) -> bool:
    node = y._node
    return node is not None and node.sequence_nr > since and bool(node.flags & GRADIENT) and bool(node.parents)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, **kwargs: Any) -> Any:
    """Call `function(*args, **kwargs)` and save only its arguments: the function is called again when a derivative needs its values.

    A chain of blocks then needs the memory of one block and of the values between blocks. Arguments and outputs are any trees; tensors captured
    by the function, such as the parameters of a module, get their gradients. Derivatives of every order and both modes are supported, and
    checkpoints nest. `preserve_rng_state` draws the same random numbers again. `context_fn()` returns two context managers, for the call
    and for the recomputations. `determinism_check="none"` disables the comparison of operations. The call is one node of the graph.
    `use_reentrant` and `early_stop` have no effect; `symgrad.utils.checkpoint` has torch's variants, and the graph of the plain call.

    `checkpoint(function)` without further arguments is the checkpointed function, as in JAX, so it works as a decorator. To call a function
    without arguments, pass `use_reentrant=False`.

    Raises CheckpointError if the recomputation differs in shapes, dtypes, operations or the tensors it uses; RuntimeError if an argument was
    written in place since; ValueError for keyword arguments with `use_reentrant=True`, as torch does, and for another `determinism_check`.

    Griewank, Optimization Methods and Software 1, 1992.

    >>> import symgrad
    >>> from symgrad.func import checkpoint
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> y = checkpoint(lambda x: (x.sin() * 2).exp(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor(5.8151)
    >>> symgrad.func.grad(checkpoint(lambda x: x.sin().exp()))(0.0)
    tensor(1.)
    """
    if not args and not kwargs and use_reentrant is None:
        def checkpointed(*args: Any, **kwargs: Any) -> Any:
            return _run(function, args, kwargs, preserve_rng_state, context_fn, determinism_check)

        words = {"preserve_rng_state": preserve_rng_state, "context_fn": context_fn, "determinism_check": determinism_check}
        return Transformed(checkpoint, function, words=words, body=checkpointed)
    if use_reentrant and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("checkpoint: context_fn and debug go with use_reentrant=False")
    return _run(function, args, kwargs, preserve_rng_state, context_fn, determinism_check)


def _run(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], preserve: bool, context_fn: Any, check: str) -> Any:
    if check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check must be 'default' or 'none', not {check!r}")
    block = _CheckpointedBlock(function, args, kwargs, preserve, context_fn, check == "default")
    if thread.modes.grad:
        return block.record()
    with block.context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True) -> Any:
    """Call functions or modules one after the other, in that many checkpointed segments; the last one is not checkpointed.

    `functions` is an `nn.Sequential` or a list. With about √n segments of n blocks memory grows like √n, at the cost of one more forward pass.

    Raises the errors of `checkpoint`, and ValueError for a number of segments that is not from 1 to the number of functions.

    >>> import symgrad
    >>> from symgrad.func import checkpoint_sequential
    >>> x = symgrad.tensor(0.5, requires_grad=True)
    >>> checkpoint_sequential([symgrad.sin] * 4, 2, x).backward()
    >>> x.grad
    tensor(0.6293)
    """
    return in_segments(functions, segments, input, lambda run, x: _run(run, (x,), {}, preserve_rng_state, noop_context_fn, "default"))


def in_segments(functions: Any, segments: int, input: Any, kept: Callable[[Callable[[Any], Any], Any], Any]) -> Any:
    """Call functions one after the other in segments, all but the last one by `kept(segment, value)`.

    Raises ValueError for a number of segments that is not from 1 to the number of functions.
    """
    blocks = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(blocks), 1):
        raise ValueError(f"checkpoint_sequential: segments={segments} must be from 1 to the number of functions, {len(blocks)}")

    def run(start: int, end: int) -> Callable[[Any], Any]:
        return lambda x: functools.reduce(lambda value, block: block(value), blocks[start:end], x)

    step, at = len(blocks) // segments, 0
    for at in range(step, step * segments, step):
        input = kept(run(at - step, at), input)
    return run(at, len(blocks))(input)
