"""How thoroughly hypothesis searches (set HYPOTHESIS_PROFILE to dev, the default, ci or thorough), and a fixture for ops of a test."""

import os

import pytest
from hypothesis import HealthCheck, settings

for _name, _examples in {"dev": 25, "ci": 60, "thorough": 2000}.items():
    settings.register_profile(_name, max_examples=_examples, deadline=None, derandomize=_name == "ci", print_blob=True,
                              suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture
def declare():
    """`symgrad.elementwise`, whose ops are gone after the test."""
    import symgrad
    from symgrad import extending
    from symgrad.op import REGISTRY

    before = set(REGISTRY)
    yield symgrad.elementwise
    for name in set(REGISTRY) - before:
        extending._forget(name)
