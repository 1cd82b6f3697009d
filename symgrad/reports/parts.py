"""The parts of reports (lines, formulas, code and tables) as text, for a terminal, as Markdown and HTML; and numbers as reports write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

__all__ = ["as_html", "as_markdown", "as_rich", "as_text", "at", "CodeBlock", "first_line", "Formula", "label", "Line", "message_of", "number",
           "pair", "Part", "short", "Table", "ulp_text"]

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
