"""What a check has to say: it passed, it does not apply, or what is wrong, in words a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.checking.shown import Shown

__all__ = ["CheckFailure", "Failure", "OpReport", "Result", "Wrong"]

DIGITS = 20  # of a true number in a report


class Wrong(AssertionError):
    """What the body of a check raises: what is wrong, what was returned, and what is true.

    `index` is the element of an array, `order` that of the derivative, `ulp` the error in units in the last place, `exact` says which
    side is exact and why, `wrt` the number of the argument differentiated by.
    """

    def __init__(self, what: str, returned: Any = None, true: Any = None, *, index: tuple[int, ...] | None = None, order: int | None = None,
                 ulp: float | None = None, exact: str = "", wrt: tuple[int, ...] = ()):
        super().__init__(what)
        self.what, self.returned, self.true = what, returned, true
        self.index, self.order, self.ulp, self.exact, self.wrt = index, order, ulp, exact, wrt


class NotApplicable(Exception):
    """Why a check says nothing about an op."""


@dataclass
class Failure(Shown):
    """One thing that is wrong with an op, at the simplest input that shows it."""

    op: str
    check: str
    wrong: Wrong
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    difference: Any = None
    snippet: str = ""
    seed: str = ""

    def outline(self) -> Iterator[Any]:
        """The parts of the report, in order."""
        from symgrad.checking.rendering import Formula, Line

        wrong = self.wrong
        yield Line(f"{self.op}: {self.check}: {wrong.what}")
        for name, x in {**self.inputs, **self.given}.items():
            yield Line(f"  {name} = {shown(x)}")
        if self.parameters:
            yield Line(f"  further arguments {', '.join(map(repr, self.parameters))}")
        at = "" if wrong.index in (None, ()) else f" at {list(wrong.index or ())}"
        if wrong.order is not None:
            yield Line(f"  order {wrong.order}" + (f", by {', '.join(self._names(wrong.wrt))}" if wrong.wrt else ""))
        if wrong.returned is not None:
            yield Line(f"  returned{at} {shown(wrong.returned)}")
        if wrong.true is not None:
            yield Line(f"  true{at}     {digits(wrong.true)}")
        if wrong.ulp is not None:
            yield Line(f"  error {wrong.ulp:.3g} ULP")
        if wrong.exact:
            yield Line(f"  exact is {wrong.exact}")
        if self.difference is not None:
            yield Formula("returned - true", self.difference)
        if self.snippet:
            yield Line("reproduce:")
            for line in self.snippet.splitlines():
                yield Line(f"    {line}")
        if self.seed:
            yield Line(self.seed)

    def _names(self, wrt: Sequence[int]) -> list[str]:
        names = list(self.inputs)
        return [names[i] if i < len(names) else f"argument {i}" for i in wrt]


def shown(x: Any) -> str:
    """A value so that it can be read and typed again, with its shape and dtype where it is an array."""
    if isinstance(x, np.ndarray):
        if x.ndim == 0:
            return f"{x.item()!r} ({x.dtype}, shape ())"
        return f"{np.array2string(x, separator=', ', floatmode='unique', threshold=64).replace(chr(10), '')} ({x.dtype}, shape {x.shape})"
    return f"{x.item()!r} ({x.dtype})" if isinstance(x, np.generic) else repr(x)


def digits(x: Any) -> str:
    """A true number with twenty digits."""
    import mpmath

    return mpmath.nstr(x, DIGITS) if isinstance(x, (mpmath.mpf, mpmath.mpc)) or hasattr(x, "_mpf_") else shown(x)


class CheckFailure(AssertionError):
    """A check found something wrong; `failure` holds it, and the message is its report."""

    def __init__(self, *failures: Failure):
        super().__init__("\n\n".join(map(str, failures)))
        self.failures = failures

    @property
    def failure(self) -> Failure:
        """The first of the failures."""
        return self.failures[0]


@dataclass
class Result:
    """What one check said of an op: "passed", "failed" or "not applicable" with the reason; how many examples it saw, and how long it took."""

    check: str
    verdict: str
    reason: str = ""
    examples: int = 0
    seconds: float = 0.0
    failure: Failure | None = None

    def __bool__(self) -> bool:
        return self.verdict != "failed"


@dataclass
class OpReport(Shown):
    """What all checks said of an op. It is true where none failed."""

    op: str
    profile: str
    seed: int
    results: list[Result] = field(default_factory=list)
    exact: str = ""

    @property
    def failures(self) -> list[Failure]:
        """What is wrong."""
        return [r.failure for r in self.results if r.failure is not None]

    @property
    def verdict(self) -> str:
        """ "passed" or "failed"; "not checkable" where no check applies."""
        words = {r.verdict for r in self.results}
        return "failed" if "failed" in words else "passed" if "passed" in words else "not checkable"

    def __bool__(self) -> bool:
        return all(self.results)

    def outline(self) -> Iterator[Any]:
        """The parts of the report, in order."""
        from symgrad.checking.rendering import Line, Table

        passed = sum(r.verdict == "passed" for r in self.results)
        yield Line(f"{self.op}: {self.verdict}")
        yield Line(f"{passed} checks passed, {len(self.failures)} failed, {len(self.results) - passed - len(self.failures)} do not apply "
                   f"(profile {self.profile}, seed {self.seed}, {sum(r.seconds for r in self.results):.2f} s)")
        if self.exact:
            yield Line(f"exact is {self.exact}")
        yield Table("Checks", ("check", "", "examples", ""), [(r.check, r.verdict, str(r.examples or ""), r.reason) for r in self.results])
        for failure in self.failures:
            yield from failure.outline()
