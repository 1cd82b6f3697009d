"""Streams of text that may be missing, closed, full, or a pipe without a reader; and the progress that is shown on one."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

CLOSED = {errno.EPIPE, errno.ESHUTDOWN, errno.EBADF} | ({errno.EINVAL} if os.name == "nt" else set())  # nobody reads what would be written


class Output:
    """A stream that can always be written to: what the stream below does not take is dropped.

    The stream may be None or closed, as in a daemon. `error` is the first reason why it took no text, unless nobody would read it.
    """

    def __init__(self, stream: Any):
        self.stream, self.stuck = stream, False
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; characters that the encoding of the stream lacks become question marks."""
        if self.stream is not None:
            with self._dropping():
                try:
                    self.stream.write(text)
                except UnicodeEncodeError as lacking:
                    self.stream.write(text.encode(lacking.encoding, "replace").decode(lacking.encoding))
        return len(text)

    def flush(self) -> None:
        if self.stream is not None:
            with self._dropping():
                self.stream.flush()

    def descriptor(self) -> int | None:
        """The descriptor of the stream, if it has one."""
        try:
            return self.stream.fileno()
        except (AttributeError, OSError, ValueError):
            return None

    def unblock(self) -> None:
        """Discard what waits to be written, and all that follows, if a write was interrupted: the next one would wait for the reader, too."""
        descriptor = self.descriptor() if self.stuck else None
        if descriptor is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)

    def isatty(self) -> bool:
        try:
            return bool(self.stream.isatty())
        except (AttributeError, OSError, ValueError):
            return False

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in CLOSED and self.error is None:
                self.error = error
        except ValueError:  # the stream is closed
            pass
        except KeyboardInterrupt:
            self.stuck = True
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def reserved(out: Output, lasting: bool) -> Iterator[None]:
    """Reserve standard output for what is written to `out`: all that is written to `sys.stdout`, or to its descriptor, goes to standard error.

    `lasting` keeps the descriptor reserved after the block, for threads, `atexit` functions and buffers of C that write later.
    """
    stream, kept = out.stream, None
    out.flush()
    with contextlib.suppress(OSError):  # a process may have no descriptor 1, or no 2
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        if kept is not None and out.descriptor() == 1:
            out.stream = open(kept, "w", encoding=stream.encoding, errors="replace", closefd=False)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        out.flush()
        if out.stream is not stream:
            with contextlib.suppress(OSError):
                out.stream.close()
            out.stream = stream
        if kept is not None and not lasting:
            for each in (stream, sys.__stdout__):
                Output(each).flush()
            os.dup2(kept, 1)
        if kept is not None:
            os.close(kept)


Progress = Callable[[str, int, int], None]


@contextlib.contextmanager
def progress_bar(wanted: Any, name: str) -> Iterator[Progress]:
    """A function that reports progress: the user's own, a bar on standard error (True, or None on a terminal), or one that does nothing."""
    if callable(wanted):
        yield wanted
    elif wanted or wanted is None and Output(sys.stderr).isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        file: Any = Output(sys.stderr)
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn()
        with Progress(*columns, console=Console(file=file), transient=True) as bar:
            task = bar.add_task(f"{name}: starting", total=None)
            yield lambda what, done, total: bar.update(task, description=f"{name}: {what}", completed=done, total=total)
    else:
        yield lambda what, done, total: None
