"""The formulas of a report as LaTeX."""

from __future__ import annotations

from symgrad.reports.report import Report

__all__ = ["as_latex"]


def as_latex(report: Report) -> str:
    """The formulas of the value and its derivatives as LaTeX, one equation per line."""
    import sympy  # takes a third of a second, and only this output needs it

    symbols = [sympy.Symbol(name) for name in report.names]
    lines = [f"f = {sympy.latex(report.formula)}"] if report.formula is not None else [
        f"{sympy.latex(symbol)} = {sympy.latex(e)}" for symbol, e in report.assignments]
    for index, e in report.formulas.items():
        if tuple(sorted(index)) == index:
            below = " ".join(rf"\partial {sympy.latex(symbols[i])}" for i in index)
            above = r"\partial f" if len(index) == 1 else rf"\partial^{{{len(index)}}} f"
            lines.append(rf"\frac{{{above}}}{{{below}}} = {sympy.latex(e)}")
    return "\n".join([*lines, f"% {report.verdict}: {report.reason}"])
