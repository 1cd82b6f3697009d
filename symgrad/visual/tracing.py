"""The trace of a module: every operation of one forward pass with its module and its operands.

A recorder receives each operation as it is recorded, whether or not it requires grad, and makes the node that the default recorder would
make. An operand is identified by its node or, if it has none, by the identity of its value.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.autograd import enable_grad
from symgrad.autograd.context import FunctionNode
from symgrad.engine.passes import pullback
from symgrad.engine.saved import read_traced
from symgrad.engine.storage.versions import Write, first_write_after, promoted
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import ones_like
from symgrad.graph.common import OutputNode
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import Recorder, in_mode, thread
from symgrad.graph.node import IN_FORWARD, NAMED, TRACKED, Leaf, Node, make_node, next_sequence
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream
from symgrad.nn.modules.module import Module
from symgrad.nn.parallel import DataParallel
from symgrad.system.restoring import restored

IO, CONSTANT = "IO Node", "Const"  # TensorBoard draws a Const small, next to its users
MEMBERS = PARAMETER, BUFFER, ATTRIBUTE = "Parameter", "Buffer", "Attribute"
READ = str.maketrans("/:", "\N{DIVISION SLASH}\N{RATIO}")  # the characters that a reader of a path takes for a scope or an output
WRITERS = {name for op in REGISTRY.values() for name in (op.name, *op.surface.aliases)} | {"copy", "setitem"}  # the names of operations that write


class Vertex:
    """A vertex of the trace: an operation, or an input, output, parameter, buffer or constant.

    `label` is unique and short; `path` is the scope with the name of the vertex in it. `operands` are the vertices of the tensor
    arguments, then of tensors among the others, such as an index; `rest` are the other arguments of the rule by name.
    """

    __slots__ = ("kind", "path", "label", "value", "node", "operands", "op", "rest")

    def __init__(self, kind: str, path: str, label: str, value: Any, node: Node | None = None, operands: tuple[Vertex, ...] = (),
                 op: Op | None = None, rest: Mapping[str, Any] | None = None):
        self.kind, self.path, self.label, self.value, self.node = kind, path, label, value, node
        self.operands, self.op, self.rest = operands, op, rest or {}

    def __repr__(self) -> str:
        what = f"{self.value.dtype.name}{list(self.value.shape)}" if hasattr(self.value, "dtype") else repr(self.value)
        return f"%{self.path} : {what} = {self.kind}({', '.join(f'%{v.path}' for v in self.operands)})"


class GraphRecorder(Recorder):
    """The vertices of one forward pass; as the thread's recorder it appends each operation."""

    def __init__(self, root: str):
        self.vertices: list[Vertex] = []
        self.scopes = [root]
        self.nodes: dict[Node, Vertex] = {}
        self.values: dict[int, tuple[Any, Vertex, int]] = {}  # by identity; the reference to the value keeps its id unique
        self.operations: list[tuple[int, Vertex]] = []  # each with its creation time
        self.labels: dict[str, int] = {}
        self.start = next_sequence()

    # Vertices

    def add(self, kind: str, value: Any, node: Node | None, *, name: str = "", scope: str | None = None, **rest: Any) -> Vertex:
        """A new vertex under a fresh label; its name in its scope is the label, or the name that a module gave it."""
        label = self._new_label(name or kind.lower())
        scope = self.scopes[-1] if scope is None else scope
        path = f"{scope}/{(name.rpartition('.')[2] if kind in MEMBERS else label).translate(READ)}"
        vertex = Vertex(kind, path, label, value, node, **rest)
        self.vertices.append(vertex)
        return vertex

    def add_source(self, kind: str, value: Any, node: Node | None, name: str = "", scope: str | None = None) -> Vertex:
        """A new vertex for a value that was not computed in this trace."""
        vertex = self.add(kind, value, node, name=name, scope=scope)
        self.register(vertex, value, node)
        return vertex

    def _new_label(self, name: str) -> str:
        key = name.translate(READ)
        count = self.labels.get(key, 0)
        self.labels[key] = count + 1
        return self._new_label(f"{name}_{count}") if count else name

    def register(self, vertex: Vertex, value: Any, node: Node | None) -> None:
        """Register a node and a value, in its current version, as the result of a vertex."""
        if node is not None:
            self.nodes[node] = vertex
        if isinstance(value, np.ndarray) or isinstance(value, np.generic) and not isinstance(value, np.bool_):  # True and False are shared
            self.values[id(value)] = value, vertex, next_sequence()

    # The recorder

    flags = TRACKED | IN_FORWARD

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node that the hot path makes; the operation becomes a vertex."""
        flags = 0
        for p in parents:
            flags |= 0 if p is None else p.flags
        flags &= TRACKED if op.differentiable else NAMED
        node = make_node(op, args, parents, value, flags) if flags and thread.modes.grad else None
        count = len(parents)
        operands = [self.vertex_of(a, p) for a, p in zip(args, parents)]
        operands += [v for _, a in _leaves(args[count:], "") if (v := self.vertex_of_value(a)) is not None]  # for instance an index that was an input
        rest = dict(zip([p.name for p in op.parameters], args[count:]))
        vertex = self.add(op.name, value, node, operands=tuple(operands), op=op, rest=rest)
        self.register(vertex, value, node)
        self.operations.append((next_sequence(), vertex))
        return node

    def vertex_of(self, value: Any, node: Node | None) -> Vertex:
        """The vertex of a value and its node; a new one for a value from before the forward pass."""
        if node is not None:
            if node in self.nodes:
                return self._before_write(self.nodes[node], value)
            if node.sequence_nr > self.start and node.parents:
                return self.vertex_of_unrecorded(node)
        found = self.vertex_of_value(value)
        if found is not None:
            return found
        symbol = node.symbol if isinstance(node, Leaf) else None
        return self.add_source("Leaf" if isinstance(node, Leaf) else CONSTANT, value, node, symbol or "")

    def _before_write(self, vertex: Vertex, value: Any) -> Vertex:
        """The vertex of a value before a write, if its memory was written since."""
        if value is not vertex.value and id(value) in self.values:
            vertex.value = value
            if vertex.operands and vertex.operands[0].kind == CONSTANT:
                vertex.operands = (self.values[id(value)][1], *vertex.operands[1:])
        return vertex

    def vertex_of_value(self, value: Any) -> Vertex | None:
        """The vertex of a value without a node: the operation that computed or last wrote it, or the vertex of its base."""
        since, vertex, array = self.start, None, value
        while array is not None and vertex is None:
            if id(array) in self.values:
                _, vertex, since = self.values[id(array)]
            array = getattr(array, "base", None)
        if vertex is None and isinstance(value, np.ndarray) and not value.ndim:
            vertex = self.values.get(id(promoted(value)), (None, None))[1]
        write = _last_write(value, since)
        if write is not None:
            vertex = self._vertex_of_write(write) or self.add_source(CONSTANT, value, None)
            self.register(vertex, value, None)
        return vertex

    def _vertex_of_write(self, write: Write) -> Vertex | None:
        """The operation whose result was written: the one before the write, from which it takes its name."""
        if write.operation.strip("_") not in WRITERS:
            return None
        return next((vertex for time, vertex in reversed(self.operations) if time < write.sequence_nr), None)

    def vertex_of_unrecorded(self, node: Node) -> Vertex:
        """The vertex of a node that recorders do not receive: a custom Function, or the node of a base after a write into a view."""
        origin = node.origin
        if origin not in self.nodes:
            name = type(origin).__name__.partition("Backward")[0]
            operands = tuple(self.vertex_of(a, p) for a, p in zip(origin.args or (), origin.parents))
            self.register(self.add(name, node.value, origin, name=name, operands=operands), node.value, origin)
        self.nodes[node] = self.nodes[origin]
        return self.nodes[node]


def _last_write(value: Any, since: int) -> Write | None:
    last = None
    while (found := first_write_after(value, since)) is not None:
        last = found[0]
        since = last.sequence_nr + 1
    return last


def _leaves(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors and arrays in nested containers, with dotted names."""
    if isinstance(x, (Tensor, np.ndarray)):
        yield name, x
    elif isinstance(x, Mapping):
        for key, element in x.items():
            yield from _leaves(element, f"{name}.{key}" if name else str(key))
    elif isinstance(x, (tuple, list)):
        for i, element in enumerate(x):
            yield from _leaves(element, f"{name}.{i}" if name else str(i))


def _value(x: Any) -> tuple[Any, Node | None]:
    return (x._value, x._node) if isinstance(x, Tensor) else (x, None)


def _names(function: Callable[..., Any], args: tuple) -> list[str]:
    """The names of arguments by the parameters of a function."""
    out: list[str] = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            out += [f"{p.name}.{i}" for i in range(len(args) - len(out))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            out.append(p.name)
    return out


def trace(model: Callable[..., Any], args: tuple) -> list[Vertex]:
    """The trace of one call of a module, in evaluation mode, or of any function of tensors.

    Operations come in the order in which they ran, parameters and buffers before the first that uses them. The scopes of a module's operations
    are named after its types and names: `Net/Sequential[layers]/Linear[0]`. Raises what the call raises.

    >>> import symgrad
    >>> from symgrad import nn
    >>> trace(nn.Tanh(), (symgrad.zeros(2),))
    [%input/input : float64[2] = IO Node(), %Tanh/tanh : float64[2] = tanh(%input/input), %output/output.1 : float64[2] = IO Node(%Tanh/tanh)]
    """
    recorder, _ = call_recorded(model, args)
    used = {v for vertex in recorder.vertices for v in vertex.operands}
    return [v for v in recorder.vertices if v in used or v.operands or v.op is not None]


def call_recorded(model: Callable[..., Any], args: tuple) -> tuple[GraphRecorder, list[Tensor]]:
    """The recorder with all vertices of one call, see `trace`, and the tensors that were returned."""
    recorder = GraphRecorder(type(model).__name__ if isinstance(model, Module) else getattr(model, "__name__", "function").strip("<>"))
    for arg, given in zip(args, _names(model.forward if isinstance(model, Module) else model, args)):
        for name, x in _leaves(arg, given):
            recorder.add_source(IO, *_value(x), name, "input")
    with contextlib.ExitStack() as stack:
        if isinstance(model, Module):
            stack.enter_context(_evaluating(model))
            stack.enter_context(_scoped(model, recorder))
        stack.enter_context(in_mode(recorder=recorder))
        output = model(*args)
    found = [y for _, y in _leaves(output, "")]
    for i, y in enumerate(found):
        value, node = _value(y)
        recorder.add(IO, value, None, name=f"output.{i + 1}", scope="output", operands=(recorder.vertex_of(value, node),))
    return recorder, [y for y in found if isinstance(y, Tensor)]


@contextlib.contextmanager
def _evaluating(model: Module) -> Iterator[None]:
    """A context with every module in evaluation mode, and every `DataParallel` on one device; both are restored."""
    training = {module: module.training for module in model.modules()}
    devices = {module: module.device_ids for module in training if isinstance(module, DataParallel)}

    def restore() -> None:
        model.train(training[model])  # which a module may override
        for module, flag in training.items():
            module.training = flag
        for parallel, ids in devices.items():
            parallel.device_ids = ids

    with restored(restore):
        model.eval()
        for parallel, ids in devices.items():
            parallel.device_ids = ids[:1]
        yield


@contextlib.contextmanager
def _scoped(model: Module, recorder: GraphRecorder) -> Iterator[None]:
    """A context in which the tensors of modules are vertices, and operations have the scope of the module that calls them."""
    scopes: dict[str, str] = {}
    hooks: list[tuple[Module, Any, Any]] = []
    for name, module in model.named_modules():
        parent, _, last = name.rpartition(".")
        scopes[name] = scope = f"{scopes[parent]}/{type(module).__name__}[{last.translate(READ)}]" if name else recorder.scopes[0]
        for kind, members in ((PARAMETER, module._parameters), (BUFFER, module._buffers), (ATTRIBUTE, vars(module))):
            for key, t in members.items():
                if isinstance(t, Tensor):
                    recorder.add_source(kind, *_value(t), f"{name}.{key}" if name else key, scope)

        def enter(module: Module, args: tuple, scope: str = scope) -> None:
            recorder.scopes.append(scope)

        def leave(module: Module, args: tuple, output: Any) -> None:
            recorder.scopes.pop()

        hooks.append((module, enter, leave))

    def restore() -> None:  # finds the hooks, since an interrupt may come between the entry of a hook and the handle that removes it
        for module, *own in hooks:
            for table in (module._forward_pre_hooks, module._forward_hooks):
                for key in [key for key, hook in table.items() if any(hook is each for each in own)]:
                    module._forward_hooks_always_called.pop(key, None)
                    del table[key]

    with restored(restore):
        for module, enter, leave in hooks:
            module.register_forward_pre_hook(enter, prepend=True)
            module.register_forward_hook(leave, always_call=True)
        yield


# The recorded graph of tensors, and of their gradients, as vertices
GRADIENTS = "gradient"  # the scope of the vertices of gradients


def read(tensors: Sequence[Tensor], names: Mapping[Node, str]) -> GraphRecorder:
    """The vertices of what was recorded for some tensors, oldest first; `names` are those of leaves without a symbol.

    A custom Function with several outputs is one vertex without a value, and each output is one more.
    """
    recorder = GraphRecorder("")
    for node in upstream([t._node for t in tensors]):
        parents = node.parents[:1] if type(node) is DerivativeNode else node.parents
        operands = [None if p is None else recorder.nodes[p] for p in parents]
        if isinstance(node, Leaf):
            recorder.add_source("Leaf", node.value, node, str(names.get(node) or node.symbol or ""))
        elif type(node) is DerivativeNode:
            recorder.nodes[node] = recorder.add_source(CONSTANT, node.value, node) if operands[0] is None else operands[0]
        elif isinstance(node, (FunctionNode, OutputNode)):
            name = f"output {node.output_nr}" if isinstance(node, OutputNode) else type(node).__name__.removesuffix("Backward")
            value = None if isinstance(node, FunctionNode) and node.outputs else node.value
            recorder.register(recorder.add(name, value, node, name=name, operands=tuple(v for v in operands if v is not None)), value, node)
        else:
            _add_operation(recorder, node, operands)
    return recorder


def _add_operation(recorder: GraphRecorder, node: Node, operands: Sequence[Vertex | None]) -> None:
    """The vertex of an operation; a constant operand becomes one, unless a backward has freed it."""
    args, count = node.args or (), len(operands)
    found = tuple(_constant(recorder, a) if v is None else v for v, a in zip(operands, args)) if args else tuple(v for v in operands if v is not None)
    rest = dict(zip([p.name for p in node.op.parameters], args[count:]))
    vertex = recorder.add(node.op.name, node.value, node, operands=found, op=node.op, rest=rest)
    recorder.register(vertex, node.value, node)


def _constant(recorder: GraphRecorder, value: Any) -> Vertex:
    known = recorder.values.get(id(value))
    return recorder.add_source(CONSTANT, value, None) if known is None else known[1]


def differentiate(recorder: GraphRecorder, outputs: Sequence[Tensor]) -> dict[Vertex, Vertex]:
    """Record the gradients of the sum of some tensors; gives the vertex of the gradient by each vertex that has one.

    Hooks are not called. Raises RuntimeError for a graph that was freed.
    """
    seeds: list[tuple[Any, Tensor]] = [(t._node, ones_like(t.detach())) for t in outputs]
    nodes = [n for n in upstream([t._node for t in outputs], True) if not isinstance(n, (DerivativeNode, FunctionNode))]
    with enable_grad(), in_mode(recorder=recorder):
        recorder.scopes.append(GRADIENTS)
        for _, seed in seeds:
            recorder.add_source(CONSTANT, seed._value, None, "seed")
        found = pullback(traced, seeds, read_traced, keep=frozenset(nodes))
        given = {n: g for n in nodes if n in recorder.nodes and (g := found.get(n)) is not None}
        gradients = {recorder.nodes[n]: recorder.vertex_of(g._value, g._node) for n, g in given.items()}
        recorder.scopes.pop()
    return gradients
