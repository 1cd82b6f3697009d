"""`BaseReport`: a class states its verdict and its parts (lines, formulas, code, tables), and has text, HTML, Markdown and JSON from these."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, ClassVar, NamedTuple

import numpy as np

WIDE = 72  # characters of a formula that a line shows


def number(x: Any) -> str:
    """A number with ten digits, an array in brackets."""
    if isinstance(x, np.ndarray) and x.ndim:
        return np.array2string(x + 0.0, precision=6, threshold=8, separator=", ", max_line_width=10_000).replace("\n", "")
    return f"{float(x) + 0.0:.10g}"


def pair(value: float, truth: float) -> tuple[str, str]:
    """Two numbers with eight digits, or with as many as it takes to see that they differ.

    >>> pair(1.0, 1.5), pair(1.0, 1.0 + 1e-14)
    (('1', '1.5'), ('1', '1.00000000000001'))
    """
    both = [(f"{value + 0.0:.{digits}g}", f"{truth + 0.0:.{digits}g}") for digits in range(8, 18)]
    return next((texts for texts in both if texts[0] != texts[1]), both[0])


def at(point: Mapping[str, Any], shown: int = 8) -> str:
    """A point in one line, with its first coordinates."""
    texts = [f"{name} = {number(np.asarray(v))}" for name, v in list(point.items())[:shown]]
    return ", ".join(texts + ["..."] * (len(point) > shown))


def ulp_text(ulp: float) -> str:
    """An error in units in the last place, with three digits.

    >>> ulp_text(1e-20), ulp_text(0.5), ulp_text(3.1e6), ulp_text(float("inf"))
    ('0', '0.5', '3.1e+06', 'not finite')
    """
    if not np.isfinite(ulp):
        return "not finite"
    return "0" if ulp < 0.005 else f"{ulp:.0f}" if 100 <= ulp < 1e5 else f"{ulp:.3g}"


def short(e: Any) -> str:
    """An expression as text that fits in a line."""
    return _cut(str(e), WIDE)


def first_line(text: Any, longest: int = 120) -> str:
    """The first line of a text or of an error's message, cut where it is very long."""
    return _cut(str(text).strip().partition("\n")[0], longest)


def message_of(error: BaseException) -> str:
    """The type and the message of an error; the type alone if the message raises an exception itself."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException:
        return type(error).__name__


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest - 2].rstrip() + " …"


def label(order: int, index: Sequence[int], names: Sequence[str], directional: bool = False) -> str:
    """A derivative's name in plain letters, such as f, df/dx or d2f/dx dy.

    >>> label(2, (0, 1), ["x", "y"])
    'd2f/dx dy'
    """
    if order == 0:
        return "f"
    by = " ".join("d" + names[i] for i in index) + (" du" * (order - 1) if directional else "")
    return f"d{order if order > 1 else ''}f/{by}"


STYLES = dict.fromkeys(("proved", "verified", "passed", "accurate", "inside", "finite"), "bold green") | dict.fromkeys(
    ("failed", "refuted", "outside", "not finite"), "bold red") | dict.fromkeys(("imprecise", "undecided", "not checkable"), "yellow")


class Line(NamedTuple):
    """A line of text."""

    text: str


class Formula(NamedTuple):
    """An equation: its left side, and the SymPy expression on the right."""

    left: str
    right: Any


class CodeBlock(NamedTuple):
    """Lines to be copied as they are."""

    text: str


class Table(NamedTuple):
    """A table: its title, its headers and its rows."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


Part = Line | Formula | CodeBlock | Table


def as_text(part: Part) -> list[str]:
    """A part as lines of plain text."""
    match part:
        case Line(text):
            return [text]
        case Formula(left, right):
            return [f"{left} = {short(right)}"]
        case CodeBlock(text):
            return [f"    {line}".rstrip() for line in text.splitlines()]
        case Table(title, headers, rows):
            widths = [max(map(len, column)) for column in zip(headers, *rows)]
            return ["", title, *(("  " + "  ".join(map(str.ljust, row, widths))).rstrip() for row in (headers, *rows) if any(row))]


def as_rich(headline: str, verdict: str, parts: Iterable[Part]) -> Any:
    """A report for a terminal, as a rich renderable."""
    from rich.console import Group  # only terminals need it
    from rich.panel import Panel
    from rich.table import Table as RichTable
    from rich.text import Text

    shown: list[Any] = []
    for part in parts:
        if isinstance(part, Table):
            table = RichTable(title=part.title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
            for k, header in enumerate(part.headers):
                table.add_column(header, overflow="fold", style=None if k else "cyan")
            for row in part.rows:
                table.add_row(*map(Text, row))
            shown += [Text(""), table]
        else:
            style = "dim" if isinstance(part, CodeBlock) else "yellow" if part[0].startswith("note:") else ""
            shown.append(Text("\n".join(as_text(part)), style=style))
    style, (name, colon, word) = STYLES.get(verdict, "cyan"), headline.rpartition(": ")
    return Panel(Group(*shown), title=Text.assemble(name + colon, (word, style)), border_style=style, title_align="left")


def _latex(part: Formula) -> str:
    import sympy  # takes a third of a second to import

    return f"{sympy.latex(sympy.Symbol(part.left))} = {sympy.latex(part.right)}" if len(str(part.right)) <= 400 else ""


def as_markdown(part: Part) -> str:
    """A part as Markdown; short formulas are LaTeX."""
    match part:
        case Line(text):
            return _escaped(text)
        case Formula():
            latex = _latex(part)
            return f"$${latex}$$" if latex else f"`{as_text(part)[0]}`"
        case CodeBlock(text):
            return f"```python\n{text}\n```"
        case Table(title, headers, rows):
            lines = [map(_escaped, headers), ["---"] * len(headers), *(map(_escaped, row) for row in rows)]
            return f"**{title}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escaped(text: str) -> str:
    for sign in "\\`*_|<>$":
        text = text.replace(sign, "\\" + sign)
    return text


def as_html(part: Part) -> str:
    """A part as HTML; short formulas are LaTeX that a notebook typesets."""
    match part:
        case Line(text):
            return f"<p>{escape(text)}</p>"
        case Formula():
            latex = _latex(part)
            return f"<p>$\\displaystyle {escape(latex)}$</p>" if latex else f"<p><code>{escape(as_text(part)[0])}</code></p>"
        case CodeBlock(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Table(title, headers, rows):
            head, *body = ("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
                           for tag, row in (("th", headers), *(("td", row) for row in rows)))
            return f"<table><caption>{escape(title)}</caption><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


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
