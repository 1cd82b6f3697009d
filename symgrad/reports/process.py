"""The process of the command line: its descriptors, interrupts and exit code. This module is imported before all others, and imports none of them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

SCRIPTS = "symgrad", "symgrad.exe", "symgrad-script.py"
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def begin() -> None:
    """Prepare the process, if `symgrad` or `python -m symgrad` started it: an interrupt ends it while modules are imported."""
    program = os.path.basename(sys.argv[0]).lower()
    modules = [after for option, after in itertools.pairwise(sys.orig_argv) if re.fullmatch("-[A-Za-z]*m", option)]
    if program == "-m" and modules[:1] == ["symgrad"] or program in SCRIPTS and sys.argv[0] in sys.orig_argv:  # not in processes of it
        with contextlib.suppress(OSError):
            while (free := os.open(os.devnull, os.O_RDWR)) <= 2:  # a file that is opened later would get a standard descriptor that is closed
                pass
            os.close(free)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            _end_at_interrupts()


def as_process(run: Callable[[], int]) -> int:
    """Run the program of this process and return its exit code; after it, an interrupt ends the process at once."""
    atexit.register(_drop)  # before the program registers any: the last one registered runs first
    try:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
        _end_at_interrupts()
    except KeyboardInterrupt:
        code = INTERRUPTED
        _end_at_interrupts()
    return code


def _end_at_interrupts() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)


def _end(*args: Any) -> None:
    """End the process at once, as no text waits to be written."""
    with contextlib.suppress(OSError):
        os.write(2, b"symgrad: interrupted\n")
    os._exit(INTERRUPTED)


def _drop() -> None:
    """Drop what a stream does not take, which would change the exit code to 120."""
    streams: list[Any] = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    for stream in streams:
        try:
            if stream is not None:
                stream.flush()
        except (AttributeError, OSError, ValueError):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # the buffered rest is flushed there
