"""`DistributedDataParallel`: one module in several processes, each with its part of the data and with the same gradients."""

from __future__ import annotations

from collections.abc import Container
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from symgrad.autograd.modes import is_grad_enabled, no_grad
from symgrad.distributed.collectives import Work, broadcast, reducible
from symgrad.distributed.communicators import ReduceOp
from symgrad.distributed.groups import get_global_rank, member_of
from symgrad.engine.tasks import queue_callback
from symgrad.engine.tensor import Tensor, wrap
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import UninitializedParameter
from symgrad.system.restoring import changed
from symgrad.trees import flatten

FIRST, MEGABYTE = 1 << 20, 1 << 20  # bytes of the first bucket, which is reduced while most of the pullback is still to come


class _Bucket:
    """Parameters whose gradients travel together, as one array."""

    def __init__(self, parameters: list[Tensor]):
        self.parameters = parameters
        self.reset()

    def reset(self) -> None:
        """Wait for all gradients again."""
        self.missing, self.flat, self.work = len(self.parameters), np.empty(0), Work(None)

    def start(self, group: Any) -> None:
        """Begin to add up the gradients; zeros stand for those that are absent."""
        parts = [np.zeros(p.shape, p.detach().numpy().dtype) if p.grad is None else p.grad.detach().numpy() for p in self.parameters]
        self.flat = reducible(np.concatenate([part.reshape(-1) for part in parts]))
        self.flat /= group.size()  # before the sum, which stays finite so
        self.work = Work(group.communicator.reduce(self.flat, ReduceOp.SUM))

    def finish(self, used: Container[Tensor]) -> None:
        """Write the means into the gradients of the parameters that any process used."""
        self.work.wait()
        place = 0
        with no_grad():
            for p in self.parameters:
                mean = wrap(self.flat[place:place + p.numel()].reshape(p.shape))
                place += p.numel()
                if p.grad is not None:
                    p.grad.copy_(mean)
                elif p in used:
                    p.grad = mean.to(p.dtype, copy=True)


class DistributedDataParallel(Module):
    """A module whose gradients are the means of those of all processes, so that its parameters stay the same everywhere.

    At the start every process gets the parameters and buffers of rank 0. Each process computes with its part of the batch; in `backward` the
    gradients travel in buckets of `bucket_cap_mb` megabytes while the pullback goes on, and are there when it returns. If each loss is the mean
    over a part of one size, that is the gradient of the mean over all. In the block of `no_sync()` gradients only add up; the next backward
    outside sends the sums. `broadcast_buffers` sends the buffers of rank 0 before each call. With `find_unused_parameters` a process may leave out
    parameters: zeros count for them, and a parameter that no process used keeps its gradient. `device_ids`, `output_device`,
    `gradient_as_bucket_view` and `static_graph` have no effect.

    Raises ValueError without a group of processes, RuntimeError for a module without parameters that require a gradient, for parameters that differ
    between processes in name, shape or dtype, and in `backward` for a parameter without a gradient.

    >>> import symgrad
    >>> from symgrad import distributed, nn
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model(symgrad.ones(3, 2)).mean().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> distributed.destroy_process_group()
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
                 init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False):
        super().__init__()
        self.process_group = member_of(process_group)
        self.module, self.dim, self.broadcast_buffers, self.find_unused_parameters = module, dim, broadcast_buffers, find_unused_parameters
        self.require_backward_grad_sync = True
        named = dict(module.named_parameters())
        if any(isinstance(p, UninitializedParameter) for p in named.values()):
            raise RuntimeError("DistributedDataParallel: the module has parameters without a shape; call it once, before it is wrapped")
        self._names = {p: name for name, p in named.items() if p.requires_grad}
        if not self._names:
            raise RuntimeError("DistributedDataParallel: no parameter of the module requires a gradient; call the module itself")
        self._same_everywhere([(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in named.items()])
        if init_sync:
            self._send([*named.values(), *module.buffers()])
        self._buckets = _buckets(list(self._names), int((25 if bucket_cap_mb is None else bucket_cap_mb) * MEGABYTE))
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        self._reset()
        for p in self._names:
            p.register_post_accumulate_grad_hook(self._accumulated)

    def _reset(self) -> None:
        self._ready, self._queued, self._begun = set[Tensor](), False, 0
        for bucket in self._buckets:
            bucket.reset()

    def _same_everywhere(self, own: list[Any]) -> None:
        """Raise in all processes where the parameters of one differ from those of rank 0."""
        for rank, other in enumerate(found := self.process_group.communicator.objects(own) or [own]):
            if other != found[0]:
                pairs = [f"{a} on rank 0, {b} on rank {rank}" for a, b in zip(found[0], other) if a != b]
                raise RuntimeError("DistributedDataParallel: the parameters differ between processes: "
                                   + (pairs[0] if pairs else f"{len(found[0])} on rank 0, {len(other)} on rank {rank}"))

    def _send(self, tensors: list[Tensor]) -> None:
        for work in [broadcast(t, get_global_rank(self.process_group, 0), self.process_group, async_op=True) for t in tensors]:
            assert work is not None
            work.wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The output of the module."""
        if self._queued:  # a backward has failed
            self._reset()
        if self.broadcast_buffers and self.require_backward_grad_sync:
            self._send(list(self.module.buffers()))
        out = self.module(*inputs, **kwargs)
        if self.find_unused_parameters and is_grad_enabled() and self.require_backward_grad_sync:
            for t in flatten(out)[0]:
                if isinstance(t, Tensor) and t.requires_grad:
                    t.register_hook(lambda g: self._queue())  # also where this process uses none of the parameters
        return out

    def no_sync(self) -> AbstractContextManager[None]:
        """In the block, gradients are not sent; they add up in each process."""
        return changed(self, "require_backward_grad_sync", False)

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            queue_callback(self._finish)

    def _accumulated(self, p: Tensor) -> None:
        """Note a gradient that is complete, and send the buckets that are, in one order everywhere."""
        if not self.require_backward_grad_sync:
            return
        self._queue()
        if p not in self._ready:
            self._ready.add(p)
            self._bucket_of[p].missing -= 1
        while self._begun < len(self._buckets) and not self._buckets[self._begun].missing:
            self._begin()

    def _begin(self) -> None:
        self._buckets[self._begun].start(self.process_group)
        self._begun += 1

    def _finish(self) -> None:
        """At the end of the backward: send the rest, and wait for all."""
        ready = self._ready
        try:
            if not self.find_unused_parameters and (unused := [name for p, name in self._names.items() if p not in ready]):
                raise RuntimeError(f"DistributedDataParallel: the parameters {', '.join(unused)} have no gradient in this backward, and the other "
                                   "processes wait for them. If the loss need not depend on all parameters, construct it with "
                                   "find_unused_parameters=True.")
            while self._begun < len(self._buckets):
                self._begin()
            everywhere = set(self._names)
            if self.find_unused_parameters:
                flags = np.array([p in ready for p in self._names], np.uint8)
                Work(self.process_group.communicator.reduce(flags, ReduceOp.MAX)).wait()
                everywhere = {p for p, used in zip(self._names, flags) if used}
            for bucket in self._buckets:
                bucket.finish(everywhere)
        finally:
            self._reset()


def _buckets(parameters: list[Tensor], most: int) -> list[_Bucket]:
    """The parameters, last first as their gradients come, in buckets of one dtype; the first of at most a megabyte."""
    out: list[list[Tensor]] = []
    size, limit = 0, min(FIRST, most)
    for p in reversed(parameters):
        bytes_ = p.numel() * p.element_size()
        if not out or size + bytes_ > limit or out[-1][0].dtype != p.dtype:
            limit = limit if not out else most
            out.append([])
            size = 0
        out[-1].append(p)
        size += bytes_
    return [_Bucket(each) for each in out]
