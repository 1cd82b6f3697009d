"""What surrounds a compiled function: names of Python, modules, what functions and classes say about themselves, logs, warnings, hooks and seeds."""

import builtins
import contextvars
import logging
import os
import sys
import types
import warnings

import pytest

import symgrad
from symgrad import nn
from symgrad.carriers.duck import Unrecordable

from .captured import OUTSIDE, SURROUNDINGS

X = symgrad.tensor([0.7, -1.3])
LOGGER = logging.getLogger("symgrad.tests.surroundings")


class Counting(logging.Handler):
    """A handler that counts the entries."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += 1


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    beside = types.ModuleType("beside_the_tests")
    beside.k = 1.5
    monkeypatch.setitem(sys.modules, "beside_the_tests", beside)
    monkeypatch.setattr(builtins, "rate_of_the_tests", 1.5, raising=False)
    hooks, state, seed = nn.modules.module._global_forward_hooks, symgrad.get_rng_state(), symgrad.initial_seed()
    known = {*hooks}
    yield
    for key in {*hooks} - known:
        del hooks[key]
    LOGGER.handlers.clear()
    symgrad.manual_seed(seed)
    symgrad.set_rng_state(state)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_surrounds_a_function_is_compared(name):
    read, changes, _ = SURROUNDINGS[name](1.5)
    (change,) = changes.values()

    def f(x):
        return (x * x).sum() * read(x)

    compiled = symgrad.compile(f)
    for _ in range(4):
        for function, eager in ((compiled, f), (compiled.gradient, symgrad.func.grad(f))):
            assert symgrad.allclose(function(X), eager(X), rtol=1e-14)
        change()


@pytest.mark.parametrize("name", OUTSIDE)
def test_clocks_and_random_numbers_from_outside_are_refused(name):
    read = OUTSIDE[name](1.5).read

    def f(x):
        try:
            return x.sum() * read(x)
        except RuntimeError:
            return x.sum()

    with pytest.raises(Unrecordable, match="^f: .* (is called in|are drawn from) .*as an argument"):
        symgrad.compile(f)(X)


def test_what_is_done_to_files_is_refused(tmp_path):
    with open(tmp_path / "file", "wb", buffering=0) as file:
        number = file.fileno()
        for act in (lambda: os.write(number, b"a"), lambda: os.mkdir(tmp_path / "folder"), lambda: os.remove(tmp_path / "file")):
            with pytest.raises(Unrecordable, match=r"is called in .* \(line \d+ of .*, and a program would not do again"):
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
