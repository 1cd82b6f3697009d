"""A time limit for algebra."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["OutOfTime", "limited", "stoppable"]


LONGEST = 10**6  # the longest time of a timer in seconds


class OutOfTime(BaseException):
    """The time for a proof is over. It is no Exception, so that a library's `except Exception` does not catch it."""


def stoppable() -> bool:
    """Whether `limited` can stop the current code: only in the main thread, and only on systems with timers."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the context at the end of the time; without effect outside the main thread, where only sizes are limited.

    An outer limit still holds: the inner one ends no later, and the rest of the outer one continues after it.
    """
    if not stoppable() or seconds > LONGEST:
        yield
        return

    # A signal may also interrupt a callback of the garbage collector or a finally clause, where an exception would be lost or do harm:
    # only the algebra itself is interrupted, and the timer is set again until it is.
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
