"""`grad` with `is_grads_batched`: one pullback for a batch of cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import new_level
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.generators import REFUSED
from symgrad.graph.modes import in_mode, thread


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
