"""The examples an op is attacked with: arguments inside its domains, with a cotangent and tangents, drawn by hypothesis or special.

Hypothesis draws drafts: arguments and two keys. A draft depends on domains and shapes alone, so that ops share them; what an op adds
is the shape of its value. One byte stands for an element (see `symgrad.testing.strategies.numbers_table`).
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symgrad.domains import REAL, UNIT_OPEN, Domain
from symgrad.testing.failure import NotApplicable
from symgrad.testing.strategies.arrays import ARRANGEMENTS, CODED, KEYS, arranged, code_size, coded
from symgrad.testing.strategies.needed import hypothesis_needed
from symgrad.testing.strategies.numbers_table import table
from symgrad.testing.strategies.tangents import readable

if TYPE_CHECKING:
    from symgrad.testing.attack import Attack

__all__ = ["KINDS", "Example", "drawn", "edge_examples", "outside", "quiet", "special_points", "strategy_of"]

KINDS = ("points", "broadcast", "scalars", "empty", "low", "complex", "special")
SHAPES = ((), (1,), (4,), (2, 3))  # of examples of an elementwise op
COMMON = ((2, 3), (3,), (2, 1, 2), (0,), (2, 0))  # what shapes broadcast to
EMPTY = ((0,), (0, 2), (3, 0))
MOST = 6  # elements of an argument of an elementwise op
# The smallest and the largest size of a number: of all kinds for an elementwise op; such that sums and products of many have digits left; such
# that float16 holds it, with bfloat16's digits; such that the parts of a complex function do not cancel.
SIZES = {"points": (0.0, 1e300), "arrays": (1e-6, 300.0), "low": (2.0**-6, 64.0), "complex": (1e-3, 10.0)}
TIES = ("", "", "", "equal", "some", "next")
AXES = ("", "", "real", "imaginary", "conjugate")
Shape = tuple[int, ...]


class Example(NamedTuple):
    """Arguments, a cotangent of the value's shape, and three sets of tangents (None for an argument that is not active)."""

    xs: tuple[np.ndarray, ...]
    cotangent: np.ndarray
    tangents: tuple[tuple[np.ndarray | None, ...], ...]


class Draft(NamedTuple):
    """Arguments, and keys of the cotangent and of the tangents."""

    xs: tuple[np.ndarray, ...]
    cotangent: int
    tangents: int


class Plan(NamedTuple):
    """What drafts of a kind depend on; `shapes` is None for an elementwise op."""

    kind: str
    domains: tuple[Domain, ...]
    shapes: tuple[Shape, ...] | None
    smallest: float

    def table(self, i: int) -> np.ndarray:
        """The numbers for one argument. Raises NotApplicable where the type has none in the domain."""
        name = self.kind if self.kind in ("low", "complex") else "points" if self.shapes is None else "arrays"
        smallest, largest = SIZES[name]
        try:
            return table(self.domains[i], "bfloat16" if name == "low" else "float64", max(smallest, self.smallest), largest)
        except ValueError as error:
            raise NotApplicable(str(error)) from error


def plan_of(attack: Attack, kind: str) -> Plan:
    """The plan of a kind of examples for an op. Raises ValueError for another kind, NotApplicable where the op cannot take such examples."""
    if kind not in KINDS:
        raise ValueError(f"symgrad.testing: there are no examples of the kind {kind!r}; those are {', '.join(KINDS)}")
    if not attack.elementwise and kind in ("broadcast", "scalars", "empty"):
        raise NotApplicable("it takes arrays of its own shapes")
    count = len(attack.names) if attack.elementwise else len(attack.shapes)
    domains = attack.domains or [REAL]
    smallest = 0.0 if getattr(attack.subject, "subnormals", True) else float(np.finfo(np.float64).smallest_normal)
    return Plan(kind, tuple(domains[min(i, len(domains) - 1)] for i in range(count)),
                None if attack.elementwise else tuple(tuple(s) for s in attack.shapes), smallest)


def finished(attack: Attack, draft: Draft) -> Example:
    """An example of a draft: with a cotangent of the value's shape, and tangents."""
    xs = tuple(x.copy() for x in draft.xs)
    dtype = np.complex128 if any(x.dtype.kind == "c" for x in xs) else np.float64
    sets = tuple(tuple(readable(x.shape, draft.tangents * (16 * k + i + 1), dtype) if x.dtype.kind in "fcV" else None for i, x in enumerate(xs))
                 for k in range(3))
    return Example(xs, readable(_value_shape(attack, xs), draft.cotangent, dtype), sets)


def _value_shape(attack: Attack, xs: Sequence[np.ndarray]) -> Shape:
    """The shape of the value; () of an op that raises, which the checks will say."""
    if attack.elementwise:
        return np.broadcast_shapes(*(x.shape for x in xs))
    from symgrad.testing.checks.base import silence

    try:
        with silence():
            return tuple(attack.subject.value([x.copy() for x in xs]).shape)
    except Exception:  # whatever a user's function raises
        return ()


def typed(x: np.ndarray, domain: Domain) -> np.ndarray:
    """Truth values as such."""
    return x.astype(bool) if domain.name == "BOOLEAN" else x


def strategy_of(attack: Attack, kind: str) -> Any:
    """The strategy for examples of a kind.

    The kinds are "points" (general), "broadcast" (arguments of shapes that broadcast), "scalars" (shape ()), "empty" (without elements),
    "low" (numbers that every floating-point type has), "complex" (complex numbers, on the axes and off, and in conjugate pairs), "special" (the
    points where an edge is claimed). Raises ValueError for another kind, NotApplicable where the op cannot take such examples.
    """
    if kind in ("special", "empty"):
        found = edge_examples(attack, kind)
        if not found:
            raise NotApplicable("it has no special points")
        return hypothesis_needed().strategies.sampled_from(found)
    return _drafts(plan_of(attack, kind)).map(lambda draft: finished(attack, draft))


def _drafts(plan: Plan) -> Any:
    """The strategy for drafts."""
    st = hypothesis_needed().strategies
    keys = st.integers(0, 255)
    counts = [MOST if plan.shapes is None else math.prod(plan.shapes[i]) for i in range(len(plan.domains))]
    codes = st.tuples(*(st.binary(min_size=code_size(n), max_size=code_size(n)) for n in counts))
    filling = st.integers(0, KEYS - 1) if max(counts, default=0) > CODED else st.just(0)
    if plan.kind == "complex":
        codes = st.tuples(codes, codes, st.sampled_from(AXES)).map(lambda c: c)
        numbers: Callable[..., Sequence[np.ndarray]] = _complex_numbers
    else:
        numbers = _numbers
    layouts = _layouts(plan)

    def draft(layout: Any, code: Any, key: int, how: str, cotangent: int, tangents: int) -> Draft:
        shapes = layouts(layout)
        flat = numbers(plan, [math.prod(s) for s in shapes], code, key)
        xs = [x.reshape(s) for x, s in zip(flat, shapes)]
        xs = _tied(xs, how, plan.domains) if plan.shapes is None else [arranged(x, how, d) for x, d in zip(xs, plan.domains)]
        return Draft(tuple(map(typed, xs, plan.domains)), cotangent, tangents)

    count = len(plan.domains)
    chosen = st.sampled_from(SHAPES) if plan.kind in ("points", "low", "complex") and plan.shapes is None else st.just(())
    if plan.kind == "broadcast":
        chosen = st.tuples(st.sampled_from(COMMON), st.tuples(*[st.integers(0, 15)] * count))
    ways = st.just("")
    if plan.shapes is not None:
        ways = st.sampled_from(ARRANGEMENTS[:1] * 4 + ARRANGEMENTS[1:])
    elif count > 1 and plan.kind != "broadcast":
        ways = st.sampled_from(TIES)
    return st.builds(draft, chosen, codes, filling, ways, keys, keys)


def _layouts(plan: Plan) -> Callable[[Any], Sequence[Shape]]:
    """From what is drawn for shapes to the shapes."""
    if plan.shapes is not None:
        return lambda _: plan.shapes  # type: ignore[return-value]
    if plan.kind == "broadcast":
        return lambda layout: [_part(layout[0], k) for k in layout[1]]
    return lambda shape: [shape] * len(plan.domains)


def _part(common: Shape, k: int) -> Shape:
    """One of the shapes that broadcast to a common one: some first dimensions are missing, some sides are 1."""
    options = [tuple(1 if flat else side for flat, side in zip(flags, common[start:]))
               for start in range(len(common) + 1) for flags in itertools.product((False, True), repeat=len(common) - start)]
    return options[k % len(options)]


def _numbers(plan: Plan, counts: Sequence[int], code: Sequence[bytes], key: int) -> list[np.ndarray]:
    return [coded(plan.table(i), c, n, key) if plan.shapes is not None else coded(plan.table(i), c, MOST)[:n]
            for i, (n, c) in enumerate(zip(counts, code))]


def _complex_numbers(plan: Plan, counts: Sequence[int], code: Any, key: int) -> list[np.ndarray]:
    """Real parts in the domain, any imaginary parts; on the imaginary axis only near 0, and beside it farther off, where there may be cuts."""
    real, imaginary, axis = _numbers(plan, counts, code[0], key), [], code[2]
    for i, (n, c) in enumerate(zip(counts, code[1])):
        entries = table(UNIT_OPEN if axis == "imaginary" else REAL, "float64", *SIZES["complex"])
        part = coded(entries, c, n, key) if plan.shapes is not None else coded(entries, c, MOST)[:n]
        if axis == "imaginary" and 0.0 in plan.domains[i]:
            real[i] = np.zeros(n)
        elif axis == "real":
            part = np.zeros(n)
        elif axis == "conjugate" and n > 1:
            half = n // 2
            real[i] = np.concatenate([real[i][:n - half], real[i][:half]])
            part = np.concatenate([part[:n - half], -part[:half]])
        imaginary.append(np.where((real[i] == 0) & (np.abs(part) >= 1), part / 16, part))
    return [a + 1j * b for a, b in zip(real, imaginary)]


def _tied(xs: list[np.ndarray], how: str, domains: Sequence[Domain]) -> list[np.ndarray]:
    """Later arguments equal to the first, everywhere or in some places, or next to it; where their domains allow that."""
    if not how or len({x.shape for x in xs}) != 1:
        return xs
    first = xs[0].ravel()
    other = np.nextafter(first, np.inf) if how == "next" and first.dtype.kind == "f" else first
    out = [xs[0]]
    for x, d in zip(xs[1:], domains[1:]):
        wanted = np.array([(how != "some" or k % 2 == 0) and complex(v).real in d for k, v in enumerate(other)], bool)
        out.append(np.where(wanted, other, x.ravel()).reshape(x.shape))
    return out


def special_points(attack: Attack) -> list[tuple[tuple[Any, ...], Any]]:
    """The special points that are claimed, or that the op itself names: pairs (one number per argument, the gradient agreed on or None)."""
    op = getattr(attack.subject, "op", None)
    out: list[tuple[tuple[Any, ...], Any]] = []
    for point in (*attack.claims.special, *(op.special if op is not None else ())):
        gradient = None
        if isinstance(point, (tuple, list)) and len(point) == 2 and (isinstance(point[0], (tuple, list)) or len(attack.names) == 1):
            point, gradient = point
        out.append((tuple(point) if isinstance(point, (tuple, list)) else (point,), gradient))
    return out


def edge_examples(attack: Attack, kind: str) -> Sequence[Example]:
    """The examples of a kind that are always there. Raises what `strategy_of` raises."""
    from symgrad.testing.edges import edge_drafts

    return [finished(attack, draft) for draft in edge_drafts(attack, plan_of(attack, kind))]


_SHARED: dict[tuple[Plan, int, int], list[Draft]] = {}
ROOM = 64


def drawn(attack: Attack, kind: str) -> list[Example]:
    """As many random examples as the profile says, the same ones for the same seed; none of a kind that has only special ones."""
    if kind in ("special", "empty"):
        return []
    plan, count = plan_of(attack, kind), attack.profile.examples
    key = plan, attack.seed, count
    if key not in _SHARED:
        found = _search(plan, attack.seed, count)
        while len(_SHARED) >= ROOM:
            _SHARED.pop(next(iter(_SHARED)))
        _SHARED[key] = found
    return [finished(attack, draft) for draft in _SHARED[key]]


def _search(plan: Plan, seed: int, count: int) -> list[Draft]:
    hypothesis = hypothesis_needed()
    out: list[Draft] = []
    strategy = _drafts(plan)

    def collect() -> None:
        @hypothesis.seed(seed)
        @quiet(count, [hypothesis.Phase.generate])
        @hypothesis.given(strategy)
        def draw(draft: Draft) -> None:
            out.append(draft)

        draw()

    outside(collect)
    return out[:count]


def quiet(examples: int, phases: Sequence[Any]) -> Any:
    """Settings of hypothesis for a search of ours: nothing printed, nothing kept, no clock."""
    hypothesis = hypothesis_needed()
    return hypothesis.settings(max_examples=examples, database=None, deadline=None, phases=phases, derandomize=False, report_multiple_bugs=False,
                               suppress_health_check=list(hypothesis.HealthCheck), print_blob=True, verbosity=hypothesis.Verbosity.quiet)


def outside(function: Any) -> None:
    """Run a search, in another thread inside a test of the user's: hypothesis refuses one test inside another in the same thread."""
    hypothesis = hypothesis_needed()
    if not hypothesis.currently_in_test_context():
        function()
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
