"""The parts of reports (lines, formulas, code and tables), written as plain text, for a terminal, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from symgrad.reports.numbers import short

__all__ = ["CodeBlock", "Formula", "Line", "Part", "Table", "as_html", "as_markdown", "as_rich", "as_text"]

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
