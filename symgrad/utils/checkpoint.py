"""Checkpoints under torch's name: what a call saves for its backward is dropped, and the call is made again when a backward needs it.

Saved-tensor hooks put an empty `Holder` in the place of each saved tensor. The first one that a pass unpacks calls the function again, with hooks
that fill the holders in the order of saving. Checkpoints nest: the arguments of an inner call are saved tensors of the outer one. Selective
checkpoints keep the values of chosen ops from the first call.
"""

from __future__ import annotations

import contextlib
import enum
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.context import Saved
from symgrad.autograd.saving import saved_tensors_hooks
from symgrad.engine.saved import Unpacking
from symgrad.engine.storage.versions import version
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.generators import generator_state, restored_generator
from symgrad.func.checkpointing import CheckpointError, in_segments, metadata_of, noop_context_fn
from symgrad.func.checkpointing import checkpoint as as_one_node
from symgrad.func.rules import in_vmap_levels
from symgrad.graph.modes import Recorder, in_mode, thread
from symgrad.graph.node import next_sequence
from symgrad.graph.op import REGISTRY, Op
from symgrad.system.frames import user_frame
from symgrad.system.weakkeys import WeakKeys
from symgrad.trees import flatten

__all__ = ["CheckpointError", "CheckpointPolicy", "Frame", "OperationLog", "SelectiveCheckpointContext", "checkpoint", "checkpoint_sequential",
           "create_selective_checkpoint_contexts", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop"]


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint does with the value of an op: save it, or compute it again. There is one device, so that offloading is saving."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


RECOMPUTED = CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE


class SelectiveCheckpointContext:
    """The first argument of a policy: `is_recompute`, which is False, since a policy is asked in the first call only, and the value `op_output`."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Saved:
    """The value of one call of an op; None if it is to be computed again, or was used."""

    __slots__ = ("value", "version", "used")

    def __init__(self, value: Any):
        self.value, self.used = value, False
        self.version = version(value) if isinstance(value, np.ndarray) else 0


Storage = defaultdict[str, list[_Saved]]


class _Saving:
    """What computes in the first call: NumPy, and the policy decides for each op."""

    def __init__(self, policy: Callable[..., Any], storage: Storage):
        self.policy, self.storage = policy, storage

    def compute(self, op: Op, call: Callable[..., Any], args: tuple) -> Any:
        """The value of an op, which is saved if the policy says so."""
        y = call(*args)
        asked = SelectiveCheckpointContext(is_recompute=False, op_output=_shown(y))
        decision = self.policy(asked, FUNCTIONS[op.name] if op.name in FUNCTIONS else op, *map(_shown, args))
        kept = decision not in RECOMPUTED if isinstance(decision, CheckpointPolicy) else bool(decision)
        self.storage[op.name].append(_Saved(y if kept else None))
        return y


class _Again(in_mode):
    """The scope of a recomputation, which begins with the first call of each op."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.fields["computing"].calls.clear()
        super().__enter__()


class _Using:
    """What computes in a recomputation: saved values are used, each once."""

    def __init__(self, storage: Storage, mutable: bool):
        self.storage, self.mutable = storage, mutable
        self.calls: defaultdict[str, int] = defaultdict(int)

    def compute(self, op: Op, call: Callable[..., Any], args: tuple) -> Any:
        """The saved value of an op, or else its value.

        Raises RuntimeError for a call that the first call of the function did not have, for a value that was used, and for one that was written.
        """
        place, known = self.calls[op.name], self.storage.get(op.name, ())
        self.calls[op.name] += 1
        if place >= len(known):
            raise RuntimeError(f"{op.name}: the recomputation has a call number {place + 1} that the first call of the function did not have")
        saved = known[place]
        if saved.used:
            raise RuntimeError(f"{op.name}: the values of a selective checkpoint were used by an earlier backward. Call backward once")
        if saved.value is None:
            return call(*args)
        y = saved.value
        if isinstance(y, np.ndarray) and version(y) != saved.version and not self.mutable:
            raise RuntimeError(f"{op.name}: a value saved by a selective checkpoint was written in place since. Give allow_cache_entry_mutation=True")
        saved.value, saved.used = None, True
        return y


def _shown(value: Any) -> Any:
    """A value as a policy sees it: arrays are tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shown, value))
    return wrap(value) if hasattr(value, "dtype") and not isinstance(value, Tensor) else value


def _op_of(function: Any) -> Op | None:
    """The op of a function, symgrad's or one of the user's; None for what is the function of no op."""
    if isinstance(function, Op):
        return function
    name = getattr(function, "__name__", "")
    return REGISTRY.get(name) if FUNCTIONS.get(name) is function else getattr(function, "op", None)


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """The two contexts for `context_fn` of a checkpoint that keeps the values of some ops, and does not compute them again.

    `policy_fn_or_list` is a list of ops by their functions, such as `symgrad.mm`, whose values are saved, or a function
    `policy(context, op, *args)` that returns a `CheckpointPolicy` or a bool for each call of an op; `op` is its function, or the `Op` of one of
    your own. Views are always made again, and NumPy still computes elementwise ops. Such a checkpoint can be pulled back once.
    `allow_cache_entry_mutation` uses saved values that were written in place meanwhile.

    Raises ValueError for a member of the list that is not the function of an op, TypeError for what is neither a list nor a function.

    >>> import functools, symgrad
    >>> from symgrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [symgrad.mm])
    >>> x = symgrad.eye(2).requires_grad_()
    >>> checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    >>> x.grad
    tensor([[1.0806, 2.0000],
            [2.0000, 1.0806]])
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if _op_of(op) is None:
                raise ValueError(f"create_selective_checkpoint_contexts: {op} is not the function of one op. Give functions such as symgrad.mm")
        chosen = {_op_of(op) for op in policy_fn_or_list}

        def policy(_: Any, op: Any, *args: Any) -> Any:
            return _op_of(op) in chosen
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(f"create_selective_checkpoint_contexts: {policy_fn_or_list!r} is neither a function nor a list of ops")
    storage: Storage = defaultdict(list)
    return in_mode(computing=_Saving(policy, storage)), _Again(computing=_Using(storage, allow_cache_entry_mutation))


TIP = "Let the function save the same tensors in each call; debug=True lists the operations of both"


class Holder:
    """The place of one saved tensor: for each pass that has computed the call again its tensor, and None once that is unpacked."""

    __slots__ = ("found", "__weakref__")

    def __init__(self) -> None:
        self.found: WeakKeys[Unpacking, Tensor | None] = WeakKeys()


class _Enough(Exception):
    """Raised in a recomputation as soon as every saved tensor is there."""


class Frame:
    """One call: how to make it again, and what it saved."""

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], preserve: bool, again: Any, early_stop: bool,
                 checked: bool, logs: Sequence[OperationLog] = ()):
        since = next_sequence()
        leaves, self.form = flatten((args, kwargs))
        self.leaves = [Saved(x, None, since, True) if isinstance(x, Tensor) else x for x in leaves]
        self.function, self.again, self.early_stop, self.checked, self.logs = function, again, early_stop, checked, logs
        self.state, self.levels = generator_state() if preserve else None, thread.modes.batches
        self.holders: list[weakref.ref[Holder]] = []
        self.described: list[dict[str, Any]] = []
        self.completed = False  # whether the first call is over
        self.incomplete = False  # whether it was made again before, by a backward inside of it
        self.tasks: WeakKeys[Unpacking, bool] = WeakKeys()  # the passes that have made the call again

    def hooks(self) -> saved_tensors_hooks:
        return saved_tensors_hooks(self.pack, self.unpack_with_logs if self.logs else self.unpack)

    def pack(self, t: Tensor) -> Holder:
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.described.append(metadata_of(t) if self.checked else {})
        return holder

    def unpack(self, holder: Holder) -> Tensor:
        task = thread.modes.unpacking or Unpacking()
        if task not in self.tasks:
            self.recompute(task)
        found = holder.found[task]
        if found is None:
            raise CheckpointError("checkpoint: a saved tensor is read twice in one backward. Read ctx.saved_tensors once")
        holder.found[task] = None
        return found

    def recompute(self, task: Unpacking) -> None:
        """Make the call again, and fill the holders that are still in use.

        Raises CheckpointError if it saves other tensors, RuntimeError if an argument was written in place since the first call.
        """
        count = 0

        def refill(t: Tensor) -> Tensor:
            nonlocal count
            t = wrap(t._value) if t.requires_grad else t
            if count >= len(self.holders):
                if self.completed:
                    raise CheckpointError(f"checkpoint: the recomputation saves more than the {len(self.holders)} tensors of the first call. {TIP}")
                self.incomplete = True
                return t
            holder = self.holders[count]()
            if holder is not None:
                holder.found[task] = t
            count += 1
            if self.early_stop and count == len(self.holders):
                raise _Enough
            return t

        leaves = [x.unpack(None) if isinstance(x, Saved) else x for x in self.leaves]  # type: ignore[arg-type]  # arguments need no owner
        args, kwargs = self.form.unflatten(leaves)
        try:
            with in_mode(grad=True), in_vmap_levels(self.levels), restored_generator(self.state), self.again, saved_tensors_hooks(
                    refill, lambda t: t):
                self.function(*args, **kwargs)
        except _Enough:
            pass
        self.tasks[task] = True
        self.check(task, count)

    def check(self, task: Unpacking, count: int) -> None:
        """Raise CheckpointError if the number, the shapes or the dtypes of the saved tensors differ."""
        if self.incomplete:
            return
        if count != len(self.holders):
            raise CheckpointError(f"checkpoint: the first call saved {len(self.holders)} tensors, and the recomputation {count}. {TIP}")
        for i, (reference, saved) in enumerate(zip(self.holders, self.described)) if self.checked else ():
            holder = reference()
            if holder is not None and saved != (again := metadata_of(holder.found[task])):
                raise CheckpointError(f"checkpoint: saved tensor {i} was {saved}, and is {again} when computed again. {TIP}")

    def unpack_with_logs(self, holder: Holder) -> Tensor:
        """As `unpack`; a CheckpointError shows the operations of both calls."""
        try:
            return self.unpack(holder)
        except CheckpointError as error:
            first, again = ("\n".join(f"  {line}" for line in log.lines) for log in self.logs)
            raise CheckpointError(f"{error}\n\nOperations of the first call:\n{first}\n\nOperations of the recomputation:\n{again}") from error


# The operations of both calls, for debugging


class OperationLog(Recorder):
    """The observer that notes the operations of a call, with the lines of user code, and the scope in which it does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def observe(self, node: Any) -> None:
        shapes, frame = ", ".join(str(list(a.shape)) for a in node.args[:len(node.parents)]), user_frame(1)
        self.lines.append(f"{node.short_name()}({shapes}) -> {list(node.value.shape)} at {frame.f_code.co_filename}:{frame.f_lineno}")

    def __enter__(self) -> None:
        self.lines.clear()
        self.scope = in_mode(observers=(*thread.modes.observers, self))
        self.scope.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self.scope.__exit__(*exception)


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
