"""The data of an example: arguments with a cotangent and tangents, the draft it is made of, and the plan that drafts follow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable
from symgrad.graph.domains import BOOLEAN, COMPLEX, Domain, MatrixDomain
from symgrad.sampling.numbers import fit, table
from symgrad.testing.strategies.arrays import code_size

KINDS = ("points", "broadcast", "scalars", "empty", "low", "complex", "special")
EMPTY = ((0,), (0, 2), (3, 0))
MAX_ELEMENTS = 6  # elements of an argument of an elementwise op
ORDINARY = 20  # the number of ordinary points in a vector, and the length of all vectors if every shape is compiled for
# The smallest and the largest size of a number: any size for an elementwise op; such that sums and products of many keep digits; such
# that float16 holds it, with bfloat16's digits; such that the parts of a complex function do not cancel.
SIZES = {"points": (0.0, 1e300), "arrays": (1e-6, 300.0), "low": (2.0**-6, 64.0), "complex": (1e-3, 10.0)}
LARGEST = {"float64": 1e300, "float32": 1e37, "float16": 1e4}
HEADER, TRAILER = 2, 4  # bytes before and after those of a draft's numbers
Shape = tuple[int, ...]


class Example(NamedTuple):
    """Arguments, a cotangent of the value's shape, and three sets of tangents (None for an argument that is not active)."""

    xs: tuple[np.ndarray, ...]
    cotangent: np.ndarray
    tangents: tuple[tuple[np.ndarray | None, ...], ...]

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> Example:
        return Example(tuple(map(change, self.xs)), change(self.cotangent),
                       tuple(tuple(None if t is None else change(t) for t in ts) for ts in self.tangents))

    def arrays(self) -> list[tuple[str, np.ndarray]]:
        """The arrays of the example with their descriptions."""
        tangents = [(f"tangent {i}", t) for ts in self.tangents for i, t in enumerate(ts) if t is not None]
        return [*((f"argument {i}", x) for i, x in enumerate(self.xs)), ("the cotangent", self.cotangent), *tangents]

    def copied(self) -> Example:
        """The example copied to contiguous memory that can be written to."""
        return self.mapped(lambda x: np.array(x, order="C"))


class Draft(NamedTuple):
    """Arguments, and the keys of the cotangent and of the tangents."""

    xs: tuple[np.ndarray, ...]
    cotangent: int
    tangents: int


class DrawingPlan(NamedTuple):
    """The parameters that drafts of a kind depend on; `shapes` is None for an elementwise op, `few` limits the number of shapes."""

    kind: str
    domains: tuple[Domain, ...]
    shapes: tuple[Shape, ...] | None
    smallest: float
    dtype: str = "float64"
    few: bool = False

    @property
    def counts(self) -> list[int]:
        """The number of numbers drawn for each argument."""
        return [MAX_ELEMENTS if self.shapes is None else math.prod(self.shapes[i]) for i in range(len(self.domains))]

    @property
    def starts(self) -> list[int]:
        """The offsets of the bytes of each argument's numbers, first of all real parts, then of all imaginary ones, and the end of the last."""
        sizes = [code_size(n) for n in self.counts] * (2 if self.kind == "complex" else 1)
        return list(itertools.accumulate(sizes, initial=HEADER + len(self.domains)))

    @property
    def size(self) -> int:
        return self.starts[-1] + TRAILER

    def typed(self, x: np.ndarray, i: int) -> np.ndarray:
        """The array as booleans for a boolean domain, and as real numbers for the real arguments of an op with complex ones."""
        domain = self.domains[i]
        if isinstance(domain, MatrixDomain):
            return fit(domain, x)
        if domain == BOOLEAN:
            return x.real.astype(bool)
        return x.real if COMPLEX in self.domains and domain != COMPLEX else x

    def table(self, i: int) -> np.ndarray:
        """The table of numbers for one argument. Raises NotApplicable if the type has no number in the domain."""
        name = self.kind if self.kind in ("low", "complex") else "points" if self.shapes is None else "arrays"
        smallest, largest = SIZES[name]
        try:
            dtype, smallest, largest = "bfloat16" if name == "low" else self.dtype, max(smallest, self.smallest), min(largest, LARGEST[self.dtype])
            return table(self.domains[i], dtype, smallest, largest)
        except ValueError as error:
            raise NotApplicable(str(error)) from error


def only_tangent(tangents: Sequence[np.ndarray | None], k: int) -> list[np.ndarray | None]:
    """The tangents with all but that of one argument None."""
    return [t if i == k else None for i, t in enumerate(tangents)]


def off_branch_cuts(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Complex numbers; those on the imaginary axis lie between -i and i, since functions such as atan have cuts beyond."""
    return real + 1j * np.where((real == 0) & (np.abs(imaginary) >= 1), imaginary / 16, imaginary)
