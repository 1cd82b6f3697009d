"""Whether operations are recorded: torch's modes, each a context manager and a decorator, each of one thread."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from symgrad.engine.saved import _needed
from symgrad.engine.storage.versions import version
from symgrad.engine.storage.views import requires_grad_
from symgrad.engine.storage.writes import InferenceError
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import GRADIENT, INFERENCE, Leaf, Node, board, mode, observed, plainly, record
from symgrad.graph.op import Op

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"]

METHODS = MethodTable()

F = TypeVar("F", bound=Callable[..., Any])


class _Switch:
    """Sets the modes of the thread on entry and puts them back on exit."""

    enabled: bool
    inference: bool | None = None

    def __enter__(self) -> None:
        if not hasattr(self, "_before"):
            self._before: list[tuple[bool, bool]] = []
        self._before.append((mode.grad, mode.inference))
        self._set()

    def _set(self) -> None:
        if self.inference is not None:
            mode.inference = self.inference
        record(self.enabled and not mode.inference)

    def __exit__(self, *exception: Any) -> None:
        enabled, mode.inference = self._before.pop()
        record(enabled)

    def _again(self) -> _Switch:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            raise TypeError(f"{type(self).__name__}: a generator function runs in pieces; use the context manager inside it")

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


class no_grad(_Switch):
    """Nothing inside is recorded: no graph and no expression.

    >>> import symgrad
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> with symgrad.no_grad():
    ...     (2 * x).requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(no_grad):
    """Operations inside are recorded, also within `no_grad`."""

    enabled = True


class set_grad_enabled(_Switch):
    """Record, or do not; takes effect at once and, as a context manager, until its end."""

    def __init__(self, mode: bool):
        self.enabled = bool(mode)
        self._before = [_now()]
        self._set()

    def __enter__(self) -> None:
        self._set()

    def __call__(self, function: F) -> F:
        enabled, mode.inference = self._before.pop()
        record(enabled)
        return super().__call__(function)

    def _again(self) -> _Switch:
        return set_grad_enabled(self.enabled)


class inference_mode(_Switch):
    """As `no_grad`, for code whose results never meet a graph; `enable_grad` inside it records nothing.

    A floating-point or complex tensor that is made inside is an inference tensor, and so are views of it: outside, it cannot be saved for
    a backward, nor be written in place, nor asked for a gradient. A `clone` of it is an ordinary tensor.

    >>> import symgrad
    >>> x = symgrad.tensor(2.0, requires_grad=True)
    >>> with symgrad.inference_mode():
    ...     y = x * x
    >>> y.is_inference(), y.clone().is_inference()
    (True, False)
    >>> try:
    ...     x * y
    ... except RuntimeError as error:
    ...     print(str(error).split(".")[0])
    Inference tensors cannot be saved for backward
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.enabled, self.inference = False, True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self.enabled, self.inference = not mode, bool(mode)

    def _again(self) -> _Switch:
        return inference_mode(bool(self.inference))


def _now() -> tuple[bool, bool]:
    return mode.grad, mode.inference


def is_grad_enabled() -> bool:
    """Whether this thread records operations."""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return mode.inference


# Tensors that were made in inference mode

CANNOT_BE_SAVED = ("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
                   "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
                   "instead of `torch.inference_mode()`.")
_leaves: weakref.WeakSet[Leaf] = weakref.WeakSet()  # of inference tensors that require grad


class _Inferred:
    """What becomes of operations in inference mode, and of those on tensors that were made there."""

    def __call__(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation: that of inference tensors, a recorded one, or None."""
        if op.view and isinstance(value, np.ndarray) and value.base is not None and (value.base is args[0] or value.base is args[0].base):
            if mode.inference or parents[0] is INFERENCE:
                return parents[0] if parents[0] is INFERENCE else None
        elif mode.inference:
            return INFERENCE if value.dtype.kind in "fcV" else None
        if not mode.grad and mode.watcher is None:
            return None
        known = tuple(None if p is INFERENCE else p for p in parents)
        node = plainly(op, args, known, value) if mode.watcher is None else observed(mode.watcher(op, args, known, value))
        if node is not None and node.flags & GRADIENT:
            needed = _needed(node, tuple(p if p is not None and p.flags & GRADIENT else None for p in known))
            if any(place >= 0 and parents[place] is INFERENCE for _, place in needed):
                raise InferenceError(CANNOT_BE_SAVED)
        return node

    def made(self, tensor: Tensor) -> Tensor:
        """A new tensor as one of inference mode."""
        if isinstance(tensor._node, Leaf):
            _leaves.add(tensor._node)
        elif tensor._node is None and tensor._value.dtype.kind in "fcV":
            tensor._node = INFERENCE
        return tensor


board.inferred = _Inferred()


def is_inference(self: Tensor) -> bool:
    """Whether the tensor was made in inference mode (integers and booleans are never told apart)."""
    node = self._place
    return node is INFERENCE or isinstance(node, Leaf) and node in _leaves


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    marked = is_inference(self)
    if marked and requires_grad and not mode.inference:
        raise InferenceError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    requires_grad_(self, requires_grad)
    return board.inferred.made(self) if marked else self


def _version(self: Tensor) -> int:
    """How often the memory was written in place."""
    if is_inference(self):
        raise InferenceError("Inference tensors do not track version counter.")
    return version(self._value)


_requires_grad_.__name__, _requires_grad_.__doc__ = "requires_grad_", requires_grad_.__doc__
METHODS["is_inference"] = is_inference
METHODS["requires_grad_"] = _requires_grad_
METHODS["_version"] = property(_version)
