"""`BaseReport`, which has text, HTML, Markdown and JSON from the verdict and the parts of a class; and the verdicts with their exit codes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, ClassVar

import numpy as np

from symgrad.reports.parts import Line, Part, as_html, as_markdown, as_rich, as_text

__all__ = ["BaseReport", "exit_code", "IMPRECISE", "NOT_CHECKABLE", "plain", "POSITIVE", "PROVED", "REFUTED", "VERIFIED", "weakest"]

PROVED, VERIFIED, IMPRECISE, REFUTED, NOT_CHECKABLE = "proved", "verified", "imprecise", "refuted", "not checkable"

POSITIVE = frozenset({
    PROVED, VERIFIED,  # check, prove, identical, op_from_sympy
    "inside",  # kinks: the returned gradient is in the subdifferential
    "finite",  # explain_nan
    "accurate",  # accuracy
    "passed", "not applicable",  # check_op and its checks, gradcheck: a check that does not apply is no failure
})
STRENGTH = REFUTED, NOT_CHECKABLE, IMPRECISE, VERIFIED, PROVED


def weakest(verdicts: Iterable[str]) -> str:
    """The weakest of several verdicts about derivatives; "not checkable" for none.

    >>> weakest(["proved", "verified"]), weakest([])
    ('verified', 'not checkable')
    """
    return min(verdicts, key=STRENGTH.index, default=NOT_CHECKABLE)


def exit_code(verdicts: Iterable[str], strict: bool = False) -> int:
    """The exit code of a command: 1 if one is refuted, 2 if one could not be checked, 3 for lost digits where `strict`, else 0.

    >>> exit_code(["proved", "imprecise"]), exit_code(["imprecise"], strict=True), exit_code(["refuted", "not checkable"])
    (0, 3, 1)
    """
    words = set(verdicts)
    return 1 if REFUTED in words else 2 if words - POSITIVE - {IMPRECISE} else 3 if strict and IMPRECISE in words else 0


class BaseReport:
    """A report: a dataclass whose first field names what was examined, with a `verdict`, and often a `reason`, `notes` and `seconds`.

    It is true where the verdict is positive, so that `assert` accepts what was shown and nothing else. Not positive are "refuted", "imprecise",
    "not checkable", "outside", "undecided", "not finite" and "failed".

    A class says in `parts` what it shows besides the headline, the reason and the notes. JSON has its fields, without those that `HIDDEN`
    names and with the properties that `DERIVED` names.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ()
    HIDDEN: ClassVar[tuple[str, ...]] = ()

    verdict: Any  # a field of some reports, a property of others

    @property
    def ok(self) -> bool:
        """Whether the verdict is positive."""
        return self.verdict in POSITIVE

    def __bool__(self) -> bool:
        return self.ok

    @property
    def headline(self) -> str:
        """The first line: what was examined, and the verdict."""
        return f"{getattr(self, fields(self)[0].name)}: {self.verdict}"  # type: ignore[arg-type]  # reports are dataclasses

    def parts(self) -> Iterator[Part]:
        """What the report says between its reason and its notes, in order."""
        yield from ()

    def outline(self) -> Iterator[Part]:
        """All parts of the report after the headline, in order."""
        reason = getattr(self, "reason", "")
        if reason:
            yield Line(reason.partition("\n")[0] + ".")
        yield from self.parts()
        yield from (Line(f"note: {note}") for note in getattr(self, "notes", ()))

    def __str__(self) -> str:
        return "\n".join([self.headline, *(line for part in self.outline() for line in as_text(part))])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __rich__(self) -> Any:
        return as_rich(self.headline, self.verdict, self.outline())

    def _repr_markdown_(self) -> str:
        return "\n\n".join(["### " + as_markdown(Line(self.headline)), *map(as_markdown, self.outline())])

    def _repr_html_(self) -> str:
        return f'<div class="symgrad-report"><h4>{escape(self.headline)}</h4>{"".join(map(as_html, self.outline()))}</div>'

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data that JSON can hold; numbers that are not finite become "nan", "inf" and "-inf"."""
        found = {"schema": 1} | _fields(self)
        return found | {"verdict": self.verdict} | ({"seconds": round(found["seconds"], 4)} if "seconds" in found else {})

    def to_json(self, **options: Any) -> str:
        """`to_dict` as JSON; the options are those of `json.dumps`."""
        return json.dumps(self.to_dict(), **{"ensure_ascii": False, "allow_nan": False, **options})


def _fields(x: Any) -> dict[str, Any]:
    hidden = getattr(x, "HIDDEN", ())
    names = [f.name for f in fields(x) if f.name not in hidden]
    return {name: plain(getattr(x, name)) for name in (*names, *getattr(x, "DERIVED", ()))}


def plain(x: Any) -> Any:
    """Numbers, arrays, dataclasses and containers of them as JSON has them; what has no other form is text.

    >>> plain({"x": np.array([1.0, np.nan])})
    {'x': [1.0, 'nan']}
    """
    if isinstance(x, BaseReport):
        return x.to_dict()
    if is_dataclass(x) and not isinstance(x, type):
        return _fields(x)
    if isinstance(x, Mapping):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (np.ndarray, np.generic)):
        return plain(x.tolist()) if x.dtype.kind != "V" else plain(x.astype(np.float64).tolist())
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x if x is None or isinstance(x, (bool, int, float, str)) else str(x)
