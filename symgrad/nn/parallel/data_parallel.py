"""`DataParallel`: a module called for parts of a batch in several threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from symgrad.engine.tasks import mark_parts, with_modes_of_caller
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.modes import DEFAULT, thread
from symgrad.graph.node import Node, next_sequence
from symgrad.layouts.devices import check_cpu
from symgrad.nn.modules.module import Module
from symgrad.system.locks import cores
from symgrad.trees import flatten


def scatter(inputs: Any, target_gpus: int | Sequence[Any], dim: int = 0) -> list[Any]:
    """Nested arguments split along `dim` of their tensors into parts for so many devices, or for these; other values are in every part.

    >>> import symgrad
    >>> scatter((symgrad.arange(3), "same"), 2)
    [(tensor([0, 1]), 'same'), (tensor([2]), 'same')]
    """
    parts = target_gpus if isinstance(target_gpus, int) else len(target_gpus)
    if isinstance(inputs, Tensor):
        return list(FUNCTIONS["chunk"](inputs, parts, dim))
    if not isinstance(inputs, (tuple, list, dict)) or not inputs:
        return [inputs] * parts
    kind, values = type(inputs), inputs.values() if isinstance(inputs, dict) else inputs
    rows = zip(*(scatter(value, parts, dim) for value in values))
    if isinstance(inputs, dict):
        return [kind(zip(inputs, row)) for row in rows]
    return [*map(getattr(kind, "_make", kind), rows)]  # of a named tuple


def scatter_kwargs(inputs: tuple, kwargs: dict[str, Any] | None, target_gpus: int | Sequence[Any],
                   dim: int = 0) -> tuple[tuple[tuple, ...], tuple[dict[str, Any], ...]]:
    """The parts of arguments, and those of keyword arguments; where there are fewer of one kind, the last are empty."""
    parts, named = scatter(inputs, target_gpus, dim) if inputs else [], scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(parts), len(named))
    return (*parts, *[()] * (count - len(parts))), (*named, *({} for _ in range(count - len(named))))


def gather(outputs: Sequence[Any], target_device: Any = "cpu", dim: int = 0) -> Any:
    """Nested results of the parts joined: tensors along `dim`, 0-d tensors as a vector.

    Raises AssertionError or RuntimeError for a device that is not the CPU.

    >>> import symgrad
    >>> gather([(symgrad.ones(1), symgrad.tensor(2.0)), (symgrad.zeros(2), symgrad.tensor(3.0))])
    (tensor([1., 0., 0.]), tensor([2., 3.]))
    """
    check_cpu(target_device)
    first = outputs[0]
    kind: Any = type(first)
    if isinstance(first, Tensor):
        return FUNCTIONS["cat"](list(outputs), dim) if first.ndim else FUNCTIONS["stack"](list(outputs))
    if first is None:
        return None
    if isinstance(first, Mapping):
        if any(len(out) != len(first) for out in outputs):
            raise ValueError("gather: the results of the replicas are dicts of different lengths; give each the same keys")
        return kind((key, gather([out[key] for out in outputs], dim=dim)) for key in first)
    return getattr(kind, "_make", kind)(gather(parts, dim=dim) for parts in zip(*outputs))


def _nodes(out: Any) -> list[Node]:
    """The nodes of the tensors in nested results."""
    return [x._node for x in flatten(out)[0] if isinstance(x, Tensor) and x.grad_fn is not None and x._node is not None]


class DataParallel(Module):
    """A module whose input is split along `dim` over threads; its outputs are joined, its gradients are those of the module itself.

    `device_ids` is a number of threads, or a list with one "cpu" for each; without it there is one thread for each core. The threads
    share the module and its parameters. On one device the module itself is called. The parts are pulled back in threads, too, and their
    gradients are added in the order of the parts; where the parts have hooks, call a user's code or share what they computed, one thread does it.
    Products of matrices gain where BLAS itself takes one thread (`OPENBLAS_NUM_THREADS=1`).

    Raises ValueError for an empty list of devices and for a device that is not the CPU. Exceptions of threads are raised in the caller.

    >>> import symgrad
    >>> from symgrad import nn
    >>> model = nn.DataParallel(nn.Flatten(), device_ids=2)
    >>> model(symgrad.zeros(3, 2, 2)).shape
    torch.Size([3, 4])
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        count = cores() if device_ids is None else device_ids if isinstance(device_ids, int) else len(device_ids)
        if count < 1:
            raise ValueError("DataParallel needs at least one device: give device_ids a number of threads, or leave it out")
        for device in () if device_ids is None or isinstance(device_ids, int) else device_ids:
            if str(device).partition(":")[0] != "cpu":
                raise ValueError(f"DataParallel computes on the CPU, with one thread for each device; the device {device} is not there")
        self.module, self.dim, self.device_ids = module, dim, ["cpu"] * count
        self.output_device = "cpu" if output_device is None else output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The output of the module for the inputs, computed in parts."""
        parts = scatter((inputs, kwargs), len(self.device_ids), self.dim) if len(self.device_ids) > 1 else []
        if len(parts) < 2:
            return self.module(*inputs, **kwargs)
        start = next_sequence()
        calls = [partial(self.module, *args, **values) for args, values in parts]
        if thread.modes.recorder is not DEFAULT or thread.modes.observers or thread.modes.program is not None:
            outputs = [call() for call in calls]  # what follows the calls follows one thread
        else:
            with ThreadPoolExecutor(len(parts) - 1) as pool:
                others = [pool.submit(with_modes_of_caller(call)) for call in calls[1:]]
                outputs = [calls[0](), *(other.result() for other in others)]
        mark_parts(start, [_nodes(out) for out in outputs])
        return gather(outputs, dim=self.dim)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None) -> Any:
    """The output of `DataParallel` of a module, for one input or a tuple of them."""
    return DataParallel(module, device_ids, output_device, dim)(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
