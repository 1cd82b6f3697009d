"""`python -m tests.benchmarks` measures and prints the table; `--quick` shows in seconds that every row can be measured."""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import symgrad
from tests.benchmarks.chain import OPS, autograd_step, chain, eager_step, in_place, mutating_step, numpy_step, views, writes
from tests.benchmarks.measure import bytes_per_node, import_difference, ratio

INSTALL = "pip install -e '.[parity]'"


class Row(NamedTuple):
    """One line of the table: what was done, beside what, the figure and its bar, and the times it was made of."""

    work: str
    beside: str
    figure: str
    bar: str
    ours: str
    theirs: str


def optional(name: str) -> Any:
    """A library of the extras, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def spell(seconds: float) -> str:
    """A time with three digits, in the unit that suits it."""
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def timed(shape: tuple[int, ...], name: str, theirs: Any, bar: float | None, rounds: int, block: float, ours: Any = None) -> Row:
    """The chain at one shape beside another library, whose step is None where it is not installed; `ours` in place of symgrad's."""
    work = f"{OPS} ops{', NumPy by hand' if ours else ''}, shape {shape}"
    limit = "" if bar is None else f"{bar:.2f}"
    if theirs is None:
        return Row(work, name, "not installed", limit, "", "")
    ours = ours or eager_step(symgrad, shape)
    for mine, other in zip(ours(), theirs()):  # the same gradients, or the times mean nothing
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-12)
    quotient, a, b = ratio(ours, theirs, rounds, block)
    return Row(work, name, f"{quotient:.2f}", limit, spell(a), spell(b))


def mutating(name: str, work: Any, torch: Any, bar: float | None, rounds: int, block: float) -> Row:
    """In-place operations or views at 10 elements, beside torch."""
    limit = "" if bar is None else f"{bar:.2f}"
    if torch is None:
        return Row(name, "torch eager", "not installed", limit, "", "")
    ours, theirs = mutating_step(symgrad, work), mutating_step(torch, work)
    np.testing.assert_allclose(np.asarray(ours()[0]), np.asarray(theirs()[0]), rtol=1e-12)
    quotient, a, b = ratio(ours, theirs, rounds, block)
    return Row(name, "torch eager", f"{quotient:.2f}", limit, spell(a), spell(b))


def rows(quick: bool) -> Iterator[Row]:
    """Every line of the table, measured one after the other."""
    rounds, block = (1, 0.0) if quick else (25, 0.02)
    torch, autograd = optional("torch"), optional("autograd")
    if torch is not None:
        torch.set_num_threads(1)
    for shape, bar in (((), 0.35), ((10,), 0.40), ((1000,), 0.90)):
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), bar, rounds, block)
    for shape in ((10,), (1000,)):  # what the arithmetic alone takes, with no graph at all
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), None, rounds, block, numpy_step(shape))
    yield timed((100_000,), "NumPy by hand", numpy_step((100_000,)), 1.15, rounds, block)
    yield timed((), "HIPS autograd", autograd and autograd_step(autograd, ()), 0.20, rounds, block)
    for name, work, bar in (("120 ops in place", in_place, 0.60), ("120 views", views, 0.60), ("60 writes through views", writes, None)):
        yield mutating(f"{name}, shape (10,)", work, torch, bar, rounds, block)
    extra, ours, theirs = import_difference(1 if quick else 11)
    yield Row("import symgrad", "import numpy", f"{extra:+.3f} s", "+0.15 s", spell(ours), spell(theirs))
    for shape in ((), (1000,)):
        held = bytes_per_node(symgrad, chain, shape, 5 if quick else 200)
        yield Row(f"memory of a recorded graph, shape {shape}", "the data of its arrays", f"{held:+.0f} bytes/node", "+700 bytes/node", "", "")


def table(found: list[Row]) -> str:
    """The rows in Markdown, in columns."""
    lines = [("work", "beside", "figure", "at most", "ours", "the other"), *found]
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    laid = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths)) for line in lines]
    laid.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in laid)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and say what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition of everything: figures of no worth, in seconds")
    found = list(rows(parser.parse_args(arguments).quick))
    print(table(found))
    print(f"\nPython {platform.python_version()}, NumPy {np.__version__}, one thread, float64; ratios of times taken in turns, medians.")
    missing = sorted({row.beside for row in found if row.figure == "not installed"})
    if missing:
        print(f"Not measured: {' and '.join(missing)}. To install what is missing: {INSTALL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
