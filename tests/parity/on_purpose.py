"""Where an answer differs from torch's on purpose: the rows of `on_purpose.txt`, each with a check of the answer that is intended instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from . import intended as answers
from . import readings
from .compare import Different, compare
from .database import RANDOM, UNSET, Call, pair
from .intended import Functions


class Row(NamedTuple):
    """A difference: the names of functions and what differs (regular expressions of the whole text), why, and a check of the intended answer."""

    names: str
    what: str
    reason: str
    intended: Callable[[Call, Functions], None]
    drawn: bool  # of drawn calls only, which have several mistakes at once


def rows() -> Iterator[Row]:
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            check, names, what, reason = re.fullmatch(r"(.+?): (.*) -> (.*)  # (.*)", line).groups()
            function = check.rstrip("*")
            yield Row(names.replace("{random}", "|".join(map(re.escape, RANDOM - {"lobpcg"}))), what, reason,
                      getattr(readings if hasattr(readings, function) else answers, function), check.endswith("*"))


TABLE = list(rows())


def intended(name: str, difference: Different, call: Call, functions: Functions, drawn: bool = False) -> Row:
    """The row of the table for a difference, after a check of the intended answer. Raises the difference if there is none."""
    for row in TABLE:
        if row.drawn <= drawn and re.fullmatch(row.names, name) and re.fullmatch(row.what, str(difference), re.DOTALL):
            try:
                row.intended(call, functions)
            except AssertionError as wrong:
                raise difference from wrong
            return row
    raise difference


def draws(name: str, call: Call) -> Any:
    """Whether this call draws numbers: an attention that drops weights, or a pool without samples."""
    return call.kwargs.get("dropout_p") or name.startswith("nn.functional.fractional") and len(call.args) < 6 or (
        name == "nn.functional.multi_head_attention_forward" and any(call.args[10:11]) and call.kwargs.get("training", True))


def compared(name: str, call: Call, functions: Functions | None = None, drawn: bool = False, **options: Any) -> Any:
    """The comparison of one call; the intended answer stands in the table where it differs."""
    functions = functions or pair(name)
    try:
        return compare(call, functions, value=name.removesuffix("_") not in RANDOM | UNSET and not draws(name, call), **options)
    except Different as difference:
        difference.add_note(f"of {name}{call}")
        return intended(name, difference, call, functions, drawn)
