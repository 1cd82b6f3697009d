"""The report of the search of `gradcheck`, and the wrong derivative that it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from symgrad.reports.base import BaseReport, Line, Part, ulp_text

EXACT = "SymPy's derivatives of the recorded computation, to fifty digits"
NUMERICAL = "finite differences with a bound of their error"


@dataclass(frozen=True)
class GradientMismatch:
    """A wrong derivative: the function's, the reference, whether that has fifty digits, whether it is a tangent, its coordinate (None: a direction).

    In a report it also has the place `where` it is, the inputs as text, whether they are the given ones, and whether the difference is so small that
    the default tolerances allow it.
    """

    analytical: float
    true: float
    exact: bool
    forward: bool
    coordinate: int | None
    where: str = ""
    point: tuple[str, ...] = ()
    given: bool = False
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


@dataclass(repr=False)
class GradientAttack(BaseReport):
    """The result of the search besides the finite differences at the given inputs.

    `attacked` counts the points where derivatives were compared (the given one among them), `planned` those that should be, `exact` those where
    the reference has fifty digits. `left_out` counts other points by reason; `reason` says why no point was checked. `ulp` is
    the largest error of a float of the gradient in units in the last place, `where` names the float, and `condition` is the condition of
    the point. `failure` is the wrong derivative, None if there is none.
    """

    order: int
    attacked: int = 0
    exact: int = 0
    planned: int = 1
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
        parts = [f"{EXACT} ({self.exact} points)"] * (self.exact > 0) + [f"{NUMERICAL} ({self.attacked - self.exact})"] * (self.attacked > self.exact)
        return ", ".join(parts)

    @property
    def headline(self) -> str:
        """The first line: what ran, and its verdict."""
        return f"{'gradcheck' if self.order == 1 else 'gradgradcheck'}: {self.verdict}"

    def outline(self) -> Iterator[Part]:
        """The parts of the report, in order."""
        yield Line("central differences at the given inputs, within atol and rtol")
        if self.reason:
            yield Line(f"not attacked at other inputs: {self.reason}")
        if self.attacked:
            yield Line(f"attacked at {self.attacked} of {self.planned} planned points, order {self.order}, against {self.truth}; seed {self.seed}")
        if self.left_out:
            yield Line("left out: " + ", ".join(f"{count} where {why}" for why, count in sorted(self.left_out.items())))
        if self.ulp is not None:
            of = f", by {self.where}" + (f", at a point of condition {self.condition:.3g}" if self.condition > 2 else "") if self.ulp else ""
            yield Line(f"largest error of a float {ulp_text(self.ulp)} ULP{of}")
        if self.failure is not None:
            yield Line(str(self.failure))

    def __repr__(self) -> str:
        return f"<GradientAttack: {self.verdict} at {self.attacked} points>"
