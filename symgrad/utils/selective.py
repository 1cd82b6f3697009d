"""Selective checkpoints: values of chosen ops are kept from the first call of a checkpointed function, and not computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.engine.storage.versions import version
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.modes import in_mode
from symgrad.graph.op import REGISTRY, Op

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


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
