"""What every check of a function at points does: it ends after some seconds, calls the function again, and simplifies a counterexample."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from symgrad.algebra.limits import IN_CALL, OutOfTime, abort_after, poll
from symgrad.autograd.modes import enable_grad
from symgrad.checks.tolerances import Tolerances
from symgrad.factories.generators import get_rng_state
from symgrad.frameworks.differentiation_task import NotCheckable, generators_restored, seed_generators
from symgrad.graph.common import Refused
from symgrad.reference.template import NoFormula
from symgrad.reports.base import NOT_CHECKABLE, pair
from symgrad.sampling.points import as_point, flat, shrink_values

SEEDS = 400  # the seeds with which a function is called that draws random numbers: a chance of one in a hundred is seen by almost all of them
SHRINKING = 200  # points that are tried to simplify a counterexample
Progress = Callable[[str, int, int], None]


@contextmanager
def aborted(report: Any, seconds: float | None) -> Iterator[None]:
    """A context that some seconds of the processor end; the report is then not checkable. Without seconds it has no effect."""
    try:
        with abort_after(seconds):
            yield
    except OutOfTime as error:
        if seconds is None:
            raise  # of another abort, around this one
        points = report.points
        report.verdict, report.counterexample = NOT_CHECKABLE, None
        report.reason = f"aborted after {seconds:g} seconds: {points.compared} of {points.planned} planned points were compared"
        if IN_CALL in error.args:
            report.reason += f", and a call of {report.function} had not returned"


class PointwiseCheck:
    """A check of a function at points, which fills in a report. `progress(what, done, total)` is called during the check.

    `base` are the inputs at the given point by name. Subclasses define `_check` and `numbers_at`.
    """

    refusals: tuple[type[Exception], ...] = (NotCheckable, NoFormula, Refused)  # which say that a function is not checkable

    def __init__(self, report: Any, base: Mapping[str, np.ndarray], tolerances: Tolerances, points: int, effort: float, seed: int,
                 progress: Progress):
        self.report, self.arguments, self.base, self.names = report, list(base), list(base.values()), report.names
        self.tolerances, self.requested, self.effort, self.seed, self.progress = tolerances, points, effort, seed, progress

    def run(self) -> Any:
        """The report."""
        try:
            with enable_grad():
                self._check()
        except self.refusals as error:
            self.report.verdict, self.report.reason = NOT_CHECKABLE, str(error)
        return self.report

    def _check(self) -> None:
        raise NotImplementedError

    def numbers_at(self, vector: np.ndarray, order: int) -> dict[str, Any]:
        """The numbers that the function gives at a point, by what they are, up to an order of derivatives."""
        raise NotImplementedError

    def inputs_at(self, vector: np.ndarray) -> dict[str, Any]:
        """The inputs at a point by name."""
        return {name: (v if v.ndim else float(v)) for name, v in zip(self.arguments, as_point(self.base, vector))}

    def simplified(self, vector: np.ndarray, found: Any, again: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, Any]:
        """A simpler point where a finding is made again, with that: `again(vector)` is None where it is not."""
        latest = {flat(as_point(self.base, vector)).tobytes(): found}

        def holds(candidate: np.ndarray) -> bool:
            poll()
            self.progress("simplifying the counterexample", len(latest), len(latest) + 1)
            candidate = flat(as_point(self.base, candidate))
            result = again(candidate)
            if result is not None:
                latest[candidate.tobytes()] = result
            return result is not None

        vector = flat(as_point(self.base, shrink_values(vector, holds, int(SHRINKING * self.effort))))
        return vector, latest[vector.tobytes()]

    def require_same(self, vector: np.ndarray, first: Mapping[str, Any], order: int = 0) -> None:
        """Raise NotCheckable if a call has other results than the first one."""
        self._require_equal(vector, first, self.numbers_at(vector, order), order)

    def require_no_chance(self, vector: np.ndarray) -> None:
        """Raise NotCheckable if a function draws random numbers on which its value depends, perhaps rarely. A seed of its own makes it a function."""
        with generators_restored():
            before = _states()
            first = self.numbers_at(vector, 0)
            if _states() == before:
                return
            seed_generators(0)
            first = self.numbers_at(vector, 0)
            for seed in range(1, SEEDS):
                seed_generators(seed)
                self._require_equal(vector, first, self.numbers_at(vector, 0), 0)

    def _require_equal(self, vector: np.ndarray, first: Mapping[str, Any], again: Mapping[str, Any], order: int) -> None:
        """Raise NotCheckable if two results differ: the function is random if a call changes the state of a generator."""
        for what, value in first.items():
            if what in again and not np.array_equal(value, again[what], equal_nan=True):
                one, other = np.ravel(value), np.ravel(again[what])
                place = np.flatnonzero(one != other)[0] if one.shape == other.shape else 0
                texts = pair(one[place], other[place], 10)
                with generators_restored():
                    before = _states()
                    self.numbers_at(vector, order)
                    cause = ("keeps a state that its calls change; pass it as an argument, or make it anew in every call" if _states() == before else
                             "is random: with the same seed it gives the same; draw outside it and pass what was drawn as an argument, or fix the "
                             "seed inside it")
                raise NotCheckable(f"two calls at the same point gave the {what} {texts[0]} and {texts[1]}: {self.report.function} {cause}")


def _states() -> list[Any]:
    """The states of all generators: of Python, NumPy, symgrad and, where it is loaded, torch."""
    torch = sys.modules.get("torch")
    numpy: Any = np.random.get_state()
    return [random.getstate(), tuple(x.tobytes() if isinstance(x, np.ndarray) else x for x in numpy), _plain(get_rng_state()),
            None if torch is None else torch.random.get_rng_state().numpy().tobytes()]


def _plain(state: Any) -> Any:
    return state.numpy().tobytes() if hasattr(state, "numpy") else repr(state)
