"""Every op of the registry as printed source of PyTorch and JAX: value, gradient and second derivative, broadcast, empty and 0-d."""

import jax
import numpy as np
import pytest
import torch

import symgrad
from tests.program.test_registry_compiled import CASES
from tests.program.test_registry_printed import attacked


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_torch(op, parameters):
    attacked(op, parameters, symgrad.to_torch, lambda x: torch.tensor(np.asarray(x)))


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_jax(op, parameters):
    with jax.enable_x64(True):
        attacked(op, parameters, symgrad.to_jax, jax.numpy.asarray)
