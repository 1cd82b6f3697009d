"""The kinds of values that a compiled function may read: how each is compared before a run, put back after a recording, and searched for others.

A value of no kind cannot be compared, and a function that reads it is not recorded.
"""

from __future__ import annotations

import array
import collections
import contextvars
import enum
import functools
import gc
import operator
import pickle
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd.function import Function
from symgrad.carriers.duck import Unrecordable
from symgrad.compiled import contents
from symgrad.compiled.contents import MISSING, Check, Part, Snapshot
from symgrad.factories.generators import Generator
from symgrad.graph.op import Op
from symgrad.system.errorstate import run_quietly


class State(NamedTuple):
    """The state of a source of random numbers."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


NUMBERS = (bool, int, float, complex, str, bytes)  # a subclass may have attributes of its own
# instances that do not change, or from which no number is read
CONSTANT_MODULES = frozenset("sympy mpmath typing inspect logging ast string pathlib uuid zoneinfo warnings contextlib abc pytest _pytest".split())
LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event, threading.Semaphore)
C_FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
               types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, type(np.sum),
               type(State.read))
CONSTANTS = (*LOCKS, enum.Enum, types.GenericAlias, types.UnionType, types.CodeType, operator.itemgetter)
RANDOM = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator, Generator)
RULES = ("forward", "vjp", "jvp", "surface.prepare", "numerics.inverse")  # of an op
OPAQUE = frozenset("builtins numpy scipy sympy mpmath functools itertools operator math collections typing threading".split())


class Kind(NamedTuple):
    """How values of a kind are watched."""

    parts: Callable[[Any], Iterable[Part]] = lambda value: ()
    content: Callable[[Any], Snapshot | None] = lambda value: None


def _value_in_context(x: contextvars.ContextVar[Any]) -> list[Part]:
    """The value of a context variable, its default if it was not set; a value that was set cannot be taken away again."""
    try:
        default = contextvars.Context().run(x.get)
    except LookupError:
        default = MISSING
    def write(value: Any) -> None:
        x.set(value)

    read = functools.partial(x.get, default)
    if read() is MISSING:
        raise Unrecordable(f"the context variable {x.name}, which has no value. Set one before the first call")
    return [Part(".get()", read(), read, write, loose=True)]


@functools.lru_cache(4096)
def is_library(module: str) -> bool:
    """Whether a module is installed or part of Python, so that a program does not depend on its variables."""
    package = module.partition(".")[0]
    if package in OPAQUE or package == "symgrad" or package in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


CONSTANT = Kind()
OBJECT = Kind(contents.attributes_of, contents.attribute_content)


def _with_attributes(kind: Kind) -> Kind:
    """The kind of instances of subclasses, which may have attributes as well."""
    def content(x: Any) -> Snapshot | None:
        own, attributes = kind.content(x), contents.attribute_content(x)
        if own is None or attributes is None:
            return own or attributes

        def undo() -> None:
            for each in (own, attributes):
                if each.undo is not None:
                    each.undo()

        return Snapshot(lambda: own.check() if (found := attributes.check()) is None else found, undo)

    return Kind(lambda x: [*kind.parts(x), *contents.attributes_of(x)], content)


def _views(x: Any) -> Iterator[Part]:
    yield from contents.entries_of(dict(x))


def _proxy(x: Any) -> Snapshot:
    before = dict(x)
    return Snapshot(lambda: None if len(x) == len(before) and all(map(operator.is_, x.values(), before.values())) and [*x] == [*before] else "")


def _of_thread(x: Any) -> Iterator[Part]:
    """The attributes of an object that has others in each thread."""
    for name, y in list(x.__dict__.items()):
        yield Part(f".{name}", y, functools.partial(getattr, x, name), functools.partial(setattr, x, name), name, True)


def _names_of_thread(x: Any) -> Snapshot:
    before = {*x.__dict__}
    return Snapshot(lambda: None if x.__dict__.keys() == before else "")


def _matrix_content(x: Any) -> Snapshot:
    before = x.as_immutable()

    def undo() -> None:
        if x.as_immutable() != before and x.shape == before.shape:
            x[:, :] = before

    return Snapshot(lambda: None if x.as_immutable() == before else "", undo)


def _rules(op: Op) -> Iterator[Part]:
    """The rules of an op that a user has declared."""
    for name in RULES:
        read = operator.attrgetter(name)
        if (rule := read(op)) is not None:
            yield Part(f".{name}", rule, functools.partial(read, op))
    yield from [Part(".partials", rule, functools.partial(contents.returned, rule)) for rule in op.partials if rule is not None]


# The first entry of which a value is an instance is that of its kind; instances of a subclass have attributes, too.
KINDS: tuple[tuple[Any, Kind], ...] = (
    (CONSTANTS, CONSTANT),
    (contents.VALUES, CONSTANT),
    ((np.ndarray, np.memmap), Kind(contents.array_elements, contents.array_content)),
    ((list, collections.deque), Kind(contents.items_of, contents.sequence_content)),
    (tuple, Kind(contents.items_of)),
    (dict, Kind(contents.entries_of, contents.mapping_content)),
    ((set, frozenset), Kind(contents.elements_of, contents.set_content)),
    ((array.array, bytearray, memoryview), Kind(content=contents.memory_content)),
    (types.MethodType, Kind(contents.fields("__self__", "__func__"))),
    (types.FunctionType, Kind(content=contents.function_content)),  # what its code reads is found by `Captures`
    ((staticmethod, classmethod), Kind(contents.fields("__func__"))),
    (property, Kind(contents.fields("fget"))),
    (functools.partial, Kind(contents.fields("func", "args", "keywords"))),
    (functools._lru_cache_wrapper, Kind(contents.cache_parts, contents.cache_content)),
    ((operator.attrgetter, operator.methodcaller), Kind(contents.arguments_of)),
    (types.CellType, Kind(lambda x: [Part("", contents.cell_content(x), functools.partial(contents.cell_content, x),
                                          functools.partial(contents.write_cell, x), loose=True)])),
    ((type({}.keys()), type({}.values()), type({}.items())), Kind(contents.fields("mapping"))),
    (types.MappingProxyType, Kind(_views, _proxy)),
    (weakref.ref, Kind(lambda x: [Part("()", x(), x, loose=True)])),
    (contextvars.ContextVar, Kind(_value_in_context)),
    (np.ufunc, Kind(lambda x: contents.elements_of([y for y in gc.get_referents(x) if callable(y)]))),  # the function of np.frompyfunc
    (C_FUNCTIONS, Kind(lambda x: [] if isinstance(getattr(x, "__self__", None), types.ModuleType) or x == run_quietly else
                       contents.fields("__self__")(x))),
    (Op, Kind(_rules)),
    (RANDOM, CONSTANT),  # drawing from one is seen by its state
    (BaseException, Kind(lambda x: [part._replace(loose=True) for part in contents.fields("args")(x)])),
    (threading.local, Kind(_of_thread, _names_of_thread)),
    (types.SimpleNamespace, OBJECT),
    (NUMBERS, CONSTANT),
    ((types.ModuleType, type), CONSTANT),  # their attributes are found by `Captures`
)


def is_plain_object(x: Any) -> bool:
    """Whether an object has no state but its attributes."""
    return kind_of(x) is OBJECT


def kind_of(x: Any) -> Kind | None:
    """The kind of a value; None if it cannot be watched."""
    if x is MISSING or type(x) in contents.PLAIN:
        return CONSTANT
    kind: Any = type(x)
    return _kind_of_type(kind)


@functools.lru_cache(4096)
def _kind_of_type(kind: type) -> Kind | None:
    if any([base.__name__ == "MutableRepMatrix" for base in kind.__mro__]):  # of SymPy
        return Kind(content=_matrix_content)
    constant = kind.__module__.partition(".")[0] in CONSTANT_MODULES and kind.__module__ != "mpmath.matrices.matrices"
    if constant or kind.__name__ in ("cython_function_or_method", "fused_cython_function"):
        return CONSTANT
    native = [base for base in kind.__mro__ if not contents.is_python_class(base) and base is not object]
    for bases, found in KINDS:
        if issubclass(kind, bases):
            known = bases if isinstance(bases, tuple) else (bases,)
            if kind in known or found is OBJECT:
                return found
            return _with_attributes(found) if any(contents.is_python_class(base) for base in kind.__mro__) else found
    return OBJECT if not native else None


# Random numbers


def state_of(x: Any) -> State | None:
    """How the state of a source of random numbers is read and written; None for other values."""
    if isinstance(x, random.Random):
        return State(x.getstate, x.setstate)
    if isinstance(x, np.random.RandomState):
        return State(lambda: pickle.dumps(x.get_state()), lambda state: x.set_state(pickle.loads(state)))
    bits = x.bit_generator if isinstance(x, np.random.Generator) else x._bits if isinstance(x, Generator) else x
    if isinstance(bits, np.random.BitGenerator):
        return State(lambda: pickle.dumps(bits.state), lambda state: setattr(bits, "state", pickle.loads(state)))
    return None


METHODS = ("forward", "backward", "vjp", "jvp", "vmap", "setup_context", "symbolic")  # methods of a `Function` that the library calls
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
                called = name == "forward" or name.startswith("__") or name in METHODS and issubclass(base, Function)
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
    own = [name for name in space if name in names or name in METHODS or name.startswith("__") and callable(space[name])]
    before, count, order = [space[name] for name in own], len(space), base.__mro__

    def check() -> str | None:
        if len(space) != count or base.__mro__ is not order:
            return ""
        for name, x in zip(own, before):
            if space[name] is not x and not contents.alike(x, space[name]):
                return f".{name}"
        return None

    return check
