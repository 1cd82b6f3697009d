"""Whether a function gives the same at the same point: functions that draw random numbers, however rarely it shows, and those that keep a state."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.factories.generators import get_rng_state
from symgrad.frameworks.differentiation_task import NotCheckable, generators_restored, seed_generators
from symgrad.reports.base import pair

SEEDS = 400  # the seeds with which a function is called that draws random numbers: a chance of one in a hundred is seen by almost all of them
Call = Callable[[], Any]  # the numbers of a call of the function at a point


def require_same(call: Call, first: Any, name: str, what: str = "value") -> None:
    """Raise NotCheckable if a call has another result than the first one."""
    again = call()
    if not are_equal(first, again):
        raise NotCheckable(reason(call, first, again, name, what))


def require_no_chance(call: Call, name: str, what: str = "value") -> None:
    """Raise NotCheckable if a function draws random numbers on which its result depends, perhaps rarely. A seed of its own makes it a function."""
    with generators_restored():
        before = _states()
        first = call()
        if _states() == before:
            return
        seed_generators(0)
        first = call()
        for seed in range(1, SEEDS):
            seed_generators(seed)
            again = call()
            if not are_equal(first, again):
                raise NotCheckable(_sentence(first, again, name, what, True))


def reason(call: Call, first: Any, again: Any, name: str, what: str) -> str:
    """The sentence about a function with two results at one point: it is random if a call changes the state of a generator."""
    with generators_restored():
        before = _states()
        call()
        return _sentence(first, again, name, what, _states() != before)


def _sentence(first: Any, again: Any, name: str, what: str, by_chance: bool) -> str:
    cause = ("is random: with the same seed it gives the same; draw outside it and pass what was drawn as an argument, or fix the seed inside it"
             if by_chance else "keeps a state that its calls change; pass it as an argument, or make it anew in every call")
    one, other = np.ravel(first), np.ravel(again)
    place = np.flatnonzero(one != other)[0] if one.shape == other.shape else 0
    texts = pair(one[place], other[place], 10)
    return f"two calls at the same point gave the {what} {texts[0]} and {texts[1]}: {name} {cause}"


def are_equal(a: Any, b: Any) -> bool:
    """Whether two results have the same numbers, bit by bit but for NaN."""
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


def _states() -> list[Any]:
    """The states of all generators: of Python, NumPy, symgrad and, where it is loaded, torch."""
    torch = sys.modules.get("torch")
    numpy: Any = np.random.get_state()
    return [random.getstate(), tuple(x.tobytes() if isinstance(x, np.ndarray) else x for x in numpy), _plain(get_rng_state()),
            None if torch is None else torch.random.get_rng_state().numpy().tobytes()]


def _plain(state: Any) -> Any:
    return state.numpy().tobytes() if hasattr(state, "numpy") else repr(state)
