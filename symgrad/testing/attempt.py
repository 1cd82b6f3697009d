"""One check at one example: `Check`, `attempt` and `given`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.examples import Example
from symgrad.testing.failure import Result, Wrong
from symgrad.testing.silence import silence

__all__ = ["Body", "Check", "When", "attempt", "given"]

Body = Callable[[Attack, Example], None]
When = Callable[[Attack], str]


class Check(NamedTuple):
    """A check: its name, its body, the kind of its examples, and `when`, which returns why it does not apply to an op ("" where it applies).

    `most` limits the number of examples.
    """

    name: str
    body: Body
    draws: str
    when: When
    most: int | None
    function: Callable[..., Result]


def given(attack: Attack, inputs: Sequence[Any] | None, cotangent: Any, tangents: Any) -> list[Example] | None:
    """The example made of a user's inputs; a cotangent or tangents that are not given are ones."""
    if inputs is None:
        return None
    xs = tuple(np.asarray(x) for x in inputs)
    try:
        with silence():
            shape = attack.subject.value(xs).shape
    except Exception:  # the check reports it
        shape = xs[0].shape if xs else ()
    floats = [x.dtype for x in xs if is_active(x)]
    g = np.ones(shape, np.result_type(*floats) if floats else float) if cotangent is None else np.asarray(cotangent)
    ones = tuple(np.ones_like(x) if is_active(x) else None for x in xs)
    sets = (ones,) * 3 if tangents is None else tuple(tuple(None if t is None else np.asarray(t) for t in s) for s in tangents)
    return [Example(xs, g, sets)]


def attempt(check: Check, attack: Attack, example: Example) -> Wrong | None:
    """The failure of a check at one example, None if it passes: what is wrong, or else the largest loss of digits.

    The example is copied: an op that writes to its arguments spoils no other check.
    """
    attack.lost.clear()
    try:
        with silence(), attack.subject.context():
            check.body(attack, example.copied())
    except Wrong as wrong:
        return wrong
    except (NotApplicable, KeyboardInterrupt):
        raise
    except Exception as error:
        raised = Wrong(f"raised {type(error).__name__}: {error}")
        raised.__cause__ = error
        return raised
    return max(attack.lost, key=lambda wrong: wrong.ulp or 0.0, default=None)
