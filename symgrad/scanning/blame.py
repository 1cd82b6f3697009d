"""The operation of a computation in which digits are lost: each float of the graph is compared with its exact value.

The graph of a derivative holds the operations of the forward and of the backward pass. The search starts at the result and follows, from node to
node, the operand that causes most of the error, until the operands are accurate. The reported loss is the step at which the error grew most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import rungs
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.algebra.stable import stable_form, suggestions
from symgrad.algebra.stable_functions import log1mexp, log_cosh
from symgrad.autograd.anomaly import set_detect_anomaly
from symgrad.autograd.causes import Local, record_of
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.engine.replay import replay
from symgrad.engine.tensor import wrap
from symgrad.engine.traced import traced
from symgrad.formulas.expressions import expr
from symgrad.frameworks.differentiation_task import silence
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.domains import Domain
from symgrad.graph.node import Leaf, Node
from symgrad.reference.accuracy import BOUNDS
from symgrad.reports.base import first_line, ulp_text
from symgrad.sampling.floats import Floats
from symgrad.scanning.report import Better, Loss, Worst
from symgrad.scanning.scanner import FIRST, LAST
from symgrad.scanning.subject import Index, Subject
from symgrad.symbolic.kept import DEFINITIONS
from symgrad.symbolic.reading import evaluate_expression

MIN_SHARE = 0.25  # the part of an error that an operand must cause for the search to continue there
MAX_LINE = 160  # characters of a reported line of code with its file
MAX_OPERATIONS = 60  # of a reported expression
FAILURES = (TypeError, AttributeError, NotImplementedError, ArithmeticError, ValueError)


class Stage(NamedTuple):
    """A node of the path, the element examined, and the relative errors of its float, of the operation alone, and of its operands."""

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
                recording = self.subject.call_at(list(point), named=True)
                root = recording.partials(len(index), last=True)[index]._node
            if root is None:
                return None
            exact = self._exact_values(root, reference)
            path = None if exact is None else self._path(root, exact)
        except FAILURES:  # a rule that cannot be evaluated in many digits, or a number beyond them
            return None
        if not path or path[0].error <= 4 * self.unit:  # the error is not in this graph
            return None
        before = [max(stage.operands, self.unit / 2) for stage in path]  # where no digit was left, an error has not grown
        growth = [0.0 if np.isinf(b) else 1.0 if b >= 0.5 else stage.error / b for stage, b in zip(path, before)]
        k = max(range(len(path)), key=lambda i: (growth[i], i))
        return self._loss(path[k], exact, worst)  # type: ignore[arg-type]

    def _exact_values(self, root: Node, reference: Any) -> dict[Node, Any] | None:
        """The values of all nodes with so many digits that the result agrees with the reference value; None if `LAST` digits are too few."""
        for digits in rungs(FIRST, LAST):
            with precise.working_precision(digits):
                values = replay(precise, [root], lambda leaf: precise.lift_value(leaf.value), precise.lift_value)
                found = values[root].item()
                if abs(found - reference) <= mpmath.mpf("1e-20") * abs(reference) or abs(reference) < mpmath.mpf("1e-400") > abs(found):
                    return values
        return None

    def _path(self, root: Node, exact: dict[Node, Any]) -> list[Stage]:
        """The nodes from the result to the operation with accurate operands."""
        with precise.working_precision(LAST):
            path: list[Stage] = []
            node: Node | None = root
            place: tuple[int, ...] = ()
            while node is not None:
                if isinstance(node, DerivativeNode):
                    node = node.parents[0]
                    continue
                if isinstance(node, Leaf) or node.args is None:
                    break
                error = self._relative_error_of_float(np.asarray(node.value)[place], _cell(exact[node], place))
                operands = [(p, *self._worst_element(p, exact)) for p in node.parents if p is not None]
                inherited = max((e for _, e, _ in operands), default=0.0)
                given = [precise.lift_value(a) if p is None else precise.lift_value(p.value) for p, a in zip(node.parents, node.args)]
                alone = _cell(self._apply_precise(node, given), place)
                path.append(Stage(node, place, error, self._relative_error_of_float(np.asarray(node.value)[place], alone), inherited))
                node, place = self._wrong_operand(node, place, operands, exact, error)
            return path

    def _wrong_operand(self, node: Node, place: tuple[int, ...], operands: Sequence[tuple[Node, float, tuple[int, ...]]], exact: dict[Node, Any],
                       error: float) -> tuple[Node | None, tuple[int, ...]]:
        """The inaccurate operand that causes most of the error of a node, and its element; None if there is none."""
        best: tuple[float, Node | None, tuple[int, ...]] = (0.0, None, ())
        for p, e, where in operands:
            if e <= 4 * self.unit:
                continue
            mixed = [precise.lift_value(a) if q is None else precise.lift_value(q.value) if q is p else exact[q]
                     for q, a in zip(node.parents, node.args or ())]
            moved = self._relative_error(_cell(self._apply_precise(node, mixed), place), _cell(exact[node], place))
            if moved >= MIN_SHARE * (error if np.isfinite(error) else 1.0) and moved > best[0]:
                best = moved, p, where
        return best[1], best[2]

    def _apply_precise(self, node: Node, tensors: Sequence[Any]) -> Any:
        rest = (node.args or ())[len(node.parents):]
        return precise.lift_value(node.op.forward(precise, *((tensors,) if node.op.arity is None else tensors), *rest))

    def _worst_element(self, node: Node, exact: dict[Node, Any]) -> tuple[float, tuple[int, ...]]:
        """The largest relative error among the elements of a node's value, and its position."""
        value = np.asarray(node.value)
        best, where = -1.0, ()
        for place in np.ndindex(value.shape):
            error = self._relative_error_of_float(value[place], _cell(exact[node], place))
            if error > best:
                best, where = error, place
        return max(best, 0.0), where

    def _relative_error_of_float(self, value: Any, reference: Any) -> float:
        """The relative error of a float; infinite if the float is not finite and the reference value is."""
        value = float(value)
        if not np.isfinite(value):
            return 0.0 if not mpmath.isfinite(reference) and (reference == value or reference != reference) else float("inf")
        return self._relative_error(precise.context.mpf(value), reference)

    def _relative_error(self, value: Any, reference: Any) -> float:
        if not mpmath.isfinite(value) or not mpmath.isfinite(reference):
            return 0.0 if value == reference else float("inf")
        if value == reference:
            return 0.0
        return float("inf") if reference == 0 else min(float(abs(value - reference) / abs(reference)), 1e300)

    # The report

    def _loss(self, stage: Stage, exact: dict[Node, Any], worst: Worst) -> Loss:
        node, place = stage.node, stage.place
        value, reference = float(np.asarray(node.value)[place]), _cell(exact[node], place)
        operands, formula = self._operands(node)
        name, line = self._location(node)
        return Loss(node.op.name, self._reason(stage, value, reference), formula, operands, value, mpmath.nstr(reference, 17),
                    self._expression(node), line, name, (worst.order,), (worst.region,), worst.point)

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

    def _location(self, node: Node) -> tuple[str, str]:
        """The name of the node whose pullback created this one ("" for a forward operation), and the user's line."""
        record, name = record_of(node), ""
        while record is not None and record.inducer is not None:
            inducer, record = record.inducer
            name = name or inducer
        return name, "" if record is None or self.subject.is_op else first_line(record.line, MAX_LINE)

    def _expression(self, node: Node) -> Any:
        """The expression of the node over the arguments; None if it is long."""
        import sympy

        try:
            found = expr(wrap(node.value, node))
            return None if found is None or np.ndim(node.value) or sympy.count_ops(found) > MAX_OPERATIONS else found
        except (*FAILURES, RecursionError):
            return None


def _cell(values: Any, place: tuple[int, ...]) -> Any:
    """One element of an array of numbers with many digits."""
    return np.asarray(values)[place] if place else values.item()


MAX_FORMULA_OPERATIONS = 300  # of a formula that is examined
SECONDS = 2.0
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
        with limited(SECONDS):
            candidates = list(_candidates(e))
    except (OutOfTime, RecursionError, TypeError, ValueError, AttributeError, NotImplementedError):
        return []
    out: list[Better] = []
    present = [{k: _largest(part["errors"], k) for k in range(order + 1)} for part in columns]
    for found, better, name, form in candidates:
        try:
            written = form  # heads without an op are replaced by their stable definitions
            for head in (log_cosh, log1mexp):
                written = written.replace(head, DEFINITIONS[head])
            other = Subject(lambda *xs, e=written: evaluate_expression(e, symbols, traced, xs), subject.count)
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
    errors: dict[Index, np.ndarray] = {}
    for index, before in part["errors"].items():
        known = np.flatnonzero(~np.isnan(before))
        errors[index] = floats.ulps(values[index][known], [part["truth"][index][k] for k in known])
    return {k: _largest(errors, k) for k in range(order + 1)}


def _largest(errors: Mapping[Index, np.ndarray], order: int) -> float:
    every = [e[~np.isnan(e)] for index, e in errors.items() if len(index) == order]
    return max((float(e.max()) for e in every if e.size), default=0.0)


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
