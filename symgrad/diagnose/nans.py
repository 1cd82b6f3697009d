"""`explain_nan`: where a value or a gradient stopped being finite, why, and what to write instead."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from symgrad.autograd.anomaly import NonFiniteGradient, set_detect_anomaly
from symgrad.autograd.causes import Cause, finite, first_forward
from symgrad.carriers.batched import raw
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.frameworks.calling import as_inputs, examples_of
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, run_of, silence
from symgrad.frameworks.naming import name_of
from symgrad.graph.order import upstream
from symgrad.reports.base import BaseReport, Line, Part, Table, at, number
from symgrad.system.frames import user_frame

FINITE, NOT_FINITE = "finite", "not finite"
MAX_SHOWN = 8  # steps in the printed report


@dataclass(frozen=True)
class NanCause:
    """A first cause: an operation whose result is not finite although its operands are.

    `where` is "forward" or "backward". `expression` is the local formula over the names in `operands`: the operation itself, or its
    derivative, whose value is `slope`, times the incoming gradient `incoming`. `line` is the user's line, and `within` the lines of
    the backward passes that the operation is a part of, innermost first.
    """

    where: str
    op: str
    element: tuple[int, ...]
    value: float
    expression: str | None
    operands: dict[str, float]
    line: str | None
    within: tuple[str, ...] = ()
    slope: float | None = None
    incoming: float | None = None
    kind: str = "op"
    text: str = ""


@dataclass(repr=False)
class NanReport(BaseReport):
    """The answer of `symgrad.explain_nan`; print it, or show it in a notebook.

    `verdict` is "finite" or "not finite", `order` the lowest order at which it is not: 0 for the value, 1 for the gradient, 2 for a
    derivative of the gradient. `forward` is the first cause in the forward pass and `backward` the first in that order's backward pass,
    None where there is none; `steps` are the operations through which a forward cause reached the result, and `remedies` what helps.
    """

    function: str
    verdict: str
    reason: str
    order: int | None = None
    value: float | None = None
    forward: NanCause | None = None
    backward: NanCause | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)
    remedies: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> NanCause | None:
        """The cause that came first: the one in the forward pass, if there is one."""
        return self.forward or self.backward

    def parts(self) -> Iterator[Part]:
        """The parts of the printed report, in order."""
        rows = []
        for cause in (self.forward, self.backward):
            if cause is not None:
                how = cause.expression or cause.text
                if cause.slope is not None:
                    how = f"{how} = {number(cause.slope)}, times {number(cause.incoming)}" if how else f"{number(cause.slope)} times {cause.incoming}"
                where = f"[{', '.join(map(str, cause.element))}]" if cause.element else ""
                rows.append((cause.where, cause.op + where, how or "", at(cause.operands, 6), number(cause.value), cause.line or "not recorded"))
        if rows:
            yield Table("First causes", ("pass", "operation", "local expression", "at", "gives", "line"), rows)
        for cause in (self.forward, self.backward):
            for line in cause.within if cause is not None else ():
                yield Line(f"it is part of a backward pass: {line}")
        if len(self.steps) > 1:
            shown = self.steps if len(self.steps) <= MAX_SHOWN else [*self.steps[:MAX_SHOWN - 1], self.steps[-1]]
            yield Line("from there: " + " → ".join(f"{op} {number(v)}" for op, v in shown))
        yield from (Line(f"remedy: {text}") for text in self.remedies)


def explain_nan(loss: Any, *, inputs: Any = None, order: int = 1) -> NanReport:
    """Find where NaN or an infinity comes from: the first cause in the forward pass, and the first in the backward pass.

    `loss` is the result of a recorded computation, with `inputs` the leaves to differentiate by (all of them by default), whose lines
    are known if anomaly mode was on; or a function, which is called once more at its `inputs` in anomaly mode. Where value and
    gradient are finite, derivatives up to `order` are examined, the gradient's elements weighted by 1, 2, 3, ... and summed.

    A number that is not finite but was not chosen by `where`, `maximum` and the like does not reach the result, and is not reported.

    Raises TypeError for something that is neither, or inputs the function does not take, ValueError for an order below 1, RuntimeError
    for a graph that was freed.

    >>> import symgrad
    >>> report = symgrad.explain_nan(lambda x: x * (x * x).sqrt(), inputs=0.0)
    >>> report.order, report.backward.op, report.backward.expression, report.backward.slope, report.forward
    (1, 'SqrtBackward0', '1/(2*sqrt(x))', inf, None)
    >>> report.remedies[0].split(":")[0]
    'sqrt has an infinite slope at 0'
    """
    if type(order) is not int or order < 1:
        raise ValueError(f"explain_nan: order must be an integer of at least 1, not {order!r}")
    frame = user_frame(1)
    call_site = frame.f_code, frame.f_lineno
    if isinstance(loss, Tensor):
        run = run_of(loss, inputs, "explain_nan")
        with silence():
            return _explain("loss", run, order, call_site)
    if not callable(loss):
        raise TypeError(f"explain_nan needs a tensor that was computed from others, or a function and its inputs, not {type(loss).__name__}")

    name = name_of(loss)
    problem = DifferentiationTask(loss, as_inputs(inputs) or examples_of(loss) or ())
    with silence(), set_detect_anomaly(True, check_nan=False):  # records the lines, and those of backward passes inside the function
        try:
            run = problem.run(problem.point, named=True)
        except NotCheckable as error:
            return NanReport(name, FINITE, str(error))
        return _explain(name, run, order, call_site)


def _explain(name: str, run: Any, order: int, call_site: tuple[CodeType, int]) -> NanReport:
    report = NanReport(name, FINITE, "", None, float(run.result.value))
    if not np.isfinite(run.result.value):
        report.verdict, report.order = NOT_FINITE, 0
        trail: list[Any] = []
        report.forward = _forward_cause(first_forward(run.root, None, trail), call_site)
        report.steps = _steps_of(trail)
    result = run.result
    for k in range(1, order + 1):
        error, gradients = _cause_and_gradients(run, result, create=k < order)
        if error is not None and (report.verdict == FINITE or k == 1):
            report.verdict = NOT_FINITE
            report.order = k if report.order is None else report.order
            report.backward = _backward_cause(error, call_site)
            if report.forward is None and error.forward is not None:
                report.forward = _forward_cause(error.forward, call_site)
        if report.verdict == NOT_FINITE or k == order:
            break
        parts = [(g * tensor(np.arange(1.0, g.numel() + 1).reshape(g.shape).astype(g.value.dtype))).sum() for g in gradients if g.requires_grad]
        if not parts:
            break
        result = sum(parts[1:], parts[0])
    report.reason = _reason_of(report, order)
    report.remedies = list(dict.fromkeys(_remedies_for(report)))
    not_chosen = [node for node in upstream([run.root]) if not finite(node.value)]
    if report.verdict == FINITE and not_chosen:
        report.notes.append(f"{len(not_chosen)} intermediate values are not finite, the first of {not_chosen[0].name()}, but they were not chosen")
    return report


def _cause_and_gradients(run: Any, result: Any, create: bool) -> tuple[Any, list[Any]]:
    """The cause of the first NaN of a pullback, or of the first infinity, and the gradients."""
    gradients: list[Any] = []
    for infinite in (False, True):
        with warnings.catch_warnings(), set_detect_anomaly(True, check_inf=infinite):
            warnings.simplefilter("ignore")
            try:
                gradients = run.gradients(result, create_graph=create)
            except NonFiniteGradient as error:
                return error.cause if error.cause is not None else Cause("sum", result._node, None, 0, np.float64("nan"), ()), []
        if all(np.isfinite(g.value).all() for g in gradients):
            return None, gradients
    node = next(leaf._node for leaf, g in zip(run.leaves, gradients) if not np.isfinite(g.value).all())
    bad_value = next(g.value for g in gradients if not np.isfinite(g.value).all())
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(bad_value))[0]) if np.ndim(bad_value) else ()
    return Cause("sum", node, None, 0, np.asarray(bad_value)[place], place), []


def _line_of(record: Any, call_site: tuple[CodeType, int]) -> tuple[str | None, tuple[str, ...]]:
    """The user's line of an operation, and the backward passes it is a part of; backward passes of the report itself have no line."""
    line: str | None = None
    within = []
    while record is not None:
        is_own = record.inducer is not None and record.stack[0] == call_site
        if line is None and not is_own:
            line = record.line
        if record.inducer is None:
            break
        name, record = record.inducer
        within.append(f"that of {name}" + ("" if record is None or record.stack[0] == call_site else f", called at {record.line}"))
    return line, tuple(within)


def _operands_of(local: Any) -> dict[str, float]:
    return {name: _float(v) for names, value in zip(local.names, local.given) if names is not None for name, v in zip(names, np.ravel(value))}


def _float(x: Any) -> float:
    x = np.asarray(x).item()
    return float(abs(x)) if isinstance(x, complex) else float(x)


def _forward_cause(found: Any, call_site: tuple[CodeType, int]) -> NanCause | None:
    if found is None:
        return None
    line, within = _line_of(found.record, call_site)
    local = found.local
    name = found.name.strip()
    if found.kind == "leaf":
        return NanCause("forward", name.split("of shape")[0].strip() or "a leaf", found.place, _float(found.value), None, {}, None, kind="leaf",
                        text="an input")
    return NanCause("forward", name, found.place, _float(found.value), None if local is None else local.formula(),
                    {} if local is None else _operands_of(local), line, within, kind=found.kind,
                    text="a constant operand" if found.kind == "constant" else "")


def _backward_cause(cause: Any, call_site: tuple[CodeType, int]) -> NanCause:
    line, within = _line_of(cause.record, call_site)
    local, i = cause.local, cause.output
    name = cause.node.name()
    words = {"given": "the gradient that was given", "hook": "a hook on a tensor", "posthook": "a hook on the node",
             "sum": "the sum of gradients that are finite", "pullback": f"gradient {i}"}[cause.kind]
    if cause.kind != "pullback" or local is None:
        return NanCause("backward", name, cause.place, _float(cause.value), None, {}, line, within, kind=cause.kind, text=words)
    formula = local.derivative(i, cause.place, cause.incoming)
    if local.op.kind != "elementwise":
        return NanCause("backward", name, cause.place, _float(cause.value), formula, _operands_of(local), line, within, kind="pullback", text=words)
    return NanCause("backward", name, cause.place, _float(cause.value), formula, _operands_of(local), line, within, _float(local.slope(i)),
                    _float(cause.incoming), "pullback", words)


def _steps_of(trail: Sequence[Any]) -> list[tuple[str, float]]:
    """The operations from a cause to the result, with the first number of each that is not finite."""
    out: list[tuple[str, float]] = []
    for node, place in reversed(trail):
        value = np.asarray(raw(node.value))
        bad_value = value[place] if place is not None and np.ndim(value) == len(place) else value[~np.isfinite(value)].ravel()[0]
        name = node.op.name if getattr(node, "op", None) is not None else node.name()
        if node.parents and (not out or (name, _float(bad_value)) != out[-1]):
            out.append((name, _float(bad_value)))
    return out


def _reason_of(report: NanReport, order: int) -> str:
    if report.verdict == FINITE:
        return f"the value and all derivatives up to order {order} are finite" + ("" if order > 1 else "; for higher ones give order=2")
    what = {0: "the value", 1: "the gradient"}.get(report.order or 0, f"a derivative of order {report.order}")
    cause = report.first
    if cause is None:
        return f"{what} is not finite, and where it became so is not known: the values on the way there were not kept"
    where = "an input" if cause.kind == "leaf" else "a constant" if cause.kind == "constant" else cause.op
    kind = "NaN" if np.isnan(cause.value) else "infinite"
    made_nan = next((op for op, v in report.steps if np.isnan(v)), None) if kind == "infinite" else None
    which = f" of order {report.order}" if cause.where == "backward" else ""
    return (f"{what} is not finite; the first cause is in the {cause.where} pass{which}: {where} is {kind}" +
            (f", of which {made_nan} makes NaN" if made_nan else ""))


# Remedies


def _remedies_for(report: NanReport) -> Iterator[str]:
    names = [op for op, _ in report.steps]
    for cause in (report.forward, report.backward):
        if cause is None:
            continue
        values = list(cause.operands.values())
        op = cause.op.partition("Backward")[0].lower() if "Backward" in cause.op else cause.op
        if cause.kind == "leaf":
            yield "an input is not finite already: look at what it was read or computed from"
        elif op == "sqrt" and cause.where == "backward" and 0.0 in values:
            yield ("sqrt has an infinite slope at 0: choose before it, where(x > 0, where(x > 0, x, 1).sqrt(), 0), or use norm or hypot, whose "
                   "derivative at 0 is 0, for a root of squares")
        elif op == "pow" and values and values[0] == 0:
            yield ("a power has an infinite slope or value at 0 for exponents below 1: choose the base before it, where(x > 0, x, 1) ** p inside a "
                   "where")
        elif op in ("log", "log2", "log10", "log1p") and values:
            yield (f"{op} of a negative number is NaN: its argument should not be below its domain, or abs or a square is missing"
                   if values[0] < (-1 if op == "log1p" else 0) else
                   f"{op} of 0: for the logarithm of a probability use log_softmax or logsigmoid; otherwise choose before it, "
                   f"where(x > 0, x, 1).log() inside a where")
        elif op in ("div", "reciprocal", "rsqrt"):
            yield ("0/0: a quotient with a limit, as sin(x)/x, has a function of its own (sinc); otherwise choose the denominator before dividing, "
                   "where(d != 0, d, 1)" if values and values[0] == 0 and values[-1] == 0 else
                   "a denominator is 0 or tiny: choose it before dividing, where(d != 0, d, 1)")
        elif op in ("exp", "exp2", "expm1", "sinh", "cosh"):
            yield (f"{op} overflows: for sums of exponentials use logsumexp or logaddexp, for log(1 + exp(x)) softplus, for exp(x)/Σexp softmax, "
                   f"for 1/(1 + exp(-x)) sigmoid")
        elif op in ("asin", "acos", "atanh", "acosh"):
            yield f"{op} has an infinite slope at the ends of its domain: keep its argument inside, or write atan2 of the sides instead"
        elif cause.kind in ("hook", "posthook"):
            yield "the hook made it; look at what it returns"
        elif cause.where == "backward" and cause.kind == "pullback" and not cause.operands and "Backward" in cause.op and not cause.op.endswith("0"):
            yield "the backward of this Function returned it: look at what it divides by and takes roots of"
    if "sub" in names and report.forward is not None and np.isinf(report.forward.value):
        yield "infinite minus infinite is NaN: subtract before exponentials and logarithms are taken, as logsumexp and log_softmax do"
    if report.backward is not None and report.backward.incoming == 0 and not np.isfinite(report.backward.slope or 0):
        yield "0 times infinite is NaN: a factor of 0 after an infinite slope does not take it away; choose with where, not by a product"


