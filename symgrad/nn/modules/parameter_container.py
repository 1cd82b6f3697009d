"""Modules that contain parameters, or other objects: in a list, or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, Self

from symgrad.engine.tensor import Tensor
from symgrad.methods.predicates import typename
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList", "check_iterable", "pairs_of", "position"]


def position(index: Any, length: int) -> int:
    """An index counted from 0. Raises IndexError if it is out of range."""
    at = operator.index(index)
    if not -length <= at < length:
        raise IndexError(f"list: the index {at} is out of range for {length} members")
    return at % length


def check_iterable(container: Any, method: str, values: Any, tensors: bool = False) -> None:
    """Raise TypeError for values that cannot be iterated over, and for a tensor unless `tensors` is true."""
    if not isinstance(values, Iterable) or isinstance(values, Tensor) and not tensors:
        raise TypeError(f"{type(container).__name__}.{method}: it takes an iterable, not {type(values).__name__}")


def pairs_of(container: Any, values: Any) -> Iterable[Any]:
    """The names and values of a mapping, or of pairs. Raises TypeError and ValueError for anything else."""
    if hasattr(values, "keys"):
        return values.items()
    check_iterable(container, "update", values, True)
    pairs = list(values)
    for pair in pairs:
        check_iterable(container, "update, of each pair,", pair, True)
        if len(list(pair)) != 2:
            raise ValueError(f"{type(container).__name__}.update: it takes pairs of a name and a value, not {len(list(pair))} objects")
    return pairs


def _as_parameter(value: Any) -> Any:
    """A parameter of a tensor, and any other object as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(key: Any, value: Any, kind: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    return f"  ({key}): Parameter containing: [{kind(value)} of size {'x'.join(map(str, value.shape))}]"


class _Parameters(Module):
    """A container of parameters, which is not called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__}: it is not called, as it has no method forward")


class ParameterList(_Parameters):
    """A list of parameters, which are parameters of the module the list is assigned to. Tensors in it become parameters."""

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(position(index, len(self))), _as_parameter(value))

    def append(self, value: Any) -> Self:
        """Add a parameter at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end. Raises TypeError unless they are an iterable of parameters."""
        check_iterable(self, "extend", values)
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        """The dtype and the sizes of each parameter."""
        return "\n".join(_line(i, value, lambda t: t.dtype) for i, value in enumerate(self))


class ParameterDict(_Parameters):
    """Parameters by name, which are parameters of the module the dictionary is assigned to. Tensors in it become parameters.

    The names of a plain mapping are sorted; pairs, an OrderedDict and a ParameterDict keep their order.

    Raises TypeError for keys that are not strings.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.ParameterDict({"a": symgrad.ones(2, 3)})
    ParameterDict(  (a): Parameter containing: [torch.DoubleTensor of size 2x3])
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._checked_key(key), _as_parameter(value))
        self._keys[key] = None

    @staticmethod
    def _checked_key(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: a key must be a string, not {type(key).__name__} {key!r}")
        return key

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same parameters."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a key, which is set to `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it. Raises AttributeError if there is none of that name."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last key and its parameter, and return both. Raises KeyError if the dictionary is empty."""
        key, _ = self._keys.popitem()
        value = getattr(self, key)
        delattr(self, key)
        return key, value

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a key, or `default` if there is none."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with the same parameter under all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their parameters."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add parameters by name, from a mapping or from pairs. Raises TypeError and ValueError for other values."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in pairs_of(self, parameters):
            self[key] = value

    def extra_repr(self) -> str:
        """The type and the sizes of each parameter."""
        return "\n".join(_line(key, value, typename) for key, value in self.items())

    def __or__(self, other: Any) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self
