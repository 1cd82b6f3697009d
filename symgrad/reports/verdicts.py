"""The verdicts of reports, and which of them make a report true."""

from __future__ import annotations

__all__ = ["NOT_CHECKABLE", "PROVED", "REFUTED", "VERIFIED", "Verdict"]

PROVED, VERIFIED, REFUTED, NOT_CHECKABLE = "proved", "verified", "refuted", "not checkable"

POSITIVE = frozenset({
    PROVED, VERIFIED,  # check, prove, identical, op_from_sympy
    "inside",  # kinks: the returned gradient is in the subdifferential
    "finite",  # explain_nan
    "accurate",  # accuracy
    "passed", "not applicable",  # check_op and its checks, gradcheck: a check that does not apply is no failure
})


class Verdict:
    """A report with a `verdict`. It is true where the verdict is positive, so that `assert` accepts what was shown and nothing else.

    Not positive are "refuted", "not checkable", "outside", "undecided", "not finite", "imprecise" and "failed".
    """

    @property
    def ok(self) -> bool:
        """Whether the verdict is positive."""
        return self.verdict in POSITIVE  # type: ignore[attr-defined]  # a field of some reports, a property of others

    def __bool__(self) -> bool:
        return self.ok
