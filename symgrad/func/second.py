"""The second-order pass: tangents pushed through a recorded graph, and one pullback of dual cotangents, which gives the tangent of the gradient."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, new_level, raw
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.engine.passes import pullback
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read, read_at, read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.evaluation import Evaluation, InputNode
from symgrad.func.transforms import as_result, input_cotangents, output_tangents, unbatch_units
from symgrad.graph.modes import UNCHANGED, in_mode, special, thread
from symgrad.graph.node import HOOKED, Node, all_threads
from symgrad.program.passes import PassProgram, fits, recording

Read = Callable[[Node], tuple[Any, tuple]]
_carrier = functools.cache(DualCarrier)


def gradient_tangents(ev: Evaluation, y: Tensor, tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """The derivative of the gradient along tangents of the inputs, for every input: ∂²y/∂x∂xⱼ · tⱼ, summed over j.

    A pullback of dual cotangents gives the gradient and its tangent in one pass. It records nothing unless the results are differentiable outside
    the transform.
    """
    if y._node not in ev.between:
        return [as_result(ev, x, None) for x in ev.inputs]
    if instrumented(ev):
        return _gradient_tangents_by_pullback(ev, y, tangents)
    starts = {node: t if ev.tracked else t._value for node, t in zip(ev.nodes, tangents) if t is not None}
    seed = np.ones_like(y._value)[()]
    try:
        with in_mode(grad=True) if ev.tracked else UNCHANGED:
            found = _cotangent_tangents(ev.xp, ev, y, starts, read_traced if ev.tracked else read, wrap(seed) if ev.tracked else seed)
    except NotImplementedError:  # a custom function without a pushforward
        return _gradient_tangents_by_pullback(ev, y, tangents)
    return [as_result(ev, x, t) for x, t in zip(ev.inputs, found)]


def instrumented(ev: Evaluation) -> bool:
    """Whether the path has a custom Function or a hook, or anomaly mode is on."""
    return hooked_or_anomaly(ev) or ev.calls_code


def hooked_or_anomaly(ev: Evaluation) -> bool:
    """Whether a node of the path has hooks, or anomaly mode is on."""
    return special and thread.modes.anomaly is not None or all_threads.hooked and any([node.flags & HOOKED for node in ev.path])


def _cotangent_tangents(xp: Any, ev: Evaluation, y: Tensor, starts: Mapping[Node, Any], read: Read, seed: Any) -> list[Any]:
    """The tangents of the inputs' cotangents, None for zero."""
    moved = pushforward(xp, (), starts, read, _nodes_read_by_pullback(ev), any([node.selects for node in ev.path]))

    def read_dual(node: Node) -> tuple[Any, tuple]:
        value, args = read(node)
        if node.op.kind == "linear":
            return value, args
        parents = node.parents
        along = tuple([Dual(a, moved[p]) if p in moved else a for a, p in zip(args, parents)]) + args[len(parents):]
        return Dual(value, moved[node]) if node in moved else value, along

    ends = frozenset([node for node in ev.nodes if type(node) is not InputNode])  # nodes at a cut may lie upstream of one another
    out = pullback(_carrier(xp), [(y._node, seed)], read_dual, ev.wanted, ends=ends)  # type: ignore[list-item]
    found = [out.get(node) for node in ev.nodes]
    return [g.tangent if type(g) is Dual else None for g in found]


def _nodes_read_by_pullback(ev: Evaluation) -> list[Node]:
    """The nodes whose tangents the pullback needs, in order: those that pullback rules read, and those upstream of them.

    A value that only linear ops use needs no tangent.
    """
    between, read = ev.between, set[Any]()
    for node in reversed(ev.path):
        op, parents = node.op, node.parents
        names = read_at(node)
        if names is None:
            read.update([p for p in parents if p in between], (node,))
        else:
            for i, p in enumerate(parents):
                if p in between:
                    for name in names[min(i, len(names) - 1)]:
                        if name == "result":
                            read.add(node)
                        else:
                            read.add(parents[op.argument_names.index(name)] if op.arity is not None else p)
        if node in read:
            read.update([p for p in parents if p in between])
    return [node for node in ev.path if node in read]


def _gradient_tangents_by_pullback(ev: Evaluation, y: Tensor, tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """The tangents of the gradient by a second pullback, Σ tⱼ · ∂g/∂xⱼ by symmetry, for custom Functions without a pushforward."""
    tracked = dataclasses.replace(ev, tracked=True)
    gradient = input_cotangents(tracked, [(y, wrap(np.ones_like(y._value)))])
    return input_cotangents(ev.with_outputs(gradient), [(g, t) for g, t in zip(gradient, tangents) if t is not None], True)


# Products with several vectors


def hessian_products(ev: Evaluation, y: Tensor, seeds: Any, chunk_size: int | None) -> np.ndarray:
    """The products of the Hessian with vectors over all elements of all inputs, which are the rows of `seeds`."""
    out, step, units = [], chunk_size or max(len(seeds), 1), _are_units(seeds)
    for at in range(0, len(seeds), step):
        rows = seeds[at:at + step]
        tangents = _tangent_batches(ev, rows, at if units else None)
        with _selecting(y):
            found = [unbatch_units(ev, t, b)._value for t, b in zip(gradient_tangents(ev, y, [wrap(t) for t in tangents]), tangents)]
        out.append(_join_rows(found, len(rows)))
    return out[0] if len(out) == 1 else np.concatenate(out) if out else np.zeros((0, sum(x.numel() for x in ev.inputs)), y._value.dtype)


def _selecting(y: Tensor) -> Any:
    """The context of a derivative along fixed vectors for the program that is recorded, if one is."""
    recorder = getattr(raw(y._value), "recorder", None)
    return contextlib.nullcontext() if recorder is None else recorder.along_fixed_vectors()


def _are_units(seeds: Any) -> bool:
    """Whether vectors are the unit vectors in their order."""
    return seeds.shape == (len(seeds),) * 2 and np.count_nonzero(seeds) == len(seeds) and bool((seeds.diagonal() == 1).all())


def jacobian_products(ev: Evaluation, seeds: Any, chunk_size: int | None = None) -> np.ndarray:
    """The products of the Jacobian of one output with vectors over all elements of all inputs, which are the rows of `seeds`."""
    out, step = [], chunk_size or max(len(seeds), 1)
    for at in range(0, len(seeds), step):
        tangents = _tangent_batches(ev, seeds[at:at + step], None)
        (found,) = output_tangents(ev, [wrap(t) for t in tangents])
        out.append(unbatch_units(ev, found, tangents[0])._value.reshape(tangents[0].count, -1))
    return np.concatenate(out) if out else np.zeros((0, ev.outputs[0].numel()), ev.outputs[0]._value.dtype)


def _tangent_batches(ev: Evaluation, rows: Any, unit: int | None) -> list[Batched]:
    """Vectors over all elements as a batch of tangents for each input; `unit` is the number of the first if they are consecutive unit vectors."""
    level = new_level()
    return [Batched(part, level, unit if len(ev.inputs) == 1 else None) for part in ev.split(rows)]


def _join_rows(found: Sequence[Any], count: int) -> np.ndarray:
    rows = [t.reshape(count, math.prod(t.shape[1:])) for t in found]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, 1)


class HessianProgram(PassProgram):
    """The products of the Hessian with fixed vectors, for every graph with one signature: the recorded second-order pass."""

    def __init__(self, ev: Evaluation, y: Tensor, seeds: np.ndarray):
        batches, one = _tangent_batches(ev, seeds, 0 if _are_units(seeds) else None), y._value.dtype.type(1)
        starts, self._count = dict(zip(ev.nodes, batches)), len(seeds)
        super().__init__(ev.path, lambda read, vectors, ends: [_cotangent_tangents(recording, ev, y, starts, read, one)])

    @staticmethod
    def fits(ev: Evaluation, y: Tensor, count: int) -> bool:
        """Whether the pass over a graph can be recorded."""
        return y._node in ev.between and fits(ev.path, count)

    def products(self, ev: Evaluation) -> np.ndarray:
        """The products for a graph with this signature."""
        found, count = self.run(ev.path), self._count
        return _join_rows([np.zeros((count, x.numel()), x._value.dtype) if t is None else t for t, x in zip(found, ev.inputs)], count)
