"""Checks of memory and of side effects: the mistakes that each finds, right ops that pass, and ops to which it does not apply."""

import random

import numpy as np
import pytest

import symgrad
from symgrad.testing import CheckFailure, check_aliasing, check_layouts, check_mutation
from symgrad.testing.attack import Attack
from symgrad.testing.checks import memory
from tests.support.functions import saving

RIGHT = {"pullback": lambda g, x: 2 * x * g, "elementwise": True, "shrink": False}
LAYOUTS = ("strided", "backwards", "by columns", "read-only", "overlapping")


def square(x):
    return x * x


def by_address(x):
    """The square of the elements in memory from the first one on."""
    flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,)) if x.strides and x.strides[-1] > 0 and x.size else x.ravel()
    return (flat * flat).reshape(x.shape)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_have_the_strides_of_their_names(layout):
    x = np.arange(6.0).reshape(2, 3)
    y = memory.LAYOUTS[layout](x)
    if layout == "overlapping":
        assert np.array_equal(y, [[0, 1, 2], [0, 1, 2]]) and y.strides[0] == 0
    else:
        assert np.array_equal(y, x)
    assert y.flags.c_contiguous == (layout == "read-only") and y.flags.writeable == (layout != "read-only") and not np.shares_memory(x, y)
    for shape in ((), (0,), (1,)):
        assert memory.LAYOUTS[layout](np.zeros(shape)).shape == shape


def test_results_that_depend_on_the_layout():
    with pytest.raises(CheckFailure, match="is not that for contiguous ones"):
        check_layouts(by_address, **RIGHT)
    with pytest.raises(CheckFailure, match="argument 0 .* was changed"):
        check_layouts(lambda x: np.multiply(x, x, out=x) if x.flags.writeable else x * x, **RIGHT)


def shared(function):
    """The function with one buffer for every result of a shape."""
    buffers = {}

    def made(*args):
        found = function(*args)
        buffer = buffers.setdefault(np.shape(found), np.empty_like(found))
        buffer[...] = found
        return buffer

    return made


def push_into(ts, x):
    ts[0][...] *= 2
    return x * ts[0]


def test_writes_to_arguments_are_found():
    for words, claims in (("tangent 0 was changed", {"pushforward": push_into}),
                          ("the gradient that was returned was changed", {"pullback": shared(RIGHT["pullback"])})):
        with pytest.raises(CheckFailure, match=words):
            check_mutation(square, **(RIGHT | claims))


def test_ops_that_write_to_no_argument_pass():
    assert check_mutation(lambda x: x, **(RIGHT | {"pullback": lambda g, x: g})).verdict == "passed"


def one_for_both(g, x, y):
    both = 1 * g
    return both, both


SHARED = {
    "where nothing is to be done": (lambda x: x if np.all(x > 0) else np.abs(x), lambda g, x: g * np.sign(x), "the value shares"),
    "a view of it": (lambda x: x[..., ::-1][..., ::-1] if x.ndim else x, lambda g, x: g.copy(), "the value shares memory with argument 0"),
    "one gradient for both": (lambda x, y: x + y, one_for_both, "the gradient shares memory with the gradient by argument 0"),
}


@pytest.mark.parametrize("name", SHARED)
def test_memory_that_is_shared(name):
    function, pullback, words = SHARED[name]
    with pytest.raises(CheckFailure, match=words):
        check_aliasing(function, **(RIGHT | {"pullback": pullback}))


def test_memory_that_is_not_shared():
    assert check_aliasing(lambda x: x, view=True, **(RIGHT | {"pullback": lambda g, x: g.copy()})).verdict == "passed"
    assert check_aliasing(lambda x, y: x + y).verdict == "passed"  # symgrad gives each its own
    assert check_aliasing(saving(lambda x: x, lambda g, x: g, "Same"), view=True).verdict == "passed"


def test_when_they_do_not_apply():
    attack = Attack(symgrad.sin)
    attack.subject.memory, attack.subject.layouts = False, ()
    for body in (check_layouts, check_mutation, check_aliasing):
        assert body(attack).verdict == "not applicable"


# Side effects of a call


@pytest.mark.parametrize("change, what", [
    (lambda: symgrad.set_default_dtype(symgrad.float32), "symgrad's default dtype"), (lambda: np.seterr(over="raise"), "NumPy's handling of errors"),
    (lambda: symgrad.set_grad_enabled(False), "whether symgrad records")])
def test_changes_of_global_state_are_reported_and_undone(change, what):
    def state():
        return symgrad.get_default_dtype(), symgrad.is_grad_enabled(), np.geterr()

    def changing(x):
        change()
        return x * x

    before = state()
    with pytest.raises(CheckFailure, match=f"{what} is not what was there before the call"):
        check_mutation(changing, gradient=lambda x: 2 * x, inputs=[np.array([1.0, 2.0])])
    assert state() == before


def test_a_random_op_may_draw():
    assert check_mutation(lambda x: x * x + 0 * random.random(), gradient=lambda x: 2 * x, random=True, inputs=[np.array(1.0)]).verdict == "passed"
