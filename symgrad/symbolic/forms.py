"""The form in which a formula, or one of its derivatives, is computed: among several, the one with the smallest measured error.

A form is a stable rewriting of the exact expression, with Laurent series in its place near points where terms cancel or it is 0/0.
Forms are compared with many-digit references, at points of every size in the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.algebra.series import Laurent
from symgrad.algebra.stable import elementary, rewritten
from symgrad.algebra.stable_heads import larger, smaller, step, whole
from symgrad.algebra.stable_means import Mean, joined
from symgrad.algebra.stable_ratios import Ratio, with_ratios
from symgrad.algebra.values import truth, value
from symgrad.carriers.digits import context
from symgrad.symbolic.generating import Code, RatioCode, generate
from symgrad.symbolic.support import Patch, horner
from symgrad.symbolic.wide import Guard
from symgrad.types.domains import Domain
from symgrad.types.ulp import ulp_of

__all__ = ["HOPELESS", "Form", "Measure", "best_form", "centres", "sample"]

OVERFLOW = 4.4  # the error of NaN in units in the last place, where the right answer is infinite
LOST = 1e3  # the error of a form that overflows or underflows
GOOD, HOPELESS = 3.0, 1e7  # errors below are ignored; those above are not excused by the condition
BAD, WORSE = 4.5, 1.5  # errors above which a series is tried, and above which it is used
COEFFICIENTS, LONGEST = 56, 30
LARGE = 400  # the number of operations above which an expression is not factored
DISTANCES = [*(2.0 ** -(j / 2) for j in range(-4, 27)), *(1.2 * 2.0 ** -(j / 2) for j in range(-3, 6)),
             *(2.0**-j for j in (15, 18, 22, 27, 34, 45, 60, 90, 140, 260, 520, 1000))]
KINKS = (sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.floor, sympy.Heaviside, larger, smaller, step, whole)
CONFINED, DENSE = 6, 16  # how often the radius of a patch is halved, and the points on each side where it is compared
WIDE = [10.0**e for e in (3.1, 5, 20, 52, 77, 103, 130, 154.5, 166, 300)]  # and their inverses
EDGES = (704.0, 711.0, 725.0, 742.0, 760.0)  # beside which exp(u) overflows, is subnormal, and is 0
BESIDE = (0.0, *(10.0**-e for e in (16, 14, 12, 9, 6, 4, 3, 2, 1.2, 0.7, 0.3)), 1.0, 3.0)  # relative distances from a surface
MOVED = context.mpf(10) ** -90  # the relative distance at which a value stands for that on the surface
LEAST_RADIUS, NEAR, FAR, TILES, JITTERED, SURE = 2.0**-26, 4.0, 8.0, 8, 3, 1e-27


class Measure(NamedTuple):
    """The worst error of a form in units in the last place, its point, and the number of points."""

    worst: float
    at: tuple[float, ...]
    points: int


@dataclass(frozen=True)
class Form:
    """How an expression is computed: `exact` is the expression, `stable` the form, `places` the op's arguments that it depends on."""

    exact: Any
    stable: Any
    symbols: tuple[Any, ...]
    places: tuple[int, ...]
    patches: tuple[Patch, ...]
    code: Code
    measure: Measure
    guard: tuple[Guard, Sequence[str]] | None = None
    points: tuple[tuple[float, ...], ...] = ()
    truths: tuple[Any, ...] = ()
    truth: Any = None
    limits: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def shown(self) -> Any:
        """The expression for display: the shorter of the two in elementary functions."""
        return min((elementary(self.exact), elementary(self.stable)), key=sympy.count_ops)


def sample(domain: Domain, rng: np.random.Generator, count: int) -> list[float]:
    """Floats of a domain, of every size and next to its ends."""
    out: list[float] = []
    while len(out) < count:
        interval = domain.intervals[rng.integers(len(domain.intervals))]
        low, high, size = interval.low, interval.high, 10 ** (rng.uniform(-5, 1.6) if rng.integers(5) else rng.uniform(1.6, 3))
        if math.isfinite(low) and math.isfinite(high):
            near = (high - low) * (rng.uniform(0, 1) if rng.integers(2) else 10 ** rng.uniform(-5, -0.5))
            x = low + near if rng.integers(2) else high - near
        elif math.isfinite(low):
            x = low + size
        else:
            x = high - size if math.isfinite(high) else size * rng.choice((-1, 1))
        x = float(np.rint(x)) if domain.integer else float(x)
        if x in domain:
            out.append(x)
    return out


def _cost(expr: Any) -> int:
    """The approximate cost of generated code, in which every distinct part of an expression is computed once."""
    total = 0
    for part in set(sympy.preorder_traversal(expr)):
        if isinstance(part, sympy.Pow):
            total += 2 if part.exp.is_Integer else 5
        elif part.args:
            total += 30 if isinstance(part, (Ratio, Mean)) else 10 if isinstance(part, sympy.Function) else len(part.args) - 1
    return total


def _lost(worst: float) -> int:
    return round(math.log2(min(worst, 2.0**60)) / 2) if worst > BAD else 0


def _score(probe: _Probe, found: np.ndarray, patches: Sequence[Patch], expr: Any) -> tuple[int, int, int, int]:
    """A score, less is better: digits lost away from series, digits lost anywhere, the number of series, and the cost."""
    worst = float(found.max())
    far = max((e for p, e in zip(probe.points, found) if abs(p[0]) > NEAR), default=0.0) if patches else worst
    return _lost(far), _lost(worst), len(patches), _cost(expr)


def _candidates(exact: Any, derivative: Any) -> Iterator[Any]:
    """Candidate forms, the simplest first."""
    seen = set()
    makers = [lambda: rewritten(derivative), lambda: rewritten(exact)]
    if sympy.count_ops(derivative) < LARGE:
        makers += [lambda: rewritten(sympy.factor_terms(sympy.powsimp(derivative))), lambda: rewritten(sympy.factor(rewritten(derivative))),
                   lambda: rewritten(sympy.factor(elementary(derivative))), lambda: rewritten(sympy.together(derivative)),
                   lambda: rewritten(sympy.expand(derivative)), lambda: derivative, lambda: exact]
    for make in makers:
        try:
            form = make()
        except (sympy.PolynomialError, ArithmeticError, NotImplementedError):
            continue
        if form not in seen:
            seen.add(form)
            yield form


def centres(expr: Any, symbol: Any, domain: Domain) -> list[Any]:
    """The points of a domain where parts of an expression vanish, and 0: the expression may be 0/0 there, or lose digits."""
    found: dict[Any, None] = {sympy.S.Zero: None}
    for part in sympy.preorder_traversal(elementary(expr)):
        if not part.args or symbol not in part.free_symbols:
            continue
        inside = part.args[0]
        if isinstance(part, sympy.log) or isinstance(part, sympy.Pow) and part.exp.is_Rational and not part.exp.is_Integer:
            inside = inside - 1
        elif not (isinstance(part, sympy.Function) and isinstance(inside, sympy.Expr) or isinstance(part, sympy.Pow) and part.exp.is_negative):
            continue
        for factor in sympy.Mul.make_args(sympy.factor_terms(inside)):
            if factor.is_polynomial(symbol) and sympy.degree(factor, symbol) in (1, 2):
                found.update(dict.fromkeys(r for r in sympy.roots(factor, symbol) if r.is_real and (r.is_Rational or r.is_number)))
    return [p for p in found if float(p) in domain or any(float(p) in (i.low, i.high) for i in domain.intervals)][:6]


def _series_value(series: Laurent, u: Any) -> Any:
    """The value of the series at a small many-digit number."""
    out = context.zero
    for c in reversed(series.coefficients):
        out = out * u + c
    return out * context.mpf(u) ** series.valuation


def derived(series: Laurent, order: int) -> Laurent:
    """The series of a derivative."""
    for _ in range(order):
        row = [c * (series.valuation + i) for i, c in enumerate(series.coefficients)]
        start = next((i for i, c in enumerate(row) if c), len(row))
        series = Laurent(series.valuation - 1 + start, row[start:])
    return series


def _is_kinked(expr: Any) -> bool:
    """Whether an expression may be a different function on each side of a kink."""
    conditions = {c for p in expr.atoms(sympy.Piecewise) for c in p.atoms(sympy.core.relational.Relational)}
    return expr.has(*KINKS) or any(not isinstance(c, (sympy.Eq, sympy.Ne)) for c in conditions)


class _Probe:
    """The points at which forms are measured, with reference values and condition numbers."""

    def __init__(self, exact: Any, symbols: Sequence[Any], domains: Sequence[Domain], count: int, seed: int):
        self.truth, self.domains, self.kinked = truth(exact, symbols), domains, _is_kinked(exact)
        rng = np.random.default_rng(seed)
        self.points: list[tuple[float, ...]] = list(zip(*(sample(d, rng, count) for d in domains)))
        self.truths = [self.truth(p) for p in self.points]
        self.conditions: dict[tuple[float, ...], float] = {}
        self.ordinary = 10**9  # the points from this index on are of every size

    def add(self, centre: Any, series: Laurent) -> None:
        """Add points next to one where the expression has a series."""
        middle, at = float(centre), value(centre)([])
        rng, last = np.random.default_rng(1), list(enumerate(_row(series)))[-6:]
        nearby = [d * rng.uniform(0.9, 1.1) for d in DISTANCES if 0.02 < d < 4 for _ in range(JITTERED)]
        for x in dict.fromkeys(middle + s * d for d in (0.0, *DISTANCES, *nearby) for s in (1, -1)):
            if x in self.domains[0] or x == middle:
                u = context.fsub(x, at, exact=True)
                true = _series_value(series, u)
                known = abs(u) < 4 and max(abs(c) * abs(u) ** k for k, c in last) <= abs(true) * SURE
                self.points.append((x,))
                self.truths.append(true if not self.kinked and (known or abs(u) < 2.0**-6) or x == middle else self.truth((x,)))

    def add_points(self, points: Sequence[tuple[float, ...]]) -> None:
        """Add points of the domain; one without a value, on a surface where the expression is 0/0, has the value beside it."""
        for point in dict.fromkeys(points):
            if all(x in d for x, d in zip(point, self.domains)):
                true = self.truth(point)
                if true != true and len(point) > 1:
                    true = self.truth((context.fadd(point[0], (point[0] or 1) * MOVED, exact=True), *point[1:]))
                self.points.append(point)
                self.truths.append(true)

    def beside(self, surfaces: Sequence[tuple[Any, Any]], symbols: Sequence[Any], points: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
        """For every surface symbol = root, points on it and at all distances from it, next to given points."""
        out = []
        for symbol, root in surfaces:
            i, at = symbols.index(symbol), value(root, symbols)
            for n, point in enumerate(points):
                middle = float(at([context.mpf(x) for x in point]))
                out += [(*point[:i], middle * (1 + d), *point[i + 1:]) for d in (BESIDE if n < 4 else BESIDE[n % 3::3])]
        return out

    def wide(self, symbols: Sequence[Any], surfaces: Sequence[tuple[Any, Any]], seed: int) -> list[tuple[float, ...]]:
        """Points with large and small numbers, and next to surfaces."""
        sizes = [s * x for w in WIDE for x in (w, 1 / w) for s in (1, -1)] + [s * x for x in EDGES for s in (1, -1)]
        if len(symbols) == 1:
            return [(x,) for x in sizes]
        rng = np.random.default_rng(seed)
        ordinary = self.points[:len(sizes)]
        mixed = [tuple(float(rng.choice(sizes)) if rng.integers(2) else x for x in ordinary[n % len(ordinary)]) for n in range(60)]
        mixed += [tuple(abs(x) if rng.integers(2) else x for x in point) for point in mixed]
        mixed = [point for point in mixed if all(x in d for x, d in zip(point, self.domains))][:36]
        return mixed + self.beside(surfaces, symbols, mixed[:8])

    def confined(self, patch: Patch | None) -> Patch | None:
        """A patch inside the region where the series equals the expression: not beyond a kink."""
        for _ in range(CONFINED if patch is not None and self.kinked else 0):
            points = [patch.centre + patch.radius * s * (i + 0.5) / DENSE for i in range(DENSE) for s in (1, -1)]  # type: ignore[union-attr]
            pairs = [(horner(x - patch.centre - patch.rest, patch.coefficients), float(self.truth((x,))))  # type: ignore[union-attr]
                     for x in points if x in self.domains[0]]
            if all(abs(a - b) <= 1e-12 * abs(b) for a, b in pairs):
                break
            patch = patch._replace(radius=patch.radius / 2)  # type: ignore[union-attr]
        else:
            return None if self.kinked else patch
        return patch

    def condition(self, i: int) -> float:
        """The condition at a point: the change of the reference in units in the last place if the arguments change by one, at least 1."""
        point = self.points[i]
        if point not in self.conditions:
            true, total, h = self.truths[i], context.mpf(1), context.mpf("1e-9")
            for k, x in enumerate(point):
                moved = self.truth((*point[:k], x * (1 + h), *point[k + 1:])) if x else true
                change = abs(moved - true) / (abs(true) * h)
                total += change if change == change else 0
            self.conditions[point] = float(total)
        return self.conditions[point]

    def errors(self, code: Code) -> np.ndarray:
        """The error at each point in units in the last place, divided by the condition.

        It is 0 where the reference is not a normal float, and infinite where a number is missing.
        """
        columns = [np.array(column) for column in zip(*self.points)]
        with np.errstate(all="ignore"):
            found = np.broadcast_to(code(*columns), columns[0].shape).tolist()
        out = []
        for i, (got, true) in enumerate(zip(found, self.truths)):
            plain = float(true)
            if plain != plain:
                out.append(0.0)
            elif not 1e-290 < abs(plain) < 1e300:
                fine = abs(got) < 1e-280 if abs(plain) < 1 else abs(got) > 1e290
                out.append(0.0 if fine else math.inf if abs(plain) < 1 else OVERFLOW)
            elif not math.isfinite(got):
                out.append(math.inf)
            else:
                error = ulp_of("float64").error(got, true)
                condition = self.condition(i) if GOOD < error and (error < HOPELESS or i >= self.ordinary) else 1.0
                out.append(0.0 if condition > HOPELESS else error / condition)  # beyond, the function varies between neighbouring floats
        return np.array(out)


def _row(series: Laurent) -> list[Any]:
    return [context.zero] * series.valuation + series.coefficients


def _patch_at(centre: Any, series: Laurent, wanted: float) -> Patch | None:
    """A patch of the wanted radius, or of a smaller one if that takes too many coefficients."""
    row, middle = _row(series), float(centre)
    plain = [float(c) for c in row]
    for radius in [wanted] + [d for d in sorted(DISTANCES, reverse=True) if LEAST_RADIUS <= d < wanted]:
        sizes = [abs(c) * radius**k for k, c in enumerate(plain)]
        size = min(abs(sum(c * r**k for k, c in enumerate(plain))) for r in ((radius, -radius) if series.valuation else (radius, -radius, 0.0)))
        tails = list(itertools.accumulate(reversed(sizes)))[::-1]
        count = next((k for k in range(series.valuation + 1, min(len(row), LONGEST)) if tails[k] <= size * 2.0**-56), None)
        if count is not None and sizes[-1] <= size * 2.0**-56:
            return Patch(middle, float(value(centre)([]) - middle), float(radius), tuple(float(c) for c in row[:count]))
    return None


def _patched(make: Callable[[Sequence[Patch]], Code], probe: _Probe, nearby: Sequence[tuple[Any, Laurent]]) -> tuple[list[Patch], Code, np.ndarray]:
    """Code with series near given points, as far as it is inaccurate there, and its errors."""
    patches: list[Patch] = []
    code = make(patches)
    found = probe.errors(code)
    for centre, series in nearby:
        middle = float(centre)
        rows = sorted((abs(p[0] - middle), e) for p, e in zip(probe.points, found) if abs(p[0] - middle) <= max(DISTANCES))
        bad = max((d for d, e in rows if e > BAD), default=None)
        if bad is None:
            continue
        bad = max([bad, *itertools.takewhile(bool, (d * (e > WORSE) for d, e in rows if d > bad))])
        patch = _patch_at(centre, series, min((d for d in DISTANCES if d > 1.1 * bad and d >= LEAST_RADIUS), default=max(DISTANCES)))
        patch = probe.confined(patch)
        if patch is not None:
            patches.append(patch)
    if patches:
        code = make(patches)
        found = probe.errors(code)
    return patches, code, found


def _tiled(make: Callable[[Sequence[Patch]], Code], probe: _Probe, patches: list[Patch], code: Code, found: np.ndarray,
           expand: Callable[[Any], Laurent | None]) -> tuple[list[Patch], Code, np.ndarray]:
    """Add series wherever errors remain."""
    for _ in range(TILES):
        i = int(found.argmax())
        x = probe.points[i][0]
        if found[i] <= BAD or abs(x) > FAR:
            break
        centre = sympy.Rational(round(x * 16), 16)
        series = expand(centre)
        patch = None if series is None or series.valuation < 0 else probe.confined(_patch_at(centre, series, 1.0))
        if patch is None or abs(x - patch.centre) > patch.radius:
            break
        trial = make([patch, *patches])
        errors = probe.errors(trial)
        if not errors[i] < found[i]:
            break
        patches, code, found = [patch, *patches], trial, errors
    return patches, code, found


def _without_zeros(forms: Iterator[Any], probe: _Probe, symbols: Sequence[Any]) -> Iterator[Any]:
    """Forms of several arguments: with a `Ratio` for every quotient, and also without if no quotient is 0/0 in the domain."""
    for form in forms:
        smooth = with_ratios(form)
        ratios = smooth.atoms(Ratio)
        if not any(_vanishes(r.args[2], probe, symbols) for r in ratios):
            yield form
        if ratios:
            yield smooth


def _vanishes(u: Any, probe: _Probe, symbols: Sequence[Any]) -> bool:
    """Whether an expression is 0 somewhere in the domain, tested for one symbol at a time."""
    for i, s in enumerate(symbols):
        roots = sympy.roots(u, s) if s in u.free_symbols and u.is_polynomial(s) and sympy.degree(u, s) == 1 else {}
        for root in roots:
            for point in probe.points[:8]:
                at = root.xreplace({t: sympy.Float(v) for t, v in zip(symbols, point)})
                if at.is_number and at.is_real and float(at) in probe.domains[i]:
                    return True
    return False


def _closed_variants(mean: Any) -> Iterator[Any]:
    """An expression with means, whose quotients are written in several ways."""
    def with_closed(change: Callable[[Any], Any]) -> Any:
        return mean.replace(lambda e: isinstance(e, Mean), lambda e: Mean(change(e.args[0]), *e.args[1:]))

    yield from (with_closed(lambda e: rewritten(sympy.logcombine(e))), with_closed(rewritten), mean, rewritten(mean),
                with_closed(lambda e: joined(sympy.factor(rewritten(e)))), with_closed(sympy.expand))


def _trusted(points: Sequence[tuple[float, ...]], bad: np.ndarray) -> tuple[float, float]:
    """The range of sizes of a single argument without errors; for several arguments the size of the value alone is tested."""
    if len(points[0]) > 1:
        return 0.0, math.inf
    sizes = [abs(p[0]) for p in points]
    below = max((s for s, b in zip(sizes, bad) if b and s < 1), default=0.0)
    above = min((s for s, b in zip(sizes, bad) if b and s >= 1), default=math.inf)
    return (min((s for s in sizes if s > below), default=0.0) if below else 0.0,
            max((s for s in sizes if s < above), default=math.inf) if above < math.inf else math.inf)


def best_form(name: str, exact: Any, derivative: Any, symbols: Sequence[Any], domains: Sequence[Domain], names: Sequence[str],
              ratio_code: RatioCode, nearby: Sequence[tuple[Any, Laurent]] = (), expand: Callable[[Any], Laurent | None] | None = None,
              thorough: bool = True, mean: Any = None, seed: int = 0, count: int = 60) -> Form:
    """The form of an expression whose code has the smallest errors; if not `thorough`, the first that loses no digits.

    `derivative` is the expression derived from a form that is known already; `nearby` are its series near points, and `expand` gives the
    series at any other point, for an expression of one symbol; `mean` is the expression with means in place of quotients that are 0/0.
    Raises Unknown for a function without a rule.
    """
    places = tuple(i for i, s in enumerate(symbols) if s in exact.free_symbols) or (0,)
    used, within, own = [symbols[i] for i in places], [domains[i] for i in places], [names[i] for i in places]
    probe = _Probe(exact, used, within, count, seed)
    nearby = [(p, s) for p, s in nearby if s.valuation >= 0 and len(s.coefficients) > 8] if len(used) == 1 else []
    for centre, series in nearby:
        probe.add(centre, series)
    surfaces = [tuple(m.args[2]) for m in mean.atoms(Mean)] if mean is not None else []
    surfaces = [(s, r) for s, r in dict.fromkeys(surfaces) if s in used and r.free_symbols <= set(used)]
    probe.add_points(probe.beside(surfaces, used, probe.points[:6]))

    def maker(form: Any, *guards: tuple[Guard, Sequence[str]]) -> Callable[[Sequence[Patch]], Code]:
        return lambda patches: generate(name, used, [form], [patches], own, ratio_code, guards)

    best: Any = None
    derivative = elementary(derivative) if surfaces else derivative  # an integrand is not expanded: q + t (p - q) keeps its digits
    candidates = _candidates(exact, derivative) if len(used) == 1 else _without_zeros(_candidates(exact, derivative), probe, used)
    if surfaces:
        candidates = itertools.chain(_closed_variants(mean), candidates)
    for form in candidates:
        made = _patched(maker(form), probe, nearby)
        score = _score(probe, made[2], made[0], form)
        if best is None or score < best[0]:
            best = score, form, made
        if (surfaces or not thorough) and score[:3] == (0, 0, 0):
            break
    _, form, made = best
    if expand is not None and made[0]:
        made = _tiled(maker(form), probe, made[0], made[1], made[2], expand)
    patches, code, found = made
    probe.ordinary = len(probe.points)
    probe.add_points(probe.wide(used, surfaces, seed))
    found = probe.errors(code)
    bad, guard = (found >= OVERFLOW) & ((found == OVERFLOW) | (found > LOST)), None
    if bad.any() or form.has(Mean):
        trial = Guard(code, *_trusted(probe.points, bad)), own
        guarded = maker(form, trial)(patches)
        errors = probe.errors(guarded)
        if (errors >= OVERFLOW).sum() < (found >= OVERFLOW).sum() + form.has(Mean):
            code, found, guard = guarded, errors, trial
    for j in np.flatnonzero((found >= HOPELESS) & np.isfinite(found)).tolist():  # next to a zero or a jump
        found[j] = 0.0 if probe.condition(j) > HOPELESS else found[j]
    i = int(found.argmax())
    return Form(exact, form, tuple(used), places, tuple(patches), code, Measure(float(found[i]), tuple(probe.points[i]), len(found)), guard,
                tuple(probe.points[:count]), tuple(probe.truths[:count]), probe.truth)
