"""Batches: `grad` with `is_grads_batched`, one pullback for a batch of cotangents; and Functions inside vmap, whose own `vmap` rule is called.

A user's rule that cannot compute for a batch of cotangents or tangents at once is called for each member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.batched import Batched, levels_of, new_level
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.generators import REFUSED
from symgrad.graph.modes import in_mode, thread
from symgrad.trees import flatten


def batched(differentiate: Callable[..., Any], ys: Sequence[Tensor], xs: Sequence[Tensor], cotangents: Any, retain_graph: bool | None,
            create_graph: bool, allow_unused: bool | None, materialize_grads: bool) -> tuple[Tensor | None, ...]:
    """The gradients for a batch of cotangents, with the batch as first dimension; `differentiate` is `grad`."""
    given = (cotangents,) if isinstance(cotangents, (Tensor, np.ndarray)) else tuple(cotangents or ())
    gs = [g if g is None or isinstance(g, Tensor) else wrap(as_value(g, y.dtype)) for g, y in zip(given, ys)]
    for i, (g, y) in enumerate(zip(gs, ys)):
        if g is not None and (not g.ndim or g.shape[1:] != y.shape):
            raise RuntimeError(f"grad: with is_grads_batched=True grad_outputs[{i}] must have one dimension before the shape {list(y.shape)} of its "
                               f"output, but its shape is {list(g.shape)}")
    counts = {g.shape[0] for g in gs if g is not None}
    if len(counts) != 1:
        raise (ValueError if counts else RuntimeError)(f"grad: the batches of grad_outputs must have one size, not {sorted(counts)}")
    level, count = new_level(), counts.pop()
    with in_mode(grad=create_graph, batches=(*thread.modes.batches, (level, count, REFUSED))):
        found = differentiate(ys, xs, [None if g is None else traced.batch(g, 0, level) for g in gs] + [None] * (len(given) - len(gs)), retain_graph,
                     create_graph, True, allow_unused, False, materialize_grads)
        out = [None if t is None else traced.unbatch(t, 0, level, count) for t in found]
    memory = [g._value for g in gs if g is not None]
    for i, t in enumerate(out):
        if t is not None and any(np.may_share_memory(t._value, other) for other in memory):
            out[i] = traced.clone(t) if create_graph else wrap(np.array(t._value))
        if out[i] is not None:
            memory.append(out[i]._value)  # type: ignore[union-attr]
    return tuple(out)


def by_members(xp: Any, compute: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any], args: Sequence[Any], error: RuntimeError) -> tuple:
    """The results of a rule of the user for each member of a batch of cotangents or tangents, as a batch; None stands for zero.

    A level at which the arguments of the call are batched, too, was there in the forward: its members have no rule of their own.

    Raises the error that the rule raised for the whole batch if there is no other level, or if a result depends on the batch in another way.
    """
    forward = {level for x in args for level in _levels(x)}
    level = max((level for x in given for level in _levels(x) if level not in forward), default=None)
    if level is None:
        raise error
    count = next(_count(x, level) for x in given if level in _levels(x))
    rows = [xp.unbatch(x, 0, level, count) if level in _levels(x) else x for x in given]
    batched = [level in _levels(x) for x in given]
    found = [compute([xp.getitem(x, i) if b else x for x, b in zip(rows, batched)]) for i in range(count)]
    out = []
    for members in zip(*found):
        if any([level in _levels(x) for x in members]):
            raise error
        known = next((x for x in members if x is not None), None)
        out.append(None if known is None else xp.batch(xp.stack([xp.zeros_like(known) if x is None else x for x in members], 0), 0, level))
    return tuple(out)


def _value(x: Any) -> Any:
    return x._value if isinstance(x, Tensor) else x


def _levels(x: Any) -> tuple[int, ...]:
    return levels_of(_value(x))


def _count(x: Any, level: int) -> int:
    value: Batched = _value(x)
    while value.level != level:
        value = value.data
    return value.count


class VmapInfo(NamedTuple):
    """The first argument of a `vmap` staticmethod: the batch size and the mode for random numbers."""

    batch_size: int
    randomness: str


def apply_to_batch(cls: Any, args: Sequence[Any]) -> Any:
    """The result of a Function's `vmap` staticmethod for batched arguments; NotImplemented if no argument is batched.

    Raises RuntimeError for a Function with both `generate_vmap_rule` and a `vmap` rule, and for a rule that does not return outputs and their
    batch dimensions.
    """
    leaves, form = flatten(tuple(args))
    entered = thread.modes.batches
    for at in reversed(range(len(entered))):
        level, count, randomness = entered[at]
        batched = [isinstance(x, Tensor) and level in levels_of(x._value) for x in leaves]
        if any(batched):
            break
    else:
        return NotImplemented
    name = cls.__name__
    if cls.generate_vmap_rule:
        raise RuntimeError(f"{name}: it has generate_vmap_rule=True and a vmap of its own; remove one of them")
    in_dims = form.unflatten([0 if b else None for b in batched])
    given = form.unflatten([traced.unbatch(x, 0, level, count) if b else x for x, b in zip(leaves, batched)])
    with in_mode(batches=entered[:at]):
        found = cls.vmap(VmapInfo(count, randomness), in_dims, *given)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(f"{name}: vmap must return the pair (output, out_dims), not {type(found).__name__}")
    output, out_dims = found
    outputs = output if isinstance(output, tuple) else (output,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(f"{name}.vmap: out_dims={out_dims} must have one entry for each of the {len(outputs)} outputs")
    finished = []
    for y, d in zip(outputs, dims):
        if d is not None and isinstance(y, Tensor) and (not -y.ndim <= d < y.ndim or y.shape[d] != count):
            raise RuntimeError(f"{name}.vmap: out_dims has {d} for an output of shape {list(y.shape)}, which has no such dimension of the batch size "
                               f"{count}")
        finished.append(y if d is None or not isinstance(y, Tensor) else traced.batch(y, d % y.ndim, level))
    return tuple(finished) if isinstance(output, tuple) else finished[0]
