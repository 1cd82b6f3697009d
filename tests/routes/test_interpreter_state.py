"""Functions that read the state of the interpreter are refused: those in which the module that has it is asked for the attribute, in any way."""

import functools
import inspect
import logging
import re
import sys
import threading
import types
import warnings

import pytest

import symgrad
from symgrad.carriers.duck import Unrecordable
from symgrad.compiled.outside import STATES, UNSEEN

X = symgrad.tensor([0.7, -1.3])
OWNER = types.ModuleType("owner_of_the_tests")
# what may be read of each module that has state, and a module of a library that has it as an attribute
HARMLESS = {sys: ("float_info", "os"), threading: ("TIMEOUT_MAX", "logging"), warnings: ("WarningMessage", "logging"),
            inspect: ("CO_NESTED", "dataclasses")}
READS = {  # the code of a function that reads an attribute A of a module M, which is a global variable
    "global": "return M.A",
    "import": "import M as s\n return s.A",
    "import in a function": "def g():\n  import M as s\n  return s.A\n return g()",
    "from": "from M import A as a\n return a",
    "local": "s = M\n return s.A",
    "two locals": "s = M\n t = s\n return t.A",
    "loop": "for k in range(2):\n  if k:\n   return s.A\n  s = M",
    "variable of an inner function": "s = M\n def g():\n  return s.A\n return g()",
    "assigned in an inner function": "s = None\n def g():\n  nonlocal s\n  s = M\n g()\n return s.A",
    "imported variable of a lambda": "import M as s\n return (lambda: (lambda: s.A)())()",
    "comprehension": "s = M\n return [s.A for _ in range(1)][0]",
    "variable of a comprehension": "return [s.A for s in (M,)][0]",
    "class": "class C:\n  s = M\n return C.s.A",
    "attribute": "HOLDER.s = M\n return HOLDER.s.A",
    "held attribute": "return HOLDER.held.A",
    "alias of a held attribute": "s = HOLDER.held\n return s.A",
    "name of a held attribute": "return getattr(HOLDER, 'held').A",
    "element": "return HOLDER.elements[0].A",
    "getattr": "return getattr(M, 'A')",
    "name in a variable": "name = 'A'\n return getattr(M, name)",
    "argument": "return (lambda s: s.A)(M)",
    "default": "return (lambda s=M: s.A)()",
    "result": "return (lambda: M)().A",
    "choice": "return (M if x.ndim else None).A",
    "or": "return (M or None).A",
    "walrus": "return (s := M).A",
    "variables by name": "s = M\n return locals()['s'].A",
    "pattern": "match M:\n  case object(A=a):\n   return a",
    "closure": "return CLOSED()",
}


class Holder:
    """An object with attributes."""


def function_of(read, module, owner, attribute):
    """A function that reads an attribute of an owner, which may be the module, by some code; and of the module what any function may read."""
    holder = Holder()
    holder.held, holder.elements = owner, [owner]
    space = {"symgrad": symgrad, "HOLDER": holder, module.__name__: module, owner.__name__: owner}
    words = {"M": owner.__name__, "A": attribute}
    source = "".join(words.get(word, word) for word in re.split(r"\b", READS.get(read, read)))
    exec(f"def closed(s):\n return lambda: s.{attribute}\n", space)
    space["CLOSED"] = space["closed"](owner)
    harmless = f"{module.__name__}.{HARMLESS[module][0]}"
    exec(f"def read(x):\n {source}\ndef f(x):\n assert {harmless} is not None\n return (x * x).sum() * read(x)\n", space)
    return space["f"]


@pytest.fixture(autouse=True)
def known_owner(monkeypatch):
    monkeypatch.setitem(sys.modules, OWNER.__name__, OWNER)
    yield
    for name in [name for name in vars(OWNER) if not name.startswith("__")]:
        delattr(OWNER, name)


def attributes():
    return [(module, name) for module, names in UNSEEN for name in names if hasattr(module, name)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("read", READS)
def test_a_function_is_refused_if_the_module_with_the_state_is_the_owner(read):
    for module, name in attributes()[len(read) % 3::3]:
        with pytest.raises(Unrecordable, match=rf"{module.__name__}\.{name} is read in \S+ \(line \d+ of .*as an argument"):
            symgrad.compile(function_of(read, module, module, name))(X)
        setattr(OWNER, name, 1.5)
        f = function_of(read, module, OWNER, name)
        compiled = symgrad.compile(f)
        for _ in range(2):
            assert symgrad.equal(compiled(X), f(X)) and symgrad.equal(compiled.gradient(X), 2 * X * getattr(OWNER, name))
            setattr(OWNER, name, 1 / 3)
        assert read == "attribute" or compiled.report.programs


def test_a_module_in_a_library_is_followed():
    for module, name in attributes():
        library = HARMLESS[module][1]
        with pytest.raises(Unrecordable, match=rf"{module.__name__}\.{name} is read in read \("):
            symgrad.compile(function_of(f"import {library}\n return {library}.{module.__name__}.{name}", module, module, name))(X)


def test_functions_that_return_the_state_are_refused_under_any_name():
    for module, name in attributes():
        if id(getattr(module, name)) in STATES:
            for read in (f"return own({name!r})", f"from {module.__name__} import {name} as own\n return own()"):
                f = function_of(read, module, module, name)
                f.__globals__["own"] = getattr(module, name)
                with pytest.raises(Unrecordable, match=rf"{module.__name__}\.{name} is read"):
                    symgrad.compile(f)(X)


def test_functions_of_python_are_no_state_of_a_module():
    f = symgrad.compile(lambda x: sum(x[i] * k for i, k in enumerate([logging.DEBUG, threading.TIMEOUT_MAX])))  # as `threading.enumerate` is
    assert all(f(X) == X[0] * logging.DEBUG + X[1] * threading.TIMEOUT_MAX for _ in range(2)) and f.report.programs


@functools.lru_cache
def remembered(k):
    """A function with a cache."""
    return k + 0.5


class Remembering:
    """An object with a cache, and a method of its own with the name of a function of caches."""

    count = 2.5

    @functools.lru_cache  # noqa: B019  it is one object
    def remembered(self, k):
        return k + 0.5

    def cache_info(self):
        return self.count


OBJECT = Remembering()


@pytest.mark.parametrize("read", [
    lambda: remembered.cache_info(), lambda: OBJECT.remembered.cache_info(), lambda: Remembering.remembered.cache_info(),
    lambda: getattr(remembered, "cache_info")(), lambda: {1: remembered}[1].cache_info()])  # noqa: B009  the string is the test
def test_what_a_cache_says_is_refused_if_a_cache_is_the_owner(read):
    with pytest.raises(Unrecordable, match=r"cache_info\(\) is read in .* \(line \d+ of .*as an argument"):
        symgrad.compile(lambda x: x.sum() * read()[0])(X)
    f = symgrad.compile(lambda x: x.sum() * OBJECT.cache_info() * remembered.__wrapped__(1.0))
    assert all(f(X) == X.sum() * OBJECT.cache_info() * 1.5 for _ in range(2)) and f.report.programs
