"""`Shown`, the base class of reports: their parts, and these written as plain text, for a terminal, as Markdown and as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED

__all__ = ["Code", "Formula", "Line", "Parts", "Shown", "Table", "as_html", "as_markdown", "as_rich", "as_text", "number", "short"]

WIDE = 72  # characters of a formula that a line shows
STYLES = {PROVED: "bold green", "verified": "green", "passed": "green", "failed": "bold red", REFUTED: "bold red", NOT_CHECKABLE: "yellow"}


class Line(NamedTuple):
    """A line of text."""

    text: str


class Formula(NamedTuple):
    """An equation: its left side, and the SymPy expression on the right."""

    left: str
    right: Any


class Code(NamedTuple):
    """Lines to be copied as they are."""

    text: str


class Table(NamedTuple):
    """A table: its title, its headers and its rows."""

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


Parts = Iterator[Line | Code | Formula | Table]


class Shown:
    """A report: a class that gives its parts in `outline()` and is written from these in every form."""

    def outline(self) -> Parts:
        """The parts of the report, in order; the first is a line "name: verdict"."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __rich__(self) -> Any:
        return as_rich(self)

    def _repr_markdown_(self) -> str:
        return as_markdown(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def number(x: Any) -> str:
    """A number with ten digits, an array in brackets."""
    if isinstance(x, np.ndarray) and x.ndim:
        return np.array2string(x, precision=6, threshold=8, separator=", ", max_line_width=10_000).replace("\n", "")
    return f"{float(x):.10g}"


def short(e: Any) -> str:
    """An expression as text that fits in a line."""
    text = str(e)
    return text if len(text) <= WIDE else text[:WIDE - 2].rstrip() + " …"


def as_text(report: Shown) -> str:
    """The report as plain text."""
    out: list[str] = []
    for part in report.outline():
        if isinstance(part, Line):
            out.append(part.text)
        elif isinstance(part, Formula):
            out.append(f"{part.left} = {short(part.right)}")
        elif isinstance(part, Code):
            out += [f"    {line}".rstrip() for line in part.text.splitlines()]
        else:
            out += ["", part.title, *_columns([part.headers, *part.rows])]
    return "\n".join(out)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths))).rstrip() for row in rows if any(row)]


def as_rich(report: Shown) -> Any:
    """The report for a terminal, as a rich renderable."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table as RichTable
    from rich.text import Text

    parts: list[Any] = []
    first, *others = report.outline()
    name, _, verdict = first.text.rpartition(": ")  # type: ignore[union-attr]
    style = STYLES.get(verdict, "cyan")
    for part in others:
        if isinstance(part, Line):
            parts.append(Text(part.text, style="yellow" if part.text.startswith("note:") else ""))
        elif isinstance(part, Formula):
            parts.append(Text.assemble((part.left, "cyan"), " = ", short(part.right)))
        elif isinstance(part, Code):
            parts.append(Text("\n".join(f"    {line}" for line in part.text.splitlines()), style="dim"))
        else:
            table = RichTable(title=part.title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
            for k, header in enumerate(part.headers):
                table.add_column(header, overflow="fold", style="cyan" if k == 0 else None)
            for row in part.rows:
                table.add_row(*map(Text, row))
            parts += [Text(""), table]
    return Panel(Group(*parts), title=Text.assemble(f"{name}: " if name else "", (verdict, style)), border_style=style, title_align="left")


def _latex(part: Formula) -> str:
    import sympy

    return f"{sympy.latex(sympy.Symbol(part.left))} = {sympy.latex(part.right)}" if len(str(part.right)) <= 400 else ""


def as_markdown(report: Shown) -> str:
    """The report as Markdown with LaTeX formulas."""
    out: list[str] = []
    for k, part in enumerate(report.outline()):
        if isinstance(part, Line):
            out.append(f"### {_escaped(part.text)}" if k == 0 else _escaped(part.text))
        elif isinstance(part, Formula):
            latex = _latex(part)
            out.append(f"$${latex}$$" if latex else f"`{part.left} = {short(part.right)}`")
        elif isinstance(part, Code):
            out.append(f"```python\n{part.text}\n```")
        else:
            rows = [part.headers, ("---",) * len(part.headers), *part.rows]
            lines = ("| " + " | ".join(c if set(c) == {"-"} else _escaped(c) for c in row) + " |" for row in rows)
            out.append(f"**{part.title}**\n\n" + "\n".join(lines))
    return "\n\n".join(out)


def _escaped(text: str) -> str:
    for sign in "\\`*_|<>$":
        text = text.replace(sign, "\\" + sign)
    return text


def as_html(report: Shown) -> str:
    """The report as HTML; formulas are LaTeX that a notebook typesets."""
    out = ['<div class="symgrad-report">']
    for k, part in enumerate(report.outline()):
        if isinstance(part, Line):
            tag = "h4" if k == 0 else "p"
            out.append(f"<{tag}>{html.escape(part.text)}</{tag}>")
        elif isinstance(part, Formula):
            latex = _latex(part)
            code = html.escape(f"{part.left} = {short(part.right)}")
            out.append(f"<p>$\\displaystyle {html.escape(latex)}$</p>" if latex else f"<p><code>{code}</code></p>")
        elif isinstance(part, Code):
            out.append(f"<pre><code>{html.escape(part.text)}</code></pre>")
        else:
            cells = "".join(f"<th>{html.escape(h)}</th>" for h in part.headers)
            rows = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in part.rows)
            out.append(f"<table><caption>{html.escape(part.title)}</caption><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>")
    return "".join([*out, "</div>"])
