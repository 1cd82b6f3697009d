"""Restoring state at the end of a block, whatever interrupts."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

__all__ = ["collection_paused", "restored"]


@contextlib.contextmanager
def restored(restore: Callable[[], None]) -> Iterator[None]:
    """Call `restore` at the end of a block, and again if an interrupt came first: it may be called when there is nothing to restore."""
    try:
        yield
        restore()
    except BaseException:
        restore()
        raise


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for reference cycles, which takes up to half of the time while many objects are made that stay."""
    with restored(gc.enable if gc.isenabled() else gc.disable):
        gc.disable()
        yield
