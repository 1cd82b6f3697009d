"""The decorator `check`, which makes a public check of a body `(attack, example)`, and the table of all checks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.frameworks.adapter import NotApplicable
from symgrad.testing.attack import Attack
from symgrad.testing.attempt import Body, Check, When, attempt, given
from symgrad.testing.examples import Example
from symgrad.testing.failure import CheckFailure, Failure, Result
from symgrad.testing.shrinking import simplest

__all__ = ["CHECKS", "Check", "always", "check", "differentiable", "lacking", "run"]

CHECKS: dict[str, Check] = {}


def always(attack: Attack) -> str:
    """A check for every op."""
    return ""


def differentiable(attack: Attack) -> str:
    """A check for ops with derivatives."""
    return lacking(attack, 1)


def lacking(attack: Attack, order: int) -> str:
    """Why derivatives of an order are not checked, "" where they are."""
    if attack.order >= order:
        return ""
    if attack.profile.order < order:
        return f"derivatives of order {order} are not asked for"
    return f"it has no {('', 'second ', 'third ')[order - 1] * bool(attack.order)}derivative"


def check(name: str, draws: str = "points", when: When = always, most: int | None = None) -> Callable[[Body], Callable[..., Result]]:
    """Make a public check of a body and enter it in the table. The body raises `Wrong` for a wrong result.

    The check is a function `(op, formula=..., domain=..., profile=..., seed=..., inputs=..., ...)` that returns a `Result`, and raises `CheckFailure`
    with the simplest input found.
    """
    def make(body: Body) -> Callable[..., Result]:
        @functools.wraps(body)
        def function(op: Any, *, inputs: Sequence[Any] | None = None, cotangent: Any = None, tangents: Any = None, **options: Any) -> Result:
            attack = op if isinstance(op, Attack) else Attack(op, **options)
            result = run(CHECKS[name], attack, given(attack, inputs, cotangent, tangents))
            if result.failure is not None:
                raise CheckFailure(result.failure)
            return result

        del function.__wrapped__  # type: ignore[attr-defined]  # whose signature is not the one people call
        function.check_name = name  # type: ignore[attr-defined]
        CHECKS[name] = Check(name, body, draws, when, most, function)
        return function

    return make


def run(check: Check, attack: Attack, examples: Sequence[Example] | None = None) -> Result:
    """Run one check at every example. On a failure simplify the example."""
    start = time.perf_counter()
    if examples is None:
        _ = attack.dtype  # raises if the op has no value at any point; then there is nothing to check
    reason = attack.claims.without.get(check.name) or check.when(attack)
    if reason:
        return Result(check.name, "not applicable", reason)
    seen = 0
    failure: Failure | None = None
    try:
        chosen = attack.examples(check.draws)[:check.most] if examples is None else examples
        for example in chosen:
            wrong = attempt(check, attack, example)
            seen += 1
            if wrong is not None:
                failure = simplest(check, attack, example, wrong, fixed=examples is not None)
                break
    except NotApplicable as error:
        return Result(check.name, "not applicable", str(error), seen, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if failure is None:
        return Result(check.name, "passed", "", seen, seconds)
    return Result(check.name, "failed", failure.wrong.what, seen, seconds, failure)
