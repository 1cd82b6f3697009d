"""Values of every kind that a function may capture, each with the ways in which it can be read and changed.

A kind is a function of a number, which returns a `Captured`: how a function reads it, and changes by another number. Kinds in `REFUSED` cannot be
watched, and `symgrad.compile` must say so.
"""

from __future__ import annotations

import array
import collections
import gc
import importlib
import inspect
import io
import itertools
import random
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy

import symgrad

from .captured import Captured, Effect, inverse_or_other, is_positive_definite, weigh
from .captured_data import (
    OwnArray,
    array_of,
    cached,
    cached_array,
    container_of,
    custom_of,
    dictionary_of_keys,
    function_rule,
    getters,
    index,
    large,
    mapped,
    matrix_of,
    module,
    names_of_keys,
    nested,
    number_of,
    numbers_in_a_set,
    object_function,
    order_of_keys,
    partial,
    proxy,
    pullback_rule,
    pushforward_rule,
    raw_memory,
    references,
    rules_of_a_function,
    simple_namespace,
    sparse,
    tensor_of,
    two_names,
    user_dict,
    vectorized,
    view_of_memory,
    wrapped,
)
from .captured_objects import (
    OCCASIONAL,
    among_builtins,
    bases,
    bound_method,
    dataclass,
    default,
    descriptor,
    enumeration,
    function_attribute,
    global_that_may_be_missing,
    global_variable,
    inherited,
    level_of_a_logger,
    module_of_the_user,
    object_of,
    of_a_thread,
    subclass_of,
    variable,
    with_dict,
    with_getattr,
    with_metaclass,
    with_property,
    with_slots,
    with_unread,
)

__all__ = ["EFFECTS", "KINDS", "REFUSED"]

KINDS: dict[str, Callable[[Any], Captured]] = {
    **OCCASIONAL,
    "variable": variable, "global": global_variable, "missing global": global_that_may_be_missing, "default": default,
    "function attribute": function_attribute, "module of the user": module_of_the_user, "object": object_of(with_dict),
    "slots": object_of(with_slots, slots=True), "property": object_of(with_property), "__getattr__": object_of(with_getattr),
    "metaclass": with_metaclass, "inherited": inherited, "dataclass": object_of(dataclass), "descriptor": descriptor, "enumeration": enumeration,
    "bound method": bound_method, "subclass of dict": subclass_of(dict, "a"), "subclass of list": subclass_of(list, 0),
    "subclass of deque": subclass_of(collections.deque, 0), "subclass of OrderedDict": subclass_of(collections.OrderedDict, "a"),
    "dict": container_of(lambda n: {"a": n, "b": 1.5}, "a"), "defaultdict": container_of(lambda n: collections.defaultdict(float, a=n, b=1.5), "a"),
    "list": container_of(lambda n: [n, 2.5], 0), "deque": container_of(lambda n: collections.deque([n, 2.5]), 0), "nested": nested,
    "keys": names_of_keys, "set": numbers_in_a_set, "SimpleNamespace": simple_namespace, "UserDict": user_dict, "proxy": proxy,
    "array": array_of(lambda n: np.array([n, 2.0])), "integers": array_of(lambda n: np.array([int(n), 2])),
    "number array": array_of(lambda n: np.array(n)),
    "subclass of array": array_of(lambda n: np.array([n, 2.0]).view(OwnArray)), "objects": array_of(lambda n: np.array([n, 2.0], object)),
    "large array": array_of(large), "fields": array_of(lambda n: np.array([(n, 1)], [("a", float), ("b", int)])),
    "transposed": array_of(lambda n: np.array([[n, 2.0], [1.0, 4.0]]).T), "array.array": raw_memory(lambda n: array.array("d", [n, 2.0])),
    "bytearray": raw_memory(lambda n: bytearray([int(abs(n)), 2])), "memoryview": view_of_memory, "sparse": sparse,
    "tensor": tensor_of(lambda w, x: w.sum()), "tensor times x": tensor_of(lambda w, x: (w[:2] * x[:2]).sum()),
    "numpy()": tensor_of(lambda w, x: weigh(w.numpy())), "tolist()": tensor_of(lambda w, x: sum(weigh(v) for v in w.tolist())),
    "asarray": tensor_of(lambda w, x: weigh(np.asarray(w))), "nonzero": tensor_of(lambda w, x: weigh(w.nonzero().numpy())),
    "unique": tensor_of(lambda w, x: weigh(w.unique().numpy())), "item": tensor_of(lambda w, x: w[0].item()),
    "float": tensor_of(lambda w, x: float(w[1])),
    "if": tensor_of(lambda w, x: 2.0 if w[0] > 0.5 else 3.0), "shape of a tensor": tensor_of(lambda w, x: w.shape[0] + 0.0),
    "dtype of a tensor": tensor_of(lambda w, x: 1.0 if w.dtype is symgrad.float64 else 2.0), "strides": tensor_of(lambda w, x: w.stride()[0] + 0.5),
    "type of a tensor": tensor_of(lambda w, x: 1.0 if isinstance(w, symgrad.nn.Parameter) else 2.0),
    "two names": two_names, "index": index, "module": module,
    "lru_cache": cached, "cache of arrays": cached_array, "wraps": wrapped, "partial": partial, "vectorize": vectorized, "getters": getters,
    "references": references, "backward": function_rule, "custom_vjp": custom_of(pullback_rule), "custom_jvp": custom_of(pushforward_rule),
    "rules of a Function": rules_of_a_function, "bases": bases, "order of keys": order_of_keys, "mapped file": array_of(mapped),
    "dictionary of keys": dictionary_of_keys, "caught failure": tensor_of(inverse_or_other),
    "test of a failure": tensor_of(is_positive_definite), "frompyfunc": object_function, "of a thread": object_of(of_a_thread),
    "unread": object_of(with_unread), "among builtins": among_builtins, "level of a logger": level_of_a_logger,
    "matrix of SymPy": matrix_of(sympy.Matrix), "matrix of mpmath": matrix_of(mpmath.matrix),
}


# What cannot be watched


def _opaque(x: Any, read: Callable[[Any], Any]) -> Callable[[Any], Captured]:
    return lambda n: Captured(lambda y: read(x), {})


def own_number(n):
    """A class of C, behind an object of Python."""
    class Holder:
        def __init__(self):
            self.source = io.StringIO(str(number_of(n)))

        def rate(self):
            return float(self.source.getvalue())

    x = Holder()
    return Captured(lambda y: x.rate(), {"write": lambda m: x.source.write("1")})


TARGET = type("Target", (), {"rate": 2.5})()

REFUSED: dict[str, Callable[[Any], Captured]] = {
    "endless": _opaque(itertools.count(), next), "generator": _opaque((k for k in range(10**6)), next), "iterator": _opaque(iter(range(10**6)), next),
    "text": _opaque(io.StringIO("1"), lambda x: float(x.getvalue())), "struct": _opaque(struct.Struct("d"), lambda x: x.size),
    "attribute": own_number, "weak reference": _opaque(weakref.ref(TARGET), lambda x: x().rate),
    "weak values": _opaque(weakref.WeakValueDictionary(a=TARGET), lambda x: x["a"].rate),
    "in a list": _opaque([itertools.count()], lambda x: next(x[0])), "random numbers": _opaque(random.Random(1), lambda x: x.random()),
    "of NumPy": _opaque(np.random.default_rng(1), lambda x: x.normal()), "in a closure": _opaque(np.random.default_rng(1).normal, lambda x: x()),
    "modules": _opaque(sys, lambda x: x.modules["math"].pi), "imported by name": _opaque("math", lambda x: importlib.import_module(x).pi),
    "limit": _opaque(None, lambda x: sys.getrecursionlimit()), "stack": _opaque(None, lambda x: len(inspect.stack())),
    "process": _opaque("true", lambda x: subprocess.call(x)), "garbage": _opaque(None, lambda x: gc.get_count()[0]),
    "thread": _opaque(None, lambda x: threading.active_count()),
}


# Functions with effects


def counting(n):
    count = np.zeros(1)

    def read(x):
        count[0] += 1
        return count[0]

    return Effect(read, lambda: count[0], lambda value: count.__setitem__(0, value))


def appending(n):
    log: list[float] = []

    def read(x):
        log.append(n)
        return float(len(log))

    return Effect(read, lambda: list(log), lambda value: log.__setitem__(slice(None), value))


def counting_in_a_variable(n):
    count = 0

    def read(x):
        nonlocal count
        count += 1
        return count

    def restore(value):
        nonlocal count
        count = value

    return Effect(read, lambda: count, restore)


def attribute_of_an_object(n):
    x = with_dict(0)

    def read(y):
        x.rate += 1
        x.last = y * 2
        return x.last.sum() * x.rate

    def restore(value):
        x.rate = value

    return Effect(read, lambda: x.rate, restore)


def failing_afterwards(n):
    count = np.zeros(1)

    def read(x):
        count[0] += 1
        str(x)  # printing is not recorded
        return count[0]

    return Effect(read, lambda: count[0], lambda value: count.__setitem__(0, value))


def writing_memory_of_a_tensor(write):
    """A function that writes a tensor through an array that shares its memory."""
    def effect(n):
        t = symgrad.tensor([1.0, n, 2.0])

        def read(x):
            write(t)
            return (t * x[:3]).sum() + float(t[0])

        return Effect(read, lambda: t.tolist(), lambda value: t.copy_(symgrad.tensor(value)))

    return effect


def appending_to(make):
    """A function that makes an object with memory of its own longer."""
    def effect(n):
        memory = make()

        def read(x):
            memory.append(1)
            return float(len(memory))

        return Effect(read, lambda: memory[:], lambda value: memory.__setitem__(slice(None), value))

    return effect


def moving(n):
    table = collections.OrderedDict(a=n, b=2.5, c=0.3)

    def read(x):
        table.move_to_end(next(iter(table)))
        return next(iter(table.values()))

    return Effect(read, lambda: list(table), lambda value: [table.move_to_end(key) for key in value])


def attribute_of_a_function(n):
    def read(x):
        read.count = getattr(read, "count", 0) + 1
        return read.count

    def restore(value):
        if value is None:
            read.__dict__.pop("count", None)
        else:
            read.count = value

    return Effect(read, lambda: getattr(read, "count", None), restore)


EFFECTS: dict[str, Callable[[Any], Effect]] = {
    "count": counting, "append": appending, "variable": counting_in_a_variable, "object": attribute_of_an_object, "failing": failing_afterwards,
    "numpy()": writing_memory_of_a_tensor(lambda t: t.numpy().__setitem__(0, t[0].item() + 1)),
    "asarray": writing_memory_of_a_tensor(lambda t: np.asarray(t).__iadd__(1)),
    "out": writing_memory_of_a_tensor(lambda t: np.add(t.tolist(), 1.5, out=t.detach().numpy())),
    "array.array": appending_to(lambda: array.array("d", [2.5])), "bytearray": appending_to(lambda: bytearray([2])), "moving": moving,
    "attribute of a function": attribute_of_a_function}
