"""One line of a table of times, how it is measured, and how a table is laid out."""

import importlib
import statistics
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tests.benchmarks.measure import ratio, seconds

__all__ = ["Row", "Timing", "agree", "compare", "fastest", "mean_row", "numbers", "optional", "spell", "table", "torch_one_thread"]


class Row(NamedTuple):
    """What was done, beside what, the figure and its bar, and the times it was made of."""

    work: str
    beside: str
    figure: str
    bar: str
    ours: str = ""
    theirs: str = ""


class Timing(NamedTuple):
    """How thoroughly: how many rounds, and about how many seconds each side has in a round."""

    rounds: int
    block: float


def optional(name):
    """A library of the extras, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch_one_thread():
    """torch on one thread, or None."""
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(1)
    return torch


def spell(seconds):
    """A time with three digits, in the unit that suits it."""
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def numbers(result):
    """The arrays of a result of either side: a tensor, an array, a sparse matrix, or a sequence of such."""
    if isinstance(result, (tuple, list)):
        return [array for each in result for array in numbers(each)]
    if hasattr(result, "todense"):
        return [np.asarray(result.todense())]
    return [np.asarray(result.detach() if hasattr(result, "detach") else result)]


def agree(ours, theirs, rtol):
    """Hold two results to the same numbers, to a part `rtol` of the largest of each array: otherwise their times mean nothing."""
    mine, other = numbers(ours), numbers(theirs)
    assert len(mine) == len(other)
    for a, b in zip(mine, other):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=rtol, atol=rtol * float(np.abs(b).max(initial=0.0)))


def fastest(routes, timing):
    """The route with the smallest median time; they are held to the same numbers first."""
    steps = list(routes.values())
    first = steps[0]()
    for step in steps[1:]:
        agree(step(), first, 1e-9)
    return steps[0] if timing.block == 0 else min(steps, key=lambda step: seconds(step, max(3, round(timing.block / seconds(step, 1)))))


def compare(work, beside, ours, theirs, bar, timing,
            rtol=1e-9, clock=time.process_time):
    """Our time by the other's, which is the fastest of its routes where it has several and None where it is not installed.

    Both give the same numbers, unless `rtol` is None: then they are different work.
    """
    limit = "" if bar is None else f"{bar:.2f}"
    if theirs is None:
        return Row(work, beside, "not installed", limit)
    step = fastest(theirs, timing) if isinstance(theirs, Mapping) else theirs
    if rtol is not None:
        agree(ours(), step(), rtol)
    quotient, a, b = ratio(ours, step, *timing, clock)
    return Row(work, beside, quoted(quotient), limit, spell(a), spell(b))


def quoted(quotient):
    """A ratio with two digits or more."""
    return f"{quotient:.2f}" if quotient >= 0.095 else f"{quotient:.2g}"


def mean_row(work, found, bar):
    """The geometric mean of the figures of some rows."""
    figures = [row.figure for row in found]
    missing = next((figure for figure in figures if not figure[:1].isdigit()), None)
    return Row(work, found[0].beside, missing if missing else quoted(statistics.geometric_mean(map(float, figures))), f"{bar:.2f}")


def table(found):
    """The rows in Markdown, in columns."""
    lines = [("work", "beside", "figure", "at most", "ours", "the other"), *found]
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    laid = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths)) for line in lines]
    laid.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in laid)
