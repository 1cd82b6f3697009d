"""A report as plain text, for a terminal, and for a notebook: one outline, four ways to write it."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from symgrad.reports.labels import label
from symgrad.reports.report import Report
from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED

__all__ = ["Code", "Formula", "Line", "Outlined", "Parts", "Table", "as_html", "as_markdown", "as_rich", "as_text", "outline"]

WIDE = 72  # characters of a formula that a line shows
ROWS = 12  # rows of a table, or lines of a let-form, that are shown
ENCLOSED = 24  # enclosures that are shown
MATRIX = 6  # inputs up to which the Hessian is shown as a matrix
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


class Outlined(Protocol):
    """What can be written in the four ways: whatever says its parts in order, the first of them a line "name: verdict"."""

    def outline(self) -> Parts:
        """The parts, in order."""


def number(x: Any) -> str:
    """A number with ten digits, an array in brackets."""
    if isinstance(x, np.ndarray) and x.ndim:
        return np.array2string(x, precision=6, threshold=8, separator=", ", max_line_width=10_000).replace("\n", "")
    return f"{float(x):.10g}"


def short(e: Any) -> str:
    """An expression as text that fits in a line."""
    text = str(e)
    return text if len(text) <= WIDE else text[:WIDE - 2].rstrip() + " …"


def outline(report: Report) -> Parts:
    """What the report of a check says, in order."""
    yield Line(f"{report.function}: {report.verdict}")
    if report.reason:
        yield Line(report.reason + ".")
    if report.inputs:
        yield Line("at " + ", ".join(f"{name} = {number(np.asarray(v))}" for name, v in report.inputs.items()))
    if report.counterexample is not None:
        yield from _refutation(report)
    yield from _formula(report)
    if report.value is not None:
        yield from _derivatives(report)
    if report.enclosures:
        yield from _enclosures(report)
    if report.errors:
        yield Table("Largest error of the floats (ULP of the true value)", ("order", "error", "bound", "of", "condition", ""), [
            (str(e.order), f"{e.ulp:.3g}", f"{e.bound:.3g}", e.where, f"{e.condition:.3g}", "" if e.within else "accuracy is lost")
            for e in report.errors])
        p = report.points
        left_out = [f"{count} {what}" for count, what in ((p.outside, "outside the domain"), (p.singular, "without a derivative"),
                                                          (p.kinks, "on a kink")) if count]
        yield Line(f"compared at {p.random} random and {p.special} special points" + (f"; left out: {', '.join(left_out)}" if left_out else ""))
    for note in report.notes:
        yield Line(f"note: {note}")


def _refutation(report: Report) -> Parts:
    found = report.counterexample
    assert found is not None
    yield Table("Counterexample", ("at", "derivative", "by the rules", "by SymPy"), [
        (", ".join(f"{name} = {number(np.asarray(v))}" for name, v in found.point.items()), found.where,
         f"{found.rule:.15g}", f"{found.truth:.15g}")])
    if found.difference is not None:
        yield Formula("difference", found.difference)


def _enclosures(report: Report) -> Parts:
    rows = [(e.where, e.interval, f"{e.value:.17g}", "inside" if e.inside else f"{e.ulp:.3g} ULP away", str(e.bits), "" if e.narrow else "wide")
            for e in report.enclosures[:ENCLOSED]]
    if len(report.enclosures) > ENCLOSED:
        rows.append((f"... {len(report.enclosures) - ENCLOSED} more; all are in report.enclosures", "", "", "", "", ""))
    yield Table("Enclosures (certain to hold the true number)", ("", "interval", "float", "", "bits", ""), rows)


def _formula(report: Report) -> Parts:
    if report.shape is not None:
        yield Line(f"f is the sum of the result (shape {list(report.shape)}), weighted by 1, 2, 3, ...")
    if report.formula is not None:
        yield Formula("f", report.formula)
    elif report.assignments:
        lines = report.assignments
        shown = lines if len(lines) <= ROWS else [*lines[:ROWS // 2], *lines[-ROWS // 2:]]
        for i, (symbol, e) in enumerate(shown):
            if len(lines) > ROWS and i == ROWS // 2:
                yield Line(f"... {len(lines) - ROWS} more; all are in report.assignments ...")
            yield Formula(str(symbol), e)
        yield Line(f"f = {lines[-1][0]}")
    if report.conditions:
        yield Line("valid where " + ", ".join(map(str, report.conditions)))


def _derivatives(report: Report) -> Parts:
    yield Line(f"value {number(report.value)}")
    names = report.names
    flat = np.concatenate([np.ravel(v) for v in report.gradient.values()]) if report.gradient else np.zeros(0)
    rows = []
    for i in range(min(len(flat), ROWS)):
        e = report.formulas.get((i,))
        rows.append((label(1, (i,), names), number(flat[i]), "" if e is None else short(e)))
    if len(flat) > ROWS:
        rows.append((f"... {len(flat) - ROWS} more", "", ""))
    if rows:
        yield Table("Gradient", ("", "value", "formula"), rows)
    if report.hessian is None:
        return
    n = len(names)
    if n > MATRIX:
        yield Line(f"the Hessian is {n} x {n}; it is in report.hessian")
        return
    if n > 1:
        yield Table("Hessian", ("", *names), [(names[i], *(number(report.hessian[i, j]) for j in range(n))) for i in range(n)])
    higher: list[tuple[int, tuple[int, ...]]] = [(2, (i, j)) for i in range(n) for j in range(i, n)]
    if report.third is not None:
        higher += [(3, index) for index in itertools.combinations_with_replacement(range(n), 3)]
    rows = []
    for order, index in higher:
        e = report.formulas.get(index)
        if e is not None or n == 1:
            value = (report.hessian if order == 2 else report.third)[index]  # type: ignore[index]
            rows.append((label(order, index, names), number(value), "" if e is None else short(e)))
    if rows:
        yield Table("Higher derivatives", ("", "value", "formula"), rows)


def as_text(report: Outlined) -> str:
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


def as_rich(report: Outlined) -> Any:
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


def as_markdown(report: Outlined) -> str:
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


def as_html(report: Outlined) -> str:
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
