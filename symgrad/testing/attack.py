"""`Attack`: a claimed op with its reference and its examples, for one profile and one seed; `run_at_example` runs one check at one example.

An example has arguments inside the domains, a cotangent and tangents, fixed or random. It is made of a draft: arguments and two keys. A draft depends
on domains and shapes alone, so that ops share them; the op adds the shape of its value.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.graph.domains import BOOLEAN, COMPLEX, REAL, UNIT_OPEN, Domain
from symgrad.reference.elements import ElementReference
from symgrad.reference.tensors import ArrayReference
from symgrad.sampling.numbers import PAGE, PAGES, table
from symgrad.system.errorstate import quiet
from symgrad.testing.claimed import ORDINARY, ClaimedOp, cast
from symgrad.testing.claims import Claims, Profile, silence
from symgrad.testing.examples import KINDS, SIZES, Draft, DrawingPlan, Example, Shape, edge_drafts, off_branch_cuts
from symgrad.testing.failure import Result, Wrong
from symgrad.testing.references import Rounding, precise_reference
from symgrad.testing.strategies.arrays import ARRANGEMENTS, arrange, readable

SHAPES = ((), (1,), (4,), (2, 3))  # of examples of an elementwise op
COMMON = ((2, 3), (3,), (2, 1, 2), (0,), (2, 0))  # shapes that arguments broadcast to
FEW_SHAPES = {"points": ((), (2, 3)), "low": ((ORDINARY,),)}  # the shapes besides vectors, if every shape is compiled for
# The smallest size where subnormal numbers are flushed to zero: products with numbers near 1 are still normal.
FLUSHED = {"float64": 2.0**-1000, "float32": 2.0**-100, "float16": 2.0**-8}
TIES = ("", "", "", "equal", "some", "next")
WAYS = ARRANGEMENTS[:1] * 4 + ARRANGEMENTS[1:]
AXES = ("", "", "real", "imaginary", "conjugate")


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


def _draw(plan: DrawingPlan, rng: np.random.Generator) -> Draft:
    """A random draft: shapes, numbers, their arrangement or ties between the arguments, and the keys."""
    shapes = plan.shapes
    if shapes is None and plan.kind == "broadcast":
        common = _one_of(rng, COMMON)
        parts = [tuple(1 if flat else side for flat, side in zip(flags, common[start:]))  # without leading axes, with sides 1
                 for start in range(len(common) + 1) for flags in itertools.product((False, True), repeat=len(common) - start)]
        shapes = tuple(_one_of(rng, parts) for _ in plan.domains)
    elif shapes is None:
        known = FEW_SHAPES.get(plan.kind, SHAPES) if plan.few else SHAPES
        shapes = (() if plan.kind == "scalars" else _one_of(rng, known),) * len(plan.domains)
    xs = [_numbers(rng, plan.table(i), shape) for i, shape in enumerate(shapes)]
    if plan.kind == "complex":
        axis = _one_of(rng, AXES)
        xs = [x if d == BOOLEAN else _complex(rng, x, d, axis) for x, d in zip(xs, plan.domains)]
    if plan.shapes is not None:
        way = _one_of(rng, WAYS)
        xs = [arrange(x, way, d) for x, d in zip(xs, plan.domains)]
    else:
        how = _one_of(rng, TIES)
        xs = _with_ties(xs, "equal" if how == "next" and plan.kind == "low" else how, plan.domains)
    return Draft(tuple(plan.typed(x, i) for i, x in enumerate(xs)), *rng.integers(0, 256, 2).tolist())


def _one_of(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _numbers(rng: np.random.Generator, entries: np.ndarray, shape: Shape) -> np.ndarray:
    return np.asarray(entries[rng.integers(PAGES)][rng.integers(0, PAGE, shape)])


def _complex(rng: np.random.Generator, x: np.ndarray, domain: Domain, axis: str) -> np.ndarray:
    """Numbers with any imaginary parts, on one of the axes, or in conjugate pairs."""
    upright = axis == "imaginary" and 0.0 in domain
    part = _numbers(rng, table(UNIT_OPEN if upright else REAL, "float64", *SIZES["complex"]), x.shape) * (axis != "real")
    x = np.zeros(x.shape) if upright else x
    if axis == "conjugate":
        half = x.size // 2
        x, part = (np.concatenate([v.ravel()[:x.size - half], sign * v.ravel()[:half]]).reshape(x.shape) for v, sign in ((x, 1), (part, -1)))
    return off_branch_cuts(x, part)


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
    """The fixed examples of a kind: what `plan_of` raises is raised.

    The kinds are "points" (general), "broadcast" (arguments of shapes that broadcast), "scalars" (shape ()), "empty" (without elements), "low"
    (numbers in every floating-point type), "complex" (on the axes and off, and in conjugate pairs), "special" (the special points).
    """
    return [complete_example(attack, draft) for draft in edge_drafts(attack, plan_of(attack, kind))]


def random_examples(attack: ClaimedOp, kind: str) -> list[Example]:
    """As many random examples as the profile sets, the same for the same seed; none of a kind with only fixed examples."""
    if kind in ("special", "empty"):
        return []
    return [complete_example(attack, draft) for draft in _search(plan_of(attack, kind), attack.seed, attack.profile.examples)]


@functools.lru_cache(maxsize=64)
def _search(plan: DrawingPlan, seed: int, count: int) -> list[Draft]:
    """Random drafts, shared by ops with equal plans."""
    rng = np.random.default_rng(seed)
    return [_draw(plan, rng) for _ in range(count)]


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
