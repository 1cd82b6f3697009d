"""Captured values: what a function reads besides its arguments, found through closures, defaults, globals, attributes and containers.

Tensors become inputs of the program, so that the program reads their present values. Everything else is compared before each run, by its content; a
value that cannot be compared is refused.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from symgrad.carriers.duck import Unrecordable
from symgrad.compiled import outside
from symgrad.compiled.code import reads
from symgrad.compiled.contents import MISSING, PLAIN, Check, Part, alike, cells_of, flattened, mapping_content
from symgrad.compiled.kinds import OCCASIONS, State, class_check, classes_of, described, is_library, kind_of, put, shared_parts, state_of
from symgrad.dtypes import dtype
from symgrad.engine.tensor import Tensor
from symgrad.func.calling import Transformed
from symgrad.graph.modes import thread
from symgrad.graph.op import Op

LARGEST = 4000  # values that are compared before each run
UNSEEN = ("eval", "exec", "globals", "__import__")  # functions that read variables whose names the code does not have
HEAP_TYPE = 1 << 9  # the flag of classes that Python code has made
EMPTY = (dict, collections.OrderedDict, list, set)
SETTINGS = {"symgrad.compiled": ("function",)}  # what the library's own objects depend on; the rest they remember
GENERATED = ("__eq__", "__repr__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__")
Read = Callable[[], Any]


class Unwatched(Unrecordable):
    """A function reads a value whose changes cannot be noticed, so that its program might be that of a former value."""


class Captures:
    """The captured tensors of a function, and the other values on which its program depends; `given` are arguments that are objects."""

    def __init__(self, function: Any, given: Sequence[tuple[str, Any]] = ()):
        self.tensors: list[Read] = []
        self.same: list[tuple[Read, Any, str]] = []  # values that must be the same objects, or equal numbers; each with its name
        self.checks: list[tuple[Check, str]] = []  # of the contents of objects
        self.empty: list[Any] = []  # containers without elements
        self.names_of_empty: list[str] = []
        self.typed: list[Any] = []  # objects whose class may be exchanged, and their classes
        self.types: list[type] = []
        self.undos: list[Callable[[], None]] = []  # put the contents back
        self.states: list[tuple[State, Any, str]] = []  # of sources of random numbers, at the beginning
        self.objects: dict[int, Any] = {}  # what was reached, by id
        self.names: dict[str, str] = {"__call__": ""}  # that reached code may read, or calls without a name; with a place
        self.places: dict[str, str] = {}  # of the code that reads variables of enclosing functions
        self.catches = False  # whether reached code may catch an exception
        self.looks = False  # whether the function may call clocks and the like, log, or warn
        self.signs = False  # whether there are signs that the function has effects
        self._loads = {"__call__"}  # the names that are not only written
        self._attributes = set[str]()  # those of the names that are names of attributes
        self._reached: list[tuple[Part, str]] = []  # all ways to values, each with its place
        self._uses: dict[str, dict[str, str]] = {}  # the attributes that reached code reads of what is an attribute itself, each with a place
        self._names_of_tensors: list[str] = []
        self._paths: dict[int, Read] = {}  # how a captured tensor is read
        self._classes: list[type] = []
        if function is not None:
            self.same.append((functools.partial(operator.getitem, dtype.__dict__, "_default"), dtype.get_default_dtype(), "the default dtype"))
            self._search([Part("", function), *[Part(name, x) for name, x in given]])
            self._search([Part(name, x) for name, x in outside.parts_of_libraries(self.objects, self.names)])
            self._search(list(self._parts_of_tensors()))
            if message := outside.unseen(self._reached, self._uses, {name: self.names[name] for name in self._attributes}):
                raise Unwatched(message)
            if "is_grad_enabled" in self.names:
                self.same.append((lambda: thread.modes.grad, thread.modes.grad, "the grad mode"))
            self.same += [(read, read(), name) for read, name in outside.settings_of_libraries(self.objects, self.names)]
            self.states += outside.library_states(self.objects, self.names)
            if not outside.STATES_OF_RANDOM_NUMBERS.isdisjoint(self.names):
                self.same += [(state.read, before, f"the state of {name.lstrip('.')}") for state, before, name in self.states]
            self.looks = outside.calls_outside(self.objects, self.names) or outside.tells(self.objects, self.names)
            self.signs = not self.states and (self.signs or outside.signs_of_effects(self._reached, self._uses, self.names))
            self._reached.clear()
            self._watch_classes()

    def _search(self, roots: list[Part]) -> None:
        waiting: list[tuple[Part, frozenset[str], str]] = []  # attributes of classes and modules whose names no reached code has
        unknown: list[tuple[Part, frozenset[str], str]] = []
        # each with the names of attributes through which it is reached, and the place of the code that reads it
        stack = [(part, frozenset[str](), "") for part in reversed(roots)]
        weak: list[tuple[Part, frozenset[str], str]] = []  # references to what nothing else that was reached refers to
        while stack or waiting or weak:
            if not stack:
                stack = [entry for entry in waiting if entry[0].attribute in self.names]
                waiting = [entry for entry in waiting if entry[0].attribute not in self.names]
                stack += [entry for entry in weak if self._is_held(entry[0].value)]
                weak = [entry for entry in weak if not self._is_held(entry[0].value)]
                if not stack:
                    break
            part, needs, where = stack.pop()
            value, name = part.value, part.name
            if type(value) not in PLAIN:
                self._reached.append((part, where))
            if isinstance(value, Tensor) and part.read is not None:
                self._add_tensor(value, part)
                continue
            kind = kind_of(value)
            if part.read is not None and part.loose:
                self.same.append((part.read, value, name))
            if part.write is not None:
                self.undos.append(functools.partial(_put_back, part, value))
            if isinstance(value, weakref.ref) and not self._is_held(value):
                weak.append((part, needs, where))
                continue
            if kind is None:
                unknown.append((part, needs, where))
                continue
            if where and (message := outside.unknown_module(value, name, where)):
                raise Unwatched(message)
            if id(value) not in self.objects:
                self.objects[id(value)] = value
                if not is_constant(value):
                    library = is_library(type(value).__module__)  # whose code may read any attribute
                    for below, place in self._parts(part, kind, where):
                        further = needs | {below.attribute} if below.attribute and not below.shared and not library else needs
                        (waiting if below.shared else stack).append((below, further, place))
            if len(self.checks) + len(self.same) > LARGEST:
                raise Unrecordable(f"the function refers to more than {LARGEST} values besides its arguments")
        for part, needs, where in unknown + weak:
            if self._loads.issuperset(needs):
                places = [self.names[name] for name in needs if self.names[name]]
                raise Unwatched(f"{part.name.lstrip('.')}, of type {type(part.value).__name__}, is read{(places or [where])[0]}, and changes of such "
                                f"an object cannot be noticed. Pass what is computed from it as an argument")

    def _is_held(self, reference: Any) -> bool:
        """Whether the function itself keeps what a weak reference refers to; a program would keep it alive otherwise."""
        target = reference()
        return target is None or id(target) in self.objects

    def _add_tensor(self, value: Tensor, part: Part) -> None:
        read: Any = part.read
        if id(value) not in self._paths:
            self._paths[id(value)] = read
            self.objects[id(value)] = value
            self.tensors.append(read)
            self._names_of_tensors.append(part.name)
        else:  # the program reads it in one place
            known = self._paths[id(value)]
            self.checks.append((lambda: None if read() is known() else "", part.name))

    def _parts_of_tensors(self) -> Iterator[Part]:
        """The attributes of captured tensors that reached code reads."""
        for read, name in zip(list(self.tensors), list(self._names_of_tensors)):
            t = read()
            if "grad" in self.names:
                yield Part(f"{name}.grad", t.grad, functools.partial(_attribute_at, read, "grad"), loose=True)
            if "requires_grad" in self.names:
                yield Part(f"{name}.requires_grad", t.requires_grad, functools.partial(_attribute_at, read, "requires_grad"), loose=True)
            for key, x in getattr(t, "__dict__", {}).items():
                yield Part(f"{name}.{key}", x, functools.partial(_attribute_at, read, key), attribute=key, loose=True)

    def _parts(self, part: Part, kind: Any, where: str) -> Iterator[tuple[Part, str]]:
        """The parts of a value with their whole names, and the place of the code that reads them; notes how its content is compared."""
        value, name = part.value, part.name
        own = module_of(value).partition(".")[0] == "symgrad"
        if isinstance(value, types.FunctionType):
            found: Any = self._parts_of_function(value, where)
        elif own and isinstance(value, Transformed):
            found = [(Part("", x), where) for x in flattened(value._settings)]
        elif own and module_of(value).startswith(tuple(SETTINGS)):
            found = [(Part("", getattr(value, field)), where) for names in SETTINGS.values() for field in names if hasattr(value, field)]
        else:
            if (state := state_of(value)) is not None:
                self.states.append((state, state.read(), name))
            content = kind.content(value)
            if content is not None:
                if type(value) in EMPTY and not value:
                    self._add_empty(value, name)
                else:
                    self.checks.append((content.check, name))
                    if content.undo is not None:
                        self.undos.append(content.undo)
            found = [(x, where) for x in (*kind.parts(value), *shared_parts(value))]
            if type(value).__flags__ & HEAP_TYPE and not isinstance(value, type):
                self.typed.append(value)
                self.types.append(type(value))
            if not isinstance(value, types.ModuleType):
                self._classes += classes_of(value)
        for below, place in found:
            yield below._replace(name=name + below.name), place

    def _parts_of_function(self, f: types.FunctionType, where: str) -> Iterator[tuple[Part, str]]:
        op = f.__dict__.get("op")
        if isinstance(op, Op):
            yield Part("", op), where
        if is_library(f.__module__ or ""):  # depends on what it closes over alone
            for part in cells_of(f):
                if not isinstance(part.value, Tensor) and kind_of(part.value) is not None:
                    yield part, where
            return
        kind = kind_of(f)
        content = kind.content(f)  # type: ignore[union-attr]
        self.checks.append((content.check, f".{f.__name__}"))  # type: ignore[union-attr]
        found = reads(f.__code__)
        self.catches |= found.handles
        own = not is_library(f.__globals__.get("__name__") or "")  # unlike what `dataclass` makes
        self.signs |= own and bool(found.writes)
        file = f.__code__.co_filename
        if any(name in found.attributes or name in found.globals for name in ("errstate", "seterr")) and "raise" in f.__code__.co_consts:
            raise Unrecordable(f"floating-point errors that raise in {f.__qualname__}, which the steps of a program do not")
        # comparisons of a data class see attributes that are watched, and others as wholes
        if not (file == "<string>" and f.__name__ in GENERATED and found.globals.keys() <= {"NotImplemented"}):
            self._loads |= found.loads
            for group, occasions in OCCASIONS.items():
                if not occasions.isdisjoint(found.loads | found.attributes.keys()):
                    self.names.update({name: "" for name in group if name not in self.names})
        for names in (found.attributes, found.globals):
            for name, line in names.items():
                self.names.setdefault(name, f" in {f.__qualname__} (line {line} of {file})")
        self._attributes |= found.attributes.keys()
        uses = {value: {name: f" in {f.__qualname__} (line {line} of {file})" for name, line in used.items() if own or name not in outside.CHANGING}
                for value, used in found.uses.items()}
        for (way, name), of_value in uses.items():
            if way == "attribute":
                self._uses.setdefault(name, {}).update(of_value)
        place = f" in {f.__qualname__} (line {f.__code__.co_firstlineno} of {file})"
        for part in cells_of(f):
            self.places.setdefault(part.name[1:], place)
            yield part._replace(uses=uses.get(("cell", part.name[1:]))), place
        for x in (f.__defaults__, f.__kwdefaults__):
            if x is not None:
                yield Part("", x), place
        if f.__dict__:
            content = mapping_content(f.__dict__, ".{}")
            self.checks.append((content.check, f".{f.__name__}"))
            self.undos.append(content.undo)  # type: ignore[arg-type]
        else:
            self._add_empty(f.__dict__, f".{f.__name__}")
        for key, x in f.__dict__.items():
            yield Part(f".{key}", x, functools.partial(operator.getitem, f.__dict__, key), attribute=key), place
        for below in described(f):
            yield below, place
        space = f.__globals__
        for name, line in found.globals.items():
            x, place, used = space.get(name, MISSING), f" in {f.__qualname__} (line {line} of {file})", uses.get(("global", name))
            if x is MISSING and hasattr(builtins, name):
                if name in UNSEEN:
                    raise Unwatched(f"{name}() is called{place}, and what it reads cannot be found in the code. Read the variables by their names, "
                                    f"or pass their values as an argument")
                x = getattr(builtins, name)
                yield Part(f".{name}", x, functools.partial(operator.getitem, builtins.__dict__, name), loose=True, uses=used), place
                yield Part(f".{name}", MISSING, functools.partial(space.get, name, MISSING), functools.partial(put, space, name), loose=True), place
                continue
            read = functools.partial(operator.getitem, space, name) if x is not MISSING else functools.partial(space.get, name, MISSING)
            yield Part(f".{name}", x, read, functools.partial(put, space, name), loose=True, uses=used), place
        for name, line in found.modules.items():
            if (module := sys.modules.get(name)) is not None:
                place = f" in {f.__qualname__} (line {line} of {file})"
                yield Part(f".{name}", module, functools.partial(sys.modules.get, name, MISSING), loose=True, uses=uses.get(("module", name))), place

    def _add_empty(self, value: Any, name: str) -> None:
        self.empty.append(value)
        self.names_of_empty.append(name)
        self.undos.append(value.clear)

    def _watch_classes(self) -> None:
        """Compare what a class has under the names that reached code reads, since an attribute may come between an object and its base class."""
        done = set[type]()
        for base in self._classes:
            if base in done:
                continue
            done.add(base)
            self.checks.append((class_check(base, self.names), f".{base.__name__}"))

    def changed(self) -> str | None:
        """The name of a value that is not as it was; None if all but the tensors are."""
        name = ""
        try:
            for read, value, name in self.same:
                now = read()
                if now is not value and not alike(value, now):
                    return name.lstrip(".")
            for check, name in self.checks:
                if (at := check()) is not None:
                    return (name + at).lstrip(".")
            if self.typed and [*map(type, self.typed)] != self.types:
                return "an object, whose class was exchanged,"
            if any(self.empty):
                return next(name for x, name in zip(self.empty, self.names_of_empty) if x).lstrip(".")
        except (LookupError, AttributeError, ValueError, RuntimeError, TypeError):  # it is not there any more
            return name.lstrip(".")
        return None

    def drawn(self) -> str | None:
        """The name of a source from which random numbers were drawn."""
        return next((name.lstrip(".") for state, before, name in self.states if state.read() != before), None)

    def place_of(self, name: str) -> str:
        """The place of the code that reads a value of a name, for messages."""
        words = re.findall(r"\w+", name)
        return next((place for word in words for names in (self.places, self.names) if (place := names.get(word))), "")

    def undo(self) -> None:
        for undo in reversed(self.undos):
            undo()
        for state, before, _ in self.states:
            if state.read() != before:
                state.write(before)

    def present(self) -> list[Any]:
        return [_tried(read) for read in self.tensors]


def _attribute_at(read: Read, name: str) -> Any:
    return getattr(read(), name)


def _tried(read: Read) -> Any:
    try:
        return read()
    except (KeyError, IndexError, AttributeError, ValueError):
        return MISSING


def _put_back(part: Part, value: Any) -> None:
    if _tried(part.read) is not value:  # type: ignore[arg-type]
        part.write(value)  # type: ignore[misc]


def module_of(value: Any) -> str:
    """The module to which an object belongs."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    found = value.__module__ if isinstance(value, (types.FunctionType, type)) else type(value).__module__
    return found if isinstance(found, str) else ""


def is_constant(value: Any) -> bool:
    """Whether nothing that an object refers to is searched: a module or class of a library."""
    return isinstance(value, (types.ModuleType, type)) and value is not builtins and is_library(module_of(value))
