"""The progress of a check."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from symgrad.reports.streams import Output

__all__ = ["progress_bar"]

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
