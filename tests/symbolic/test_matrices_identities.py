"""At least sixty worked examples of matrix calculus: their text, and their numbers against elementwise expressions differentiated by SymPy."""

import itertools
import math
import re

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.carriers.lapack import hermitian_parts
from symgrad.matrixcalc import matrix_gradient, matrix_hessian
from tests.support.identities import IDENTITIES, SECTIONS

DIGITS = 50
CASES = [pytest.param(i, id=i.name) for i in IDENTITIES]


def compact(identity):
    find = matrix_hessian if identity.order == 2 else matrix_gradient
    return find(identity.function, identity.wrt, **identity.arrays)


def leaves(identity):
    """Named tensors with multiples of 1/8, and two or three elements along each axis."""
    words = dict.fromkeys(w for text in identity.arrays.values() for w in re.findall(r"\w+", text) if w != "symmetric" and not w.isdigit())
    sizes = {w: 2 + (n == 0 and len(words) > 1) for n, w in enumerate(words)}
    rng, out = np.random.default_rng(1), {}
    for name, text in identity.arrays.items():
        shape = [math.prod(sizes.get(w) or int(w) for w in length.split("*")) for length in text.split() if length != "symmetric"]
        value = rng.integers(1, 6, shape) / 8
        if len(shape) == 2:
            value = value + 2 * np.eye(*shape)
            value = (value + value.T) / 2 if "symmetric" in text else value
        out[name] = symgrad.tensor(value * (0.25 if identity.name == "log barrier" and name != "b" else 1.0), requires_grad=True, symbol=name)
    return out


def symbols_of(name, shape):
    names = ["_".join([name, *map(str, index)]) for index in itertools.product(*map(range, shape))]
    return np.array([sympy.Symbol(n, real=True) for n in names], object).reshape(shape)


def number(expression, at):
    return sympy.sympify(expression).xreplace(at).evalf(DIGITS + 10)


def number_of_derivative(expression, by, at):
    """The derivative by some symbols of an expression in which all others are replaced by numbers."""
    fixed = {s: v for s, v in at.items() if s not in by}
    return number(sympy.diff(sympy.sympify(expression).xreplace(fixed), *by), at)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("identity", CASES)
def test_text_and_numbers(identity):
    found = compact(identity)
    assert str(found) == identity.text
    assert found.is_compact and found.points == 2

    tensors = leaves(identity)
    with hermitian_parts():  # of a Cholesky factor, whose derivative is not by one triangle but along symmetric perturbations
        out = identity.function(**tensors)
        y = out.expr
    values = {name: t.detach().numpy() for name, t in tensors.items()}
    at = {s: sympy.Rational(float(v)) for name, v in values.items() for s, v in zip(symbols_of(name, v.shape).ravel(), v.ravel())}
    by = identity.wrt if isinstance(identity.wrt, tuple) else (identity.wrt,) * identity.order
    truth = np.array([number_of_derivative(e, chosen, at) for e in np.array(y, object).ravel()
                      for chosen in itertools.product(*(symbols_of(name, values[name].shape).ravel() for name in by))], object)
    truth = truth.reshape(np.shape(y) + tuple(n for name in by for n in values[name].shape))

    words = dict(zip([w for text in identity.arrays.values() for w in text.split() if w != "symmetric"],
                     [n for v in values.values() for n in v.shape]))
    elements = np.array(found.sympy({w: n for w, n in words.items() if w.isidentifier()}), object)
    assert elements.shape == truth.shape
    size = max(abs(t) for t in truth.ravel())
    for e, t in zip(elements.ravel(), truth.ravel()):
        assert abs(number(e, at) - t) <= size * sympy.Float(10) ** -DIGITS

    exact = truth.astype(float)
    if len(by) == 1 and out.ndim == 0:
        np.testing.assert_allclose(symgrad.autograd.grad(out, tensors[by[0]])[0].detach().numpy(), exact, rtol=1e-11, atol=1e-12 * float(size))
    np.testing.assert_allclose(found.evaluate(values), exact, rtol=1e-12, atol=1e-13 * float(size))
    source = eval(found.numpy(), {"np": np, **values})  # noqa: S307  a text that the library made of names it checked
    if exact.ndim == 4:
        i, j, k, m = exact.shape
        exact = exact.transpose(1, 0, 3, 2).reshape(i * j, k * m)
    np.testing.assert_allclose(source, exact, rtol=1e-12, atol=1e-13 * float(size))


def test_the_number_of_identities():
    assert [len(SECTIONS[name]) for name in ("COOKBOOK", "DOCUMENTATION", "KRONECKER", "CHOLESKY")] == [53, 45, 25, 7]
    assert len({i.name for i in IDENTITIES}) == len(IDENTITIES)
