"""Where in a computation the digits are lost: every float of the graph is compared with its exact value.

The graph of a derivative holds the operations of the forward and of the backward pass. From the result, whose error is known, a path leads
down to the operand that the error came from, as long as that one is wrong itself; the step at which the error grew most is the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symgrad.algebra.ladder import rungs
from symgrad.autograd.anomaly import set_detect_anomaly
from symgrad.autograd.causes import Local, record_of
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.engine.replay import replay
from symgrad.engine.tensor import wrap
from symgrad.formulas.expressions import expr
from symgrad.frameworks.problem import silence
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.reports.numbers import ulp_text
from symgrad.sampling.floats import Floats
from symgrad.scanning.report import Loss, Worst
from symgrad.scanning.subject import Index, Subject
from symgrad.scanning.truth import FIRST, LAST

__all__ = ["Blame"]

SHARE = 0.25  # of an error that an operand must account for, to be where it came from
WIDE = 160  # characters of a line of code that is shown, with its file
SHORT = 60  # operations of an expression that is shown
FAILURES = (TypeError, AttributeError, NotImplementedError, ArithmeticError, ValueError)


class Stage(NamedTuple):
    """A node of the path with the element looked at, the relative errors of its float, of the operation by itself, and of its operands."""

    node: Node
    place: tuple[int, ...]
    error: float
    own: float
    operands: float


class Blame:
    """The losses of one function. `find` gives that of one wrong number, None where no single operation is to blame."""

    def __init__(self, subject: Subject, floats: Floats):
        self.subject, self.floats = subject, floats
        self.unit = 2.0**-floats.digits

    def find(self, worst: Worst, index: Index, truth: Any) -> Loss | None:
        """The loss behind the error of a derivative at a point, whose true value is known."""
        point = np.array(worst.point, self.floats.dtype)
        try:
            with silence(), enable_grad(), set_detect_anomaly(True, check_nan=False):
                recording = self.subject.one(list(point), named=True)
                root = recording.partials(len(index), last=True)[index]._node
            if root is None:
                return None
            exact = self._exact(root, truth)
            path = None if exact is None else self._path(root, exact)
        except FAILURES:  # a rule that is not for many digits, or a number beyond them
            return None
        if not path or path[0].error <= 4 * self.unit:  # the error is not in this graph
            return None
        growth = [_ratio(stage.error, max(stage.operands, self.unit / 2)) for stage in path]
        k = max(range(len(path)), key=lambda i: (growth[i], i))
        return self._loss(path[k], exact, worst)  # type: ignore[arg-type]

    def _exact(self, root: Node, truth: Any) -> dict[Node, Any] | None:
        """The graph with so many digits that its result is the true one; None if there are not as many."""
        for digits in rungs(FIRST, LAST):
            with precise.working_precision(digits):
                values = replay(precise, [root], lambda leaf: precise.lift_value(leaf.value), precise.lift_value)
                found = values[root].item()
                if abs(found - truth) <= mpmath.mpf("1e-20") * abs(truth) or abs(truth) < mpmath.mpf("1e-400") > abs(found):
                    return values
        return None

    def _path(self, root: Node, exact: dict[Node, Any]) -> list[Stage]:
        """From the result down to where its error came from."""
        with precise.working_precision(LAST):
            path: list[Stage] = []
            node: Node | None = root
            place: tuple[int, ...] = ()
            while node is not None:
                if isinstance(node, DerivativeNode):
                    node = node.parents[0]
                    continue
                if isinstance(node, Leaf) or node.args is None:
                    break
                error = self._error(np.asarray(node.value)[place], _cell(exact[node], place))
                operands = [(p, *self._worst(p, exact)) for p in node.parents if p is not None]
                inherited = max((e for _, e, _ in operands), default=0.0)
                given = [precise.lift_value(a) if p is None else precise.lift_value(p.value) for p, a in zip(node.parents, node.args)]
                alone = _cell(self._applied(node, given), place)
                path.append(Stage(node, place, error, self._error(np.asarray(node.value)[place], alone), inherited))
                node, place = self._source(node, place, operands, exact, error)
            return path

    def _source(self, node: Node, place: tuple[int, ...], operands: Sequence[tuple[Node, float, tuple[int, ...]]], exact: dict[Node, Any],
                error: float) -> tuple[Node | None, tuple[int, ...]]:
        """The operand that accounts for most of the error of a node, if it is wrong itself."""
        best: tuple[float, Node | None, tuple[int, ...]] = (0.0, None, ())
        for p, e, where in operands:
            if e <= 4 * self.unit:
                continue
            mixed = [precise.lift_value(a) if q is None else precise.lift_value(q.value) if q is p else exact[q]
                     for q, a in zip(node.parents, node.args or ())]
            moved = self._relative(_cell(self._applied(node, mixed), place), _cell(exact[node], place))
            if moved >= SHARE * (error if np.isfinite(error) else 1.0) and moved > best[0]:
                best = moved, p, where
        return best[1], best[2]

    def _applied(self, node: Node, tensors: Sequence[Any]) -> Any:
        rest = (node.args or ())[len(node.parents):]
        return precise.lift_value(node.op.forward(precise, *((tensors,) if node.op.arity is None else tensors), *rest))

    def _worst(self, node: Node, exact: dict[Node, Any]) -> tuple[float, tuple[int, ...]]:
        """The largest relative error among the elements of a node's value, and where it is."""
        value = np.asarray(node.value)
        best, where = -1.0, ()
        for place in np.ndindex(value.shape):
            error = self._error(value[place], _cell(exact[node], place))
            if error > best:
                best, where = error, place
        return max(best, 0.0), where

    def _error(self, value: Any, truth: Any) -> float:
        """The relative error of a float; infinite for one that is not finite where the true value is."""
        value = float(value)
        if not np.isfinite(value):
            return 0.0 if not mpmath.isfinite(truth) and (truth == value or truth != truth) else float("inf")
        return self._relative(precise.context.mpf(value), truth)

    def _relative(self, value: Any, truth: Any) -> float:
        if not mpmath.isfinite(value) or not mpmath.isfinite(truth):
            return 0.0 if value == truth else float("inf")
        if value == truth:
            return 0.0
        return float("inf") if truth == 0 else min(float(abs(value - truth) / abs(truth)), 1e300)

    # Words

    def _loss(self, stage: Stage, exact: dict[Node, Any], worst: Worst) -> Loss:
        node, place = stage.node, stage.place
        value, truth = float(np.asarray(node.value)[place]), _cell(exact[node], place)
        operands, formula = self._operands(node)
        name, line = self._where(node)
        return Loss(node.op.name, self._reason(stage, value, truth), formula, operands, value, mpmath.nstr(truth, 17), self._expression(node), line,
                    name, (worst.order,), (worst.region,), worst.point)

    def _reason(self, stage: Stage, value: float, truth: Any) -> str:
        largest, tiny = self.floats.largest, self.floats.normal
        if not np.isfinite(value):
            return "it overflows" if not mpmath.isfinite(truth) or abs(truth) > largest else "it is not finite"
        if stage.own >= SHARE * stage.error:
            return "it underflows" if abs(truth) < tiny else f"the operation itself has an error of {ulp_text(2 * stage.own / self.unit)} ULP"
        words = "cancellation: " if stage.node.op.name in ("add", "sub", "sum", "mean") else ""
        return f"{words}a relative error of {stage.operands:.1g} in what it is given becomes {stage.error:.1g}"

    def _operands(self, node: Node) -> tuple[dict[str, float], str]:
        """The names and values of the operands that are no constants, and the operation as a formula."""
        args, count = node.args or (), len(node.parents)
        given = args[:count]
        if node.op.arity is None or any(np.ndim(a) for a in given) or np.ndim(node.value):
            return {}, node.op.name
        letters = iter("a" if sum(p is not None for p in node.parents) == 1 else "abcdefgh")
        names = [None if p is None else next(letters) for p in node.parents]
        local = Local(node.op, tuple(None if n is None else (n,) for n in names), given, node.value, args[count:])
        return {n: float(a) for n, a in zip(names, given) if n is not None}, local.formula()

    def _where(self, node: Node) -> tuple[str, str]:
        """The node whose pullback made this one, if one did, and the user's line."""
        record, name = record_of(node), ""
        while record is not None and record.inducer is not None:
            inducer, record = record.inducer
            name = name or inducer
        return name, "" if record is None or self.subject.is_op else _shortened(record.line)

    def _expression(self, node: Node) -> Any:
        """What the node computes from the arguments, where that is short."""
        import sympy

        try:
            found = expr(wrap(node.value, node))
            return None if found is None or np.ndim(node.value) or sympy.count_ops(found) > SHORT else found
        except (*FAILURES, RecursionError):
            return None


def _shortened(text: str) -> str:
    return text if len(text) <= WIDE else text[:WIDE - 2] + " …"


def _cell(values: Any, place: tuple[int, ...]) -> Any:
    """One element of an array of numbers with many digits."""
    return np.asarray(values)[place] if place else values.item()


def _ratio(error: float, before: float) -> float:
    """How much an error grew: where no digit was left before, it did not."""
    return 0.0 if np.isinf(before) else 1.0 if before >= 0.5 else error / before
