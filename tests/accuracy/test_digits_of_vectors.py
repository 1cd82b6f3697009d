"""Values, gradients and Hessians of functions of vectors with extreme elements, element by element, against formulas in many digits.

The bounds are 8, 8 and 64 ULP (orders 0 to 2) times the condition number: by how many times its relative size an entry moves with the elements. Sums
of exponentials and spreads move with the absolute sizes of their elements instead, up to 1.
"""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import symgrad
from symgrad import autograd, func
from symgrad.dtypes.ulp import ulp_of
from symgrad.reference.accuracy import BOUNDS
from tests.support.lines import lines
from tests.support.second_order import jets

F = symgrad.nn.functional
error_of = ulp_of("float64").error

DOMINATED = [[1.0, 1e-9, -3e-12, 2e-7], [1e-9, 5.0, 1e-20, 0.25], [1e8, 1.0, -2.0, 0.5], [3.0, -4.0, 12.0, 0.1], [7.0, 7e-160, 1e-30, -2e-18],
             [0.3, -1.5, 2.75, 1e-3]]
LARGE_AND_SMALL = [[1e200, 1e200, 1e-200, 1e-200], [1e-100, -3e-110, 2e-95, 1e-101], [1e300, 2.5e300, -1e250, 1e-300],
                   [3e-310, 4e-320, -1e-308, 2e-309]]
FACTORS = [[1e200, 1e200, 1e-200, 1e-200], [1e-200, 1e200, 1e-200, -1e200], [1e-200, 1e-120, 1e200, 2e110], [3.0, 0.0, 1e-200, 1e200],
           [1e-290, 1e300, 1e-5, -7.0], [2.0, 3.0, -5.0, 0.1]]
EXPONENTS = [[0.3, -1.5, 2.75, 1e-3], [1000.0, 1000.5, -3.0, 999.0], [-745.0, 0.0, 30.0, -30.0], [1e8, 1e8 + 1.5, 1e8 - 40, 3.0],
             [40.0, 0.0, -40.0, -80.0], [-1e300, -0.1, -700.3, 33.37], [-5.0, -300.0, -700.0, -709.0], [1e-8, 2e-8, 0.0, -50.0]]
OFFSETS = [[0.3, -1.5, 2.75, 1e-3], [1e8 + 0.25, 1e8 - 1.5, 1e8 + 3, 1e8], [-1e15, -1e15 + 1, -1e15 - 2, -1e15 + 0.5], [1e-9, 1.0, 1e-12, 2e-6],
           [1.0, 1 + 1e-13, 1 - 3e-14, 1 + 2e-16]]


def total(terms):
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def product(x):
    first, *rest = x
    for factor in rest:
        first = first * factor
    return first


def dot(a, b):
    return total([x * y for x, y in zip(a, b)])


def length(x):
    square = dot(x, x)
    return square.sqrt() if square.value else square


def p_length(p):
    return lambda x: total([abs(a) ** p for a in x]) ** (mpf(1) / p)


def log_sum(x):
    peak = max(a.value for a in x)
    return total([(a - peak).exp() for a in x]).log() + peak


def log_share(k):
    return lambda x: -total([(a - x[k]).exp() for a in x]).log()


def mean(x):
    return total(x) / len(x)


def covariance(a, b):
    return total([(x - mean(a)) * (y - mean(b)) for x, y in zip(a, b)]) / (len(a) - 1)


def halves(x):
    return x[:len(x) // 2], x[len(x) // 2:]


def distance(x):
    return length([a - b for a, b in zip(*halves(x))])


def two(rows, others):
    return [a + b for a in rows for b in others]


WEIGHTS = (0.25, 0.5, 0.125, 0.125)
ROW = [2.0, -1.0, 0.25, 1.5]
PAIRS = two(DOMINATED, [ROW])
FUNCTIONS, LOSSES = ({name: tuple(map(eval, fields)) for name, *fields in lines(table)} for table in ("functions_of_vectors", "losses_in_tails"))
SHARES = {"logcumsumexp"}  # a number before two larger ones, each the peak of its time, would need a sum for each result


def found_entries(function, point):
    """All entries of the value, of the gradient and of the Hessian, with their orders: by reverse mode twice, and forward over reverse."""
    x = symgrad.tensor(point, requires_grad=True)
    y = function(x)
    (first,) = autograd.grad(y, x, create_graph=True)
    rows = [autograd.grad(g, x, retain_graph=True, allow_unused=True)[0] if first.requires_grad else None for g in first]
    twice = [[0.0] * len(point) if row is None else row.tolist() for row in rows]
    over = func.hessian(function)(x.detach()).tolist()
    yield from ((0, 0, y.item()), *((1, k, g) for k, g in enumerate(first.tolist())))
    yield from ((2, k, h) for rows in (twice, over) for k, h in enumerate(sum(rows, [])))


def true_entries(formula, point):
    jet, n = formula(jets(point)), len(point)
    return [jet.value], jet.first, [jet.second[min(i, j), max(i, j)] for i in range(n) for j in range(n)]


def condition(formula, point, size, order, k):
    """By how much an entry moves, in units of itself, when the elements move by their own sizes, or by `size`."""
    numbers, step = [mpf(x) for x in point], mpf(2) ** -200
    entry = true_entries(formula, numbers)[order][k]
    moved = [[x + max(abs(x), size) * step if i == j else x for j, x in enumerate(numbers)] for i in range(len(numbers))]
    return sum(abs(true_entries(formula, at)[order][k] - entry) for at in moved) / step / abs(entry) if entry else mpf("inf")


def losses(function, formula, point, size=0, shares=False):
    """The entries whose errors are beyond their bounds; with `shares` second derivatives are sums of terms of the size of the first ones."""
    with mpmath.workdps((800 if size else 120) + 5 * max(int(abs(math.log10(abs(x) or 1))) for x in point)):
        true = true_entries(formula, point)
        for order, k, found in found_entries(function, point):
            terms = min(abs(true[1][k // len(point)]), abs(true[1][k % len(point)])) if shares and order == 2 else 0
            error = error_of(found, true[order][k], terms)
            if error > BOUNDS[order] and error > BOUNDS[order] * condition(formula, point, size, order, k):
                yield order, k, found, mpmath.nstr(true[order][k], 17), error


@pytest.mark.parametrize("name", LOSSES)
def test_losses_in_tails(name):
    function, formula, points, size = LOSSES[name]
    assert [(point, loss) for point in points for loss in losses(function, formula, point, size)] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_extreme_vectors(name):
    function, formula, points, size = FUNCTIONS[name]
    assert [(point, loss) for point in points for loss in losses(function, formula, point, size, name in SHARES)] == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_drawn_vectors(name):
    """Elements over 60 powers of ten, exponents of every size, and numbers that are large beside their distances."""
    function, formula, points, size = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    for _ in range(20):
        signs = rng.choice([-1.0, 1.0], len(points[0]))
        if size:
            point = rng.normal(size=len(signs)) * rng.choice([1.0, 30.0, 700.0]) + rng.choice([0.0, 1e3])
        elif points[0] in OFFSETS or points[0][:4] in OFFSETS:
            point = rng.normal(size=len(signs)) + rng.choice([0.0, 1.0, 1e6])
        else:
            point = signs * 10.0 ** rng.uniform(-30, 30, len(signs))
        assert list(losses(function, formula, point.tolist(), size, name in SHARES)) == [], point.tolist()


def test_a_loss_is_found():
    """The square root of a sum of squares loses the Hessian beside a dominant element, and squares that overflow."""
    def naive(v):
        return (v * v).sum().sqrt()

    assert {loss[0] for loss in losses(naive, length, [1.0, 1e-9, -3e-12, 2e-7])} == {2}
    assert {loss[0] for loss in losses(naive, length, [1e200, 1e200, 1.0])} >= {0, 1}
