"""Algebra that is stopped when its time is over."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["OutOfTime", "limited", "stoppable"]


LONGEST = 10**6  # seconds that a timer is set for


class OutOfTime(BaseException):
    """The time for a proof is over. It is no Exception, so that no library's `except Exception` can swallow it."""


def stoppable() -> bool:
    """Whether `limited` can stop what runs here: only in the main thread, and only where the system has timers."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside once the time is over; without effect outside the main thread, where sizes are the only limit.

    An outer limit stays: the inner one ends no later, and what is left of the outer one goes on after it.
    """
    if not stoppable() or seconds > LONGEST:
        yield
        return

    # A signal may also interrupt a callback of the garbage collector or a finally clause, where an exception is lost or does harm:
    # only the algebra itself is stopped, and the alarm rings again until it is.
    def stop(signum: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("sympy", "mpmath"):
            raise OutOfTime

    outer, interval = signal.getitimer(signal.ITIMER_REAL)
    before = signal.signal(signal.SIGALRM, stop)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, max(min(seconds, outer or seconds), 0.001), 0.01)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - start), 0.001) if outer else 0.0, interval)
        signal.signal(signal.SIGALRM, before)
