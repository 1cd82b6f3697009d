"""Shadow values: every operation that a program does in floats, done in many digits beside it.

The numbers of a right program come closer to the truth with more digits, those of a wrong one do not. Where both numbers of an operation are known,
the operation that loses the digits can be named. A. Sanchez-Stern et al., Finding Root Causes of Floating Point Error, 2018.
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
from symgrad.engine.escapes import Escapes
from symgrad.graph.modes import in_mode, thread
from symgrad.graph.order import upstream
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.types.ulp import ulp_of

__all__ = ["NoShadow", "PerturbedCarrier", "RecordedShadow", "Shadow", "moved"]

LARGEST = 1e30  # an error that stands for every larger one
CLEAR = 64.0  # by how much an operation makes an error larger before it is named


class NoShadow(Exception):
    """The reason why a program cannot be run in many digits."""


class PerturbedCarrier(RecordingCarrier):
    """Many-digit floats, where the result of each operation is changed by a random part of itself, as rounding would change it."""

    def __init__(self, part: float, seed: int):
        super().__init__(precise, precise.lift_value)
        self.part, self.rng = part, np.random.default_rng(seed)

    def computed(self, op: Any, operands: Sequence[Any], parameters: Sequence[Any]) -> Any:
        """The value of an op, with an error unless it only moves and adds elements."""
        y = super().computed(op, operands, parameters)
        return y * (1 + precise.lift_value(self.part * self.rng.uniform(-1, 1, y.shape))) if op.differentiable and op.kind != "linear" else y


class Operation(NamedTuple):
    """One operation: its name, its operands and its result, each as floats and in many digits."""

    name: str
    operands: list[tuple[np.ndarray, Any]]
    result: tuple[np.ndarray, Any]


class Shadow:
    """The numbers of one run in many digits.

    `complete` is False once numbers left the run by a way that cannot be followed; `beyond` is True once a number was so large that nothing is known
    of what is computed with it.
    """

    complete = True
    beyond = False

    def __init__(self) -> None:
        self.recorder = RecordingCarrier(precise, precise.lift_value)
        self.operations: list[Operation] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        """The context in which operations are followed."""
        yield

    def read(self, value: Any) -> Any:
        """The framework's value in many digits."""
        raise NotImplementedError

    def apply(self, name: str, *operands: Any, **options: Any) -> Any:
        """An op of the registry on numbers in many digits."""
        boxed = [Box(self.recorder, x) if isinstance(x, precise.Digits) else x for x in operands]
        return getattr(self.recorder, name)(*boxed, **options).value

    def note(self, name: str, operands: list[tuple[Any, Any]], floats: Any, exact: Any) -> None:
        """Keep an operation that was done."""
        self.beyond |= any(context.isfinite(y) and context.mag(y) > HUGE for y in np.ravel(exact).tolist() if y)
        self.operations.append(Operation(name, operands, (np.asarray(floats), exact)))

    @cached_property
    def culprit(self) -> str:
        """The operation that enlarges the error of its operands most, with them, such as sub(1.00001, 1); "" if none does."""
        best, out = CLEAR, ""
        for operation in self.operations:
            errors = _errors(*operation.result)
            place = int(np.argmax(errors)) if errors.size else 0
            if not errors.size or errors[place] <= best:
                continue
            before = max((float(np.max(_errors(*pair), initial=0.0)) for pair in operation.operands), default=0.0)
            if errors[place] / max(before, 1.0) > best:
                best, out = errors[place] / max(before, 1.0), _described(operation, place)
        return out


def _errors(floats: Any, exact: Any) -> np.ndarray:
    """The relative error of each float, in roundings of its type and at most `LARGEST`; a clear one for what is 0 in truth and not as a float."""
    floats = np.asarray(floats)
    if floats.dtype.kind not in "fV":
        return np.zeros(0)
    epsilon = ulp_of(floats.dtype).epsilon
    pairs = zip(floats.astype(np.float64).ravel().tolist(), np.ravel(exact).tolist())

    def error(a: float, b: Any) -> float:
        if a == b or not context.isfinite(b):
            return 0.0
        return LARGEST if not np.isfinite(a) else min(LARGEST, float(abs(a - b) / abs(b) / epsilon)) if b else 2 * CLEAR

    return np.array([error(a, b) for a, b in pairs])


def _described(operation: Operation, place: int) -> str:
    """An operation with the numbers that make one element of its result, where these are plain to see."""
    shape = np.shape(operation.result[0])
    index = np.unravel_index(place, shape) if shape else ()
    try:
        numbers = [np.broadcast_to(x, shape)[index] for x, _ in operation.operands]
    except ValueError:
        return operation.name
    return f"{operation.name}({', '.join(f'{float(x):.12g}' for x in numbers)})"


def moved(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """The result of a function that only moves elements, from what it does to their places; the place 0 is the number 0."""
    starts = np.cumsum([1, *(x.size for x in arrays)])
    places = np.asarray(function(*(np.arange(k, k + x.size).reshape(x.shape) for k, x in zip(starts, arrays))))
    return np.concatenate([precise.lift_value(np.zeros(1)), *(np.ravel(x) for x in arrays)])[places]


class RecordedShadow(Shadow):
    """The shadow of what symgrad's tensors record, in the precise carrier."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes: dict[Any, Box] = {}
        self.escapes = Escapes()

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
