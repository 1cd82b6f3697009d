"""The examples an op is attacked with: arguments inside its domains, with a cotangent and tangents, drawn by hypothesis or special."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from symgrad.testing.attack import Attack

__all__ = ["Example", "drawn", "edge_examples", "strategy_of"]


class Example(NamedTuple):
    """Arguments, a cotangent of the value's shape, and three sets of tangents (None for an argument that is not active)."""

    xs: tuple[np.ndarray, ...]
    cotangent: np.ndarray
    tangents: tuple[tuple[np.ndarray | None, ...], ...]


def strategy_of(attack: Attack, kind: str) -> Any:
    """The strategy for examples of a kind: "points", "broadcast", "scalars", "empty", "arrays"."""
    from hypothesis import strategies as st

    from symgrad.testing.strategies import numbers

    @st.composite
    def examples(draw: Any) -> Example:
        if attack.elementwise:
            shape = {"scalars": (), "empty": (0,)}.get(kind) or draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
            shapes = [shape] * len(attack.names)
            if kind == "broadcast":
                shapes = draw(st.sampled_from([[(2, 1), (3,), ()], [(3,), (2, 3), (1,)], [(), (2,), (2,)]]))[:len(attack.names)]
        else:
            shapes = list(attack.shapes)
        xs = []
        for d, shape in zip(attack.domains, shapes):
            flat = draw(st.lists(numbers(d), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
            xs.append(np.array(flat, dtype=bool if d.name == "BOOLEAN" else np.float64).reshape(shape))
        out = np.broadcast_shapes(*shapes) if attack.elementwise else attack.subject.value(xs).shape
        readable = st.sampled_from([1.0, -1.0, 2.0, 0.5, -3.0])

        def array(shape: tuple[int, ...]) -> np.ndarray:
            count = int(np.prod(shape))
            return np.array(draw(st.lists(readable, min_size=count, max_size=count)), dtype=np.float64).reshape(shape)

        return Example(tuple(xs), array(out), tuple(tuple(array(x.shape) if x.dtype.kind == "f" else None for x in xs) for _ in range(3)))

    return examples()


def edge_examples(attack: Attack, kind: str) -> Sequence[Example]:
    """The examples of a kind that are always there."""
    return []


def drawn(attack: Attack, kind: str) -> list[Example]:
    """As many random examples as the profile says, the same ones for the same seed."""
    import hypothesis

    out: list[Example] = []

    def collect() -> None:
        @hypothesis.seed(attack.seed)
        @quiet(attack.profile.examples, [hypothesis.Phase.generate])
        @hypothesis.given(attack.strategy(kind))
        def draw(example: Example) -> None:
            out.append(example)

        draw()

    outside(collect)
    return out[:attack.profile.examples]


def quiet(examples: int, phases: Sequence[Any]) -> Any:
    """Settings of hypothesis for a search of ours: nothing printed, nothing kept, no clock."""
    import hypothesis

    return hypothesis.settings(max_examples=examples, database=None, deadline=None, phases=phases, derandomize=False, report_multiple_bugs=False,
                               suppress_health_check=list(hypothesis.HealthCheck), print_blob=True, verbosity=hypothesis.Verbosity.quiet)


def outside(function: Any) -> None:
    """Run a search, in another thread inside a test of the user's: hypothesis refuses one test inside another in the same thread."""
    import hypothesis

    if not hypothesis.currently_in_test_context():
        function()
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
