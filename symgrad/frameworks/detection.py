"""The framework of a function, found without importing any: by its type, and by the objects that the names in its code refer to."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["framework_of", "FRAMEWORKS", "is_foreign", "named_framework"]

FRAMEWORKS = ("torch", "jax", "autograd", "numpy", "symgrad")
FOREIGN = ("torch", "jax", "autograd")  # frameworks whose functions symgrad cannot run
PACKAGES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "autograd": "autograd", "symgrad": "symgrad", "numpy": "numpy", "scipy": "numpy"}
DEPTH = 4  # depth of calls that is searched


def named_framework(name: str) -> str:
    """The name of a framework. Raises ValueError for an unknown one."""
    if name not in FRAMEWORKS:
        raise ValueError(f"check: framework is {name!r}; expected one of {', '.join(map(repr, FRAMEWORKS))}")
    return name


def framework_of(function: Callable[..., Any]) -> str | None:
    """The framework of a function: the first of torch, jax, autograd, symgrad and numpy that it or a function it calls uses, else None.

    >>> import numpy as np
    >>> framework_of(lambda x: np.exp(x)), framework_of(lambda x: x * x)
    ('numpy', None)
    """
    found = set(_frameworks_used(function, DEPTH, set()))
    return next((name for name in ("torch", "jax", "autograd", "symgrad", "numpy") if name in found), None)


def is_foreign(function: Any) -> bool:
    """Whether a function is a tuple with its derivatives, or written for a framework that symgrad cannot run.

    >>> is_foreign(lambda x: x * x), is_foreign((lambda x: x * x, lambda x: 2 * x))
    (False, True)
    """
    return isinstance(function, tuple) or framework_of(function) in FOREIGN


def _framework_of_package(name: Any) -> str | None:
    return PACKAGES.get(name.partition(".")[0]) if isinstance(name, str) else None


def _frameworks_used(obj: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """The frameworks that an object belongs to or that its code uses."""
    if id(obj) in seen or obj is None:
        return
    seen.add(id(obj))
    if isinstance(obj, ModuleType):
        found = _framework_of_package(obj.__name__)
        if found:
            yield found
        return
    if isinstance(obj, functools.partial):
        for part in (obj.func, *obj.args):
            yield from _frameworks_used(part, depth, seen)
        return
    owner = getattr(obj, "__self__", None)
    cls = obj if inspect.isclass(obj) else type(obj)
    classes = [*cls.__mro__, *(owner.__mro__ if inspect.isclass(owner) else () if isinstance(owner, ModuleType) else type(owner).__mro__)]
    modules = [getattr(obj, "__module__", None), *(getattr(c, "__module__", None) for c in classes)]
    if isinstance(owner, ModuleType):
        modules.append(owner.__name__)
    own = isinstance(obj, FunctionType)  # detected by its code, since a function defined in symgrad need not use symgrad
    if not own and "symgrad" in map(_framework_of_package, modules):  # nodes of Functions have torch's module name for display
        yield "symgrad"
        return
    yield from (found for found in map(_framework_of_package, modules) if found and not (own and found == "symgrad"))
    if not depth or own and str(obj.__module__).startswith("scipy."):  # SciPy's code refers to other frameworks whose arrays it accepts
        return
    if hasattr(obj, "__wrapped__"):
        yield from _frameworks_used(obj.__wrapped__, depth, seen)
    if inspect.isclass(owner) or inspect.isclass(obj):
        for part in vars(obj if inspect.isclass(obj) else owner).values():
            yield from _frameworks_used(getattr(part, "__func__", part) if callable(part) or hasattr(part, "__func__") else None, depth - 1, seen)
    if inspect.ismethod(obj):
        yield from _frameworks_used(obj.__func__, depth, seen)
    elif isinstance(obj, FunctionType):
        yield from _names_in_code(obj, depth, seen)
    elif not inspect.isclass(obj) and not inspect.isroutine(obj):
        yield from _frameworks_used(vars(type(obj)).get("__call__"), depth - 1, seen)


def _names_in_code(function: FunctionType, depth: int, seen: set[int]) -> Iterator[str]:
    """The objects that the names in a function's code refer to: globals, imports inside it, and its closure."""
    stack: list[CodeType] = [function.__code__]
    while stack:
        code = stack.pop()
        stack += [c for c in code.co_consts if isinstance(c, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME":
                yield from filter(None, [_framework_of_package(step.argval)])
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in function.__globals__:
                yield from _frameworks_used(function.__globals__[step.argval], depth - 1, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _frameworks_used(cell.cell_contents, depth - 1, seen)
        except ValueError:  # an empty cell
            continue
