"""Collective calls on objects of Python, which are pickled."""

from __future__ import annotations

from typing import Any

from symgrad.distributed.groups import member_of, rank_in

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list", "send_object_list"]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all processes into a list, in all processes."""
    object_list[:] = member_of(group).communicator.objects(obj) or []


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:
    """Write the objects of all processes into a list that the process of rank `dst` gives."""
    found = member_of(group)
    root = rank_in(found, dst, group_dst, 0)
    if found.rank() == root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
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
