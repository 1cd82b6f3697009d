"""The verdicts of reports: which make a report true, which is the weakest of several, and the exit code of each."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["IMPRECISE", "NOT_CHECKABLE", "POSITIVE", "PROVED", "REFUTED", "VERIFIED", "exit_code", "weakest"]

PROVED, VERIFIED, IMPRECISE, REFUTED, NOT_CHECKABLE = "proved", "verified", "imprecise", "refuted", "not checkable"

POSITIVE = frozenset({
    PROVED, VERIFIED,  # check, prove, identical, op_from_sympy
    "inside",  # kinks: the returned gradient is in the subdifferential
    "finite",  # explain_nan
    "accurate",  # accuracy
    "passed", "not applicable",  # check_op and its checks, gradcheck: a check that does not apply is no failure
})
STRENGTH = REFUTED, NOT_CHECKABLE, IMPRECISE, VERIFIED, PROVED


def weakest(verdicts: Iterable[str]) -> str:
    """The weakest of several verdicts about derivatives; "not checkable" for none.

    >>> weakest(["proved", "verified"]), weakest([])
    ('verified', 'not checkable')
    """
    return min(verdicts, key=STRENGTH.index, default=NOT_CHECKABLE)


def exit_code(verdicts: Iterable[str], strict: bool = False) -> int:
    """The exit code of a command: 1 if one is refuted, 2 if one could not be checked, 3 for lost digits where `strict`, else 0.

    >>> exit_code(["proved", "imprecise"]), exit_code(["imprecise"], strict=True), exit_code(["refuted", "not checkable"])
    (0, 3, 1)
    """
    words = set(verdicts)
    return 1 if REFUTED in words else 2 if words - POSITIVE - {IMPRECISE} else 3 if strict and IMPRECISE in words else 0
