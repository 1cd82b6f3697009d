"""Errors drawn against the argument: one panel for each order, ULP on a logarithmic axis, the floats as evenly as they are represented."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.checking.accuracy import BOUNDS
from symgrad.scanning.floats import Floats
from symgrad.scanning.report import ALL, AccuracyReport

__all__ = ["plot"]

LEAST = 2.0**-6  # where an error of 0 is drawn
MOST = 4 * ALL  # where all that is more, or not finite, is drawn
TITLES = ("value", "first derivative", "second derivative", "third derivative")


def plot(report: AccuracyReport, target: Any = None, size: tuple[float, float] | None = None) -> Any:
    """The figure; see `AccuracyReport.plot`."""
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found]
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
        _panel(report, panel, order)
    axes[0].set_title(f"{report.function}: {report.summary}", loc="left", fontsize="medium")
    axes[-1].set_xlabel(" or ".join(report.names) + " (floats in their order: each power of two is as wide as every other)")
    if path is not None:
        figure.savefig(path)
    return figure


def _panel(report: AccuracyReport, panel: Any, order: int) -> None:
    floats = Floats(report.dtype)
    places: list[np.ndarray] = []
    bounds: set[float] = set()
    for sample in report.samples:
        x = _place(floats, sample.points[sample.argument])
        error = _largest([e for index, e in sample.errors.items() if len(index) == order])
        known = ~np.isnan(error)
        if not known.any():
            continue
        places.append(x[known])
        bounds |= {float(x[known].min()), float(x[known].max())}
        shown = np.clip(error[known], LEAST, MOST)
        lost = error[known] > BOUNDS[order]
        panel.scatter(x[known][~lost], shown[~lost], s=6, color="tab:blue", linewidths=0)
        panel.scatter(x[known][lost], shown[lost], s=8, color="tab:red", linewidths=0)
    panel.set_yscale("log", base=2)
    panel.set_ylim(LEAST / 2, 2 * MOST)
    ticks = [1.0, 2.0**10, 2.0**20, 2.0**30, 2.0**40, ALL]
    panel.set_yticks(ticks, ["1", "2¹⁰", "2²⁰", "2³⁰", "2⁴⁰", "no digit"])
    panel.axhline(BOUNDS[order], color="gray", linewidth=0.8, linestyle="--")
    for bound in sorted(bounds):
        panel.axvline(bound, color="lightgray", linewidth=0.5, zorder=0)
    if places:
        low, high = min(p.min() for p in places), max(p.max() for p in places)
        round_ = [(t, p) for t in _ticks(floats) for p in _place(floats, np.array([t], floats.dtype)).tolist() if low <= p <= high]
        marks = round_ if len(round_) > 1 else [(float(floats.at(int(r * floats.rank(floats.info.max)))), r) for r in np.linspace(low, high, 5)]
        panel.set_xticks([p for _, p in marks], [f"{t:.3g}" for t, _ in marks])
    panel.set_ylabel(f"{TITLES[order]}\nerror (ULP)")


def _place(floats: Floats, x: np.ndarray) -> np.ndarray:
    """Where floats stand on the axis, from -1 to 1."""
    return floats.rank(x) / float(floats.rank(floats.info.max))


def _ticks(floats: Floats) -> list[float]:
    largest, tiny = float(floats.info.max), float(floats.info.tiny)
    positive = [tiny, float(floats.info.eps), 1.0, *([1e100, 1e200] if largest > 1e300 else []), largest]
    return [-t for t in reversed(positive)] + [0.0] + positive


def _largest(errors: Sequence[np.ndarray]) -> np.ndarray:
    """The largest of several errors at each point, NaN where none is known."""
    stacked = np.stack(errors)
    known = ~np.isnan(stacked)
    return np.where(known.any(axis=0), np.where(known, stacked, -1.0).max(axis=0), np.nan)
