"""Times as ratios: the two sides take turns in one run, so that a machine that slows down slows both.

Seconds are those of the CPU, but where threads share the work.
"""

import gc
import math
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
