"""The scan: points are drawn in each region and measured, and more points around the largest errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np

from symgrad.graph.domains import Domain
from symgrad.reference.accuracy import BOUNDS
from symgrad.reference.certify import MOST
from symgrad.reference.sources import Source
from symgrad.reports.base import label
from symgrad.sampling.conditions import boundary_numbers, constants_of_code, numbers_around
from symgrad.sampling.floats import NEAR, Floats, Region, is_inside, ordinary_floats, regions_beside, regions_of
from symgrad.scanning.references import References
from symgrad.scanning.report import LOST, THRESHOLDS, AccuracyReport, Sample, Worst
from symgrad.scanning.subject import Index, Subject, derivative_indices

PILOT = 8  # points of a region that are measured first, to count the work per point
POINTS = 64  # points of a region, fewer if they need more than the work for an effort of 1
WORK = 100_000.0
REFINED = 8  # points drawn around the largest error of an order in each round of refinement
ROUNDS = 3
REFINING = 0.5  # the work of the refinement relative to that of the other points
CONSTANTS, BOUNDARIES, AROUND = 6, 60, 5  # constants of the code, numbers at boundaries of the formula, and numbers around each of these
EXAMINED = 6  # large errors of an order in a region, of which each may be a wrong derivative
MISMATCHES = 6  # points at which the graph is compared with the function
CROSSINGS = 4  # zeros and poles of an argument that become separate regions
Progress = Callable[[str, int, int], None]


class Scanner:
    """One scan of a function over its domains; `run` returns the report.

    After the evenly drawn points come some `rounds` around the largest errors; `conditions` are measured where the report explains its errors.
    """

    def __init__(self, subject: Subject, source: Source, domains: Sequence[Domain], floats: Floats, order: int, points: int | None,
                 effort: float, seed: int, progress: Progress, rounds: int = ROUNDS, conditions: bool = True):
        self.subject, self.domains, self.floats, self.order = subject, list(domains), floats, order
        self.truth = References(subject, source, domains, floats.dtype, order)
        self.requested, self.allowed, self.progress = points, effort * WORK, progress
        self.rounds, self.conditions = rounds, conditions
        self.rng = np.random.default_rng(seed)
        self.indices = derivative_indices(subject.count, order)
        self.report = AccuracyReport(subject.name, list(subject.names), str(floats.dtype), order, [d.name for d in domains])
        self.columns: dict[Region, dict[str, Any]] = {}  # points, and by derivative the floats, reference values and errors of each region
        self.merged: list[dict[str, Any]] = []  # these, in the order of the report's samples
        self.found: list[tuple[Worst, Index, Any]] = []  # the entries of `report.worst` with their reference values
        self.drawn: dict[Region, int] = {}

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
            before = self.truth.work
            self.measure(r, points)
            costs[r] = (self.truth.work - before) / points.shape[1]
        self._sample(costs)
        self._refine(list(pilot))
        self._fill_report(list(pilot))
        return self.report

    # Points

    def _regions(self) -> list[Region]:
        names, several = self.subject.names, self.subject.count > 1
        out = []
        for i, d in enumerate(self.domains):
            found = regions_of(d, self.floats, i, names[i] if several else "")
            for c in dict.fromkeys(point[i] for point in self.subject.special if i < len(point) and point[i] in d):
                found += regions_beside(c, d, self.floats, i, names[i] if several else "")
            out += found
        rng, expressions = np.random.default_rng(0), self.truth.source.expressions
        base = [float(x) for d in self.domains for x in ordinary_floats(d, self.floats, 1, rng)]
        numbers = boundary_numbers(expressions, names, base, AROUND, BOUNDARIES) if len(base) == len(names) else []
        numbers += [(i, x) for x in numbers_around(constants_of_code(self.subject.given), CONSTANTS) for i in range(len(names))]
        for i, d in enumerate(self.domains):
            own = tuple(dict.fromkeys(float(x) for k, x in numbers if k == i and x in d and abs(x) <= self.floats.largest))
            if own:
                out.append(Region(f"{names[i]}: " * several + "at boundaries and constants", i, -np.inf, np.inf, numbers=own))
        if several:
            out += [Region("all arguments anywhere", 0, 0.0, 0.0, jointly=True), Region("arguments close to each other", 0, 0.0, 0.0, jointly=True,
                                                                                        close=True)]
        return list(dict.fromkeys(out))

    def draw(self, region: Region, count: int) -> np.ndarray:
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
        return points[:, np.all([is_inside(d, row) for d, row in zip(self.domains, points)], axis=0)]

    def _check_calls(self, points: np.ndarray) -> None:
        """Call the function at points. Raises ValueError if it fails or is random, TypeError if its graph is another function."""
        subject = self.subject
        values = subject.floats(points, 0)[()]
        if np.isnan(values).all() and subject.failure is not None:
            error, point = subject.failure
            raise ValueError(f"accuracy: {subject.name} runs at no point of the domain; at {self._point_text(point)} it raises "
                             f"{type(error).__name__}: {error}") from error
        again = subject.floats(points, 0)[()]
        differs = ~((values == again) | np.isnan(values) & np.isnan(again))
        if differs.any():
            k = int(np.argmax(differs))
            raise ValueError(f"accuracy: two calls of {subject.name} at {self._point_text(points[:, k])} gave {float(values[k])!r} and "
                             f"{float(again[k])!r}: it is random or keeps a state; fix its seed inside it, or pass what it draws as an argument")
        if not self.truth.own:
            return
        finite = np.flatnonzero(np.isfinite(values))
        for k in np.random.default_rng(0).permutation(finite)[:MISMATCHES]:
            try:
                how = subject.graph_mismatch(list(points[:, k]))
            except Exception:  # in a branch that computes nothing from the arguments, or that raises for single points
                continue
            if how is not None:
                raise TypeError(f"accuracy: the recorded graph of {subject.name} is not the function: {how}. Compute with tensors, or give formula=")

    def _domain_text(self) -> str:
        return " × ".join(d.name for d in self.domains)

    def _point_text(self, point: Any) -> str:
        return ", ".join(f"{name} = {float(x)!r}" for name, x in zip(self.subject.names, point))

    def _crossings(self, regions: Sequence[Region]) -> list[Region]:
        """Regions next to further zeros and poles: sign changes of a function of one argument."""
        if self.subject.count > 1:
            return []
        x = np.unique(np.concatenate([self.draw(r, 48)[0] for r in regions if not r.numbers]))
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

    def measure(self, region: Region, points: np.ndarray) -> None:
        """Compute floats and reference values at points, and store the errors."""
        if not points.shape[1]:
            return
        values = self.subject.floats(points, self.order)
        truth = self.truth.at(points)
        errors = {index: np.full(points.shape[1], np.nan) for index in self.indices}
        for index, numbers in truth.items():
            known = [k for k, number in enumerate(numbers) if mpmath.isfinite(number)]
            errors[index][known] = self.floats.ulps(values[index][known], numbers[known])
        new = {"values": values, "truth": truth, "errors": errors}
        old = self.columns.get(region)
        self.columns[region] = {"points": points, **new} if old is None else {"points": np.concatenate([old["points"], points], axis=1)} | {
            name: {index: np.concatenate([old[name][index], part[index]]) for index in self.indices} for name, part in new.items()}

    def _sample(self, costs: Mapping[Region, float]) -> None:
        """Measure evenly drawn points: the same number in each region, and fewer where they need too much work."""
        requested = POINTS if self.requested is None else self.requested
        share, fewer = self.allowed / len(costs), 0
        for k, (r, cost) in enumerate(costs.items()):
            self.progress(f"measuring {r.name}", k, len(costs))
            count = requested if self.requested is not None or cost * requested <= share else int(share / cost)
            fewer += count < requested
            if count > PILOT and not r.numbers:
                self.measure(r, self.draw(r, count))
        if fewer:
            self.report.notes.append(f"{fewer} of {len(costs)} regions have fewer than the {requested} planned points, whose reference values need "
                                     f"many digits; give a larger effort, or points")
        for r in costs:
            self.drawn[r] = self.columns[r]["points"].shape[1]

    def _refine(self, regions: Sequence[Region]) -> None:
        """Measure more points around the largest error of each order."""
        end = self.truth.work + REFINING * self.allowed
        for round_ in range(self.rounds):
            for k, r in enumerate(regions):
                self.progress(f"refining {r.name}", k + round_ * len(regions), self.rounds * len(regions))
                if self.truth.work > end:
                    self.report.notes.append(f"{round_} of {self.rounds} planned rounds around the largest errors were completed; "
                                             f"give a larger effort")
                    return
                points = [self._neighbours(r, w[1]) for order in range(self.order + 1) if (w := self._worst(r, order)) is not None and w[0] > 0.5]
                if points:
                    self.measure(r, np.concatenate(points, axis=1))

    def _neighbours(self, region: Region, point: np.ndarray) -> np.ndarray:
        """Points that differ from one in the argument of the region, by a few floats up to many."""
        floats = self.floats
        columns = [np.full(REFINED, x, floats.dtype) for x in point]
        for i in range(len(point)) if region.jointly else (region.argument,):
            low, high = (-np.inf, np.inf) if region.jointly else (region.low, region.high)
            rank = int(floats.rank(point[i]))
            top = floats.top
            down = rank - (-top if low == -np.inf else int(floats.rank(low)))
            up = (top if high == np.inf else int(floats.rank(high))) - rank
            if region.jointly or region.numbers:
                down, up = min(down, 2**(floats.digits - 4)), min(up, 2**(floats.digits - 4))
            sides = [floats.beside(float(point[i]), side, REFINED // 2, self.rng) for side in (-down, up) if side]
            if sides:
                columns[i] = np.resize(np.concatenate(sides), REFINED)
        return self._inside_domains(columns)

    def _worst(self, region: Region, order: int) -> tuple[float, np.ndarray, Index, float, Any] | None:
        """The largest error of an order in a region, with its point, the derivative, the float and the reference value."""
        found = [(float(errors[k]), index, k) for index, errors in self.columns[region]["errors"].items() if len(index) == order
                 and not np.isnan(errors).all() for k in [int(np.nanargmax(errors))]]
        return self._found(region, *max(found, key=lambda x: x[0])) if found else None

    def _found(self, region: Region, error: float, index: Index, k: int) -> tuple[float, np.ndarray, Index, float, Any]:
        part = self.columns[region]
        return error, part["points"][:, k], index, float(part["values"][index][k]), part["truth"][index][k]

    # The report

    def _fill_report(self, regions: Sequence[Region]) -> None:
        report = self.report
        for r in regions:
            errors, points = self.columns[r]["errors"], self.columns[r]["points"]
            report.points += points.shape[1]
            known = ~np.isnan(errors[()])
            report.outside += int((~known).sum())
            if not known.any():
                continue
            report.samples.append(Sample(r.name, r.argument, points, errors, self.drawn[r]))
            self.merged.append(self.columns[r])
            for order in range(self.order + 1):
                found = self._worst(r, order)
                if found is None:
                    continue
                worst = self._entry(r, order, *found)
                report.worst.append(worst)
                if worst.verdict == "wrong":
                    report.wrong.append(worst)
                else:
                    self.found.append((worst, found[2], found[4]))
                    report.wrong += self._wrong_entry(r, order)
        if not report.samples:
            raise ValueError(f"accuracy: {self.subject.name} has no real value anywhere in {self._domain_text()}; choose a domain where it has one")
        report.undecided = self.truth.undecided
        if report.undecided:
            report.notes.append(f"{report.undecided} numbers were left out: their reference values are undecided with {MOST} bits")
        if self.truth.missing:
            report.notes.append(f"{self.truth.missing} derivatives were left out: they do not exist, as at a kink or a pole, or are not decided")
        if self.truth.unenclosed:
            report.notes.append(f"the reference values at {self.truth.unenclosed} of {report.points} points have many digits, but are not rigorous")
        if self.truth.unfollowed:
            report.notes.append(f"{self.truth.unfollowed} numbers that count as lost digits may be wrong: the steps of {self.subject.name} cannot be "
                                f"followed")
        if self.subject.failure is not None:
            error, point = self.subject.failure
            report.notes.append(f"{self.subject.name} raises {type(error).__name__} at {self._point_text(point)}: {error}")
        for order in range(self.order + 1):
            every = np.concatenate([s.errors[i][:s.drawn] for s in report.samples for i in self.indices if len(i) == order])
            every = every[~np.isnan(every)]
            if every.size:
                report.above[order] = {t: float((every > t).mean()) for t in THRESHOLDS}

    def _entry(self, region: Region, order: int, ulp: float, point: np.ndarray, index: Index, value: float, truth: Any) -> Worst:
        entry = Worst(region.name, order, label(order, index, self.subject.names), ulp, tuple(map(float, point)), value, float(truth))
        if not self.conditions or ulp <= 1:
            return entry
        entry = replace(entry, condition=1.0 if np.isinf(ulp) else self.truth.condition(point, index))
        return replace(entry, wrong=entry.verdict in LOST and self.truth.is_wrong(point, order))

    def _wrong_entry(self, region: Region, order: int) -> list[Worst]:
        """An entry for a wrong derivative of a region whose largest error is explained by rounding: one of a few others that are large."""
        found = [self._found(region, float(errors[k]), index, k) for index, errors in self.columns[region]["errors"].items()
                 if len(index) == order and self.conditions for k in np.flatnonzero(errors > BOUNDS[order]).tolist()]
        found.sort(key=lambda x: (-x[0], *x[1]))
        if self.truth.own:
            found = [x for x in found if x[1].tobytes() in self.truth.refuted]
        chosen = np.unique(np.linspace(0, len(found) - 1, EXAMINED).astype(int)) if found else ()
        return [entry for entry in (self._entry(region, order, *found[k]) for k in chosen) if entry.wrong][:1]
