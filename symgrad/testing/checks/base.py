"""The decorator `check`, which makes a public check of a body `(attack, example)`, the table of all checks, and `check_op`, which runs them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from symgrad.carriers.lapack import hermitian_parts
from symgrad.frameworks.adapter import NotApplicable
from symgrad.reports.streams import progress_bar
from symgrad.testing.attack import Attack, Body, Check, When, run_at_example, user_example
from symgrad.testing.checks.measuring import report_lost_digits
from symgrad.testing.examples import Example
from symgrad.testing.failure import CheckFailure, Failure, OpReport, Result, Wrong
from symgrad.testing.shrinking import simplest_failure

__all__ = ["ACCURACY", "Check", "check", "check_names", "check_op", "CHECKS", "differentiable", "ORDINALS", "reason_without_order", "run"]

CHECKS: dict[str, Check] = {}
ORDINALS = ("value", "gradient", "second derivative", "third derivative")


def differentiable(attack: Attack) -> str:
    """A check for ops with derivatives."""
    return reason_without_order(attack, 1)


def reason_without_order(attack: Attack, order: int) -> str:
    """The reason why derivatives of an order are not checked; "" if they are."""
    if attack.order >= order:
        return ""
    if attack.profile.order < order:
        return f"derivatives of order {order} are not asked for"
    return f"it has no {('', 'second ', 'third ')[order - 1] * bool(attack.order)}derivative"


def check(name: str, draws: str = "points", when: When = lambda attack: "", most: int | None = None) -> Callable[[Body], Callable[..., Result]]:
    """Make a public check of a body and enter it in the table. The body raises `Wrong` for a wrong result.

    The check is a function `(op, formula=..., domain=..., profile=..., seed=..., inputs=..., ...)` that returns a `Result`, and raises `CheckFailure`
    with the simplest input found.
    """
    def make(body: Body) -> Callable[..., Result]:
        @functools.wraps(body)
        def function(op: Any, *, inputs: Sequence[Any] | None = None, cotangent: Any = None, tangents: Any = None, **options: Any) -> Result:
            attack = op if isinstance(op, Attack) else Attack(op, **options)
            result = run(CHECKS[name], attack, user_example(attack, inputs, cotangent, tangents))
            if result.failure is not None:
                raise CheckFailure(result.failure)
            return result

        del function.__wrapped__  # whose signature is not the one people call
        function.check_name = name  # type: ignore[attr-defined]
        CHECKS[name] = Check(name, body, draws, when, most, function)
        return function

    return make


@hermitian_parts()  # of which the rules are the derivatives, element by element
def run(check: Check, attack: Attack, examples: Sequence[Example] | None = None) -> Result:
    """Run one check at every example up to the first with a wrong result; then simplify the example.

    Results that only lost digits do not end the check, and are what is reported where none is wrong. At drawn examples they count as wrong
    unless most ordinary points keep their digits.
    """
    start = time.perf_counter()
    if examples is None:
        _ = attack.dtype  # raises if the op has no value at any point
    reason = attack.claims.without.get(check.name) or check.when(attack)
    if reason:
        return Result(check.name, "not applicable", reason)
    seen = 0
    failure: Failure | None = None
    examples_lost: list[tuple[Example, Wrong]] = []
    lost: list[Wrong] = []
    attack.compared.clear()
    try:
        chosen = attack.examples(check.draws)[:check.most] if examples is None else examples
        for example in chosen:
            wrong = run_at_example(check, attack, example)
            seen += 1
            if wrong is not None and not wrong.imprecise:
                failure = simplest_failure(check, attack, example, wrong, fixed=examples is not None)
                break
            if wrong is not None:
                examples_lost.append((example, wrong))
                lost += attack.lost
        if failure is None and examples_lost:
            compared = list(attack.compared)
            failure = simplest_failure(check, attack, *max(examples_lost, key=lambda found: found[1].ulp or 0.0), fixed=examples is not None)
            if failure.wrong.imprecise:
                report_lost_digits(attack, failure.wrong, compared, lost, fixed=examples is not None)
    except NotApplicable as error:
        return Result(check.name, "not applicable", str(error), seen, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if failure is None:
        return Result(check.name, "passed", "", seen, seconds)
    if failure.wrong.imprecise and attack.claims.imprecise:
        return Result(check.name, "passed", failure.wrong.what, seen, seconds)
    return Result(check.name, failure.verdict, failure.wrong.what, seen, seconds, failure)


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
