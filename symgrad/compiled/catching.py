"""Exceptions that a function catches: a library may raise them for recorded values alone, and the function would take another branch."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from symgrad.compiled.code import reads
from symgrad.compiled.kinds import is_library
from symgrad.graph.modes import UNCHANGED
from symgrad.system.restoring import restored

__all__ = ["Raised", "watching_exceptions"]

Raised = list[tuple[str, str, int]]  # the type of an exception, the function that it reached, and the line


@functools.lru_cache(4096)
def _has_handler(code: types.CodeType, module: str) -> bool:
    return not is_library(module) and reads(code).handles


@contextlib.contextmanager
def watching_exceptions() -> Iterator[Raised]:
    """The exceptions of libraries that reach a user's function with a handler, in a `with` block; none under a debugger."""
    found: Raised = []

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "exception":
            kind, _, trace = argument
            while trace.tb_next is not None:
                trace = trace.tb_next
            if is_library(trace.tb_frame.f_globals.get("__name__") or "") and kind is not StopIteration:
                found.append((kind.__name__, frame.f_code.co_qualname, frame.f_lineno))
        return local

    def called(frame: types.FrameType, event: str, argument: Any) -> Any:
        if not _has_handler(frame.f_code, frame.f_globals.get("__name__") or ""):
            return None
        frame.f_trace_lines = False
        return local

    with restored(functools.partial(sys.settrace, None), functools.partial(sys.settrace, called)) if sys.gettrace() is None else UNCHANGED:
        yield found
