"""The domains of ops: sets of real numbers, which load SymPy only on demand.

A `Domain` is a finite union of intervals minus finitely many points. It gives the assumptions of the symbols a rule
is proved with, the points that checks draw, and (`Domain.sympy`) the set as a SymPy object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

__all__ = ["BOOLEAN", "COMPLEX", "DISTINCT", "Domain", "FIXED", "FULL", "Interval", "INTEGER", "LOWER_TRIANGULAR", "MatrixDomain", "NEGATIVE",
           "NONNEGATIVE", "NONSINGULAR", "NONZERO", "ORTHOGONAL", "POSITIVE", "REAL", "SEPARATED", "SEPARATED_SINGULAR", "SPD", "SYMMETRIC",
           "TRIANGULAR", "UNIT_CLOSED", "UNIT_OPEN"]


@dataclass(frozen=True)
class Interval:
    """The real numbers from `low` to `high`; an infinite end is always open."""

    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, x: float) -> bool:
        above = x > self.low if self.open_low or self.low == -inf else x >= self.low
        below = x < self.high if self.open_high or self.high == inf else x <= self.high
        return above and below


@dataclass(frozen=True)
class Domain:
    """A union of intervals without the `excluded` points.

    >>> 0.0 in NONZERO, 2.0 in NONZERO, 1.0 in UNIT_OPEN
    (False, True, False)
    """

    name: str
    intervals: tuple[Interval, ...] = (Interval(),)
    excluded: tuple[float, ...] = ()
    integer: bool = False

    def __contains__(self, x: float) -> bool:
        inside = any(x in interval for interval in self.intervals) and x not in self.excluded
        return inside and (not self.integer or float(x).is_integer())

    @cached_property
    def assumptions(self) -> dict[str, bool]:
        """The assumptions of a SymPy symbol that ranges over this domain."""
        out = {"real": True}
        if self.integer:
            out["integer"] = True
        low = min(interval.low for interval in self.intervals)
        high = max(interval.high for interval in self.intervals)
        if low >= 0:
            out["positive" if 0.0 not in self else "nonnegative"] = True
        elif high <= 0:
            out["negative" if 0.0 not in self else "nonpositive"] = True
        elif 0.0 not in self:
            out["nonzero"] = True
        return out

    @cached_property
    def sympy(self) -> Any:
        """The same set as a SymPy object."""
        import sympy

        def end(value: float) -> Any:
            return sympy.nsimplify(value) if abs(value) != inf else (sympy.oo if value > 0 else -sympy.oo)

        parts = [sympy.Interval(end(i.low), end(i.high), i.open_low, i.open_high) for i in self.intervals]
        out = sympy.Union(*parts) - sympy.FiniteSet(*map(end, self.excluded))
        return out & sympy.S.Integers if self.integer else out

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class MatrixDomain(Domain):
    """Matrices of a kind, which `symgrad.sampling.numbers.fit` makes of arbitrary numbers."""

    kind: str = ""


REAL = Domain("REAL")
NONZERO = Domain("NONZERO", excluded=(0.0,))
POSITIVE = Domain("POSITIVE", (Interval(0.0, inf, open_low=True),))
NONNEGATIVE = Domain("NONNEGATIVE", (Interval(0.0, inf),))
NEGATIVE = Domain("NEGATIVE", (Interval(-inf, 0.0, open_high=True),))
UNIT_OPEN = Domain("UNIT_OPEN", (Interval(-1.0, 1.0, True, True),))
UNIT_CLOSED = Domain("UNIT_CLOSED", (Interval(-1.0, 1.0),))
INTEGER = Domain("INTEGER", integer=True)
BOOLEAN = Domain("BOOLEAN", (Interval(0.0, 1.0),), integer=True)
COMPLEX = Domain("COMPLEX")  # or tensors of the parts of complex numbers: the tests for real functions do not apply
FIXED = Domain("FIXED")  # one number, by which there is no derivative; each tuple of `examples` begins with one
NONSINGULAR = MatrixDomain("NONSINGULAR", kind="nonsingular")
SPD = MatrixDomain("SPD", kind="spd")  # symmetric (Hermitian) and positive definite
SYMMETRIC = MatrixDomain("SYMMETRIC", kind="symmetric")
TRIANGULAR = MatrixDomain("TRIANGULAR", kind="triangular")  # either triangle, with the diagonal, is a nonsingular matrix
LOWER_TRIANGULAR = MatrixDomain("LOWER_TRIANGULAR", kind="lower_triangular")
ORTHOGONAL = MatrixDomain("ORTHOGONAL", kind="orthogonal")
SEPARATED = MatrixDomain("SEPARATED", kind="well_separated_spectrum")  # symmetric, with different eigenvalues
FULL = MatrixDomain("FULL", kind="full")  # nonsingular, without zeros below the diagonal
SEPARATED_SINGULAR = MatrixDomain("SEPARATED_SINGULAR", kind="well_separated_singular_values")  # of any shape
DISTINCT = MatrixDomain("DISTINCT", kind="distinct")  # vectors of different numbers
