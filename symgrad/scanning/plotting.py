"""Errors drawn against the argument: one panel for each order, ULP on a logarithmic axis, the floats as evenly as they are represented."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.reference.accuracy import BOUNDS
from symgrad.sampling.floats import Floats
from symgrad.sampling.regions import bounds

__all__ = ["plot"]

LOWEST = 2.0**-6  # the position of an error of 0
HIGHEST = 4 * ALL_DIGITS  # where all that is more, or not finite, is drawn
TITLES = ("value", "first derivative", "second derivative", "third derivative")


def plot(report: Any, target: Any = None, size: tuple[float, float] | None = None) -> Any:
    """The figure of an `AccuracyReport`; see its method `plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("drawing a report needs matplotlib: pip install 'symgrad[visual]'") from None
    orders = range(report.order + 1)
    path = target if isinstance(target, (str, os.PathLike)) or hasattr(target, "write") else None
    if target is None or path is not None:
        figure: Any = Figure(figsize=size or (9.0, 2.2 * len(orders) + 0.8), layout="constrained")
        axes = list(figure.subplots(len(orders), 1, sharex=True, squeeze=False)[:, 0])
    else:
        axes = list(target) if isinstance(target, (Sequence, np.ndarray)) else [target]
        if len(axes) not in (1, len(orders)):
            raise ValueError(f"plot: {len(axes)} axes were given for {len(orders)} orders; give one for each, or one for the value alone")
        figure = axes[0].figure
    for order, panel in zip(orders, axes):
        _draw_panel(report, panel, order)
    axes[0].set_title(f"{report.function}: {report.summary}", loc="left", fontsize="medium")
    axes[-1].set_xlabel(" or ".join(report.names) + " (every size of floats is as wide as every other)")
    if path is not None:
        figure.savefig(path)
    return figure


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
