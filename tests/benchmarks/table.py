"""Times as ratios, one line of a table of them, and how a table is laid out.

The two sides take turns in one run, so that a machine that slows down slows both. Seconds are those of the CPU, but where threads share the work.
"""

import gc
import importlib
import math
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
CACHING = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
Step = Callable[[], Any]
Clock = Callable[[], float]
READING = 2e-4  # seconds that one reading of the clock covers at least


def seconds(step, repetitions, calls=1, clock=time.process_time):
    """The median time of one call, over readings of some calls each."""
    times = []
    for _ in range(repetitions):
        start = clock()
        for _ in range(calls):
            step()
        times.append((clock() - start) / calls)
    return statistics.median(times)


def ratio(ours, theirs, rounds, block, clock=time.process_time):
    """The median over `rounds` of our time by theirs, each a median over about `block` seconds; and the two median times."""
    once = [max(seconds(step, 3, clock=clock), 1e-9) for step in (ours, theirs)]
    calls = [math.ceil(READING / each) for each in once]  # so that reading the clock, which takes a microsecond, does not count
    counts = [max(1, round(block / (each * n))) for each, n in zip(once, calls)]
    pairs = [(seconds(ours, counts[0], calls[0], clock), seconds(theirs, counts[1], calls[1], clock)) for _ in range(rounds)]
    return statistics.median(a / b for a, b in pairs), statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def import_seconds(module):
    """The time a fresh Python needs to import a module whose bytecode is cached, as in any installation."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=CACHING).stdout)


def import_difference(rounds):
    """The median over `rounds` of `import symgrad` minus `import numpy`, and the two median times."""
    import_seconds("symgrad")
    pairs = [(import_seconds("symgrad"), import_seconds("numpy")) for _ in range(rounds)]
    return statistics.median(a - b for a, b in pairs), statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def bytes_per_node(symgrad, chain, shape, rounds):
    """What a recorded chain holds, by tracemalloc, less the data of its values and residuals, divided by its nodes.

    Array objects, tuples, nodes and Tensors all count; only the elements of the distinct arrays in the graph do not.
    """
    x, y = (symgrad.full(shape, value, requires_grad=True) for value in (0.7, 0.3))
    chain(symgrad, x, y, 2)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        out = chain(symgrad, x, y, rounds)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    nodes, stack = set(), [out.grad_fn]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            stack.extend(parent for parent, _ in node.next_functions if parent is not None)
    computed = [node for node in nodes if node.next_functions]
    arrays = [node.value for node in computed] + [node.residual for node in computed if hasattr(node, "residual")]
    return (held - sum({id(array): array.nbytes for array in arrays}.values())) / len(computed)


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
