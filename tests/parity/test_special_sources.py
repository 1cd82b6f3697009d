"""Special functions as `to_torch` and `to_jax` write them: every row of the table, with its parameters, has the numbers of the op."""

import jax
import pytest
import torch

from symgrad.codegen.languages import Jax, Torch
from tests.support.special_sources import CASES, check, generic_cases

jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_torch(name, parameters):
    check(Torch, name, parameters, torch.tensor)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_jax(name, parameters):
    check(Jax, name, parameters, jax.numpy.asarray)


@pytest.mark.parametrize(("name", "parameters"), [*generic_cases()])
def test_generic_parameters(name, parameters):
    check(Torch, name, parameters, torch.tensor, 6)
    check(Jax, name, parameters, jax.numpy.asarray, 6)
