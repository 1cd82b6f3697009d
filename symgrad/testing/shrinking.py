"""From an example that fails to the simplest one that does, by hypothesis; and the report of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.testing.drawing import Example, outside, quiet
from symgrad.testing.failure import Failure, Wrong

if TYPE_CHECKING:
    from symgrad.testing.attack import Attack
    from symgrad.testing.checks.base import Check

__all__ = ["simplest"]

SECONDS, EXAMPLES = 5.0, 200


def simplest(check: Check, attack: Attack, example: Example, wrong: Wrong, fixed: bool = False) -> Failure:
    """The report of what is wrong at the simplest example; with `fixed` the one that failed is kept."""
    best, why, notes = (example, wrong, []) if fixed else _searched(check, attack, example, wrong)
    failure = Failure(attack.name, check.name, why, attack.inputs(best.xs), attack.claims.parameters)
    failure.seed = "\n".join([f"the examples were drawn with @hypothesis.seed({attack.seed}); seed={attack.seed} draws them again", *notes])
    return failure


def _key(example: Example) -> tuple:
    arrays = [*example.xs, example.cotangent, *(t for s in example.tangents for t in s if t is not None)]
    return tuple((a.shape, a.dtype.name, a.tobytes()) for a in arrays)


def _singles(attack: Attack, example: Example) -> Iterator[Example]:
    """Each element of an example by itself, for an op that acts on elements."""
    if not attack.elementwise or len({x.shape for x in example.xs}) != 1 or example.cotangent.shape != example.xs[0].shape:
        return
    for at in np.ndindex(example.cotangent.shape):
        yield Example(tuple(np.asarray(x[at]) for x in example.xs), np.asarray(example.cotangent[at]),
                      tuple(tuple(None if t is None else np.asarray(t[at]) for t in s) for s in example.tangents))


def _searched(check: Check, attack: Attack, example: Example, wrong: Wrong) -> tuple[Example, Wrong, list[str]]:
    import hypothesis
    from hypothesis import strategies as st

    from symgrad.testing.checks.base import attempt

    failing: dict[tuple, Wrong] = {_key(example): wrong}
    candidates = [example]
    for single in _singles(attack, example):
        found = attempt(check, attack, single)
        if found is not None:
            failing[_key(single)] = found
            candidates.insert(0, single)
            break
    last: list[tuple[Example, Wrong]] = [(candidates[0], failing[_key(candidates[0])])]
    end = time.monotonic() + SECONDS
    notes: list[str] = []

    def search() -> None:
        @hypothesis.seed(attack.seed)
        @quiet(EXAMPLES, [hypothesis.Phase.generate, hypothesis.Phase.shrink])
        @hypothesis.given(st.one_of(attack.strategy(check.draws), st.sampled_from(candidates)))
        def fails(drawn: Example) -> None:
            key = _key(drawn)
            found = failing.get(key)
            if found is None and time.monotonic() < end:
                found = attempt(check, attack, drawn)
            if found is not None:
                failing[key] = found
                last[0] = drawn, found
                raise found

        try:
            fails()
        except Wrong as error:
            notes.extend(line for note in getattr(error, "__notes__", []) for line in note.splitlines() if "reproduce_failure" in line)
        except hypothesis.errors.HypothesisException:  # what is random does not fail twice
            pass

    outside(search)
    return *last[0], notes
