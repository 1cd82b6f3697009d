"""A description of an error: the region, as a threshold of an argument or of a part of the formula, and the kind of mistake."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.frameworks.calling import flat_names
from symgrad.reports.cross import Agreement, Finding
from symgrad.symbolic.conversion import from_sympy

__all__ = ["Features", "hint", "is_ordinary"]

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
            for label, column in ((name, values), (f"|{name}|" if name.isidentifier() else f"|{name}|", np.abs(values))):
                bad, good = column[wrong], column[~wrong]
                if np.isnan(column).any():
                    break
                if bad.min() > good.max():
                    return f"{label} > {good.max():.3g} (from {bad.min():.3g})"
                if bad.max() < good.min():
                    return f"{label} < {good.min():.3g} (from {bad.max():.3g})"
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
