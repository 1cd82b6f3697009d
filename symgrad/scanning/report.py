"""The report of a scan: the largest errors by region, the operations in which digits are lost, more accurate forms, and the errors drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.reference.accuracy import BOUNDS
from symgrad.reports.base import BaseReport, Formula, Line, Part, Table, ulp_text
from symgrad.sampling.floats import Floats, bounds

THRESHOLDS = (1, 8, 64, 10**6)


@dataclass(frozen=True)
class Worst:
    """The largest error of one order in one region: its ULP, derivative and point, with the float (`value`) and the reference value (`truth`).

    `condition` is the condition number of the derivative at the point; where it is large, no algorithm keeps all digits.
    """

    region: str
    order: int
    where: str
    ulp: float
    point: tuple[float, ...]
    value: float
    truth: float
    condition: float = 1.0

    DERIVED: ClassVar[tuple[str, ...]] = ("verdict",)

    @property
    def verdict(self) -> str:
        """Whether the error is within 8, 8, 64 or 512 ULP (for orders 0 to 3), within that times the condition, or beyond both."""
        if self.ulp <= BOUNDS[self.order]:
            return "accurate"
        if np.isinf(self.ulp):
            return "not finite"
        return "ill-conditioned" if self.ulp <= BOUNDS[self.order] * max(self.condition, 1.0) else "digits are lost"

    @property
    def lost(self) -> bool:
        """Whether the error is beyond the bound, regardless of the condition."""
        return self.ulp > BOUNDS[self.order]


@dataclass(frozen=True)
class Loss:
    """An operation in which the digits of a result are lost: its result is inaccurate although its operands are accurate.

    `formula` is the operation over its operands, `operands` their values, `value` the float and `truth` the reference value (as text, since it may
    be beyond any float), `line` the line of the user's code; in a backward pass `backward_of` is the node whose pullback computes it. `reason`
    describes the loss.
    """

    op: str
    reason: str
    formula: str
    operands: dict[str, float]
    value: float
    truth: str
    expression: Any
    line: str
    backward_of: str
    orders: tuple[int, ...]
    regions: tuple[str, ...]
    point: tuple[float, ...]

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value!r}" for name, value in self.operands.items())
        where = f"in the pullback of {self.backward_of}, " if self.backward_of else ""
        line = f", at {self.line}" if self.line else ""
        return f"{where}{self.op}: {self.formula}{f' at {at}' if at else ''} gives {self.value!r} in place of {self.truth}: {self.reason}{line}"


@dataclass(frozen=True)
class Better:
    """A more accurate form: the part `found` of the formula rewritten as `better`, and the largest errors by order before and after.

    Both were measured at the same points. `form` is the formula with the rewritten part, `regions` the number of regions by order with errors
    beyond their bounds, before and after.
    """

    found: Any
    better: Any
    name: str
    form: Any
    before: dict[int, float]
    after: dict[int, float]
    regions: dict[int, tuple[int, int]]

    def cell(self, order: int) -> str:
        """Before and after, as a cell of a table."""
        lost, left = self.regions[order]
        return f"{_error_text(self.before[order])} → {_error_text(self.after[order])}" + (f" ({lost} regions → {left})" if left else "")


@dataclass
class Sample:
    """The points of one region and the errors of every derivative there, NaN without a reference value. The first `drawn` were drawn evenly."""

    region: str
    argument: int
    points: np.ndarray
    errors: dict[tuple[int, ...], np.ndarray]
    drawn: int


@dataclass(repr=False)
class AccuracyReport(BaseReport):
    """The answer of `symgrad.accuracy`; print it, show it in a notebook, or draw it with `plot`.

    `worst` has the largest error of each order in each region, `above` the part of the evenly drawn numbers of an order whose error is above
    a threshold in ULP, `losses` the operations in which digits are lost, and `better` more accurate forms. `samples` are all points with their
    errors.
    """

    DERIVED = "summary", "ok"
    HIDDEN = ("samples",)

    function: str
    names: list[str]
    dtype: str
    order: int
    domains: list[str]
    formula: Any = None
    truth: str = ""
    worst: list[Worst] = field(default_factory=list)
    above: dict[int, dict[int, float]] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    better: list[Better] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    points: int = 0
    outside: int = 0
    undecided: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """ "accurate" where every error is within its bound, or within the bound times the condition of the point, else "imprecise"."""
        return "accurate" if all(w.verdict in ("accurate", "ill-conditioned") for w in self.worst) else "imprecise"

    def of_order(self, order: int) -> Worst | None:
        """The largest error of an order; None if no number was compared."""
        return max((w for w in self.worst if w.order == order), key=lambda w: w.ulp, default=None)

    def lost(self) -> list[Worst]:
        """The largest errors by order and region that are beyond their bounds."""
        return [w for w in self.worst if w.lost]

    @property
    def summary(self) -> str:
        """The result in a few words."""
        bad = [w for w in self.worst if w.verdict in ("digits are lost", "not finite")]
        if bad:
            regions = len({w.region for w in bad})
            orders = sorted({w.order for w in bad})
            return f"digits are lost in {regions} of {len(self.samples)} regions, at order{'s' * (len(orders) > 1)} {', '.join(map(str, orders))}"
        conditioned = [w for w in self.worst if w.lost]
        return "accurate, but for points where the result is ill-conditioned" if conditioned else "accurate"

    @property
    def headline(self) -> str:
        """The first line: the function and the result."""
        return f"{self.function}: {self.summary}"

    def parts(self) -> Iterator[Part]:
        """The parts of the printed report, in order."""
        where = ", ".join(f"{name} in {d}" for name, d in zip(self.names, self.domains))
        yield Line(f"{self.points:,} points ({self.dtype}) with {where}, in {self.seconds:.1f} s; the truth is {self.truth}")
        if self.formula is not None:
            yield Formula("f", self.formula)
        orders = range(self.order + 1)
        rows: list[tuple[str, ...]] = []
        for w in filter(None, map(self.of_order, orders)):
            rows.append((w.where, _error_text(w.ulp), self._at(w.point), repr(w.value), f"{w.truth:.17g}", f"{w.condition:.3g}", w.verdict))
        yield Table("Worst error of the floats (ULP of the true value)", ("", "ULP", "at", "float", "truth", "condition", ""), rows)
        found = {(w.region, w.order): w for w in self.worst}
        rows = []
        for s in self.samples:
            cells = [found.get((s.region, order)) for order in orders]
            rows.append((s.region, str(s.points.shape[1]), *("-" if w is None else _error_text(w.ulp) + (" *" if w.lost else "") for w in cells)))
        yield Table("Worst error by region", ("region", "points", *(_ORDERS[order] for order in orders)), rows)
        yield Table("Part of the evenly drawn numbers with an error above", ("", *(f"{t:,} ULP" for t in THRESHOLDS)), [
            (_ORDERS[order], *(f"{100 * self.above[order][t]:.3g}%" for t in THRESHOLDS)) for order in orders if order in self.above])
        for loss in self.losses:
            regions = list(loss.regions)
            if len(regions) > 3:
                regions = [f"{', '.join(regions[:2])} and {len(regions) - 2} more regions"]
            yield Line(f"lost at order {', '.join(map(str, loss.orders))} ({', '.join(regions)}) {loss}")
        if self.better:
            yield Table("Forms that keep the digits (worst ULP at the same points)", ("write", "as", "", *(_ORDERS[order] for order in orders)), [
                (str(b.found), str(b.better), b.name, *map(b.cell, orders)) for b in self.better])

    def _at(self, point: Sequence[float]) -> str:
        return ", ".join(f"{name} = {x!r}" for name, x in zip(self.names, point))

    def plot(self, path_or_axes: Any = None, *, size: tuple[float, float] | None = None) -> Any:
        """Draw the errors against the argument, one panel for each order, with the bounds of the regions; gives matplotlib's figure.

        A path saves the figure there, in the format its ending names; axes (one, or a sequence with one for each order) are drawn into.
        Of several arguments each point stands at the argument that its region is about. Raises ImportError where matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("drawing a report needs matplotlib: pip install 'symgrad[visual]'") from None
        orders = range(self.order + 1)
        path = path_or_axes if isinstance(path_or_axes, (str, os.PathLike)) or hasattr(path_or_axes, "write") else None
        if path_or_axes is None or path is not None:
            figure: Any = Figure(figsize=size or (9.0, 2.2 * len(orders) + 0.8), layout="constrained")
            axes = list(figure.subplots(len(orders), 1, sharex=True, squeeze=False)[:, 0])
        else:
            axes = list(path_or_axes) if isinstance(path_or_axes, (Sequence, np.ndarray)) else [path_or_axes]
            if len(axes) not in (1, len(orders)):
                raise ValueError(f"plot: {len(axes)} axes were given for {len(orders)} orders; give one for each, or one for the value alone")
            figure = axes[0].figure
        for order, panel in zip(orders, axes):
            _draw_panel(self, panel, order)
        axes[0].set_title(f"{self.function}: {self.summary}", loc="left", fontsize="medium")
        axes[-1].set_xlabel(" or ".join(self.names) + " (every size of floats is as wide as every other)")
        if path is not None:
            figure.savefig(path)
        return figure


_ORDERS = ("value", "1st derivative", "2nd derivative", "3rd derivative")


def _error_text(ulp: float) -> str:
    return ulp_text(ulp) + " (no digit)" * bool(ALL_DIGITS <= ulp < np.inf)


LOWEST = 2.0**-6  # the position of an error of 0
HIGHEST = 4 * ALL_DIGITS  # where all that is more, or not finite, is drawn
TITLES = ("value", "first derivative", "second derivative", "third derivative")


def _draw_panel(report: Any, panel: Any, order: int) -> None:
    axis = _Axis(Floats(report.dtype))
    places: list[np.ndarray] = []
    for sample in report.samples:
        error = _largest([e for index, e in sample.errors.items() if len(index) == order])
        known = ~np.isnan(error)
        if not known.any():
            continue
        x, shown = axis.place(sample.points[sample.argument][known]), np.clip(error[known], LOWEST, HIGHEST)
        lost = error[known] > BOUNDS[order]
        panel.scatter(x[~lost], shown[~lost], s=6, color="tab:blue", linewidths=0)
        panel.scatter(x[lost], shown[lost], s=8, color="tab:red", linewidths=0)
        places.append(x)
    panel.set_yscale("log", base=2)
    panel.set_ylim(LOWEST / 2, 2 * HIGHEST)
    panel.set_yticks([1.0, 2.0**10, 2.0**20, 2.0**30, 2.0**40, ALL_DIGITS], ["1", "2¹⁰", "2²⁰", "2³⁰", "2⁴⁰", "no digit"])
    panel.axhline(BOUNDS[order], color="gray", linewidth=0.8, linestyle="--")
    if places:
        low, high = min(p.min() for p in places), max(p.max() for p in places)
        inner = [(c, p) for c, p in zip(axis.cuts, range(len(axis.cuts))) if low <= p <= high]
        for _, place in inner:
            panel.axvline(place, color="lightgray", linewidth=0.5, zorder=0)
        marks = inner if len(inner) > 2 else [(axis.at(p), p) for p in np.linspace(low, high, 5)]
        panel.set_xticks([p for _, p in marks], [f"{t:.3g}" for t, _ in marks], fontsize="small", rotation=30)
    panel.set_ylabel(f"{TITLES[order]}\nerror (ULP)")


class _Axis:
    """An axis of floats: a unit between neighbouring bounds of regions, in which equal lengths hold equal numbers of floats."""

    def __init__(self, floats: Floats):
        self.floats = floats
        positive = [high for _, _, high in bounds(floats)]
        self.cuts = [-x for x in reversed(positive)] + [0.0] + positive
        self.ranks = [float(floats.rank(x)) for x in self.cuts]

    def place(self, x: np.ndarray) -> np.ndarray:
        """The positions of floats on the axis."""
        return np.interp(self.floats.rank(x).astype(np.float64), self.ranks, np.arange(len(self.cuts)))

    def at(self, place: float) -> float:
        """The float at a position."""
        return float(self.floats.at(int(np.interp(place, np.arange(len(self.cuts)), self.ranks))))


def _largest(errors: Sequence[np.ndarray]) -> np.ndarray:
    """The largest of several errors at each point; NaN if all are unknown."""
    stacked = np.stack(errors)
    known = ~np.isnan(stacked)
    return np.where(known.any(axis=0), np.where(known, stacked, -1.0).max(axis=0), np.nan)
