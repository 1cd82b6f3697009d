"""Torch's grad modes. Each mode is a context manager and a decorator, and applies to one thread."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from symgrad.engine.inference import is_inference, made_in_inference
from symgrad.engine.method_table import MethodTable
from symgrad.engine.storage.copyslices import requires_grad_
from symgrad.engine.storage.writes import InferenceError
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import ImmediateScope, in_mode, thread

METHODS = MethodTable()

F = TypeVar("F", bound=Callable[..., Any])


class _Switch(in_mode):
    """A change of modes that also works as a decorator."""

    __slots__ = ()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(f"{type(self).__name__}: decorating a class is deprecated; decorate its __init__", FutureWarning, stacklevel=2)
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{type(self).__name__}: an asynchronous generator cannot be decorated; use the context manager inside of it")
        return _decorated(function, self.fields)


class _ImmediateSwitch(ImmediateScope, _Switch):
    """The base of modes that are set on construction: a decorator undoes that, and sets them in the calls of its function."""

    __slots__ = ()

    def __call__(self, function: F) -> F:
        self._leave()
        return super().__call__(function)


def _decorated(function: Callable[..., Any], fields: dict[str, Any]) -> Any:
    """A function, generator function or coroutine function that runs in changed modes, of the same kind."""
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from _stepwise(function(*args, **kwargs), fields))

        return generator
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await types.coroutine(_stepwise)(function(*args, **kwargs), fields)

        return coroutine

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with _Switch(**fields):
            return function(*args, **kwargs)

    return inside


def _stepwise(steps: Any, fields: dict[str, Any]) -> Generator[Any, Any, Any]:
    """A generator or coroutine each of whose steps runs in changed modes; its caller has its own between the steps."""
    advance, given = steps.send, None
    try:
        while True:
            with _Switch(**fields):
                found = advance(given)
            try:
                advance, given = steps.send, (yield found)
            except GeneratorExit:
                with _Switch(**fields):
                    steps.close()
                raise
            except BaseException as error:
                advance, given = steps.throw, error
    except StopIteration as end:
        return end.value
    finally:
        del given  # an error that was thrown in refers to this frame


class no_grad(_Switch):
    """Operations inside are not recorded: their results have no graph and no expression.

    >>> import symgrad
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> with symgrad.no_grad():
    ...     (2 * x).requires_grad
    False
    """

    __slots__ = ()

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        cls.__init__(self)
        return self(function)

    def __init__(self) -> None:
        super().__init__(grad=False)


class enable_grad(no_grad):
    """Operations inside are recorded, also within `no_grad`."""

    __slots__ = ()

    def __init__(self) -> None:
        in_mode.__init__(self, grad=True)


class set_grad_enabled(_ImmediateSwitch):
    """Switch recording on or off: at once, or as a context manager until its end."""

    __slots__ = ()

    def __init__(self, mode: bool):
        super().__init__(grad=bool(mode))


class set_multithreading_enabled(_ImmediateSwitch):
    """Allow a backward to use several threads or forbid it: at once, or as a context manager until its end.

    A backward here runs in the thread that called it, so that the mode tells what a program asked for and has no other effect.
    """

    __slots__ = ()

    def __init__(self, mode: bool):
        super().__init__(multithreading=bool(mode))


class inference_mode(_Switch):
    """As `no_grad`, for results that are never used in a recorded operation; `enable_grad` inside has no effect.

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
    ...     print(str(error).split(";")[0])
    an inference tensor is not saved for a derivative
    """

    __slots__ = ()

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if not callable(mode):
            return self
        cls.__init__(self)
        return self(mode)

    def __init__(self, mode: bool = True):
        super().__init__(inference=bool(mode), grad=not mode)


def is_grad_enabled() -> bool:
    """Whether this thread records operations."""
    return thread.modes.grad


def is_multithreading_enabled() -> bool:
    """Whether a backward of this thread may use several threads."""
    return thread.modes.multithreading


def is_view_replay_enabled() -> bool:
    """Whether nodes of views are made again by the operations that made the views: they are made by strides, with the same derivatives."""
    return False


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return thread.modes.inference


# Tensors that were made in inference mode

def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    marked = is_inference(self)
    if marked and requires_grad and not thread.modes.inference:
        raise InferenceError("requires_grad_: an inference tensor is changed inside inference mode alone")
    requires_grad_(self, requires_grad)
    return made_in_inference(self) if marked else self


_requires_grad_.__name__, _requires_grad_.__doc__ = "requires_grad_", requires_grad_.__doc__
METHODS["is_inference"] = is_inference
METHODS["requires_grad_"] = _requires_grad_
