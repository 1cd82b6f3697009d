"""The abort of a check after some seconds: it ends without a verdict, and says how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.algebra.limits import IN_CALL, OutOfTime, abort_after
from symgrad.reports.base import NOT_CHECKABLE


@contextmanager
def aborted(report: Any, seconds: float | None) -> Iterator[None]:
    """A context that some seconds of the processor end; the report is then not checkable. Without seconds it has no effect."""
    if seconds is None:
        yield
        return
    try:
        with abort_after(seconds):
            yield
    except OutOfTime as error:
        points = report.points
        report.verdict, report.counterexample = NOT_CHECKABLE, None
        report.reason = f"aborted after {seconds:g} seconds: {points.compared} of {points.planned} planned points were compared"
        if IN_CALL in error.args:
            report.reason += f", and a call of {report.function} had not returned"
