"""Walks, which are recorded functions in order, and their steps: a series pass along a walk, recorded once for every walk with its signature."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import one
from symgrad.carriers import numeric
from symgrad.carriers.series import Series, SeriesCarrier
from symgrad.engine.passes import pullback
from symgrad.engine.recording import NUMBERS
from symgrad.engine.replay import arguments, call_rule
from symgrad.engine.saved import verify_all
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import Evaluation
from symgrad.graph.modes import DEFAULT, special, thread
from symgrad.graph.node import GRADIENT, HOOKED, TRACKED, Node, all_threads
from symgrad.graph.op import REGISTRY, Op
from symgrad.program.cache import shared
from symgrad.program.signature import signature_of
from symgrad.program.tape import Program, Tape, TapingCarrier

__all__ = ["CurveSteps", "GradientSteps", "Steps", "Walk", "steps_of", "unobserved", "walk_of"]

float64, ndarray = np.float64, np.ndarray
MAX_ELEMENTS = 2_000_000  # the most elements in the values of a walk that are recorded on a tape
MAX_NODES = 400  # the most nodes of a walk whose steps are recorded
_taping = TapingCarrier()


def unobserved(nodes: Iterable[Node]) -> bool:
    """Whether these nodes have no hooks, and no observer or anomaly mode is active."""
    if all_threads.anomaly is not None or special and (thread.modes.recorder is not DEFAULT or thread.modes.observers):
        return False
    return not all_threads.hooked or not any([node.flags & HOOKED for node in nodes])


def _constant(x: Any) -> Any:
    return x if type(x) in NUMBERS else wrap(x)


# Walks


class Walk:
    """A recorded function: the node of its output, the nodes of the path, oldest first, and the ends, where the path starts.

    The first `count` ends are the inputs of the function, the others are captured tensors.
    """

    def __init__(self, root: Node, path: Sequence[Node], ends: Sequence[Node], count: int):
        self.root, self.path, self.ends, self.count = root, path, ends, count

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

    def replay(self, tensors: Sequence[Tensor], call: Callable[..., Any] | None = None) -> Any:
        """The output, recorded again with other tensors as ends; `call` records one node."""
        known: dict[Node, Any] = dict(zip(self.ends, tensors))
        for node in self.path:
            known[node] = (call or call_rule)(traced, node, arguments(node, known, _constant), node.args or ())
        return known[self.root]


def walk_of(ev: Evaluation, y: Tensor) -> tuple[Node, list[Node], list[Node], int] | None:
    """The walk from the inputs of an evaluation to an output; None with hooks, anomaly mode, names or tangents, or an op that is not plain."""
    root, since = y._node, ev.nodes[0].sequence_nr
    assert root is not None
    path, ends = list[Node](), [x for x in ev.nodes if x in ev.between]
    count = len(ends)
    seen: set[Node | None] = {None, root, *ev.nodes}
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if node.flags & TRACKED != GRADIENT:
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
    return (root, path, ends, count) if unobserved((*path, *ends)) else None


def _is_plain(node: Node) -> bool:
    """Whether a node's op is a registered one with both rules that does not depend on signs or on the order of values."""
    op = getattr(type(node), "op", None)
    return isinstance(op, Op) and not node.selects and op.jvp is not None and op.vjp is not None and REGISTRY.get(op.name) is op


# Steps


class Steps:
    """A series pass along walks with one signature, recorded as a program whose rows of outputs are its stages."""

    def __init__(self, walk: Walk, order: int, constants: Sequence[tuple[int, int]], kept: Sequence[int], vectors: Sequence[Any]):
        self.tape = tape = Tape()
        self.carrier, self.walk, self.order = SeriesCarrier(_taping, order), walk, order
        self.vectors = [tape.add_input(v) for v in vectors]
        slots: dict[Any, Any] = {end: tape.add_input(end.value) for end in walk.ends}
        self.constants, self.kept = constants, kept
        self._fixed = {place: tape.add_input(walk.path[place[0]].args[place[1]]) for place in constants}  # type: ignore[index]
        slots |= {node: tape.add_input(node.value) for node in walk.path}
        residuals = [tape.add_input(walk.path[i].residual) for i in kept]  # type: ignore[attr-defined]
        for i, residual in zip(kept, residuals):  # the residual of an op determines its derivative
            slope = numeric.WITH_RESIDUAL[walk.path[i].op.name][1]
            tape.define(numeric.sech_square, (slots[walk.path[i].parents[0]],), tape.call(slope, (residual,)))
        self._slots, self._places = slots, {node: i for i, node in enumerate(walk.path)}
        self.known: dict[Any, Any] = {}

    def _tensors(self, node: Node) -> tuple:
        """The arguments of a node, as series if they are not constant."""
        i, known, slots = self._places[node], self.known, self._slots
        given = enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
        return tuple([self._fixed.get((i, k), a) if p is None or p.value is not a else known.get(p, slots[p]) for k, (p, a) in given])

    def _read(self, node: Node) -> tuple[Any, tuple]:
        return self.known.get(node, self._slots[node]), self._tensors(node) + node.args[len(node.parents):]  # type: ignore[index]

    def push(self, paths: Sequence[Sequence[Any]]) -> None:
        """Propagate the coefficients of the inputs, except the first, to the output."""
        known, carrier, walk = self.known, self.carrier, self.walk
        known.update({end: carrier.polynomial([self._slots[end], *path]) for end, path in zip(walk.ends, paths)})
        for node in walk.path:
            if not known.keys().isdisjoint(node.parents):
                given = [a if type(a) is Series or type(a) in NUMBERS else carrier.lift_value(a) for a in self._tensors(node)]
                known[node] = carrier.apply(node.op, given, node.args[len(given):], first=self._slots[node])  # type: ignore[index]
                known[node].terms[0] = self._slots[node]  # avoids a recomputation by the series arithmetic

    def pull(self, seed: Any, needs: Sequence[int]) -> list[Any]:
        """The cotangents of some ends for a cotangent of the output."""
        walk = self.walk
        found = walk.pullback(self.carrier, seed, needs, self._read)
        return [found.get(walk.ends[i]) for i in needs]

    def finish(self, outputs: Callable[[], list[list[Any]]]) -> None:
        """Extend all series by one order at a time, and record the steps of the outputs."""
        grow = self.carrier.schedule()
        for k in range(1, self.order + 1):
            grow(k)
        self.program = Program(self.tape, outputs())
        self.carrier.close()
        self.count = len(self.vectors)
        del self.tape, self.carrier, self.walk, self.known, self.vectors, self._slots, self._places, self._fixed

    def start_tape(self, walk: Walk) -> list[Any]:
        """The values on the tape for another walk, with empty slots for the vectors and the steps."""
        path: Any = walk.path
        verify_all(path)
        return [*[None] * self.count, *[end.value for end in walk.ends], *[path[i].args[k] for i, k in self.constants],
                *[node.value for node in path], *[path[i].residual for i in self.kept], *[None] * (self.program.size - self.program.count)]


class GradientSteps(Steps):
    """The gradient of a scalar by its inputs along a vector: each stage computes one more Taylor coefficient."""

    def __init__(self, walk: Walk, order: int, constants: Sequence[tuple[int, int]], kept: Sequence[int]):
        inputs = walk.ends[:walk.count]
        super().__init__(walk, order, constants, kept, [np.ones_like(end.value) for end in inputs])
        self.push([[v] for v in self.vectors])
        found = self.pull(one(walk.root.value), range(walk.count))
        self.finish(lambda: [[coefficient(g, k) for g in found] for k in range(order + 1)])


class CurveSteps(Steps):
    """The coefficients 1 to K of an output along curves of the inputs, each times a factor fₖ, and the derivative of Σ ⟨cₖ, fₖ yₖ⟩ by
    captured tensors.

    The derivative is the K-th coefficient of the cotangents for the cotangent Σ fₖ cₖ t^(K - k) of the output.
    """

    def __init__(self, walk: Walk, order: int, constants: Sequence[tuple[int, int]], kept: Sequence[int], lengths: Sequence[int],
                 present: Sequence[bool], factors: Sequence[float]):
        inputs = walk.ends[:walk.count]
        vectors = [np.ones_like(end.value) for end, n in zip(inputs, lengths) for _ in range(n)]
        super().__init__(walk, order, constants, kept, [*vectors, *[np.ones_like(walk.root.value) for there in present if there]])
        on: Any = iter(self.vectors)
        self.push([[next(on) for _ in range(n)] for n in lengths])
        y = self.known[walk.root]
        zeros = np.zeros_like(walk.root.value)
        seed = [next(on) * f if there else zeros for there, f in zip(present, factors)][::-1]
        while seed and seed[-1] is zeros:
            seed.pop()
        found = self.pull(self.carrier.polynomial(seed), range(walk.count, len(walk.ends)))
        self.finish(lambda: [[None if (c := coefficient(y, k)) is None else c * f for k, f in enumerate(factors, 1)],
                             [coefficient(g, order) for g in found]])


def coefficient(x: Any, k: int) -> Any:
    """A coefficient of a series or a constant, None for zero."""
    return (x.terms[k] if k < len(x.terms) else None) if type(x) is Series else x if k == 0 else None


def steps_of(kind: Any, walk: Walk, order: int, *rest: Any) -> Any:
    """The cached steps of a kind for walks with this signature; None if they branch on values or need too much memory."""
    path = walk.path
    if len(path) > MAX_NODES or sum([node.value.size for node in path]) > MAX_ELEMENTS or not all([
            type(x.value) is float64 or type(x.value) is ndarray and x.value.dtype.kind == "f" for x in (*walk.ends, *path)]):
        return None
    form = signature_of(walk.ends, path, walk.root)
    if form is None:
        return None
    constants = tuple([(i, k) for i, node in enumerate(path) for k, (p, a) in enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
                       if (p is None or p.value is not a) and type(a) not in NUMBERS])
    kept = tuple([i for i, node in enumerate(path) if hasattr(node, "residual")])
    key = kind, form, constants, kept, order, walk.count, walk.root.value.dtype, rest
    found = shared.get(key)
    if found is None:
        found = kind(walk, order, constants, kept, *rest)
        shared.put(key, found, found.program.nbytes)
    return found
