"""The testing kit: every check on every elementwise op of the registry."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from symgrad.op import REGISTRY
from symgrad.testing import check_op
from tests.benchmarks.table import Row, Timing, spell


def rows(timing: Timing) -> Iterator[Row]:
    """The time of `check_op` with the profile that is the default."""
    ops = [op for op in REGISTRY.values() if op.kind == "elementwise" and op.differentiable]
    check_op(REGISTRY["exp"])
    times = []
    for op in ops[::30 if timing.block == 0 else 1]:
        start = time.process_time()
        assert check_op(op)
        times.append(time.process_time() - start)
    found = statistics.median(times)
    yield Row("check_op, profile dev, an elementwise op of the registry", "seconds", f"{found:.2f}", "1.50", spell(found))
