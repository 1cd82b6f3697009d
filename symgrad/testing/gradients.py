"""The attack of `autograd.gradcheck`: a function that passes at the given inputs, looked at with exact derivatives and at other points.

A function is never accused for what is no wrong derivative. What is left out is counted with its reason: points where it raises, is not finite,
changes its outputs' shapes, or has a kink; functions that are random or keep a state; derivatives that do not exist.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.autograd.jacobians import Problem
from symgrad.checking.shown import Shown
from symgrad.reports.verdicts import Verdict
from symgrad.testing.gradients_points import LeftOut, Points, Unattacked
from symgrad.testing.gradients_search import Search

__all__ = ["EXACT", "NUMERICAL", "GradientAttack", "GradientMismatch", "attack_gradients"]

EXACT = "SymPy's derivatives of the recorded computation, to fifty digits"
NUMERICAL = "finite differences with a bound of their error"


@dataclass(frozen=True)
class GradientMismatch:
    """A derivative that is wrong: `where` it stands, what the function's gradient gives, what is true, and the inputs as text.

    `given` says whether it was found at the given inputs, `exact` whether the truth has fifty digits, `forward` whether it is a tangent, `small`
    whether the difference is one that the default tolerances allow.
    """

    where: str
    analytical: float
    true: float
    point: tuple[str, ...]
    given: bool
    exact: bool
    forward: bool = False
    small: bool = False

    def __str__(self) -> str:
        kind = "Jacobian computed with forward mode mismatch" if self.forward else "Jacobian mismatch"
        lines = [f"{kind} {'at' if self.given else 'away from'} the given inputs for {self.where},", f"analytical:{self.analytical!r}",
                 f"true:{self.true!r} ({EXACT if self.exact else NUMERICAL})", ""]
        if self.given and self.small:
            lines += ["The difference is within the tolerances, where finite differences see nothing. If it is meant to be allowed, give a",
                      "larger atol or rtol, or `attack=False`."]
        elif not self.given:
            lines += ["The function passes at the inputs it was given, and is wrong with these:", *(f"  {text}" for text in self.point),
                      "If it is made for the given inputs alone, give `attack=False`."]
        return "\n".join(lines)


@dataclass
class GradientAttack(Verdict, Shown):
    """What was looked at beside finite differences at the given inputs.

    `attacked` counts the points where derivatives were compared (the given one among them), `exact` those of them where the truth has
    fifty digits. `left_out` has the reasons for points that were not, with their numbers; `reason` is why there was no attack at all. `ulp` is
    the largest error of a float of the gradient in units in the last place, `where` says of which, and `condition` how much
    the point itself stands for. `failure` is the derivative that is wrong, None if none is.
    """

    order: int
    attacked: int = 0
    exact: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    ulp: float | None = None
    where: str = ""
    condition: float = 1.0
    failure: GradientMismatch | None = None
    seed: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """ "failed" where a derivative is wrong, else "passed"."""
        return "failed" if self.failure else "passed"

    @property
    def truth(self) -> str:
        """What the derivatives were compared with."""
        parts = [f"{EXACT} ({self.exact} points)"] * (self.exact > 0) + [f"{NUMERICAL} ({self.attacked - self.exact})"] * (self.attacked > self.exact)
        return ", ".join(parts)

    def outline(self) -> Iterator[Any]:
        """The parts of the report, in order."""
        from symgrad.checking.rendering import Line

        yield Line(f"{'gradcheck' if self.order == 1 else 'gradgradcheck'}: {self.verdict}")
        yield Line("central differences at the given inputs, within atol and rtol")
        if self.reason:
            yield Line(f"not attacked at other inputs: {self.reason}")
        if self.attacked:
            yield Line(f"attacked at {self.attacked} points, order {self.order}, against {self.truth}; seed {self.seed}")
        if self.left_out:
            yield Line("left out: " + ", ".join(f"{count} where {why}" for why, count in sorted(self.left_out.items())))
        if self.ulp is not None:
            of = f", by {self.where}" + (f", at a point of condition {self.condition:.3g}" if self.condition > 2 else "") if self.ulp else ""
            yield Line(f"largest error of a float {self.ulp:.3g} ULP{of}")
        if self.failure is not None:
            yield Line(str(self.failure))

    def __repr__(self) -> str:
        return f"<GradientAttack: {self.verdict} at {self.attacked} points>"


def attack_gradients(func: Callable[..., Any], inputs: tuple[Any, ...], *, order: int = 1, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                     backward: bool = True, forward: bool = False, seed: int = 0) -> GradientAttack:
    """Attack the first derivative of a function that `gradcheck` passed at these inputs; `order` is what the report calls it.

    The inputs' memory is written and put back, as `gradcheck` does it, so that what a closure holds moves along; random generators are put
    back, too. What the function prints or warns of at other points is not told again.

    >>> import symgrad
    >>> report = attack_gradients(symgrad.tanh, (symgrad.tensor([0.5, 1.0], requires_grad=True),))
    >>> report.failure is None, report.attacked > 2, report.exact == report.attacked
    (True, True, True)
    """
    from symgrad.checking.problem import silence
    from symgrad.random import fork_rng

    start = time.perf_counter()
    report = GradientAttack(order, seed=seed)
    states = random.getstate(), np.random.get_state()
    try:
        with fork_rng(), silence():
            rng = np.random.default_rng(seed)
            Search(Points(Problem(func, inputs, eps), rng), report, (atol, rtol), backward, forward, rng).run()
    except (Unattacked, LeftOut) as error:
        report.reason = str(error)
    except Exception as error:  # whatever a function raises that is called more often than it thinks
        report.reason = f"called again it raised {type(error).__name__}: {error}"
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
    report.seconds = time.perf_counter() - start
    return report
