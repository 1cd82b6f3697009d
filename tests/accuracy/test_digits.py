"""Values and derivatives within 8, 8, 64 and 512 ULP of many-digit ones: next to roots, in tails, at the ends of the range, far from a mean."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import symgrad
from symgrad import autograd, func
from symgrad.dtypes.ulp import ulp_of
from symgrad.reference.accuracy import BOUNDS

F = symgrad.nn.functional
MAX = 1.7976931348623157e308


def beside(*roots):
    """Floats from next to numbers to a quarter away from them."""
    steps = np.concatenate([4.0 ** np.arange(-26, -1), -(4.0 ** np.arange(-26, -1))])
    return np.unique([root + step for root in roots for step in (0.0, *steps)])


def worst_ulp(function, truth, points, order, dtype="float64"):
    """The largest error of a derivative of a function at points, and the point; `truth` is the function of mpmath's numbers."""
    derivative = function
    for _ in range(order):
        derivative = func.grad(derivative)
    points = np.asarray(points).astype(dtype)
    found = (func.vmap(derivative) if order else derivative)(symgrad.tensor(points)).tolist()
    error_of = ulp_of(dtype).error
    errors = []
    with mpmath.workdps(420):
        for x, y in zip(points.tolist(), found):
            x = mpmath.mpf(x)
            true = mpmath.diff(truth, x, order, h=mpmath.mpf(10) ** (-60 + min(0, int(mpmath.log10(abs(x)))) if x else -60)) if order else truth(x)
            errors.append((error_of(y, true), float(x), y, mpmath.nstr(true, 20)))
    return max(errors)


def silu(x):
    return x / (1 + mpmath.exp(-x))


def mish(x):
    return x * mpmath.tanh(mpmath.log1p(mpmath.exp(x)))


ROOTS = {"silu": (0.0, -1.2784645427610737, 2.3993572805154675, -2.3993572805154675, 3.435840993535111, -3.435840993535111),
         "mish": (0.0, -1.1924312145154952, -2.256376396360793, 1.4905711794854284, -3.2673378465204044, -0.08793443131491421, 2.114842563020877)}
TAILS = [-MAX, MAX, -1e308, -760.0, -751.5, -745.2, -720.0, -708.5, -300.0, -41.0, -40.0, -39.0, -7.0, 7.0, 39.0, 41.0, 180.0, 370.0, 720.0, 748.0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("truth", [silu, mish])
def test_gated_activations_next_to_roots_and_in_tails(truth, order):
    points = [*beside(*ROOTS[truth.__name__]), *TAILS]
    worst = worst_ulp(getattr(F, truth.__name__), truth, points, order)
    assert worst[0] <= BOUNDS[order], worst


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("truth", [silu, mish])
def test_gated_activations_in_float32(truth, order):
    points = [-1.2784646, -1.1924312, -104.0, -88.0, -20.0, -2.39935, 0.0, 1e-40, 1.0, 30.0, 3e38]
    worst = worst_ulp(getattr(F, truth.__name__), truth, points, order, "float32")
    assert worst[0] <= BOUNDS[order], worst


def gelu(x):
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_tanh(x):
    return x / (1 + mpmath.exp(-mpmath.sqrt(8 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)))


@pytest.mark.sweep
@pytest.mark.parametrize("order", range(1, 4))
@pytest.mark.parametrize("function, truth, roots", [
    pytest.param(F.gelu, gelu, (0.0, -0.7517915246935645, 2**0.5, -(2**0.5), 2.0, -2.0), id="none"),
    pytest.param(lambda x: F.gelu(x, "tanh"), gelu_tanh, (0.0, -0.7524614220710163, 1.4185040087908283, -1.4185040087908283, 2.013480724624258,
                                                          -2.013480724624258), id="tanh"),
])
def test_gelu_next_to_the_roots_of_its_derivatives(function, truth, roots, order):
    points = [x for x in beside(*roots) if abs(x) != 2]  # where the third derivative is 0, and its difference quotient is not
    worst = worst_ulp(function, truth, points, order)
    assert worst[0] <= BOUNDS[order], worst


@pytest.mark.parametrize("beta", [0.5, 2.0, 1e10, -2.0])
@pytest.mark.parametrize("order", range(4))
def test_softplus_where_its_scaled_argument_overflows(beta, order):
    points = [MAX, 1e308, -MAX, *(np.array([1e-300, -700.0, -30.0, -1.0, -1e-9, 1e-9, 1.0, 40.0]) / abs(beta))]
    worst = worst_ulp(lambda x: F.softplus(x, beta), lambda x: (mpmath.log1p(mpmath.exp(-abs(beta * x))) + max(beta * x, 0)) / beta, points, order)
    assert worst[0] <= BOUNDS[order], worst


error_of = ulp_of("float64").error


def centred(row):
    mean = mpmath.fsum(row) / len(row)
    return [a - mean for a in row]


def true_var(a, b):
    return mpmath.fdot(centred(a), centred(a)) / (len(a) - 1)


def true_std(a, b):
    return mpmath.sqrt(true_var(a, b))


def true_cov(a, b):
    return mpmath.fdot(centred(a), centred(b)) / (len(a) - 1)


def true_corrcoef(a, b):
    return true_cov(a, b) / mpmath.sqrt(true_var(a, b) * true_var(b, a))


def true_weighted_cov(a, b):
    weights = [mpf(w) for w in (1, 2, 3, 1, 2, 3)]
    total = mpmath.fsum(weights)
    a, b = ([x - mpmath.fdot(row, weights) / total for x in row] for row in (a, b))
    return mpmath.fsum(w * x * y for w, x, y in zip(weights, a, b)) / (total - 1)


def weighted_cov(x):
    return symgrad.cov(x, fweights=symgrad.tensor([1, 2, 3, 1, 2, 3]))[0, 1]


FUNCTIONS = [pytest.param(function, truth, id=truth.__name__[5:]) for function, truth in (
    (lambda x: symgrad.var(x[0]), true_var), (lambda x: symgrad.std(x[0]), true_std), (lambda x: symgrad.cov(x)[0, 1], true_cov),
    (lambda x: symgrad.corrcoef(x)[0, 1], true_corrcoef), (weighted_cov, true_weighted_cov))]


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e15])
@pytest.mark.parametrize("function, truth", FUNCTIONS)
def test_spreads_of_large_numbers(function, truth, offset):
    """Beside a number that is next to zero, as a difference of larger ones, digits are those of the largest number of its order."""
    values = np.random.default_rng(3).normal(size=(2, 6)) + offset
    x = symgrad.tensor(values, requires_grad=True)
    y = function(x)
    (first,) = autograd.grad(y, x, create_graph=True)
    second = [autograd.grad(first[0, i], x, retain_graph=True)[0] for i in range(6)]
    with mpmath.workdps(90):
        step = mpf(10) ** -25

        def at(*moves):
            rows = [[mpf(float(a)) for a in row] for row in values]
            for i, sign in moves:
                rows[0][i] += sign * step
            return truth(*rows)

        orders = {0: [(y.item(), at())], 1: [(first[0, i].item(), (at((i, 1)) - at((i, -1))) / (2 * step)) for i in range(6)],
                  2: [(second[i][0, j].item(), (at((i, 1), (j, 1)) - at((i, 1), (j, -1)) - at((i, -1), (j, 1)) + at((i, -1), (j, -1)))
                       / (4 * step**2)) for i in range(6) for j in range(6)]}
        for order, pairs in orders.items():
            largest = max(1e-20, *(abs(true) for _, true in pairs))  # a second derivative by one row is 0, a quotient of differences is not
            for got, true in pairs:
                assert error_of(got, true, largest) <= BOUNDS[order], (order, got, true)


@pytest.mark.parametrize("row", [[0.25, -1.5, 3.0, 2.75], [1.2e7, 1.2e7 - 1.5, 1.2e7 + 2, 1.2e7], [-148.65683979394592, 590.32428, -5.97, -330.39],
                                 [-1e300, -0.1, -700.3, 33.37]], ids=str)
def test_the_running_logarithm_of_a_sum_of_exponentials(row):
    """The gradient of each result; that of large numbers would have no digits if it were made of the rounded results."""
    x = symgrad.tensor(row, requires_grad=True)
    y = symgrad.logcumsumexp(x, 0)
    with mpmath.workdps(1000):
        for k in range(len(row)):
            (slope,) = autograd.grad(y[k], x, retain_graph=True)
            peak = max(mpf(v) for v in row[:k + 1])
            each = [mpmath.exp(mpf(v) - peak) for v in row[:k + 1]]
            assert error_of(y[k].item(), peak + mpmath.log(mpmath.fsum(each))) <= BOUNDS[0]
            for got, true in zip(slope.tolist(), [*(e / mpmath.fsum(each) for e in each), *(0 for _ in row[k + 1:])]):
                assert error_of(got, true) <= BOUNDS[1], (k, got, true)


@pytest.mark.parametrize("row", [[-np.inf, -np.inf], [np.inf, np.inf], [np.inf, 0.0], [-np.inf, 0.0]])
def test_gradients_of_sums_of_exponentials_of_infinite_numbers_are_finite(row):
    """Equal infinite numbers share the gradient equally; torch has NaN."""
    x = symgrad.tensor(row, requires_grad=True)
    shares = [0.5, 0.5] if row[0] == row[1] else [float(v == max(row)) for v in row]
    pair = [autograd.grad(symgrad.logaddexp(x[0], x[1]), x)[0], autograd.grad(symgrad.logsumexp(x, 0), x)[0],
            autograd.grad(symgrad.logcumsumexp(x, 0)[1], x)[0]]
    assert [g.tolist() for g in pair] == [shares] * 3


@pytest.mark.parametrize("pair", [(1e308, 1.7976931348623157e308), (-1.7976931348623157e308, 1.5e308), (5e-324, 1.7e308)])
def test_slopes_of_the_angle_of_a_point_next_to_the_largest_float(pair):
    a, b = (symgrad.tensor(v, requires_grad=True) for v in pair)
    slopes = autograd.grad(symgrad.atan2(a, b), [a, b])
    with mpmath.workdps(50):
        first, second = map(mpf, pair)
        square = first**2 + second**2
        assert error_of(slopes[0].item(), second / square) <= BOUNDS[1] and error_of(slopes[1].item(), -first / square) <= BOUNDS[1]
