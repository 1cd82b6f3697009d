"""Values and derivatives within 8, 8, 64 and 512 ULP of many-digit ones: next to roots, in tails, and at the ends of the range."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import func
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


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(2)
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
