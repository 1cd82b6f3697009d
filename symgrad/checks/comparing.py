"""The comparison at one point: the rules with SymPy's derivatives, and with derivatives by definition where these do not exist or a branch ends.

And what is wrong where they differ: the formula that an op declares, its rule, found by comparing each op alone with its formula, or the graph.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import DIGITS
from symgrad.autograd.context import FunctionNode
from symgrad.autograd.formulas import moved, values_of_declared
from symgrad.autograd.modes import no_grad
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.checks.definition import Definition
from symgrad.checks.saturated import own_branch, wrong_in_floats
from symgrad.diagnose.kinks.switches import switches
from symgrad.engine.recording import core
from symgrad.engine.tensor import wrap
from symgrad.factories.creation import tensor
from symgrad.frameworks.differentiation_task import DifferentiationTask, silence
from symgrad.graph.common import Refused
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.exact import ComparedNumber, OracleComparison, agreement
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.run import Run
from symgrad.reference.sides import EXISTS, JUMP, KINK, NONE, ONE_SIDED, UNDECIDED, Limit
from symgrad.reference.sources import differences
from symgrad.reference.template import NoFormula
from symgrad.reports.base import label
from symgrad.reports.report import Counterexample
from symgrad.sampling.points import as_point, flat
from symgrad.trees import flatten

Index = tuple[int, ...]
LOST, ROUNDED = 2.0**-20, 2.0**-40  # parts of a limit, and of the largest number of its order, by which a float may differ from it
MAX_CALLS = 3  # of one op that are checked alone
HERE, *ELSEWHERE = (1.0, 0.0), (1.25, 0.125), (0.5, -0.25), (1.0, 0.0078125)  # factors and summands of arguments
MAX_DEFINED_INPUTS = 16  # inputs up to which derivatives are taken by definition
QUOTIENTS, BY_SYMPY, BY_DEFINITION = "the difference quotient of the value in many digits", "sympy.diff", "the limit of its difference quotients"


@dataclass
class Comparison:
    """What was found at a point: to how many digits both ways agree, or the first number in which they differ, or why the point is left out.

    `left_out` is "kinks" or "singular", `conventions` has the derivatives that do not exist, by index; `measured` counts those that were
    compared with limits of difference quotients. `in_floats` is for a culprit in a branch that floats alone take; `lost` has printed numbers that are
    not the limits, though the rules in many digits are: name, float, limit.
    """

    exact: OracleComparison
    by: str = BY_SYMPY
    digits: float | None = None
    culprit: ComparedNumber | None = None
    left_out: str = ""
    undecided: bool = False
    in_floats: bool = False
    conventions: dict[Index, Limit] = field(default_factory=dict)
    measured: int = 0
    lost: list[tuple[Index, float, float]] = field(default_factory=list)


def compare_at(point: np.ndarray, run: Run, order: int, direction: np.ndarray, full: int | None, beside: Callable[[np.ndarray], Run | None],
               printed: Mapping[int, np.ndarray] | None = None) -> Comparison:
    """Compare the derivatives at the point of a run. `beside(vector)` is a run at another point; `printed` are the floats that are reported."""
    exact = OracleComparison(run, order, direction, full, replay=True)
    out = Comparison(exact, QUOTIENTS if exact.replayed else BY_SYMPY)
    try:
        out.digits, out.culprit = agreement(exact)
        left_out = "kinks" if exact.kink else ""
    except Undefined as error:
        left_out, out.undecided = "singular", isinstance(error, Undecided)
    if node_of_another_formula(run) is not None:
        with contextlib.suppress(Undefined):
            out.culprit = ComparedNumber(0, (), False, exact.evaluation(DIGITS).value, mpmath.mpf(float(run.result.value)))
            return out
    if out.culprit is not None and not out.culprit.order and own_branch(run):
        out.lost.append(((), float(run.result.value), float(out.culprit.rule)))
        out.left_out, out.culprit = "kinks", None
    elif out.culprit is not None and not left_out:
        if not exact.replayed and point.size <= MAX_DEFINED_INPUTS and _is_right(out.culprit, point, run, exact, beside):
            out.culprit, out.digits, out.measured = None, None, 1
    elif exact.replayed or point.size > MAX_DEFINED_INPUTS or not left_out and not has_border(run):
        out.left_out, out.culprit = left_out, None
    else:
        _compare_with_definition(out, left_out, point, run, beside, printed)
    if printed is not None and out.digits is None and out.culprit is None and not exact.replayed:
        with contextlib.suppress(Undefined):
            value, truth = float(run.result.value), float(exact.evaluation(DIGITS).value)
            out.lost += [((), value, truth)] if abs(value - truth) > LOST * abs(truth) else []
    return out


def _compare_with_definition(out: Comparison, left_out: str, point: np.ndarray, run: Run, beside: Callable[[np.ndarray], Run | None],
                             printed: Mapping[int, np.ndarray] | None) -> None:
    exact = out.exact
    claims, out.culprit = _claims(exact, run), None
    for index, limit in _definition(point, run, exact, beside).derivatives(min(exact.order, max(exact.full, 1))):
        claimed, finite = claims[index], bool(mpmath.isfinite(claims[index]))
        shown = None if printed is None or len(index) not in printed else float(printed[len(index)][index])
        wrong = False
        if limit.kind == EXISTS or limit.kind == ONE_SIDED and (finite or printed is not None):
            wrong = not limit.agrees(claimed)
            if not wrong and shown is not None and not np.isfinite(shown):
                wrong, claimed = True, mpmath.mpf(shown)
            elif not wrong and shown is not None and printed is not None and not abs(shown - limit.value) <= (
                    LOST * abs(limit.value) + ROUNDED * np.max(np.abs(printed[len(index)]))):
                out.lost.append((index, shown, float(limit.value)))
            out.measured += 1
        else:
            wrong = limit.kind == JUMP and finite and _is_own_border(run)
            out.conventions[index] = limit
        if wrong and out.undecided and not has_border(run):  # the values may need more digits, too
            out.left_out, out.conventions = left_out, {}
            return
        if wrong:
            out.culprit, out.by = ComparedNumber(len(index), index, False, limit.value, claimed), BY_DEFINITION
            return
    kinds = {limit.kind for limit in out.conventions.values()}
    if not left_out and kinds <= {UNDECIDED, NONE}:  # SymPy's derivatives agree, and nothing says that they are not those of the function
        out.conventions = {}
    elif kinds:
        out.left_out = "kinks" if kinds & {KINK, JUMP} or left_out == "kinks" else "singular"
        out.undecided &= kinds <= {UNDECIDED}
    elif left_out and not out.measured:
        out.left_out = left_out
    else:
        out.undecided = False


def _definition(point: np.ndarray, run: Run, exact: OracleComparison, beside: Callable[[np.ndarray], Run | None]) -> Definition:
    branching = bool(run.escapes.lines or run.escapes.branches) or any(  # whether the graph may be another one next to the point
        node.value.dtype.kind in "biu" or node.op.kind not in ("elementwise", "linear", "multilinear") for node in _nodes([run.root]))

    def program(vector: np.ndarray) -> Any:
        if not branching or np.array_equal(vector, point):
            return exact.oracle
        near = beside(vector)
        try:
            return None if near is None else Oracle(near.root, near.nodes)
        except Exception:  # a formula that a user declared can raise anything outside its domain
            return None

    return Definition(point, program)


def _is_right(culprit: ComparedNumber, point: np.ndarray, run: Run, exact: OracleComparison, beside: Callable[[np.ndarray], Run | None]) -> bool:
    """Whether a number by the rules is the limit of difference quotients, and that of SymPy's formula is not: its digits cancel."""
    if not culprit.order or culprit.directional:
        return False
    limit = _definition(point, run, exact, beside).limit(culprit.index)
    return limit.kind == EXISTS and limit.agrees(culprit.rule) and not limit.agrees(culprit.reference)


def _claims(exact: OracleComparison, run: Run) -> dict[Index, Any]:
    """The derivatives by the rules: in many digits, or in floats where the rules have no value in many digits, as for 0 times infinity."""
    found: dict[Index, Any] = {}
    places = [index for _, index, directional in slots(exact.count, exact.order, exact.full) if not directional]
    with contextlib.suppress(Undefined, NoFormula, Refused, ArithmeticError, ValueError, RuntimeError):
        found = dict(zip(places, exact.rules(DIGITS)))
    for k in range(1, max(map(len, places)) + 1):
        missing = [index for index in places if len(index) == k and not mpmath.isfinite(found.get(index, mpmath.nan))]
        with silence():
            values = run.derivatives(k) if missing else np.zeros(0)
        found |= {index: mpmath.mpf(float(values[index])) for index in missing}
    return found


def _nodes(roots: Sequence[Node]) -> list[Any]:
    return [node for node in upstream(roots) if not isinstance(node, (Leaf, DerivativeNode))]


def has_border(run: Run) -> bool:
    """Whether a comparison, a tie or a jump of the program is exactly at the point."""
    functions = [node.inner for node in _nodes([run.root]) if isinstance(node, FunctionNode) and node.inner is not None]
    roots = [run.root, *(n for inner in functions for n in inner if n is not None), *run.escapes.branches]
    return any(True for node in _nodes(roots) for _ in switches(node, 0.0))


def _is_own_border(run: Run) -> bool:
    """Whether the border at the point is inside an op that is not the library's: its rule then claims a derivative where there is none."""
    nodes = _nodes([run.root])
    own = [node for node in nodes if _is_own(node)]
    return bool(own) and not any(True for node in nodes if node not in own for _ in switches(node, 0.0))


def has_own_rules(run: Run) -> bool:
    """Whether an op of a run is not the library's."""
    return any(map(_is_own, _nodes([run.root])))


def _is_own(node: Any) -> bool:
    return isinstance(node, FunctionNode) or node.op.name not in BUILT_IN


# What is wrong


def node_of_another_formula(run: Run) -> Any:
    """The node of a foreign function in a run whose declared formula has another value there and elsewhere, None if there is none.

    Where the two differ at the point alone, digits may be lost.
    """
    return next((node for node in _nodes([run.root]) if not isinstance(node, FunctionNode) and _differs_at(node, HERE)
                 and any(_differs_at(node, m) for m in ELSEWHERE)), None)



def find_wrong_op(run: Run, order: int) -> tuple[str, int] | None:
    """The first op whose derivative differs from SymPy's, with exact numbers or in floats, and the order; None if all are right where called.

    Order 0 is for a Function whose declared formula has another value than its forward. An op that is right at order 1 and wrong at
    order 2 has a rule that calls another op, and that one is wrong.
    """
    for node in _nodes([run.root]):
        if any(_differs_at(node, move) for move in (HERE, *ELSEWHERE)):
            return str(node.op.name), 0
    for k in range(1, order + 1):
        seen: dict[Any, int] = {}
        for node in _nodes([run.root]):
            seen[node.op] = seen.get(node.op, 0) + 1
            if seen[node.op] <= MAX_CALLS and _is_wrong(node, k):
                return str(node.op.name), k
    return None


def _differs_at(node: Any, move: tuple[float, float]) -> bool:
    """Whether a function and its formula differ in more than half of the digits; False where one of them is not defined."""
    with no_grad(), contextlib.suppress(Exception), np.errstate(all="ignore"):  # the user's function can raise anything outside its domain
        computed, declared = values_of_declared(node, *move) if isinstance(node, FunctionNode) else _values_of_foreign(node, *move)
        return any(np.all(np.isfinite(a)) and np.all(np.isfinite(b)) and not np.allclose(
            a, b, 0, np.finfo(a.dtype).eps ** 0.5 * np.max(np.abs(b), initial=0)) for a, b in zip(computed, declared))
    return False


def _values_of_foreign(node: Any, scale: float, shift: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What a foreign function computes at arguments that are moved, and its formula; nothing if it declares none."""
    call: Any = node.args[-1] if node.args else None
    formula = getattr(getattr(call, "owner", None), "formula", None)
    if formula is None:
        return [], []
    xs = [wrap(x) for x in moved(call.values[:len(call.places)], scale, shift)]
    declared = [y for i, y in enumerate(flatten(call.call_function(formula, xs))[0]) if i in call.output_places]
    return [y._value for y in call.evaluate(xs)], [y._value for y in declared]


def _is_wrong(node: Node, order: int) -> bool:
    try:
        with silence():
            alone = _run_alone(node)
            exact = OracleComparison(alone, order, np.arange(1.0, 1 + sum(t.numel() for t in alone.leaves)), replay=True)
            culprit = agreement(exact)[1] or wrong_in_floats(flat([leaf.value for leaf in alone.leaves]), alone, exact)
    except Exception:  # an op that cannot be checked alone is skipped
        return False
    return culprit is not None and culprit.order == order


def _run_alone(node: Node) -> Run:
    """A run of this op alone, with its float arguments as leaves."""
    args, count = node.args or (), len(node.parents)
    leaves: list[Any] = []
    operands: list[Any] = []
    for a, p in zip(args, node.parents):
        if p is not None and a.dtype.kind not in "biu":
            leaves.append(tensor(np.array(a), dtype=a.dtype, requires_grad=True))
            operands.append(leaves[-1])
        else:
            operands.append(tensor(a) if isinstance(a, (np.ndarray, np.generic)) else a)
    y = core(node.op)(*((operands,) if node.op.arity is None else operands), *args[count:])
    weights = np.arange(1, y.numel() + 1, dtype=y.value.dtype).reshape(y.shape)
    return Run(leaves, (y * tensor(weights)).sum(), None)


def wrong_in_graph(problem: DifferentiationTask, vector: np.ndarray, order: int) -> Counterexample | None:
    """A derivative of the graph of a function that difference quotients of the function do not confirm."""
    def below(order: int, vector: np.ndarray) -> Any:
        run = problem.run(as_point(problem.point, vector))
        return run.result.value if order == 1 else run.gradient()

    point = as_point(problem.point, vector)
    run = problem.run(point)
    with silence():
        for k in range(1, order + 1):
            claimed = run.derivatives(k)
            quotients, bounds = differences(functools.partial(below, k), vector)
            wrong = np.argwhere(np.isfinite(bounds) & ~(abs(claimed - quotients) <= 4 * bounds + 1e-6 * abs(quotients)))
            if wrong.size:
                index = tuple(map(int, wrong[0]))
                return Counterexample({i.name: v for i, v in zip(problem.inputs, point)}, label(k, index, problem.names), float(claimed[index]),
                                      float(quotients[index]))
    return None
