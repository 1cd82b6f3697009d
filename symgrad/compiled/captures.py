"""Captured values: what a function reads besides its arguments, found through closures, defaults, globals, attributes and containers.

Tensors become inputs of the program, so that the program reads their present values. Everything else is compared before each run: numbers, strings
and arrays by value, other objects by identity.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.duck import Unrecordable
from symgrad.engine.tensor import Tensor

__all__ = ["Captures"]

PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic, np.dtype)
CONTAINERS = (list, tuple, dict, set, frozenset)
OPAQUE = ("builtins", "numpy", "scipy", "sympy", "mpmath", "functools", "itertools", "operator", "math", "collections", "typing", "threading")
OWN = {"symgrad.func": ("_settings",), "symgrad.compiled": ("function",)}  # what the library's own objects depend on; the rest they remember
LARGE = 1 << 16  # bytes of an array that is compared without a copy, which takes longer for fewer
LARGEST = 4000  # places that are compared before each run
FIXED = (tuple, frozenset)  # what they refer to stays
Read = Callable[[], Any]
Check = Callable[[Any], bool]
MISSING = object()


class Part(NamedTuple):
    """A value that another one refers to."""

    name: str  # with the names of what refers to it
    attribute: str  # of a class or module
    read: Read | None  # reads it again; None for methods, which are followed and not compared
    value: Any
    fixed: bool = False  # what refers to it is compared, and cannot change


class Captures:
    """The captured tensors of a function, and the other values on which its program depends."""

    def __init__(self, function: Any):
        self.tensors: list[Read] = []
        self.same: list[tuple[Read, Any, Check | None, str]] = []  # values that are the same objects, or equal ones; each with its name
        self.checks: list[tuple[Read, Check, str]] = []  # values that may change and be the same objects
        self._seen: set[int] = set()
        self._held: list[Any] = []  # keeps the objects whose ids are known alive while they are searched
        names = {"__call__"}  # that reached code may read, or calls without a name
        waiting: list[Part] = []  # attributes of classes and modules whose names no reached code has
        stack: list[Part] = [Part("", "", None, function)]
        while stack:
            name, _, read, value, fixed = stack.pop()
            if read is not None and isinstance(value, Tensor):
                if id(value) not in self._seen:
                    self._seen.add(id(value))
                    self.tensors.append(read)
                    self._held.append(value)
                continue
            if read is not None:
                check = _check_of(value)
                if isinstance(value, (np.ndarray, list, dict, set)) and check is not None:
                    self.checks.append((read, check, name))
                elif not fixed:
                    self.same.append((read, value, check, name))
            if id(value) not in self._seen and not isinstance(value, (*PLAIN, np.ndarray)):
                self._seen.add(id(value))
                self._held.append(value)
                if isinstance(value, types.FunctionType) and not _is_own(value):
                    names |= _names(value.__code__)
                stack += [part._replace(name=name + part.name) for part in _parts(value)]
                waiting += [part._replace(name=name + part.name) for part in _shared_parts(value)]
            if not stack:
                stack = [part for part in waiting if part.attribute in names]
                waiting = [part for part in waiting if part.attribute not in names]
            if len(self.checks) + len(self.same) > LARGEST:
                raise Unrecordable(f"the function refers to more than {LARGEST} values besides its arguments")
        self._seen.clear()
        self._held.clear()

    def changed(self) -> str | None:
        """The name of a value that is not as it was; None if all but the tensors are."""
        try:
            for read, value, equal, name in self.same:
                now = read()
                if now is not value and (equal is None or not equal(now)):
                    return name.lstrip(".")
            for read, check, name in self.checks:
                if not check(read()):
                    return name.lstrip(".")
        except (KeyError, IndexError, AttributeError, ValueError):  # it is not there any more
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


def _same(x: Any) -> Any:
    return x


def _check_of(value: Any) -> Check | None:
    """The comparison of a present value with a former one; None if it must be the same object, which cannot change."""
    kind = type(value)
    if isinstance(value, PLAIN):
        text = repr(value)
        return lambda now: type(now) is kind and (now == value or repr(now) == text)
    if kind is np.ndarray:
        shape, dtype, large = value.shape, value.dtype, value.nbytes > LARGE and value.dtype.kind != "O"
        bits = np.dtype(f"u{dtype.itemsize}") if large and dtype.itemsize in (1, 2, 4, 8) else None
        before: Any = value.tobytes() if bits is None else value.copy().view(bits)

        def equal(now: Any) -> bool:
            same = now is value and now.shape == shape and now.dtype == dtype
            return same and (now.tobytes() == before if bits is None else bool((now.view(bits) == before).all()))

        return equal
    if kind in (list, dict, set):
        count, keys = len(value), tuple(value) if kind is dict else None
        return lambda now: now is value and len(now) == count and (keys is None or tuple(now) == keys)
    if kind is types.MethodType:
        return lambda now: now == value
    return None


@functools.cache
def _is_library(module: str) -> bool:
    """Whether a module is installed or part of Python, so that a program does not depend on its variables."""
    package = module.partition(".")[0]
    if package in OPAQUE or package in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _is_opaque(value: Any) -> bool:
    """Whether an object belongs to a library, so that a program does not depend on its attributes."""
    if isinstance(value, types.ModuleType):
        return _is_library(value.__name__) or value.__name__.partition(".")[0] == "symgrad"
    if isinstance(value, types.BuiltinFunctionType):
        return True
    module = (getattr(value, "__module__", None) if isinstance(value, (types.FunctionType, type)) else type(value).__module__) or ""
    if module.partition(".")[0] == "symgrad":
        return isinstance(value, type) or not module.startswith(("symgrad.nn", "symgrad.func", "symgrad.compiled"))
    return _is_library(module)


def _is_own(function: types.FunctionType) -> bool:
    """Whether a function is one of this library, which depends on what it closes over alone."""
    return (function.__module__ or "").partition(".")[0] == "symgrad"


def _shared_parts(value: Any) -> Iterator[Part]:
    """The attributes of a module, of a class, or of the class of an object: on which a program depends if code that it comes from has their names."""
    if isinstance(value, types.ModuleType):
        if not _is_opaque(value):
            yield from [Part(f".{name}", name, functools.partial(operator.getitem, value.__dict__, name), x) for name, x in value.__dict__.items()]
        return
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, *CONTAINERS)):
        return
    for base in (value if isinstance(value, type) else type(value)).__mro__:
        if _is_opaque(base):
            continue
        for name, x in base.__dict__.items():
            inner = getattr(x, "fget", None) or getattr(x, "__func__", None) or getattr(x, "func", None) or x
            if isinstance(inner, types.FunctionType):
                yield Part(f".{name}", "__call__" if name == "forward" or name.startswith("__") else name, None, inner)
            elif not name.startswith("__") and not isinstance(x, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                yield Part(f".{name}", name, functools.partial(operator.getitem, base.__dict__, name), x)


def _parts(value: Any) -> Iterator[Part]:
    """The values that an object refers to."""
    kind = type(value)
    if isinstance(value, CONTAINERS):
        if isinstance(value, (set, frozenset)):
            yield from (Part("{...}", "", functools.partial(_same, x), x, True) for x in value)
        else:
            for key, x in value.items() if isinstance(value, dict) else enumerate(value):
                yield Part(f"[{key!r:.40}]", "", functools.partial(operator.getitem, value, key), x, kind is tuple)
        return
    if kind is functools.partial:
        yield from _fields(value, ("func", "args", "keywords"))
        return
    if kind is types.MethodType:
        yield from _fields(value, ("__self__", "__func__"))
        return
    if isinstance(value, (types.ModuleType, type)) or _is_opaque(value):
        return
    for package, names in OWN.items():
        if kind.__module__.startswith(package):
            yield from _fields(value, tuple([name for name in names if hasattr(value, name)]))
            return
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield Part(f".{name}", "", functools.partial(getattr, cell, "cell_contents"), cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        if _is_own(value):
            return
        yield from _fields(value, ("__defaults__", "__kwdefaults__"))
        space = value.__globals__
        for name in _names(value.__code__):
            x = space.get(name)
            if name in space and not ((callable(x) or isinstance(x, types.ModuleType)) and _is_opaque(x)):
                yield Part(f".{name}", "", functools.partial(operator.getitem, space, name), x)
        return
    found = getattr(value, "__dict__", None)
    if isinstance(found, dict):
        for key, x in list(found.items()):
            yield Part(f".{key}", "", functools.partial(operator.getitem, found, key), x)
    for slot in (name for base in kind.__mro__ for name in _slots(base)):
        if hasattr(value, slot) and slot not in ("__dict__", "__weakref__"):
            yield Part(f".{slot}", "", functools.partial(getattr, value, slot), getattr(value, slot))


def _slots(kind: type) -> tuple[str, ...]:
    found = kind.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def _fields(value: Any, names: tuple[str, ...]) -> Iterator[Part]:
    for name in names:
        yield Part(f".{name}", "", functools.partial(getattr, value, name), getattr(value, name))


@functools.lru_cache(4096)
def _names(code: types.CodeType) -> frozenset[str]:
    """The names of globals and attributes that a function and the functions defined in it may read."""
    out = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            out |= _names(x)
    return frozenset(out)
