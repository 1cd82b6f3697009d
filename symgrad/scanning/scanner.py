"""The scan: points are drawn in each region and measured; more points are drawn around the largest errors until the time is used up.

Reference values at points that are floats are computed by the rules in many digits, or by `sympy.diff` of a formula. `symgrad.algebra.ladder`
determines the number of digits. The exact 0 of a derivative that does not depend on the argument is the int 0.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra import ladder
from symgrad.algebra.ladder import RIGHT, random_shift, rungs, settle
from symgrad.algebra.values import Real
from symgrad.carriers import precise
from symgrad.graph.domains import Domain
from symgrad.reference.elementary import derivative
from symgrad.reports.base import label
from symgrad.sampling.floats import NEAR, FloatRegion, Floats, is_inside, ordinary_floats, regions_beside, regions_of
from symgrad.scanning.report import THRESHOLDS, AccuracyReport, Sample, Worst
from symgrad.scanning.subject import Index, Subject, Unsuitable, derivative_indices

FIRST, LAST = 60, 1920  # digits of the first and the last rung of the ladder
DEFAULT_DIGITS = 240  # of the first rung, if the range of magnitudes of the computation is unknown
AGREEMENT = 4.0  # ULP up to which a float confirms a reference value


class ByFormula:
    """A SymPy expression of the arguments, and its derivatives by `sympy.diff`."""

    def __init__(self, formula: Any, names: Sequence[str]):
        by_name = {s.name: s for s in formula.free_symbols}
        unknown = sorted(set(by_name) - set(names))
        if unknown and len(names) == 1 and len(by_name) == 1:
            by_name, unknown = {names[0]: by_name[unknown[0]]}, []
        if unknown:
            raise TypeError(f"accuracy: the formula has the variable {unknown[0]}, which is not an argument; those are {', '.join(names)}")
        self.symbols = [sympy.Symbol(name, real=True) for name in names]
        self.formula = formula.xreplace({by_name[s.name]: s for s in self.symbols if s.name in by_name})
        self.functions: dict[Index, Real] = {}

    def function(self, index: Index) -> Real:
        """One derivative as a function of many-digit numbers."""
        if index not in self.functions:
            formula = functools.reduce(derivative, [self.symbols[i] for i in index], self.formula)
            self.functions[index] = Real(formula, self.symbols, complex=True)
        return self.functions[index]

    def exact(self, points: np.ndarray, digits: int, order: int, beside: Any = None) -> dict[Index, list[Any]]:
        """Every derivative up to an order, computed with `digits` digits."""
        with precise.working_precision(digits):
            cells = [precise.lift_value(p) for p in points.astype(np.float64)]
            columns = [(cell if beside is None else random_shift(beside)(cell)).tolist() for cell in cells]
            return {index: [self.function(index)(*point) for point in zip(*columns)] for index in derivative_indices(len(self.symbols), order)}

    def spread(self, points: np.ndarray, order: int) -> np.ndarray:
        """The range of magnitudes of the computation is unknown, so infinite."""
        return np.full(points.shape[1], np.inf)


DerivativeSource = ByFormula | Subject  # computes derivatives with many digits


class ScanReferences:
    """The derivatives of a function at floats. `digits` is the largest number of digits used, `undecided` the number of values without a result."""

    def __init__(self, source: DerivativeSource, floats: Floats, order: int):
        self.source, self.floats, self.order = source, floats, order
        self.digits, self.undecided = FIRST, 0

    def at(self, points: np.ndarray, values: Mapping[Index, np.ndarray]) -> dict[Index, list[Any]]:
        """Every derivative at the points, NaN where there is none or where it is undecided; `values` are the floats to be measured.

        A reference value is also accepted once the float agrees with it, since the two computations do not lose the same digits.
        """
        n = points.shape[1]
        out: dict[Index, list[Any]] = {index: [mpmath.nan] * n for index in values}
        spread = self.source.spread(points, self.order)
        levels = np.array(list(rungs(FIRST, LAST)))
        start = levels[np.searchsorted(levels[:-3], np.where(np.isfinite(spread), spread + 40, DEFAULT_DIGITS))]
        for first in np.unique(start).tolist():
            due = [(i, index) for i in np.flatnonzero(start == first).tolist() for index in values]

            def exact(digits: int, places: Sequence[int], due: Any = due) -> list[Any]:
                self.digits = max(self.digits, digits)
                where = {i: k for k, i in enumerate(dict.fromkeys(due[place][0] for place in places))}
                found = self.source.exact(points[:, list(where)], digits, self.order)
                return [found[index][where[i]] for i, index in (due[place] for place in places)]

            def confirmed(place: int, number: Any, due: Any = due) -> bool:
                i, index = due[place]
                return self.floats.ulp.error(values[index][i], number) <= AGREEMENT

            for (i, index), number in zip(due, settle(exact, len(due), rungs(first, LAST), RIGHT, confirmed)):
                self.undecided += number is None
                out[index][i] = mpmath.nan if number is None else number
        return out


def condition(source: DerivativeSource, points: np.ndarray, index: Index, order: int, rng: np.random.Generator) -> list[float]:
    """The condition number of a derivative at each point, as defined by `symgrad.algebra.ladder`."""
    levels = list(rungs(FIRST, LAST))
    digits = levels[min(int(np.searchsorted(levels, float(source.spread(points, order).max()) + 60)), len(levels) - 1)]
    exact = source.exact(points, digits, order)[index]
    return list(map(ladder.condition, exact, ladder.movement(exact, lambda: source.exact(points, digits, order, rng)[index])))


PILOT = 8  # points of a region that are measured first, to estimate the time per point
POINTS = 64  # points of a region, if time permits
REFINED = 8  # points drawn around the largest error of an order in each round of refinement
ROUNDS = 3
SAMPLING, REFINING = 0.3, 0.5  # the parts of the time after which sampling and refinement end
DEPARTURES = 6  # points at which the graph is compared with the function
CROSSINGS = 4  # zeros and poles of an argument that become separate regions
Progress = Callable[[str, int, int], None]


class Scanner:
    """One scan of a function over its domains; `run` returns the report.

    After the evenly drawn points come some `rounds` around the largest errors; `conditions` are measured where the report explains its errors.
    """

    def __init__(self, subject: Subject, source: DerivativeSource, domains: Sequence[Domain], floats: Floats, order: int, points: int | None,
                 seconds: float, seed: int, progress: Progress, rounds: int = ROUNDS, conditions: bool = True):
        self.subject, self.domains, self.floats, self.order = subject, list(domains), floats, order
        self.truth = ScanReferences(source, floats, order)
        self.requested, self.seconds, self.progress = points, seconds, progress
        self.rounds, self.conditions = rounds, conditions
        self.start = time.monotonic()
        self.rng = np.random.default_rng(seed)
        self.indices = derivative_indices(subject.count, order)
        self.report = AccuracyReport(subject.name, list(subject.names), str(floats.dtype), order, [d.name for d in domains])
        self.columns: dict[FloatRegion, list[dict[str, Any]]] = {}
        self.merged: list[dict[str, Any]] = []  # points, errors and reference values of each region, in the order of the report's samples
        self.found: list[tuple[Worst, Index, Any]] = []  # the entries of `report.worst` with their reference values
        self.drawn: dict[FloatRegion, int] = {}

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.start

    def run(self) -> AccuracyReport:
        """The report. Raises ValueError for a domain without floats, for a function that raises everywhere in it, and for a random function."""
        regions = self._regions()
        pilot = {r: p for r in regions if (p := self.draw(r, PILOT)).shape[1]}
        if not pilot:
            raise ValueError(f"accuracy: the domain {self._domain_text()} excludes every {self.floats.dtype}; choose one with floats in it")
        self._check_calls(np.concatenate(list(pilot.values()), axis=1))
        for r in self._crossings(regions):
            if (points := self.draw(r, PILOT)).shape[1]:
                regions.append(r)
                pilot[r] = points
        costs = {}
        for k, (r, points) in enumerate(pilot.items()):
            self.progress(f"measuring {r.name}", k, len(pilot))
            costs[r] = self._measure_with_cost(r, points, SAMPLING * self.seconds / len(pilot))
        self._sample(costs)
        self._refine(list(pilot))
        self._fill_report(list(pilot))
        self.report.seconds = self.elapsed
        return self.report

    # Points

    def _regions(self) -> list[FloatRegion]:
        names, several = self.subject.names, self.subject.count > 1
        out = []
        for i, d in enumerate(self.domains):
            found = regions_of(d, self.floats, i, names[i] if several else "")
            for c in dict.fromkeys(point[i] for point in self.subject.special if i < len(point) and point[i] in d):
                found += regions_beside(c, d, self.floats, i, names[i] if several else "")
            out += found
        if several:
            out += [FloatRegion("all arguments anywhere", 0, 0.0, 0.0, jointly=True),
                    FloatRegion("arguments close to each other", 0, 0.0, 0.0, jointly=True, close=True)]
        return list(dict.fromkeys(out))

    def draw(self, region: FloatRegion, count: int) -> np.ndarray:
        """Points of a region inside the domains, one column each."""
        floats, rng = self.floats, self.rng
        if region.close:
            base = ordinary_floats(self.domains[0], floats, count, rng)
            reach = int(floats.rank(1 + NEAR) - floats.rank(1.0))
            columns = [base] + [np.array([floats.beside(float(x), reach * int(rng.choice([-1, 1])), 2, rng)[1] for x in base], floats.dtype)
                                for _ in self.domains[1:]]
        elif region.jointly:
            columns = [rng.choice(np.concatenate([r.draw(floats, 16, rng) for r in regions_of(d, floats)]), count) for d in self.domains]
        else:
            drawn = region.draw(floats, count, rng)
            columns = [drawn if i == region.argument else ordinary_floats(d, floats, drawn.size, rng) for i, d in enumerate(self.domains)]
        return self._inside_domains(columns)

    def _inside_domains(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        shortest = min(c.size for c in columns)
        points = np.stack([c[:shortest] for c in columns]).astype(self.floats.dtype)
        kept = np.ones(points.shape[1], bool)
        for d, row in zip(self.domains, points):
            kept &= is_inside(d, row)
        return points[:, kept]

    def _check_calls(self, points: np.ndarray) -> None:
        """Call the function at points. Raises ValueError if it fails or is random, TypeError if its graph is another function."""
        subject = self.subject
        values = subject.floats(points, 0)[()]
        if np.isnan(values).all() and subject.failure is not None:
            error, point = subject.failure
            if isinstance(error, Unsuitable):
                raise TypeError(str(error))
            raise ValueError(f"accuracy: {subject.name} runs at no point of the domain; at {self._point_text(point)} it raises "
                             f"{type(error).__name__}: {error}") from error
        again = subject.floats(points, 0)[()]
        differs = ~((values == again) | np.isnan(values) & np.isnan(again))
        if differs.any():
            k = int(np.argmax(differs))
            raise ValueError(f"accuracy: two calls of {subject.name} at {self._point_text(points[:, k])} gave {float(values[k])!r} and "
                             f"{float(again[k])!r}: it is random or keeps a state; fix its seed inside it, or pass what it draws as an argument")
        if self.truth.source is not subject:
            return
        finite = np.flatnonzero(np.isfinite(values))
        for k in np.random.default_rng(0).permutation(finite)[:DEPARTURES]:
            try:
                how = subject.departure(list(points[:, k]))
            except Exception:  # in a branch that computes nothing from the arguments, or that raises for single points
                continue
            if how is not None:
                raise TypeError(f"accuracy: the recorded graph of {subject.name} is not the function: {how}. Compute with tensors, or give formula=")

    def _domain_text(self) -> str:
        return " × ".join(d.name for d in self.domains)

    def _point_text(self, point: Any) -> str:
        return ", ".join(f"{name} = {float(x)!r}" for name, x in zip(self.subject.names, point))

    def _crossings(self, regions: Sequence[FloatRegion]) -> list[FloatRegion]:
        """Regions next to further zeros and poles: sign changes of a function of one argument."""
        if self.subject.count > 1:
            return []
        x = np.unique(np.concatenate([self.draw(r, 48)[0] for r in regions]))
        values = self.subject.floats(x[None], 0)[()]
        sign = np.sign(values)
        changes = np.flatnonzero((sign[:-1] * sign[1:] < 0) & (np.sign(x[:-1]) * np.sign(x[1:]) > 0))
        changes = changes[np.argsort(np.abs(np.log(np.abs(x[changes].astype(np.float64)))), kind="stable")][:CROSSINGS]
        ranks = self.floats.changes(lambda x: np.sign(self.subject.floats(x[None], 0)[()]), x[changes], x[changes + 1]) if changes.size else changes
        known = {r.beside for r in regions}
        out = []
        for rank, outer in zip(ranks.tolist(), values[changes]):
            c = float(self.floats.at(rank))
            near = self.subject.floats(self.floats.at(np.array([rank - 1, rank]))[None], 0)[()]
            what = ", a pole" if np.abs(near).max() > abs(outer) or not np.isfinite(near).all() else ", a zero"
            if c not in known:
                out += regions_beside(c, self.domains[0], self.floats, what=what)
        return out

    # Measuring

    def measure(self, region: FloatRegion, points: np.ndarray) -> None:
        """Compute floats and reference values at points, and store the errors."""
        if not points.shape[1]:
            return
        values = self.subject.floats(points, self.order)
        truth = self.truth.at(points, values)
        errors = {}
        for index in self.indices:
            known = np.array([bool(mpmath.isfinite(t)) for t in truth[index]])
            errors[index] = np.full(points.shape[1], np.nan)
            errors[index][known] = self.floats.ulps(values[index][known], [t for t, k in zip(truth[index], known) if k])
        self.columns.setdefault(region, []).append({"points": points, "values": values, "truth": truth, "errors": errors})

    def _measure_with_cost(self, region: FloatRegion, points: np.ndarray, share: float) -> float:
        """Measure the points of a pilot, or only two of them if all take longer than `share` seconds; returns the seconds per point."""
        some = points[:, :2] if points.shape[1] < 2 else points[:, [0, -1]]
        before = self.elapsed
        self.measure(region, some)
        cost = (self.elapsed - before) / some.shape[1]
        if cost * points.shape[1] > share or points.shape[1] <= some.shape[1]:
            return cost
        self.measure(region, points[:, 1:-1])
        return (self.elapsed - before) / points.shape[1]

    def _sample(self, costs: Mapping[FloatRegion, float]) -> None:
        """Measure evenly drawn points: the same number in each region, and fewer in regions that take too long."""
        requested = POINTS if self.requested is None else self.requested
        share = max(SAMPLING * self.seconds - self.elapsed, 0.0) / len(costs)
        spare = sum(max(share - cost * requested, 0.0) for cost in costs.values())
        slow = sum(1 for cost in costs.values() if cost * requested > share) or 1
        for k, (r, cost) in enumerate(costs.items()):
            self.progress(f"measuring {r.name}", k, len(costs))
            count = requested if cost * requested <= share else min(requested, int((share + spare / slow) / cost))
            if count > PILOT and self.elapsed < REFINING * self.seconds:
                self.measure(r, self.draw(r, count))
        for r in costs:
            self.drawn[r] = sum(c["points"].shape[1] for c in self.columns.get(r, ()))

    def _refine(self, regions: Sequence[FloatRegion]) -> None:
        """Measure more points around the largest error of each order."""
        for round_ in range(self.rounds):
            for k, r in enumerate(regions):
                self.progress(f"refining {r.name}", k + round_ * len(regions), self.rounds * len(regions))
                if self.elapsed > REFINING * self.seconds:
                    return
                points = [self._neighbours(r, w[1]) for order in range(self.order + 1) if (w := self._worst(r, order)) is not None and w[0] > 0.5]
                if points:
                    self.measure(r, np.concatenate(points, axis=1))

    def _neighbours(self, region: FloatRegion, point: np.ndarray) -> np.ndarray:
        """Points that differ from one in the argument of the region, by a few floats up to many."""
        floats = self.floats
        columns = [np.full(REFINED, x, floats.dtype) for x in point]
        for i in range(len(point)) if region.jointly else (region.argument,):
            low, high = (-np.inf, np.inf) if region.jointly else (region.low, region.high)
            rank = int(floats.rank(point[i]))
            top = floats.top
            down = rank - (-top if low == -np.inf else int(floats.rank(low)))
            up = (top if high == np.inf else int(floats.rank(high))) - rank
            if region.jointly:
                down, up = min(down, 2**(floats.digits - 4)), min(up, 2**(floats.digits - 4))
            sides = [floats.beside(float(point[i]), side, REFINED // 2, self.rng) for side in (-down, up) if side]
            if sides:
                columns[i] = np.resize(np.concatenate(sides), REFINED)
        return self._inside_domains(columns)

    def _worst(self, region: FloatRegion, order: int) -> tuple[float, np.ndarray, Index, float, Any] | None:
        """The largest error of an order in a region, with its point, the derivative, the float and the reference value."""
        best: Any = None
        for part in self.columns.get(region, ()):
            for index in self.indices:
                if len(index) != order or np.isnan(part["errors"][index]).all():
                    continue
                k = int(np.nanargmax(part["errors"][index]))
                error = float(part["errors"][index][k])
                if best is None or error > best[0]:
                    best = error, part["points"][:, k], index, float(part["values"][index][k]), part["truth"][index][k]
        return best

    # The report

    def _fill_report(self, regions: Sequence[FloatRegion]) -> None:
        report = self.report
        for r in regions:
            parts = self.columns.get(r, [])
            if not parts:
                continue
            errors = {index: np.concatenate([p["errors"][index] for p in parts]) for index in self.indices}
            points = np.concatenate([p["points"] for p in parts], axis=1)
            report.points += points.shape[1]
            known = ~np.isnan(errors[()])
            report.outside += int((~known).sum())
            if not known.any():
                continue
            report.samples.append(Sample(r.name, r.argument, points, errors, self.drawn[r]))
            self.merged.append({"points": points, "errors": errors,
                                "truth": {index: [t for p in parts for t in p["truth"][index]] for index in self.indices}})
            for order in range(self.order + 1):
                found = self._worst(r, order)
                if found is not None:
                    ulp, point, index, value, truth = found
                    worst = Worst(r.name, order, label(order, index, self.subject.names), ulp, tuple(map(float, point)), value, _nearest_float(truth),
                                  self._condition(point, index, ulp, order))
                    report.worst.append(worst)
                    self.found.append((worst, index, truth))
        if not report.samples:
            raise ValueError(f"accuracy: {self.subject.name} has no real value anywhere in {self._domain_text()}; choose a domain where it has one")
        report.undecided = self.truth.undecided
        if report.undecided:
            report.notes.append(f"{report.undecided} numbers were left out: their reference values are undecided with {LAST} digits")
        if self.subject.failure is not None:
            error, point = self.subject.failure
            report.notes.append(f"{self.subject.name} raises {type(error).__name__} at {self._point_text(point)}: {error}")
        for order in range(self.order + 1):
            every = np.concatenate([s.errors[i][:s.drawn] for s in report.samples for i in self.indices if len(i) == order])
            every = every[~np.isnan(every)]
            if every.size:
                report.above[order] = {t: float((every > t).mean()) for t in THRESHOLDS}

    def _condition(self, point: np.ndarray, index: Index, ulp: float, order: int) -> float:
        if not self.conditions or not 1 < ulp < np.inf:
            return 1.0
        try:
            return condition(self.truth.source, point[:, None], index, order, self.rng)[0]
        except (ArithmeticError, ValueError):
            return 1.0


def _nearest_float(truth: Any) -> float:
    """The nearest float of a number of many digits; infinite beyond all floats."""
    try:
        return float(truth)
    except OverflowError:
        return float("inf") if truth > 0 else float("-inf")
