"""The errors that numbers may have, and the sizes of the inputs at which they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from symgrad.graph.domains import Domain, Interval
from symgrad.sampling.domain_reader import domain_text

DEFAULT_ULP = 1000.0


def _is_real(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


@dataclass(frozen=True)
class Tolerances:
    """The allowed error of a number, in ULP (1000 by default) and as `atol` + `rtol` times its size; `range` has the least and the largest size of
    an input. Raises ValueError for invalid numbers.
    """

    ulp: float | None = None
    atol: float = 0.0
    rtol: float = 0.0
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        expected = {"ulp": "a positive number, how many units in the last place an error may have",
                    "atol": "a number that is not negative, the absolute error that is allowed besides",
                    "rtol": "a number that is not negative, the error relative to the truth that is allowed besides"}
        for name, what in expected.items():
            value = getattr(self, name)
            if not (value is None and name == "ulp" or _is_real(value) and (0 <= value if name != "ulp" else 0 < value) and value < np.inf):
                raise ValueError(f"check: {name} is {value!r}; expected {what}")
        ends = self.range
        if ends is not None and not (isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(_is_real, ends)) and 0 <= ends[0] < ends[1]):
            raise ValueError(f"check: range is {ends!r}; expected (least, largest), the sizes that the numbers of a point may have, "
                             f"such as (1e-100, 1e100)")

    @property
    def units(self) -> float:
        """The allowed error in units in the last place."""
        return DEFAULT_ULP if self.ulp is None else self.ulp

    def inside(self, vector: np.ndarray) -> np.ndarray:
        """The point clipped to the range."""
        return vector if self.range is None else np.where(vector == 0, vector, np.copysign(np.clip(np.abs(vector), *self.range), vector))

    def refuse(self, name: str, value: np.ndarray) -> None:
        """Raise ValueError for an input that is not finite or outside the range."""
        if not np.isfinite(value).all():
            raise ValueError(f"check: the input {name} is {value[~np.isfinite(value)].flat[0]}, where no function has a derivative; give a number")
        outside = value[value != self.inside(value)]
        if outside.size:
            raise ValueError(f"check: the input {name} = {float(outside[0]):g} lies outside range={self.range!r}; give one inside, or a wider range")

    def domain(self, domain: Domain) -> Domain:
        """The part of a domain inside the range. Raises ValueError if it is empty."""
        if self.range is None:
            return domain
        low, high = self.range
        bands = [Interval(-high, -low), Interval(0.0, 0.0), Interval(low, high)] if low else [Interval(-high, high)]
        meets = [(i, max(i.low, b.low), min(i.high, b.high)) for i in domain.intervals for b in bands]
        parts = [Interval(a, b, i.open_low and a == i.low, i.open_high and b == i.high) for i, a, b in meets if a <= b]
        parts = [p for p in parts if p.low < p.high or p.low in p and p.low not in domain.excluded]
        if not parts:
            raise ValueError(f"check: range is {self.range!r}, in which the domain {domain_text(domain)} has no number; give a wider one")
        return Domain(domain.name, tuple(parts), domain.excluded, domain.integer)


DEFAULT = Tolerances()
