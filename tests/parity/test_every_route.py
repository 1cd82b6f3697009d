"""The test of all routes with those that torch and JAX compute: generated sources, run by them."""

import jax
import pytest
import torch

from tests.routes.__main__ import shown
from tests.routes.comparing import examined
from tests.routes.drawing import draw
from tests.routes.table import ROUTES

INSTALLED = {"torch": torch, "jax": jax}
FOREIGN = [route._replace(share=1.0) for route in ROUTES if route.needs in INSTALLED]


@pytest.mark.parametrize("seed", range(6))
def test_sources_of_random_functions(seed):
    found = examined(draw(seed), FOREIGN)
    assert not found.differences, shown(found)


def test_every_library_is_taken():
    assert {route.needs for route in FOREIGN} == INSTALLED.keys()
