"""A cotangent or a factor that is zero at one point only is no selection: times an infinite slope it gives no finite number, except the right one.

The functions f(g(x)) have an infinite slope g' at a point at which f' is zero; their derivative may be finite, and rules do not find it. An op that
selects stands anywhere in the function: before, between or behind them, or in another term. What the rules find without it is NaN or infinite.
"""

import math

import numpy as np
import pytest

import symgrad
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array

tensor, where = symgrad.tensor, symgrad.where
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
