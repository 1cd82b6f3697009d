"""How hypothesis searches, what is left to the sweep, and that no test leaves ops behind.

`pytest` draws the same examples in each run: its profile `ci` is fixed. `pytest -m sweep` (or with any other `-m`) explores: it draws from a new
seed, which the header names and `--hypothesis-seed=N` sets again. HYPOTHESIS_PROFILE selects a profile: ci, dev (fewer examples, new ones in
each run), sweep, fixed (as many, the same in each run) or thorough. `--part K/N` runs every N-th of the tests that are selected, from the K-th on:
a quick look at all families, and the N parts together are the whole.
"""

import gc
import os
import random
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

for _name, _examples in {"dev": 25, "ci": 30, "fixed": 60, "sweep": 60, "thorough": 2000}.items():
    settings.register_profile(_name, max_examples=_examples, deadline=None, derandomize=_name in ("ci", "fixed"), print_blob=True,
                              suppress_health_check=[HealthCheck.too_slow])


def _part(text):
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise pytest.UsageError(f"--part takes K/N with 1 <= K <= N, such as 1/3, and was given {text!r}")
    return int(k), int(n)


def pytest_addoption(parser):
    parser.addoption("--part", type=_part, metavar="K/N", help="only every N-th of the selected tests, from the K-th on")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Select the profile, and the seed of a run that explores; workers of pytest-xdist are given the seed of the whole run."""
    name = os.environ.get("HYPOTHESIS_PROFILE", "ci" if config.option.markexpr == "not sweep" else "sweep")
    settings.load_profile(name)
    if name not in ("ci", "fixed") and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**31))


def pytest_report_header(config):
    """The seed, so that a failure can be run again."""
    seed = config.option.hypothesis_seed
    return [f"seed of this run: {seed} (again by --hypothesis-seed={seed})"] if seed is not None else []


@pytest.fixture(scope="session")
def new_seed(request):
    """A number that is another one in each run that explores, and 0 where none is given."""
    seed = request.config.option.hypothesis_seed or "0"
    return int(seed) if seed.isdecimal() else random.Random(seed).randrange(2**31)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the parameters of tests that are `sampled` for the sweep, all but a few that are spread evenly."""
    cases = defaultdict(list)
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            cases[item.nodeid.partition("[")[0], sampled.args[0]].append(item)
    for (_, count), found in cases.items():
        kept = {len(found) * k // count for k in range(count)}
        for i, item in enumerate(found):
            if i not in kept:
                item.add_marker("sweep")


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_collection_takes_a_part(config, items):
    """After `-m` and `-k` have selected: keep the part that was asked for, and count the others as deselected."""
    if config.option.part is not None:
        k, n = config.option.part
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % n != k - 1])
        items[:] = items[k - 1::n]


@pytest.fixture(autouse=True, scope="module")
def _what_is_old_is_not_searched_for_garbage():
    """What the modules before have left in caches makes each collection by a test take a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _the_same_random_numbers_in_each_run():
    """What a test draws without a seed of its own depends on no other test."""
    import numpy as np

    import symgrad

    symgrad.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _leave_no_ops_behind():
    """Ops that a test declares are gone after it."""
    from symgrad.graph.op import REGISTRY
    from symgrad.methods import extending

    yield
    for name in set(REGISTRY) - extending.BUILT_IN:
        extending._unregister(name)


@pytest.fixture(autouse=True)
def _without_hooks_of_other_tests(monkeypatch):
    """From its first hook on, a process passes backward by the general loop: each test begins without."""
    from symgrad.graph.node import all_threads

    monkeypatch.setattr(all_threads, "hooked", False)


@pytest.fixture
def declare():
    """`symgrad.elementwise`, whose ops are gone after the test."""
    import symgrad

    return symgrad.elementwise


@pytest.fixture
def made():
    """`op_from_sympy` without its proof, whose ops are gone after the test."""
    from symgrad import op_from_sympy

    return lambda name, *args, **kwargs: op_from_sympy(name, *args, **{"check": False, **kwargs})
