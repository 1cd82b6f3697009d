"""Collective calls on tensors: every process of the group makes the same call, and results are written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.modes import no_grad
from symgrad.distributed.communicators import ReduceOp
from symgrad.distributed.groups import member_of, rank_in
from symgrad.engine.tensor import Tensor, wrap
from symgrad.system.errorstate import quiet

__all__ = ["Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
           "broadcast", "broadcast_object_list", "gather", "gather_object", "irecv", "isend", "recv", "recv_object_list", "reduce", "reduce_scatter",
           "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list"]

EXCHANGE = 32_001  # a tag that programs hardly use


class Work:
    """A call that runs on while the program does something else; what it needs must not be changed until it is done."""

    def __init__(self, request: Any, finish: Callable[[], Any] = lambda: None):
        self._request, self._finish, self._done = request, finish, False

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the result is written. `timeout` has no effect."""
        if not self._done:
            if self._request is not None:
                self._request.Wait()
            self._finished()
        return True

    def is_completed(self) -> bool:
        """Whether the result is written."""
        if not self._done and (self._request is None or self._request.Test()):
            self._finished()
        return self._done

    def _finished(self) -> None:
        self._done = True
        self._finish()


def _result(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def _array(t: Any, name: str = "tensor") -> np.ndarray:
    """A contiguous copy of the value of a tensor."""
    if not isinstance(t, Tensor):
        raise TypeError(f"{name} is a {type(t).__name__}; give a Tensor")
    return np.array(t.detach().numpy(), order="C")


def _write(t: Tensor, array: np.ndarray) -> None:
    with no_grad():
        t.copy_(wrap(array))


def reducible(array: np.ndarray) -> np.ndarray:
    """The array in a dtype in which MPI can reduce: float32 in place of 16 bits, integers in place of booleans."""
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else array


def average(array: np.ndarray, size: int) -> np.ndarray:
    """The sum of all processes as their mean."""
    return array / size if array.dtype.kind in "fc" else array // size


@quiet
def _reduced(t: Tensor, array: np.ndarray, op: ReduceOp, size: int) -> None:
    _write(t, average(array, size) if op is ReduceOp.AVG else array)


def _check_op(op: Any) -> None:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be one of {', '.join(map(str, ReduceOp))}, but it is {op!r}")


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace a tensor in all processes by its sum over them, or another reduction. With `async_op` there is a `Work` to wait for.

    Raises ValueError without a group, TypeError for what is no tensor.

    >>> import symgrad
    >>> from symgrad import distributed
    >>> distributed.init_process_group()
    >>> x = symgrad.tensor([1.0, 2.0])
    >>> distributed.all_reduce(x)  # of the only process
    >>> x
    tensor([1., 2.])
    >>> distributed.destroy_process_group()
    """
    _check_op(op)
    c, array = member_of(group).communicator, reducible(_array(tensor))
    return _result(Work(c.reduce(array, op), lambda: _reduced(tensor, array, op, c.size)), async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """Replace a tensor in the process of rank `dst` by its sum over all processes, or another reduction."""
    _check_op(op)
    c, array, root = member_of(group).communicator, reducible(_array(tensor)), rank_in(group, dst, group_dst)
    return _result(Work(c.reduce(array, op, root), lambda: _reduced(tensor, array, op, c.size) if c.rank == root else None), async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Replace a tensor in all processes by that of the process of rank `src`."""
    c, array = member_of(group).communicator, _array(tensor)
    return _result(Work(c.broadcast(array, rank_in(group, src, group_src)), lambda: _write(tensor, array)), async_op)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the tensors of all processes, of one shape, into a list of tensors, in all processes."""
    c, array = member_of(group).communicator, _array(tensor)
    out = _rows(tensor_list, c.size, array, "tensor_list")
    return _result(Work(c.gather(array, out), lambda: _write_all(tensor_list, out)), async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into one, concatenated or stacked along the first axis as its shape says, in all processes."""
    c, array = member_of(group).communicator, _array(input_tensor, "input_tensor")
    out = _array(output_tensor, "output_tensor")
    _check_sizes(out, c.size, array, "output tensor size must be equal to world_size times input tensor size")
    return _result(Work(c.gather(array, out.reshape(c.size, *array.shape)), lambda: _write(output_tensor, out)), async_op)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Write the tensors of all processes, of one shape, into a list of tensors that the process of rank `dst` gives."""
    c, array, root = member_of(group).communicator, _array(tensor), rank_in(group, dst, group_dst, 0)
    given = _only_in("gather: gather_list", gather_list, c.rank == root)
    out = None if given is None else _rows(given, c.size, array, "gather_list")
    return _result(Work(c.gather(array, out, root), lambda: None if given is None else _write_all(given, out)), async_op)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Write into the tensor of each process one of a list of tensors that the process of rank `src` gives."""
    c, array, root = member_of(group).communicator, _array(tensor), rank_in(group, src, group_src, 0)
    given = _only_in("scatter: scatter_list", scatter_list, c.rank == root)
    rows = None if given is None else _rows(given, c.size, array, "scatter_list")
    return _result(Work(c.scatter(rows, array, root), lambda: _write(tensor, array)), async_op)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:
    """Write into the tensor of each process that place of the lists of all processes, reduced."""
    _check_op(op)
    c = member_of(group).communicator
    rows = reducible(_rows(input_list, c.size, _array(output, "output"), "input_list"))
    return _result(Work(c.reduce(rows, op), lambda: _reduced(output, rows[c.rank], op, c.size)), async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Write into the tensor of each process its part, along the first axis, of the tensors of all processes, reduced."""
    _check_op(op)
    c, place, whole = member_of(group).communicator, _array(output, "output"), _array(input, "input")
    _check_sizes(whole, c.size, place, "input tensor must be the same size as output size times world size")
    rows = reducible(whole).reshape(c.size, *place.shape)
    return _result(Work(c.reduce(rows, op), lambda: _reduced(output, rows[c.rank], op, c.size)), async_op)


class _Requests:
    """Several requests as one, and the arrays that they send."""

    def __init__(self, requests: list[Any], sent: list[np.ndarray]):
        self.requests, self.sent = requests, sent

    def Wait(self) -> None:
        for request in self.requests:
            request.Wait()

    def Test(self) -> bool:
        return all([request.Test() for request in self.requests])


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False) -> Work | None:
    """Send tensor k of a list to process k, and write what process k sends into tensor k of another list, of its shape and dtype."""
    c = member_of(group).communicator
    given = [_array(t, "input_tensor_list") for t in input_tensor_list]
    found = [_array(t, "output_tensor_list") for t in output_tensor_list]
    if len(given) != c.size or len(found) != c.size:
        raise ValueError(f"all_to_all: the lists must hold one tensor for each of {c.size} processes; they hold {len(found)} and {len(given)}")
    own, other = found[c.rank], given[c.rank]
    if own.shape != other.shape or own.dtype != other.dtype:
        raise ValueError(f"all_to_all: from this process to itself goes {other.shape} of {other.dtype}, into {own.shape} of {own.dtype}")
    own[...] = other
    others = [k for k in range(c.size) if k != c.rank]
    requests = [*(c.receive(found[k], k, EXCHANGE) for k in others), *(c.send(given[k], k, EXCHANGE) for k in others)]
    return _result(Work(_Requests(requests, given), lambda: _write_all(output_tensor_list, found)), async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None, input_split_sizes: Sequence[int] | None = None,
                      group: Any = None, async_op: bool = False) -> Work | None:
    """Send part k of a tensor, along its first axis, to process k, and write what process k sends into part k of another; parts are equal by default.

    Raises ValueError for sizes that are not one for each process or do not add up.
    """
    size = member_of(group).size()
    for name, t, sizes in ("output", output, output_split_sizes), ("input", input, input_split_sizes):
        if not sizes and t.shape[0] % size or sizes and (len(sizes) != size or sum(sizes) != t.shape[0]):
            raise ValueError(f"all_to_all_single: {name} of length {t.shape[0]} is not divided among {size} processes by {sizes}")
    with no_grad():
        found, given = (t.split(list(sizes or [t.shape[0] // size] * size))
                        for t, sizes in ((output, output_split_sizes), (input, input_split_sizes)))
    return all_to_all(found, given, group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Wait until every process of the group has come here."""
    return _result(Work(member_of(group).communicator.barrier()), async_op)


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work:
    """Send a tensor to the process of rank `dst`, without waiting."""
    array = _array(tensor)
    return Work(member_of(group).communicator.send(array, rank_in(group, dst, group_dst), tag), lambda: array)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work:
    """Write into a tensor one of its shape and dtype that the process of rank `src`, or any, sends, without waiting."""
    array, source = _array(tensor), None if src is None and group_src is None else rank_in(group, src, group_src)
    return Work(member_of(group).communicator.receive(array, source, tag), lambda: _write(tensor, array))


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to the process of rank `dst`."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Write into a tensor one of its shape and dtype that the process of rank `src`, or any, sends; returns the rank of the sender."""
    found, array = member_of(group), _array(tensor)
    if src is not None or group_src is not None:
        irecv(tensor, src, group, tag, group_src).wait()
        return found.ranks[rank_in(found, src, group_src)]
    source = found.communicator.receive_from_any(array, tag)
    _write(tensor, array)
    return found.ranks[source]


def _rows(tensors: Sequence[Tensor], count: int, like: np.ndarray, name: str) -> np.ndarray:
    """The values of one tensor for each process, as the rows of an array."""
    arrays = [_array(t, name) for t in tensors]
    if len(arrays) != count or any(a.shape != like.shape or a.dtype != like.dtype for a in arrays):
        found = ", ".join(f"{a.shape} of {a.dtype}" for a in arrays)
        raise ValueError(f"{name} must hold one tensor for each of {count} processes, each of shape {like.shape} and {like.dtype}; it holds {found}")
    return np.stack(arrays)


def _write_all(tensors: Sequence[Tensor], rows: Any) -> None:
    for t, row in zip(tensors, rows):
        _write(t, row)


def _only_in(name: str, tensors: Any, here: bool) -> Any:
    """The list of tensors, which one process gives and the others do not."""
    if here != bool(tensors):
        raise ValueError(f"{name} is {'missing' if here else 'given'} in this process; the process of that rank gives it, and no other")
    return tensors if here else None


def _check_sizes(whole: np.ndarray, count: int, part: np.ndarray, message: str) -> None:
    if whole.size != count * part.size or whole.dtype != part.dtype:
        raise ValueError(f"{message}: {whole.shape} of {whole.dtype}, {count} processes, {part.shape} of {part.dtype}")


# Calls on objects of Python, which are pickled


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all processes into a list, in all processes."""
    object_list[:] = member_of(group).communicator.objects(obj) or []


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:
    """Write the objects of all processes into a list that the process of rank `dst` gives."""
    found = member_of(group)
    root = rank_in(found, dst, group_dst, 0)
    if found.rank() == root and object_gather_list is None:
        raise ValueError("gather_object: object_gather_list is missing in the process of that rank")
    objects = found.communicator.objects(obj, root)
    if object_gather_list is not None and objects is not None:
        object_gather_list[:] = objects


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
                     use_batch: bool = False) -> None:
    """Send a list of objects to the process of rank `dst`."""
    found = member_of(group)
    found.communicator.send_object(list(object_list), rank_in(found, dst, group_dst))


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
                     use_batch: bool = False) -> int:
    """Replace a list of objects by one that the process of rank `src`, or any, sends; returns the rank of the sender."""
    found = member_of(group)
    source, object_list[:] = found.communicator.receive_object(None if src is None and group_src is None else rank_in(found, src, group_src))
    return found.ranks[source]


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """Replace a list of objects in all processes by that of the process of rank `src`, which must have the same length."""
    found = member_of(group)
    object_list[:] = found.communicator.object_of(object_list, rank_in(found, src, group_src, 0), f" of {len(object_list)} objects")


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
                        group: Any = None, group_src: int | None = None) -> None:
    """Write into the first place of a list of each process one of the objects that the process of rank `src` gives."""
    found = member_of(group)
    scatter_object_output_list[0] = found.communicator.object_from(scatter_object_input_list, rank_in(found, src, group_src, 0))
