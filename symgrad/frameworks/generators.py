"""The generators of random numbers that a function of any framework may draw from."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator

import numpy as np

from symgrad.factories.generators import fork_rng, manual_seed

__all__ = ["restored", "seeded"]


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Restore the states of all generators at the end: of Python, NumPy, symgrad and, where it is loaded, torch."""
    torch = sys.modules.get("torch")
    state, numbers, tensors = random.getstate(), np.random.get_state(), torch and torch.random.get_rng_state()
    try:
        with fork_rng():
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numbers)
        if torch is not None:
            torch.random.set_rng_state(tensors)


def seeded() -> None:
    """Give every generator the seed 0."""
    random.seed(0)
    np.random.seed(0)
    manual_seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
