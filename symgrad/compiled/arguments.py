"""The arguments of a compiled function: values that may differ from call to call, and those for which a program holds."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.compiled.contents import bits_of
from symgrad.compiled.kinds import is_plain_object
from symgrad.dtypes.dtype import DType
from symgrad.engine.tensor import Tensor
from symgrad.trees import Spec as Form

__all__ = ["KEYS", "Given", "has_attributes", "kinds_of_arguments", "looks_of", "properties_read"]

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


# What a function may read of tensors besides their elements, shapes and dtypes


def _graphs(xs: Sequence[Any]) -> list[Any]:
    return [(x.requires_grad, x.is_leaf, getattr(x, "_grad", None) is None) for x in xs if isinstance(x, Tensor)]


def _strides(xs: Sequence[Any]) -> list[Any]:
    return [x._value.strides for x in xs if isinstance(x, Tensor)]


def _types(xs: Sequence[Any]) -> list[type]:
    return [*map(type, xs)]


def _identities(xs: Sequence[Any]) -> list[int]:
    """For each tensor or array, the first that is the same object."""
    first: dict[int, int] = {}
    return [first.setdefault(id(x), i) for i, x in enumerate(xs) if isinstance(x, (Tensor, np.ndarray))]


# each with the names by which code reads it
PROPERTIES: dict[str, tuple[Callable[[Sequence[Any]], list[Any]], tuple[str, ...]]] = {
    "requires_grad, is_leaf or grad": (_graphs, ("requires_grad", "is_leaf", "grad", "grad_fn", "retains_grad")),
    "the strides": (_strides, ("stride", "strides", "is_contiguous")),
    "the type": (_types, ("isinstance", "issubclass", "type", "__class__", "is_tensor", "is_parameter", "getattr", "hasattr", "vars")),
    "the identity": (_identities, ("is", "id")),
}


def properties_read(names: Container[str]) -> list[str]:
    """The properties of tensors that code with some names may read."""
    return [name for name, (_, words) in PROPERTIES.items() if any([word in names for word in words])]


def looks_of(properties: Sequence[str], xs: Sequence[Any]) -> list[list[Any]]:
    """Each of the properties of the tensors among some values."""
    return [PROPERTIES[name][0](xs) for name in properties]


def has_attributes(form: Form) -> str:
    """The name of a type of sequences in a tree whose instances have attributes, which are no part of the tree."""
    kind = form.kind
    if kind is not None and issubclass(kind, (tuple, list)) and kind.__dictoffset__ and not hasattr(kind, "_fields"):
        return kind.__name__
    return next((name for part in form.parts if (name := has_attributes(part))), "")


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
