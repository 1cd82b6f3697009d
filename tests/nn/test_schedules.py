"""Schedules of learning rates and averages of parameters: PyTorch's values, errors and warnings."""

import pytest

import symgrad
from tests.support import programs_schedules
from tests.support.sides import compare, programs, recorded

RECORDED = recorded(programs_schedules)


@pytest.mark.parametrize("name", programs(programs_schedules))
def test_schedules_match_torch(name):
    compare(programs(programs_schedules)[name], symgrad, RECORDED[name], 1e-15)
