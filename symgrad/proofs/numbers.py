"""Numeric comparison of derivatives by the rules, with many digits, and by SymPy's formulas, with measured errors.

Points of domains of matrices are exact: free numbers are made a matrix of the domain, or are known not to be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import mpmath
import sympy
from sympy.matrices.exceptions import NonInvertibleMatrixError

from symgrad.algebra.evaluating import Evaluator
from symgrad.algebra.ladder import DIFFERENT, OPEN, SAME, compare_numbers, rungs
from symgrad.algebra.limits import clock
from symgrad.algebra.ranges import points_in, ranges_of
from symgrad.algebra.stochastic import Arithmetic, Exact, Gaussian
from symgrad.carriers import precise
from symgrad.graph.domains import MatrixDomain
from symgrad.proofs.case import Case, Key, domain_of
from symgrad.proofs.regions import Region, Switch, constants, is_border
from symgrad.reference.recorder import RecordingCarrier
from symgrad.sampling.points import shrink_values

HERMITIAN = ("symmetric", "spd", "well_separated_spectrum")


def has_matrices(case: Case) -> bool:
    """Whether an argument has a domain of matrices."""
    return any(isinstance(domain_of(case.op, i), MatrixDomain) for i in case.active)


def fitted(case: Case, at: Mapping[Any, Any]) -> dict[Any, Any]:
    """The values of symbols, with those of each matrix changed to a matrix of its kind: Hermitian, positive definite, triangular or orthogonal.

    Kinds that are all but some matrices, such as nonsingular ones, are not changed.
    """
    out = dict(at)
    for domain, cells, rows in _matrices(case):
        for i in range(rows):
            of = cells[i]
            symbols = [s for s in of.ravel().tolist() if s.free_symbols]
            if all(s in at for e in symbols for s in e.free_symbols):
                out |= _solved(of, _made(domain.kind, _matrix(of, at)))
    return out


def is_inside(case: Case, at: Mapping[Any, Any]) -> bool:
    """Whether the values of the symbols are matrices of the domains. A symbol without a value leaves it open, which is False."""
    for domain, cells, rows in _matrices(case):
        for i in range(rows):
            values = _matrix(cells[i], at)
            if values.free_symbols or not _belongs(domain.kind, values):
                return False
    return True


def _matrices(case: Case) -> Iterator[tuple[MatrixDomain, Any, int]]:
    """For each argument that is a batch of matrices (or vectors): its domain, the batch as one leading axis, and its length."""
    for i in case.active:
        domain = domain_of(case.op, i)
        if isinstance(domain, MatrixDomain):
            cells = case.symbols[case.names[i]]
            rank = 1 if domain.kind == "distinct" else 2
            batch = cells.reshape((-1, *cells.shape[len(cells.shape) - rank:]))
            yield domain, batch, len(batch)


def _matrix(cells: Any, at: Mapping[Any, Any]) -> Any:
    """The values of an array of expressions as a matrix; a vector is one row."""
    rows = cells.tolist() if cells.ndim == 2 else [cells.tolist()]
    return sympy.Matrix(len(rows), len(rows[0]), [sympy.sympify(e).xreplace(dict(at)) for row in rows for e in row])


def _solved(cells: Any, values: Any) -> dict[Any, Any]:
    """The values of the symbols with which the cells, symbols or a + b i of two of them, have these values."""
    out: dict[Any, Any] = {}
    for e, x in zip(cells.ravel().tolist(), values):
        if e.is_Symbol:
            out[e] = x
        else:
            real, imag = e.as_real_imag()
            out |= dict(zip((real, imag), x.as_real_imag()))
    return out


def _made(kind: str, p: Any) -> Any:
    """A matrix of a kind, by a rational function of any matrix."""
    if kind == "spd":
        return (p * p.H).expand() + sympy.eye(p.rows)
    if kind in HERMITIAN:
        return (p + p.H) / 2
    if kind == "lower_triangular":
        return p.lower_triangular()
    if kind == "orthogonal" and p.rows == p.cols:
        skew = p - p.H
        return ((sympy.eye(p.rows) + skew).inv() * (sympy.eye(p.rows) - skew)).applyfunc(sympy.radsimp)
    return p


def _belongs(kind: str, a: Any) -> bool:
    """Whether a matrix is of a kind."""
    if kind == "distinct":
        return len(set(a)) == len(a)
    if kind in HERMITIAN and (a.rows != a.cols or not _is_zero(a - a.H)):
        return False
    if kind == "symmetric":
        return True
    if kind == "spd":
        return all(sympy.re(sympy.expand(a[:k, :k].det())) > 0 for k in range(1, a.rows + 1))
    if kind == "well_separated_spectrum":
        return _has_simple_spectrum(a)
    if kind == "well_separated_singular_values":
        small = a.H * a if a.rows >= a.cols else a * a.H
        return not _is_zero(sympy.Matrix([small.det()])) and _has_simple_spectrum(small)
    if kind in ("triangular", "lower_triangular"):
        return not any(a[i, i] == 0 for i in range(min(a.shape))) and (kind == "triangular" or _is_zero(a - a.lower_triangular()))
    if kind == "orthogonal":
        return _is_zero(a.H * a - sympy.eye(a.cols))
    if kind == "full" and any(a[i, j] == 0 for i in range(a.rows) for j in range(min(i, a.cols))):
        return False
    return not _is_zero(sympy.Matrix([(a.H * a if a.rows >= a.cols else a * a.H).det()]))


def _is_zero(a: Any) -> bool:
    return all(sympy.expand(x) == 0 for x in a)


def _has_simple_spectrum(a: Any) -> bool:
    x = sympy.Dummy()
    polynomial = sympy.expand((a - x * sympy.eye(a.rows)).det())
    return a.rows < 2 or not _is_zero(sympy.Matrix([sympy.discriminant(polynomial, x)]))


FIRST, LAST = 70, 400  # the digits of the first and of the last rung
SIMPLIFIED = 3  # the number of refuted statements whose points are simplified
TRIES = 60  # the most evaluations for the simplification of a point


@dataclass
class NumericResult:
    """The number of points that agreed, and the first other one, with the numbers by the rule (`claim`) and by SymPy (`reference`).

    `simple` is true if the point was simplified.
    """

    points: int = 0
    point: Mapping[sympy.Symbol, Any] | None = None
    claim: Any = None
    reference: Any = None
    simple: bool = True


class NumericComparison:
    """The comparison of a case inside a region, at points, of the derivatives by the rules with the reference expressions."""

    def __init__(self, case: Case, region: Region, references: Mapping[Key, Sequence[Any]], order: int, switches: Sequence[Switch] = ()):
        self.case, self.region, self.references, self.order, self.switches = case, region, references, order, switches
        self.found = {key: NumericResult() for key in references}
        inner = sorted(set().union(*(sympy.sympify(region(x)).free_symbols for x in case.variables)), key=str)
        self.directions = sorted(set().union(*(e.free_symbols for name, cells in case.symbols.items() if name not in case.names
                                               for e in cells.ravel().tolist())), key=str)
        self.inner: list[sympy.Symbol] = inner
        self.programs: dict[tuple[Key, ...], Evaluator] = {}
        self.ranges = ranges_of(inner, {s: d for s, d in region.domains.items() if s in inner})
        self.rng = Random(0)
        self.moves = [Fraction(self.rng.choice((-1, 1)) * self.rng.randint(1, 9)) for _ in self.directions]
        self.arithmetic = Arithmetic(FIRST)
        self.matrices = has_matrices(case)

    def compare(self, wanted: int, first: Iterable[Sequence[Exact]] = (), seconds: float = inf) -> dict[Key, NumericResult]:
        """Compare at the `first` points, within the time, and at `wanted` others; each wrong statement gets a simple point."""
        end = clock() + seconds
        for inner in itertools.takewhile(lambda _: clock() < end, first):
            if all(x in r for x, r in zip(inner, self.ranges)) and self._is_short(inner):
                self._compare(inner)
        tries = 0
        for inner in points_in(self.ranges, constants(self.case), self.rng):
            tries += 1
            if tries > 3 * wanted + 10 or all(f.points >= wanted or f.point is not None for f in self.found.values()):
                break
            self._compare(inner)
        return self.found

    def _is_short(self, inner: Sequence[Exact]) -> bool:
        """Whether no argument is rounded at a point with the digits of the first rung."""
        at = {s: _rational(x) for s, x in zip(self.inner, inner)}
        return all(abs(self.region(x).xreplace(at).p) < 10**(FIRST - 10) for x in self.case.variables)

    def _placed(self, inner: Sequence[Exact]) -> Sequence[Exact] | None:
        """The point with its matrices made matrices of their domains; None if they are not, so that rules may be wrong or raise there."""
        if not self.matrices:
            return inner
        at = {s: _rational(x) for s, x in zip(self.inner, inner)}
        if self.region.mapping:
            return inner if is_inside(self.case, {x: self.region(x).xreplace(at) for x in self.case.variables}) else None
        try:
            at = fitted(self.case, at)
        except NonInvertibleMatrixError:
            return None
        return [_exact_number(at[s]) for s in self.inner] if is_inside(self.case, at) else None

    def _compare(self, free: Sequence[Exact]) -> None:
        inner = self._placed(free)
        if inner is None:
            return
        results = self._at(inner)
        for key, (verdict, claim, reference) in results.items():
            found = self.found[key]
            if verdict == SAME:
                found.points += 1
            elif verdict == DIFFERENT and found.point is None and self._is_refuting(key, free):
                self._refute(key, free, claim, reference)

    def _refute(self, key: Key, free: Sequence[Exact], claim: Any, reference: Any) -> None:
        """Record a simplified point at which a statement is wrong, with the directions."""
        refuted = sum(f.point is not None for f in self.found.values())
        if refuted < SIMPLIFIED:
            simple = shrink_values(list(free), lambda point: self._refutes(key, point), TRIES)
            if simple != list(free):
                free, (_, claim, reference) = simple, self._at(self._placed(simple) or (), [key])[key]
        at = {s: _rational(x) for s, x in zip(self.inner, self._placed(free) or ())}
        point = {x: self.region(x).xreplace(at) for x in self.case.variables}
        used = set().union(*(e.free_symbols for e in self.references[key]))
        point |= {s: _rational(x) for s, x in zip(self.directions, self.moves) if s in used}
        self.found[key] = NumericResult(self.found[key].points, point, claim, reference, refuted < SIMPLIFIED)

    def _refutes(self, key: Key, free: Sequence[Exact]) -> bool:
        if not all(x in r for x, r in zip(free, self.ranges)):
            return False
        return self._differs(key, free) and self._is_refuting(key, free)

    def _differs(self, key: Key, free: Sequence[Exact]) -> bool:
        inner = self._placed(free)
        return inner is not None and self._at(inner, [key])[key][0] == DIFFERENT

    def _is_refuting(self, key: Key, free: Sequence[Exact]) -> bool:
        """Whether a difference is not by convention: the point is not on a boundary of the forward rule, or the two differ beside it, too."""
        if not self.case.complex and not is_border(self.switches, {s: _rational(x) for s, x in zip(self.inner, self._placed(free) or ())}):
            return True
        for step in (Fraction(1, 2**40), Fraction(-3, 2**42)):
            moved: list[Any] = []
            for k, x in enumerate(free):
                size = step * Fraction(7 + k, 8)
                moved.append(Gaussian(x.real + size, x.imag) if isinstance(x, Gaussian) else x + size * (abs(x) or 1))
            if all(x in r for x, r in zip(moved, self.ranges)) and self._differs(key, moved):
                return True
        return False

    def _at(self, inner: Sequence[Exact], keys: Sequence[Key] | None = None) -> dict[Key, tuple[str, Any, Any]]:
        """Whether the rule and the reference agree, for each statement, with the values of an element."""
        point = [*inner, *self.moves]
        wanted = tuple(self.found if keys is None else keys)
        out: dict[Key, tuple[str, Any, Any]] = {}
        before: dict[Key, list[Any]] = {}
        for digits in rungs(FIRST, LAST):
            references, claims = self._references(wanted, point, digits), self._claims(max(key.order for key in wanted), point, digits)
            with precise.working_precision(digits):
                for key in [k for k in wanted if k not in out or out[k][0] == OPEN]:
                    pairs = [(_number(c), *self._value(t)) for c, t in zip(claims[key], references[key], strict=True)]
                    out[key] = _statement_result(pairs, before.get(key))
                    before[key] = pairs
            if all(verdict != OPEN for verdict, *_ in out.values()):
                break
        return out

    def _references(self, keys: tuple[Key, ...], point: Sequence[Exact], digits: int) -> dict[Key, list[Any]]:
        if keys not in self.programs:
            self.programs[keys] = Evaluator([e for key in keys for e in self.references[key]], [*self.inner, *self.directions])
        self.arithmetic.set_digits(digits)
        values = iter(self.programs[keys].at(point, self.arithmetic))
        return {key: [next(values) for _ in self.references[key]] for key in keys}

    def _value(self, x: Any) -> tuple[Any, int]:
        """A number with the exponent of its error; None for an unknown number."""
        if isinstance(x, ArithmeticError):
            return None, 0
        return _number(self.arithmetic.sample(x).value), self.arithmetic.error(x)

    def _claims(self, order: int, point: Sequence[Exact], digits: int) -> dict[Key, list[Any]]:
        at = {s: _rational(x) for s, x in zip([*self.inner, *self.directions], point)}

        def supply(name: str, shape: tuple[int, ...]) -> Any:
            cells = [_digits(sympy.sympify(self.region(s)).xreplace(at), self.case.complex) for s in self.case.supply(name, shape).ravel().tolist()]
            return precise.Digits.fill(cells, shape)

        with precise.working_precision(digits):
            return dict(self.case.claims(RecordingCarrier(precise, precise.lift_value, self.case.complex), supply, order))


def _statement_result(pairs: Sequence[tuple[Any, Any, int]], before: Sequence[tuple[Any, Any, int]] | None) -> tuple[str, Any, Any]:
    """The verdict on one statement at one point; `pairs` has the claims, the references and the exponents of their errors.

    `before` are the pairs of the rung before.
    """
    out: tuple[str, Any, Any] = SAME, None, None
    for k, (claim, reference, error) in enumerate(pairs):
        if reference is None:
            return OPEN, None, None
        earlier = None if before is None or before[k][1] is None else before[k][:2]
        verdict = compare_numbers(claim, reference, earlier, lambda error=error: mpmath.mpf(2) ** (error + 3))  # type: ignore[misc]
        if verdict == DIFFERENT:
            return DIFFERENT, claim, reference
        out = out if verdict == SAME else (OPEN, claim, reference)
    return out


def _rational(x: Exact) -> Any:
    if isinstance(x, Gaussian):
        return _rational(x.real) + sympy.I * _rational(x.imag)
    return sympy.Rational(x.numerator, x.denominator)


def _exact_number(x: Any) -> Exact:
    """A rational number of SymPy, real or complex, as one of Python."""
    real, imag = (Fraction(int(part.p), int(part.q)) for part in x.as_real_imag())
    return Gaussian(real, imag) if imag else real


def _digits(e: Any, complex: bool) -> Any:
    """A rational number, real or complex, as a number of the precise carrier."""
    real, imag = e.as_real_imag()
    if not (real.is_Rational and imag.is_Rational):
        raise TypeError(f"{e} is not a rational number")
    parts = [precise.context.mpf(int(part.p)) / int(part.q) for part in (real, imag)]
    return precise.context.mpc(*parts) if complex else parts[0]


def _number(x: Any) -> Any:
    """A number of another mpmath context in the global one."""
    return mpmath.mp.convert(int(x) if isinstance(x, bool) else x)
