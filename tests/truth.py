"""The truth about an elementwise op, from its forward rule alone: `sympy.diff` of it, evaluated with as many digits as it takes.

Where SymPy has no derivative (a `floor`, a `Mod`, a kink), the truth is a difference quotient of the forward rule with a step of 1e-650 and
thousands of digits: these functions are made of straight pieces, so that it is exact.
"""

import itertools
import math
from functools import cached_property

import mpmath
import sympy
from mpmath import mpf
from points import domain

from symgrad.carriers import precise, symbolic

DIGITS = 45
TINY, LARGEST = 2.2250738585072014e-308, 1.7976931348623157e308
NOTHING = mpf("1e-400")  # what is smaller is the rounding of terms that cancel exactly, or no float
UNDECIDED = (sympy.Derivative, sympy.Subs, sympy.DiracDelta, sympy.Heaviside, sympy.Max, sympy.Min, sympy.Abs, sympy.sign, sympy.Mod, sympy.floor,
             sympy.ceiling)
STENCILS = {0: {0: (1, 1)}, 1: {-1: (-1, 2), 1: (1, 2)}, 2: {-1: (1, 1), 0: (-2, 1), 1: (1, 1)}, 3: {-2: (-1, 2), -1: (1, 1), 1: (-1, 1), 2: (1, 2)}}


def cell(x):
    """One SymPy expression as the symbolic carrier holds it, numbers exact."""
    return symbolic.ExactExpressions.fill([x], ())


def orders(arity, order):
    """The multi-indices of every derivative of one order."""
    return [k for k in itertools.product(range(order + 1), repeat=arity) if sum(k) == order]


def symbols(op):
    """One symbol per argument, with the assumptions of the op's domain."""
    return [sympy.Symbol(name, **domain(op, i).assumptions) for i, name in enumerate(op.argument_names)]


class Truth:
    """The derivatives of one elementwise op, with one tuple of parameters."""

    def __init__(self, op, parameters=()):
        self.op, self.parameters, self.symbols = op, parameters, symbols(op)
        self._formulas, self._functions = {}, {}

    @cached_property
    def forward(self):
        """The forward rule, read with SymPy."""
        return self.read(self.symbols)

    def read(self, xs):
        """The forward rule at any expressions."""
        return self.op.forward(symbolic, *map(cell, xs), *self.parameters).item()

    def formula(self, k):
        """`sympy.diff` of the forward rule, k[i] times by argument i."""
        if k not in self._formulas:
            i = next((i for i, n in enumerate(k) if n), None)
            self._formulas[k] = self.forward if i is None else sympy.diff(self.formula((*k[:i], k[i] - 1, *k[i + 1:])), self.symbols[i])
        return self._formulas[k]

    def decided(self, k):
        """Whether SymPy has a formula for this derivative."""
        return sum(k) == 0 or not self.formula(k).has(*UNDECIDED)

    def __call__(self, k, x):
        """The derivative k at the point x: an mpf of which at least 45 digits are right, or an exact 0."""
        if sum(k) == 0:
            return self.value(x)
        return self._by_formula(k, x) if self.decided(k) else self._by_quotient(k, x)

    def value(self, x, digits=400):
        """The forward rule itself, read with many digits."""
        before = precise.set_digits(digits)
        try:
            return self.op.forward(precise, *(precise.lift_value(v) if isinstance(v, float) else precise.Digits.fill([v], ()) for v in x),
                                   *self.parameters).item()
        finally:
            precise.set_digits(before)

    def _by_formula(self, k, x):
        if k not in self._functions:
            self._functions[k] = sympy.lambdify(self.symbols, sympy.factor(self.formula(k)), "mpmath")
        if self.formula(k).is_number:
            return mpf(self.formula(k).evalf(60))
        digits, before = 60, None
        while True:
            with mpmath.workdps(digits):
                value = mpf(self._functions[k](*map(mpf, x)))
                if before is not None and value and abs(value - before) <= abs(value) * mpf(10) ** -DIGITS:
                    return value
            if digits > 900 and max(abs(value), abs(before)) < NOTHING:
                return mpf(0)
            assert digits < 10000, f"{self.op.name}: no {DIGITS} digits of derivative {k} at {x}: {before} and {value}"
            before, digits = value, 2 * digits

    def _by_quotient(self, k, x):
        step = mpf(10) ** -650
        with mpmath.workdps(6000):
            steps = [step * (min(abs(mpf(v)), 1) if v else 1) for v in x]
            total = mpf(0)
            for combination in itertools.product(*(STENCILS[n].items() for n in k)):
                shifted = [mpf(v) + offset * h for v, h, (offset, _) in zip(x, steps, combination)]
                weight = math.prod(mpf(numerator) / denominator for _, (numerator, denominator) in combination)
                total += weight * self.value(shifted, 6000)
            return total / math.prod(h**n for h, n in zip(steps, k))
