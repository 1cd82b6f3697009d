"""Functions inside vmap: a Function's own `vmap` rule is called for batched arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from symgrad.carriers.batched import levels_of
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.modes import in_mode, thread
from symgrad.trees import flatten


class VmapInfo(NamedTuple):
    """The first argument of a `vmap` staticmethod: the batch size and the mode for random numbers."""

    batch_size: int
    randomness: str


def apply_to_batch(cls: Any, args: Sequence[Any]) -> Any:
    """The result of a Function's `vmap` staticmethod for batched arguments; NotImplemented if no argument is batched.

    Raises RuntimeError for a Function with both `generate_vmap_rule` and a `vmap` rule, and for a rule that does not return outputs and their
    batch dimensions.
    """
    leaves, form = flatten(tuple(args))
    entered = thread.modes.batches
    for at in reversed(range(len(entered))):
        level, count, randomness = entered[at]
        batched = [isinstance(x, Tensor) and level in levels_of(x._value) for x in leaves]
        if any(batched):
            break
    else:
        return NotImplemented
    name = cls.__name__
    if cls.generate_vmap_rule:
        raise RuntimeError(f"{name}: it has generate_vmap_rule=True and a vmap of its own; remove one of them")
    in_dims = form.unflatten([0 if b else None for b in batched])
    given = form.unflatten([traced.unbatch(x, 0, level, count) if b else x for x, b in zip(leaves, batched)])
    with in_mode(batches=entered[:at]):
        found = cls.vmap(VmapInfo(count, randomness), in_dims, *given)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(f"{name}: vmap must return the pair (output, out_dims), not {type(found).__name__}")
    output, out_dims = found
    outputs = output if isinstance(output, tuple) else (output,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(f"{name}.vmap: out_dims={out_dims} must have one entry for each of the {len(outputs)} outputs")
    finished = []
    for y, d in zip(outputs, dims):
        if d is not None and isinstance(y, Tensor) and (not -y.ndim <= d < y.ndim or y.shape[d] != count):
            raise RuntimeError(f"{name}.vmap: out_dims has {d} for an output of shape {list(y.shape)}, which has no such dimension of the batch size "
                               f"{count}")
        finished.append(y if d is None or not isinstance(y, Tensor) else traced.batch(y, d % y.ndim, level))
    return tuple(finished) if isinstance(output, tuple) else finished[0]
