"""`map`: independent calls of a function, by any executor."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from typing import Any

from symgrad.reports.streams import Progress, progress_bar
from symgrad.system.restoring import restored

LONG, REFRESH = 2.0, 0.2  # seconds after which a bar is shown, and between its changes
CHUNKS = 16  # for each worker, so that none is idle for long at the end


def map(fn: Callable[[Any], Any], points: Iterable[Any], executor: Executor | None = None, *, chunksize: int | None = None,
        progress: Any = None) -> list[Any]:
    """The results of a function at independent points, in order: [fn(x) for x in points], computed by an executor.

    The executor is any of `concurrent.futures`: a pool of threads or of processes, one of `mpi4py.futures`, or `client.get_executor()` of Dask;
    without one, the calls are made here. Other processes need a function that can be pickled: a function of a module, one that `symgrad.compile`
    made, a Module, an op, `func.grad`, `func.vmap` or another transform of one of them. `chunksize` points go out together, by default a sixteenth
    of the share of a worker. What takes long shows its progress: on a terminal as a bar on standard error (`progress` None), in any case (True), or
    to a function of (what, done, total).

    An exception of `fn` is raised here with a note that names the point, the first in order of those that are known. After it, and after an
    interrupt, calls that have not begun are cancelled.

    Raises ValueError for a chunk size that is not positive, and what `fn` raises.

    >>> import symgrad
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     symgrad.map(symgrad.func.hessian(lambda x: (x**3).sum()), [symgrad.tensor([1.0]), symgrad.tensor([2.0])], pool)
    [tensor([[6.]]), tensor([[12.]])]
    """
    if chunksize is not None and chunksize < 1:
        raise ValueError(f"map: chunksize must be at least 1, but it is {chunksize}")
    inputs, out = list(points), []
    with _after_a_while(progress, getattr(fn, "__name__", type(fn).__name__)) as tell:
        if executor is None:
            for i, point in enumerate(inputs):
                out += _results(fn, i, [point])
                tell("points", i + 1, len(inputs))
            return out
        size = chunksize or max(1, len(inputs) // (CHUNKS * _workers(executor)))
        futures: list[Future[Any]] = []
        try:
            with _interrupts_held():
                for i in range(0, len(inputs), size):
                    futures.append(executor.submit(_results, fn, i, inputs[i:i + size]))
            left = set(futures)
            while left:
                done, left = wait(left, REFRESH, FIRST_EXCEPTION)
                if any(future.exception() is not None for future in done):
                    break
                tell("points", min(len(inputs), size * (len(futures) - len(left))), len(inputs))
            for future in futures:
                if not left or future.done():
                    out += future.result()
        finally:
            for future in futures:
                future.cancel()
    return out


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold an interrupt back in a `with` block; a second one comes at once.

    The locks of `concurrent.futures` are written in Python, and one that is interrupted while it is taken stays locked.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[Any, ...]] = []

    def hold(*args: Any) -> None:
        held.append(args)
        if len(held) > 1:
            before(*args)

    try:
        with restored(functools.partial(signal.signal, signal.SIGINT, before), functools.partial(signal.signal, signal.SIGINT, hold)):
            yield
    finally:
        if len(held) == 1:
            before(*held[0])


def _results(fn: Callable[[Any], Any], first: int, points: list[Any]) -> list[Any]:
    """The results at some points, of which the first has this number."""
    out = []
    for i, point in enumerate(points, first):
        try:
            out.append(fn(point))
        except Exception as error:
            text = repr(point)
            error.add_note(f"symgrad.map: at point {i}: {text if len(text) < 500 else text[:500] + '...'}")
            raise
    return out


def _workers(executor: Any) -> int:
    """The number of workers of an executor, as it says, or that of the cores."""
    return getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None) or os.cpu_count() or 1


@contextlib.contextmanager
def _after_a_while(wanted: Any, name: str) -> Iterator[Progress]:
    """A function that reports progress, at once if that is wanted, else on a terminal after some seconds."""
    with contextlib.ExitStack() as stack:
        shown: list[Progress] = [stack.enter_context(progress_bar(wanted, name))] if wanted is not None else []
        start = time.monotonic()

        def tell(what: str, done: int, total: int) -> None:
            if not shown and time.monotonic() - start > LONG:
                shown.append(stack.enter_context(progress_bar(None, name)))
            for each in shown:
                each(what, done, total)

        yield tell
