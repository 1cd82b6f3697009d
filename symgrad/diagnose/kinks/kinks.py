"""`kinks`: the ops of a computation that are at a kink or a tie, and whether the returned gradient is a generalized gradient there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.algebra.limits import OutOfTime, abort_after
from symgrad.autograd.anomaly import recording_lines
from symgrad.autograd.causes import record_of
from symgrad.carriers import numeric, precise
from symgrad.diagnose.kinks.cells import Rerun, Subdifferential, subdifferential
from symgrad.diagnose.kinks.kink import INSIDE, OUTSIDE, UNDECIDED, Kink, KinkReport, Side
from symgrad.diagnose.kinks.switches import MAX_TIED, NotEvaluable, Place, Switch, broadcast_element, convention_of, hull_distance, scalar, switches
from symgrad.engine.tensor import Tensor
from symgrad.frameworks.calling import as_inputs, examples_of
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, run_of, silence
from symgrad.frameworks.naming import name_of
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import Recorder, in_mode, thread
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.reference.run import Run
from symgrad.reports.base import number
from symgrad.sampling.conditions import COMPARISONS
from symgrad.sampling.points import as_point, flat

MAX_KINKS = 200  # in a report
MAX_ELEMENTS = 4000  # of the arguments of an op that is not elementwise, for its one-sided derivatives
STEP = precise.context.mpf(10) ** -18
EQUAL = 1e-12  # the accuracy of a third derivative from points 1e-18 apart


class _Branches(Recorder):
    """An observer that collects the comparisons that an `if` evaluates."""

    def __init__(self) -> None:
        self.found: list[Node] = []

    def branch(self, node: Node, truth: bool) -> None:
        """Keep the node of a comparison."""
        if not isinstance(node, (Leaf, DerivativeNode)) and node.op.name in COMPARISONS:
            self.found.append(node)


def _report_of_tensor(loss: Tensor, inputs: Any, distance: float, effort: float, seed: int) -> KinkReport:
    run = run_of(loss, inputs, "kinks", only_leaves=True)
    names = ["_".join([str(t._node.symbol or f"x{i if len(run.leaves) > 1 else ''}"), *map(str, index)])  # type: ignore[union-attr]
             for i, t in enumerate(run.leaves) for index in np.ndindex(t.value.shape)]
    report = report_of_run("loss", run, distance, effort, seed, names)
    if any(not isinstance(n, (Leaf, DerivativeNode)) and n.op.name == "where" and n.parents[0] is None for n in upstream([loss._node])):
        report.notes.append("conditions of where are fixed in a recorded graph and were not examined; give the function and its inputs to have "
                            "them examined")
    return report


def _report_of_function(function: Callable[..., Any], inputs: Sequence[Any] | Mapping[str, Any], distance: float, effort: float,
                        seed: int) -> KinkReport:
    branches, runs = _Branches(), list[Run]()  # the runs keep their graphs alive
    try:
        problem = DifferentiationTask(function, inputs or examples_of(function) or ())
        with in_mode(observers=(*thread.modes.observers, branches)), recording_lines():
            run = problem.run(problem.point, named=True)
        how = problem.graph_mismatch(run)
        if how is not None:
            raise NotCheckable(f"the recorded graph is not the function: {how}. Compute with tensors, or give the number as an argument")
    except NotCheckable as error:
        return KinkReport(name_of(function), UNDECIDED, str(error), distance)
    size = max([1.0, *(float(np.max(np.abs(p), initial=0.0)) for p in problem.point)])
    step = size * max(float(np.finfo(p.dtype).eps) for p in problem.point) ** 0.5

    def rerun(direction: np.ndarray) -> tuple[Node, Sequence[Leaf]]:
        with silence():
            runs.append(problem.run(as_point(problem.point, flat(problem.point) + step * direction), named=True))
        return runs[-1].root, runs[-1].nodes

    return report_of_run(problem.name, run, distance, effort, seed, problem.names, branches.found, rerun)


def report_of_run(name: str, run: Run, distance: float, effort: float, seed: int, names: Sequence[str] | None = None,
                  branches: Sequence[Node] = (), rerun: Rerun | None = None) -> KinkReport:
    """The report of one run of a function."""
    count = sum(leaf.numel() for leaf in run.leaves)
    report = KinkReport(name, UNDECIDED, "", distance, list(names or [f"x{i}" for i in range(count)]), float(run.result.value))
    if run.shape is not None:
        report.notes.append(f"the result (shape {list(run.shape)}) was weighted by 1, 2, 3, ... and summed")
    found: Subdifferential | None = None
    with silence():
        report.returned = run.gradient()
        try:
            found = subdifferential(run.root, run.nodes, branches, rerun, effort, seed)
        except NotEvaluable as error:
            report.reason = str(error)
    near = (s for node in upstream([run.root, *branches]) for s in switches(node, distance))
    report.kinks = _kinks_at(list(itertools.islice(near, 10 * MAX_KINKS)), found)
    if len(report.kinks) >= MAX_KINKS:
        report.notes.append(f"no more than {MAX_KINKS} kinks are listed, the first of the computation")
    if any(k.rounded for k in report.kinks):
        report.notes.append("rounding moved a float to a kink where the exact number is not: the returned gradient follows the convention of the "
                            "kink, the function has the gradient of one side")
    if found is not None:
        _set_verdict(report, found, run)
    return report


def _set_verdict(report: KinkReport, found: Subdifferential, run: Run) -> None:
    """Set the verdict: whether the returned gradient is in the convex hull of the limiting gradients, and whether these are all."""
    report.gradients, report.complete = found.gradients, found.complete and not found.blocked
    returned, shown = report.returned, f"the returned gradient {_vector(report.returned)}"
    if found.blocked:
        report.reason = found.blocked
        return
    if not np.all(np.isfinite(returned)):
        report.verdict, report.reason = OUTSIDE, f"{shown} is not finite, but those near the point are"
        return
    eps = max(float(np.finfo(leaf.value.dtype).eps) for leaf in run.leaves)
    size = max([eps, *(float(np.max(np.abs(g), initial=0.0)) for g in [*report.gradients, returned])])
    is_same = bool(np.max(np.abs(found.returned - returned), initial=0.0) <= eps**0.5 * size)  # up to rounding, which is then left out
    several = len(report.gradients) > 1
    what = "the convex hull of the gradients near the point" if several else f"the gradient, {_vector(report.gradients[0])}"
    ends = f", [{report.interval[0]:.10g}, {report.interval[1]:.10g}]" if several and report.interval else ""
    if hull_distance(report.gradients, found.returned if is_same else returned) <= eps**0.5 * size:
        differentiable = ": the function is differentiable there" if not several and found.complete else ""
        report.verdict = INSIDE
        report.reason = (f"{shown} is {'in ' * several}{what}" +
                         (differentiable if found.active and report.kinks else "; the point itself is at no kink") + ends)
    elif found.complete:
        report.verdict = OUTSIDE
        report.reason = f"{shown} is not in the Clarke subdifferential, {what}{ends}" + ": the function is differentiable there" * (not several)
    else:
        report.reason = (f"{shown} is not in the hull of the {len(report.gradients)} gradients found near the point, but "
                         f"there may be more: {found.reason}")


def _vector(g: np.ndarray) -> str:
    return number(g.reshape(()) if g.size == 1 else g)


# The list


def _kinks_at(near: Sequence[Switch], found: Subdifferential | None) -> list[Kink]:
    """One kink for the switches of each node and element; none where the op is smooth across them."""
    exact = {} if found is None else {(id(s.node), s.place, s.elements): u for s, u in found.exact.items()}
    groups: dict[tuple[int, Place], list[Switch]] = {}
    for s in near:
        groups.setdefault((s.node.sequence_nr, s.place), []).append(s)
    made = (_kink_of(group, exact) for _, group in sorted(groups.items()))
    return list(itertools.islice((k for k in made if k is not None), MAX_KINKS))


def _kink_of(group: Sequence[Switch], exact: Mapping[Any, Any]) -> Kink | None:
    s = group[0]
    node, op = s.node, s.node.op
    elements = list(dict.fromkeys(e for other in group for e in other.elements))
    args = [np.asarray(a) for a in (node.args or ())[:len(node.parents)]]
    values = {_element_name(node, i, p): float(args[i][p]) + 0.0 for i, p in elements[:MAX_TIED]}
    with precise.working_precision(60), np.errstate(all="ignore"):
        distance = min(abs(float(scalar(other.measure(*(precise.context.mpf(float(args[i][p])) for i, p in other.elements))))) for other in group)
    known = [exact[key] for other in group if (key := (id(node), other.place, other.elements)) in exact]
    true = None if not known else float(min(known, key=abs))
    true = 0.0 if true is not None and abs(true) < 1e-30 else true
    record = record_of(node)
    line = None if record is None else record.line
    if op.name in COMPARISONS:
        side = bool(np.asarray(node.value)[s.place])
        return Kink(op.name, node.name(), line, s.place, values, distance, true, None, f"{convention_of(op)}: {side}")
    sides = _one_sided_derivatives(s, elements)
    order = 1 if sides is None else min((side.order for side in sides), default=4)
    if order > 3:
        return None
    return Kink(op.name, node.name(), line, s.place, values, distance, true, order, convention_of(op), tuple(sides or ()))


def _element_name(node: Node, i: int, place: Place) -> str:
    names = node.op.argument_names
    return (names[i] if i < len(names) else f"x{i}") + (f"[{', '.join(map(str, place))}]" if place else "")


def _one_sided_derivatives(s: Switch, elements: Sequence[tuple[int, Place]]) -> list[Side] | None:
    """The one-sided derivatives of the op at the kink by each of the elements; None if they are not computed."""
    node, op = s.node, s.node.op
    count, isfinite, isnan = len(node.parents), precise.context.isfinite, precise.context.isnan
    args = list(node.args or ())
    elementwise = op.kind == "elementwise"
    if s.kind == "selected" or not elementwise and sum(np.size(a) for a in args[:count]) > MAX_ELEMENTS:
        return None
    try:
        with precise.working_precision(120), np.errstate(all="ignore"):
            xs = [precise.lift_value(np.asarray(a)[broadcast_element(s.place, np.shape(a))] if elementwise else a) for a in args[:count]]
            _move_to_kink(s, elements, xs, elementwise)
            returned, out = _rule_derivatives(node, s.place), []
            for i, p in elements[:MAX_TIED]:
                if node.parents[i] is None:
                    continue
                left, right = (_derivatives_of_side(op, xs, args[count:], i, () if elementwise else p, sign, () if elementwise else s.place)
                               for sign in (-1, 1))
                order = 1 if isnan(left[0]) or isnan(right[0]) else next(
                    (k for k, (a, b) in enumerate(zip(left, right)) if not (isfinite(a) and abs(a - b) <= EQUAL * (1 + max(abs(a), abs(b))))), None)
                if order is not None:
                    out.append(Side(_element_name(node, i, p), order, float(left[order]), float(right[order]), returned and returned(i, p)))
            return out
    except (TypeError, AttributeError, NotImplementedError, ValueError):  # a rule that accepts only machine numbers
        return None


def _move_to_kink(s: Switch, elements: Sequence[tuple[int, Place]], xs: list[Any], elementwise: bool) -> None:
    """Move arguments so that the switch is exactly zero."""
    if not elementwise:
        for _, p in elements if s.kind == "tie" else ():
            xs[0][p] = xs[0][elements[0][1]]
        return
    numbers = [scalar(x) for x in xs]
    u, slopes = precise.context.mpf(scalar(s.measure(*numbers))), list(map(scalar, s.slopes(*numbers)))
    i = next((i for i, slope in enumerate(slopes) if slope), None)
    if u and i is not None:
        xs[i] = precise.lift_value(xs[i] - u / slopes[i])


def _derivatives_of_side(op: Any, xs: Sequence[Any], parameters: Sequence[Any], i: int, place: Place, sign: int, element: Place) -> list[Any]:
    """The value and three derivatives from one side, by a cubic through four nearby points; infinite if they grow towards the kink."""
    context = precise.context

    def value(step: Any) -> Any:
        moved = [*xs[:i], precise.lift_value(np.array(xs[i], dtype=object, copy=True)), *xs[i + 1:]]
        moved[i][place] = moved[i][place] + step
        return context.mpf(scalar(op.forward(precise, *moved, *parameters)[element]))

    def derivatives(h: Any) -> list[Any]:
        a, b, c, d = (value(k * h) for k in range(1, 5))
        return [4 * a - 6 * b + 4 * c - d, (-26 * a + 57 * b - 42 * c + 11 * d) / (6 * h), (3 * a - 8 * b + 7 * c - 2 * d) / h**2,
                (-a + 3 * b - 3 * c + d) / h**3]

    here, coarse, fine = value(0), derivatives(sign * STEP), derivatives(sign * STEP / 10**6)
    out = [context.inf * context.sign(y) if abs(y) > 5 * abs(x) and abs(y) > 1e3 else context.zero if abs(y) < abs(x) / 5 else y
           for x, y in zip(coarse, fine)]
    out[0] = here if abs(fine[0] - here) < abs(coarse[0] - here) / 5 else fine[0]
    return out


def _rule_derivatives(node: Node, place: Place) -> Callable[[int, Place], float] | None:
    """The derivative of one element of the result by an element of an argument, by the op's rule in floats; None if the rule raises."""
    args, g = node.args or (), np.zeros(np.shape(node.value))
    g[place] = 1.0
    try:
        with silence():
            found = node.op.vjp(numeric, g, node.value, args, node.parents)  # type: ignore[misc]
    except Exception:  # a rule of the user can raise anything
        return None

    def derivative(i: int, p: Place) -> float:
        c = np.asarray(0.0 if found[i] is None else found[i])
        return float(c[p] if c.shape == np.shape(args[i]) else np.broadcast_to(c, g.shape)[place])  # before the reduction of a broadcast

    return derivative


def kinks(loss: Any, *, distance: float = 1e-12, inputs: Any = None, effort: float = 1.0, seed: int = 0,
          seconds: float | None = None) -> KinkReport:
    """List every op that was evaluated at a kink or a tie, and say whether the gradient is in the Clarke subdifferential.

    The Clarke subdifferential of f at x is the convex hull of the limits of ∇f(xₖ), xₖ → x; where f is differentiable nearby it is the gradient
    alone. Automatic differentiation applies a convention to each op at a kink, so that the gradient of f may be outside this set:
    relu(x) - relu(-x) is x, but its derivative at 0 is computed as 0.

    `loss` is the result of a recorded computation (its graph must not have been freed by a backward), with `inputs` the leaves to
    differentiate by, all of them by default; or a function, with its `inputs` as a sequence or by name (a single number or tensor
    needs no sequence). The report of a function also has lines, conditions of `where`, branches and the selections of a sort, which are fixed
    in a recorded graph. Ops are listed whose switch (the argument of abs, the difference of tied elements, ...) is within `distance` of zero
    in floats; only those at zero affect the verdict. A result that is an array is weighted by 1, 2, 3, ... and summed.

    Around a point where kinks meet there are many cells with gradients of their own: up to 600 are evaluated, fewer for a large computation, and
    `effort` is the factor of their number. `seconds` aborts what takes longer, of processor time; the verdict is then "undecided".

    Raises TypeError for something that is neither, or inputs the function does not take, RuntimeError for a graph that was freed.

    >>> import symgrad
    >>> x = symgrad.tensor(0.0, requires_grad=True)
    >>> report = symgrad.kinks(x.relu() - (-x).relu())
    >>> report.verdict, report.returned, report.gradients
    ('outside', array([0.]), [array([1.])])
    >>> symgrad.kinks(lambda x: abs(x), inputs=0.0).interval
    (-1.0, 1.0)

    F. H. Clarke, Optimization and Nonsmooth Analysis (1983), 10.1137/1.9781611971309; S. M. Kakade and J. D. Lee, Provably correct automatic
    subdifferentiation for qualified programs (2018).
    """
    if not distance >= 0:
        raise ValueError(f"kinks: distance must be a number of at least 0, not {distance!r}")
    if not isinstance(loss, Tensor) and not callable(loss):
        raise TypeError(f"kinks needs a tensor that was computed from others, or a function and its inputs, not {type(loss).__name__}")
    try:
        with abort_after(seconds):
            if isinstance(loss, Tensor):
                return _report_of_tensor(loss, inputs, distance, effort, seed)
            return _report_of_function(loss, as_inputs(inputs), distance, effort, seed)
    except OutOfTime:
        return KinkReport("loss" if isinstance(loss, Tensor) else name_of(loss), UNDECIDED, f"aborted after {seconds:g} seconds", distance)


def note(run: Any, distance: float = 0.0) -> str | None:
    """One line for a check's notes: that the point of a run is at a kink, and whether the returned gradient is a subgradient. None if it is not."""
    if not any(True for node in upstream([run.root]) for _ in switches(node, distance)):
        return None
    found = report_of_run("f", run, distance, 0.2, 0)
    if not found.kinks:
        return None
    ops = list(dict.fromkeys(k.op for k in found.kinks))
    where = f"the given point is at a kink of {', '.join(ops[:4])}{', ...' if len(ops) > 4 else ''}"
    return f"{where}: {found.reason}"
