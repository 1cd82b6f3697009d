"""What surrounds a compiled function: names of Python, modules, what functions and classes say about themselves, logs, warnings, hooks and seeds."""

import abc
import builtins
import contextvars
import dataclasses
import functools
import logging
import os
import random
import sys
import types
import warnings

import numpy as np
import pytest

import symgrad
from symgrad import nn
from symgrad.nn.modules.module import register_module_forward_hook

X = symgrad.tensor([0.7, -1.3])
LOGGER = logging.getLogger("symgrad.tests.surroundings")
BESIDE = types.ModuleType("beside_the_tests")
BESIDE.k = 1.5
DYNAMIC = types.ModuleType("dynamic_for_the_tests")
TABLE = {"k": 1.5}
LINEAR = nn.Linear(2, 1, dtype=symgrad.float64)
TENSOR = symgrad.tensor([1.0, 2.0])
NAMED = symgrad.tensor([1.0, 2.0], symbol="w")


def attribute(name):
    """The attribute of a module that it does not have."""
    if name in TABLE:
        return TABLE[name]
    raise AttributeError(name)


DYNAMIC.__getattr__ = attribute


class Counting(logging.Handler):
    """A handler that counts the entries."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += 1


class Abstract(abc.ABC):  # noqa: B024
    """A class that others are registered with."""


class Described:
    """A class."""


def described():
    """A function."""


def other_module():
    fresh = types.ModuleType(BESIDE.__name__)
    fresh.k = sys.modules[BESIDE.__name__].k + 1
    sys.modules[BESIDE.__name__] = fresh


def imported(x):
    import beside_the_tests

    return beside_the_tests.k


def add(holder, name, value=1.0):
    return lambda: setattr(holder, name, getattr(holder, name, type(value)()) + value)


@dataclasses.dataclass
class Settings:
    """A data class, of which a field may get another default."""

    rate: float = 1.5


@functools.lru_cache
def remembered(k):
    """A function with a cache."""
    return k + 0.5


def add_default():
    dataclasses.fields(Settings)[0].default += 1


OBJECT = Described()
ARRAY = np.ones(2)
GENERATOR = symgrad.Generator()
RNG, OLDER, RANDOM = np.random.default_rng(0), np.random.RandomState(1), random.Random(2)
CONTEXT = contextvars.ContextVar("CONTEXT", default=2.0)
CHANGED = {  # what is read, and how it changes
    "a module that is imported inside": (imported, other_module),
    "a name of Python": (lambda x: abs(-2.0), lambda: globals().update(abs=lambda _: 7.0)),
    "an attribute of builtins": (lambda x: builtins.rate_of_the_tests, add(builtins, "rate_of_the_tests")),
    "an attribute that a module computes": (lambda x: DYNAMIC.k, lambda: TABLE.update(k=TABLE["k"] + 1)),
    "the handlers of a logger": (lambda x: len(LOGGER.handlers), lambda: LOGGER.addHandler(Counting())),
    "a registered class": (lambda x: 2.0 if isinstance(OBJECT, Abstract) else 3.0, lambda: Abstract.register(Described)),
    "a docstring": (lambda x: len(described.__doc__), add(described, "__doc__", "x")),
    "the name of a function": (lambda x: len(described.__name__), add(described, "__name__", "x")),
    "the name of a class": (lambda x: len(Described.__qualname__), add(Described, "__qualname__", "x")),
    "annotations": (lambda x: len(described.__annotations__), lambda: described.__annotations__.update({f"x{len(described.__annotations__)}": int})),
    "the flags of an array": (lambda x: 2.0 if ARRAY.flags.writeable else 3.0, lambda: ARRAY.setflags(write=not ARRAY.flags.writeable)),
    "fields": (lambda x: dataclasses.fields(Settings)[0].default, add_default),
    "a seed": (lambda x: symgrad.initial_seed() % 1000, lambda: symgrad.manual_seed(symgrad.initial_seed() + 1)),
    "the state of random numbers": (lambda x: symgrad.get_rng_state().double().sum(), lambda: symgrad.rand(3)),
    "the state of a generator": (lambda x: GENERATOR.get_state().double().sum(), lambda: symgrad.rand(3, generator=GENERATOR)),
    "a clone of a generator": (lambda x: GENERATOR.clone_state().get_state().double().sum(), lambda: symgrad.rand(3, generator=GENERATOR)),
    "the state of NumPy's generator": (lambda x: RNG.bit_generator.state["state"]["state"] % 1000, lambda: RNG.random()),
    "the state of NumPy's older generator": (lambda x: OLDER.get_state()[2], lambda: OLDER.rand()),
    "the state of random": (lambda x: RANDOM.getstate()[1][-1], lambda: RANDOM.random()),
    "a context variable that was never set": (lambda x: CONTEXT.get(), lambda: CONTEXT.set(CONTEXT.get() + 1)),
    "the version of a tensor": (lambda x: TENSOR._version, lambda: TENSOR.add_(0.0)),
    "the formula of a tensor": (lambda x: 2.0 if NAMED.expr is None else 3.0, lambda: None),
    "a hook of all modules": (lambda x: LINEAR(x).sum(), lambda: register_module_forward_hook(lambda module, args, out: out * 2)),
}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setitem(sys.modules, BESIDE.__name__, BESIDE)
    monkeypatch.setattr(builtins, "rate_of_the_tests", 1.5, raising=False)
    hooks, state, seed = nn.modules.module._global_forward_hooks, symgrad.get_rng_state(), symgrad.initial_seed()
    known = {*hooks}
    yield
    for key in {*hooks} - known:
        del hooks[key]
    globals().pop("abs", None)
    LOGGER.handlers.clear()
    symgrad.manual_seed(seed)
    symgrad.set_rng_state(state)


@pytest.mark.parametrize("name", CHANGED)
def test_what_surrounds_a_function_is_compared(name):
    read, change = CHANGED[name]

    def f(x):
        return (x * x).sum() * read(x)

    compiled = symgrad.compile(f)
    for _ in range(4):
        for function, eager in ((compiled, f), (compiled.gradient, symgrad.func.grad(f))):
            assert symgrad.allclose(function(X), eager(X), rtol=1e-14)
        change()


@pytest.mark.parametrize("read", [lambda: warnings.filters, lambda: Described.__subclasses__(), lambda: remembered.cache_info()])
def test_what_cannot_be_compared_is_refused(read):
    refused = r"(warnings.filters|__subclasses__|cache_info).* is read in .* \(line \d+ of .*as an argument"
    with pytest.raises(symgrad.carriers.duck.Unrecordable, match=refused):
        symgrad.compile(lambda x: x.sum() * len(read()))(X)


@pytest.mark.parametrize("read", [lambda: sys.path, lambda: sys.meta_path, lambda: sys.dont_write_bytecode, lambda: sys.of_the_tests,
                                  lambda: sys.stdout is sys.__stdout__, lambda: sys.stderr.isatty()])
def test_what_may_change_in_sys_is_refused(read, monkeypatch):
    monkeypatch.setattr(sys, "of_the_tests", 1.5, raising=False)
    with pytest.raises(symgrad.carriers.duck.Unrecordable, match=r"sys\.\w+.* is read in .* \(line \d+ of .*as an argument"):
        symgrad.compile(lambda x: x.sum() * (2 if read() else 3))(X)


def test_what_is_done_to_files_is_refused(tmp_path):
    with open(tmp_path / "file", "wb", buffering=0) as file:
        number = file.fileno()
        for act in (lambda: os.write(number, b"a"), lambda: os.mkdir(tmp_path / "folder"), lambda: os.remove(tmp_path / "file")):
            with pytest.raises(symgrad.carriers.duck.Unrecordable, match=r"is called in .* \(line \d+ of .*, and a program would not do again"):
                symgrad.compile(lambda x, act=act: (act(), x.sum())[1])(X)
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and not (tmp_path / "file").stat().st_size


def test_constants_of_sys_are_recorded():
    f = symgrad.compile(lambda x: x.sum() * sys.float_info.epsilon + sys.maxsize % 7 + (sys.version_info >= (3, 11)))
    f(X)
    assert "0 programs" not in str(f.report)


def test_a_context_variable_is_set_once_a_call():
    counter, other = contextvars.ContextVar("counter", default=0), contextvars.ContextVar("other")

    def counts(x):
        counter.set(counter.get() + 1)
        return x.sum() * counter.get()

    def sets(x):
        other.set(3.0)
        return x.sum() * other.get()

    for f, variable, last in ((counts, counter, 4), (sets, other, 3.0)):
        compiled = symgrad.compile(f)
        for call in range(1, 5):
            assert compiled(X).item() == X.sum().item() * (call if f is counts else 3)
        assert variable.get() == last


def test_a_function_logs_and_warns_once_a_call():
    handler = Counting()
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)

    def logs(x):
        LOGGER.info("a call")
        LOGGER.debug("no entry")
        return x.sum()

    def warns(x):
        warnings.warn("a call", stacklevel=1)
        return x.sum()

    def counts(x):
        builtins.rate_of_the_tests += 1
        return x.sum()

    for f in (logs, warns, counts):
        builtins.rate_of_the_tests = handler.count = 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled = symgrad.compile(f)
            for k in range(6):
                compiled(X)
                assert [handler.count, len(caught), builtins.rate_of_the_tests] == [(k + 1) * (f is g) for g in (logs, warns, counts)]
        assert len(compiled.report.uncompiled) == 1
    quiet = symgrad.compile(lambda x: LOGGER.debug("no entry") or x.sum())
    quiet(X)
    assert not quiet.report.uncompiled and len(quiet.report.programs) == 1
