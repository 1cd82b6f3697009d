"""The errors of a function's numbers at a point, the bounds on them, a description of the points with an error, and the op whose rule is wrong."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import condition
from symgrad.autograd.context import FunctionNode
from symgrad.autograd.formulas import declares_another
from symgrad.dtypes.ulp import Ulp, ulp_of
from symgrad.engine.recording import core
from symgrad.factories.creation import tensor
from symgrad.frameworks.calling import flat_names
from symgrad.frameworks.differentiation_task import silence
from symgrad.frameworks.levels import Levels, ShadowValues
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.domains import Domain, Interval
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.accuracy import RoundedEvaluation
from symgrad.reference.exact import Exact, agreement
from symgrad.reference.run import Run
from symgrad.reference.sources import MARGIN, VAGUE, ReferenceNumber, ReferenceValues
from symgrad.reports.base import first_line, label, message_of
from symgrad.reports.report import Agreement, Finding
from symgrad.sampling.domain_reader import domain_text
from symgrad.symbolic.conversion import from_sympy
from symgrad.system.restoring import workdps

DEFAULT_ULP = 1000.0


def is_worse(a: Finding, b: Finding) -> bool:
    """Whether the first finding is worse. The order is: wrong, imprecise, right; among these exceptions, then larger errors.

    Findings that agree are compared by their errors relative to their bounds.
    """
    if a.agrees and b.agrees:
        return a.ulp / a.bound > b.ulp / b.bound
    return (a.wrong, not a.agrees, a.kind == "raises", a.ulp) > (b.wrong, not b.agrees, b.kind == "raises", b.ulp)


def _is_real(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


@dataclass(frozen=True)
class Tolerances:
    """The allowed error of a number, in ULP (1000 by default) and as `atol` + `rtol` times its size; `range` has the least and the largest size of
    an input. Raises ValueError for invalid numbers.
    """

    ulp: float | None = None
    atol: float = 0.0
    rtol: float = 0.0
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        expected = {"ulp": "a positive number, how many units in the last place an error may have",
                    "atol": "a number that is not negative, the absolute error that is allowed besides",
                    "rtol": "a number that is not negative, the error relative to the truth that is allowed besides"}
        for name, what in expected.items():
            value = getattr(self, name)
            if not (value is None and name == "ulp" or _is_real(value) and (0 <= value if name != "ulp" else 0 < value) and value < np.inf):
                raise ValueError(f"check: {name} is {value!r}; expected {what}")
        ends = self.range
        if ends is not None and not (isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(_is_real, ends)) and 0 <= ends[0] < ends[1]):
            raise ValueError(f"check: range is {ends!r}; expected (least, largest), the sizes that the numbers of a point may have, "
                             f"such as (1e-100, 1e100)")

    @property
    def units(self) -> float:
        """The allowed error in units in the last place."""
        return DEFAULT_ULP if self.ulp is None else self.ulp

    def inside(self, vector: np.ndarray) -> np.ndarray:
        """The point clipped to the range."""
        return vector if self.range is None else np.where(vector == 0, vector, np.copysign(np.clip(np.abs(vector), *self.range), vector))

    def refuse(self, name: str, value: np.ndarray) -> None:
        """Raise ValueError for an input outside the range."""
        outside = value[value != self.inside(value)]
        if outside.size:
            raise ValueError(f"check: the input {name} = {float(outside[0]):g} lies outside range={self.range!r}; give one inside, or a wider range")

    def domain(self, domain: Domain) -> Domain:
        """The part of a domain inside the range. Raises ValueError if it is empty."""
        if self.range is None:
            return domain
        low, high = self.range
        bands = [Interval(-high, -low), Interval(0.0, 0.0), Interval(low, high)] if low else [Interval(-high, high)]
        meets = [(i, max(i.low, b.low), min(i.high, b.high)) for i in domain.intervals for b in bands]
        parts = [Interval(a, b, i.open_low and a == i.low, i.open_high and b == i.high) for i, a, b in meets if a <= b]
        parts = [p for p in parts if p.low < p.high or p.low in p and p.low not in domain.excluded]
        if not parts:
            raise ValueError(f"check: range is {self.range!r}, in which the domain {domain_text(domain)} has no number; give a wider one")
        return Domain(domain.name, tuple(parts), domain.excluded, domain.integer)


DEFAULT = Tolerances()


class Measure:
    """Findings from the values of a function and the reference values.

    The allowed error of a number is the sum of `ulp` units in the last place of the reference value times its condition number, the smallest normal
    number of its type, `atol`, and `rtol` times the reference value. A larger error is explained by lost digits if the shadow values of the program
    from `program(point, order)` are within the bound; or, if there are none, if the formula computed in floats loses as much.
    """

    def __init__(self, names: Sequence[str], tolerances: Tolerances, point_of: Callable[[np.ndarray], dict[str, Any]],
                 program: Callable[[np.ndarray, int], Iterator[ShadowValues | None]]):
        self.names, self.tolerances, self.point_of, self.program = names, tolerances, point_of, program

    def findings(self, vector: np.ndarray, levels: Levels, truths: ReferenceValues) -> dict[int, Finding]:
        """The worst finding of each order that can be compared."""
        kind = ulp_of(levels.dtype)
        rounded = RoundedEvaluation(truths, kind)
        out: dict[int, Finding] = {}
        movement: list[Any] | None = None
        with workdps(mpmath.mp, 60):
            scale = max((abs(t.value) for t in truths.entries if mpmath.isfinite(t.value)), default=mpmath.mpf(0))
            for k, t in enumerate(truths.entries):
                if t.order and truths.kink or levels.error is not None and t.order > levels.error[0]:
                    continue
                where = label(t.order, t.index, self.names, t.directional)
                if levels.error is not None and t.order == levels.error[0]:
                    error = levels.error[1]
                    found = Finding(t.order, where, self.point_of(vector), np.nan, float(t.value), np.inf, 0.0, kind="raises",
                                    message=first_line(message_of(error)))
                    out.setdefault(t.order, found)
                    continue
                if t.order not in levels.values:
                    continue
                value = float(levels.values[t.order][t.index])
                rough = levels.bounds.get(t.order, truths.bounds.get(t.order))
                slack = None if rough is None else float(rough[t.index])
                if slack is not None and not slack <= VAGUE * max(abs(t.value), scale * kind.epsilon):
                    continue
                distance = abs(mpmath.mpf(value) - t.value) if np.isfinite(value) else mpmath.inf
                if movement is None and not distance <= self.tolerances.units * kind.unit(t.value):
                    movement = truths.movement()
                moved = mpmath.mpf(0) if movement is None else movement[k]
                found, allowed = self._finding(t, value, distance, moved, scale, kind, slack, where, vector)
                if not found.agrees:
                    self._explain(found, t, rounded, self.program(vector, t.order), allowed)
                if t.order not in out or is_worse(found, out[t.order]):
                    out[t.order] = found
        return out

    def _explain(self, found: Finding, t: ReferenceNumber, rounded: RoundedEvaluation, program: Iterator[ShadowValues | None], allowed: Any) -> None:
        """Determine whether an error is a loss of digits: by the shadow values of the program, or by the rounded steps of the formula."""
        followed = False
        for exact in program:
            if exact is None:
                break
            number = exact.values[t.order][t.index]
            followed |= number != found.value
            truth = exact.differences[t.index] if exact.differences is not None else t.value
            if not abs(number - truth) <= allowed and not (exact.shadow.beyond and found.kind == "not finite"):
                continue
            if abs(number - found.value) <= allowed:  # the difference quotients lost the digits
                found.kind, found.truth = "agrees", float(truth)
            else:
                found.explained, found.by, found.operation = True, "program", exact.shadow.culprit
            return
        if not followed and rounded.explain(t, found.value):
            found.explained, found.by = True, "formula"

    def _finding(self, t: Any, value: float, distance: Any, moved: Any, scale: Any, kind: Ulp, slack: float | None, where: str,
                 vector: np.ndarray) -> tuple[Finding, Any]:
        """The finding about a number, and its allowed error."""
        size = abs(t.value)
        unit = kind.unit(t.value if size else moved or scale)
        allowed = self.tolerances.units * max(unit, kind.epsilon * moved) + kind.tiny
        allowed += self.tolerances.atol + self.tolerances.rtol * size
        if slack is not None:
            allowed += MARGIN * mpmath.mpf(slack)
        word = "agrees"
        if size > kind.largest:
            distance = mpmath.mpf(kind.error(value, t.value))
        elif size < kind.tiny and abs(value) <= kind.tiny:
            distance = mpmath.mpf(0)  # numbers below the normal ones may be flushed to zero
        if not distance <= allowed:
            word = "differs" if np.isfinite(value) else "not finite"
        return Finding(t.order, where, self.point_of(vector), value, float(t.value), float(distance / unit), float(allowed / unit),
                       condition(t.value, moved) if size else 1.0, word), allowed


MAX_PARTS, MAX_OPERATIONS = 10, 6  # parts of a formula that are examined, and operations in one
ORDINARY = 0.01, 10.0  # magnitudes of ordinary numbers
MIN_WRONG_SHARE = 0.9  # the part of the ordinary points from which on an order counts as wrong everywhere
GROSS_ERROR = 1e-3  # a relative error that is not a loss of digits,
ROUNDING = 1e-10  # unless it is smaller than this part of the typical magnitude
MIN_EXAMPLES = 3  # points in a reported region


class Features:
    """Numbers that distinguish points: the arguments, and parts of the formula."""

    def __init__(self, names: Sequence[str], expressions: Sequence[sympy.Expr]):
        self.names = list(names)[:8]
        self.parts: list[tuple[str, Any]] = []
        if len(expressions) == 1:
            symbols = [sympy.Symbol(name, real=True) for name in names]
            inner = {e for e in sympy.preorder_traversal(expressions[0]) if isinstance(e, sympy.Expr) and e.args and not e.is_number
                     and e.count_ops() <= MAX_OPERATIONS and not isinstance(e, (sympy.exp, sympy.Piecewise)) and (e != expressions[0])}
            for e in sorted(inner, key=lambda e: (e.count_ops(), str(e)))[:MAX_PARTS]:
                with contextlib.suppress(TypeError):  # a function without an op
                    self.parts.append((str(e), from_sympy(e, symbols)))

    def columns(self, vectors: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """The name of each feature, and its values at the points."""
        for k, name in enumerate(self.names):
            yield name, vectors[:, k]
        with np.errstate(all="ignore"):
            for name, function in self.parts:
                try:
                    yield name, np.broadcast_to(function(*vectors.T).double().numpy(), len(vectors))
                except (TypeError, ValueError, ArithmeticError):
                    continue

    def region(self, vectors: np.ndarray, wrong: np.ndarray) -> str:
        """A condition that holds at the wrong points and at no others; "" if there is no simple one, "everywhere" if all points are wrong.

        >>> f = Features(["x"], [])
        >>> f.region(np.array([[-3.0], [-2.0], [1.0], [25.0], [30.0], [40.0]]), np.array([False, False, False, True, True, True]))
        'x > 1 (from 25)'
        """
        if wrong.all():
            return "everywhere"
        if wrong.sum() < MIN_EXAMPLES:
            return ""
        for name, values in self.columns(vectors):
            for shown, column in ((name, values), (f"|{name}|", np.abs(values))):
                bad, good = column[wrong], column[~wrong]
                if np.isnan(column).any():
                    break
                if bad.min() > good.max():
                    return f"{shown} > {good.max():.3g} (from {bad.min():.3g})"
                if bad.max() < good.min():
                    return f"{shown} < {good.min():.3g} (from {bad.max():.3g})"
        return ""


def is_ordinary(vector: np.ndarray) -> bool:
    """Whether all coordinates of a point are 0 or of an ordinary size."""
    return bool(np.all((vector == 0) | (np.abs(vector) >= ORDINARY[0]) & (np.abs(vector) <= ORDINARY[1])))


def hint(a: Agreement, found: Sequence[tuple[np.ndarray, Finding]], below_agree: bool, region: str, framework: str) -> str:
    """The kind of mistake in an order: a wrong derivative, a loss of digits, an overflow, or an exception."""
    wrong = [(v, f) for v, f in found if not f.agrees]
    if not wrong:
        return ""
    where = f" where {region}" if region not in ("", "everywhere") else " everywhere" if region else (
        f" at {len(wrong)} of {len(found)} points{_ranges_text(wrong) if not a.wrong else ''}")
    ordinary = [(v, f) for v, f in found if is_ordinary(v)]
    bad = [f for _, f in ordinary if not f.agrees]
    typical = float(np.median([abs(f.truth) for _, f in ordinary if f.agrees] or [0.0]))  # the typical magnitude
    gross = [f for f in bad if f.kind != "differs" or abs(f.value - f.truth) > max(GROSS_ERROR * abs(f.truth), ROUNDING * typical)]
    kinds = {f.kind for _, f in wrong}
    thing = "the value" if a.order == 0 else "the derivative"
    if kinds == {"raises"}:
        return f"raises{where}"
    if not a.wrong:
        gross = []
    elif ordinary and len(bad) >= MIN_WRONG_SHARE * len(ordinary):
        by = ""
        if len(gross) < MIN_WRONG_SHARE * len(bad):
            by = f", by a relative {np.median([abs(f.value / f.truth - 1) for f in bad if f.truth]):.2g}"
        start = f"wrong at {len(bad)} of {len(ordinary)} ordinary points{by}"
        if below_agree and a.order >= 2:
            return f"{start}, though the orders below are right: {_likely_cause(framework)}"
        return f"{start}: {thing} itself is wrong, not its last digits"
    if gross and len(gross) >= MIN_EXAMPLES:
        return f"{thing} is wrong{where}, by more than its digits"
    names = Counter(f.operation.partition("(")[0] for _, f in wrong if f.operation).most_common(1)
    by = f", by {names[0][0]}" if names else ""
    if kinds == {"not finite"}:
        return f"not finite{where}, where the truth is{by}"
    finite = [f.ulp for _, f in wrong if f.kind == "differs"]
    lost = min(16.0, math.log10(max(finite))) if finite and math.isfinite(max(finite)) else 16.0
    also = f", and it is not finite at {sum(f.kind == 'not finite' for _, f in wrong)} points" if "not finite" in kinds else ""
    return f"digits are lost{where}: {'all' if lost > 15.5 else f'{lost:.0f}'} of 16{by}{also}"


def _ranges_text(found: Sequence[tuple[np.ndarray, Finding]]) -> str:
    """The ranges of the magnitudes of each argument at the points."""
    sizes = np.abs([v for v, _ in found])
    names = flat_names(list(found[0][1].point), [np.shape(x) for x in found[0][1].point.values()])
    shown = [f"|{name}| from {low:.3g} to {high:.3g}" for name, low, high in zip(names, sizes.min(0), sizes.max(0))]
    return f", {', '.join(shown)}" if len(shown) <= 3 else ""


def _likely_cause(framework: str) -> str:
    """The likely reason why a derivative of a right derivative is wrong."""
    if framework == "torch":
        return "the backward takes something for a constant, such as a result of forward that is kept on ctx, .data or .detach()"
    if framework in ("jax", "autograd"):
        return "the rule takes something for a constant, as stop_gradient does"
    return "the gradient takes something for a constant"


MAX_CALLS = 3  # of one op that are checked


def find_wrong_op(run: Run, order: int) -> tuple[str, int] | None:
    """The first op whose derivative differs from SymPy's, and the order; None if every op is right where it was called.

    Order 0 is for a Function whose declared formula has another value than its forward. An op that is right at order 1 and wrong at
    order 2 has a rule that calls another op, and that one is wrong.
    """
    for node in upstream([run.root]):
        if isinstance(node, FunctionNode) and declares_another(node):
            return str(node.op.name), 0
    for k in range(1, order + 1):
        seen: dict[Any, int] = {}
        for node in upstream([run.root]):
            if isinstance(node, (Leaf, DerivativeNode)):
                continue
            seen[node.op] = seen.get(node.op, 0) + 1
            if seen[node.op] <= MAX_CALLS and _is_wrong(node, k):
                return str(node.op.name), k
    return None


def _is_wrong(node: Node, order: int) -> bool:
    try:
        with silence():
            alone = _run_alone(node)
            _, culprit = agreement(Exact(alone, order, np.arange(1.0, 1 + sum(t.numel() for t in alone.leaves)), replay=True))
    except Exception:  # an op that cannot be checked alone is skipped
        return False
    return culprit is not None and culprit.order == order


def _run_alone(node: Node) -> Run:
    """A run of this op alone, with its float arguments as leaves."""
    args, count = node.args or (), len(node.parents)
    leaves: list[Any] = []
    operands: list[Any] = []
    for a, p in zip(args, node.parents):
        if p is not None and a.dtype.kind not in "biu":
            leaves.append(tensor(np.array(a), dtype=a.dtype, requires_grad=True))
            operands.append(leaves[-1])
        else:
            operands.append(tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a)
    y = core(node.op)(*((operands,) if node.op.arity is None else operands), *args[count:])
    weights = np.arange(1, y.numel() + 1, dtype=y.value.dtype).reshape(y.shape)
    return Run(leaves, (y * tensor(weights)).sum(), None)
