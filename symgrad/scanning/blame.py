"""The operation of a computation in which digits are lost: each float of the graph is compared with its exact value.

The graph of a derivative holds the operations of the forward and of the backward pass. The reported loss is the operation at which the error grew
most, among those whose float alone, in a computation that is exact otherwise, changes the result as much.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import rungs
from symgrad.algebra.stable import stable_form, suggestions
from symgrad.autograd.anomaly import set_detect_anomaly
from symgrad.autograd.causes import Local, record_of
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.engine.replay import call_rule, replay
from symgrad.engine.tensor import wrap
from symgrad.engine.traced import traced
from symgrad.formulas.expressions import expr
from symgrad.frameworks.differentiation_task import silence
from symgrad.graph.domains import Domain
from symgrad.graph.node import Node
from symgrad.reference.accuracy import BOUNDS
from symgrad.reports.base import first_line, ulp_text
from symgrad.sampling.floats import Floats
from symgrad.scanning.report import Better, Loss, Worst
from symgrad.scanning.subject import Index, Subject
from symgrad.symbolic.reading import evaluate_expression

FIRST, LAST = 60, 1920  # digits of the first and the last precision
MIN_SHARE = 0.25  # the part of an error that an operand must cause for the search to continue there
MAX_LINE = 160  # characters of a reported line of code with its file
MAX_OPERATIONS = 60  # of a reported expression
FAILURES = (TypeError, AttributeError, NotImplementedError, ArithmeticError, ValueError)


class Stage(NamedTuple):
    """A node, the element examined, and the relative errors of its float, of the operation alone, and of its operands."""

    node: Node
    place: tuple[int, ...]
    error: float
    own_error: float
    operands: float


class Blame:
    """Finds the operations in which one function loses digits."""

    def __init__(self, subject: Subject, floats: Floats):
        self.subject, self.floats = subject, floats
        self.unit = 2.0**-floats.digits

    def find(self, worst: Worst, index: Index, reference: Any) -> Loss | None:
        """The loss that causes the error of a derivative at a point with a known reference value; None if no single operation causes it."""
        point = np.array(worst.point, self.floats.dtype)
        try:
            with silence(), enable_grad(), set_detect_anomaly(True, check_nan=False):
                root = self.subject.call_at(list(point), named=True).partials(len(index), last=True)[index]._node
            exact = None if root is None else self._exact_values(root, reference)
            stage = None if exact is None else self._culprit(root, exact)
        except FAILURES:  # a rule that cannot be evaluated in many digits, or a number beyond them
            return None
        return None if stage is None else self._loss(stage, exact, worst)  # type: ignore[arg-type]

    def _exact_values(self, root: Node, reference: Any) -> dict[Node, Any] | None:
        """The values of all nodes with so many digits that the result agrees with the reference value; None if `LAST` digits are too few."""
        for digits in rungs(FIRST, LAST):
            with precise.working_precision(digits):
                values = _replayed(root)
                found = values[root].item()
                if abs(found - reference) <= mpmath.mpf("1e-20") * abs(reference) or abs(reference) < mpmath.mpf("1e-400") > abs(found):
                    return values
        return None

    def _culprit(self, root: Node, exact: dict[Node, Any]) -> Stage | None:
        """Of the operations whose error alone is a good part of that of the result, the one that enlarges the errors of its operands most.

        None if the result is accurate: then the error is not in this graph.
        """
        with precise.working_precision(LAST):
            errors = {node: _largest_error(node, exact) for node in exact}
            total = errors[root][0]
            before = {node: max([errors[p][0] for p in node.parents if p is not None], default=0.0) for node in exact}
            least = self.unit / 2

            def growth(node: Node) -> float:  # where no digit was left, an error has not grown
                return 0.0 if np.isinf(before[node]) else 1.0 if before[node] >= 0.5 else errors[node][0] / max(before[node], least)

            nodes = [node for node, (error, _) in errors.items() if error > 4 * self.unit and getattr(node, "args", None) is not None]
            for node in sorted(nodes, key=growth, reverse=True):
                moved = _relative_error(_replayed(root, {node: precise.lift_value(node.value)})[root].item(), exact[root].item())
                if total > 4 * self.unit and moved >= MIN_SHARE * (total if np.isfinite(total) else 1.0):
                    error, place = errors[node]
                    given = [precise.lift_value(a if p is None else p.value) for p, a in zip(node.parents, node.args or ())]
                    alone = _cell(precise.lift_value(call_rule(precise, node, given, node.args or ())), place)
                    return Stage(node, place, error, _relative_error(np.asarray(node.value)[place], alone), before[node])
        return None

    # The report

    def _loss(self, stage: Stage, exact: dict[Node, Any], worst: Worst) -> Loss:
        node, place = stage.node, stage.place
        value, reference = float(np.asarray(node.value)[place]), _cell(exact[node], place)
        operands, formula = self._operands(node)
        record, name = record_of(node), ""  # the node whose pullback created this one, if any
        while record is not None and record.inducer is not None:
            inducer, record = record.inducer
            name = name or inducer
        line = "" if record is None or self.subject.is_op else first_line(record.line, MAX_LINE)
        try:
            found = expr(wrap(node.value, node))
            found = None if found is None or np.ndim(node.value) or sympy.count_ops(found) > MAX_OPERATIONS else found
        except (*FAILURES, RecursionError):
            found = None
        return Loss(node.op.name, self._reason(stage, value, reference), formula, operands, value, mpmath.nstr(reference, 17), found, line, name,
                    (worst.order,), (worst.region,), worst.point)

    def _reason(self, stage: Stage, value: float, reference: Any) -> str:
        largest, tiny = self.floats.largest, self.floats.normal
        if not np.isfinite(value):
            return "it overflows" if not mpmath.isfinite(reference) or abs(reference) > largest else "it is not finite"
        if stage.own_error >= MIN_SHARE * stage.error:
            error = ulp_text(2 * stage.own_error / self.unit)
            return "it underflows" if abs(reference) < tiny else f"the operation itself has an error of {error} ULP"
        words = "cancellation: " if stage.node.op.name in ("add", "sub", "sum", "mean") else ""
        return f"{words}a relative error of {stage.operands:.1g} of the operands becomes {stage.error:.1g}"

    def _operands(self, node: Node) -> tuple[dict[str, float], str]:
        """The names and values of the operands other than constants, and the operation as a formula."""
        args, count = node.args or (), len(node.parents)
        given = args[:count]
        if node.op.arity is None or any(np.ndim(a) for a in given) or np.ndim(node.value):
            return {}, node.op.name
        letters = iter("a" if sum(p is not None for p in node.parents) == 1 else "abcdefgh")
        names = [None if p is None else next(letters) for p in node.parents]
        local = Local(node.op, tuple(None if n is None else (n,) for n in names), given, node.value, args[count:])
        return {n: float(a) for n, a in zip(names, given) if n is not None}, local.formula()


def _replayed(root: Node, known: dict[Node, Any] | None = None) -> dict[Node, Any]:
    """The values of all nodes in the precise carrier, some of which may be known."""
    return replay(precise, [root], lambda leaf: precise.lift_value(leaf.value), precise.lift_value, known)


def _largest_error(node: Node, exact: dict[Node, Any]) -> tuple[float, tuple[int, ...]]:
    """The largest relative error among the elements of a node's value, and its position."""
    value = np.asarray(node.value)
    errors = [(_relative_error(value[place], _cell(exact[node], place)), place) for place in np.ndindex(value.shape)]
    return max(errors, key=lambda x: x[0], default=(0.0, ()))


def _relative_error(value: Any, reference: Any) -> float:
    """The relative error of a number; infinite if only one of the two is finite, or the reference value is 0."""
    value = precise.context.mpf(float(value)) if isinstance(value, (float, np.generic)) else value
    if value == reference or mpmath.isnan(value) and mpmath.isnan(reference):
        return 0.0
    finite = mpmath.isfinite(value) and mpmath.isfinite(reference) and reference
    return min(float(abs(value - reference) / abs(reference)), 1e300) if finite else float("inf")


def _cell(values: Any, place: tuple[int, ...]) -> Any:
    """One element of an array of numbers with many digits."""
    return np.asarray(values)[place] if place else values.item()


MAX_FORMULA_OPERATIONS = 300  # of a formula that is examined
MAX_CANDIDATES = 40
MIN_GAIN = 4.0  # how many times smaller an error has to be


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
    if sympy.count_ops(e) > MAX_FORMULA_OPERATIONS:
        return []
    try:
        candidates = list(itertools.islice(_candidates(e), MAX_CANDIDATES))
    except (RecursionError, TypeError, ValueError, AttributeError, NotImplementedError):
        return []
    out: list[Better] = []
    present = [_largest(part["errors"], order) for part in columns]
    for found, better, name, form in candidates:
        try:
            other = Subject(lambda *xs, e=form: evaluate_expression(e, symbols, traced, xs), subject.count)
            after = [_errors(other, floats, part, order) for part in columns]
        except (TypeError, ValueError, NotImplementedError, ArithmeticError):
            continue
        if not any(b.form == form for b in out) and _is_better(present, after, order):
            was, now = ({k: max(part[k] for part in parts) for k in range(order + 1)} for parts in (present, after))
            out.append(Better(found, better, name, form, was, now,
                              {k: (sum(b[k] > BOUNDS[k] for b in present), sum(a[k] > BOUNDS[k] for a in after)) for k in range(order + 1)}))
    best = {k: min((b.after[k] for b in out), default=0.0) for k in range(order + 1)}
    combined = [b for b in out if b.found == e and len(out) > 1]
    if combined and any(k in combined[0].after and combined[0].after[k] > MIN_GAIN * best[k] for k in best):
        out.remove(combined[0])
    return out


def _errors(subject: Subject, floats: Floats, part: Mapping[str, Any], order: int) -> dict[int, float]:
    """The largest error of each order of another form, at the points with a reference value."""
    values = subject.floats(part["points"], order)
    known = {index: np.flatnonzero(~np.isnan(before)) for index, before in part["errors"].items()}
    return _largest({index: floats.ulps(values[index][at], [part["truth"][index][k] for k in at]) for index, at in known.items()}, order)


def _largest(errors: Mapping[Index, np.ndarray], order: int) -> dict[int, float]:
    return {k: max((float(np.nanmax(e)) for index, e in errors.items() if len(index) == k and not np.isnan(e).all()), default=0.0)
            for k in range(order + 1)}


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
