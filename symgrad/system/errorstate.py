"""The error state in which the library computes its numbers: NumPy reports nothing, whatever `np.errstate` or warning filters a program has set.

NumPy keeps its error state in a context variable. The library computes in contexts of its own, in which the state is "ignore". Entering one costs
a small fraction of an operation, and the context of the caller is not changed, so that the caller's code has its own state again as soon as it
runs. A user's code (rules of a Function or of an own op, hooks, callbacks) is therefore called outside of these contexts.

A context can be entered once at a time. All operations share one, and all passes and programs another one, whose method `run` is a function of C.
Where another thread is inside of it, or a call inside of it computes an operation in turn, `again` enters a third one.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def _new_context() -> contextvars.Context:
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    return context


_idle: list[contextvars.Context] = []  # contexts that nobody is inside of
run_quietly = _new_context().run  # run_quietly(f, *args) is f(*args), or a RuntimeError for `again`: for an operation
run_long = _new_context().run  # for a pass or a program, so that it does not stand in the way of the operations of other threads
END: Any = object()


def again(error: RuntimeError, function: Callable[..., Any], *args: Any) -> Any:
    """The result of run_quietly(function, *args), which raised `error`: in another context if the shared one was in use; else `error` is raised."""
    try:
        if not str(error).startswith("cannot enter context"):
            raise error
    finally:
        del error  # whose traceback refers to this frame
    return quietly(function, *args)


def quietly(function: Callable[..., T], /, *args: Any) -> T:
    """The result of function(*args), computed in the library's error state. The function must not call a user's code."""
    try:
        context = _idle.pop()
    except IndexError:
        context = _new_context()
    try:
        return context.run(function, *args)
    finally:
        _idle.append(context)


def quiet(function: F) -> F:
    """The function, computed in the library's error state."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return quietly(functools.partial(function, *args, **kwargs))

    return cast(F, call)


def computed_outside(steps: Generator[Callable[[], Any], Any, None]) -> None:
    """Run a generator in the library's error state. It yields each call of a user's code, which is made outside of it, and gets the result."""
    try:
        call = run_long(next, steps, END)
    except RuntimeError as error:
        call = again(error, next, steps, END)
    while call is not END:
        found = call()
        try:
            call = quietly(steps.send, found)
        except StopIteration:
            return
