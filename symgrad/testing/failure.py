"""The results of checks: passed, not applicable, or a failure with the data that reproduces it."""

from __future__ import annotations

import contextvars
import math
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import mpmath
import numpy as np

from symgrad.reports.base import IMPRECISE, BaseReport, CodeBlock, Formula, Line, Part, Table, first_line, plain, ulp_text

REFERENCE_DIGITS = 21  # of a reference number in a report
MAX_SHOWN_ELEMENTS = 64  # of an array that a report shows
MAX_ERROR_LINES = 12  # of an exception's text
MAX_NUMBER_TEXT = 120  # characters of a number
ALSO = "\nthe same was raised in {}"
HERE = PurePath(__file__).parents[1]


class Wrong(AssertionError):
    """The exception of a check's body: what is wrong, what was returned, and the reference.

    `index` is the element of an array, `order` that of the derivative, `ulp` the error in units in the last place, `exact` describes the
    reference, `wrt` the numbers of the arguments differentiated by. `imprecise` says that digits are lost as in the formula's own steps, and
    nothing else is wrong, at the `points`.
    """

    imprecise = False
    points: Sequence[tuple[float, ...]] = ()

    def __init__(self, what: str, returned: Any = None, true: Any = None, *, index: tuple[int, ...] | None = None, order: int | None = None,
                 ulp: float | None = None, exact: str = "", wrt: tuple[int, ...] = ()):
        super().__init__(what)
        self.what, self.returned, self.true = what, returned, true
        self.index, self.order, self.ulp, self.exact, self.wrt = index, order, ulp, exact, wrt


_compared: contextvars.ContextVar[list[int]] = contextvars.ContextVar("_compared", default=[0])  # noqa: B039  a count that nobody reads


def counted(numbers: Any = 1) -> None:
    """Count numbers, or other things, that a check has compared."""
    _compared.get()[0] += int(numbers)


def new_count() -> list[int]:
    """A new count, from 0, of what is compared from now on in this context."""
    count = [0]
    _compared.set(count)
    return count


@dataclass(repr=False)
class Failure(BaseReport):
    """One failure of an op, at the simplest input found.

    `given` are the cotangent and the tangents that matter, `difference` is result minus reference as a formula, `snippet` is code that
    reproduces the failure, `command` the test it occurred in, `seed` how to draw the examples again, `note` a remark on how it was found.

    >>> from symgrad.testing import check_pullback
    >>> try:
    ...     check_pullback((np.sin, np.sin), formula="sin(x)")
    ... except CheckFailure as error:
    ...     failure = error.failure
    >>> failure.check, failure.wrong.what, failure.inputs["x"], failure.wrong.returned
    ('pullback', 'the gradient is wrong', array(1.), np.float64(0.8414709848078965))
    >>> print(failure.snippet.splitlines()[-1])
    symgrad.testing.check_pullback(sin, formula='sin(x)', gradient=sin, inputs=[np.array(1.0)])
    """

    op: str
    check: str
    wrong: Wrong
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    difference: Any = None
    snippet: str = ""
    seed: str = ""
    command: str = ""
    note: str = ""

    HIDDEN = "wrong", "inputs", "given", "parameters"

    @property
    def verdict(self) -> str:
        """ "failed", or "imprecise" where digits are lost and nothing is wrong."""
        return IMPRECISE if self.wrong.imprecise else "failed"

    @property
    def headline(self) -> str:
        """The first line: the op, the check, and what is wrong."""
        return f"{self.op}: {self.check}: {(self.wrong.what.strip().splitlines() or [''])[0]}"

    def outline(self) -> Iterator[Part]:
        """The parts of the report, in order."""
        wrong = self.wrong
        others = wrong.what.strip().splitlines()[1:]
        if others:
            yield CodeBlock("\n".join(others[:MAX_ERROR_LINES]))
        where = raised_at(wrong.__cause__)
        if where:
            yield Line(f"raised {where}")
        rows = [(name, dtype_and_shape(x), exact_text(x)) for name, x in {**self.inputs, **self.given}.items()]
        if self.parameters:
            rows.append(("further", "", ", ".join(map(repr, self.parameters))))
        yield Table("At", ("", "", ""), rows)
        yield from self._sides()
        if wrong.exact:
            yield Line(f"exact is {wrong.exact}")
        if self.difference is not None:
            yield Formula("returned - true", self.difference)
        if self.note:
            yield Line(f"note: {self.note}")
        if self.snippet:
            yield Line("to see it again:")
            yield CodeBlock(self.snippet)
        if self.command:
            yield Line(f"or: {self.command}")
        if self.seed:
            yield Line(self.seed)

    def _sides(self) -> Iterator[Part]:
        wrong = self.wrong
        at = f" at {list(wrong.index)}" if wrong.index else ""
        by = f", by {', '.join(self._names(wrong.wrt))}" if wrong.wrt else ""
        right = "true" if wrong.exact else "expected"
        rows = [("returned" + at, exact_text(element(wrong.returned, wrong.index))), (right + at, digits(element(wrong.true, wrong.index))),
                ("error", "" if wrong.ulp is None else ulp_text(wrong.ulp) + " ULP")]
        error = None if wrong.ulp is None or math.isnan(wrong.ulp) else wrong.ulp
        rows = [row for row, value in zip(rows, (wrong.returned, wrong.true, error)) if value is not None]
        if rows:
            yield Table("Value" if wrong.order in (None, 0) else f"Derivative of order {wrong.order}{by}", ("", ""), rows)
        elif wrong.order:
            yield Line(f"order {wrong.order}{by}")

    def _names(self, wrt: Sequence[int]) -> list[str]:
        names = list(self.inputs)
        return [names[i] if i < len(names) else f"argument {i}" for i in wrt]

    def to_dict(self) -> dict[str, Any]:
        """The failure as plain data: arrays with their dtypes, and the many digits of a reference as text."""
        wrong, arrays = self.wrong, {"inputs": self.inputs, "given": self.given}
        said = {"what": wrong.what, "order": wrong.order, "by": self._names(wrong.wrt), "index": plain(wrong.index), "ulp": plain(wrong.ulp),
                "returned": json_value(wrong.returned), "true": None if wrong.true is None else digits(element(wrong.true, wrong.index)),
                "exact": wrong.exact, "parameters": [repr(p) for p in self.parameters]}
        return super().to_dict() | said | {name: {k: json_value(x) for k, x in some.items()} for name, some in arrays.items()}


def element(x: Any, index: tuple[int, ...] | None) -> Any:
    """The element of an array at an index; the array itself where the index does not apply."""
    return x[index] if isinstance(x, np.ndarray) and index and x.ndim == len(index) else x


def raised_at(error: BaseException | None) -> str:
    """The place where the op raised: file, line and function of the innermost frame outside frameworks; "" if nothing was raised."""
    if error is None:
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if HERE not in PurePath(f.filename).parents and "site-packages" not in f.filename]
    return f"in {PurePath(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name}" if frames else ""


def exact_text(x: Any) -> str:
    """A value as text that can be typed again, with exactly the digits that it needs.

    >>> exact_text(np.array([0.1, -0.0])), exact_text(np.float32(0.1))
    ('[0.1, -0.0]', '0.1')
    """
    if isinstance(x, np.ndarray) and x.dtype != object:
        if x.ndim == 0:
            return str(x[()])
        return " ".join(np.array2string(x, separator=", ", threshold=MAX_SHOWN_ELEMENTS, max_line_width=10_000, formatter={"all": str}).split())
    if isinstance(x, np.ndarray):
        return digits(x)
    return str(x) if isinstance(x, np.generic) else repr(x)


def dtype_and_shape(x: Any) -> str:
    """The dtype and the shape of an array."""
    return f"{x.dtype.name} {x.shape}" if isinstance(x, (np.ndarray, np.generic)) else ""


def digits(x: Any) -> str:
    """A reference number, or an array of them, with twenty digits; a float unchanged."""
    if isinstance(x, np.ndarray) and x.dtype == object:
        if x.ndim > 1:
            return f"[{', '.join(map(digits, x))}]"
        inner = ", ".join(digits(e) for e in x.flat[:MAX_SHOWN_ELEMENTS]) + ", ..." * (x.size > MAX_SHOWN_ELEMENTS)
        return inner if x.ndim == 0 else f"[{inner}]"
    if isinstance(x, (mpmath.mpf, mpmath.mpc)) or hasattr(x, "_mpf_") or hasattr(x, "_mpc_"):
        text = str(mpmath.nstr(x, REFERENCE_DIGITS))
        if len(text) <= MAX_NUMBER_TEXT or not hasattr(x, "_mpf_"):
            return text
        return f"{'-' * (x < 0)}10**({mpmath.nstr(mpmath.log10(abs(x)), REFERENCE_DIGITS)})"
    return exact_text(x)


def json_value(x: Any) -> Any:
    """A value as JSON-compatible data: an array with its dtype and shape."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return {"dtype": x.dtype.name, "shape": list(x.shape), "values": plain(x.ravel())}
    return digits(x) if isinstance(x, np.ndarray) else plain(x)


def group_by_exception(failures: Sequence[Failure]) -> list[tuple[Failure, list[str]]]:
    """The failures to report, each with the further checks in which the op raised the same exception."""
    out: list[tuple[Failure, list[str]]] = []
    for failure in failures:
        same = next((others for first, others in out if failure.wrong.__cause__ is not None and first.wrong.what == failure.wrong.what), None)
        if same is None:
            out.append((failure, []))
        else:
            same.append(failure.check)
    return out


class CheckFailure(AssertionError):
    """The failure of a check; `failure` holds it, and the message is its report."""

    def __init__(self, *failures: Failure):
        super().__init__("\n\n".join(f"{failure}{ALSO.format(', '.join(others)) * bool(others)}" for failure, others in group_by_exception(failures)))
        self.failures = failures

    @property
    def failure(self) -> Failure:
        """The first of the failures."""
        return self.failures[0]


@dataclass(repr=False)
class Result(BaseReport):
    """The result of one check: "passed", "failed", "imprecise", "not applicable" or "not checkable" with the reason; the number of examples, its
    seconds, and how many numbers (or other things, such as exceptions) were compared.

    A check that compared nothing is "not applicable", and one that was aborted "not checkable". It is "imprecise" where results lose digits as
    the formula's own steps do, and nothing is wrong. It is true where the check passed or does not apply.

    >>> from symgrad.testing import check_value
    >>> str(check_value(np.exp, formula="exp(x)", inputs=[np.array(1.0)]))
    'value: passed\\n1 example'
    """

    check: str
    verdict: str
    reason: str = ""
    examples: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    compared: int = 0

    def parts(self) -> Iterator[Part]:
        """The number of examples, and the failure."""
        if self.examples:
            yield Line(f"{self.examples} example{'s' * (self.examples != 1)}")
        if self.failure is not None:
            yield Line(self.failure.headline)
            yield from self.failure.outline()


@dataclass(repr=False)
class OpReport(BaseReport):
    """The results of all checks of an op. It is true if at least one check passed, and none failed or is imprecise."""

    op: str
    profile: str
    seed: int
    results: list[Result] = field(default_factory=list)
    exact: str = ""

    @property
    def failures(self) -> list[Failure]:
        """The failures of all checks, those that only lose digits last."""
        return sorted((r.failure for r in self.results if r.failure is not None), key=lambda failure: failure.wrong.imprecise)

    @property
    def verdict(self) -> str:
        """ "failed" if one check failed, else "imprecise" if one is, else "passed"; "not checkable" where no check applies or one was aborted."""
        words = {r.verdict for r in self.results}
        return next((word for word in ("failed", "not checkable", IMPRECISE, "passed") if word in words), "not checkable")

    def parts(self) -> Iterator[Part]:
        """The parts of the report, in order."""
        words = "passed", "failed", IMPRECISE, "not applicable", "not checkable"
        passed, failed, imprecise, silent, aborted = (sum(r.verdict == word for r in self.results) for word in words)
        aborts = f"{aborted} were aborted, " if aborted else ""
        yield Line(f"{passed} checks passed, {failed} failed, {f'{imprecise} imprecise, ' if imprecise else ''}{aborts}{silent} do not apply "
                   f"(profile {self.profile}, seed {self.seed}, {sum(r.seconds for r in self.results):.2f} s)")
        if self.exact:
            yield Line(f"exact is {self.exact}")
        rows = [(r.check, r.verdict, str(r.examples or ""), first_line(r.reason)) for r in self.results]
        yield Table("Checks", ("check", "", "examples", ""), rows)
        for failure, others in group_by_exception(self.failures):
            yield Line("")
            yield Line(failure.headline)
            yield from failure.outline()
            if others:
                yield Line(ALSO.strip().format(", ".join(others)))
