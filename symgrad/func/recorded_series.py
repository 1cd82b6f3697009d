"""Walks, which are recorded functions in order, and series along them: passes recorded once for all walks of a signature, and Taylor coefficients.

The coefficients y₁, ..., y_K of a function along a curve are computed with numbers and have one common node. The derivative of Σ ⟨cₖ, yₖ⟩ by a
captured tensor is the K-th coefficient of its cotangent for the cotangent Σ cₖ t^(K - k) of the output. So a loss with second derivatives of a
network by its inputs is differentiated by the weights without a graph of the second derivatives.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.seeds import one
from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.series import Series, SeriesCarrier
from symgrad.engine.operands import NUMBERS
from symgrad.engine.passes import pullback
from symgrad.engine.recording import core
from symgrad.engine.replay import arguments
from symgrad.engine.saved import verify_all
from symgrad.engine.storage.versions import written_since
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import Evaluation
from symgrad.func.rules import Rule, Some, Tensors, attach_node, rule_op
from symgrad.graph.modes import DEFAULT, special, thread
from symgrad.graph.node import GRADIENT, HOOKED, TRACKED, TRANSFORMED, Node, all_threads
from symgrad.graph.op import REGISTRY, Op
from symgrad.program.cache import signature_of
from symgrad.program.passes import PassProgram, fits, known_program, recording

float64, ndarray = np.float64, np.ndarray
OTHERS = TRACKED & ~TRANSFORMED  # the flags by which nodes on a plain path differ from others


def unobserved(nodes: Iterable[Node]) -> bool:
    """Whether these nodes have no hooks, and no observer or anomaly mode is active."""
    if special and ((modes := thread.modes).recorder is not DEFAULT or modes.observers or modes.anomaly is not None):
        return False
    return not all_threads.hooked or not any([node.flags & HOOKED for node in nodes])


def _constant(x: Any) -> Any:
    return x if type(x) in NUMBERS else wrap(x)


_recorder = functools.cache(core)


# Walks


class Walk:
    """A recorded function: the node of its output, the nodes of the path, oldest first, and the ends, where the path starts.

    The first `count` ends are the inputs of the function, the others are captured tensors.
    """

    def __init__(self, root: Node, path: Sequence[Node], ends: Sequence[Node], count: int):
        self.root, self.path, self.ends, self.count = root, path, ends, count

    @functools.cached_property
    def is_real(self) -> bool:
        """Whether all values are real: a pullback of series does not conjugate the arguments of rules, which that of complex cotangents needs."""
        return not any([x.value.dtype.kind == "c" for x in (*self.path, *self.ends)])

    def between(self, needs: Sequence[int]) -> set[Node]:
        """The nodes of the path that depend on some of the ends."""
        out = {self.ends[i] for i in needs}
        for node in self.path:
            if not out.isdisjoint(node.parents):
                out.add(node)
        return out

    def pullback(self, xp: Any, seed: Any, needs: Sequence[int], read: Any = None) -> dict[Node, Any]:
        """The cotangents of some ends for a cotangent of the output."""
        return pullback(xp, [(self.root, seed)], read, self.between(needs), ends=frozenset(self.ends))

    def replay(self, tensors: Sequence[Tensor]) -> Any:
        """The output, recorded again with other tensors as ends: the same ops, and not those that their rules are made of."""
        known: dict[Node, Any] = dict(zip(self.ends, tensors))
        for node in self.path:
            given = arguments(node, known, _constant)
            known[node] = _recorder(node.op)(*((given,) if node.op.arity is None else given), *(node.args or ())[len(given):])
        return known[self.root]


def walk_of(ev: Evaluation, y: Tensor) -> tuple[Node, list[Node], list[Node], int] | None:
    """The walk from the inputs of an evaluation to an output.

    None with hooks, anomaly mode, names or tangents, for an op that is not plain, and for values that were written in place.
    """
    root, since = y._node, ev.nodes[0].sequence_nr
    assert root is not None
    path, ends = list[Node](), [x for x in ev.nodes if x in ev.between]
    count = len(ends)
    seen: set[Node | None] = {None, root, *ev.nodes}
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if node.flags & OTHERS != GRADIENT:
            return None
        if node.sequence_nr < since or not node.parents:
            ends.append(node)
            continue
        if not _is_plain(node):
            return None
        path.append(node)
        for p in node.parents:
            if p not in seen:
                seen.add(p)
                stack.append(p)
    path.sort(key=operator.attrgetter("sequence_nr"))
    if all_threads.written > since and any([written_since(node.value, node.sequence_nr) for node in path]):
        return None  # a write in place replaced the value of a node, which a series reads
    return (root, path, ends, count) if unobserved((*path, *ends)) else None


def _is_plain(node: Node) -> bool:
    """Whether a node's op is a registered one with both rules that does not depend on signs or on the order of values."""
    op = getattr(type(node), "op", None)
    return isinstance(op, Op) and not node.selects and op.jvp is not None and op.vjp is not None and REGISTRY.get(op.name) is op


# Steps


class _SeriesPass:
    """A series pass along a walk, on recorded values."""

    def __init__(self, walk: Walk, order: int, constants: Sequence[tuple[int, int]], read: Any, ends: Sequence[Any]):
        self.walk, self.carrier, self._read_values = walk, SeriesCarrier(recording, order), read
        self.slots: dict[Any, Any] = dict(zip(walk.ends, ends))
        self.slots |= {node: read(node)[0] for node in walk.path}
        self._fixed = {(walk.path[i], k): read(walk.path[i])[1][k] for i, k in constants}
        self.known: dict[Any, Any] = {}

    def _tensors(self, node: Node) -> tuple:
        """The arguments of a node, as series if they are not constant."""
        known, slots = self.known, self.slots
        given = enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
        return tuple([known.get(p, slots[p]) if _is_value_of(p, a) else self._fixed.get((node, k), a) for k, (p, a) in given])

    def _read(self, node: Node) -> tuple[Any, tuple]:
        return self.known.get(node, self.slots[node]), self._tensors(node) + node.args[len(node.parents):]  # type: ignore[index]

    def push(self, paths: Sequence[Sequence[Any]]) -> None:
        """Propagate the coefficients of the inputs, except the first, to the output."""
        known, carrier, walk = self.known, self.carrier, self.walk
        known.update({end: carrier.polynomial([self.slots[end], *path]) for end, path in zip(walk.ends, paths)})
        for node in walk.path:
            if not known.keys().isdisjoint(node.parents):
                given = [a if type(a) is Series or type(a) in NUMBERS else carrier.lift_value(a) for a in self._tensors(node)]
                known[node] = carrier.apply(node.op, given, node.args[len(given):], first=self.slots[node])  # type: ignore[index]
                known[node].terms[0] = self.slots[node]  # avoids a recomputation by the series arithmetic

    def pull(self, seed: Any, needs: Sequence[int]) -> list[Any]:
        """The cotangents of some ends for a cotangent of the output."""
        found = self.walk.pullback(self.carrier, seed, needs, self._read)
        return [found.get(self.walk.ends[i]) for i in needs]

    def rows(self, outputs: Callable[[], list[list[Any]]]) -> list[list[Any]]:
        """Extend all series by one order at a time, and return the outputs."""
        grow = self.carrier.schedule()
        for k in range(1, self.carrier.order + 1):
            grow(k)
        found = outputs()
        self.carrier.close()
        return found


Constants = Sequence[tuple[int, int]]


def gradient_steps(walk: Walk, order: int, constants: Constants) -> PassProgram:
    """The gradient of a scalar by its inputs along a vector: each row computes one more Taylor coefficient."""
    def rows(read: Any, vectors: list[Any], ends: list[Any]) -> list[list[Any]]:
        once = _SeriesPass(walk, order, constants, read, ends)
        once.push([[v] for v in vectors])
        found = once.pull(one(walk.root.value), range(walk.count))
        return once.rows(lambda: [[coefficient(g, k) for g in found] for k in range(order + 1)])

    return PassProgram(walk.path, rows, [np.ones_like(end.value) for end in walk.ends[:walk.count]], walk.ends)


def curve_steps(walk: Walk, order: int, constants: Constants, lengths: Sequence[int], present: Sequence[bool],
                factors: Sequence[float]) -> PassProgram:
    """The coefficients 1 to K of an output along curves of the inputs, each times a factor fₖ, and the derivative of Σ ⟨cₖ, fₖ yₖ⟩ by
    captured tensors, in two rows.

    The derivative is the K-th coefficient of the cotangents for the cotangent Σ fₖ cₖ t^(K - k) of the output.
    """
    def rows(read: Any, vectors: list[Any], ends: list[Any]) -> list[list[Any]]:
        once, on = _SeriesPass(walk, order, constants, read, ends), iter(vectors)
        once.push([[next(on) for _ in range(n)] for n in lengths])
        y = once.known[walk.root]
        zeros = np.zeros_like(walk.root.value)
        seed = [next(on) * f if there else zeros for there, f in zip(present, factors)][::-1]
        while seed and seed[-1] is zeros:
            seed.pop()
        found = once.pull(once.carrier.polynomial(seed), range(walk.count, len(walk.ends)))
        return once.rows(lambda: [[None if (c := coefficient(y, k)) is None else c * f for k, f in enumerate(factors, 1)],
                                  [coefficient(g, order) for g in found]])

    vectors = [np.ones_like(end.value) for end, n in zip(walk.ends, lengths) for _ in range(n)]
    return PassProgram(walk.path, rows, [*vectors, *[np.ones_like(walk.root.value) for there in present if there]], walk.ends)


def recorded_coefficients(walk: Walk, direction: Sequence[Any], order: int) -> list[Any]:
    """The coefficient of an order of the gradient along a vector, as a part of a larger program that is being recorded."""
    constants = _constants_of(walk)
    if _have_nodes(walk, constants):
        raise Unrecordable("an argument that is not the value of its node")
    once = _SeriesPass(walk, order, constants, lambda node: (node.value, node.args), [end.value for end in walk.ends])
    once.push([[np.zeros_like(end.value) if v is None else v] for v, end in zip(direction, walk.ends[:walk.count])])
    found = once.pull(one(walk.root.value), range(walk.count))
    return once.rows(lambda: [[coefficient(g, order) for g in found]])[0]


def _constants_of(walk: Walk) -> tuple[tuple[int, int], ...]:
    """The places of arguments without nodes: the number of the node, and of the argument."""
    return tuple([(i, k) for i, node in enumerate(walk.path) for k, (p, a) in enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
                  if type(a) not in NUMBERS and not _is_value_of(p, a)])


def _have_nodes(walk: Walk, constants: Constants) -> bool:
    """Whether some of these arguments do have nodes, whose values they are not, as after a write in place."""
    return any([walk.path[i].parents[k] is not None for i, k in constants])


def _is_value_of(p: Node | None, a: Any) -> bool:
    """Whether an argument is the value of its node; a view of one number has it as an array."""
    return p is not None and (p.value is a or isinstance(p.value, np.generic) and type(a) is ndarray and not a.ndim)


def coefficient(x: Any, k: int) -> Any:
    """A coefficient of a series or a constant, None for zero."""
    return (x.terms[k] if k < len(x.terms) else None) if type(x) is Series else x if k == 0 else None


def steps_of(kind: Callable[..., PassProgram], walk: Walk, order: int, *rest: Any) -> PassProgram | None:
    """The series pass of a kind for walks with this signature; None if it cannot be recorded."""
    path = walk.path
    if not fits(path) or not all([type(x.value) in (float64, ndarray) and x.value.dtype.kind == "f" for x in walk.ends]):
        return None
    form = signature_of(walk.ends, path, walk.root)
    if form is None:
        return None
    constants = _constants_of(walk)
    if _have_nodes(walk, constants):
        return None
    kept = tuple([i for i, node in enumerate(path) if hasattr(node, "residual")])
    key = kind, form, constants, kept, order, walk.count, walk.root.value.dtype, rest
    return known_program(key, lambda: kind(walk, order, constants, *rest))


_core = functools.cache(core)


class Curve(Rule):
    """The rule of the coefficients 1 to `order` of an output, each times its factor, along curves of the inputs with numeric coefficients."""

    def __init__(self, walk: Walk, order: int, paths: Sequence[Sequence[Any]], factors: Sequence[float]):
        self.walk, self.order, self.paths, self.factors = walk, order, paths, tuple(factors)
        self.values = tuple([end.value for end in walk.ends])
        self._guess = [False] * (order - 1) + [True]  # the expected cotangents: those of a loss in the highest derivative
        self._taken: Any = None

    def started(self, present: Sequence[bool]) -> Any:
        """The run of the recorded steps for these cotangents; None if they cannot be recorded."""
        if self._taken is None or list(present) != self._guess:
            steps = steps_of(curve_steps, self.walk, self.order, tuple(map(len, self.paths)), tuple(present), self.factors)
            if steps is None:
                return None
            vectors = [c for path in self.paths for c in path] + [None] * sum(present)
            self._taken, self._guess = steps.start(self.walk.path, vectors, self.walk.ends), list(present)
        return self._taken

    def coefficients(self) -> list[Any] | None:
        """The coefficients, None for a zero one; or None if they must be recorded as a graph."""
        run = self.started(self._guess)
        return None if run is None else run.row(0)

    def evaluate(self, tensors: Tensors) -> Tensors:
        carrier, walk = SeriesCarrier(traced, self.order, _core, wrap), self.walk
        known: dict[Node, Any] = {end: carrier.lift_value(t) for end, t in zip(walk.ends, tensors)}
        for end, t, path in zip(walk.ends, tensors, self.paths):
            known[end] = carrier.polynomial([t, *map(wrap, path)])
        for node in walk.path:
            args = node.args or ()
            given = [known[p] if p is not None else a if type(a) in NUMBERS else carrier.lift_value(a) for p, a in zip(node.parents, args)]
            known[node] = carrier.apply(node.op, given, args[len(given):])
            carrier.solve()
        terms = known[walk.root].terms
        return [terms[k] * f if k < len(terms) else wrap(np.zeros_like(walk.root.value)) for k, f in enumerate(self.factors, 1)]

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        count, by = self.walk.count, [i for i, need in enumerate(needs) if need is not None]
        plain = not thread.modes.grad and all([c is None or type(c._value) is not Batched for c in cotangents])
        run = self.started([c is not None for c in cotangents]) if plain and by and by[0] >= count else None
        if run is not None:
            verify_all(self.walk.path)
            run.row(0)
            run.restart([*[c for path in self.paths for c in path], *[c._value for c in cotangents if c is not None]], 1)
            return [None] * count + [None if c is None else wrap(c) for c in run.row(1)]
        return super().pullback(tensors, outputs, cotangents, needs)


_op = rule_op("Curve")


def coefficient_node(ev: Evaluation, y: Tensor, paths: Sequence[Sequence[Tensor]], factors: Sequence[float]) -> Tensors | None:
    """The coefficients of an output along curves, each times its factor; the given coefficients have the same factors.

    None if they must be recorded as a graph: if a given coefficient requires a gradient, or the output does not depend on an input.
    """
    if not factors or not ev.between.issuperset(ev.nodes) or y._node not in ev.between or any([c._node is not None for path in paths for c in path]):
        return None
    found = walk_of(ev, y)
    if found is None:
        return None
    walk = Walk(*found)
    rows = [without_trailing_zeros([c._value for c in path]) or [path[0]._value] for path in paths]
    given = [[c if f == 1 else c / f for c, f in zip(row, factors)] for row in rows]
    rule = Curve(walk, len(factors), given, factors)
    values = rule.coefficients()
    if values is None:
        return None
    return attach_node(_op, rule, [wrap(end.value, end) for end in walk.ends], [wrap(np.zeros_like(y._value) if v is None else v) for v in values])


def without_trailing_zeros(path: list[Any]) -> list[Any]:
    """Coefficients without trailing zeros, so that a polynomial of low degree is propagated as one."""
    while path and (not path[-1].any() if type(path[-1]) is np.ndarray else isinstance(path[-1], np.generic) and path[-1] == 0):
        path.pop()
    return path
