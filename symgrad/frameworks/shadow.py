"""Shadow execution: every operation of a program in floats is repeated in many digits; the results are its shadow values.

With more digits the shadow values of a right program approach the reference values, those of a wrong program do not. The operation that loses
digits is found by comparing floats with shadow values. A. Sanchez-Stern et al., Finding Root Causes of Floating Point Error, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.carriers.digits import HUGE, context
from symgrad.dtypes.ulp import ulp_of
from symgrad.engine.graph_breaks import Escapes
from symgrad.graph.modes import in_mode, thread
from symgrad.graph.order import upstream
from symgrad.reference.float_branches import FloatBranches
from symgrad.reference.recorder import Box, RecordingCarrier

MAX_ERROR = 1e30  # larger errors are set to it
CLEAR_GROWTH = 64.0  # the factor by which an operation must enlarge an error to be reported


class NoShadow(Exception):
    """The reason why a program has no shadow execution."""


class PerturbedCarrier(RecordingCarrier):
    """Many-digit floats, where the result of each operation is changed by a random part of itself, as rounding would change it."""

    def __init__(self, part: float, seed: int):
        super().__init__(precise, precise.lift_value)
        self.part, self.rng = part, np.random.default_rng(seed)

    def computed(self, op: Any, operands: Sequence[Any], parameters: Sequence[Any]) -> Any:
        y = super().computed(op, operands, parameters)
        return y * (1 + precise.lift_value(self.part * self.rng.uniform(-1, 1, y.shape))) if op.differentiable and op.kind != "linear" else y


class ShadowOperation(NamedTuple):
    """An operation: its name, and the floats and shadow values of its operands and its result."""

    name: str
    operands: list[tuple[np.ndarray, Any]]
    result: tuple[np.ndarray, Any]


class Shadow:
    """The shadow values of one run.

    `complete` is False once a number left the run in an untracked way; `beyond` is True once a number was so large that the numbers computed from
    it are unknown. Comparisons are those of floats; `departed` is True once one was another one with many digits.
    """

    complete = True
    beyond = False
    departed = False

    def __init__(self) -> None:
        self.recorder = RecordingCarrier(precise, precise.lift_value)
        self.operations: list[ShadowOperation] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        yield

    def read(self, value: Any) -> Any:
        raise NotImplementedError

    def apply(self, name: str, *operands: Any, **options: Any) -> Any:
        boxed = [Box(self.recorder, x) if isinstance(x, precise.Digits) else x for x in operands]
        return getattr(self.recorder, name)(*boxed, **options).value

    def decide(self, floats: Any, exact: Any) -> None:
        self.departed |= not np.array_equal(floats, np.asarray(exact, dtype=bool))

    def note(self, name: str, operands: list[tuple[Any, Any]], floats: Any, exact: Any) -> None:
        self.beyond |= any(context.isfinite(y) and context.mag(y) > HUGE for y in np.ravel(exact).tolist() if y)
        self.operations.append(ShadowOperation(name, operands, (np.asarray(floats), exact)))

    @cached_property
    def out_of_range(self) -> bool:
        return any(_is_out_of_range(*operation.result) for operation in self.operations)

    @cached_property
    def culprit(self) -> str:
        """The operation that enlarges the error of its operands most, such as "sub(1.00001, 1)"; "" if there is none."""
        best, out = CLEAR_GROWTH, ""
        for operation in self.operations:
            errors = _relative_errors(*operation.result)
            place = int(np.argmax(errors)) if errors.size else 0
            if not errors.size or errors[place] <= best:
                continue
            before = max((float(np.max(_relative_errors(*pair), initial=0.0)) for pair in operation.operands), default=0.0)
            if errors[place] / max(before, 1.0) > best:
                best, out = errors[place] / max(before, 1.0), _operation_text(operation, place)
        return out


def _is_out_of_range(floats: Any, exact: Any) -> bool:
    if floats.dtype.kind not in "fV":
        return False
    tiny = float(ulp_of(floats.dtype).tiny)
    pairs = zip(floats.astype(np.float64).ravel().tolist(), np.ravel(exact).tolist())
    return any(context.isfinite(b) and (not np.isfinite(a) or abs(a) < tiny and a != b) for a, b in pairs)


def _relative_errors(floats: Any, exact: Any) -> np.ndarray:
    """The relative errors of floats in units of epsilon, at most `MAX_ERROR`, which also stands for a float whose exact value is 0 but is not 0."""
    floats = np.asarray(floats)
    if floats.dtype.kind not in "fV":
        return np.zeros(0)
    epsilon = ulp_of(floats.dtype).epsilon
    pairs = zip(floats.astype(np.float64).ravel().tolist(), np.ravel(exact).tolist())

    def error(a: float, b: Any) -> float:
        if a == b or not context.isfinite(b):
            return 0.0
        return MAX_ERROR if not np.isfinite(a) else min(MAX_ERROR, float(abs(a - b) / abs(b) / epsilon)) if b else 2 * CLEAR_GROWTH

    return np.array([error(a, b) for a, b in pairs])


def _operation_text(operation: ShadowOperation, place: int) -> str:
    """The text of an operation, with the operands of one element of its result if these are single numbers."""
    shape = np.shape(operation.result[0])
    index = np.unravel_index(place, shape) if shape else ()
    try:
        numbers = [np.broadcast_to(x, shape)[index] for x, _ in operation.operands]
    except ValueError:
        return operation.name
    return f"{operation.name}({', '.join(f'{float(x):.12g}' for x in numbers)})"


def move_elements(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """The result of a function that only moves elements, obtained by applying it to their positions; position 0 stands for the number 0."""
    starts = np.cumsum([1, *(x.size for x in arrays)])
    places = np.asarray(function(*(np.arange(k, k + x.size).reshape(x.shape) for k, x in zip(starts, arrays))))
    return np.concatenate([precise.lift_value(np.zeros(1)), *(np.ravel(x) for x in arrays)])[places]


class RecordedShadow(Shadow):
    """The shadow execution of recorded operations of symgrad's tensors, by replay with the precise carrier."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder = self.branches = FloatBranches()
        self.boxes: dict[Any, Box] = {}
        self.escapes = Escapes()

    @property
    def departed(self) -> bool:  # type: ignore[override]
        return self.branches.departed

    @property
    def complete(self) -> bool:  # type: ignore[override]
        return not self.escapes.lines

    @contextmanager
    def active(self) -> Iterator[None]:
        with in_mode(keep_values=True, observers=(*thread.modes.observers, self.escapes)), enable_grad():
            yield

    def read(self, value: Any) -> Any:
        if getattr(value, "_node", None) is None:
            return precise.lift_value(np.asarray(value))
        known = set(self.boxes)
        out = self.recorder.replayed(value._node, (), (), self.boxes)[0].value
        for node in upstream([value._node]):
            parents = getattr(node, "parents", ())
            if node not in known and parents and getattr(node, "op", None) is not None and node.args is not None:
                operands = [(np.asarray(a), precise.lift_value(a) if p is None else self.boxes[p].value) for a, p in zip(node.args, parents)
                            if p in self.boxes or isinstance(a, (int, float))]
                self.note(str(node.op.name), operands, node.value, self.boxes[node].value)
        return out
