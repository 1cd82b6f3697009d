"""Recorded programs printed as source of PyTorch and JAX compute what the function does."""

import jax
import pytest
import torch

import symgrad
from tests.program.test_printing import CASES, check_printed


@pytest.mark.parametrize("name, derivative", CASES)
def test_torch(name, derivative):
    check_printed(symgrad.to_torch, torch.tensor, name, derivative)


@pytest.mark.sweep
@pytest.mark.parametrize("name, derivative", CASES)
def test_jax(name, derivative):
    with jax.enable_x64(True):
        check_printed(symgrad.to_jax, jax.numpy.array, name, derivative)
