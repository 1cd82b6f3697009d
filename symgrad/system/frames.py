"""The user's lines: the nearest frame outside of this package, or of NumPy, SciPy and the standard library as well."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType
from typing import Any

import numpy as np

PACKAGE = os.path.abspath(__file__).removesuffix(os.path.join("system", "frames.py"))  # with a trailing separator
LIBRARIES = (PACKAGE, *(os.path.join(os.path.dirname(os.path.dirname(np.__file__)), name) + os.sep for name in ("numpy", "scipy")))
STANDARD = os.path.dirname(os.__file__) + os.sep
INSTALLED = ("site-packages", "dist-packages")  # which may lie in the directory of the standard library


def user_frame(depth: int) -> FrameType:
    """The nearest frame outside of this package, from `depth` frames above the caller on."""
    frame: Any = sys._getframe(depth + 1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def outer_frame(depth: int) -> FrameType:
    """As `user_frame`, also outside of NumPy, SciPy and the standard library, which call the functions that a user gives them."""
    frame: Any = sys._getframe(depth + 1)
    while is_of_library(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_of_library(path: str) -> bool:
    """Whether a file is of this package, NumPy, SciPy or the standard library."""
    return path.startswith(LIBRARIES) or path.startswith("<frozen") or path.startswith(STANDARD) and not any([part in path for part in INSTALLED])


def line_of(frame: FrameType) -> str:
    """The file, the number and the text of the line that a frame is at."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" + (f": {text}" if text else "")
