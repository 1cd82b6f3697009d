"""A user's rule that cannot compute for a batch of cotangents or tangents at once: it is called for each member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.carriers.batched import Batched, levels_of
from symgrad.engine.tensor import Tensor


def by_members(xp: Any, compute: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any], args: Sequence[Any], error: RuntimeError) -> tuple:
    """The results of a rule of the user for each member of a batch of cotangents or tangents, as a batch; None stands for zero.

    A level at which the arguments of the call are batched, too, was there in the forward: its members have no rule of their own.

    Raises the error that the rule raised for the whole batch if there is no other level, or if a result depends on the batch in another way.
    """
    forward = {level for x in args for level in _levels(x)}
    level = max((level for x in given for level in _levels(x) if level not in forward), default=None)
    if level is None:
        raise error
    count = next(_count(x, level) for x in given if level in _levels(x))
    rows = [xp.unbatch(x, 0, level, count) if level in _levels(x) else x for x in given]
    batched = [level in _levels(x) for x in given]
    found = [compute([xp.getitem(x, i) if b else x for x, b in zip(rows, batched)]) for i in range(count)]
    out = []
    for members in zip(*found):
        if any([level in _levels(x) for x in members]):
            raise error
        known = next((x for x in members if x is not None), None)
        out.append(None if known is None else xp.batch(xp.stack([xp.zeros_like(known) if x is None else x for x in members], 0), 0, level))
    return tuple(out)


def _value(x: Any) -> Any:
    return x._value if isinstance(x, Tensor) else x


def _levels(x: Any) -> tuple[int, ...]:
    return levels_of(_value(x))


def _count(x: Any, level: int) -> int:
    value: Batched = _value(x)
    while value.level != level:
        value = value.data
    return value.count
