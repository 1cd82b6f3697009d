"""The reference of an op, its claimed formula or its own forward rule: with many digits, as an expression for reports, and with rounded steps."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.deciding import shortest_difference
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers import precise, symbolic
from symgrad.carriers.digits import Undefined
from symgrad.checks.cross import expressions_of
from symgrad.dtypes.ulp import Ulp
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.formulas.parsing import parse
from symgrad.formulas.programs import NamedNumber, apply_step, functions
from symgrad.frameworks.calling import flat_names
from symgrad.graph.modes import in_mode
from symgrad.proofs.formulas import size_of
from symgrad.reference.accuracy import RoundedEvaluation, Term, is_explained, overflows
from symgrad.reference.elementary import derivative, evaluator
from symgrad.reference.oracle import Oracle
from symgrad.reference.quotients import Reader
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.reference.sources import OracleReferenceValues
from symgrad.reference.tensors import is_active
from symgrad.symbolic.parameters import CONSTANTS
from symgrad.system.restoring import workdps
from symgrad.testing.claimed import ClaimedOp, is_function
from symgrad.testing.failure import Wrong

SECONDS, SIZE = 1.0, 300  # for the simplification of a difference, and its nodes
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
    if isinstance(formula, str):
        return _text_evaluator(formula, attack.names), f"the formula {formula}"
    if not is_function(formula):
        return _sympy_evaluator(formula, attack), f"the formula {formula}"
    name = getattr(formula, "__name__", "")
    said = "the formula" if name in ("", "<lambda>") else f"the function {name}"
    names = list(inspect.signature(formula).parameters)
    count = len(names) - (names[:1] == ["xp"])
    parameters = attack.claims.parameters if count > len(attack.names) or count == 0 else ()
    return (_carrier_evaluator if names[:1] == ["xp"] else _recorded_evaluator)(formula, parameters), said


def _text_evaluator(text: str, names: Sequence[str]) -> Evaluate:
    """A formula from text, step by step; pi and e have all their digits."""
    formula = parse(text)
    of_elements = "[" in text  # the formula is one of elements and returns one number
    known = functions()
    missing = [name for name in formula.names if name not in names and re.sub(r"(_\d+)+$", "", name) not in names]
    if missing:
        raise ValueError(f"symgrad.testing: the formula {text} names {missing[0]}, but the arguments of the op are {', '.join(names)}")

    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        boxes = {name: Box(xp, cell) for name, cell in _by_name(names, cells).items()}
        found = xp.lift(formula.evaluate_with(lambda x: Box(xp, xp.lift(_constant(xp, x))), boxes,
                                              lambda step, operands: apply_step(step, operands, xp, known)).value)
        shape = np.broadcast_shapes(*(c.shape for c in cells))  # which a constant formula does not have
        return found if of_elements or found.shape or not shape else xp.base.broadcast_to(found, shape)

    return evaluate


def _constant(xp: RecordingCarrier, x: Any) -> Any:
    if not isinstance(x, NamedNumber):
        return x
    return CONSTANTS[x.name] if xp is SYMBOLIC else +getattr(precise.context, x.name)


def _by_name(names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    """Arguments by name, and their elements: x_0_1 is x[0, 1]."""
    out = dict(zip(names, cells))
    for name, cell in zip(names, cells):
        out |= {"_".join([name, *map(str, at)]): cell[at] for at in np.ndindex(*cell.shape) if at}
    return out


def _sympy_evaluator(formula: Any, attack: ClaimedOp) -> Evaluate:
    """SymPy's expressions, each compiled once for mpmath with exact floats; NaN where an expression has no real value."""
    if isinstance(formula, sympy.Lambda):
        formula = formula.expr.xreplace({s: sympy.Symbol(name, real=True) for s, name in zip(formula.signature, attack.names)})
    made: dict[Any, Any] = {}

    def compiled(shapes: tuple[tuple[int, ...], ...]) -> Any:
        if shapes not in made:
            expressions, shape = expressions_of(formula, dict(zip(attack.names, shapes)), {})
            labels = ["_".join([name, *map(str, at)]) for name, size in zip(attack.names, shapes) for at in np.ndindex(*size)]
            made[shapes] = [evaluator([sympy.Symbol(s, real=True) for s in labels], e) for e in expressions], shape
        return made[shapes]

    def at(function: Any, xs: Sequence[Any]) -> Any:
        try:
            return precise.context.make_mpf(function(*(mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else x for x in xs))._mpf_)
        except Undefined:
            return precise.context.nan

    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        if xp is SYMBOLIC:
            named = dict(zip(attack.names, cells))
            return formula.xreplace({s: named[str(s)].item() for s in formula.free_symbols if str(s) in named})
        if attack.elementwise:
            (function,), _ = compiled(((),) * len(cells))
            return np.frompyfunc(lambda *xs: at(function, xs), len(cells), 1)(*cells)
        functions, shape = compiled(tuple(c.shape for c in cells))
        flat = [x for c in cells for x in c.ravel().tolist()]
        return precise.Digits.fill([at(function, flat) for function in functions], shape)

    return evaluate


def _carrier_evaluator(formula: Any, parameters: tuple[Any, ...]) -> Evaluate:
    """A function `(xp, *arrays)`, whose xp has every op of the registry."""
    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        found = formula(xp, *(Box(xp, c) for c in cells), *parameters)
        return found.value if isinstance(found, Box) else found

    return evaluate


def _recorded_evaluator(formula: Any, parameters: tuple[Any, ...]) -> Evaluate:
    """A function of symgrad's tensors: recorded with the floats, and replayed in the carrier."""
    def evaluate(xp: RecordingCarrier, floats: Sequence[np.ndarray], cells: Sequence[Any]) -> Any:
        with in_mode(keep_values=True):
            leaves = [tensor(x, requires_grad=x.dtype.kind in "fV") for x in floats]
            out = formula(*leaves, *parameters)
        if not isinstance(out, Tensor) or not out.requires_grad:
            return out.value if isinstance(out, Tensor) else out
        active: Any = [(x._node, c) for x, c in zip(leaves, cells) if x.requires_grad]
        root: Any = out._node
        return xp.replayed(root, [leaf for leaf, _ in active], [c for _, c in active])[0].value

    return evaluate


def equations(attack: ClaimedOp, xs: Sequence[np.ndarray], part: Any) -> Callable[[Sequence[np.ndarray]], Oracle]:
    """The reference of an op as equations between single numbers, at arguments like xs: weighted with a cotangent and summed, or an element of it.

    Raises TypeError, ValueError or NoFormula where there are none.
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
    fixed = dict(zip(symbols, (v for x in xs for v in np.ravel(x).tolist())))
    free = [s for s, real in zip(symbols, (real for x, real in zip(xs, active) for _ in range(x.size))) if real]
    oracle = Oracle.of_expressions([whole.xreplace({s: sympy.sympify(v) for s, v in fixed.items() if s not in free})], free)
    return lambda values: oracle.at(at(values))


def _symbols(attack: ClaimedOp) -> list[sympy.Symbol]:
    return [sympy.Symbol(name, **d.assumptions) for name, d in zip(attack.names, attack.domains)]


def _cell(x: Any) -> Any:
    return symbolic.ExactExpressions.fill([x], ())


def expression(attack: ClaimedOp, wrt: Sequence[int] = ()) -> Any:
    """The reference of an elementwise op as an expression, differentiated by the arguments `wrt`; None if there is none.

    A function of tensors has none: its branches are known only at a point.

    >>> from symgrad.testing.attack import Attack
    >>> import symgrad
    >>> expression(Attack(symgrad.sin), (0, 0))
    -sin(input)
    """
    found = _evaluator(attack) if attack.elementwise else None
    formula = attack.claims.formula
    if found is None or is_function(formula) and "xp" not in inspect.signature(formula).parameters:
        return None
    symbols = _symbols(attack)
    out = SYMBOLIC.lift(found[0](SYMBOLIC, [], [_cell(s) for s in symbols])).item()
    for i in wrt:
        out = derivative(out, symbols[i])
    return out


def difference(attack: ClaimedOp, wrong: Wrong) -> Any:
    """Rule minus reference as a formula; None if one of them has no formula, if they agree, and if the difference is long.

    Order 0 compares the forward rule with a claimed formula; the others start from the partial derivatives of the op.

    >>> from symgrad.testing.attack import Attack
    >>> from symgrad.graph.op import REGISTRY
    >>> difference(Attack(REGISTRY["sin"], formula="sin(input)*2"), Wrong("", order=1, wrt=(0,)))
    -cos(input)
    """
    op = attack.subject.op
    if op is None or wrong.order is None or not attack.elementwise or op.kind != "elementwise":
        return None
    wrt = wrong.wrt[:wrong.order]
    if len(wrt) != wrong.order:
        return None
    symbols = _symbols(attack)
    cells = [_cell(s) for s in symbols]
    rule = op.forward(symbolic, *cells, *attack.claims.parameters)
    if wrt:
        rule = op.vjp(symbolic, _cell(sympy.S.One), rule, (*cells, *attack.claims.parameters), (True,) * len(cells))[wrt[0]]
        if rule is None:
            return None
    claim = rule.item()
    for i in wrt[1:]:
        claim = derivative(claim, symbols[i])
    true = expression(attack, wrt)
    if true is None or size_of(claim - true) > SIZE:
        return None
    return shortest_difference(claim, true, SECONDS)


ROUNDING_SECONDS = 2.0  # for one number
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
            with limited(ROUNDING_SECONDS), workdps(mpmath.mp, 60):
                terms = list((self._by_elements if self.attack.elementwise else self._of_arrays)(kind, xs, at, wrt, cotangent, *tangents))
                total = mpmath.fsum(term.factor * term.number.value for term in terms)
                size = mpmath.fsum(abs(term.factor * term.number.value) for term in terms)
                is_same = abs(total - true) <= size * float(kind.epsilon) / 64
                return bool(terms) and bool(is_same) and is_explained(terms, value)
        except OverflowError:
            return bool(np.isnan(value) or abs(true) <= kind.largest and (value == 0 or np.isinf(value)))
        except (Exception, OutOfTime):  # a formula that has no steps, or no value at the point
            return False

    def _by_elements(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        """The partial derivatives that a number of an elementwise op is the sum of."""
        active = [i for i, x in enumerate(xs) if is_active(x)]
        for k, point, factor in self.attack.truth.parts(xs, at, wrt, cotangent, *tangents):  # type: ignore[attr-defined]
            rounded = self._rounded(kind, [np.asarray(p, x.dtype) for p, x in zip(point, xs)], (), sum(k), sum(k), np.ones(len(active)))
            index = tuple(place for place, i in enumerate(active) for _ in range(k[i]))
            yield Term(rounded, factor, next(e for e in rounded.references.entries if e.index == index))

    def _of_arrays(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        """The derivatives along directions that a number of an op on arrays is the sum of."""
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
            try:
                truths = OracleReferenceValues(oracle, order, full, direction)
            except Undefined:
                truths = None
            if truths is None or truths.order < order:
                raise (OverflowError if overflows(oracle, kind) else Undefined)("a step of the formula has no number")
            self.known[key] = RoundedEvaluation(truths, kind)
        return self.known[key]
