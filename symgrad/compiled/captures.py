"""Captured values: what a function reads besides its arguments, found through closures, defaults, globals, attributes and containers.

Tensors become inputs of the program, so that the program reads their present values. Everything else is compared before each run: numbers, strings
and arrays by value, other objects by identity.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symgrad.carriers.duck import Unrecordable
from symgrad.engine.tensor import Tensor

__all__ = ["Captures"]

PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic, np.dtype)
CONTAINERS = (list, tuple, dict, set, frozenset)
OPAQUE = ("builtins", "numpy", "scipy", "sympy", "mpmath", "functools", "itertools", "operator", "math", "collections", "typing", "threading")
OWN = {"symgrad.func": ("_settings",), "symgrad.compiled": ("function",)}  # what the library's own objects depend on; the rest they remember
LARGEST = 4000  # places that are compared before each run
Read = Callable[[], Any]
MISSING = object()


class Captures:
    """The captured tensors of a function, and the other values on which its program depends."""

    def __init__(self, function: Any):
        self.tensors: list[Read] = []
        self.checks: list[tuple[Read, Callable[[Any], bool], str]] = []  # each with the name of the value
        self._seen: set[int] = set()
        self._held: list[Any] = []  # keeps the objects whose ids are known alive while they are searched
        stack: list[tuple[str, Read | None, Any]] = [("", None, function)]
        while stack:
            name, read, value = stack.pop()
            if read is not None and isinstance(value, Tensor):
                if id(value) not in self._seen:
                    self._seen.add(id(value))
                    self.tensors.append(read)
                    self._held.append(value)
                continue
            if read is not None:
                self.checks.append((read, _check_of(value), name))
            if id(value) in self._seen or isinstance(value, (*PLAIN, np.ndarray)):
                continue
            self._seen.add(id(value))
            self._held.append(value)
            stack += [(name + part, reader, x) for part, reader, x in _parts(value)]
            if len(self.checks) > LARGEST:
                raise Unrecordable(f"the function refers to more than {LARGEST} values besides its arguments")
        self._seen.clear()
        self._held.clear()

    def changed(self) -> str | None:
        """The name of a value that is not as it was; None if all but the tensors are."""
        for read, check, name in self.checks:
            if not check(_tried(read)):
                return name.lstrip(".")
        return None

    def present(self) -> list[Any]:
        """The captured tensors now."""
        return [_tried(read) for read in self.tensors]


def _tried(read: Read) -> Any:
    try:
        return read()
    except (KeyError, IndexError, AttributeError, ValueError):
        return MISSING


def _check_of(value: Any) -> Callable[[Any], bool]:
    """The comparison of a present value with a former one."""
    kind = type(value)
    if isinstance(value, PLAIN):
        text = repr(value)
        return lambda now: now is value or type(now) is kind and (now == value or repr(now) == text)
    if kind is np.ndarray:
        before, shape, dtype = value.tobytes(), value.shape, value.dtype  # bytes are compared ten times as fast as elements
        return lambda now: now is value and now.shape == shape and now.dtype == dtype and now.tobytes() == before
    if kind in (list, dict, set):
        count, keys = len(value), tuple(value) if kind is dict else None
        return lambda now: now is value and len(now) == count and (keys is None or tuple(now) == keys)
    if kind is types.MethodType:
        return lambda now: now == value
    return lambda now: now is value


def _is_opaque(value: Any) -> bool:
    """Whether an object belongs to a library, so that a program does not depend on its attributes."""
    if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
        return True
    module = (getattr(value, "__module__", None) if isinstance(value, types.FunctionType) else type(value).__module__) or ""
    inner = module.startswith("symgrad.") and not module.startswith(("symgrad.nn", "symgrad.func", "symgrad.compiled"))
    return inner or module.split(".")[0] in OPAQUE


def _parts(value: Any) -> Iterator[tuple[str, Read, Any]]:
    """The values that an object refers to, each with its name and a function that reads it again."""
    kind = type(value)
    if isinstance(value, CONTAINERS):
        if isinstance(value, (set, frozenset)):
            yield from (("{...}", (lambda x=x: x), x) for x in value)
        else:
            for key, x in value.items() if isinstance(value, dict) else enumerate(value):
                yield f"[{key!r:.40}]", functools.partial(operator.getitem, value, key), x
        return
    if kind is functools.partial:
        yield from _fields(value, ("func", "args", "keywords"))
        return
    if kind is types.MethodType:
        yield from _fields(value, ("__self__", "__func__"))
        return
    if _is_opaque(value):
        return
    for package, names in OWN.items():
        if kind.__module__.startswith(package):
            yield from _fields(value, tuple([name for name in names if hasattr(value, name)]))
            return
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield f".{name}", functools.partial(getattr, cell, "cell_contents"), cell.cell_contents
            except ValueError:  # an empty cell
                continue
        yield from _fields(value, ("__defaults__", "__kwdefaults__"))
        space = value.__globals__
        for name in _global_names(value.__code__):
            x = space.get(name)
            if name in space and not isinstance(x, (types.ModuleType, type, types.BuiltinFunctionType)) and not (callable(x) and _is_opaque(x)):
                yield f".{name}", functools.partial(operator.getitem, space, name), x
        return
    found = getattr(value, "__dict__", None)
    if isinstance(found, dict):
        for key, x in list(found.items()):
            yield f".{key}", functools.partial(operator.getitem, found, key), x
    for slot in (name for base in kind.__mro__ for name in _slots(base)):
        if hasattr(value, slot) and slot not in ("__dict__", "__weakref__"):
            yield f".{slot}", functools.partial(getattr, value, slot), getattr(value, slot)


def _slots(kind: type) -> tuple[str, ...]:
    found = kind.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def _fields(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Read, Any]]:
    for name in names:
        yield f".{name}", functools.partial(getattr, value, name), getattr(value, name)


def _global_names(code: types.CodeType) -> set[str]:
    """The global names that a function and the functions defined in it may read."""
    out = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            out |= _global_names(x)
    return out
