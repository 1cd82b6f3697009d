"""Signs of effects in the code of a function: one that has some runs as ever in its first call, and is recorded in a call after one without effects.

The recording of a function that has effects would be in vain, and the function would run twice in a call. A sign is no proof: effects are always
observed, whether or not a function had signs of them.
"""

from __future__ import annotations

import array
import collections
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.compiled.code import FILLED, WRITTEN, is_in_place
from symgrad.compiled.contents import Part
from symgrad.engine.tensor import Tensor
from symgrad.factories import random_tensors

__all__ = ["CHANGING", "signs_of_effects"]

CONTAINERS = (list, dict, set, collections.deque, bytearray, array.array, np.ndarray)
FILLING = frozenset("""
add append appendleft clear discard extend extendleft fill insert itemset move_to_end partition pop popitem popleft put remove resize reverse rotate
setdefault sort update
""".split())
CHANGING = FILLING | {WRITTEN, FILLED}
WRITING = ("print", "pprint", "stdout", "stderr", "warn", "warn_explicit")
RANDOM = frozenset([*random_tensors.__all__, "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
                    "gumbel_softmax", "rrelu", "sample", "rsample", "uniform_", "normal_", "exponential_", "manual_seed"])
LIBRARIES = ("symgrad.nn.modules.", "symgrad.optim.")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "exception": logging.ERROR,
          "critical": logging.CRITICAL}


def signs_of_effects(reached: Sequence[tuple[Part, str]], uses: Mapping[str, Mapping[str, str]], names: Mapping[str, str]) -> bool:
    """Whether the code has signs that a function prints, logs, warns, draws random numbers, or changes what it reaches.

    `reached` are all ways to the values that the function reaches, `uses` the attributes that are read of attributes, `names` those in the code.
    """
    if any(name in names for name in WRITING) or not RANDOM.isdisjoint(names):
        return True
    for part, _ in reached:
        value = part.value
        known: Any = part.uses if part.uses is not None else uses.get(part.attribute, ())
        if isinstance(value, logging.Logger):
            if any([name in known and value.isEnabledFor(level) for name, level in LEVELS.items()]):
                return True
        elif isinstance(value, Tensor):
            if FILLED in known or WRITTEN in known or any(map(is_in_place, known)) or "backward" in names and value.requires_grad:
                return True
        elif isinstance(value, CONTAINERS) and not CHANGING.isdisjoint(known) or WRITTEN in known:
            return True
        elif type(value).__module__.startswith(LIBRARIES) and _has_state(value, known):
            return True
    return False


def _has_state(value: Any, known: Any) -> bool:
    """Whether an object of the library draws or writes when it is called: dropout and batch norms in training, and optimizers."""
    if type(value).__module__.startswith(LIBRARIES[1]):
        return "step" in known
    return getattr(value, "training", False) and (type(value).__module__ == f"{LIBRARIES[0]}dropout" or getattr(value, "track_running_stats", False))
