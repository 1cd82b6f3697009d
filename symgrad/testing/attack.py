"""`Attack`: a claimed op with its reference and its examples, for one profile and one seed; `run_at_example` runs one check at one example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.graph.domains import COMPLEX
from symgrad.reference.elements import ElementReference
from symgrad.reference.tensors import ArrayReference
from symgrad.testing.claimed import ClaimedOp
from symgrad.testing.claims import Claims
from symgrad.testing.drawing import edge_examples, random_examples, strategy_of
from symgrad.testing.examples import Example
from symgrad.testing.failure import Result, Wrong
from symgrad.testing.profiles import Profile
from symgrad.testing.references import precise_reference
from symgrad.testing.rounding import Rounding
from symgrad.testing.silence import silence

__all__ = ["Attack", "Body", "Check", "When", "run_at_example", "user_example"]


class Attack(ClaimedOp):
    """A claimed op, the examples of its arguments, and the reference for its results.

    `truth` is the reference, None if the op has neither a formula nor a rule that can be evaluated with many digits; `compared` has
    what the running check compared, with the arguments, and `lost` the results at its last example that lost digits and are right otherwise.
    """

    def __init__(self, op: Any, claims: Claims | None = None, profile: str | Profile = "dev", seed: int = 0, shrink: bool = True, **options: Any):
        super().__init__(op, claims, profile, seed, shrink, **options)
        self._drawn: dict[str, list[Example]] = {}
        self.compared: list[tuple[str, Sequence[np.ndarray]]] = []
        self.lost: list[Wrong] = []

    @cached_property
    def truth(self) -> Any:
        """The reference for the results; None if there is none."""
        found = precise_reference(self)
        if found is None or self.of_complex:
            return None
        reader, said = found
        exact = f"{said}, evaluated with 160 digits or more"
        if not self.elementwise:
            return ArrayReference(reader, exact)
        return ElementReference(reader, exact, lambda: [e for kind in ("points", "low") for e in self._drawn.get(kind, [])])

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding errors of the formula's own steps."""
        return Rounding(self)

    @cached_property
    def of_complex(self) -> str:
        """The reason why references for real numbers do not apply ("" if they apply): the op takes or returns complex numbers."""
        if COMPLEX in self.domains:
            return "it takes complex numbers"
        return "its values are complex" if any(e.cotangent.dtype.kind == "c" for e in self.examples("points")[:1]) else ""

    def strategy(self, kind: str) -> Any:
        """The hypothesis strategy for examples of a kind."""
        return strategy_of(self, kind)

    def examples(self, kind: str) -> list[Example]:
        """The examples of a kind: the fixed edge examples, then as many random ones as the profile sets."""
        if kind not in self._drawn:
            self._drawn[kind] = [*edge_examples(self, kind), *random_examples(self, kind)]
        return self._drawn[kind]


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


def user_example(attack: Attack, inputs: Sequence[Any] | None, cotangent: Any, tangents: Any) -> list[Example] | None:
    """The example made of a user's inputs; missing cotangents and tangents are ones."""
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


def run_at_example(check: Check, attack: Attack, example: Example) -> Wrong | None:
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
