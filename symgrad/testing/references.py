"""The reference of an op, its claimed formula or its own forward rule: with many digits, as an expression for reports, and with rounded steps."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.effort import TooLarge
from symgrad.algebra.simplification import shortest_difference
from symgrad.carriers import precise, symbolic
from symgrad.carriers.digits import Undefined
from symgrad.checks.cross import expressions_of
from symgrad.dtypes.ulp import Ulp
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.formulas.parsing import parse
from symgrad.frameworks.calling import flat_names
from symgrad.graph.modes import in_mode
from symgrad.reference.accuracy import RoundedEvaluation, Term, is_explained, overflows
from symgrad.reference.elementary import derivative, evaluator
from symgrad.reference.oracle import Oracle
from symgrad.reference.quotients import Reader
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.reference.sources import OracleReferenceValues
from symgrad.reference.tensors import is_active
from symgrad.system.restoring import workdps
from symgrad.testing.claimed import ClaimedOp, is_function
from symgrad.testing.failure import Wrong

SIZE = 120  # operations of a rule and its reference up to which their difference is simplified
STEPS = 4000  # steps of a formula, times the order, up to which rounding is followed through it
PRECISE = RecordingCarrier(precise, precise.lift_value)
SYMBOLIC = RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, True))
# An evaluator: the value in a carrier, from floats and from the carrier's values of them.
Evaluate = Callable[[RecordingCarrier, Sequence[np.ndarray], Sequence[Any]], Any]


def precise_reference(attack: ClaimedOp) -> tuple[Reader, str] | None:
    """The reference of an op with many digits and its description: the claimed formula, else the op's own forward rule; None if there is neither.

    The floats that a reader takes are for functions of tensors, whose branches depend on them.
    """
    found = _evaluator(attack)
    if found is None:
        return None
    evaluate, said = found

    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with precise.working_precision(digits):
            return precise.lift_value(evaluate(PRECISE, floats, cells))

    return read, said


def _evaluator(attack: ClaimedOp) -> tuple[Evaluate, str] | None:
    formula, op = attack.claims.formula, attack.subject.op
    if formula is None:
        return None if op is None else (lambda xp, floats, cells: op.forward(
            xp.base, *((tuple(cells),) if op.arity is None else cells), *attack.claims.parameters), f"the forward rule of {op.name}")
    if not is_function(formula):
        return _expression_evaluator(formula, attack), f"the formula {formula}"
    name = getattr(formula, "__name__", "")
    said = "the formula" if name in ("", "<lambda>") else f"the function {name}"
    names = list(inspect.signature(formula).parameters)
    count = len(names) - (names[:1] == ["xp"])
    parameters = attack.claims.parameters if count > len(attack.names) or count == 0 else ()
    return (_carrier_evaluator if names[:1] == ["xp"] else _recorded_evaluator)(formula, parameters), said


def _expression_evaluator(formula: Any, attack: ClaimedOp) -> Evaluate:
    """Text or SymPy's expressions, each compiled once for mpmath with exact floats; NaN where an expression has no real value.

    Raises ValueError for text that names something else than the arguments and their elements, such as x_0_1 for x[0, 1].
    """
    names = attack.names
    unknown = [n for n in parse(formula).names if n not in names and re.sub(r"(_\d+)+$", "", n) not in names] if isinstance(formula, str) else []
    if unknown:
        raise ValueError(f"symgrad.testing: the formula {formula} names {unknown[0]}, but the arguments of the op are {', '.join(names)}")
    if isinstance(formula, sympy.Lambda):
        formula = formula.expr.xreplace({s: sympy.Symbol(name, real=True) for s, name in zip(formula.signature, names)})
    made: dict[Any, Any] = {}

    def compiled(shapes: tuple[tuple[int, ...], ...]) -> Any:
        if shapes not in made:
            expressions, shape = expressions_of(formula, dict(zip(names, shapes)), {})
            symbols = [sympy.Symbol(s, real=True) for s in flat_names(names, shapes)]
            made[shapes] = [evaluator(symbols, e) for e in expressions], shape
        return made[shapes]

    def at(function: Any, xs: Sequence[Any]) -> Any:
        try:
            return precise.context.make_mpf(function(*(mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else x for x in xs))._mpf_)
        except Undefined:
            return precise.context.nan

    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        if xp is SYMBOLIC:
            (found,), _ = expressions_of(formula, dict.fromkeys(names, ()), {})
            return found.xreplace({sympy.Symbol(name, real=True): c.item() for name, c in zip(names, cells)})
        if attack.elementwise:
            (function,), _ = compiled(((),) * len(cells))
            return np.frompyfunc(lambda *xs: at(function, xs), len(cells), 1)(*cells)
        functions, shape = compiled(tuple(c.shape for c in cells))
        flat = [x for c in cells for x in c.ravel().tolist()]
        return precise.Digits.fill([at(function, flat) for function in functions], shape)

    return evaluate


def _carrier_evaluator(formula: Any, parameters: tuple[Any, ...]) -> Evaluate:
    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        found = formula(xp, *(Box(xp, c) for c in cells), *parameters)
        return found.value if isinstance(found, Box) else found

    return evaluate


def _recorded_evaluator(formula: Any, parameters: tuple[Any, ...]) -> Evaluate:
    """A function of symgrad's tensors: recorded with the floats, and replayed in the carrier."""
    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        with in_mode(keep_values=True):
            leaves = [tensor(x, requires_grad=x.dtype.kind in "fVc") for x in floats]
            out = formula(*leaves, *parameters)
        if not isinstance(out, Tensor) or not out.requires_grad:
            return out.value if isinstance(out, Tensor) else out
        active: Any = [(x._node, c) for x, c in zip(leaves, cells) if x.requires_grad]
        root: Any = out._node
        return xp.replayed(root, [leaf for leaf, _ in active], [c for _, c in active])[0].value

    return evaluate


def equations(attack: ClaimedOp, xs: Sequence[np.ndarray], part: Any) -> Callable[[Sequence[np.ndarray]], Oracle]:
    """The reference of an op as equations between single numbers, at arguments like xs: weighted with a cotangent and summed, or an element of it.

    Raises TypeError, ValueError or NoFormula where there are none, TooLarge for a long formula.
    """
    formula, active = attack.claims.formula, [is_active(x) for x in xs]
    weights = [(k, w) for k, w in enumerate(np.ravel(part).tolist()) if w] if isinstance(part, np.ndarray) else None

    def at(values: Sequence[np.ndarray]) -> list[float]:
        return [float(v) for x, real in zip(values, active) if real for v in np.ravel(x)]

    if is_function(formula) and "xp" not in inspect.signature(formula).parameters:
        parameters = attack.claims.parameters if len(inspect.signature(formula).parameters) > len(attack.names) else ()

        def recorded(values: Sequence[np.ndarray]) -> Oracle:
            leaves = [tensor(x.astype(np.float64) if real else x, requires_grad=real) for x, real in zip(values, active)]
            out: Any = formula(*leaves, *parameters)
            root = out[part] if weights is None else (out * tensor(part)).sum()
            return Oracle(root._node, [x._node for x, real in zip(leaves, active) if real])  # type: ignore[misc]

        return recorded
    names = flat_names(attack.names, [x.shape for x in xs])
    symbols = [sympy.Symbol(name, real=True) for name in names]
    if formula is None or is_function(formula):
        found = _evaluator(attack)
        if found is None:
            raise TypeError("there is no formula")
        left = iter(symbols)
        cells = [symbolic.ExactExpressions.fill([next(left) for _ in range(x.size)], x.shape) if real else symbolic.lift_value(x, True)
                 for x, real in zip(xs, active)]
        flat = SYMBOLIC.lift(found[0](SYMBOLIC, [], cells))
        expressions, shape = flat.ravel().tolist(), flat.shape
    else:
        text = formula.expr if isinstance(formula, sympy.Lambda) else formula
        expressions, shape = expressions_of(text, dict(zip(attack.names, (x.shape for x in xs))), {})
    if weights is None:
        whole = expressions[int(np.ravel_multi_index(part, shape)) if shape else 0]
    else:
        whole = sympy.Add(*(sympy.Rational(*w.as_integer_ratio()) * expressions[k if shape else 0] for k, w in weights))
    if whole.count_ops() > STEPS:
        raise TooLarge("the formula has too many steps")
    fixed = dict(zip(symbols, (v for x in xs for v in np.ravel(x).tolist())))
    free = [s for s, real in zip(symbols, (real for x, real in zip(xs, active) for _ in range(x.size))) if real]
    oracle = Oracle.of_expressions([whole.xreplace({s: sympy.sympify(v) for s, v in fixed.items() if s not in free})], free)
    return lambda values: oracle.at(at(values))


def difference(attack: ClaimedOp, wrong: Wrong) -> Any:
    """Rule minus reference as a formula; None if one of them has no formula, if they agree, and if the difference is long.

    Order 0 compares the forward rule with a claimed formula; the others start from the partial derivatives of the op. A function of tensors has no
    formula: its branches are known only at a point.

    >>> from symgrad.testing.attack import Attack
    >>> from symgrad.graph.op import REGISTRY
    >>> difference(Attack(REGISTRY["sin"], formula="sin(input)*2"), Wrong("", order=1, wrt=(0,)))
    -cos(input)
    """
    op, formula, wrt, order = attack.subject.op, attack.claims.formula, wrong.wrt[:wrong.order], wrong.order
    found = _evaluator(attack) if attack.elementwise else None
    if found is None or op is None or op.kind != "elementwise" or order is None or len(wrt) != order or (
            is_function(formula) and "xp" not in inspect.signature(formula).parameters):
        return None
    symbols = [sympy.Symbol(name, **d.assumptions) for name, d in zip(attack.names, attack.domains)]
    one, *cells = (symbolic.ExactExpressions.fill([x], ()) for x in (sympy.S.One, *symbols))
    rule = op.forward(symbolic, *cells, *attack.claims.parameters)
    if wrt:
        rule = op.vjp(symbolic, one, rule, (*cells, *attack.claims.parameters), (True,) * len(cells))[wrt[0]]
        if rule is None:
            return None
    claim, true = rule.item(), SYMBOLIC.lift(found[0](SYMBOLIC, [], cells)).item()
    for i in wrt[1:]:
        claim = derivative(claim, symbols[i])
    for i in wrt:
        true = derivative(true, symbols[i])
    return None if claim.count_ops() + true.count_ops() > SIZE else shortest_difference(claim, true)


Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]


class Rounding:
    """The formula of an op with every step rounded to the precision and the range of a type."""

    def __init__(self, attack: ClaimedOp):
        self.attack = attack
        self.forms: dict[Any, Callable[[Arrays], Oracle]] = {}
        self.known: dict[Any, RoundedEvaluation] = {}

    def explains(self, value: float, true: Any, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None,
                 *tangents: Tangents) -> bool:
        """Whether rounding makes `value` of the number `true`, an element of the gradient by argument `wrt`, of the tangent, or of the value.

        False where the formula cannot be evaluated step by step, and where its derivative by SymPy is not `true`.
        """
        try:
            with workdps(mpmath.mp, 60):
                terms = list((self._by_elements if self.attack.elementwise else self._of_arrays)(kind, xs, at, wrt, cotangent, *tangents))
                total = mpmath.fsum(term.factor * term.number.value for term in terms)
                size = mpmath.fsum(abs(term.factor * term.number.value) for term in terms)
                is_same = abs(total - true) <= size * float(kind.epsilon) / 64
                return bool(terms) and bool(is_same) and is_explained(terms, value)
        except OverflowError:
            return bool(np.isnan(value) or abs(true) <= kind.largest and (value == 0 or np.isinf(value)))
        except Exception:  # a formula that has no steps, too many, or no value at the point
            return False

    def _by_elements(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        active = [i for i, x in enumerate(xs) if is_active(x)]
        for k, point, factor in self.attack.truth.parts(xs, at, wrt, cotangent, *tangents):  # type: ignore[attr-defined]
            rounded = self._rounded(kind, [np.asarray(p, x.dtype) for p, x in zip(point, xs)], (), sum(k), sum(k), np.ones(len(active)))
            index = tuple(place for place, i in enumerate(active) for _ in range(k[i]))
            yield Term(rounded, factor, next(e for e in rounded.references.entries if e.index == index))

    def _of_arrays(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        order = len(tangents) + (wrt is not None)
        starts = np.cumsum([0, *(x.size if is_active(x) else 0 for x in xs)])
        directions = [np.concatenate([np.zeros(x.size) if t is None else np.ravel(t) for x, t in zip(xs, ts) if is_active(x)]) for ts in tangents]
        if wrt is None:
            rounded = self._rounded(kind, xs, at, order, 1, np.ones(starts[-1]))
            for e in rounded.references.entries:
                if e.order == order:
                    yield Term(rounded, mpmath.mpf(directions[0][e.index[0]] if order else 1), e)
            return
        place = int(starts[wrt]) + (int(np.ravel_multi_index(at, xs[wrt].shape)) if at else 0)
        parts = [(1, directions[0] if directions else np.ones(starts[-1]))]
        if order == 3:  # D³f[e, s, t] by those along s + t and s - t
            parts = [(1, (directions[0] + directions[1]) / 2), (-1, (directions[0] - directions[1]) / 2)]
        for sign, direction in parts:
            if np.any(direction):
                rounded = self._rounded(kind, xs, cotangent, order, 1, direction)
                yield Term(rounded, mpmath.mpf(sign), next(e for e in rounded.references.entries if e.order == order and e.index == (place,)))

    def _rounded(self, kind: Ulp, xs: Arrays, part: Any, order: int, full: int, direction: np.ndarray) -> RoundedEvaluation:
        """The formula at a point, weighted with a cotangent, or its element at an index."""
        form = tuple((x.shape, b"" if is_active(x) else x.tobytes()) for x in xs), part.tobytes() if isinstance(part, np.ndarray) else part
        key = form, kind, order, direction.tobytes(), tuple(x.tobytes() for x in xs)
        if key not in self.known:
            if form not in self.forms:
                self.forms[form] = equations(self.attack, xs, part)
            oracle = self.forms[form](xs)
            if len(oracle.steps) * max(order, 1) > STEPS:
                raise TooLarge("the formula has too many steps")
            try:
                truths = OracleReferenceValues(oracle, order, full, direction)
            except Undefined:
                truths = None
            if truths is None or truths.order < order:
                raise (OverflowError if overflows(oracle, kind) else Undefined)("a step of the formula has no number")
            self.known[key] = RoundedEvaluation(truths, kind)
        return self.known[key]
