"""Values of a tape's formulas at a point in ball arithmetic, with rigorous errors, where there is an enclosure of all their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.algebra.stochastic import Exact
from symgrad.carriers.digits import Undecided
from symgrad.proofs.tape import Tape
from symgrad.reference.certify import Certified, compare, enclosed, exponent_of, number, run_programs

Value = tuple[Any, int]  # a number, and the exponent of its error
EXACT = -(2**40)


class BallProgram:
    """Expressions of a tape as a program of real or complex balls, and the numbers by rules beside them; `rules` are as for `trace_expressions`."""

    def __init__(self, tape: Tape, expressions: Sequence[Any], symbols: Sequence[sympy.Symbol], rules: Callable[..., list[Any]] | None = None,
                 complex: bool = False):
        self.expressions, self.symbols, self.rules, self.module = expressions, symbols, rules, enclosed()
        self.definitions = {s: tape.steps[s] for e in expressions for s in tape.needed(e)}
        self.programs = self.module and self.module.Programs(complex)

    @property
    def exists(self) -> bool:
        """Whether there is an enclosure of all functions, as far as is known."""
        return self.programs is not None and not self.programs.refused

    def _run(self, point: Sequence[Exact], bits: int) -> tuple[list[Any], bool] | None:
        with self.module.ball.precision(bits):
            values = [self.module.exact_number(x) for x in point]

        def trace(bits: int) -> Any:
            return self.module.trace_expressions(self.definitions, self.expressions, self.symbols, values, bits, self.rules,
                                                 self.programs.complex)

        return run_programs(self.programs, trace, values, bits)

    def at(self, point: Sequence[Exact], digits: int) -> list[Value] | None:
        """The values with their errors; None without an enclosure, if a value is not finite, and at a kink or too close to one."""
        try:
            found = self._run(point, int(digits * 3.33) + 20) if self.exists else None
        except Undecided:
            return None
        if found is None or found[1] or not all(x.is_finite() for x in found[0]):
            return None
        return [(number(x), EXACT if x.is_exact() else exponent_of(x.rad())) for x in found[0]]

    def compared(self, point: Sequence[Exact]) -> Certified | None:
        """The comparison of the expressions with the numbers by the rules; None where balls do not decide it."""
        try:
            return compare(lambda bits: self._run(point, bits)) if self.exists else None
        except Undecided:
            return None
