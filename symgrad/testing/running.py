"""`check_op`: every check on one op."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symgrad.reports.progress import progress_bar
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS, run
from symgrad.testing.failure import CheckFailure, OpReport

__all__ = ["ACCURACY", "check_names", "check_op"]

ACCURACY = "accuracy"  # the name of the scan, which pytest runs beside the checks


def check_op(op: Any, *, checks: Iterable[str] | None = None, raise_exception: bool = True, progress: Any = None, **options: Any) -> OpReport:
    """Run every check that applies to an op, and report what is wrong.

    The options are the claims of `symgrad.testing.Claims` (formula, domain, special, ...), `profile` ("dev", "ci" or "thorough") and
    `seed`; `checks` are the names of those to run, all of them where it is None.

    Raises CheckFailure, whose message holds every failure, unless `raise_exception` is False; TypeError and ValueError for claims that do
    not fit the op; ValueError for a check that does not exist.
    """
    attack = op if isinstance(op, Attack) else Attack(op, **options)
    wanted = list(CHECKS) if checks is None else list(checks)
    check_names(wanted, "check_op")
    check_names(attack.claims.without, "without", ACCURACY)
    report = OpReport(attack.name, attack.profile.name, attack.seed)
    with progress_bar(progress, attack.name) as tell:
        for k, name in enumerate(wanted):
            tell(name, k, len(wanted))
            report.results.append(run(CHECKS[name], attack))
    report.exact = getattr(attack.truth, "exact", "")
    if raise_exception and report.failures:
        raise CheckFailure(*report.failures)
    return report


def check_names(names: Iterable[str], said: str, *more: str) -> None:
    """Raise ValueError for a name that is not that of a check or of the accuracy scan."""
    unknown = [name for name in names if name not in (*CHECKS, *more)]
    if unknown:
        raise ValueError(f"{said}: there is no check {unknown[0]!r}; those are {', '.join([*CHECKS, *more])}")
