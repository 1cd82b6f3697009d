"""First derivatives, op by op: chains of 120 ops beside torch, HIPS autograd and NumPy; the time of the import, and the memory of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import symgrad
from tests.benchmarks.chain import OPS, autograd_step, chain, eager_step, in_place, mutating_step, numpy_step, views, writes
from tests.benchmarks.measure import bytes_per_node, import_difference, ratio
from tests.benchmarks.table import Row, Timing, optional, spell, torch_one_thread


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


def rows(timing: Timing) -> Iterator[Row]:
    """Every line, measured one after the other."""
    rounds, block = timing
    quick = block == 0
    torch, autograd = torch_one_thread(), optional("autograd")
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
