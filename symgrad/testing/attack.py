"""`Attack`: a claimed op with its reference and its examples, for one profile and one seed; `run_at_example` runs one check at one example.

An example has arguments inside the domains, a cotangent and tangents, fixed or drawn by hypothesis. Hypothesis draws bytes, which encode a draft:
arguments and two keys. A draft depends on domains and shapes alone, so that ops share them; the op adds the shape of its value.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.graph.domains import BOOLEAN, COMPLEX, REAL, UNIT_OPEN, Domain
from symgrad.reference.elements import ElementReference
from symgrad.reference.tensors import ArrayReference
from symgrad.sampling.numbers import table
from symgrad.system.errorstate import quiet
from symgrad.testing.claimed import ORDINARY, ClaimedOp, cast
from symgrad.testing.claims import Claims, Profile, in_a_thread, silence
from symgrad.testing.examples import KINDS, SIZES, Draft, DrawingPlan, Example, Shape, edge_drafts, off_branch_cuts
from symgrad.testing.failure import Result, Wrong
from symgrad.testing.references import Rounding, precise_reference
from symgrad.testing.strategies.arrays import ARRANGEMENTS, arrange, code_size, readable, require_hypothesis, select_numbers

SHAPES = ((), (1,), (4,), (2, 3))  # of examples of an elementwise op
COMMON = ((2, 3), (3,), (2, 1, 2), (0,), (2, 0))  # shapes that arguments broadcast to
FEW_SHAPES = {"points": ((), (2, 3)), "low": ((ORDINARY,),)}  # the shapes besides vectors, if every shape is compiled for
# The smallest size where subnormal numbers are flushed to zero: products with numbers near 1 are still normal.
FLUSHED = {"float64": 2.0**-1000, "float32": 2.0**-100, "float16": 2.0**-8}
TIES = ("", "", "", "equal", "some", "next")
WAYS = ARRANGEMENTS[:1] * 4 + ARRANGEMENTS[1:]
AXES = ("", "", "real", "imaginary", "conjugate")
BLOCK = 2048  # bytes that hypothesis draws at a time


def plan_of(attack: ClaimedOp, kind: str) -> DrawingPlan:
    """The plan of a kind of examples for an op. Raises ValueError for another kind, NotApplicable where the op cannot take such examples."""
    if kind not in KINDS:
        raise ValueError(f"symgrad.testing: there are no examples of the kind {kind!r}; those are {', '.join(KINDS)}")
    if not attack.elementwise and kind in ("broadcast", "scalars", "empty"):
        raise NotApplicable("it takes arrays of its own shapes")
    count = len(attack.names) if attack.elementwise else len(attack.shapes)
    domains = attack.domains or [REAL]
    if COMPLEX in domains:
        if kind == "low":
            raise NotApplicable("it takes complex numbers")
        kind = "complex" if kind == "points" else kind
    smallest = 0.0 if attack.subject.subnormals else FLUSHED[attack.dtype]
    return DrawingPlan(kind, tuple(domains[min(i, len(domains) - 1)] for i in range(count)),
                       None if attack.elementwise else tuple(tuple(s) for s in attack.shapes), smallest, attack.dtype,
                       attack.subject.compiles)


def complete_example(attack: ClaimedOp, draft: Draft) -> Example:
    """An example of a draft: with a cotangent of the value's shape, and tangents."""
    xs = tuple(cast(x.copy(), attack.dtype) for x in draft.xs)
    sets = tuple(tuple(cast(readable(x.shape, draft.tangents * (16 * k + i + 3), _kind_of(x)), attack.dtype) if is_active(x) else None
                       for i, x in enumerate(xs)) for k in range(3))
    shape, dtype = _value_like(attack, xs)
    return Example(xs, cast(readable(shape, draft.cotangent, dtype), attack.dtype), sets)


def _kind_of(x: np.ndarray) -> Any:
    return np.complex128 if x.dtype.kind == "c" else np.float64


def _value_like(attack: ClaimedOp, xs: Sequence[np.ndarray]) -> tuple[Shape, Any]:
    """Shape and dtype of the value, for the real parts if the op refuses complex numbers; () for an op that raises, which the checks report."""
    widest = np.result_type(*map(_kind_of, xs), np.float64)
    if attack.elementwise and COMPLEX not in attack.domains:
        return np.broadcast_shapes(*(x.shape for x in xs)), widest
    for given in (xs, [x.real for x in xs]):
        with silence(), contextlib.suppress(Exception):  # a user's function may raise anything
            value = attack.subject.value([x.copy() for x in given])
            return tuple(value.shape), _kind_of(value)
    return (), widest


def strategy_of(attack: ClaimedOp, kind: str) -> Any:
    """The strategy for examples of a kind.

    The kinds are "points" (general), "broadcast" (arguments of shapes that broadcast), "scalars" (shape ()), "empty" (without elements),
    "low" (numbers in every floating-point type), "complex" (complex numbers, on the axes and off, and in conjugate pairs), "special" (the
    special points). Raises ValueError for another kind, NotApplicable where the op cannot take such examples.
    """
    if kind in ("special", "empty"):
        found = edge_examples(attack, kind)
        if not found:
            raise NotApplicable("it has no special points")
        return require_hypothesis().strategies.sampled_from(found)
    plan = plan_of(attack, kind)
    size = plan.size
    return require_hypothesis().strategies.binary(min_size=size, max_size=size).map(lambda code: complete_example(attack, decode_draft(plan, code)))


def decode_draft(plan: DrawingPlan, code: bytes) -> Draft:
    """The draft that bytes encode: shapes, the arrangement of the arguments, their numbers, the keys. Zeros encode the simplest draft."""
    count = len(plan.domains)
    counts = plan.counts
    body = [code[start:start + code_size(n)] for n, start in zip(counts * 2, plan.starts)]
    filling = code[-3] * 256 + code[-4]
    shapes = plan.shapes or _shapes(plan, code[0], code[2:2 + count])
    xs = [_decode_numbers(plan.table(i), body[i], counts[i], shape, filling) for i, shape in enumerate(shapes)]
    way = code[1]
    if plan.kind == "complex":
        way //= len(AXES)
        xs = _complex(plan, xs, body[count:], AXES[code[1] % len(AXES)], filling)
    if plan.shapes is not None:
        xs = [arrange(x, WAYS[way % len(WAYS)], d) for x, d in zip(xs, plan.domains)]
    else:
        how = TIES[way % len(TIES)]
        xs = _with_ties(xs, "equal" if how == "next" and plan.kind == "low" else how, plan.domains)
    return Draft(tuple(plan.typed(x, i) for i, x in enumerate(xs)), code[-1], code[-2])


def _shapes(plan: DrawingPlan, common: int, parts: bytes) -> list[Shape]:
    """The shapes of the arguments of an elementwise op, decoded from bytes."""
    if plan.kind == "broadcast":
        return [_part(COMMON[common % len(COMMON)], k) for k in parts]
    shapes = FEW_SHAPES.get(plan.kind, SHAPES) if plan.few else SHAPES
    return [() if plan.kind == "scalars" else shapes[common % len(shapes)]] * len(parts)


def _part(common: Shape, k: int) -> Shape:
    """One of the shapes that broadcast to a common one: without some leading axes, with some sides 1."""
    options = [tuple(1 if flat else side for flat, side in zip(flags, common[start:]))
               for start in range(len(common) + 1) for flags in itertools.product((False, True), repeat=len(common) - start)]
    return options[k % len(options)]


def _decode_numbers(entries: np.ndarray, code: bytes, count: int, shape: Shape, filling: int) -> np.ndarray:
    """Numbers in a shape, from the last bytes: hypothesis moves what matters to the end. A large array repeats them."""
    found, size = select_numbers(entries, code, count, filling), math.prod(shape)
    return np.resize(found, shape) if size > count else found[count - size:].reshape(shape)


def _complex(plan: DrawingPlan, real: Sequence[np.ndarray], codes: Sequence[bytes], axis: str, filling: int) -> list[np.ndarray]:
    """Real parts in the domain and any imaginary parts: on both axes, in conjugate pairs, or anywhere. Booleans are unchanged."""
    out = []
    for x, code, n, d in zip(real, codes, plan.counts, plan.domains):
        upright = axis == "imaginary" and 0.0 in d
        part = _decode_numbers(table(UNIT_OPEN if upright else REAL, "float64", *SIZES["complex"]), code, n, x.shape, filling)
        x = np.zeros(x.shape) if upright else x
        if axis == "real":
            part = np.zeros(x.shape)
        elif axis == "conjugate":
            half = x.size // 2
            x, part = (np.concatenate([v.ravel()[:x.size - half], sign * v.ravel()[:half]]).reshape(x.shape) for v, sign in ((x, 1), (part, -1)))
        out.append(x if d == BOOLEAN else off_branch_cuts(x, part))
    return out


@quiet
def _with_ties(xs: list[np.ndarray], how: str, domains: Sequence[Domain]) -> list[np.ndarray]:
    """Later arguments equal to the first, everywhere or at some places, or next to it, as far as their domains allow."""
    if not how or len({x.shape for x in xs}) != 1:
        return xs
    first = xs[0].ravel()
    other = np.nextafter(first, np.inf) if how == "next" and first.dtype.kind == "f" else first
    out = [xs[0]]
    for x, d in zip(xs[1:], domains[1:]):
        wanted = np.array([(how != "some" or k % 2 == 0) and complex(v).real in d for k, v in enumerate(other)], bool)
        out.append(np.where(wanted, other, x.ravel()).reshape(x.shape))
    return out


def edge_examples(attack: ClaimedOp, kind: str) -> Sequence[Example]:
    """The fixed examples of a kind. Raises what `strategy_of` raises."""
    return [complete_example(attack, draft) for draft in edge_drafts(attack, plan_of(attack, kind))]


def random_examples(attack: ClaimedOp, kind: str) -> list[Example]:
    """As many random examples as the profile sets, the same for the same seed; none of a kind with only fixed examples."""
    if kind in ("special", "empty"):
        return []
    return [complete_example(attack, draft) for draft in _search(plan_of(attack, kind), attack.seed, attack.profile.examples)]


@functools.lru_cache(maxsize=64)
def _search(plan: DrawingPlan, seed: int, count: int) -> list[Draft]:
    """Drafts drawn by hypothesis, shared by ops with equal plans. Many are drawn at a time, which takes a tenth of the time."""
    hypothesis = require_hypothesis()
    size = plan.size
    block = max(1, min(count, BLOCK // size))
    codes: dict[bytes, None] = {}

    def collect() -> None:
        @hypothesis.seed(seed)
        @search_settings(1 + math.ceil(count / block), [hypothesis.Phase.generate])
        @hypothesis.given(hypothesis.strategies.binary(min_size=size * block, max_size=size * block))
        def draw(many: bytes) -> None:
            codes.update(dict.fromkeys(many[k:k + size] for k in range(0, len(many), size)))

        draw()

    outside_hypothesis(collect)
    return [decode_draft(plan, code) for code in list(codes)[:count]]


def search_settings(examples: int, phases: Sequence[Any]) -> Any:
    """The hypothesis settings of internal searches: nothing is printed or stored, and there is no deadline."""
    hypothesis = require_hypothesis()
    return hypothesis.settings(max_examples=examples, database=None, deadline=None, phases=phases, derandomize=False, report_multiple_bugs=False,
                               suppress_health_check=list(hypothesis.HealthCheck), print_blob=True, verbosity=hypothesis.Verbosity.quiet)


def outside_hypothesis(function: Any) -> None:
    """Run a search; inside a hypothesis test, run it in another thread, since hypothesis refuses nested tests in one thread."""
    hypothesis = require_hypothesis()
    if not hypothesis.currently_in_test_context():
        function()
        return
    in_a_thread(function)


class Attack(ClaimedOp):
    """A claimed op, the examples of its arguments, and the reference for its results.

    `truth` is the reference, None if the op has neither a formula nor a rule that can be evaluated with many digits; `compared` has
    what the running check compared, with the arguments, and `lost` the results at its last example that lost digits and are right otherwise.
    """

    def __init__(self, op: Any, claims: Claims | None = None, profile: str | Profile = "dev", seed: int = 0, shrink: bool = True, **options: Any):
        super().__init__(op, claims, profile, seed, shrink, **options)
        self._drawn: dict[str, list[Example]] = {}
        self.compared: list[tuple[str, Sequence[np.ndarray]]] = []
        self.lost: list[Wrong] = []

    @cached_property
    def truth(self) -> Any:
        """The reference for the results; None if there is none."""
        found = precise_reference(self)
        if found is None or self.of_complex:
            return None
        reader, said = found
        exact = f"{said}, evaluated with 160 digits or more"
        return (ElementReference if self.elementwise else ArrayReference)(reader, exact)

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding errors of the formula's own steps."""
        return Rounding(self)

    @cached_property
    def of_complex(self) -> str:
        """The reason why references for real numbers do not apply ("" if they apply): the op takes or returns complex numbers."""
        if COMPLEX in self.domains:
            return "it takes complex numbers"
        return "its values are complex" if any(e.cotangent.dtype.kind == "c" for e in self.examples("points")[:1]) else ""

    def examples(self, kind: str) -> list[Example]:
        """The examples of a kind: the fixed edge examples, then as many random ones as the profile sets."""
        if kind not in self._drawn:
            self._drawn[kind] = [*edge_examples(self, kind), *random_examples(self, kind)]
        return self._drawn[kind]


Body = Callable[[Attack, Example], None]
When = Callable[[Attack], str]


class Check(NamedTuple):
    """A check: its name, its body, the kind of its examples, and `when`, which returns why it does not apply to an op ("" where it applies).

    `most` limits the number of examples.
    """

    name: str
    body: Body
    draws: str
    when: When
    most: int | None
    function: Callable[..., Result]


def user_example(attack: Attack, inputs: Sequence[Any] | None, cotangent: Any, tangents: Any) -> list[Example] | None:
    """The example made of a user's inputs; missing cotangents and tangents are ones."""
    if inputs is None:
        return None
    xs = tuple(np.asarray(x) for x in inputs)
    try:
        with silence():
            shape = attack.subject.value(xs).shape
    except Exception:  # the check reports it
        shape = xs[0].shape if xs else ()
    floats = [x.dtype for x in xs if is_active(x)]
    g = np.ones(shape, np.result_type(*floats) if floats else float) if cotangent is None else np.asarray(cotangent)
    ones = tuple(np.ones_like(x) if is_active(x) else None for x in xs)
    sets = (ones,) * 3 if tangents is None else tuple(tuple(None if t is None else np.asarray(t) for t in s) for s in tangents)
    return [Example(xs, g, sets)]


def run_at_example(check: Check, attack: Attack, example: Example) -> Wrong | None:
    """The failure of a check at one example, None if it passes: what is wrong, or else the largest loss of digits.

    The example is copied: an op that writes to its arguments spoils no other check.
    """
    attack.lost.clear()
    try:
        with silence(), attack.subject.context():
            check.body(attack, example.copied())
    except Wrong as wrong:
        return wrong
    except (NotApplicable, KeyboardInterrupt):
        raise
    except Exception as error:
        raised = Wrong(f"raised {type(error).__name__}: {error}")
        raised.__cause__ = error
        return raised
    return max(attack.lost, key=lambda wrong: wrong.ulp or 0.0, default=None)
