"""How thoroughly hypothesis searches (set HYPOTHESIS_PROFILE to dev, the default, ci or thorough), and that no test leaves ops behind."""

import os

import pytest
from hypothesis import HealthCheck, settings

for _name, _examples in {"dev": 25, "ci": 60, "thorough": 2000}.items():
    settings.register_profile(_name, max_examples=_examples, deadline=None, derandomize=_name == "ci", print_blob=True,
                              suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(autouse=True)
def _leave_no_ops_behind():
    """Ops that a test declares are gone after it."""
    from symgrad.graph.op import REGISTRY
    from symgrad.methods import extending

    yield
    for name in set(REGISTRY) - extending.BUILT_IN:
        extending._forget(name)


@pytest.fixture
def declare():
    """`symgrad.elementwise`, whose ops are gone after the test."""
    import symgrad

    return symgrad.elementwise
