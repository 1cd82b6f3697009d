"""The arguments of a compiled function: values that may differ from call to call, and those for which a program holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.compiled.contents import bits_of
from symgrad.compiled.kinds import is_plain_object
from symgrad.engine.tensor import Tensor
from symgrad.types.dtypes import DType

__all__ = ["KEYS", "Given", "kinds_of_arguments"]

FLOAT = ("float",)
KEYS = {int, bool, str, bytes, type(None), DType}  # types of arguments that are equal only if they are the same to every computation
MOST_ATTRIBUTES = 16


class Given:
    """An object that was given as an argument, as a key: programs for it hold for this object, whose content they compare."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return type(other) is Given and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def key_of(x: Any) -> Any:
    """What is equal for arguments for which the same program holds: what a small object contains, or the object itself."""
    if (bits := bits_of(x)) is not None:
        return bits
    if is_plain_object(x) and type(x).__dictoffset__ and len(x.__dict__) <= MOST_ATTRIBUTES and not hasattr(type(x), "__slots__"):
        found = tuple([(name, bits_of(y)) for name, y in x.__dict__.items()])
        if all([bits is not None for _, bits in found]):
            return found
    return Given(x)


def kinds_of_arguments(leaves: Sequence[Any]) -> tuple[list[tuple[Any, ...]], list[Any], bool, bool]:
    """The kind of each leaf: a tensor, an array or a number that may differ, with its shape and dtype, or a fixed value; the values that may differ.

    Then whether a tensor may require a gradient, and whether all values are plain arrays. One loop, since it is part of the overhead of each call.
    """
    arguments: list[tuple[Any, ...]] = []
    values: list[Any] = []
    tracked, plain = False, True
    for x in leaves:
        if isinstance(x, Tensor):
            value = x._value
            arguments.append(("tensor", value.shape, value.dtype))
            values.append(value)
            if x._node_slot is not None:
                tracked = True
            if isinstance(value, DuckArray):
                plain = False
        elif type(x) is float:
            arguments.append(FLOAT)
            values.append(np.float64(x))
        elif isinstance(x, (np.ndarray, np.generic)):
            arguments.append(("array", x.shape, x.dtype))
            values.append(x)
        else:
            arguments.append(("fixed", type(x), x if type(x) in KEYS else key_of(x)))
            plain = plain and not isinstance(x, DuckArray)
    return arguments, values, tracked, plain
