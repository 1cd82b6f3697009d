"""The points at which forms are measured, with many-digit reference values and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.series import Laurent
from symgrad.algebra.stable_functions import larger, smaller, step, whole
from symgrad.algebra.values import accurate_value, value
from symgrad.carriers.digits import context
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.domains import Domain
from symgrad.sampling.points import draw_points
from symgrad.symbolic.generating import Code
from symgrad.symbolic.support import Patch, horner

KINKS = (sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.floor, sympy.Heaviside, larger, smaller, step, whole)
HALVINGS, DENSE = 6, 16  # the most halvings of the radius of a patch, and the number of points on each side where it is compared
WIDE = [10.0**e for e in (3.1, 5, 20, 52, 77, 103, 130, 154.5, 166, 300)]  # large numbers; their inverses are used, too
EDGES = (704.0, 711.0, 725.0, 742.0, 760.0)  # near these u, exp(u) overflows, and exp(-u) is subnormal or 0
BESIDE = (0.0, *(10.0**-e for e in (16, 14, 12, 9, 6, 4, 3, 2, 1.2, 0.7, 0.3)), 1.0, 3.0)  # relative distances from a surface
MOVED, BESIDE_ZERO = context.mpf(10) ** -90, context.mpf(10) ** -400  # the relative distance at which values beside a surface are computed; for 0
OVERFLOW = 4.4  # the error in units in the last place of a result that should be infinite and is not
GOOD, HOPELESS = 3.0, 1e7  # errors below GOOD are not divided by the condition number, nor are errors above HOPELESS
DISTANCES = [*(2.0 ** -(j / 2) for j in range(-4, 27)), *(1.2 * 2.0 ** -(j / 2) for j in range(-3, 6)),
             *(2.0**-j for j in (15, 18, 22, 27, 34, 45, 60, 90, 140, 260, 520, 1000))]
COUNT, JITTERED, SURE = 60, 3, 1e-27


class ErrorSampling:
    """The points at which forms are measured, with reference values and condition numbers."""

    def __init__(self, exact: Any, symbols: Sequence[Any], domains: Sequence[Domain]):
        conditions = {c for p in exact.atoms(sympy.Piecewise) for c in p.atoms(sympy.core.relational.Relational)}
        self.reference, self.domains = accurate_value(exact, symbols), domains
        self.kinked = exact.has(*KINKS) or any(not isinstance(c, (sympy.Eq, sympy.Ne)) for c in conditions)  # it may differ at the sides of a kink
        self.points: list[tuple[float, ...]] = []
        self.references: list[Any] = []
        self.add_points([tuple(v.tolist()) for v in draw_points(domains, COUNT, 0)])
        self.conditions: dict[tuple[float, ...], float] = {}
        self.ordinary = 10**9  # the index of the first point with very large or small numbers

    def add(self, centre: Any, series: Laurent) -> None:
        """Add points next to a centre at which the expression has a series."""
        middle, at = float(centre), value(centre)([])
        rng, last = np.random.default_rng(1), list(enumerate(row_of(series)))[-6:]
        nearby = [d * rng.uniform(0.9, 1.1) for d in DISTANCES if 0.02 < d < 4 for _ in range(JITTERED)]
        for x in dict.fromkeys(middle + s * d for d in (0.0, *DISTANCES, *nearby) for s in (1, -1)):
            if x in self.domains[0] or x == middle:
                u = context.fsub(x, at, exact=True)
                true = context.polyval(series.coefficients[::-1], u) * context.mpf(u) ** series.valuation
                known = abs(u) < 4 and max(abs(c) * abs(u) ** k for k, c in last) <= abs(true) * SURE
                self.points.append((x,))
                self.references.append(true if not self.kinked and (known or abs(u) < 2.0**-6) or x == middle else self.reference((x,)))

    def add_points(self, points: Sequence[tuple[float, ...]]) -> None:
        """Add points of the domain; the value of a point at which the expression is 0/0 is that of a point next to it."""
        for point in dict.fromkeys(points):
            if all(x in d for x, d in zip(point, self.domains)):
                true = self.reference(point)
                if true != true and len(point) > 1:
                    true = self.reference((context.fadd(point[0], point[0] * MOVED or BESIDE_ZERO, exact=True), *point[1:]))
                self.points.append(point)
                self.references.append(true)

    def beside(self, surfaces: Sequence[tuple[Any, Any]], symbols: Sequence[Any], points: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
        """For every surface symbol = root, points on it and at all distances from it, next to given points."""
        out = []
        for symbol, root in surfaces:
            i, at = symbols.index(symbol), value(root, symbols)
            for n, point in enumerate(points):
                middle = float(at([context.mpf(x) for x in point]))
                out += [(*point[:i], middle * (1 + d), *point[i + 1:]) for d in (BESIDE if n < 4 else BESIDE[n % 3::3])]
        return out

    def wide(self, symbols: Sequence[Any], surfaces: Sequence[tuple[Any, Any]]) -> list[tuple[float, ...]]:
        """Points with large and small numbers, and next to surfaces."""
        sizes = [s * x for w in WIDE for x in (w, 1 / w) for s in (1, -1)] + [s * x for x in EDGES for s in (1, -1)]
        if len(symbols) == 1:
            return [(x,) for x in sizes]
        rng = np.random.default_rng(0)
        ordinary = self.points[:len(sizes)]
        mixed = [tuple(float(rng.choice(sizes)) if rng.integers(2) else x for x in ordinary[n % len(ordinary)]) for n in range(60)]
        mixed += [tuple(abs(x) if rng.integers(2) else x for x in point) for point in mixed]
        mixed = [point for point in mixed if all(x in d for x, d in zip(point, self.domains))][:36]
        return mixed + self.beside(surfaces, symbols, mixed[:8])

    def confine(self, patch: Patch | None) -> Patch | None:
        """A patch with a radius within which the series equals the expression, so that it does not contain a kink."""
        for _ in range(HALVINGS if patch is not None and self.kinked else 0):
            points = [patch.centre + patch.radius * s * (i + 0.5) / DENSE for i in range(DENSE) for s in (1, -1)]  # type: ignore[union-attr]
            pairs = [(horner(x - patch.centre - patch.rest, patch.coefficients), float(self.reference((x,))))  # type: ignore[union-attr]
                     for x in points if x in self.domains[0]]
            if all(abs(a - b) <= 1e-12 * abs(b) for a, b in pairs):
                break
            patch = patch._replace(radius=patch.radius / 2)  # type: ignore[union-attr]
        else:
            return None if self.kinked else patch
        return patch

    def condition(self, i: int) -> float:
        """The condition number at a point: one plus the change of the reference value when the arguments change, in relative units."""
        point = self.points[i]
        if point not in self.conditions:
            true, total, h = self.references[i], context.mpf(1), context.mpf("1e-9")
            for k, x in enumerate(point):
                moved = self.reference((*point[:k], x * (1 + h), *point[k + 1:])) if x else true
                change = abs(moved - true) / (abs(true) * h)
                total += change if change == change else 0
            self.conditions[point] = float(total)
        return self.conditions[point]

    def errors(self, code: Code) -> np.ndarray:
        """The error at each point in units in the last place, divided by the condition number.

        It is 0 where the reference value is NaN, and infinite where the code gives no finite number.
        """
        columns = [np.array(column) for column in zip(*self.points)]
        with np.errstate(all="ignore"):
            found = np.broadcast_to(code(*columns), columns[0].shape).tolist()
        out = []
        for i, (got, true) in enumerate(zip(found, self.references)):
            plain = float(true)
            if plain != plain:
                out.append(0.0)
            elif not 1e-290 < abs(plain) < 1e300:
                right = abs(got) < 1e-280 if abs(plain) < 1 else abs(got) > 1e290
                out.append(0.0 if right else math.inf if abs(plain) < 1 else OVERFLOW)
            elif not math.isfinite(got):
                out.append(math.inf)
            else:
                error = ulp_of("float64").error(got, true)
                condition = self.condition(i) if GOOD < error and (error < HOPELESS or i >= self.ordinary) else 1.0
                out.append(0.0 if condition > HOPELESS else error / condition)  # for a larger condition the function varies between floats
        return np.array(out)


def row_of(series: Laurent) -> list[Any]:
    """The coefficients of a power series from order 0 on."""
    return [context.zero] * series.valuation + series.coefficients
