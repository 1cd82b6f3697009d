"""What values contain: whether it has changed, how it is put back, and the values to which they refer."""

from __future__ import annotations

import collections
import datetime
import fractions
import functools
import gc
import operator
import re
import types
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from symgrad.dtypes.dtype import DType
from symgrad.engine.tensor import Tensor

MISSING: Any = object()
LARGE = 1 << 16  # bytes of an array that is compared without a copy, which takes longer for fewer
PLAIN = {int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range, slice, Decimal, fractions.Fraction, re.Pattern,
         DType, datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone}
VALUES = (np.generic, np.dtype)  # with their subclasses

MOST_ENTRIES = 50  # of a dictionary that is compared by a function of its own
GETTERS = (dict.__getitem__, collections.OrderedDict.__getitem__)

Check = Callable[[], "str | None"]


class Part(NamedTuple):
    """A value that another one refers to."""

    name: str  # what is written after the name of what refers to it
    value: Any
    read: Callable[[], Any] | None = None  # reads it again; None where what refers to it compares it
    write: Callable[[Any], None] | None = None  # puts a former value back
    attribute: str = ""  # the name under which code reads it
    loose: bool = False  # whether what refers to it may refer to another value, and does not compare that
    shared: bool = False  # of a class or module: read if reached code has the name of the attribute
    uses: dict[str, str] | None = None  # the attributes that the code which refers to it reads, each with a place; None if that is not known


class Snapshot(NamedTuple):
    """What an object contains now: whether that has changed, and how it is put back."""

    check: Check  # None, or the name of the part that is not as it was, "" for the object itself
    undo: Callable[[], None] | None = None


# Values without parts


def bits_of(x: Any) -> Any:
    """What is equal for values that no computation tells apart: 0.0 and -0.0 differ, and so do 1 and True; None for other objects."""
    kind = type(x)
    if kind is tuple or kind is frozenset:
        found = tuple([bits_of(y) for y in x])
        return None if None in found else (kind, found if kind is tuple else frozenset(found))
    if kind in PLAIN:
        return kind, repr(x) if kind in (float, complex, slice, Decimal) else x
    if isinstance(x, VALUES):
        return kind, x.tobytes() if isinstance(x, np.generic) and x.dtype.kind != "O" else x
    return None


def alike(before: Any, now: Any) -> bool:
    """Whether a value may stand for another one in a program: a tensor, whose value is read again, or an equal number."""
    if now is before:
        return True
    if isinstance(before, Tensor):
        return isinstance(now, Tensor)
    bits = bits_of(before)
    return bits is not None and bits_of(now) == bits


# Containers


def _same_keys(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    return all(map(operator.is_, now, before)) or [bits_of(x) or id(x) for x in now] == [bits_of(x) or id(x) for x in before]


def sequence_content(x: Any) -> Snapshot:
    """The content of a list or a deque."""
    before = list(x)
    count = len(before)

    def check() -> str | None:
        if len(x) != count:
            return ""
        if all(map(operator.is_, x, before)):
            return None
        for i, now in enumerate(x):
            if not alike(before[i], now):
                return f"[{i}]"
            before[i] = now
        return None

    saved = tuple(before)

    def undo() -> None:
        if len(x) != count or not all(map(operator.is_, x, saved)):
            x.clear()
            x.extend(saved)

    return Snapshot(check, undo)


@functools.lru_cache(1024)
def _entries_check(count: int) -> Callable[..., Callable[[], bool]]:
    """A function that makes the comparison of a dictionary of so many entries, by the identity of its values; the fastest that Python has."""
    values, keys = [f"v{i}" for i in range(count)], [f"k{i}" for i in range(count)]
    terms = " and ".join([f"len(d) == {count}", *[f"d[{key}] is {value}" for key, value in zip(keys, values)]])
    source = f"lambda d, {''.join(f'{x}, ' for x in (*keys, *values))}*rest: lambda: {terms}"
    return eval(source, {"len": len})


def mapping_content(d: Any, spelled: str = "[{!r:.40}]") -> Snapshot:
    """The content of a dictionary; the order of its keys counts if it is not that of attributes."""
    base: Any = collections.OrderedDict if isinstance(d, collections.OrderedDict) else dict  # which has an order of its own
    keys = tuple(base.__iter__(d))
    before = [dict.__getitem__(d, key) for key in keys]
    count, ordered = len(keys), not spelled.startswith(".")
    names = set(map(type, keys)) <= {str}
    fast: Any = _entries_check(count)(d, *keys, *before) if names and count <= MOST_ENTRIES and type(d).__getitem__ in GETTERS else lambda: False

    def check() -> str | None:
        nonlocal fast
        try:
            if fast() and (not ordered or tuple(d) == keys):
                return None
        except KeyError:
            return ""
        found = tuple(base.__iter__(d))
        if len(found) != count or not _same_keys(found, keys):
            return ""
        now = [dict.__getitem__(d, key) for key in found]
        for i, x in enumerate(now):
            if not alike(before[i], x):
                return spelled.format(keys[i])
            before[i] = x
        if names and count <= MOST_ENTRIES and type(d).__getitem__ in GETTERS:
            fast = _entries_check(count)(d, *keys, *before)
        return None

    saved = dict(zip(keys, before))

    def undo() -> None:
        if tuple(base.__iter__(d)) != keys or not all(map(operator.is_, map(functools.partial(dict.__getitem__, d), keys), saved.values())):
            base.clear(d)
            for key, x in saved.items():
                base.__setitem__(d, key, x)

    return Snapshot(check, undo)


def set_content(x: Any) -> Snapshot:
    """The content of a set."""
    before = tuple(x)

    def undo() -> None:
        if len(x) != len(before) or not all(map(operator.is_, x, before)):
            x.clear()
            x.update(before)

    return Snapshot(lambda: None if len(x) == len(before) and _same_keys(tuple(x), before) else "", None if isinstance(x, frozenset) else undo)


def items_of(x: Any) -> Iterator[Part]:
    """The elements of a sequence, which it compares itself."""
    for i, y in enumerate(x):
        yield Part(f"[{i}]", y, functools.partial(operator.getitem, x, i))


def elements_of(x: Any) -> Iterator[Part]:
    """Values that do not change without a change of what refers to them."""
    return (Part("{...}", y, functools.partial(returned, y)) for y in x)


def returned(x: Any) -> Any:
    """The value itself."""
    return x


def entries_of(d: Any) -> Iterator[Part]:
    """The values of a dictionary, and the keys that have contents."""
    yield from elements_of([key for key in dict.keys(d) if bits_of(key) is None])
    for key, y in list(dict.items(d)):
        yield Part(f"[{key!r:.40}]", y, functools.partial(dict.__getitem__, d, key))
    if type(d) is not dict and isinstance(d, collections.defaultdict):
        yield from [part._replace(loose=True) for part in fields("default_factory")(d)]


# Arrays and memory


def array_content(x: np.ndarray) -> Snapshot:
    """The content of an array: its bits."""
    shape, dtype, large = x.shape, x.dtype, x.nbytes > LARGE and x.dtype.kind != "O"
    bits = np.dtype(f"u{dtype.itemsize}") if large and dtype.itemsize in (1, 2, 4, 8) else None
    before: Any = x.tobytes() if bits is None else np.array(x).view(bits)

    def check() -> str | None:
        same = x.shape == shape and x.dtype == dtype
        return None if same and (x.tobytes() == before if bits is None else bool((np.asarray(x).view(bits) == before).all())) else ""

    saved = np.array(x)

    def undo() -> None:
        if check() is not None and x.shape == shape:
            np.asarray(x)[...] = saved

    return Snapshot(check, undo)


def array_elements(x: np.ndarray) -> Iterator[Part]:
    """The elements of an array of objects."""
    return elements_of(np.asarray(x).ravel().tolist()) if x.dtype.kind == "O" else iter(())


def memory_content(x: Any) -> Snapshot:
    """The content of an object with memory of its own."""
    before = bytes(x)
    saved = None if isinstance(x, memoryview) else x[:]  # others may become longer

    def undo() -> None:
        if bytes(x) != before:
            if saved is not None:
                x[:] = saved
                return
            with memoryview(x) as memory:
                memory.cast("B")[:] = before

    return Snapshot(lambda: None if bytes(x) == before else "", undo)


# Functions


def fields(*names: str) -> Callable[[Any], Iterator[Part]]:
    """The parts of an object that are fixed attributes of its type, which no code has to name."""
    def parts(x: Any) -> Iterator[Part]:
        for name in names:
            if (y := getattr(x, name, None)) is not None:
                yield Part(f".{name}".replace(".__self__", ".self"), y, functools.partial(getattr, x, name))

    return parts


def function_content(f: types.FunctionType) -> Snapshot:
    """The code of a function, and the defaults of its arguments."""
    code, defaults, words = f.__code__, f.__defaults__, f.__kwdefaults__
    return Snapshot(lambda: None if f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ is words else "")


def cells_of(f: types.FunctionType) -> Iterator[Part]:
    """The variables of enclosing functions."""
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            value = MISSING
        read = functools.partial(cell_content, cell) if value is MISSING else functools.partial(getattr, cell, "cell_contents")
        yield Part(f".{name}", value, read, functools.partial(write_cell, cell), loose=True)


def cell_content(cell: Any) -> Any:
    """The variable of a cell; MISSING if it has no value."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def write_cell(cell: Any, value: Any) -> None:
    """Give the variable of a cell a value; MISSING for none."""
    if value is not MISSING:
        cell.cell_contents = value
    elif cell_content(cell) is not MISSING:
        del cell.cell_contents


def _results(f: Any) -> list[Any]:
    """The keys and results in a cache."""
    out: list[Any] = []
    for x in gc.get_referents(f):
        if type(x) is dict:  # of the results, if their number is not bounded
            return [*out, *x.values()] if x is not f.__dict__ else out
        out.append(x)
    return out


def cache_content(f: Any) -> Snapshot:
    """A cache may get values of the recording, so that it is emptied after one that filled it."""
    before = _results(f)

    def is_same() -> bool:
        now = _results(f)
        return len(now) == len(before) and all(map(operator.is_, now, before))

    return Snapshot(lambda: None if is_same() else "", lambda: None if is_same() else f.cache_clear())


def cache_parts(f: Any) -> Iterator[Part]:
    """The function behind a cache, and the results in it."""
    yield from fields("__wrapped__")(f)
    yield from elements_of([x for x in _results(f) if type(x).__name__ != "_lru_list_elem"])


def arguments_of(x: Any) -> Iterator[Part]:
    """The arguments from which an object was made."""
    return elements_of(x.__reduce__()[1])


# Objects


def attributes_of(x: Any) -> Iterator[Part]:
    """The attributes and slots of an object."""
    found = getattr(x, "__dict__", None)
    if type(found) is dict:
        for key, y in list(found.items()):
            yield Part(f".{key}", y, functools.partial(operator.getitem, found, key), attribute=key if type(key) is str else "")
    kind: Any = type(x)
    for name, slot in _slots(kind):
        read = functools.partial(_slot, slot, x)
        yield Part(f".{name}", read(), read, functools.partial(_write_slot, slot, x), name, loose=True)


@functools.lru_cache(4096)
def _slots(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple([(name, y) for base in kind.__mro__ if is_python_class(base) for name, y in base.__dict__.items()
                  if isinstance(y, types.MemberDescriptorType)])


def _slot(slot: Any, x: Any) -> Any:
    try:
        return slot.__get__(x)
    except AttributeError:
        return MISSING


def _write_slot(slot: Any, x: Any, value: Any) -> None:
    if value is not MISSING:
        slot.__set__(x, value)
    elif _slot(slot, x) is not MISSING:
        slot.__delete__(x)


def attribute_content(x: Any) -> Snapshot | None:
    """The content of an object with attributes."""
    found = getattr(x, "__dict__", None)
    return mapping_content(found, ".{}") if type(found) is dict else None


@functools.lru_cache(4096)
def is_python_class(kind: type) -> bool:
    """Whether a class was made by Python code, so that it adds no state to an instance but attributes and slots."""
    if not kind.__flags__ & 1 << 9 or kind.__base__ is None:
        return False
    own = kind.__dict__.get("__slots__", ())
    count = 1 if isinstance(own, str) else len(tuple(own))
    has_dict = "__slots__" in kind.__dict__ or any("__dict__" in base.__dict__ for base in kind.__mro__)
    return has_dict and kind.__basicsize__ <= kind.__base__.__basicsize__ + 8 * (count + 2) and not kind.__itemsize__ > kind.__base__.__itemsize__


def same_bits(now: Any, before: Any) -> bool:
    """Whether no computation tells two arrays apart: zeros have their signs, and a NaN equals itself."""
    if now is before or now.tobytes() == before.tobytes() and now.shape == before.shape:
        return True
    real = before.dtype.kind in "fcV"
    return np.array_equal(now, before, equal_nan=real) and not (real and _signs_differ(now, before))


def _signs_differ(now: Any, before: Any) -> bool:
    pairs = ((now.real, before.real), (now.imag, before.imag)) if before.dtype.kind == "c" else ((now, before),)
    return any(bool(((np.signbit(a) != np.signbit(b)) & (a == b)).any()) for a, b in pairs)


def flattened(x: Any) -> list[Any]:
    """The values in nested tuples and dictionaries, such as the settings of a transform."""
    if type(x) in (tuple, dict):
        return [z for y in (x.values() if type(x) is dict else x) for z in flattened(y)]
    return [x]
