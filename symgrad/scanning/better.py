"""Forms that keep the digits: suggested for the formula of a function, computed at the points of the scan, and kept if they are better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.stable import rewritten, suggestions
from symgrad.engine.recording import core
from symgrad.engine.traced import FUNCTIONS, lift
from symgrad.graph.op import REGISTRY
from symgrad.proofs.proof import OutOfTime, limited
from symgrad.reference.accuracy import BOUNDS
from symgrad.sampling.floats import Floats
from symgrad.scanning.report import Better
from symgrad.scanning.subject import Index, Subject
from symgrad.types.domains import Domain
from symgrad.types.ulp import ALL

__all__ = ["better_forms", "function_of", "with_assumptions"]

LARGEST = 300  # operations of a formula that is looked at
SECONDS = 2.0
GAIN = 4.0  # how many times smaller an error has to be
NAMES = {"Abs": "abs", "sech_squared": "sech_square", "ceiling": "ceil", "Max": "maximum", "Min": "minimum"}


def _op(name: str) -> Callable[..., Any]:
    op = REGISTRY[name]
    return core(op) if op.kind != "composite" and not op.parameters else FUNCTIONS.get(name) or lift(op)


def _log_cosh(u: Any) -> Any:
    """log1p(2 sinh²(u/2)) next to 0, elsewhere |u| + log1p(exp(-2|u|)) - log(2)."""
    size = _op("abs")(u)
    near = _op("lt")(size, 1.0)
    small = _op("where")(near, u, 0 * u)
    return _op("where")(near, _op("log1p")(2 * _op("square")(_op("sinh")(small / 2))), size + _op("log1p")(_op("exp")(-2 * size)) - float(np.log(2)))


def _log1mexp(u: Any) -> Any:
    """log(-expm1(u)) next to 0, elsewhere log1p(-exp(u))."""
    near = _op("gt")(u, -0.6931471805599453)
    return _op("where")(near, _op("log")(-_op("expm1")(_op("where")(near, u, 0 * u - 1))), _op("log1p")(-_op("exp")(u)))


HEADS: dict[str, Callable[..., Any]] = {"log_cosh": _log_cosh, "log1mexp": _log1mexp}


def function_of(e: Any, symbols: Sequence[Any]) -> Callable[..., Any]:
    """A SymPy expression as a function of Tensors, each of its parts computed once and as it is written.

    Raises NotImplementedError for a function that no op computes.

    >>> import symgrad
    >>> x = sympy.Symbol("x")
    >>> function_of(sympy.exp(-x) / (1 + x), [x])(symgrad.tensor(0.0))
    tensor(1.)
    """
    for part in sympy.preorder_traversal(e):
        if part.args and not isinstance(part, (sympy.Add, sympy.Mul, sympy.Pow)) and not part.is_number:
            name = type(part).__name__
            if name not in HEADS and NAMES.get(name, name) not in REGISTRY:
                raise NotImplementedError(f"no op computes {name}")

    def call(*xs: Any) -> Any:
        known: dict[Any, Any] = dict(zip(symbols, xs))

        def value(part: Any) -> Any:
            if part not in known:
                known[part] = float(part) if part.is_number else _computed(part, value)
            return known[part]

        return value(e)

    return call


def _computed(part: Any, value: Callable[[Any], Any]) -> Any:
    if isinstance(part, sympy.Add):
        positive = [a for a in part.args if not a.could_extract_minus_sign()]
        negative = [-a for a in part.args if a.could_extract_minus_sign()]
        total = sum(map(value, positive[1:]), value(positive[0])) if positive else -value(negative.pop(0))
        for a in negative:
            total = total - value(a)
        return total
    if isinstance(part, sympy.Mul):
        above, below = part.as_numer_denom()
        if below != 1 and above != part:
            return value(above) / value(below)
        if part.args[0] == -1:
            return -value(sympy.Mul(*part.args[1:], evaluate=False) if len(part.args) > 2 else part.args[1])
        out = value(part.args[0])
        for a in part.args[1:]:
            out = out * value(a)
        return out
    if isinstance(part, sympy.Pow):
        base, power = part.args
        if power == sympy.S.Half:
            return _op("sqrt")(value(base))
        if power.is_number and power < 0:
            return 1 / value(base**-power)
        return value(base) ** (int(power) if power.is_Integer else value(power))
    name = type(part).__name__
    args = list(map(value, part.args))
    if name in HEADS:
        return HEADS[name](*args)
    function = _op(NAMES.get(name, name))
    out = function(*args[:2])
    for a in args[2:]:
        out = function(out, a)
    return out


def with_assumptions(e: Any, names: Sequence[str], domains: Sequence[Domain], columns: Sequence[Mapping[str, Any]] = ()) -> tuple[Any, list[Any]]:
    """An expression over symbols that know their domains, and where among the points of the columns it has a real value; and the symbols."""
    known = {s.name: s for s in e.free_symbols}
    symbols = []
    for i, (name, d) in enumerate(zip(names, domains)):
        least = min((float(x) for part in columns for x in part["points"][i][~np.isnan(part["errors"][()])]), default=-1.0)
        seen = {} if least < 0 else {"positive": True} if least > 0 else {"nonnegative": True}
        symbols.append(sympy.Symbol(name, **(d.assumptions if least < 0 or d.assumptions.get("positive") else {"real": True} | seen)))
    return e.xreplace({known[s.name]: s for s in symbols if s.name in known}), symbols


def _candidates(e: Any) -> Iterator[tuple[Any, Any, str, Any]]:
    """What is found, what is better, its name, and the form with it; all suggestions together where single ones are not separable."""
    found = suggestions(e)
    yield from ((s.found, s.better, s.name, e.xreplace({s.found: s.better})) for s in found if e.has(s.found))
    combined = rewritten(e)
    if found and not (len(found) == 1 and e.has(found[0].found)):
        yield e, combined, " and ".join(dict.fromkeys(s.name for s in found)), combined


def better_forms(subject: Subject, floats: Floats, formula: Any, domains: Sequence[Domain], columns: Sequence[Mapping[str, Any]],
                 order: int) -> list[Better]:
    """The forms that are better than the formula at the points that were scanned; none where the formula is long or there is no better one."""
    e, symbols = with_assumptions(formula, subject.names, domains, columns)
    if sympy.count_ops(e) > LARGEST:
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
            other = Subject(function_of(form, symbols), subject.count)
            after = [_errors(other, floats, part, order) for part in columns]
        except (TypeError, ValueError, NotImplementedError, ArithmeticError):
            continue
        if not any(b.form == form for b in out) and _is_better(present, after, order):
            out.append(Better(found, better, name, form, _overall(present, order), _overall(after, order),
                              {k: _counted(present, after, k) for k in range(order + 1)}))
    best = {k: min((b.after[k] for b in out), default=0.0) for k in range(order + 1)}
    combined = [b for b in out if b.found == e and len(out) > 1]
    if combined and any(k in combined[0].after and combined[0].after[k] > GAIN * best[k] for k in best):
        out.remove(combined[0])
    return out


def _errors(subject: Subject, floats: Floats, part: Mapping[str, Any], order: int) -> dict[int, float]:
    """The largest error of each order of another form at points whose truth is known."""
    values = subject.floats(part["points"], order)
    errors: dict[Index, np.ndarray] = {}
    for index, before in part["errors"].items():
        known = np.flatnonzero(~np.isnan(before))
        errors[index] = floats.ulps(values[index][known], [part["truth"][index][k] for k in known])
    return {k: _largest(errors, k) for k in range(order + 1)}


def _largest(errors: Mapping[Index, np.ndarray], order: int) -> float:
    every = [e[~np.isnan(e)] for index, e in errors.items() if len(index) == order]
    return max((float(e.max()) for e in every if e.size), default=0.0)


def _overall(parts: Sequence[Mapping[int, float]], order: int) -> dict[int, float]:
    return {k: max(part[k] for part in parts) for k in range(order + 1)}


def _counted(before: Sequence[Mapping[int, float]], after: Sequence[Mapping[int, float]], order: int) -> tuple[int, int]:
    return sum(b[order] > BOUNDS[order] for b in before), sum(a[order] > BOUNDS[order] for a in after)


def _is_better(before: Sequence[Mapping[int, float]], after: Sequence[Mapping[int, float]], order: int) -> bool:
    """Whether an error beyond its bound is smaller in one place at least, and none is beyond its bound that was not, or much larger."""
    gained = False
    for k in range(order + 1):
        for b, a in zip(before, after):
            was, is_now = min(b[k], ALL), min(a[k], ALL)
            gained |= was > BOUNDS[k] and is_now < was / GAIN
            if is_now > BOUNDS[k] and is_now > 2 * GAIN * was:
                return False
    return gained
