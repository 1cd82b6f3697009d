"""The report of a scan: the largest errors by region, the operations in which digits are lost, more accurate forms, and the errors drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.reference.accuracy import BOUNDS
from symgrad.reports.base import REFUTED, BaseReport, Formula, Line, Part, Table, ulp_text
from symgrad.sampling.floats import Floats, bounds
from symgrad.sampling.points import weight

THRESHOLDS = (1, 8, 64, 10**6)
LOST = "digits are lost", "not finite"  # verdicts


@dataclass(frozen=True)
class Worst:
    """The largest error of one order in one region: its ULP, derivative and point, with the float (`value`) and the reference value (`truth`).

    `condition` is the condition number of the derivative at the point; where it is large, no algorithm keeps all digits. It is `wrong` where rounding
    of the steps of the computation does not explain the error.
    """

    region: str
    order: int
    where: str
    ulp: float
    point: tuple[float, ...]
    value: float
    truth: float
    condition: float = 1.0
    wrong: bool = False

    DERIVED: ClassVar[tuple[str, ...]] = ("verdict",)

    @property
    def verdict(self) -> str:
        """Whether the error is within 8, 8, 64 or 512 ULP (for orders 0 to 3), within that times the condition, or beyond both."""
        if self.wrong or not self.lost:
            return "wrong" if self.wrong else "accurate"
        explained = self.ulp <= BOUNDS[self.order] * max(self.condition, 1.0)
        return "not finite" if np.isinf(self.ulp) else "ill-conditioned" if explained else "digits are lost"

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

    `worst` has the largest error of each order in each region, `wrong` the numbers that are wrong and not only imprecise, `above` the part of the
    evenly drawn numbers of an order whose error is above a threshold in ULP, `losses` the operations in which digits are lost, and `better` more
    accurate forms. `samples` are all points with their errors.
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
    wrong: list[Worst] = field(default_factory=list)
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
        """ "refuted" where a number is wrong, "accurate" where every error is within its bound, or within that times the condition of the point, else
        "imprecise"."""
        return REFUTED if self.wrong else "accurate" if all(w.verdict in ("accurate", "ill-conditioned") for w in self.worst) else "imprecise"

    def of_order(self, order: int) -> Worst | None:
        """The largest error of an order; None if no number was compared."""
        return max((w for w in self.worst if w.order == order), key=lambda w: w.ulp, default=None)

    def lost(self) -> list[Worst]:
        """The largest errors by order and region that are beyond their bounds."""
        return [w for w in self.worst if w.lost]

    @property
    def summary(self) -> str:
        """The result in a few words."""
        found = [f"{what} in {len({w.region for w in bad})} of {len(self.samples)} regions, at order{'s' * (len({w.order for w in bad}) > 1)} "
                 f"{', '.join(map(str, sorted({w.order for w in bad})))}"
                 for what, bad in (("the numbers are wrong", self.wrong), ("digits are lost", [w for w in self.worst if w.verdict in LOST])) if bad]
        return "; ".join(found) or "accurate" + ", but for points where the result is ill-conditioned" * bool(self.lost())

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
        yield Table("Worst error of the floats (ULP of the true value)", ("", "ULP", "at", "float", "truth", "condition", ""), [
            (w.where, _error_text(w.ulp), self._at(w.point), repr(w.value), f"{w.truth:.17g}", f"{w.condition:.3g}", w.verdict)
            for w in filter(None, map(self.of_order, orders))])
        found = {(w.region, w.order): w for w in self.worst}
        cells = {key: _error_text(w.ulp) + " *" * w.lost for key, w in found.items()}
        yield Table("Worst error by region", ("region", "points", *(ORDERS[order] for order in orders)), [
            (s.region, str(s.points.shape[1]), *(cells.get((s.region, order), "-") for order in orders)) for s in self.samples])
        yield Table("Part of the evenly drawn numbers with an error above", ("", *(f"{t:,} ULP" for t in THRESHOLDS)), [
            (ORDERS[order], *(f"{100 * self.above[order][t]:.3g}%" for t in THRESHOLDS)) for order in orders if order in self.above])
        for where in dict.fromkeys(w.where for w in self.wrong):
            regions = [w for w in self.wrong if w.where == where]
            first = min(regions, key=lambda w: weight(w.point))
            yield Line(f"{'the value' if not first.order else where} is wrong: at {self._at(first.point)} it is {first.value!r}, but the true one is "
                       f"{first.truth:.17g}, and the rounding of its steps does not explain this ({len(regions)} of {len(self.samples)} regions)")
        for loss in self.losses:
            names = list(loss.regions)
            if len(names) > 3:
                names = [f"{', '.join(names[:2])} and {len(names) - 2} more regions"]
            yield Line(f"lost at order {', '.join(map(str, loss.orders))} ({', '.join(names)}) {loss}")
        if self.better:
            yield Table("Forms that keep the digits (worst ULP at the same points)", ("write", "as", "", *(ORDERS[order] for order in orders)), [
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
        count = self.order + 1
        path = path_or_axes if isinstance(path_or_axes, (str, os.PathLike)) or hasattr(path_or_axes, "write") else None
        if path_or_axes is None or path is not None:
            figure: Any = Figure(figsize=size or (9.0, 2.2 * count + 0.8), layout="constrained")
            axes = list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])
        else:
            axes = list(np.atleast_1d(path_or_axes))
            if len(axes) not in (1, count):
                raise ValueError(f"plot: {len(axes)} axes were given for {count} orders; give one for each, or one for the value alone")
            figure = axes[0].figure
        for order, panel in enumerate(axes):
            _draw_panel(self, panel, order)
        axes[0].set_title(f"{self.function}: {self.summary}", loc="left", fontsize="medium")
        axes[-1].set_xlabel(" or ".join(self.names) + " (every size of floats is as wide as every other)")
        if path is not None:
            figure.savefig(path)
        return figure


ORDERS = ("value", "1st derivative", "2nd derivative", "3rd derivative")


def _error_text(ulp: float) -> str:
    return ulp_text(ulp) + " (no digit)" * bool(ALL_DIGITS <= ulp < np.inf)


LOWEST = 2.0**-6  # the position of an error of 0
HIGHEST = 4 * ALL_DIGITS  # where all that is more, or not finite, is drawn


def _draw_panel(report: Any, panel: Any, order: int) -> None:
    axis = _Axis(Floats(report.dtype))
    places: list[np.ndarray] = []
    for sample in report.samples:
        error = np.fmax.reduce([e for index, e in sample.errors.items() if len(index) == order])  # NaN where all are unknown
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
        inner = [p for p in range(len(axis.cuts)) if low <= p <= high]
        for place in inner:
            panel.axvline(place, color="lightgray", linewidth=0.5, zorder=0)
        marks = inner if len(inner) > 2 else np.linspace(low, high, 5).tolist()
        panel.set_xticks(marks, [f"{axis.at(p):.3g}" for p in marks], fontsize="small", rotation=30)
    panel.set_ylabel(f"{ORDERS[order]}\nerror (ULP)")


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

