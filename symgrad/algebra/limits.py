"""The abort after a time, the only use of a clock for anything but a printed duration: what is aborted has no verdict."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from symgrad.system.restoring import restored

LIBRARIES = frozenset(("symgrad", "numpy", "torch", "jax", "jaxlib", "autograd", "importlib", "contextlib", "threading", "warnings"))
LONGEST = 10**6  # the longest time of a timer in seconds
clock = time.process_time

_calling: contextvars.ContextVar[bool] = contextvars.ContextVar("_calling", default=False)
_end: contextvars.ContextVar[float | None] = contextvars.ContextVar("_end", default=None)
IN_CALL = "a call of the function had not returned"


class OutOfTime(BaseException):
    """The error for the end of a time limit. It is not an Exception, so that `except Exception` in a library does not catch it."""


@contextlib.contextmanager
def _interrupting(seconds: float) -> Iterator[None]:
    """Interrupt the algebra after some seconds of processor time; an outer limit remains valid, and continues after the inner one.

    There is no effect outside the main thread and on systems without timers, where the computation ends at its next `poll`.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer") or seconds > LONGEST:
        yield
        return

    # A signal may also interrupt a callback of the garbage collector or a finally clause, where an exception would be lost or do harm:
    # only the algebra itself is interrupted, and the timer is set again until it is.
    def stop(signum: int, frame: FrameType | None) -> None:
        if _is_lost_in(frame):
            return
        package = "symgrad" if frame is None else frame.f_globals.get("__name__", "").partition(".")[0]
        if package in ("sympy", "mpmath") or _calling.get() and package not in LIBRARIES:
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


def _is_lost_in(frame: FrameType | None) -> bool:
    """Whether an exception would only be printed: inside a callback of the garbage collector, of whatever package, or a finalizer."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None and frame.f_code.co_name != "__del__" and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def abort_after(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTime inside the context after some seconds of processor time; never for None.

    It is a guard against what never ends, not a budget: what is aborted has no verdict. SymPy, mpmath and, in `calling`, the user's own code are
    interrupted in the main thread; any other code ends where it calls `poll`.
    """
    if seconds is None:
        yield
        return
    outer = _end.get()
    end = clock() + seconds
    with restored(lambda: _end.set(outer), lambda: _end.set(end if outer is None else min(end, outer))), _interrupting(seconds):
        yield


@contextlib.contextmanager
def calling() -> Iterator[None]:
    """A call of a user's function, which may never return: `abort_after` interrupts its own lines, too, and the error has a note that it did."""
    before = _calling.get()
    with restored(lambda: _calling.set(before), lambda: _calling.set(True)):
        try:
            yield
        except OutOfTime as error:
            error.args = (IN_CALL,)
            raise


def poll() -> None:
    """Raise OutOfTime if the time of `abort_after` is over."""
    end = _end.get()
    if end is not None and clock() > end:
        raise OutOfTime
