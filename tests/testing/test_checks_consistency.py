"""Checks of an op against itself: the mistakes that each of them finds, right ops that pass, and ops to which it does not apply."""

import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import CheckFailure, check_adjoint, check_linearity, check_symmetry
from symgrad.testing.checks.base import Sides, agree, moderate_mask, same_bits, shift_by_ulp
from symgrad.testing.failure import Wrong
from tests.support.functions import saving


def cube(x):
    return x**3


def slope(g, x):
    return 3 * x**2 * g


WRONG_TANGENTS = {
    "by one part in a million": lambda ts, x: 3.000003 * x**2 * ts[0],
    "not there": lambda ts, x: np.zeros_like(x),
    "in one number": lambda ts, x: 3 * x**2 * ts[0] + (x == 1.0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", WRONG_TANGENTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_pushforward_that_is_not_the_pullbacks(wrong, seed):
    with pytest.raises(CheckFailure, match="⟨g, jvp"):
        check_adjoint(cube, pullback=slope, pushforward=WRONG_TANGENTS[wrong], seed=seed, shrink=False)


@pytest.mark.sweep
def test_an_op_on_arrays_whose_pushforward_omits_an_element():
    with pytest.raises(CheckFailure, match="⟨g, jvp"):
        check_adjoint(np.sum, pullback=lambda g, x: np.full(x.shape, g), pushforward=lambda ts, x: ts[0].ravel()[1:].sum(), shapes=((2, 3),))


@pytest.mark.sweep
def test_a_gradient_that_is_none_counts_as_zero():
    with pytest.raises(CheckFailure, match="⟨g, jvp"):
        check_adjoint(lambda x, y: x + 1e-6 * np.sin(y), pullback=lambda g, x, y: (g, None),
                      pushforward=lambda ts, x, y: ts[0] + 1e-6 * np.cos(y) * ts[1])
    assert check_adjoint(lambda x, y: x + 0 * y, pullback=lambda g, x, y: (g, None), pushforward=lambda ts, x, y: ts[0]).verdict == "passed"


RIGHT = {
    "a sum whose derivative cancels everywhere": lambda x: symgrad.sin(x) ** 2 + symgrad.cos(x) ** 2,
    "a derivative that vanishes at 1": lambda x: x * symgrad.exp(-x),
    "a difference of large numbers": lambda x: (x + 1e8) ** 2 - x**2,
    "saturation": lambda x: symgrad.log(1 + symgrad.exp(x)) - symgrad.tanh(20 * x),
    "kinks": lambda x: symgrad.relu(x - 1) + symgrad.abs(x) + symgrad.clamp(x, -1, 1),
    "a step": lambda x: symgrad.floor(x) * x,
    "two arguments that cancel": lambda x, y: (x - y) * (x + y) - x * x + y * y,
    "ties": lambda x, y: symgrad.maximum(x, y) - symgrad.minimum(x, y),
    "not dependent on one argument": lambda x, y: x * x + 0 * y,
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", RIGHT)
def test_right_but_difficult_functions(name):
    claims = {"elementwise": True}
    assert check_adjoint(RIGHT[name], **claims).verdict == "passed"
    assert check_linearity(RIGHT[name], **claims).verdict == "passed"
    assert check_symmetry(RIGHT[name], **claims)


NOT_LINEAR = {
    "with a term of its own": lambda g, x: 3 * x**2 * g + 1e-9,
    "rounded": lambda g, x: (3 * x**2 * g).astype(np.float32).astype(np.float64),
    "but for zero": lambda g, x: np.where(np.all(g == 0), 1.0, 3 * x**2 * g),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NOT_LINEAR)
def test_pullbacks_that_are_not_linear(name):
    with pytest.raises(CheckFailure, match="vjp"):
        check_linearity(cube, pullback=NOT_LINEAR[name])


def test_infinite_derivatives_are_no_matter_of_linearity():
    assert check_linearity(symgrad.sqrt) and check_linearity(symgrad.log) and check_linearity(lambda x: symgrad.abs(x) ** 0.5)


@pytest.mark.sweep
def test_a_hessian_that_is_not_symmetric():
    Spin = saving(lambda x: (x * x).sum() / 2, lambda g, x: g * (x + 1e-6 * symgrad.stack([x[1], -x[0]])), "Spin")  # a field that is no gradient
    with pytest.raises(CheckFailure, match="⟨s, H t⟩"):
        check_symmetry(Spin, shapes=((2,),), shrink=False)


def test_when_they_do_not_apply():
    assert check_symmetry(symgrad.sin).reason == "of one number there is only one second derivative"
    assert check_symmetry(cube, pullback=slope).reason == "it has no second derivative"
    assert check_adjoint(cube, pullback=slope).reason == "it has no pushforward"
    for body in (check_adjoint, check_linearity, check_symmetry):
        assert body(np.floor).verdict == "not applicable" and body(REGISTRY["argmax"]).verdict == "not applicable"


def test_numbers_move_by_their_last_places():
    x = np.array([1.0, 1.0, -3.0, 0.0, np.inf, 5e-324])
    for k in range(64):
        y = shift_by_ulp(x, k)
        assert y[0] == y[1] and y[3] == 0 and y[4] == np.inf and (y[0] > 1) == (k % 2 == 0) and (y[2] < -3) == (k % 2 == 0)
    z = np.array([[1 + 2j], [3 - 1j]])
    assert shift_by_ulp(z, 2).shape == (2, 1)
    assert np.all(shift_by_ulp(z, 2).real > z.real) and np.all(np.abs(shift_by_ulp(z, 63) - z) < 1e-9 * np.abs(z))
    assert shift_by_ulp(np.array(2.0, np.float32), 0).dtype == np.float32 and shift_by_ulp(np.array(2.0), 0).shape == ()
    assert shift_by_ulp(np.arange(3), 0) is not None and shift_by_ulp(np.array([True]), 1).dtype == bool


def test_only_rounding_is_explained_by_rounding():
    def sides(mistake):
        def both(arrays):
            (x,) = arrays
            noisy = (x + 1e6) - 1e6
            return [Sides("it", noisy + mistake, x, np.abs(x))]

        return both

    x = np.array([0.1234567, 1.0])
    agree(sides(0.0), [x])  # 1e-11 off, and that varies as much
    for mistake in (1e-8, 1.0, np.array([0.0, 1e-8])):
        with pytest.raises(Wrong, match="it"):
            agree(sides(mistake), [x])


def test_a_jump_between_two_sides_of_a_point_is_not_rounding():
    def both(arrays):
        (x,) = arrays
        return [Sides("it", np.where(x == 3, 1.0, 0.0), np.zeros(1), np.ones(1))]

    with pytest.raises(Wrong):
        agree(both, [np.array([3.0])])


def test_places_that_are_not_finite():
    def both(left, identical):
        return lambda arrays: [Sides("it", np.array([left]), np.array([1.0]), np.array([1.0]), identical=identical)]

    agree(both(np.inf, False), [np.ones(1)])
    for left in (np.inf, np.nan):
        with pytest.raises(Wrong):
            agree(both(left, True), [np.ones(1)])
    assert moderate_mask([np.array([0.0, 1e-200, 1.0])], (3,), 1, True).tolist() == [True, False, True]
    assert not moderate_mask([np.array([0.0, 1e-200, 1.0])], (3,), 1, False).any()


def test_bits():
    same_bits("it", np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    same_bits("it", None, None)
    for a, b in (([1.0], [np.nextafter(1.0, 2)]), ([0.0], [-0.0]), ([1.0], [[1.0]]), ([1.0], [1])):
        with pytest.raises(Wrong):
            same_bits("it", np.array(a), np.array(b))
    with pytest.raises(Wrong):
        same_bits("it", None, np.zeros(1))
