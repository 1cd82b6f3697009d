"""A function runs once a call, whatever the reason for which it is not recorded: its Python is counted, which no recording can hold back."""

import dataclasses
import functools
import logging
import sys
import types
import warnings

import numpy as np
import pytest

import symgrad
from symgrad import linalg, nn
from symgrad.func import grad

X = symgrad.tensor([1 / 3, -0.7, 1.9])
LOGGER = logging.getLogger("symgrad.tests.runs_once")
COUNT = 0
HELD = types.SimpleNamespace(count=0, log=[], table={}, array=np.zeros(3), weight=symgrad.tensor([0.3, 1.0, 2.0]))
DROPOUT, NORM = nn.Dropout(0.3), nn.BatchNorm1d(1)
WEIGHT = symgrad.tensor([0.3, 1.0, 2.0], requires_grad=True)
OPTIMIZER = symgrad.optim.SGD([WEIGHT], lr=0.1)


def global_variable(x):
    global COUNT
    COUNT += 1
    return x.sum() * COUNT


def closure():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x.sum() * count

    return f


class Stored(nn.Module):
    """A module that stores what it computes."""

    def forward(self, x):
        self.last = x * 2
        return self.last.sum()


def slot(make):
    """A function that fills an attribute in its first call alone."""
    def f(x):
        if HELD.table.get("first") is None:
            HELD.table["first"] = make()
        return x.sum() * HELD.table["first"]

    return f


@functools.lru_cache
def remembered(k):
    """A function with a cache."""
    return k + 0.5


def attribute(x):
    HELD.count += 1
    return x.sum() * HELD.count


def element(x):
    HELD.array[0] += 1
    return x.sum() * float(HELD.array[0])


def part(x):
    HELD.array[1:3] = [1.0, 2.5]
    return x.sum()


def alias(x):
    log = HELD.log
    log.append(1.5)
    return x.sum() * len(log)


def raises_by_value(x):
    if x[0] > 0:
        raise ValueError(f"the sum of {x.shape[0]} numbers is negative")
    return x.sum()


def asserts(x):
    assert x.shape[0] == 2, "two numbers"  # noqa: S101
    return x.sum()


def raises_in_a_block(x):
    with symgrad.enable_grad():
        try:
            raise KeyError("rate")
        finally:
            x.sum()


def element_of_a_tensor(x):
    HELD.weight[0] = 0.3
    return x.sum()


def training_step(x):
    OPTIMIZER.zero_grad()
    loss = ((x.detach() * WEIGHT) ** 2).sum()
    loss.backward()
    OPTIMIZER.step()
    return x.sum()


def warns(x):
    warnings.warn("a call", stacklevel=1)
    return x.sum()


def then(act, function):
    """A function that acts before it computes."""
    def f(x):
        act(x)
        return function(x)

    return f


ONCE = {  # functions that are not recorded, or not in their first call; and of all of these, what is seen in the code before it runs
    "global variable": global_variable, "variable of an enclosing function": closure(), "attribute": attribute, "element": element, "slice": part,
    "list": then(lambda x: HELD.log.append(1), lambda x: x.sum()), "alias": alias,
    "table": then(lambda x: HELD.table.update(k=1.5), lambda x: x.sum()),
    "attribute of self": Stored(), "first call": slot(lambda: 1.5),
    "print": then(lambda x: print("step"), lambda x: x.sum()), "print a tensor": then(lambda x: print(x), lambda x: x.sum()),
    "standard error": then(lambda x: sys.stderr.write("step\n"), lambda x: x.sum()),
    "log": then(lambda x: LOGGER.error("step"), lambda x: x.sum()), "warn": warns,
    "random numbers": lambda x: (x * symgrad.rand(3)).sum(), "normal": lambda x: (x * symgrad.randn_like(x)).sum(),
    "seed": lambda x: symgrad.manual_seed(3) and x.sum(),
    "dropout": lambda x: nn.functional.dropout(x, 0.3).sum(), "module of dropout": lambda x: DROPOUT(x).sum(),
    "argument": lambda x: x.mul_(1.1).detach().sum(), "captured tensor": lambda x: HELD.weight.add_(0.1).sum() * x.sum(),
    "element of a tensor": element_of_a_tensor,
    "batch norm": lambda x: NORM(x.expand(2, 1, 3)).sum(), "optimizer": training_step,
    "gradients": lambda x: (x * WEIGHT).sum().backward() or x.sum(),
    "error": raises_by_value, "assertion": asserts, "error in a block": raises_in_a_block,
    "too many programs": lambda x: x.sum() * int(x[0].detach() * 1e6),
}
# What only a recording shows, which cannot go on from there, since what was computed has no elements: the function begins again in the first call.
TWICE = {
    "text of a tensor": lambda x: x.sum() * len(str(x)), "mask": lambda x: x[x > 0].sum(),
    "function of NumPy": lambda x: np.sort(x.detach()).sum() * x.sum(),
    "result": lambda x: iter([x.sum()]), "view of bits": lambda x: x.detach().view(symgrad.int64).sum() * x.sum(),
    "version": lambda x: x.sum() * (x._version + 1), "array": lambda x: (x * 2).detach().numpy().__setitem__(0, 1.0) or x.sum(),
    # errors of libraries, which may come from the recording, so that the function itself must raise them
    "shapes": lambda x: x @ symgrad.ones(7, 7), "failed step": lambda x: linalg.cholesky(-symgrad.outer(x, x)).sum(),
}
WAYS = ("value", "tracked", "gradient", "compiled gradient")


@pytest.fixture(autouse=True)
def as_before():
    LOGGER.addHandler(handler := logging.NullHandler())
    LOGGER.propagate, state, seed = False, symgrad.get_rng_state(), symgrad.initial_seed()
    HELD.table.clear()
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


def counts(f, way, calls=5):
    """How often the code of a function runs in each call of it, compiled."""
    code = (getattr(f, "forward", None) or f).__code__
    compiled = symgrad.compile(grad(f) if way == "compiled gradient" else f, max_programs=2)
    call, out = compiled.gradient if way == "gradient" else compiled, []
    for k in range(calls):
        x = (X + 0.1 * k).requires_grad_(way == "tracked")
        out.append(runs(code, call, x))
    return out


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


def local_objects(x):
    kept, table, made, out, count = [], {}, types.SimpleNamespace(), np.zeros(3), 0

    def more():
        nonlocal count
        count += 1
        return count

    for k in range(3):
        kept.append(x[k] * more())
        table[k] = kept[-1]
        out[k] += 0.5
        made.rate = table[k]
    y = symgrad.zeros(3)
    y[0] = made.rate
    y.add_(x * 0.3)
    return y.sum() * out.sum()


class Doubled(symgrad.autograd.Function):
    """A function whose rules keep a number."""

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2.0
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


@dataclasses.dataclass
class Made:
    """An object that a function makes."""

    rate: float = 1.5

    def __post_init__(self):
        self.other = 2.5


def made(x):
    data = Made()
    data.rate = data.other
    return (x * x).sum() * data.rate


WITHOUT = {"local objects": local_objects, "rules": lambda x: Doubled.apply(x).sum(), "object": made,
           "debug": lambda x: LOGGER.debug("nothing") or x.sum(),
           "gradients": lambda x: (y := x.detach().requires_grad_()).pow(3).sum().backward() or (y.grad * x).sum(),
           "captured": lambda x: (x * HELD.weight).sum() * HELD.array[0] * len(HELD.table)}


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
