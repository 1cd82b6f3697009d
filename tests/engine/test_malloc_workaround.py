"""Memory that a backward pass frees stays with the process."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from symgrad.engine import malloc_workaround

FAULTS = """
import resource, symgrad
from tests.benchmarks.first import numpy_step
from tests.benchmarks.first import eager_step, timed
from tests.benchmarks.table import Timing

timed((1000,), "NumPy by hand", numpy_step((1000,)), None, Timing(2, 0.01))  # other work before, after which nothing lies above the arrays
step, counts = eager_step(symgrad, (100_000,)), []
for _ in range(6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(counts[0], max(counts[2:]))
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.sweep
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not that of glibc")
def test_repeated_passes_get_no_new_pages():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, cwd=ROOT)
    first, later = map(int, done.stdout.split())
    assert first > 20_000 and later < first / 10


def test_one_block_is_held_of_the_size_of_the_largest(monkeypatch):
    monkeypatch.setattr(malloc_workaround, "_held", [malloc_workaround._held[0][:0]])
    for nbytes, held in ((100, 0), (100_000, 100_000), (80_000, 100_000), (200_000, 200_000), (malloc_workaround.MOST + 1, 200_000)):
        malloc_workaround.hold_heap(nbytes)
        assert malloc_workaround._held[0].nbytes == held
