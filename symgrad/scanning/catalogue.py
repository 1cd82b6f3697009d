"""The catalogue of ops, generated from their declarations: formula, derivatives, domain, kinks, and measured errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.graph.op import REGISTRY, Op
from symgrad.reference.accuracy import BOUNDS
from symgrad.scanning.scan import accuracy
from symgrad.types.domains import REAL

__all__ = ["OpEntry", "catalogue", "page", "table"]

LETTERS = "x y z"
LONGEST = 160  # characters of LaTeX; a longer formula is left out of the table


@dataclass
class OpEntry:
    """An op of the registry: its formula and its derivatives as SymPy expressions, where it has them, and the errors that a scan has measured.

    `ulp` are the largest errors of the value and of the derivatives of orders 1 to 3, in units in the last place; `within` counts the numbers whose
    error is within the bounds of 8, 8, 64 and 512, and `compared` all that were compared.
    """

    name: str
    aliases: tuple[str, ...]
    kind: str
    summary: str
    formula: Any
    derivatives: tuple[Any, ...]
    domain: str
    kinks: str
    ulp: tuple[float, ...] = ()
    points: int = 0
    within: int = 0
    compared: int = 0


def catalogue(names: Sequence[str] = (), seconds: float = 0.0,
              tell: Callable[[str, int, int], Any] = lambda what, done, total: None) -> list[OpEntry]:
    """The entries of the public ops, or of some by name or alias, in alphabetical order.

    With `seconds`, every elementwise op of real numbers is scanned for so long; `tell` is called before each op with its name, the number of
    those done, and of all.

    Raises ValueError for an unknown name.

    >>> (entry,) = catalogue(["tanh"])
    >>> entry.formula, entry.derivatives
    (tanh(x), (cosh(x)**(-2),))
    """
    known = {each: op for op in REGISTRY.values() if op.public for each in (op.name, *op.aliases)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"ops: {', '.join(unknown)}: there is no such op; `symgrad ops` lists all")
    chosen = {known[name].name: known[name] for name in names or known}
    out: list[OpEntry] = []
    for name in sorted(chosen):
        tell(name, len(out), len(chosen))
        out.append(_entry(chosen[name], seconds))
    return out


def _entry(op: Op, seconds: float) -> OpEntry:
    formula, derivatives = _formulas(op)
    entry = OpEntry(op.name, op.aliases, op.kind if op.differentiable else "not differentiable", _summary(op), formula, derivatives, _domain(op),
                    _kinks(op))
    if seconds and op.kind == "elementwise" and op.differentiable and not op.parameters:
        _scan(entry, seconds)
    return entry


def _formulas(op: Op) -> tuple[Any, tuple[Any, ...]]:
    """The formula of an elementwise op, and its derivatives by each argument; None and nothing for others, and where there is no expression."""
    if op.kind != "elementwise" or not op.arity:
        return None, ()
    symbols = sympy.symbols(LETTERS, real=True)[:op.arity]
    given = op.examples[0] if op.examples else ()
    cells = [symbolic.ExactExpressions.fill([s], ()) for s in symbols]
    try:
        y = op.forward(symbolic, *cells, *given)
        partials = [p(symbolic, y, *cells, *given) if callable(p) else p for p in op.partials]
        found = [sympy.S.Zero if p is None else sympy.sympify(p.item() if hasattr(p, "item") else p) for p in partials]
        return sympy.sympify(y.item()), tuple(found)
    except (TypeError, ValueError, NotImplementedError, ArithmeticError, AttributeError):
        return None, ()


def _summary(op: Op) -> str:
    first = op.doc.partition("\n")[0]
    return first if len(first) <= LONGEST else f"{first[:LONGEST - 2]} …"


def _domain(op: Op) -> str:
    names = [f"{name} in {d}" for name, d in zip(op.argument_names, map(_interval_text, op.domain)) if d]
    return ", ".join(names) if len(op.domain) > 1 else names[0].partition(" in ")[2] if names else ""


def _interval_text(domain: Any) -> str:
    """A domain as intervals; nothing for all real numbers."""
    if domain == REAL or domain is None or not hasattr(domain, "intervals"):
        return ""
    parts = [f"{'(' if i.open_low or math.isinf(i.low) else '['}{i.low:g}, {i.high:g}{')' if i.open_high or math.isinf(i.high) else ']'}"
             for i in domain.intervals]
    return " ∪ ".join(parts) + (f" without {', '.join(f'{x:g}' for x in domain.excluded)}" if domain.excluded else "")


def _kinks(op: Op) -> str:
    """The points at which an op is declared to be special: kinks, poles, and where forms change."""
    points = dict.fromkeys(tuple(0.0 if x == 0 else x for x in point) for point in op.special)
    return ", ".join(f"{p[0]:g}" if len(p) == 1 else f"({', '.join(f'{x:g}' for x in p)})" for p in points)


def _scan(entry: OpEntry, seconds: float) -> None:
    """Measure the errors of an op and add them to its entry."""
    report = accuracy(entry.name, order=3, seconds=seconds, progress=False)
    entry.ulp = tuple([worst.ulp for order in range(4) if (worst := report.of_order(order)) is not None])
    entry.points = report.points
    for sample in report.samples:
        for index, errors in sample.errors.items():
            known = errors[~np.isnan(errors)]
            entry.compared += known.size
            entry.within += int(np.count_nonzero(known <= BOUNDS[len(index)]))


def _latex(e: Any) -> str:
    text = "" if e is None else sympy.latex(e).replace("|", r"\vert ")
    return f"${text}$" if text and len(text) <= LONGEST else ""


def _ulp_text(entry: OpEntry) -> str:
    return " / ".join("inf" if math.isinf(u) else f"{u:.3g}" for u in entry.ulp)


def table(entries: Sequence[OpEntry]) -> str:
    """The entries as a table in Markdown."""
    lines = ["| op | formula | derivatives | domain | special points | ULP, orders 0 to 3 |", "|---|---|---|---|---|---|"]
    for e in entries:
        name = " ".join(f"`{each}`" for each in (e.name, *e.aliases))
        formula = _latex(e.formula) or e.summary.replace("|", r"\|")
        derivatives = ", ".join(_latex(d) or "…" for d in e.derivatives) if e.derivatives else f"({e.kind})"
        lines.append(f"| {name} | {formula} | {derivatives} | {e.domain} | {e.kinks} | {_ulp_text(e)} |")
    return "\n".join(lines)


def page(entries: Sequence[OpEntry]) -> str:
    """The page of the guide: the counts, and the table."""
    scanned = [e for e in entries if e.compared]
    formulas, special = sum(e.formula is not None for e in entries), sum(bool(e.kinks) for e in entries)
    within, compared = sum(e.within for e in scanned), sum(e.compared for e in scanned)
    measured = f"""
{len(scanned)} ops were scanned at {sum(e.points for e in scanned):,} points, from subnormal to huge numbers and beside every special point:
{within:,} of {compared:,} values and derivatives ({100 * within / compared:.3f}%) are within 8, 8, 64 and 512 ULP (orders 0 to 3). The column of the
table has the worst; an op that is ill-conditioned somewhere, such as one with zeros, has large numbers there.
""" if compared else ""
    return f"""# Ops

You want to know which ops there are, what they compute, and how many digits they keep.

{len(entries)} public ops, {formulas} of them with a formula per element, {special} with special points, at which a derivative is decided.
`symgrad ops` prints this table, `symgrad ops tanh` some rows, and `symgrad ops --scan 1 --write FILE` measures and writes this page.
A tensor with a name shows the formula and the derivative of a row:

```python
>>> import symgrad
>>> x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
>>> y = symgrad.erf(x)
>>> y.backward()
>>> y.expr, x.grad.expr
(erf(x), 2*exp(-x**2)/sqrt(pi))

```
{measured}
{table(entries)}

## What can go wrong

- An op of torch that is not here raises an AttributeError: declare it yourself as in [new ops](new_ops.md).
- Where an op has no formula, `symgrad.check` verifies numbers and proves nothing.
- The largest errors are those of the points that were drawn, on the machine that wrote this page.
"""
