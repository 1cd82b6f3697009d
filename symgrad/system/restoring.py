"""Setting state for a block, and restoring it whatever interrupts."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def restored(restore: Callable[[], Any], change: Callable[[], Any] | None = None) -> Iterator[None]:
    """Call `change` at the start of a block and `restore` at its end, and again if an interrupt came first.

    `restore` may be called twice, and when there is nothing to restore. What it restores is changed by `change` or inside of the block, not before:
    an interrupt would leave it changed. If an interrupt comes between the block and this function, its generator is finalized.
    """
    done = False
    try:
        try:
            if change is not None:
                change()
            yield
        finally:
            restore()
            done = True
    except BaseException:
        if not done:  # otherwise an interrupt would come into a second call, which nothing repeats
            restore()
        raise


def finished(work: Callable[[], Any]) -> None:
    """Call what must be done to its end, and again if an interrupt came first: it may be called when it was done in part."""
    try: work()  # noqa: E701  an interrupt at the first line of a function is inside its `try` only where they are one line
    except BaseException:
        work()
        raise


def changed(owner: Any, name: str, value: Any) -> contextlib.AbstractContextManager[None]:
    """Set an attribute for a `with` block."""
    return restored(functools.partial(setattr, owner, name, getattr(owner, name)), functools.partial(setattr, owner, name, value))


def states_restored(*states: tuple[Callable[[], Any], Callable[[Any], Any]]) -> contextlib.AbstractContextManager[None]:
    """Restore global states at the end of a block: pairs of a function that reads one and a function that sets it."""
    kept = [(put_back, read()) for read, put_back in states]

    def restore() -> None:
        for put_back, state in kept:
            put_back(state)

    return restored(restore)


def workprec(context: Any, bits: int) -> contextlib.AbstractContextManager[None]:
    """Set the precision of a context of mpmath or flint for a `with` block; mpmath's own function may leave it changed after an interrupt."""
    return changed(context, "prec", bits)


def workdps(context: Any, digits: int) -> contextlib.AbstractContextManager[None]:
    """Set the number of digits of a context of mpmath for a `with` block."""
    return restored(functools.partial(setattr, context, "prec", context.prec), functools.partial(setattr, context, "dps", digits))


def collection_paused() -> contextlib.AbstractContextManager[None]:
    """Pause the search for reference cycles, which takes up to half of the time while many objects are made that stay."""
    return restored(gc.enable if gc.isenabled() else gc.disable, gc.disable)
