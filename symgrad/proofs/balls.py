"""Values of a tape's formulas at a point in ball arithmetic, with rigorous errors, where there is an enclosure of all their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.algebra.stochastic import Exact
from symgrad.carriers.digits import Undecided
from symgrad.proofs.tape import Tape
from symgrad.reference.certify import Balls, Certified, enclosed, exponent_of, number

Value = tuple[Any, int]  # a number, and the exponent of its error
EXACT = -(2**40)


class BallProgram:
    """Expressions of a tape as a program of real or complex balls, and the numbers by rules beside them; `rules` are as for `trace_expressions`."""

    def __init__(self, tape: Tape, expressions: Sequence[Any], symbols: Sequence[sympy.Symbol], rules: Callable[..., list[Any]] | None = None,
                 complex: bool = False):
        definitions, module = {s: tape.steps[s] for e in expressions for s in tape.needed(e)}, enclosed()
        self.programs = module and module.Programs(complex)
        self.trace = lambda inputs, bits: module.trace_expressions(definitions, expressions, symbols, inputs, bits, rules, complex)

    def at(self, point: Sequence[Exact], digits: int) -> list[Value] | None:
        """The values with their errors; None without an enclosure, if a value is not finite, and at a kink or too close to one."""
        try:
            found = Balls(self.programs, self.trace, point).run(int(digits * 3.33) + 20)
        except Undecided:
            return None
        if found is None or found[1] or not all(x.is_finite() for x in found[0]):
            return None
        return [(number(x), EXACT if x.is_exact() else exponent_of(x.rad())) for x in found[0]]

    def compared(self, point: Sequence[Exact]) -> Certified | None:
        """The comparison of the expressions with the numbers by the rules; None where balls do not decide it."""
        try:
            return Balls(self.programs, self.trace, point).compared()
        except Undecided:
            return None
