"""How thoroughly hypothesis searches (set HYPOTHESIS_PROFILE to dev, the default, ci or thorough), what is left to the sweep, and that no test
leaves ops behind."""

import gc
import os
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

for _name, _examples in {"dev": 25, "ci": 60, "thorough": 2000}.items():
    settings.register_profile(_name, max_examples=_examples, deadline=None, derandomize=_name == "ci", print_blob=True,
                              suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


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


@pytest.fixture(autouse=True, scope="module")
def _what_is_old_is_not_searched_for_garbage():
    """What the modules before have left in caches makes each collection by a test take a second."""
    gc.collect()
    gc.freeze()


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
