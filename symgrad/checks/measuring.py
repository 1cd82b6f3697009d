"""The errors of a function's numbers at a point, the bounds on them, a description of the points with an error, and the op whose rule is wrong."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import condition
from symgrad.carriers.digits import Undefined
from symgrad.checks.saturated import ROUNDINGS, points_beside
from symgrad.checks.tolerances import Tolerances
from symgrad.dtypes.ulp import Ulp, ulp_of
from symgrad.frameworks.calling import flat_names
from symgrad.frameworks.levels import Levels, ShadowDerivatives
from symgrad.reference.accuracy import FACTOR, RoundedEvaluation
from symgrad.reference.sources import MARGIN, VAGUE, ReferenceNumber, ReferenceValues
from symgrad.reports.base import first_line, label, message_of
from symgrad.reports.report import Agreement, Finding
from symgrad.symbolic.conversion import from_sympy
from symgrad.system.restoring import workdps


def is_worse(a: Finding, b: Finding) -> bool:
    """Whether the first finding is worse. The order is: wrong, imprecise, right; among these exceptions, then larger errors.

    Findings that agree are compared by their errors relative to their bounds.
    """
    if a.agrees and b.agrees:
        return a.ulp / a.bound > b.ulp / b.bound
    return (a.wrong, not a.agrees, a.kind == "raises", a.ulp) > (b.wrong, not b.agrees, b.kind == "raises", b.ulp)


class Measure:
    """Findings from the values of a function and the reference values.

    The allowed error of a number is the sum of `ulp` units in the last place of the reference value times its condition number, the smallest normal
    number of its type, `atol`, and `rtol` times the reference value. A larger error is explained by lost digits if the shadow values of the program
    from `program(point, order)` are within the bound; or, if there are none, if the formula computed in floats loses as much.
    """

    def __init__(self, names: Sequence[str], tolerances: Tolerances, point_of: Callable[[np.ndarray], dict[str, Any]],
                 program: Callable[[np.ndarray, int], Iterator[ShadowDerivatives | None]], truths_at: Callable[[np.ndarray], ReferenceValues]):
        self.names, self.tolerances, self.point_of, self.program, self.truths_at = names, tolerances, point_of, program, truths_at

    def findings(self, vector: np.ndarray, levels: Levels, truths: ReferenceValues) -> dict[int, Finding]:
        kind = ulp_of(levels.dtype)
        rounded = RoundedEvaluation(truths, kind)
        out: dict[int, Finding] = {}
        absolute_condition: list[Any] | None = None
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
                if absolute_condition is None and not distance <= self.tolerances.units * kind.unit(t.value):
                    absolute_condition = truths.absolute_condition()
                moved = mpmath.mpf(0) if absolute_condition is None else absolute_condition[k]
                found, allowed = self._finding(t, value, distance, moved, scale, kind, slack, where, vector)
                if not found.agrees:
                    self._explain(found, t, rounded, self.program(vector, t.order), allowed, vector)
                if t.order not in out or is_worse(found, out[t.order]):
                    out[t.order] = found
        return out

    def _explain(self, found: Finding, t: ReferenceNumber, rounded: RoundedEvaluation, program: Iterator[ShadowDerivatives | None],
                 allowed: Any, vector: np.ndarray) -> None:
        """Determine whether an error is a loss of digits: by the shadow values of the program, or by the rounded steps of the formula."""
        followed = departed = False
        for exact in program:
            if exact is None:
                break
            departed = exact.shadow.departed
            number = exact.values[t.order][t.index]
            followed |= number != found.value
            truth = exact.differences[t.index] if exact.differences is not None else t.value
            if not abs(number - truth) <= allowed and not (exact.shadow.beyond and found.kind == "not finite"):
                continue
            if abs(number - found.value) <= allowed:  # the difference quotients lost the digits
                found.kind, found.truth = "agrees", float(truth)
            elif _is_rounding(exact, t, number, found.value, float(rounded.kind.epsilon)):
                found.explained, found.by, found.operation = True, "program", exact.shadow.culprit
            return
        if departed:  # floats take another branch: explained where that is the right one next to the point
            found.explained, found.by = self._is_right_beside(vector, found.value, t, allowed, float(rounded.kind.epsilon)), "program"
        elif not followed and rounded.explain(t, found.value):
            found.explained, found.by = True, "formula"

    def _is_right_beside(self, vector: np.ndarray, value: float, t: ReferenceNumber, allowed: Any, epsilon: float) -> bool:
        """Whether a value is the reference value at a point whose distance rounding explains, or between those of such points."""
        known = [t.value]
        for near in points_beside(vector, epsilon):
            with contextlib.suppress(Undefined):
                known += [e.value for e in self.truths_at(near).entries if (e.order, e.index) == (t.order, t.index)]
        allowed += 4 * ROUNDINGS * epsilon * max(map(abs, known))
        return bool(min(known) - allowed <= value <= max(known) + allowed)

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


def _is_rounding(exact: ShadowDerivatives, t: ReferenceNumber, number: Any, value: float, epsilon: float) -> bool:
    """Whether rounding makes a float of the program as different from its number in many digits as it is."""
    if exact.shadow.culprit or exact.shadow.out_of_range or not np.isfinite(value):
        return True
    moved = (exact.perturbed(epsilon, seed) for seed in range(SAMPLES))
    return any(run is None or abs(value - number) <= FACTOR * abs(run.values[t.order][t.index] - number) for run in moved)


SAMPLES = 3  # runs of a program with rounded operations
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
