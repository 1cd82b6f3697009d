"""`check`: the decorator that makes a public check of a body `(attack, example)`, and the table of all checks."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd import is_grad_enabled, set_grad_enabled
from symgrad.dtypes import get_default_dtype, set_default_dtype
from symgrad.testing.attack import Attack
from symgrad.testing.drawing import Example
from symgrad.testing.failure import CheckFailure, Failure, NotApplicable, Result, Wrong
from symgrad.testing.subjects.base import is_active

__all__ = ["CHECKS", "Check", "always", "check", "differentiable", "lacking", "run"]

CHECKS: dict[str, Check] = {}
Body = Callable[[Attack, Example], None]
When = Callable[[Attack], str]


class Check(NamedTuple):
    """A check: its name, its body, the kind of examples it draws, and when it does not apply ("" where it does, else why not).

    `most` is how many examples it looks at where that is fewer than there are.
    """

    name: str
    body: Body
    draws: str
    when: When
    most: int | None
    function: Callable[..., Result]


def always(attack: Attack) -> str:
    """It applies to every op."""
    return ""


def differentiable(attack: Attack) -> str:
    """It applies to ops with derivatives."""
    return lacking(attack, 1)


def lacking(attack: Attack, order: int) -> str:
    """Why derivatives of an order are not looked at, "" where they are."""
    if attack.order >= order:
        return ""
    if attack.profile.order < order:
        return f"derivatives of order {order} are not asked for"
    return f"it has no {('', 'second ', 'third ')[order - 1] * bool(attack.order)}derivative"


def check(name: str, draws: str = "points", when: When = always, most: int | None = None) -> Callable[[Body], Callable[..., Result]]:
    """Make a public check of a body, and enter it in the table. The body raises `Wrong` for what is wrong.

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


def given(attack: Attack, inputs: Sequence[Any] | None, cotangent: Any, tangents: Any) -> list[Example] | None:
    """The one example that a user gives, with ones for a cotangent and tangents that are not given."""
    if inputs is None:
        return None
    xs = tuple(np.asarray(x) for x in inputs)
    try:
        with silence():
            shape = attack.subject.value(xs).shape
    except Exception:  # the check will say it
        shape = xs[0].shape if xs else ()
    floats = [x.dtype for x in xs if is_active(x)]
    g = np.ones(shape, np.result_type(*floats) if floats else float) if cotangent is None else np.asarray(cotangent)
    ones = tuple(np.ones_like(x) if is_active(x) else None for x in xs)
    sets = (ones,) * 3 if tangents is None else tuple(tuple(None if t is None else np.asarray(t) for t in s) for s in tangents)
    return [Example(xs, g, sets)]


class silence:
    """No warnings of NumPy's and none of the op's while it is attacked; and whatever it does to modes of symgrad's, afterwards they are as before."""

    def __enter__(self) -> None:
        self.modes = get_default_dtype(), is_grad_enabled()
        self.errors = np.errstate(all="ignore")
        self.warnings = warnings.catch_warnings()
        self.errors.__enter__()
        self.warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: Any) -> None:
        self.warnings.__exit__(*error)
        self.errors.__exit__(*error)
        set_default_dtype(self.modes[0])
        set_grad_enabled(self.modes[1])


def attempt(check: Check, attack: Attack, example: Example) -> Wrong | None:
    """What is wrong at one example; an exception of the op is wrong, too. An op that writes to its arguments spoils them for no other check."""
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
    return None


def run(check: Check, attack: Attack, examples: Sequence[Example] | None = None) -> Result:
    """Run one check: through every example, and on a failure to the simplest example that fails."""
    start = time.perf_counter()
    if examples is None:
        _ = attack.dtype  # raises where no call gives a value: then there is nothing to check
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
                from symgrad.testing.shrinking import simplest

                failure = simplest(check, attack, example, wrong, fixed=examples is not None)
                break
    except NotApplicable as error:
        return Result(check.name, "not applicable", str(error), seen, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if failure is None:
        return Result(check.name, "passed", "", seen, seconds)
    return Result(check.name, "failed", failure.wrong.what, seen, seconds, failure)
