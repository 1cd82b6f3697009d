"""Time limits. Limits that affect a result are measured in processor time, so that results do not depend on the load of the machine."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from symgrad.system.restoring import restored

LONGEST = 10**6  # the longest time of a timer in seconds
WAITING = 5.0  # the largest ratio of elapsed time to processor time
clock = time.process_time


class Budget:
    """A budget of processor time for calls of a user's function; the elapsed time may be five times as long."""

    def __init__(self, seconds: float):
        self.seconds, self.start, self.begun = seconds, clock(), time.monotonic()

    def used(self, part: float = 1.0) -> bool:
        """Whether more than a part of the budget is used."""
        return clock() - self.start > part * self.seconds or self.spent > WAITING * part * self.seconds

    @property
    def spent(self) -> float:
        """The elapsed seconds since the start."""
        return time.monotonic() - self.begun


class OutOfTime(BaseException):
    """The error for the end of a time limit. It is not an Exception, so that `except Exception` in a library does not catch it."""


def stoppable() -> bool:
    """Whether `limited` can stop the current code: only in the main thread, and only on systems with timers."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the context after some seconds of processor time.

    There is no effect outside the main thread, where only sizes are limited. An outer limit remains valid: the inner one ends no later, and the
    outer one continues after it.
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
    before, start = signal.getsignal(signal.SIGPROF), clock()

    def restore() -> None:
        signal.setitimer(signal.ITIMER_PROF, max(outer - (clock() - start), 0.001) if outer else 0.0, interval)
        signal.signal(signal.SIGPROF, before)

    with restored(restore):
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, max(min(seconds, outer or seconds), 0.001), 0.01)
        yield
