"""Jacobians whose rows, or columns, are computed at once: one batched pass for each output, or input."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.modes import set_grad_enabled
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, batches, new_level
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced

__all__ = ["columns", "rows"]

Tensors = tuple[Tensor, ...]


def _units(x: Tensor) -> Tensor:
    """All unit vectors of the shape of `x`."""
    return wrap(np.eye(x.numel(), dtype=x._value.dtype).reshape((x.numel(), *x.shape)))


def rows(ys: Tensors, xs: Tensors, create_graph: bool) -> list[list[Tensor]]:
    """The blocks of a Jacobian, one batched pullback for each output."""
    blocks = []
    for y in ys:
        found: Sequence[Tensor | None] = [None] * len(xs)
        if y.requires_grad and y.numel():
            found = grad(y, xs, _units(y), retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=True)
        blocks.append([_laid_out(block, (*y.shape, *x.shape), x, create_graph) for block, x in zip(found, xs)])
    return blocks


def columns(ys: Tensors, xs: Tensors, create_graph: bool, push: Callable[..., Sequence[Tensor | None]]) -> list[list[Tensor]]:
    """The blocks of a Jacobian, one batched pushforward for each input."""
    blocks: list[list[Tensor]] = [[] for _ in ys]
    for x in xs:
        level, count, entered = new_level(), x.numel(), batches.entered
        batches.entered = (*entered, (level, count, "error"))
        try:
            pushed = push(ys, (x,), [wrap(Batched(_units(x)._value, level))], create_graph)
            with set_grad_enabled(create_graph):
                found = [None if t is None else traced.unbatch(t, t.ndim, level, count) for t in pushed]
        finally:
            batches.entered = entered
        for block, y, t in zip(blocks, ys, found):
            block.append(_laid_out(t, (*y.shape, *x.shape), y, create_graph))
    return blocks


def _laid_out(block: Tensor | None, shape: tuple[int, ...], like: Tensor, create_graph: bool) -> Tensor:
    """A block of a Jacobian in its shape, in memory of its own; zeros where there is none."""
    if block is None:
        return wrap(numeric.zeros_like(like._value, shape))
    with set_grad_enabled(create_graph):
        return traced.reshape(traced.clone(block, memory_format="torch.contiguous_format"), shape)
