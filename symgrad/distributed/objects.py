"""Collective calls on objects of Python, which are pickled."""

from __future__ import annotations

from typing import Any

from symgrad.distributed.groups import get_group_rank, member_of

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list", "send_object_list"]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all processes into a list, in all processes."""
    object_list[:] = member_of(group).communicator.objects(obj) or []


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None) -> None:
    """Write the objects of all processes into a list that the process of rank `dst` gives."""
    found = member_of(group)
    root = get_group_rank(found, dst)
    if found.rank() == root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    objects = found.communicator.objects(obj, root)
    if object_gather_list is not None and objects is not None:
        object_gather_list[:] = objects


def send_object_list(object_list: list[Any], dst: int, group: Any = None, device: Any = None) -> None:
    """Send a list of objects to the process of rank `dst`."""
    found = member_of(group)
    found.communicator.send_object(list(object_list), get_group_rank(found, dst))


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None) -> int:
    """Replace a list of objects by one that the process of rank `src`, or any, sends; returns the rank of the sender."""
    found = member_of(group)
    source, object_list[:] = found.communicator.receive_object(None if src is None else get_group_rank(found, src))
    return found.ranks[source]


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replace a list of objects in all processes by that of the process of rank `src`."""
    found = member_of(group)
    object_list[:] = found.communicator.object_of(object_list, get_group_rank(found, src))


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0,
                        group: Any = None) -> None:
    """Write into the first place of a list of each process one of the objects that the process of rank `src` gives."""
    found = member_of(group)
    scatter_object_output_list[0] = found.communicator.object_from(scatter_object_input_list, get_group_rank(found, src))
