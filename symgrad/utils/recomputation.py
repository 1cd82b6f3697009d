"""Recomputation: what a call saves for its backward is dropped, and the call is made again when a backward needs it.

Saved-tensor hooks put an empty `Holder` in the place of each saved tensor. The first one that a pass unpacks calls the function again, with hooks
that fill the holders in the order of saving. Checkpoints nest: the arguments of an inner call are saved tensors of the outer one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.autograd.context import Saved
from symgrad.autograd.saving import saved_tensors_hooks
from symgrad.engine.saved import Unpacking
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.checkpointing import CheckpointError, metadata_of
from symgrad.func.rules import generator_state, in_vmap_levels, restored_generator
from symgrad.graph.modes import Recorder, in_mode, thread
from symgrad.graph.node import next_sequence
from symgrad.system.frames import user_frame
from symgrad.system.weakkeys import WeakKeys
from symgrad.trees import flatten

__all__ = ["Frame", "OperationLog"]

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
            with in_mode(grad=True), in_vmap_levels(self.levels), restored_generator(self.state), self.again, saved_tensors_hooks(refill, _itself):
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


def _itself(t: Tensor) -> Tensor:
    return t


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
