"""The derivatives at one point in many digits, by the oracle (SymPy's derivatives) and by the library's rules in the precise carrier.

Of a computation without a formula they are central differences of its forward rules in many digits, without derivative rules. These have steps of
10^(-d/2 - 10) for d digits, relative to the smallest number or 1, and values of three times as many digits, and of those by which the sizes of the
numbers differ; so all but the last of the d digits are right. Where the differences to the right and to the left are not the same, the point is at a
kink.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import AGREED, DIFFERENT, DIGITS, MOST, OPEN, agreeing_digits, compare, rungs
from symgrad.carriers import precise
from symgrad.carriers.batched import Batched
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.carriers.spectra import NoExpression
from symgrad.errors import LinAlgError
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference import certify
from symgrad.reference.certify import SHOWN
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula, template
from symgrad.system.restoring import workdps


class ReplayedOracle:
    """A computation some of whose ops are functions of matrices that have values in many digits, but no formula.

    Raises NoFormula for any other op without a symbolic form.
    """

    def __init__(self, run: Run, fast: Callable[..., list[Any] | None]):
        self.run, self.fast = run, fast
        if any(leaf.value.dtype.kind != "f" for leaf in run.leaves):
            raise NoFormula("an input is complex and an op has no symbolic form; give the real and the imaginary parts as inputs")
        for node in upstream([run.root]):
            if isinstance(node, Leaf) or type(node) is DerivativeNode or node.value.dtype.kind in "biu":
                continue
            if type(node.value) is Batched:
                raise NoFormula("a part of the computation was batched by vmap; write the batch as an axis")
            try:
                template(node)
            except NoFormula as error:
                if not isinstance(error.__cause__, NoExpression):
                    raise

    def evaluate(self, digits: int) -> ReplayedValues:
        return ReplayedValues(self.run, digits, self.fast)


class ReplayedValues:
    """The value and its differences; `edge` is true at a kink. `fast(values, digits)` gives the value where it is computed by balls."""

    def __init__(self, run: Run, digits: int, fast: Callable[..., list[Any] | None]):
        self.run, self.digits, self.fast, self.edge = run, digits, fast, any(map(_is_special, upstream([run.root])))
        sizes = [abs(x) for leaf in run.leaves for x in np.ravel(leaf.value).tolist() if x] + [1.0]
        small, large = (int(abs(mpmath.log10(pick(sizes)))) + 1 for pick in (min, max))
        self.working = 3 * (digits + small + large) + 60
        self.step = mpmath.mpf(10) ** (-digits // 2 - 10 - small)
        self.known: dict[tuple[float, ...], Any] = {}
        self.largest = mpmath.mpf(1)

    @property
    def scale(self) -> Any:
        return self.largest

    def derivatives(self, order: int, full: int, direction: np.ndarray) -> list[Any]:
        """The value and the derivatives in the order of `slots`. Raises Undefined where a value does not exist."""
        units = [tuple(row) for row in np.eye(direction.size).tolist()]
        along = tuple(direction.tolist())
        out = []
        with precise.working_precision(self.working), workdps(mpmath.mp, self.working):
            for k, index, directional in slots(direction.size, order, full):
                out.append(self._difference([units[i] for i in index] + [along] * (k - 1 if directional else 0)))
            for line in [*units, along] if order else ():
                right, left = ((self._at([(sign, line)]) - self._at([])) / (sign * self.step) for sign in (1, -1))
                self.edge |= bool(abs(right - left) > mpmath.sqrt(self.step) * (1 + abs(right) + abs(left)))
        self.largest = max([self.largest, *map(abs, out)])
        return out

    def _difference(self, lines: list[tuple[float, ...]]) -> Any:
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(lines)):
            total += int(np.prod(signs, dtype=int)) * self._at(list(zip(signs, lines)))
        return total / (2 * self.step) ** len(lines)

    def _at(self, moves: list[tuple[int, tuple[float, ...]]]) -> Any:
        """The value at the point moved by a step, or its opposite, along each of the lines."""
        n = sum(leaf.value.size for leaf in self.run.leaves)
        shift = tuple(sum(sign * line[i] for sign, line in moves) for i in range(n))
        if shift not in self.known:
            self.known[shift] = self._value(shift)
        return self.known[shift]

    def _value(self, shift: tuple[float, ...]) -> Any:
        numbers = iter(shift)
        values = []
        for leaf in self.run.leaves:
            cells = [precise.context.mpf(x) + precise.context.mpf(next(numbers)) * self.step for x in np.ravel(leaf.value).tolist()]
            values.append(precise.Digits.fill(cells, tuple(leaf.value.shape)))
        found = self.fast(values, self.working)
        if found is not None:
            return found[0]
        try:
            y, _ = RecordingCarrier(precise, precise.lift_value).replayed(self.run.root, self.run.nodes, values)
        except (RuntimeError, ArithmeticError) as error:
            raise Undefined(str(error)) from None
        out = mpmath.mp.convert(y.value.item())
        if not mpmath.isfinite(out):
            raise Undefined("the value")
        return out


def _is_special(node: Any) -> bool:
    """Whether an argument of a function of numbers is at a special point, where its derivative may be a convention, as that of abs at 0."""
    op = getattr(node, "op", None)
    if op is None or op.kind != "elementwise" or not op.docs.special:
        return False
    xs = [a if p is None else p.value for a, p in zip(node.args or (), node.parents)]
    return any(len(point) == len(xs) and np.any(np.logical_and.reduce([np.equal(x, c) for x, c in zip(xs, point)])) for point in op.docs.special)


@dataclass(frozen=True)
class ComparedNumber:
    """One number of the comparison: its order, its indices among the inputs, whether it is directional, and the values by SymPy and by the rules."""

    order: int
    index: tuple[int, ...]
    directional: bool
    reference: Any
    rule: Any


FULL = 8  # the most inputs for which every second derivative is compared at every point


class OracleComparison:
    """The value and the derivatives up to an order at the point of a run.

    Derivatives up to the order `full` are taken entry by entry, higher ones along the `direction`; `full` defaults to 2 for up to eight
    inputs, otherwise to 1. Raises NoFormula if an op has no symbolic form, or a rule calls functions outside of xp. With `replay`, functions of
    matrices without a formula are compared with differences of their values in many digits; a point where their rules raise has no derivative.

    The numbers are balls wherever all functions have an enclosure, and `rigorous` is true where the comparison is certain. Else, and where balls do
    not decide, they have many digits in several precisions.
    """

    def __init__(self, run: Run, order: int, direction: np.ndarray, full: int | None = None, replay: bool = False):
        self.run, self.order, self.direction, self.replay = run, order, direction, replay
        self.count = direction.size
        self.full = full if full is not None else min(order, 2) if self.count <= FULL else 1
        self.evaluations: dict[int, Any] = {}
        self.known: dict[int, list[ComparedNumber]] = {}
        module = certify.enclosed()
        self.programs = module and module.programs_of(run, order, self.full)
        if not (self.programs and self.programs.found):
            self.oracle  # noqa: B018  raises NoFormula

    @functools.cached_property
    def oracle(self) -> Oracle | ReplayedOracle:
        try:
            return Oracle(self.run.root, self.run.nodes)
        except NoFormula:
            if not self.replay:
                raise
            return ReplayedOracle(self.run, lambda values, digits: self.balls(values).known(digits, "value"))

    def balls(self, values: Sequence[Any]) -> certify.Balls:
        """The numbers in ball arithmetic at values of the leaves, arrays of numbers."""
        def trace(inputs: list[Any], bits: int) -> Any:
            oracle = None if self.replayed else self.oracle
            return certify.enclosed().trace(self.run, oracle, rule_values, self.order, self.full, inputs, bits)

        return certify.Balls(self.programs, trace, [x for v in values for x in np.ravel(v).tolist()] + self.direction.tolist())

    @functools.cached_property
    def certified(self) -> certify.Certified | None:
        """The comparison of balls; None if they do not decide it."""
        if not self.programs or self.programs.refused or self.replayed:
            return None
        return self.balls([np.asarray(leaf.value, np.float64) for leaf in self.run.leaves]).compared()

    @property
    def rigorous(self) -> bool:
        try:
            return self.certified is not None
        except Undecided:
            return False

    def entries(self, digits: int = DIGITS) -> list[ComparedNumber]:
        """All numbers by both ways. Raises Undefined where a derivative does not exist: at a pole, or outside the domain."""
        if digits == DIGITS and self.certified is not None:
            return self._entries(self.certified.pairs)
        if digits not in self.known:
            references, rules = self.evaluation(digits).derivatives(self.order, self.full, self.direction), self.rules(digits)
            if rules[0] != rules[0]:  # of 1**inf, which SymPy writes as 1 before the exponent has a value
                raise Undefined("the value")
            self.known[digits] = self._entries(list(zip(references, rules, strict=True)))
        return self.known[digits]

    def _entries(self, pairs: Sequence[tuple[Any, Any]]) -> list[ComparedNumber]:
        return [ComparedNumber(*slot, *pair) for slot, pair in zip(slots(self.count, self.order, self.full), pairs, strict=True)]

    def evaluation(self, digits: int) -> Any:
        if digits not in self.evaluations:
            self.evaluations[digits] = self.oracle.evaluate(digits)
        return self.evaluations[digits]

    @property
    def kink(self) -> bool:
        return any(e.edge for e in self.evaluations.values()) or self.certified is not None and self.certified.kink

    def rules(self, digits: int, shift: Callable[[Any], Any] | None = None, order: int | None = None) -> list[Any]:
        """The numbers by the library's rules in the precise carrier, up to an order, at the point or at one moved by `shift`."""
        highest = self.order if order is None else order
        with precise.working_precision(digits):
            values = [precise.lift_value(leaf.value) for leaf in self.run.leaves]
            values = values if shift is None else [shift(v) for v in values]
        found = self.balls(values).known(digits, "rules") if self.replayed or self.certified is not None else None
        if found is not None:
            return found[:len(slots(self.count, highest, self.full))]
        try:
            with precise.working_precision(digits):
                return rule_values(RecordingCarrier(precise, precise.lift_value), self.run, values, highest, self.full, self.direction)
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise NoFormula(f"a rule cannot be evaluated with many digits: {error}; write it with the functions of xp alone") from error
        except (RuntimeError, ArithmeticError) as error:
            if isinstance(error, Undefined) or not (self.replayed or isinstance(error, LinAlgError)):
                raise
            raise Undefined(str(error)) from None

    @property
    def replayed(self) -> bool:
        return isinstance(self.oracle, ReplayedOracle) if not (self.programs and self.programs.found) else hasattr(self.programs.found[0], "value")


def rule_values(recorder: RecordingCarrier, run: Run, values: Sequence[Any], order: int, full: int, direction: Any) -> list[Any]:
    """The value and the derivatives up to an order by the library's rules in a carrier, in the order of `slots`."""
    y, leaves = recorder.replayed(run.root, run.nodes, values)
    parts = list(recorder.partials(y, leaves, min(max(full, 1), order)))
    out = [box.value.ravel()[i].item() for _, box, i in parts]
    if order <= max(full, 1):
        return out
    ends = np.cumsum([leaf.value.size for leaf in leaves])
    first = [box for index, box, _ in parts if len(index) == 1]  # one for each element; leaves whose cotangents are equal share a box
    line = [first[end - 1] if leaf.value.size else leaf for leaf, end in zip(leaves, ends)]
    along = [part.reshape(leaf.shape) for part, leaf in zip(np.split(direction, ends[:-1]), leaves)]
    for k in range(2, order + 1):
        line = recorder.gradients(list(zip(line, along)), leaves)
        out += [x for g in line for x in g.value.ravel().tolist()] if k > full else []
    return out


def agreement(exact: OracleComparison) -> tuple[float, ComparedNumber | None]:
    """The number of digits to which the oracle and the rules agree at a point, and the entry of lowest order if they do not.

    Raises Undefined where there is nothing to compare, and Undecided if the digits of the last rung do not suffice.
    """
    if exact.certified is not None:
        wrong = [exact.entries()[k] for k in sorted(exact.certified.wrong)]
        return exact.certified.digits, min(wrong, key=lambda e: e.order, default=None)

    def evaluate(digits: int, places: Sequence[int]) -> list[tuple[Any, Any, Callable[[], Any]]]:
        def noise() -> Any:  # a difference counts if it is larger than the rounding of any term of the computation
            return exact.evaluation(digits).scale * mpmath.mpf(10) ** (15 - digits)

        entries = exact.entries(digits)
        return [(entries[k].rule, entries[k].reference, noise) for k in places]

    found = compare(evaluate, len(exact.entries()), rungs())
    digits = [(verdict, agreeing_digits(a, b)) for verdict, a, b in found if verdict != OPEN]
    fewest = min([SHOWN, *(d for verdict, d in digits if verdict == DIFFERENT or d >= AGREED)])
    wrong = [replace(e, rule=a, reference=b) for e, (verdict, a, b) in zip(exact.entries(), found) if verdict == DIFFERENT]
    if not wrong and any(verdict == OPEN for verdict, _, _ in found):
        raise Undecided(f"more than {MOST} digits")
    return fewest, min(wrong, key=lambda e: e.order, default=None)
