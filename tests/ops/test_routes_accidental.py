"""A cotangent or a factor that is zero at one point only is no selection: times an infinite slope it gives no finite number, except the right one.

The functions f(g(x)) have an infinite slope g' at a point at which f' is zero; their derivative may be finite, and rules do not find it. An op that
selects stands anywhere in the function: before, between or behind them, or in another term. What the rules find without it is NaN or infinite.
"""

import math

import numpy as np
import pytest

import symgrad
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array

func, tensor, where = symgrad.func, symgrad.tensor, symgrad.where
STEEP = {  # functions with an infinite slope at a point, with the point and the value there
    "sqrt": (lambda u: u.sqrt(), 0.0), "third": (lambda u: u ** (1 / 3), 0.0), "power": (lambda u: u**0.37, 0.0),
    "root of abs": (lambda u: u.abs().sqrt(), 0.0), "asin": (lambda u: u.asin() - math.pi / 2, 1.0), "acos": (lambda u: u.acos(), 1.0),
    "acosh": (lambda u: u.acosh(), 1.0), "half": (lambda u: (2.3 - u).sqrt(), 2.3), "root of root": (lambda u: u.sqrt() ** 0.6, 0.0),
    "root of square": (lambda u: (u * u).sqrt().sqrt(), 0.0),
}
FLAT = {  # functions with the derivative zero at 0
    "square": lambda a: a**2, "product": lambda a: a * a, "cube": lambda a: a**3 / 3, "cosine": lambda a: 1 - a.cos(), "power": lambda a: a ** 2.7,
    "difference": lambda a: a.sinh() - a.sin() + a * a, "cosh": lambda a: a.cosh(),
    "inner product": lambda a: (a * tensor([1.0, 0.3])) @ (a * tensor([0.7, 1.0])),
    "norm": lambda a: symgrad.stack([a, 0 * a]).square().sum(), "sum": lambda a: a.square() + 1.7 * a * a,
}
OTHERS = {  # functions of f(g(x)) and of a further number w, with a selection that has nothing to do with the zero
    "term": lambda y, w: y + w.relu(), "term that is dropped": lambda y, w: y + (w - 3).relu(), "factor": lambda y, w: y * (1 + w.relu()),
    "clamped": lambda y, w: y + w.clamp(0.2, 0.4), "maximum": lambda y, w: symgrad.maximum(y - 1, w - 9) + w,
    "where": lambda y, w: where(w > 0, y, w),
    "where of both": lambda y, w: where(tensor([True, False]), y, w)[0] + w, "behind": lambda y, w: (y + w).relu() * w,
    "stack": lambda y, w: symgrad.stack([y, y, w - 9]).amax(), "exp": lambda y, w: (y * w + w.relu()).exp(),
}
SHORT = ("backward", "grad", "create_graph", "jvp", "jacfwd", "jet", "forward_ad", "vmap of grad", "hessian", "laplacian")


def slope(f, x, i):
    """The derivative by the definition, one-sided where the function has no value on the other side; infinite if the quotients grow."""
    out = []
    for sign in (1.0, -1.0):
        quotients = []
        for h in (1e-9, 1e-11, 1e-13):
            moved = x.clone()
            moved[i] += sign * h
            quotients.append((f(moved) - f(x)).item() / (sign * (moved[i] - x[i]).abs().item()))
        if np.isfinite(quotients).all():
            out.append(quotients[0] if np.ptp(quotients) < 1e-2 * max(1.0, abs(quotients[0])) else math.inf)
    return out


def finite_and_wrong(f, x, names=None):
    """The routes that give a finite number that is wrong, with what they give."""
    out = {}
    with np.errstate(all="ignore"):
        truth = slope(f, x, 0)
        for name, route in GRADIENTS.items():
            if names is None or name in names:
                found = float(array(route(f, x))[0])
                if math.isfinite(found) and not any([abs(found - t) < 1e-2 for t in truth]):
                    out[name] = found
        for routes in (HESSIANS, TRACES):
            for name, route in routes.items():  # a function that is smooth in its first argument is not drawn
                if names is None or name in names:
                    found = array(route(f, x))
                    if np.isfinite(found).all() and not np.isfinite(array(HESSIANS["jacrev of jacrev"](f, x))).all() and found.ravel()[0] == 0:
                        out[name] = found.tolist()
    return out


def function(steep, flat, other):
    g, at = STEEP[steep]

    def f(v):
        a = g(v[0])
        return OTHERS[other](FLAT[flat](a.expand(2) if flat == "inner product" else a), v[1])

    return f, tensor([at, 0.6])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("other", OTHERS)
def test_a_zero_at_a_point_times_an_infinite_slope(other):
    rng = np.random.default_rng(len(other))
    for steep in rng.permutation(list(STEEP))[:2]:
        flat = list(FLAT)[rng.integers(len(FLAT))]
        assert not finite_and_wrong(*function(steep, flat, other), SHORT), (steep, flat)


@pytest.mark.sweep
@pytest.mark.parametrize("flat", FLAT)
def test_a_zero_at_a_point_times_an_infinite_slope_by_all_routes(flat):
    rng = np.random.default_rng(len(flat))
    for steep in STEEP:
        other = list(OTHERS)[rng.integers(len(OTHERS))]
        assert not finite_and_wrong(*function(steep, flat, other)), (steep, other)


PRODUCTS = {
    "product": lambda c, y: c * y, "of a sum": lambda c, y: (c * y + y * c.sin()) / 3, "twice": lambda c, y: y * (c * 1.7) * (2.3 - c),
    "inner product": lambda c, y: symgrad.stack([c, 0 * c]) @ symgrad.stack([y, y]), "vector": lambda c, y: (c * symgrad.stack([y, 2.0 * y])).sum(),
    "expm1": lambda c, y: c.expm1() * y,
}
NESTED = ("hessian", "jacrev of jacrev", "jacrev of jacfwd", "jacfwd of jacrev", "jacfwd of jacfwd")


def check_factor(steep, product, other, names):
    """The mixed derivative of c g(u) is infinite at c = 0; along u alone the function is 0."""
    g, at = STEEP[steep]
    f = lambda v: OTHERS[other](PRODUCTS[product](v[2], g(v[0])), v[1])  # noqa: E731
    with np.errstate(all="ignore"):
        for name in names:
            found = array(HESSIANS[name](f, tensor([at, 0.6, 0.0])))
            assert not np.isfinite([found[0, 2], found[2, 0]]).any(), f"{name}: {found}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("other", OTHERS)
def test_a_factor_that_is_zero_at_a_point_has_an_infinite_derivative_along_itself(other):
    rng = np.random.default_rng(len(other))
    for product in rng.permutation(list(PRODUCTS))[:3]:
        check_factor(rng.choice(list(STEEP)), product, other, NESTED)


@pytest.mark.sweep
@pytest.mark.parametrize("steep", STEEP)
def test_a_factor_that_is_zero_at_a_point_by_all_routes(steep):
    rng = np.random.default_rng(len(steep))
    check_factor(steep, rng.choice(list(PRODUCTS)), rng.choice(list(OTHERS)), HESSIANS)


ALONG = {  # sums of derivatives along u, and coefficients of series
    "laplacian": lambda f, u: func.laplacian(lambda x: f(x[0]))(u[None]), "derivatives": lambda f, u: func.derivatives(f, 2)(u)[2],
    "jet": lambda f, u: func.jet(f, (u,), ([tensor(1.0), tensor(0.0)],))[1][1], "jvp": lambda f, u: func.jvp(f, (u,), (tensor(-0.7),))[1],
}


@pytest.mark.parametrize("along", ALONG)
def test_derivatives_of_sums_and_series_by_a_factor_that_is_zero_at_a_point(along):
    rng = np.random.default_rng(len(along))
    with np.errstate(all="ignore"):
        for steep in rng.permutation(list(STEEP))[:4]:
            g, at = STEEP[steep]
            of = lambda c: ALONG[along](lambda u: OTHERS["term"](PRODUCTS["product"](c, g(u)), c + 0.3), tensor(at))  # noqa: B023, E731
            for transform in (func.grad, func.jacfwd):
                assert not math.isfinite(transform(of)(tensor(0.0)).item()), (steep, transform)


SELECTED = {  # factors that are 0 on a neighbourhood of -0.3, since an op did not select what is in them
    "where": lambda x: where(x > 1.0, x, 0.0), "relu": lambda x: x.relu(), "masked_fill": lambda x: x.masked_fill(x < 1.0, 0.0),
    "threshold": lambda x: symgrad.nn.functional.threshold(x, 0.3, 0.0), "clamp": lambda x: x.clamp(0.0, 2.0),
    "product": lambda x: x.relu() * x.exp(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("selected", SELECTED)
def test_a_factor_that_is_always_zero_has_the_derivative_zero_behind_an_infinite_slope(selected):
    """The function is constant where the factor is 0, and its derivative is 0 and not NaN."""
    factor = SELECTED[selected]
    functions = {"root": lambda x: (factor(x) * (2.3 + x)).sqrt(), "first": lambda x: ((1.7 - x) * factor(x)).sqrt() * x,
                 "power": lambda x: (factor(x) * x.exp()) ** 0.37, "root of root": lambda x: (x * factor(x)).abs().sqrt()}
    for at, f in functions.items():
        with np.errstate(all="ignore"):
            for name, route in GRADIENTS.items():
                found = array(route(lambda v, f=f: f(v[0]), tensor([-0.3])))
                assert (found == 0).all(), f"{at}, {name}: {found}"
