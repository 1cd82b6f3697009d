"""The zeta function of Hurwitz and its derivatives by both arguments: digits next to the pole, in the tails and for large arguments."""

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy

import symgrad
from symgrad import tensor
from symgrad.carriers.digits import context
from symgrad.carriers.special import zeta as numbers
from symgrad.carriers.special.arb import arb_module
from symgrad.carriers.special.table import SPECIAL
from symgrad.carriers.special.zeta import by_sum
from symgrad.carriers.special.zeta_formula import zeta_derivative

POINTS = [(1 + 2.0**-40, 0.3), (1.0001, 1e30), (1.01, 1e-30), (1.5, 1.0), (2.0, 300.5), (3.7, 0.9), (12.0, 17.3), (40.0, 39.0), (60.0, 0.5),
          (120.0, 100.0), (400.0, 1.7), (5000.0, 1.01)]
ORDERS = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]


def test_derivatives_have_all_digits():
    s, q = (tensor(x, requires_grad=True) for x in zip(*POINTS))
    found = {(0, 0): symgrad.special.zeta(s, q)}
    for n, m in ORDERS[1:]:
        lower, variable = ((n - 1, m), s) if n else ((n, m - 1), q)
        (found[n, m],) = symgrad.autograd.grad(found[lower].sum(), variable, create_graph=True)
    word = SPECIAL["zeta_derivative"].digits
    with context.workdps(40):
        for (n, m), values in found.items():
            for (s, q), y in zip(POINTS, values.detach().numpy()):
                true = word(context, context.mpf(s), context.mpf(q), n, m)
                assert abs(y - true) <= 4 * np.spacing(abs(float(true))), (n, m, s, q)


@pytest.mark.parametrize("s, q", [(1.25, 0.7), (7.5, 3.0), (30.0, 25.0)])
def test_many_digits_agree_with_mpmath_with_and_without_arb(s, q):
    with context.workdps(30):
        s, q = context.mpf(s), context.mpf(q)
        with context.workdps(90):  # mpmath's error is an absolute one
            true = [context.zeta(s, q, n) / context.factorial(n) for n in range(3)]
            by_q = context.diff(lambda t: context.zeta(s, t, 1), q)
        ways = [by_sum(context, s, q, 3, 100)]
        if arb_module():
            ways.append(numbers._by_arb(arb_module(), context, s, q, 3, 100))
        for way in ways:
            assert all(abs(a / b - 1) < 1e-26 for a, b in zip(way, true)), (s, q)
        assert abs(SPECIAL["zeta_derivative"].digits(context, s, q, 1, 1) / by_q - 1) < 1e-12


def test_many_digits_of_huge_arguments_end():
    word = SPECIAL["zeta"].digits
    with context.workdps(30):
        assert abs(word(context, context.mpf("1e12"), context.mpf(1)) - 1) < 1e-29
        found = word(context, context.mpf("1e12"), 1 + context.mpf("1e-12"))
        assert abs(found * context.e - 1) < 1e-11
        assert context.isnan(word(context, context.mpf(0.5), context.mpf(1))) and word(context, context.mpf(1), context.mpf(1)) == context.inf


def test_outside_the_domain_it_is_scipys():
    x, q = np.array([0.5, 1.0, 2.0, 2.5, 3.0, 2.0, np.nan]), np.array([1.5, 1.0, -1.0, -1.5, -1.5, 0.0, 1.0])
    np.testing.assert_array_equal(symgrad.special.zeta(tensor(x), tensor(q)).numpy(), scipy.special.zeta(x, q))
    q = tensor(-1.5, requires_grad=True)
    symgrad.special.zeta(3, q).backward()
    np.testing.assert_allclose(q.grad.numpy(), -3 * sum((k - 1.5) ** -4 for k in range(40_000)), rtol=1e-12)


def test_arguments_are_as_in_torch():
    assert symgrad.special.zeta(2, tensor(1)).dtype == symgrad.float64 and symgrad.special.zeta(tensor([2.0, 3.0]), 1.5).shape == (2,)
    half = symgrad.special.zeta(tensor([2.0], dtype=symgrad.float32), tensor([1.0], dtype=symgrad.float32))
    assert half.dtype == symgrad.float32 and half.item() == np.float32(np.pi**2 / 6)
    assert type(symgrad.special.zeta(2, tensor(1.0, requires_grad=True)).grad_fn).__name__ == "SpecialZetaBackward0"
    with pytest.raises(RuntimeError, match="must match the size"):
        symgrad.special.zeta(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.special.zeta(tensor([1j]), 2)


def test_partials_of_the_function_of_sympy():
    """Those of every order, of which the first is the function itself, are the derivatives that mpmath computes."""
    s, a = sympy.symbols("s a", positive=True)
    at = {s: sympy.Rational(7, 5), a: sympy.Rational(1, 3)}
    with mpmath.workdps(60):
        for n in (0, 1):
            for j, k in ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (1, 2)):
                found = zeta_derivative(s, a, n).diff(*[s] * j, *[a] * k) if j + k else zeta_derivative(s, a, n)
                assert not found.has(sympy.Derivative, sympy.Subs)
                rising = [1, -at[s], at[s] * (at[s] + 1)][k], [0, -1, 2 * at[s] + 1][k], [0, 0, 2][k]  # and its derivatives by s
                true = sum(mpmath.binomial(n + j, i) * mpmath.mpf(r.p) / r.q * mpmath.zeta(mpmath.mpf(7) / 5 + k, mpmath.mpf(1) / 3, n + j - i)
                           for i, r in enumerate(map(sympy.Rational, rising)) if i <= n + j)
                assert abs(mpmath.mpf(found.xreplace(at).evalf(50)._mpf_) / true - 1) < 1e-45, (n, j, k)


def test_it_is_known_by_name():
    x, q = sympy.symbols("x q", positive=True)
    assert symgrad.to_sympy("zeta(x, y)") == sympy.zeta(*sympy.symbols("x y", real=True))
    function = symgrad.from_sympy(sympy.zeta(x, q), (x, q))
    first = symgrad.func.grad(function, (0, 1))(2.0, 3.0)
    with mpmath.workdps(30):
        np.testing.assert_allclose([g.item() for g in first], [float(mpmath.zeta(2, 3, 1)), float(-2 * mpmath.zeta(3, 3))], rtol=1e-14)
    assert "scipy.special.zeta(x, q)" in symgrad.to_python(sympy.zeta(x, q))
    assert "torch.special.zeta(" in symgrad.to_torch(sympy.zeta(x, q)) and "jax.scipy.special.zeta(x, q)" in symgrad.to_jax(sympy.zeta(x, q))
    assert "symgrad_zeta(x, q)" in symgrad.to_c(sympy.zeta(x, q))
    namespace = {}
    exec(symgrad.to_python(sympy.zeta(x, q), symbols=(x, q), derivatives=1, name="f"), namespace)
    np.testing.assert_allclose(namespace["f"](2.0, 3.0)[1], [g.item() for g in first], rtol=1e-14)


def test_gradients_have_formulas_that_can_be_differentiated():
    s, q = tensor(2.5, requires_grad=True, symbol="s"), tensor(0.7, requires_grad=True, symbol="q")
    symgrad.special.zeta(s * q, q).backward()
    assert "s*zeta_derivative(q*s, q, 1)" in str(q.grad.expr) and str(s.grad.expr) == "q*zeta_derivative(q*s, q, 1)"
    assert symgrad.check(symgrad.special.zeta, 2.5, 0.7, order=1, points=2).verdict == "proved"
