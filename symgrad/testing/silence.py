"""The context in which an op under test is called, and a call in a separate thread."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from symgrad.autograd import is_grad_enabled, set_grad_enabled
from symgrad.dtypes.dtype import get_default_dtype, set_default_dtype
from symgrad.engine.tasks import with_modes_of_caller
from symgrad.system.restoring import restored

__all__ = ["in_a_thread", "silence"]


@contextmanager
def silence() -> Iterator[None]:
    """A context without floating-point errors and warnings, which restores the default dtype and the grad mode that the op may have changed."""
    dtype, recording, errors = get_default_dtype(), is_grad_enabled(), np.geterr()

    def restore() -> None:
        set_default_dtype(dtype)
        set_grad_enabled(recording)
        np.seterr(**errors)

    with restored(restore), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def in_a_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that is called in a thread of its own, in the modes and the context of the caller."""
    found: list[Any] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with np.errstate(all="ignore"):
                found.append(function())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=with_modes_of_caller(work))
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
