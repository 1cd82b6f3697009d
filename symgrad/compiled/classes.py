"""The attributes of modules and classes, on which a program depends if the function's code has their names."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Iterator
from typing import Any

from symgrad.autograd.function import Function
from symgrad.compiled.contents import MISSING, Check, Part, alike
from symgrad.compiled.kinds import is_library

__all__ = ["OCCASIONS", "class_check", "classes_of", "described", "put", "shared_parts"]

RULES = ("forward", "backward", "vjp", "jvp", "vmap", "setup_context", "symbolic")  # methods of a `Function` that the library calls
# methods that run when an instance is made, copied or removed, when a class is made, or when an instance is written as text; each group with names
# that code has which does so, besides that of the class itself
MAKING = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__set_name__", "__del__")
COPYING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__copy__", "__deepcopy__")
WRITING = ("__repr__", "__str__", "__format__")
OCCASIONS = {MAKING: frozenset("type __class__ __new__ copy deepcopy replace evolve loads load".split()),
             COPYING: frozenset("copy deepcopy replace dumps dump loads load pickle".split()),
             WRITING: frozenset("repr str print format format_map ascii pformat pprint".split())}
OCCASIONAL = frozenset(name for group in OCCASIONS for name in group)
DESCRIBED = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")  # what functions and classes say about themselves


def classes_of(value: Any) -> list[type]:
    """The classes in which attributes of an object, or of a class, are looked up, without those of libraries."""
    kind = type(value)
    bases = (*value.__mro__, *kind.__mro__) if isinstance(value, type) else kind.__mro__
    return [base for base in bases if not is_library(base.__module__)]


def described(value: Any) -> Iterator[Part]:
    """What a function or a class says about itself, if code has the names."""
    for name in DESCRIBED:
        read = functools.partial(_said, value, name)
        yield Part(f".{name}", read(), read, attribute=name, loose=True, shared=True)


def _said(value: Any, name: str) -> Any:
    """One of these; MISSING for annotations that cannot be evaluated, and for a class without any, which would get an empty dictionary."""
    if name == "__annotations__" and isinstance(value, type):
        return value.__dict__.get(name, MISSING)
    try:
        return getattr(value, name, MISSING)
    except NameError:
        return MISSING


def shared_parts(value: Any) -> Iterator[Part]:
    """The attributes of a module, of a class, or of the class of an object: on which a program depends if code that it comes from has their names."""
    if isinstance(value, types.ModuleType):
        for name, x in list(value.__dict__.items()):
            attribute = "__call__" if name == "__getattr__" else name  # which gives attributes that are not there
            yield Part(f".{name}", x, functools.partial(operator.getitem, value.__dict__, name), functools.partial(put, value.__dict__, name),
                       attribute, True, True)
        return
    if isinstance(value, type):
        yield from described(value)
    for base in classes_of(value):
        for name, x in list(base.__dict__.items()):
            inner = getattr(x, "fget", None) or getattr(x, "__func__", None) or getattr(x, "func", None) or x
            if isinstance(inner, types.FunctionType):
                called = name == "forward" or name.startswith("__") or name in RULES and issubclass(base, Function)
                called = called and (name not in OCCASIONAL or isinstance(value, type))  # code that has the class may make an object
                if isinstance(x, classmethod) and name not in OCCASIONAL:
                    yield Part("", value if isinstance(value, type) else type(value), attribute=name, shared=True)
                yield Part(f".{name}", inner, attribute="__call__" if called else name, shared=True)
            elif not name.startswith("__") and not isinstance(x, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                yield Part(f".{name}", x, functools.partial(operator.getitem, base.__dict__, name), functools.partial(_set_on, base, name), name,
                           shared=True)


def _set_on(base: type, name: str, value: Any) -> None:
    if value is MISSING:
        type.__delattr__(base, name)
    else:
        type.__setattr__(base, name, value)


def put(space: dict[str, Any], name: str, value: Any) -> None:
    """Write a global variable, or delete one that was not there."""
    if value is MISSING:
        space.pop(name, None)
    else:
        space[name] = value


def class_check(base: type, names: Any) -> Check:
    """The check of what a class has under names."""
    space = base.__dict__
    own = [name for name in space if name in names or name in RULES or name.startswith("__") and callable(space[name])]
    before, count, order = [space[name] for name in own], len(space), base.__mro__

    def check() -> str | None:
        if len(space) != count or base.__mro__ is not order:
            return ""
        for name, x in zip(own, before):
            if space[name] is not x and not alike(x, space[name]):
                return f".{name}"
        return None

    return check
