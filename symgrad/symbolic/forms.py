"""Selection of the form in which a formula, or one of its derivatives, is computed: the one with the smallest measured error.

A form is a stable rewriting of the exact expression, which is replaced by Laurent series near points where terms cancel or it is 0/0.
Forms are compared with many-digit reference values, at points of every size in the domain.
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
from sympy.polys.rings import sring

from symgrad.algebra.series import Laurent
from symgrad.algebra.stable import stable_form
from symgrad.algebra.stable_functions import elementary
from symgrad.algebra.stable_products import Mean, Ratio, join_logarithms, with_ratios
from symgrad.algebra.values import value
from symgrad.carriers.sizes import expanded_terms
from symgrad.graph.domains import Domain
from symgrad.symbolic.generating import Code, RatioCode, generate
from symgrad.symbolic.kept import Kept, written_out
from symgrad.symbolic.probe import COUNT, DISTANCES, HOPELESS, OVERFLOW, Probe, row_of
from symgrad.symbolic.reading import keep
from symgrad.symbolic.support import Patch
from symgrad.symbolic.wide import Guard
from symgrad.system.limits import TERMS

LOST = 1e3  # the error of a form that overflows or underflows
BAD, WORSE = 4.5, 1.5  # a series is used where errors are larger than BAD, and extended to adjacent errors larger than WORSE
LONGEST = 30  # the most coefficients of a series
LEAST_RADIUS, NEAR, FAR, TILES = 2.0**-26, 4.0, 8.0, 8
HIGHEST = 100  # the highest degree of a polynomial that is factored
LARGE = 400  # the number of operations above which an expression is not factored


class FormMeasure(NamedTuple):
    """The worst error of a form in units in the last place, its point, and the number of points."""

    worst: float
    at: tuple[float, ...]
    points: int


@dataclass(frozen=True)
class Form:
    """The form of an expression: `exact` is the expression, `stable` its rewriting, `places` the indices of the op's arguments that it depends on."""

    exact: Any
    stable: Any
    symbols: tuple[Any, ...]
    places: tuple[int, ...]
    patches: tuple[Patch, ...]
    code: Code
    measure: FormMeasure
    guard: tuple[Guard, Sequence[str]] | None = None
    points: tuple[tuple[float, ...], ...] = ()
    references: tuple[Any, ...] = ()
    reference: Any = None
    limits: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def shown(self) -> Any:
        """The expression for display: the shorter of the two in SymPy's functions."""
        return min((written_out(self.exact), written_out(self.stable)), key=sympy.count_ops)


def _cost(expr: Any) -> int:
    """The approximate cost of generated code, in which every distinct part of an expression is computed once."""
    total = 0
    for part in set(sympy.preorder_traversal(expr)):
        if isinstance(part, sympy.Pow):
            total += 2 if part.exp.is_Integer else 5
        elif part.args:
            total += 30 if isinstance(part, (Ratio, Mean)) else 10 if isinstance(part, sympy.Function) else len(part.args) - 1
    return total


def _lost_bits(worst: float) -> int:
    return round(math.log2(min(worst, 2.0**60)) / 2) if worst > BAD else 0


def _score(probe: Probe, found: np.ndarray, patches: Sequence[Patch], expr: Any) -> tuple[int, int, int, int]:
    """A score to be minimised: digits lost away from series, digits lost anywhere, the number of series, and the cost."""
    worst = float(found.max())
    far = max((e for p, e in zip(probe.points, found) if abs(p[0]) > NEAR), default=0.0) if patches else worst
    return _lost_bits(far), _lost_bits(worst), len(patches), _cost(expr)


def _factored(e: Any) -> Any:
    """An expression in factors. Raises PolynomialError where SymPy takes minutes: for many terms or a high degree, as of exp(8943 x / 200000)."""
    for part in sympy.fraction(sympy.together(e)):
        if expanded_terms(part) > TERMS:
            raise sympy.PolynomialError(f"{part} has more than {TERMS} terms")
        if part.free_symbols and max(sring(part)[1].degrees()) > HIGHEST:
            raise sympy.PolynomialError(f"the degree of {part} is above {HIGHEST}")
    return sympy.factor(e)


def _candidates(exact: Any, derivative: Any) -> Iterator[Any]:
    """Candidate forms, the simplest first."""
    known = set()
    makers = [lambda: stable_form(derivative), lambda: stable_form(exact)]
    if sympy.count_ops(derivative) < LARGE:
        makers += [lambda: stable_form(sympy.factor_terms(sympy.powsimp(derivative))), lambda: stable_form(_factored(stable_form(derivative))),
                   lambda: stable_form(_factored(elementary(derivative))), lambda: stable_form(sympy.together(derivative)),
                   lambda: derivative, lambda: exact]
        if expanded_terms(derivative) <= TERMS:
            makers.insert(-2, lambda: stable_form(sympy.expand(derivative)))
    for make in makers:
        try:
            form = make()
        except (sympy.PolynomialError, ArithmeticError, NotImplementedError):
            continue
        if form not in known:
            known.add(form)
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


def series_of_derivative(series: Laurent, order: int) -> Laurent:
    """The series of a derivative."""
    for _ in range(order):
        row = [c * (series.valuation + i) for i, c in enumerate(series.coefficients)]
        start = next((i for i, c in enumerate(row) if c), len(row))
        series = Laurent(series.valuation - 1 + start, row[start:])
    return series


def _patch_at(centre: Any, series: Laurent, wanted: float) -> Patch | None:
    """A patch of the wanted radius, or of a smaller one if that radius needs too many coefficients."""
    row, middle = row_of(series), float(centre)
    plain = [float(c) for c in row]
    for radius in [wanted] + [d for d in sorted(DISTANCES, reverse=True) if LEAST_RADIUS <= d < wanted]:
        sizes = [abs(c) * radius**k for k, c in enumerate(plain)]
        size = min(abs(sum(c * r**k for k, c in enumerate(plain))) for r in ((radius, -radius) if series.valuation else (radius, -radius, 0.0)))
        tails = list(itertools.accumulate(reversed(sizes)))[::-1]
        count = next((k for k in range(series.valuation + 1, min(len(row), LONGEST)) if tails[k] <= size * 2.0**-56), None)
        if count is not None and sizes[-1] <= size * 2.0**-56:
            return Patch(middle, float(value(centre)([]) - middle), float(radius), tuple(float(c) for c in row[:count]))
    return None


def _with_patches(make: Callable[[Sequence[Patch]], Code], probe: Probe,
                  nearby: Sequence[tuple[Any, Laurent]]) -> tuple[list[Patch], Code, np.ndarray]:
    """The series for given points where the code is inaccurate, the code with these series, and its errors."""
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
        patch = probe.confine(patch)
        if patch is not None:
            patches.append(patch)
    if patches:
        code = make(patches)
        found = probe.errors(code)
    return patches, code, found


def _with_tiles(make: Callable[[Sequence[Patch]], Code], probe: Probe, patches: list[Patch], code: Code, found: np.ndarray,
           expand: Callable[[Any], Laurent | None]) -> tuple[list[Patch], Code, np.ndarray]:
    """Add series at points where errors remain."""
    for _ in range(TILES):
        i = int(found.argmax())
        x = probe.points[i][0]
        if found[i] <= BAD or abs(x) > FAR:
            break
        centre = sympy.Rational(round(x * 16), 16)
        series = expand(centre)
        patch = None if series is None or series.valuation < 0 else probe.confine(_patch_at(centre, series, 1.0))
        if patch is None or abs(x - patch.centre) > patch.radius:
            break
        trial = make([patch, *patches])
        errors = probe.errors(trial)
        if not errors[i] < found[i]:
            break
        patches, code, found = [patch, *patches], trial, errors
    return patches, code, found


def _without_zeros(forms: Iterator[Any], probe: Probe, symbols: Sequence[Any]) -> Iterator[Any]:
    """Forms of several arguments: those with a `Ratio` for every quotient, and the plain ones if no quotient is 0/0 in the domain."""
    for form in forms:
        smooth = with_ratios(form)
        ratios = smooth.atoms(Ratio)
        if not any(_vanishes(r.args[2], probe, symbols) for r in ratios):
            yield form
        if ratios:
            yield smooth


def _vanishes(u: Any, probe: Probe, symbols: Sequence[Any]) -> bool:
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
    """Variants of an expression with means, with different forms of their quotients."""
    def with_closed(change: Callable[[Any], Any]) -> Any:
        return mean.replace(lambda e: isinstance(e, Mean), lambda e: Mean(change(e.args[0]), *e.args[1:]))

    yield from (with_closed(lambda e: stable_form(sympy.logcombine(e))), with_closed(stable_form), mean, stable_form(mean),
                with_closed(lambda e: join_logarithms(sympy.factor(stable_form(e)))), with_closed(sympy.expand))


def _trusted_range(points: Sequence[tuple[float, ...]], bad: np.ndarray) -> tuple[float, float]:
    """The range of sizes of a single argument without errors; no limits for several arguments."""
    if len(points[0]) > 1:
        return 0.0, math.inf
    sizes = [abs(p[0]) for p in points]
    below = max((s for s, b in zip(sizes, bad) if b and s < 1), default=0.0)
    above = min((s for s, b in zip(sizes, bad) if b and s >= 1), default=math.inf)
    return (min((s for s in sizes if s > below), default=0.0) if below else 0.0,
            max((s for s in sizes if s < above), default=math.inf) if above < math.inf else math.inf)


def best_form(name: str, exact: Any, derivative: Any, symbols: Sequence[Any], domains: Sequence[Domain], names: Sequence[str],
              ratio_code: RatioCode, nearby: Sequence[tuple[Any, Laurent]] = (), expand: Callable[[Any], Laurent | None] | None = None,
              thorough: bool = True, mean: Any = None, special: bool = False) -> Form:
    """The form of an expression whose code has the smallest errors; if not `thorough`, the first form that loses no digits.

    `derivative` is the expression as the derivative of the form of lower order; `nearby` are series at points, and `expand` returns the
    series at any other point, for an expression of one symbol; `mean` is the expression with means in place of quotients that are 0/0;
    `special` is whether functions of the carriers may compute it, which other frameworks do not have.
    Raises Unknown for a function without a rule.
    """
    places = tuple(i for i, s in enumerate(symbols) if s in exact.free_symbols) or (0,)
    used, within, own = [symbols[i] for i in places], [domains[i] for i in places], [names[i] for i in places]
    probe = Probe(exact, used, within)
    nearby = [(p, s) for p, s in nearby if s.valuation >= 0 and len(s.coefficients) > 8] if len(used) == 1 else []
    for centre, series in nearby:
        probe.add(centre, series)
    surfaces = [tuple(m.args[2]) for m in mean.atoms(Mean)] if mean is not None else []
    surfaces = [(s, r) for s, r in dict.fromkeys(surfaces) if s in used and r.free_symbols <= set(used)]
    probe.add_points(probe.beside(surfaces, used, probe.points[:6]))

    def maker(form: Any, *guards: tuple[Guard, Sequence[str]]) -> Callable[[Sequence[Patch]], Code]:
        return lambda patches: generate(name, used, [form], [patches], own, ratio_code, guards)

    best: Any = None
    derivative = elementary(derivative) if surfaces else derivative  # the integrand is not expanded, since q + t (p - q) keeps its digits
    candidates = _candidates(exact, derivative) if len(used) == 1 else _without_zeros(_candidates(exact, derivative), probe, used)
    if surfaces:
        candidates = itertools.chain(_closed_variants(mean), candidates)

    def whole() -> Iterator[Any]:
        """The form in the functions of the carriers, if digits are lost in the others."""
        if special and best[0][:2] > (0, 0) and (form := keep(derivative, elementary=True)).has(Kept):
            yield form

    for form in itertools.chain(candidates, whole()):
        made = _with_patches(maker(form), probe, nearby)
        score = _score(probe, made[2], made[0], form)
        if best is None or score < best[0]:
            best = score, form, made
        if (surfaces or not thorough) and score[:3] == (0, 0, 0):
            break
    _, form, made = best
    if expand is not None and made[0]:
        made = _with_tiles(maker(form), probe, made[0], made[1], made[2], expand)
    patches, code, found = made
    probe.ordinary = len(probe.points)
    probe.add_points(probe.wide(used, surfaces))
    found = probe.errors(code)
    bad, guard = (found >= OVERFLOW) & ((found == OVERFLOW) | (found > LOST)), None
    if bad.any() or form.has(Mean):
        trial = Guard(code, *_trusted_range(probe.points, bad)), own
        guarded = maker(form, trial)(patches)
        errors = probe.errors(guarded)
        if (errors >= OVERFLOW).sum() < (found >= OVERFLOW).sum() + form.has(Mean):
            code, found, guard = guarded, errors, trial
    for j in np.flatnonzero((found >= HOPELESS) & np.isfinite(found)).tolist():  # next to a zero or a jump
        found[j] = 0.0 if probe.condition(j) > HOPELESS else found[j]
    i = int(found.argmax())
    return Form(exact, form, tuple(used), places, tuple(patches), code, FormMeasure(float(found[i]), tuple(probe.points[i]), len(found)), guard,
                tuple(probe.points[:COUNT]), tuple(probe.references[:COUNT]), probe.reference)
