"""The data of an example, and the fixed examples of an op: every edge of the domains and the formula, ties, and arrays in every arrangement.

An example has arguments with a cotangent and tangents. The draft that it is made of follows a plan.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.checks.cross import expressions_of
from symgrad.frameworks.adapter import NotApplicable
from symgrad.graph.domains import BOOLEAN, COMPLEX, Domain, MatrixDomain
from symgrad.proofs.statements import rule_boundary_points
from symgrad.sampling.conditions import boundary_numbers, combined_numbers, constants_of_code, numbers_around
from symgrad.sampling.numbers import GOLDEN, PAGES, PREFIX, edge_numbers, fit, restricted_domain, simple_numbers, table
from symgrad.testing.claimed import ORDINARY, ClaimedOp, is_function, special_points
from symgrad.testing.strategies.arrays import ARRANGEMENTS, arrange

KINDS = ("points", "broadcast", "scalars", "empty", "low", "complex", "special")
EMPTY = ((0,), (0, 2), (3, 0))
# The smallest and the largest size of a number: any size for an elementwise op; such that sums and products of many keep digits; such
# that float16 holds it, with bfloat16's digits; such that the parts of a complex function do not cancel.
SIZES = {"points": (0.0, 1e300), "arrays": (1e-6, 300.0), "low": (2.0**-6, 64.0), "complex": (1e-3, 10.0)}
LARGEST = {"float64": 1e300, "float32": 1e37, "float16": 1e4}
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


MAX_EDGES = 90, 40, 30  # the number of edges of an argument, for one, two or more arguments
MAX_COMBINATIONS = 70  # combinations of edges
TIED = 16
MAX_CONSTANTS = 16  # constants of a source
NUMBERS_PER_PLACE = 7  # numbers at and next to a place of the formula
MOST_BEYOND = 24
MODERATE_SIZES = 1e-5, 1e3  # the sizes of numbers that do not cause overflow or underflow
BROADCAST = (((2, 1), (3,), ()), ((3,), (2, 3), (1,)), ((), (2,), (2,)), ((1, 1), (2, 3), (3,)), ((2, 3), (), (1, 3)), ((0,), (1,), ()),
             ((2, 0), (1, 1), (0,)), ((1,), (), (1, 1)), ((2, 1, 2), (3, 1), (2,)))
IMAGINARY = (0.5, -1.5, 2.25, -0.75, 3.0, 1.25, -2.0, 0.0)
Point = tuple[float, ...]


def edge_drafts(attack: ClaimedOp, plan: DrawingPlan) -> list[Draft]:
    """The fixed drafts of a kind."""
    if plan.kind == "special":
        return _special(attack, plan)
    if plan.shapes is not None:
        first, *others = _of_arrays(plan)
        turned = [x if isinstance(d, MatrixDomain) else inner_reversed(x.ravel()).reshape(x.shape) for x, d in zip(first, plan.domains)]
        return list(_with_keys([first, turned, *others, *_of_constants(attack, plan)]))
    if plan.kind == "points":
        return list(_with_keys(_of_one_length(_vectors(attack, plan), plan)))
    if plan.kind in ("low", "complex"):
        return list(_with_keys(_of_one_length((_columns(part, plan) for part in _moderate(plan)), plan)))
    return list(_with_keys(_of_shapes(plan)))


def _of_one_length(vectors: Iterable[list[np.ndarray]], plan: DrawingPlan) -> Iterator[list[np.ndarray]]:
    """The vectors, cut to one length if the plan has few shapes; the last part is repeated to that length."""
    for xs in vectors:
        if not plan.few or not xs:
            yield xs
            continue
        for start in range(0, xs[0].size, ORDINARY):
            yield [np.resize(x[start:start + ORDINARY], ORDINARY) for x in xs]


def _with_keys(argument_lists: Iterable[Sequence[np.ndarray]]) -> Iterator[Draft]:
    return (Draft(tuple(xs), 7 * k + 1, 11 * k + 1) for k, xs in enumerate(argument_lists) if xs)


def _columns(points: Sequence[Sequence[Any]], plan: DrawingPlan) -> list[np.ndarray]:
    return [plan.typed(np.array(column), i) for i, column in enumerate(zip(*points))]


def inner_reversed(x: Any) -> Any:
    """The numbers with all but the first and the last in the reverse order.

    What an op keeps under the shape, an end, the sum or the largest of its arguments is then found, and is that of others.

    >>> inner_reversed([1, 2, 3, 4])
    [1, 3, 2, 4]
    """
    order = [0, *range(len(x) - 2, 0, -1), len(x) - 1][:len(x)]
    return [x[k] for k in order] if isinstance(x, list) else x[order]


def _ordinary(plan: DrawingPlan, count: int) -> list[Point]:
    """Ordinary points: simple numbers and numbers with many digits, different for different arguments if possible."""
    columns = []
    for i in range(len(plan.domains)):
        entries = plan.table(i)
        simple = list(dict.fromkeys(entries[0, :13]))
        simple = simple[i % len(simple):] + simple[:i % len(simple)]
        many = [entries[(5 * k + 11 * i + 3) % PAGES, PREFIX + (3 * k + 5 * i) % 13] for k in range(count)]
        columns.append([simple[k // 2 % len(simple)] if k % 2 else many[k] for k in range(count)])
    return [tuple(map(float, point)) for point in zip(*columns)]


def _vectors(attack: ClaimedOp, plan: DrawingPlan) -> Iterator[list[np.ndarray]]:
    """Ordinary points, the edges of each argument, ties, and combinations of edges; those that may overflow are in vectors of their own."""
    base = _ordinary(plan, ORDINARY)
    yield _columns(base, plan)
    yield _columns(inner_reversed(base), plan)
    places = _places(attack, plan)
    count = len(plan.domains)
    own = [_edges(plan, i, [x for k, x in places if k == i])[:MAX_EDGES[min(count, 3) - 1]] for i in range(count)]
    single = [(*base[k % ORDINARY][:i], x, *base[k % ORDINARY][i + 1:]) for i in range(count) for k, x in enumerate(own[i])]
    tied = [(x,) * count for x in dict.fromkeys([*(p[0] for p in base), *own[0]]) if all(x in d for d in plan.domains)][:TIED] if count > 1 else []
    for points in (single, tied, _combined(own) if count > 1 else [], _beyond(plan, base), _condition_points(attack, plan, base)):
        tame = [p for p in points if all(x == 0 or MODERATE_SIZES[0] <= abs(x) <= MODERATE_SIZES[1] for x in p)]
        for part in (tame, [p for p in points if p not in tame]):
            if part:
                yield _columns(part, plan)


def _edges(plan: DrawingPlan, i: int, further: Sequence[float]) -> list[float]:
    """The edges of an argument: those of the formula, zeros, then the numbers that are hardest to read, such as the neighbours of an end.

    Of a domain with many holes only the two that are nearest to 0 count.
    """
    smallest, largest = SIZES["points"]
    domain = plan.domains[i]
    _, least, most = restricted_domain(domain, max(smallest, plan.smallest), min(largest, LARGEST[plan.dtype]))
    found = edge_numbers(domain, plan.dtype, least)
    if len(found) > MAX_EDGES[0]:
        ends = (*domain.excluded, *(e for part in domain.intervals for e in (part.low, part.high) if math.isfinite(e)))
        nearest = tuple(sorted(ends, key=abs)[:2])
        close = edge_numbers(Domain(domain.name, domain.intervals[:2], nearest, domain.integer), plan.dtype, least)
        found = tuple(x for x in close if x in domain)
    kept = (x for x in further if x == 0 or abs(x) >= plan.smallest)
    order = (*kept, *(x for x in found if x == 0), *reversed(found))
    return list({(x, math.copysign(1.0, x)): x for x in order if x in domain and abs(x) <= most}.values())


def _combined(own: Sequence[Sequence[float]]) -> list[Point]:
    total = math.prod(len(numbers) for numbers in own)
    chosen = range(total) if total <= MAX_COMBINATIONS else sorted({int(math.fmod((k + 1) * GOLDEN, 1.0) * total) for k in range(MAX_COMBINATIONS)})
    out = []
    for code in chosen:
        point = []
        for numbers in own:
            code, place = divmod(code, len(numbers))
            point.append(numbers[place])
        out.append(tuple(point))
    return out


def _beyond(plan: DrawingPlan, base: Sequence[Point]) -> list[Point]:
    """Pairs of arguments whose powers, products and quotients overflow, though the derivatives may not: x**2/x is infinite at 1e200."""
    great = min(SIZES["points"][1], LARGEST[plan.dtype]) ** (2 / 3)
    pairs = [p for p in itertools.product((great, 1 / great, 2.0, -2.0), repeat=2) if max(map(abs, p)) != 2.0 or 1 / great in p]
    out = []
    for i, j in itertools.combinations(range(len(plan.domains)), 2):
        for k, (x, y) in enumerate(pairs):
            point = list(base[k])
            point[i], point[j] = x, y
            out.append(tuple(point))
    return [p for p in out if all(x in d for x, d in zip(p, plan.domains))][:MOST_BEYOND]


def _places(attack: ClaimedOp, plan: DrawingPlan) -> list[tuple[int, float]]:
    """The special points of the op, the kinks and poles of its formula, and their neighbours: pairs (argument, number)."""
    out: list[tuple[int, float]] = []
    for point, _ in special_points(attack):
        for i, x in enumerate(point[:len(plan.domains)]):
            if isinstance(x, (int, float)):
                out += [(i, y) for y in (float(x), math.nextafter(x, math.inf), math.nextafter(x, -math.inf), x + 2.0**-10, x - 2.0**-10)]
    formula = attack.claims.formula
    if formula is None or is_function(formula):
        return out
    base = np.array([simple_numbers(d)[0] or simple_numbers(d)[-1] for d in plan.domains])
    formula = formula.expr if isinstance(formula, sympy.Lambda) else formula
    try:
        expressions = expressions_of(formula, {name: () for name in attack.names}, {})[0]
        return out + boundary_numbers(expressions[:4], attack.names, base, NUMBERS_PER_PLACE)
    except (ValueError, TypeError):  # the formula does not fit the op; the checks report it
        return out


def _condition_points(attack: ClaimedOp, plan: DrawingPlan, base: Sequence[Point]) -> list[Point]:
    """Points at which conditions of rules and formulas hold or change, and the constants of the source with numbers around them."""
    op, count = attack.subject.op, len(plan.domains)
    out = [tuple(at.get(i, x) for i, x in enumerate(base[1])) for at in rule_boundary_points(op, attack.claims.parameters)] if op is not None else []
    numbers = numbers_around(_constants(attack), MAX_CONSTANTS)
    for i in range(count):
        out += [(*base[k % 4][:i], x, *base[k % 4][i + 1:]) for k, x in enumerate(numbers)]
    largest = min(SIZES["points"][1], LARGEST[plan.dtype])
    return [p for p in dict.fromkeys(out) if all(x in d and (x == 0 or plan.smallest <= abs(x) <= largest) for x, d in zip(p, plan.domains))]


def _constants(attack: ClaimedOp) -> list[float]:
    return constants_of_code(attack.subject.function if attack.subject.op is None else attack.subject.op)


def _moderate(plan: DrawingPlan) -> Iterator[list[tuple[Any, ...]]]:
    """Points of a moderate size: ordinary, tied, and for complex numbers on both axes and in conjugate pairs."""
    base = _ordinary(plan, ORDINARY // 2)
    tied = [(p[0],) * len(p) for p in base if all(p[0] in d for d in plan.domains)] if len(plan.domains) > 1 else []
    if plan.kind == "low":
        yield base
        if tied:
            yield tied
        return
    parts = IMAGINARY[:-1]
    plane = [tuple(complex(x or 0.25, parts[(k + 3 * i) % len(parts)]) if x or 0.25 in d else complex(x, 0.25)
                   for i, (x, d) in enumerate(zip(p, plan.domains))) for k, p in enumerate(base)]
    yield plane[:5] + [tuple(z.conjugate() for z in p) for p in plane[:5]]
    yield [tuple(map(complex, p)) for p in base]
    if all(0.0 in d for d in plan.domains):
        yield [tuple(complex(0.0, s * y / (i + 1)) for i in range(len(plan.domains))) for y in (0.5, 0.25, 0.875) for s in (1.0, -1.0)]
    if tied:
        yield [(p[0],) * len(p) for p in plane if all(p[0].real in d for d in plan.domains)] or tied


def _of_shapes(plan: DrawingPlan) -> Iterator[list[np.ndarray]]:
    count = len(plan.domains)
    layouts: list[tuple[Any, ...]] = [((),) * count] * 4
    if plan.kind == "broadcast":
        layouts = [tuple(itertools.islice(itertools.cycle(shapes), count)) for shapes in BROADCAST]
    elif plan.kind == "empty":
        layouts = [(shape,) * count for shape in (EMPTY[::2] if plan.few else EMPTY)]
        if count > 1:
            layouts += [((0,), (1,), ()) + ((0,),) * (count - 3), ((), (2, 0), (0,)) + ((),) * (count - 3)]
    base = _ordinary(plan, 8)
    for k, shapes in enumerate(layouts):
        yield [plan.typed(np.resize([base[(k + j) % len(base)][i] for j in range(7)], shape), i) for i, shape in enumerate(shapes[:count])]


def _of_arrays(plan: DrawingPlan) -> Iterator[list[np.ndarray]]:
    assert plan.shapes is not None
    complexes = plan.kind == "complex"
    for turn, how in enumerate(("", *ARRANGEMENTS, "mixed")):
        xs = []
        for i, (d, shape) in enumerate(zip(plan.domains, plan.shapes)):
            entries = plan.table(i)
            k = np.arange(math.prod(shape)) + 31 * turn + 17 * i
            columns = (5 * k % PREFIX) if how == "mixed" else PREFIX + (7 * k) % 13
            x = arrange(entries[(5 * k) % PAGES, columns].reshape(shape), how, d)
            if complexes:
                x = off_branch_cuts(x, np.resize(IMAGINARY if how in ("", "mixed") else [0.0], shape))
            xs.append(plan.typed(x, i))
        yield xs


def _of_constants(attack: ClaimedOp, plan: DrawingPlan) -> Iterator[list[np.ndarray]]:
    assert plan.shapes is not None
    named = [c for c in combined_numbers(_constants(attack))[:MAX_CONSTANTS] if MODERATE_SIZES[0] <= abs(c) <= MODERATE_SIZES[1]]
    columns = [[c for c in named if c in d] for d in plan.domains]
    arrays = next(_of_arrays(plan))
    for turn in range(2 if any(columns) and plan.kind == "points" else 0):
        xs = [np.ravel(x).copy() for x in arrays]
        for x, column in zip(xs, columns):
            if column and x.dtype.kind == "f":
                x[turn::2] = np.resize(np.roll(column, -turn * (x.size // 2)), x[turn::2].size)
        yield [x.reshape(shape) for x, shape in zip(xs, plan.shapes)]


def _special(attack: ClaimedOp, plan: DrawingPlan) -> list[Draft]:
    """One draft for each special point: the numbers, or arrays filled with them. Raises ValueError for a point with another count of numbers."""
    out = []
    for k, (point, _) in enumerate(special_points(attack)):
        shapes = plan.shapes or ((),) * len(plan.domains)
        if len(point) != len(shapes):
            raise ValueError(f"{attack.name}: the special point {point} has {len(point)} numbers, the op has {len(shapes)} arguments")
        xs = [np.full(s, x, np.float64) if np.ndim(x) == 0 else np.asarray(x) for s, x in zip(shapes, point)]
        out.append(Draft(tuple(plan.typed(x, i) for i, x in enumerate(xs)), k, k))
    return out
