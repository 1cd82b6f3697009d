"""Values of a tape's formulas at a point in ball arithmetic, with rigorous errors, where there is an enclosure of all their functions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import sympy

from symgrad.carriers.digits import Undecided
from symgrad.proofs.tape import Tape
from symgrad.reference.certify import enclosed, exponent_of, number, run_programs

Value = tuple[Any, int]  # a number, and the exponent of its error
EXACT = -(2**40)


class BallProgram:
    """Expressions of a tape as a program of real balls."""

    def __init__(self, tape: Tape, expressions: Sequence[Any], symbols: Sequence[sympy.Symbol]):
        self.expressions, self.symbols, self.module = expressions, symbols, enclosed()
        self.definitions = {s: tape.steps[s] for e in expressions for s in tape.needed(e)}
        self.programs = self.module and self.module.Programs()

    def at(self, point: Sequence[Fraction], digits: int) -> list[Value] | None:
        """The values with their errors; None without an enclosure, if a value is not finite, and at a kink or too close to one."""
        if self.programs is None or self.programs.refused:
            return None
        module, bits = self.module, int(digits * 3.33) + 20
        with module.ball.precision(bits):
            values = [module.exact_number(x) for x in point]

        def trace(bits: int) -> tuple[Any, None]:
            return module.trace_expressions(self.definitions, self.expressions, self.symbols, values, bits), None

        try:
            found = run_programs(self.programs, trace, values, bits)
        except Undecided:
            return None
        if found is None or found[1] or not all(x.is_finite() for x in found[0]):
            return None
        return [(number(x), EXACT if x.is_exact() else exponent_of(x.rad())) for x in found[0]]
