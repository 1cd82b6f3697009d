"""Captured variables and objects of classes that nobody knows, with the ways in which they change."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import enum
import itertools
import logging
import operator
import threading
import types
from collections.abc import Callable
from typing import Any

from .captured import Captured, weigh


def variable(n):
    def write(m):
        nonlocal n
        n = m

    def delete(m):
        nonlocal n
        del n

    return Captured(lambda x: n, {"rebind": write, "delete": delete})


SPACE: dict[str, Any] = {}


def made(source: str, **names: Any) -> dict[str, Any]:
    """The variables of a module of its own."""
    space = {"__name__": "tests.routes.made", **names}
    exec(source, space)
    return space


def global_variable(n):
    space = made("def read(x):\n    return rate\n\ndef inner(m):\n    global rate\n    rate = m", rate=n)
    return Captured(space["read"], {"rebind": space["inner"], "delete": lambda m: space.pop("rate", None), "others": lambda m: space.update(z=m)})


def global_that_may_be_missing(n):
    space = made("def read(x):\n    try:\n        return rate\n    except NameError:\n        return 4.5")
    return Captured(space["read"], {"define": lambda m: space.update(rate=m), "delete": lambda m: space.pop("rate", None)})


def default(n):
    def read(x, rate=n, *, shift=n):
        return weigh(rate) + 2 * weigh(shift)

    def code(m):
        read.__code__ = (lambda x, rate=0, *, shift=0: weigh(rate) - weigh(shift)).__code__

    return Captured(lambda x: read(x), {"defaults": lambda m: setattr(read, "__defaults__", (m,)), "code": code,
                                        "keywords": lambda m: read.__kwdefaults__.update(shift=m)})


def function_attribute(n):
    def read(x):
        return read.rate

    read.rate = n
    return Captured(read, {"attribute": lambda m: setattr(read, "rate", m)})


def module_of_the_user(n):
    module = types.ModuleType("settings_of_a_user")
    module.rate, module.table = n, [n]
    return Captured(lambda x: weigh(module.rate) + 2 * weigh(module.table[0]), {
        "attribute": lambda m: setattr(module, "rate", m), "element": lambda m: operator.setitem(module.table, 0, m)})


# Objects of classes that nobody knows


def object_of(make: Callable[[Any], Any], name: str = "rate", slots: bool = False) -> Callable[[Any], Captured]:
    def captured(n):
        x = make(n)
        kind = type(x)
        changes: dict[str, Any] = {
            "set": lambda m: setattr(x, name, m), "delete": lambda m: hasattr(x, name) and delattr(x, name),
            "class": lambda m: setattr(kind, "gain", m), "method": lambda m: setattr(kind, "scaled", lambda self: 0.25 + weigh(m)),
            "subclass": lambda m: setattr(x, "__class__", type("Other", (kind,), {"__slots__": (), "gain": m} if slots else {"gain": m})),
        }
        if not slots:
            changes |= {"shadow": lambda m: x.__dict__.update(gain=m), "unshadow": lambda m: x.__dict__.pop("gain", None),
                        "new key": lambda m: x.__dict__.update(unread=m)}
        return Captured(lambda y: weigh(getattr(x, name)) + 2 * x.scaled() + 3 * weigh(x.gain), changes)

    return captured


def with_dict(n):
    class Plain:
        gain = 1.5

        def __init__(self):
            self.rate = n

        def scaled(self):
            return weigh(self.rate) * 2

    return Plain()


def with_unread(n):
    class Holder:
        gain = 1.5

        def __init__(self):
            self.rate, self.source = n, itertools.count()

        def scaled(self):
            return weigh(self.rate) * 2

    return Holder()


def of_a_thread(n):
    class Local(threading.local):
        gain = 1.5

        def scaled(self):
            return weigh(self.rate) * 2

    x = Local()
    x.rate = n
    return x


def among_builtins(n):
    """A variable that a function finds where Python finds `len`."""
    builtins.rate_among_builtins = n

    def write(m):
        builtins.rate_among_builtins = m

    return Captured(lambda x: weigh(rate_among_builtins), {"write": write})  # type: ignore[name-defined]  # noqa: F821


def level_of_a_logger(n):
    parent, logger = logging.getLogger("rates"), logging.getLogger("rates.own")

    def write(m):
        parent.setLevel(logging.DEBUG if m > 0 else logging.ERROR)

    write(n)
    return Captured(lambda x: 2.0 if logger.isEnabledFor(logging.DEBUG) else 3.0, {"write": write})


def with_slots(n):
    class Base:
        __slots__ = ("rate",)
        gain = 1.5

        def scaled(self):
            return weigh(self.rate) * 2

    class Slotted(Base):
        __slots__ = ()

    x = Slotted()
    x.rate = n
    return x


def with_property(n):
    class Derived:
        gain = 1.5

        def __init__(self):
            self._rate = n

        @property
        def rate(self):
            return self._rate

        @rate.setter
        def rate(self, value):
            self._rate = value

        @rate.deleter
        def rate(self):
            self._rate = None

        def scaled(self):
            return weigh(self._rate)

    return Derived()


def with_getattr(n):
    class Dynamic:
        gain = 1.5

        def __init__(self):
            object.__setattr__(self, "table", {"rate": n})

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            try:
                return self.table[name]
            except KeyError:
                raise AttributeError(name) from None

        def __setattr__(self, name, value):
            if name == "__class__":
                object.__setattr__(self, name, value)
            else:
                self.table[name] = value

        def __delattr__(self, name):
            del self.table[name]

        def scaled(self):
            return weigh(self.table.get("rate"))

    return Dynamic()


def with_metaclass(n):
    class Meta(type):
        bias = 0.5

        @property
        def rate(cls):
            return cls.bias

    class Made(metaclass=Meta):
        gain = 1.5

    return Captured(lambda x: weigh(Made.rate) + 2 * weigh(Made.gain), {"metaclass": lambda m: setattr(Meta, "bias", m),
                                                                       "class": lambda m: setattr(Made, "gain", m)})


def inherited(n):
    class Top:
        gain = n

    class Middle(Top):
        pass

    class Bottom(Middle):
        pass

    x = Bottom()
    return Captured(lambda y: weigh(x.gain), {"top": lambda m: setattr(Top, "gain", m), "middle": lambda m: setattr(Middle, "gain", m),
                                              "bottom": lambda m: setattr(Bottom, "gain", m), "object": lambda m: setattr(x, "gain", m)})


def bases(n):
    class First:
        rate = n

    class Second:
        rate = 2.5

    class Bottom(First):
        pass

    class Below(Bottom):
        pass

    x = Below()
    return Captured(lambda y: weigh(x.rate), {"first": lambda m: setattr(First, "rate", m), "second": lambda m: setattr(Second, "rate", m),
                                              "bases": lambda m: setattr(Bottom, "__bases__", (Second,))})


def dataclass(n):
    @dataclasses.dataclass
    class Settings:
        rate: Any
        gain = 1.5

        def scaled(self):
            return weigh(self.rate) + 1

    return Settings(n)


def descriptor(n):
    class Field:
        def __init__(self, value):
            self.value = value

        def __get__(self, instance, owner=None):
            return self.value

    class Holder:
        rate = Field(n)

    x = Holder()
    field = Holder.__dict__["rate"]
    return Captured(lambda y: weigh(x.rate), {"field": lambda m: setattr(field, "value", m), "class": lambda m: setattr(Holder, "rate", Field(m))})


def enumeration(n):
    class Mode(enum.Enum):
        SLOW = 1
        FAST = 2

        @property
        def rate(self):
            return table[self]

    table, current = {Mode.SLOW: n, Mode.FAST: 2.5}, [Mode.SLOW]
    return Captured(lambda x: weigh(current[0].rate) + weigh(current[0].value), {"table": lambda m: table.update({Mode.SLOW: m}),
                                                                                "other": lambda m: current.__setitem__(0, Mode.FAST)})


def bound_method(n):
    x = with_dict(n)
    read = x.scaled
    return Captured(lambda y: read(), {"set": lambda m: setattr(x, "rate", m)})


def subclass_of(base: type, key: Any) -> Callable[[Any], Captured]:
    """A subclass of a builtin container, with an attribute."""
    def captured(n):
        kind = type("Own", (base,), {})
        x = kind({key: n, "b": 1.5}) if issubclass(base, dict) else kind([n, 1.5])
        x.rate = n
        changes = {"item": lambda m: operator.setitem(x, key, m), "attribute": lambda m: setattr(x, "rate", m)}
        return Captured(lambda y: sum(weigh(v) for v in (x.values() if isinstance(x, dict) else x)) + weigh(x.rate), changes | keys_of(x))

    return captured


def keys_of(x):
    if hasattr(x, "keys"):
        return {"new key": lambda m: x.update(c=m), "deletion": lambda m: x.pop("b", None)}
    return {"append": lambda m: x.append(m), "deletion": lambda m: len(x) > 1 and x.pop()}


# Methods that run when an instance is made, copied or written as text, which code calls without their names


def occasional(make):
    """Objects whose special methods read a captured list; `make` gets one, its class and the list, and returns how it is read."""
    def captured(n):
        table = [n]

        class Made:
            def __init__(self, file=None):
                self.file, self.made = file, table[0]

            def __deepcopy__(self, memo):
                return types.SimpleNamespace(made=table[0])

            def __repr__(self):
                return str(table[0])

            @classmethod
            def another(cls):
                return cls()

        read = make(Made(itertools.count()), Made)  # which cannot be watched, and is not read
        return Captured(read, {"write": lambda m: table.__setitem__(0, m)})

    return captured


OCCASIONAL = {
    "class": occasional(lambda x, Made: lambda y: weigh(Made().made)), "type": occasional(lambda x, Made: lambda y: weigh(type(x)().made)),
    "class of an object": occasional(lambda x, Made: lambda y: weigh(x.__class__().made)),
    "class method": occasional(lambda x, Made: lambda y: weigh(x.another().made)),
    "class in a list": occasional(lambda x, Made: (kinds := [Made]) and (lambda y: weigh(kinds[0]().made))),
    "text": occasional(lambda x, Made: lambda y: weigh(f"{x}")),
    "copy": occasional(lambda x, Made: lambda y: weigh(copy.deepcopy(x).made)),
}
