"""Networks: what PyTorch said for the same programs, and what it cannot say."""

import programs_losses
import programs_nn
import pytest
from sides import compare, programs, recorded

import symgrad

TEXTS, NUMBERS = recorded(programs_nn), recorded(programs_losses)


@pytest.mark.parametrize("name", programs(programs_nn))
def test_modules_say_what_torchs_say(name):
    compare(programs(programs_nn)[name], symgrad, TEXTS[name], 4e-16)


@pytest.mark.parametrize("name", programs(programs_losses))
def test_functions_give_what_torchs_give(name):
    compare(programs(programs_losses)[name], symgrad, NUMBERS[name], 1e-13)
