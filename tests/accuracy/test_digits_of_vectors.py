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
# name: the function, the formula, the points, and the size below which an element counts as that large
FUNCTIONS = {
    "norm": (lambda v: v.norm(), length, DOMINATED + LARGE_AND_SMALL, 0),
    "norm_3": (lambda v: symgrad.norm(v, 3), p_length(3), DOMINATED + LARGE_AND_SMALL, 0),
    "norm_4": (lambda v: symgrad.norm(v, 4), p_length(4), DOMINATED + LARGE_AND_SMALL, 0),
    "hypot": (lambda v: symgrad.hypot(v[0], v[1]), lambda x: length(x[:2]), [x[:2] for x in DOMINATED + LARGE_AND_SMALL[:3]], 0),
    "prod": (lambda v: v.prod(), product, FACTORS, 0),
    "prod_of_columns": (lambda v: v.reshape(2, 2).prod(0).sum(), lambda x: x[0] * x[2] + x[1] * x[3], FACTORS, 0),
    "cumprod": (lambda v: v.cumprod(0)[3], product, FACTORS, 0),
    "logsumexp": (lambda v: v.logsumexp(0), log_sum, EXPONENTS, 1),
    "logcumsumexp": (lambda v: v.logcumsumexp(0)[3], log_sum, EXPONENTS, 1),
    "softmax": (lambda v: v.softmax(0)[1], lambda x: log_share(1)(x).exp(), EXPONENTS, 1),
    "log_softmax": (lambda v: v.log_softmax(0)[0], log_share(0), EXPONENTS, 1),
    "cross_entropy": (lambda v: F.cross_entropy(v[None], symgrad.tensor([WEIGHTS])),
                      lambda x: -total([log_share(k)(x) * w for k, w in enumerate(WEIGHTS)]), EXPONENTS, 1),
    "var": (lambda v: v.var(), lambda x: covariance(x, x), OFFSETS, 0),
    "std": (lambda v: v.std(), lambda x: covariance(x, x).sqrt(), OFFSETS, 0),
    "cov": (lambda v: symgrad.cov(v.reshape(2, -1))[0, 1], lambda x: covariance(*halves(x)), two(OFFSETS, [ROW]), 0),
    "corrcoef": (lambda v: symgrad.corrcoef(v.reshape(2, -1))[0, 1],
                 lambda x: covariance(*halves(x)) / (covariance(x[:4], x[:4]) * covariance(x[4:], x[4:])).sqrt(),
                 two([*OFFSETS[:3], [1e160, 2e160, -1e150, 1.0]], [ROW]), 0),
    "cosine_similarity": (lambda v: F.cosine_similarity(*halves(v), dim=0), lambda x: dot(*halves(x)) / (length(x[:4]) * length(x[4:])), PAIRS, 0),
    "normalize": (lambda v: F.normalize(v, dim=0, eps=0.0)[0], lambda x: x[0] / length(x), DOMINATED + LARGE_AND_SMALL[:3], 0),
    "renorm": (lambda v: symgrad.renorm(v.reshape(2, -1) * 2.0**120, 2, 0, 1e-3)[0, 1],  # torch adds 1e-7 to the norm, which counts for small ones
               lambda x: x[1] * 2.0**120 / (length(x[:2]) * 2.0**120 + 1e-7) * 1e-3, DOMINATED, 0),
    "dist": (lambda v: symgrad.dist(*halves(v)), distance, PAIRS, 0),
    "pairwise_distance": (lambda v: F.pairwise_distance(*halves(v), eps=0.0), distance, PAIRS, 0),
    "cdist": (lambda v: symgrad.cdist(*[row[None] for row in halves(v)])[0, 0], distance, PAIRS, 0),
    "pdist": (lambda v: F.pdist(v.reshape(2, -1))[0], distance, PAIRS, 0),
}
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


LOSSES = {
    "binary_cross_entropy_with_logits": (lambda v: F.binary_cross_entropy_with_logits(v[:2], v[2:], reduction="sum"), lambda x: total(
        [((a if a < 40 else -a).exp() + 1).log() + (0 if a < 40 else a) - a * t for a, t in zip(*halves(x))]), [
            [40.0, -40.0, 0.25, 0.75], [300.0, -700.0, 1.0, 0.0], [1e-9, -1e-5, 0.5, 0.5]], 1),
    "gaussian_nll_loss": (lambda v: F.gaussian_nll_loss(v[0], v[1], v[2]), lambda x: (x[2].log() + (x[0] - x[1]) ** 2 / x[2]) / 2,
                          [[1.0, 1 + 1e-9, 1e-3], [1e8, 1e8 + 1, 2.0]], 0),
    "poisson_nll_loss": (lambda v: F.poisson_nll_loss(v[0], v[1], full=True),
                         lambda x: x[0].exp() - x[1] * x[0] + x[1] * x[1].log() - x[1] + (x[1] * 2 * mpmath.pi).log() / 2,
                         [[-30.0, 5.0], [3.0, 1e5], [1.0, 1.5]], 0),
    "kl_div": (lambda v: F.kl_div(v[0], v[1], reduction="sum"), lambda x: x[1] * (x[1].log() - x[0]), [[-1e-3, 0.999], [-700.0, 1e-300]], 0),
    "logaddexp2": (lambda v: symgrad.logaddexp2(v[0], v[1]), lambda x: total([(a * mpmath.log(2)).exp() for a in x]).log() / mpmath.log(2),
                   [[0.0, -40.0], [1000.3, 999.9], [-1e5, 3.0], [20.0, -60.0]], 1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_in_tails(name):
    function, formula, points, size = LOSSES[name]
    assert [(point, loss) for point in points for loss in losses(function, formula, point, size)] == []


@pytest.mark.sampled(10)
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
