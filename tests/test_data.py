"""Data sets, samplers and loaders: what PyTorch said for the same programs, and what threads do."""

import programs_data
import pytest
from sides import compare, programs, recorded

import symgrad

RECORDED = recorded(programs_data)


@pytest.mark.parametrize("name", programs(programs_data))
def test_data_come_as_torchs_come(name):
    compare(programs(programs_data)[name], symgrad, RECORDED[name])
