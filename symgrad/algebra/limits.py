"""Limits of time. What an answer depends on is counted in seconds of the processor, so that the load of the machine changes no answer."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["Budget", "OutOfTime", "clock", "limited", "stoppable"]


LONGEST = 10**6  # the longest time of a timer in seconds
WAITING = 5.0  # seconds in all, for one of the processor
clock = time.process_time


class Budget:
    """Seconds of the processor for calls of a user's function; one that waits has five times as many in all."""

    def __init__(self, seconds: float):
        self.seconds, self.start, self.begun = seconds, clock(), time.monotonic()

    def used(self, part: float = 1.0) -> bool:
        """Whether so large a part of it is over."""
        return clock() - self.start > part * self.seconds or self.spent > WAITING * part * self.seconds

    @property
    def spent(self) -> float:
        """The seconds since the start, by the clock on the wall."""
        return time.monotonic() - self.begun


class OutOfTime(BaseException):
    """The time for a proof is over. It is no Exception, so that a library's `except Exception` does not catch it."""


def stoppable() -> bool:
    """Whether `limited` can stop the current code: only in the main thread, and only on systems with timers."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the context after so many seconds of the processor.

    Without effect outside the main thread, where only sizes are limited. An outer limit still holds: the inner one ends no later, and the rest of
    the outer one continues after it.
    """
    if not stoppable() or seconds > LONGEST:
        yield
        return

    # A signal may also interrupt a callback of the garbage collector or a finally clause, where an exception would be lost or do harm:
    # only the algebra itself is interrupted, and the timer is set again until it is.
    def stop(signum: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("sympy", "mpmath"):
            raise OutOfTime

    outer, interval = signal.getitimer(signal.ITIMER_PROF)
    before = signal.signal(signal.SIGPROF, stop)
    start = clock()
    signal.setitimer(signal.ITIMER_PROF, max(min(seconds, outer or seconds), 0.001), 0.01)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, max(outer - (clock() - start), 0.001) if outer else 0.0, interval)
        signal.signal(signal.SIGPROF, before)
