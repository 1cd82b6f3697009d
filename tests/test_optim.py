"""Optimizers: the numbers and words of PyTorch's, to the last digit where its square root is exact."""

import programs_optim
import pytest
from sides import compare, programs, recorded

import symgrad

RECORDED = recorded(programs_optim)
# PyTorch's vector library rounds one square root in a hundred the other way (of doubles; one in six of singles), which every later step carries on.
DIFFERENCES = {"adam": 1e-14, "adam_w": 1e-14, "complex_numbers": 1e-14, "network": 1e-13, "single_precision": 1e-6}


@pytest.mark.parametrize("name", programs(programs_optim))
def test_optimizers_say_what_torchs_say(name):
    compare(programs(programs_optim)[name], symgrad, RECORDED[name], DIFFERENCES.get(name, 0.0))
