"""Locks of the whole library, and the cores on which its process may run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[[], object])


def after_fork(call: Function) -> Function:
    """Call a function in each process that is forked, where the system has forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
    return call


def reentrant_lock() -> Any:
    """A lock that a forked process finds free, though a thread that is not there any more may have held it."""
    lock: Any = threading.RLock()
    after_fork(lock._at_fork_reinit)
    return lock


def cores() -> int:
    """The number of cores on which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
