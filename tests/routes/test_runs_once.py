"""A function runs once a call, whatever the reason for which it is not recorded: its Python is counted, which no recording can hold back."""

import logging
import sys

import pytest

import symgrad
from symgrad.func import grad

from .captured import EFFECTS, blocks

X = symgrad.tensor([1 / 3, -0.7, 1.9])
LOGGER = logging.getLogger("symgrad.tests.runs_once")
ONCE, TWICE, WITHOUT = blocks("runs_once.txt").values()
ONCE |= {name: EFFECTS[name] for name in EFFECTS if name.startswith(("count", "append"))}
WAYS = ("value", "tracked", "gradient", "compiled gradient")


@pytest.fixture(autouse=True)
def as_before():
    LOGGER.addHandler(handler := logging.NullHandler())
    LOGGER.propagate, state, seed = False, symgrad.get_rng_state(), symgrad.initial_seed()
    yield
    LOGGER.removeHandler(handler)
    symgrad.manual_seed(seed)
    symgrad.set_rng_state(state)


def runs(code, call, *args):
    """How often the code of a function runs in a call."""
    count, before = 0, sys.getprofile()

    def look(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code is code

    sys.setprofile(look)
    try:
        call(*args)
    except (RuntimeError, ValueError, KeyError, AssertionError, TypeError):
        pass
    finally:
        sys.setprofile(before)
    return count


def counts(block, way, calls=5):
    """How often the code of a function runs in each call of it, compiled."""
    f = block(1.5).read
    code = (getattr(f, "forward", None) or f).__code__
    compiled = symgrad.compile(grad(f) if way == "compiled gradient" else f, max_programs=2)
    call, out = compiled.gradient if way == "gradient" else compiled, []
    for k in range(calls):
        x = (X + 0.1 * k).requires_grad_(way == "tracked")
        out.append(runs(code, call, x))
    return out


@pytest.mark.sampled(30)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ONCE)
@pytest.mark.filterwarnings("ignore")
def test_a_function_runs_at_most_once_a_call(name, way):
    found = counts(ONCE[name], way)
    assert max(found) == 1, found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TWICE)
@pytest.mark.filterwarnings("ignore")
def test_what_only_a_recording_shows_is_found_once(name, way):
    found = counts(TWICE[name], way)
    assert found[0] == 2 and set(found[1:]) == {1}, found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WITHOUT)
def test_a_function_without_signs_of_effects_is_recorded_in_its_first_call(name, way):
    """What it changes is its own."""
    assert counts(WITHOUT[name], way) == [1, 0, 0, 0, 0]


class OwnError(Exception):
    """An error of a user's class."""


def caused(x, k):
    try:
        raise KeyError("rate")
    except KeyError as error:
        raise OwnError(k) from error


def after_an_error_of_a_library(x, k):
    try:
        x @ symgrad.ones(7, 7)
    except RuntimeError:
        raise OwnError("shapes")  # noqa: B904  its context is compared


def with_an_attribute(x, k):
    error = OwnError("rate")
    error.x = x
    raise error


def in_a_generator(x, k):
    def numbers():
        yield x
        raise OwnError(f"{k}")

    return sum(numbers())


def raised(error):
    def f(x, k):
        raise error(x, k)

    return f


ERRORS = {
    "numbers": raised(lambda x, k: ValueError(f"{k} {k:.3f} {float(x[0].detach())} {tuple(x.shape)}")), "tensor": raised(OwnError),
    "text of a tensor": raised(lambda x, k: OwnError(str(x))), "dtype": raised(lambda x, k: OwnError(f"{x.dtype}")),
    "type": raised(lambda x, k: OwnError(type(x).__name__, type(k))), "class": raised(lambda x, k: OwnError), "caused": caused,
    "after an error of a library": after_an_error_of_a_library, "attribute": with_an_attribute, "generator": in_a_generator,
    "element": raised(lambda x, k: KeyError(x[1])), "stop": raised(lambda x, k: StopIteration(2.5)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_the_function_itself(name):
    """With their values, attributes and causes, and the frames of the user's code."""
    f = ERRORS[name]
    for x in (X, X.numpy()):
        compiled, found = symgrad.compile(f), []
        for call in (f, compiled, compiled, compiled):
            with pytest.raises(Exception) as caught:  # noqa: PT011  compared below
                call(x, 1 / 3)
            error = caught.value
            names = [entry.frame.code.name for entry in caught.traceback if str(entry.path) == __file__]
            found.append((type(error), str(error), repr(getattr(error, "x", None)), repr(error.__cause__), repr(error.__context__), names))
        assert all(each == found[0] for each in found[1:]), found


def test_a_seed_that_a_function_sets_is_set_in_each_call():
    f = symgrad.compile(lambda x: symgrad.manual_seed(3) and x.sum())
    found = [f(X) * 0 + symgrad.rand(1).item() for _ in range(6)]
    assert len({x.item() for x in found}) == 1
