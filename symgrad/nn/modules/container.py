"""Modules that contain others: in order, in a list, by name."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from symgrad.nn.modules.module import Module
from symgrad.nn.modules.parameter_container import ParameterDict, ParameterList, check_iterable, pairs_of, position

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Modules with names, given as keywords; deprecated, since a `Module` does the same."""

    def __init__(self, **kwargs: Any):
        super().__init__()
        warnings.warn("Container is deprecated; use a subclass of Module", FutureWarning, stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Ordered(Module):
    """The base of `Sequential` and `ModuleList`: modules in order, named by their numbers unless names are given."""

    def _names(self) -> list[str]:
        return list(self._modules)

    def _set_modules(self, modules: Iterable[Any]) -> None:
        """Set the modules, named by their positions."""
        given = list(modules)
        self._modules.clear()
        for i, module in enumerate(given):
            self.add_module(str(i), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(list(self._modules.items())[index])
        return self._modules[self._names()[position(index, len(self))]]

    def _slice(self, items: list[tuple[str, Any]]) -> Self:
        raise NotImplementedError

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._names()[position(index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        names = self._names()
        for name in names[index] if isinstance(index, slice) else [names[position(index, len(self))]]:
            delattr(self, name)
        self._set_modules(self._modules.values())

    def pop(self, key: Any) -> Any:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Add a module at the end. Raises TypeError for an object that is not a module."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end. Raises TypeError unless they are an iterable of modules."""
        for module in list(sequential):
            self.append(module)
        return self

    def _insert(self, index: int, module: Module) -> None:
        modules = list(self)
        modules.insert(index, module)
        self._set_modules(modules)


class Sequential(_Ordered):
    """Modules in sequence: each is called with the output of the one before it.

    Give them in order, or as an OrderedDict with names.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Sequential(nn.ReLU(), nn.Flatten(0))(symgrad.tensor([[-1.0, 2.0]]))
    tensor([0., 2.])
    """

    def __init__(self, *args: Any):
        super().__init__()
        given = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else ((str(i), module) for i, module in enumerate(args))
        for name, module in given:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """The output of the last module."""
        for module in self:
            input = module(input)
        return input

    def _slice(self, items: list[tuple[str, Any]]) -> Self:
        return type(self)(dict(items))

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self).__iadd__(other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"Sequential: + takes another Sequential, not {type(other).__name__}")
        return self.extend(other)

    def _times(self, other: Any) -> list[Any]:
        if not isinstance(other, int):
            raise TypeError(f"Sequential: * takes an integer, not {type(other).__name__}")
        if other <= 0:
            raise ValueError(f"Sequential: * takes a positive integer, not {other}")
        return [module for _ in range(other) for module in self]

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*self._times(other))

    def __rmul__(self, other: Any) -> Sequential:
        return self * other

    def __imul__(self, other: Any) -> Self:
        return self.extend(self._times(other)[len(self):])

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at an index. Raises IndexError for an index out of range."""
        if not isinstance(module, Module):
            raise AssertionError(f"Sequential.insert: it takes a module, not {type(module).__name__}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Sequential.insert: the index {index} is out of range for {len(self)} modules")
        self._insert(index, module)
        return self


class ModuleList(_Ordered):
    """A list of modules, whose parameters are parameters of the module the list is assigned to."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _slice(self, items: list[tuple[str, Any]]) -> Self:
        return type(self)(module for _, module in items)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(itertools.chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        check_iterable(self, "extend", modules)
        return super().extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at an index."""
        self._insert(index, module)

    def _child_lines(self) -> list[str]:
        lines, start = [], 0
        for text, run in itertools.groupby(map(repr, self)):
            count = len(list(run))
            where, times = (f"({start})", "") if count == 1 else (f"({start}-{start + count - 1})", f"{count} x ")
            lines.append(f"{where}: {times}" + text.replace("\n", "\n  "))
            start += count
        return lines


class ModuleDict(Module):
    """Modules by name, in the order they were added, whose parameters are parameters of the module the dictionary is assigned to."""

    def __init__(self, modules: Any = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it. Raises KeyError if there is none of that name."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules by name, from a mapping or from pairs. Raises TypeError and ValueError for other values."""
        for name, module in pairs_of(self, modules):
            self[name] = module
