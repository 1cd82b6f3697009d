"""More accurate forms of a formula: suggested by symbolic rules, measured at the points of the scan, and reported if their errors are smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.limits import OutOfTime, limited
from symgrad.algebra.stable import stable_form, suggestions
from symgrad.algebra.stable_functions import log1mexp, log_cosh
from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.engine.traced import traced
from symgrad.graph.domains import Domain
from symgrad.reference.accuracy import BOUNDS
from symgrad.sampling.floats import Floats
from symgrad.scanning.report import Better
from symgrad.scanning.subject import Index, Subject
from symgrad.symbolic.definitions import DEFINITIONS
from symgrad.symbolic.reading import evaluate_expression

__all__ = ["better_forms"]

MAX_OPERATIONS = 300  # of a formula that is examined
SECONDS = 2.0
MIN_GAIN = 4.0  # how many times smaller an error has to be


def _function_of_form(form: Any, symbols: Sequence[Any]) -> Callable[..., Any]:
    """A form as a function of Tensors, computed as it is written. Heads without an op are replaced by their stable definitions."""
    for head in (log_cosh, log1mexp):
        form = form.replace(head, DEFINITIONS[head])
    return lambda *xs: evaluate_expression(form, symbols, traced, xs)


def _with_assumptions(e: Any, names: Sequence[str], domains: Sequence[Domain], columns: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Any]]:
    """An expression over symbols whose assumptions follow from their domains and from the points where it has a real value; and the symbols."""
    known = {s.name: s for s in e.free_symbols}
    symbols = []
    for i, (name, d) in enumerate(zip(names, domains)):
        least = min((float(x) for part in columns for x in part["points"][i][~np.isnan(part["errors"][()])]), default=-1.0)
        seen = {} if least < 0 else {"positive": True} if least > 0 else {"nonnegative": True}
        symbols.append(sympy.Symbol(name, **(d.assumptions if least < 0 or d.assumptions.get("positive") else {"real": True} | seen)))
    return e.xreplace({known[s.name]: s for s in symbols if s.name in known}), symbols


def _candidates(e: Any) -> Iterator[tuple[Any, Any, str, Any]]:
    """Tuples (part of the formula, better form of it, its name, the formula with it). All suggestions at once are one of them."""
    found = suggestions(e)
    yield from ((s.found, s.better, s.name, e.xreplace({s.found: s.better})) for s in found if e.has(s.found))
    combined = stable_form(e)
    if found and not (len(found) == 1 and e.has(found[0].found)):
        yield e, combined, " and ".join(dict.fromkeys(s.name for s in found)), combined


def better_forms(subject: Subject, floats: Floats, formula: Any, domains: Sequence[Domain], columns: Sequence[Mapping[str, Any]],
                 order: int) -> list[Better]:
    """The forms whose errors at the scanned points are smaller than those of the formula; none for a long formula."""
    e, symbols = _with_assumptions(formula, subject.names, domains, columns)
    if sympy.count_ops(e) > MAX_OPERATIONS:
        return []
    try:
        with limited(SECONDS):
            candidates = list(_candidates(e))
    except (OutOfTime, RecursionError, TypeError, ValueError, AttributeError, NotImplementedError):
        return []
    out: list[Better] = []
    present = [{k: _largest(part["errors"], k) for k in range(order + 1)} for part in columns]
    for found, better, name, form in candidates:
        try:
            other = Subject(_function_of_form(form, symbols), subject.count)
            after = [_errors(other, floats, part, order) for part in columns]
        except (TypeError, ValueError, NotImplementedError, ArithmeticError):
            continue
        if not any(b.form == form for b in out) and _is_better(present, after, order):
            out.append(Better(found, better, name, form, _largest_by_order(present, order), _largest_by_order(after, order),
                              {k: (sum(b[k] > BOUNDS[k] for b in present), sum(a[k] > BOUNDS[k] for a in after)) for k in range(order + 1)}))
    best = {k: min((b.after[k] for b in out), default=0.0) for k in range(order + 1)}
    combined = [b for b in out if b.found == e and len(out) > 1]
    if combined and any(k in combined[0].after and combined[0].after[k] > MIN_GAIN * best[k] for k in best):
        out.remove(combined[0])
    return out


def _errors(subject: Subject, floats: Floats, part: Mapping[str, Any], order: int) -> dict[int, float]:
    """The largest error of each order of another form, at the points with a reference value."""
    values = subject.floats(part["points"], order)
    errors: dict[Index, np.ndarray] = {}
    for index, before in part["errors"].items():
        known = np.flatnonzero(~np.isnan(before))
        errors[index] = floats.ulps(values[index][known], [part["truth"][index][k] for k in known])
    return {k: _largest(errors, k) for k in range(order + 1)}


def _largest(errors: Mapping[Index, np.ndarray], order: int) -> float:
    every = [e[~np.isnan(e)] for index, e in errors.items() if len(index) == order]
    return max((float(e.max()) for e in every if e.size), default=0.0)


def _largest_by_order(parts: Sequence[Mapping[int, float]], order: int) -> dict[int, float]:
    return {k: max(part[k] for part in parts) for k in range(order + 1)}


def _is_better(before: Sequence[Mapping[int, float]], after: Sequence[Mapping[int, float]], order: int) -> bool:
    """Whether an error beyond its bound is reduced in some region, and no error in any region becomes much larger or moves beyond its bound."""
    gained = False
    for k in range(order + 1):
        for b, a in zip(before, after):
            was, is_now = min(b[k], ALL_DIGITS), min(a[k], ALL_DIGITS)
            gained |= was > BOUNDS[k] and is_now < was / MIN_GAIN
            if is_now > BOUNDS[k] and is_now > 2 * MIN_GAIN * was:
                return False
    return gained
