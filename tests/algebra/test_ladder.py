"""The ladder of precision and errors in units in the last place, for numbers with known values."""

import math

import mpmath
import numpy as np
import pytest

from symgrad.algebra import ladder
from symgrad.algebra.ladder import DIFFERENT, OPEN, SAME, absolute_condition, agreeing_digits, compare, condition, random_shift, rungs
from symgrad.algebra.values import accurate_value, value
from symgrad.carriers import precise
from symgrad.dtypes.ulp import ulp_of


def computed(function):
    """A function of the working precision in the form that the ladder expects, and the recorded digits of every evaluation."""
    seen = []

    def evaluate(digits, places):
        seen.append(digits)
        with precise.working_precision(digits):
            return [function() for _ in places]

    return evaluate, seen


@pytest.mark.parametrize("exponent", [20, 100, 250])
def test_cancelling_terms_are_computed_with_more_digits(exponent):
    evaluate, seen = computed(lambda: (1 + precise.context.mpf(10) ** -exponent) - 1)
    (found,) = ladder.settled(evaluate)
    assert abs(found * mpmath.mpf(10) ** exponent - 1) < 1e-15 and seen[-1] > exponent + 30


def test_a_zero_with_few_digits_is_not_settled():
    evaluate, seen = computed(lambda: precise.context.zero)
    assert ladder.settled(evaluate, 1, rungs()) == [0] and seen[-1] == 520
    noise, _ = computed(lambda: precise.context.sin(precise.context.pi))  # another tiny number on every rung
    assert ladder.settled(noise) == [0]


def test_unsettled_numbers_are_none_and_nan_is_settled():
    evaluate, seen = computed(lambda: precise.context.sin(precise.context.mpf(precise.context.dps)))
    assert ladder.settled(evaluate, 1, rungs(65, 200)) == [None] and seen == [65, 130, 200]
    assert ladder.settled(lambda digits, places: [3, mpmath.inf], 2) == [3, mpmath.inf]


def test_two_computations_of_a_number():
    def with_digits(digits):
        with precise.working_precision(digits):
            x = precise.context.mpf("1e-90")
            return (1 + x) - 1, x, 2 * x

    (a, x, y), (finer, _, _) = with_digits(65), with_digits(200)

    def verdict(*pairs, noise=0):
        found = iter(pairs)
        return compare(lambda digits, places: [(*next(found), lambda: noise)], 1, range(len(pairs)))[0][0]

    assert verdict((a, x)) == OPEN and verdict((a, x), (finer, x)) == SAME and verdict((1, 1)) == SAME
    assert verdict((x, y), (x, y)) == DIFFERENT and verdict((x, y), (x, y), noise=1) == OPEN  # rounding may explain it
    assert verdict((mpmath.nan, x)) == OPEN and verdict((mpmath.inf, x), (mpmath.nan, x)) == DIFFERENT
    assert verdict((mpmath.mpf("1e-65"), mpmath.mpf(0)), (mpmath.mpf("1e-200"), mpmath.mpf(0))) == SAME  # it shrinks
    assert agreeing_digits(x, x * (1 + mpmath.mpf("1e-9"))) == pytest.approx(9, abs=1) and agreeing_digits(mpmath.mpc(1, 1), 1) == 0


def test_the_condition_number_is_the_ratio_of_relative_changes():
    rng = np.random.default_rng(0)
    with precise.working_precision(65):
        x = precise.lift_value(np.array([1e4]))

        def power(cells):
            return (cells ** 100).tolist() + precise.log(cells / cells).tolist()

        exact = power(x)
        moved = absolute_condition(exact, lambda: power(random_shift(rng)(x)), 20)
        assert 50 <= condition(exact[0], moved[0]) <= 101 and condition(exact[1], moved[1]) == 1
    assert condition(0, mpmath.mpf(1)) == math.inf


def test_the_precision_of_other_users_does_not_change():
    before = mpmath.mp.dps, precise.context.dps
    with pytest.raises(ZeroDivisionError), precise.working_precision(100):
        assert mpmath.mp.dps == precise.context.dps == 100
        raise ZeroDivisionError
    assert (mpmath.mp.dps, precise.context.dps) == before and list(rungs(50, 50)) == [50]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_one_unit_is_the_distance_of_neighbours(dtype):
    ulp = ulp_of(dtype)
    kind = np.dtype(dtype).type if dtype != "bfloat16" else __import__("ml_dtypes").bfloat16
    for x in (1.0, 1.5, 3.0, 1e-3, 1000.0):
        near, beyond = kind(x), np.nextafter(kind(x), kind(np.inf))
        assert ulp.error(float(beyond), mpmath.mpf(float(near))) == 1
    assert ulp.error(0.0, ulp.least) == 1 and ulp.error(math.nan, 1) == math.inf and ulp.error(-math.inf, mpmath.mpf(10) ** 500) == math.inf


def test_values_of_expressions_are_real():
    import sympy

    x, y = sympy.symbols("x y")
    assert math.isnan(value(sympy.sqrt(x) * sympy.sqrt(x - 1), [x])([-1]))
    assert value(sympy.Piecewise((sympy.log(x), x > 0), (7, True)), [x])([-1]) == 7
    assert float(accurate_value(sympy.gamma(x) * sympy.besselj(0, y), [x, y])([4.0, 0.0])) == 6
    assert float(accurate_value(sympy.tan(x) - x, [x])([1e-40])) == pytest.approx(1e-120 / 3, rel=1e-15)
    with pytest.raises(TypeError, match="g is not a function"):
        value(sympy.Function("g")(x), [x])
