"""The testing kit: every check on every op of the registry, and what the plugin costs where nobody uses it."""

import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from symgrad.testing import check_op
from tests.benchmarks.table import Row, spell
from tests.support.claims import CASES, attack_on

STARTS = ("-p", "no:cacheprovider", "-q", "--no-header", "--collect-only", "-c", os.devnull, os.devnull)


def attacked(case, profile):
    """The seconds of CPU time that all checks of one op with one tuple of parameters take."""
    start = time.process_time()
    assert check_op(attack_on(*CASES[case], profile))
    return time.process_time() - start


def start_of_pytest(*options):
    """Seconds from the start of pytest to its end, with nothing to do."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pytest", *STARTS, *options], capture_output=True, check=False)
    return time.perf_counter() - start


def rows(timing):
    """The median time of `check_op` at the default profile, the time for the whole registry at the profile of continuous integration, the plugin."""
    quick = timing.block == 0
    single = [k for k, (op, _) in enumerate(CASES) if op.kind == "elementwise" and op.differentiable]
    single = [next(k for k in single if CASES[k][0].name == "exp")] if quick else single
    attacked(single[0], "dev")
    found = statistics.median(attacked(k, "dev") for k in single)
    yield Row("check_op, profile dev, elementwise ops of the registry", "seconds", f"{found:.2f}", "1.50", spell(found))
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        cases = single if quick else range(len(CASES))
        list(pool.map(attacked, cases, ["ci"] * len(cases)))
    whole = time.perf_counter() - start
    yield Row("the registry under attack, profile ci, two processes", "seconds", f"{whole:.0f}", "480")
    pairs = [(start_of_pytest(), start_of_pytest("-p", "no:symgrad")) for _ in range(1 if quick else timing.rounds)]
    cost = statistics.median(a - b for a, b in pairs)
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    yield Row("start of pytest with the plugin, unused", "without it", f"{cost:+.3f} s", "+0.05 s", spell(ours), spell(theirs))
