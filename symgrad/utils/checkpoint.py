"""Checkpoints under torch's name: intermediate values of a function are recomputed in the backward pass, not stored."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from symgrad.func.checkpointing import CheckpointError, in_segments, noop_context_fn
from symgrad.func.checkpointing import checkpoint as as_one_node
from symgrad.graph.modes import in_mode, thread
from symgrad.utils.recomputation import Frame, OperationLog
from symgrad.utils.selective import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = ["CheckpointError", "CheckpointPolicy", "SelectiveCheckpointContext", "checkpoint", "checkpoint_sequential",
           "create_selective_checkpoint_contexts", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop"]


def set_checkpoint_early_stop(enable: bool) -> contextlib.AbstractContextManager[None]:
    """Set whether recomputations of the checkpoints made inside stop as soon as all saved tensors are there, whatever their `early_stop`."""
    return in_mode(early_stop=enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> contextlib.AbstractContextManager[None]:
    """Set `debug` of the checkpoints made inside, whatever their argument; None leaves it to the argument."""
    return in_mode(debug=enabled)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, **kwargs: Any) -> Any:
    """Call `function(*args, **kwargs)` and drop what it saves for its backward: a backward that needs it calls the function again.

    A chain of calls then needs the memory of one of them and of the values between them. The graph is that of the plain call, with its nodes and
    their hooks, and derivatives of every order go through it; checkpoints nest. A recomputation ends with the last saved tensor, unless
    `early_stop` is false. `preserve_rng_state=False` draws new random numbers in it. `context_fn()` returns two context managers, for the call
    and for recomputations. `debug` lists the operations of both where they differ, and `determinism_check="none"` compares no shapes and dtypes.

    With `use_reentrant=True` the call is one node of the graph, as with `symgrad.func.checkpoint`, which is also the one with less memory in
    transforms such as `func.hessian`; it has none of torch's restrictions. None means True, with torch's warning.

    Raises CheckpointError if a recomputation saves other tensors, or if a saved tensor is read twice in one backward; RuntimeError if an argument
    was written in place since; ValueError for keyword arguments with `use_reentrant=True`, as torch does, and for another `determinism_check`.

    Griewank, Optimization Methods and Software 1, 1992.

    >>> import symgrad
    >>> from symgrad.utils.checkpoint import checkpoint
    >>> calls = []
    >>> def block(x):
    ...     calls.append(len(calls))
    ...     return (x.sin() * 2).exp()
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> checkpoint(block, x, use_reentrant=False).backward()
    >>> x.grad, len(calls)
    (tensor(5.8151), 2)
    """
    if use_reentrant is None:
        use_reentrant = _warned("checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        return as_one_node(function, *args, use_reentrant=True, preserve_rng_state=preserve, context_fn=context_fn,
                           determinism_check=determinism_check, debug=debug, **kwargs)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check is {determinism_check!r}; give 'default' or 'none'")
    debug = debug if thread.modes.debug is None else thread.modes.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("checkpoint: debug=True excludes a context_fn")
    logs = (OperationLog(), OperationLog()) if debug else ()
    first, again = logs or context_fn()
    if not thread.modes.grad:
        return function(*args, **kwargs)
    early_stop = early_stop if thread.modes.early_stop is None else thread.modes.early_stop
    frame = Frame(function, args, kwargs, preserve, again, early_stop, determinism_check == "default", logs)
    with frame.hooks(), first:
        output = function(*args, **kwargs)
    frame.completed = True
    return output


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True) -> Any:
    """Call functions or modules one after the other, in that many checkpointed segments; the last one is not checkpointed.

    `functions` is an `nn.Sequential` or a list. With about √n segments of n blocks memory grows like √n, at the cost of one more forward pass.

    Raises the errors of `checkpoint`, and ValueError for a number of segments that is not from 1 to the number of functions.

    >>> import symgrad
    >>> from symgrad.utils.checkpoint import checkpoint_sequential
    >>> x = symgrad.tensor(0.5, requires_grad=True)
    >>> checkpoint_sequential([symgrad.sin] * 4, 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor(0.6293)
    """
    if use_reentrant is None:
        use_reentrant = _warned("checkpoint_sequential")

    def kept(function: Callable[..., Any], x: Any) -> Any:
        return checkpoint(function, x, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)

    return in_segments(functions, segments, input, kept)


def _warned(name: str) -> bool:
    """The default of `use_reentrant`, with a warning."""
    warnings.warn(f"{name}: use_reentrant is not given, and True is taken. Give it; False is recommended", UserWarning, stacklevel=3)
    return True
