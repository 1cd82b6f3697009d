"""Bessel functions, elliptic integrals and Hurwitz's zeta function: digits next to zeros, poles and ends, and in the tails, in every derivative."""

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy

import symgrad
from symgrad import tensor
from symgrad.carriers import numeric
from symgrad.carriers.digits import context
from symgrad.carriers.special.table import SPECIAL
from symgrad.carriers.special.zeta import by_sum
from symgrad.carriers.special.zeta_formula import zeta_derivative
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.op import REGISTRY

ULP = ulp_of("float64")


def orders(name, xs, count):
    """The derivatives by the last argument."""
    xs = [tensor(x, requires_grad=True) for x in xs]
    found = [getattr(symgrad.special, name)(*xs)]
    for _ in range(count):
        found += symgrad.autograd.grad(found[-1].sum(), xs[-1], create_graph=True)
    return [y.detach().numpy() for y in found]


@pytest.mark.sweep
def test_digits_next_to_zeros():
    with mpmath.workdps(50):
        zeros = {("bessel_j", n): mpmath.besseljzero(n, 3) for n in (0, 1, 5)} | {("bessel_y", n): mpmath.besselyzero(n, 3) for n in (0, 1, 5)}
        zeros |= {("i1e_derivative", n): mpmath.findroot(lambda t, n=n: SPECIAL["i1e_derivative"].digits(mpmath.mp, t, n), at)
                  for n, at in ((1, 1.5), (2, 2.8), (3, 3.9))}
        for (name, order), zero in zeros.items():
            at = float(zero) + np.array([0.0, 1e-15, -1e-12, 1e-9, -1e-6, 1e-3, 0.03])
            for x, y in zip(at, getattr(numeric, name)(at, order)):
                true = SPECIAL[name].digits(mpmath.mp, mpmath.mpf(x), order)
                assert abs(y - true) <= 8 * np.spacing(abs(float(true))), (name, order, x)


@pytest.mark.sweep
@pytest.mark.parametrize("letter, order", [("j", 0), ("j", 5), ("j", 2.75), ("y", 1)])
@pytest.mark.parametrize("times", [0, 2])
def test_large_arguments_have_all_digits(letter, order, times):
    """From 25 on, next to zeros of the derivative, too: its zero is between two floats."""
    word = SPECIAL[f"bessel_{letter}_derivative"]
    f = REGISTRY[f"bessel_{letter}_derivative"].forward
    low = max(25.5, 2.0 * (order + times) ** 2) if order == 2.75 else 25.5
    at = [low, low + 3.3, 123.4, 2345.6, 1e6 + 0.1, 3e9, 1e22, 1.7e308]
    for start in (low, 200.3, 1e6):
        grid = np.linspace(start, start + 4, 20)
        y = f(numeric, grid, order, times)
        k = int(np.flatnonzero(y[1:] * y[:-1] < 0)[0])
        lower, upper = grid[k], grid[k + 1]
        while (middle := (lower + upper) / 2) not in (lower, upper):
            if f(numeric, np.float64(middle), order, times) * y[k] > 0:
                lower = middle
            else:
                upper = middle
        at += [lower, upper, upper * (1 + 1e-10), upper + 1e-4]
    with mpmath.workdps(60):
        for x, found in zip(at, f(numeric, np.array(at), order, times)):
            with mpmath.extraprec(max(0, mpmath.mag(x))):
                true = (mpmath.besselj if letter == "j" else mpmath.bessely)(order, mpmath.mpf(x), derivative=times)
                assert ULP.error(found, true) <= 8, x
                assert ULP.error(float(word.digits(mpmath.mp, mpmath.mpf(x), order, times)), true) <= 0.5, x


@pytest.mark.sweep
def test_ends_of_the_line():
    assert symgrad.bessel_j0(tensor([np.inf, -np.inf])).tolist() == [0.0, 0.0] and symgrad.bessel_y0(tensor(np.inf)).item() == 0.0
    assert np.isnan(symgrad.bessel_j1(tensor([1.0, 30.0, np.nan])).numpy()).tolist() == [False, False, True]
    assert orders("bessel_y0", [[5e-324, 1e-200]], 3)[3].tolist() == [np.inf, np.inf]


def test_scaled_k0_next_to_its_pole():
    at = np.array([1e-300, 1e-17, 1e-13, 9e-10, 1.1e-9])
    with mpmath.workdps(40):
        for x, y in zip(at, symgrad.special.scaled_modified_bessel_k0(tensor(at)).numpy()):
            true = mpmath.exp(mpmath.mpf(x)) * mpmath.besselk(0, mpmath.mpf(x))
            assert abs(y - true) <= 8 * np.spacing(float(true)), x


def test_printed_derivatives_of_scaled_functions_do_not_cancel():
    for name in ("i0e", "i1e"):
        namespace = {}
        exec(symgrad.to_python(getattr(symgrad.special, name), at=[1.0], derivatives=1, name="f"), namespace)
        at = np.array([0.0, 1e-3, 5.0, 300.0, 1e6])
        np.testing.assert_allclose(namespace["f"](at)[1][0], orders(name, [at], 1)[1], rtol=1e-14)


def test_orders_may_be_negative():
    for word, sign in (("bessel_j", -1), ("bessel_y", -1), ("bessel_i", 1), ("bessel_k", 1)):
        call = REGISTRY[word].forward
        for order in (1, 2):
            assert call(numeric, np.float64(2.5), -order) == sign**order * call(numeric, np.float64(2.5), order)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
@pytest.mark.parametrize("order", [0.5, 2, -1, -0.75])
def test_derivatives_of_real_orders_agree_with_scipy(name, order):
    at = np.array([0.3, 2.0, 15.0])
    x = tensor(at, requires_grad=True)
    y = getattr(symgrad, name)(order, x)
    for k in range(3):
        np.testing.assert_allclose(y.detach().numpy(), getattr(scipy.special, f"{name}p")(order, at, k), rtol=1e-12)
        (y,) = symgrad.autograd.grad(y.sum(), x, create_graph=True)


def test_an_order_is_a_number_without_gradient():
    x = tensor([1.0])
    assert symgrad.jv(tensor(1.5), x).tolist() == symgrad.jv(1.5, x).tolist()
    with pytest.raises(TypeError, match="requires? grad"):
        symgrad.jv(tensor(1.5, requires_grad=True), x)
    with pytest.raises(TypeError, match="order must be one real number"):
        symgrad.jv(tensor([1.0, 2.0]), x)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.bessel_j0(tensor([1j]))


@pytest.mark.sweep
@pytest.mark.parametrize("order", [0.5, -1.25])
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_orders_that_are_not_whole_have_all_digits(name, order):
    at = [1e-300, 1e-5, 0.7, 1.2, 2.9, 3.1, 9.42477796076938, 17.3, 40.0]
    true = {"jv": mpmath.besselj, "yv": mpmath.bessely, "iv": mpmath.besseli, "kv": mpmath.besselk}[name]
    x = tensor(at, requires_grad=True)
    y = getattr(symgrad, name)(order, x)
    (g,) = symgrad.autograd.grad(y.sum(), x)
    with mpmath.workdps(60):
        for x, value, slope in zip(at, y.tolist(), g.tolist()):
            step, x = mpmath.mpf("1e-20") * x, mpmath.mpf(x)
            expected = true(order, x), (true(order, x + step) - true(order, x - step)) / (2 * step)
            for found, exact in zip((value, slope), expected):
                assert abs(found - exact) <= 8 * np.spacing(abs(float(exact))) or abs(exact) > 1.7e308, (x, found, exact)


PARAMETERS = [-1e100, -1e20, -3.0, -1.0, -1e-9, -1e-300, 0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 0.999999, 1 - 2.0**-52]
ANGLES = [1e-200, 1e-9, -0.3, 1.5, np.pi / 2, np.nextafter(np.pi / 2, 2), 3.1, -4.0, 47.3]


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["ellipk", "ellipe", "ellipkm1"])
def test_derivatives_of_complete_integrals_have_all_digits(name):
    at = [1e-300, 1e-20, 0.3, 1.0, 1 + 1e-9, 7.0, 1e30] if name == "ellipkm1" else PARAMETERS
    for n, values in enumerate(orders(name, [at], 3)):
        for m, y in zip(at, values):
            true = SPECIAL[f"{name}_derivative"].digits(context, context.mpf(m), n)
            assert abs(y - true) <= 4 * np.spacing(min(abs(float(true)), 1e308)) or abs(true) > 1e308, (n, m)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["ellipkinc", "ellipeinc"])
def test_derivatives_of_incomplete_integrals_have_all_digits(name):
    phi, m = map(np.ravel, np.meshgrid(ANGLES, PARAMETERS[1:]))
    for n, values in enumerate(orders(name, [phi, m], 2)):
        for a, b, y in zip(phi, m, values):
            true = SPECIAL[f"{name}_derivative"].digits(context, context.mpf(a), context.mpf(b), 0, n)
            assert abs(y - true) <= 4 * np.spacing(abs(float(true))), (n, a, b)


@pytest.mark.sweep
def test_many_digits_agree_with_mpmath_and_its_differences():
    with context.workdps(30):
        for m in map(context.mpf, (-5.0, 0.01, 0.7)):
            calls = {"ellipk": lambda t: context.ellipk(t), "ellipe": lambda t: context.ellipe(t), "ellipkinc": lambda t: context.ellipf(4, t),
                     "ellipeinc": lambda t: context.ellipe(4, t)}
            for name, call in calls.items():
                word, before = SPECIAL[f"{name}_derivative"].digits, (context.mpf(4), ) if name.endswith("inc") else ()
                for n in range(3):
                    with context.workdps(90):
                        true = context.diff(call, m, n, h=context.mpf("1e-25"))
                    found = word(context, *before, m, *(0,) * len(before), n)
                    assert abs(found / true - 1) < 1e-19, (name, n, m)


def test_they_have_the_values_of_scipy():
    m, phi = np.array([-np.inf, -7.0, 0.0, 0.4, 1.0, 1.5, np.nan]), np.array([0.2, -1.0, 2.0, 9.0, 1.0, 0.1, 0.3])
    for name in ("ellipk", "ellipe", "ellipkm1"):
        x = np.abs(m[1:]) if name == "ellipkm1" else m[1:]
        np.testing.assert_allclose(getattr(symgrad.special, name)(tensor(x)).numpy(), getattr(scipy.special, name)(x), rtol=3e-15)
    for name in ("ellipkinc", "ellipeinc"):
        found = getattr(symgrad.special, name)(tensor(phi[1:]), tensor(m[1:])).numpy()
        np.testing.assert_allclose(found, getattr(scipy.special, name)(phi[1:], m[1:]), rtol=3e-15)
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.special.ellipk(tensor([1j]))


POINTS = [(1 + 2.0**-40, 0.3), (1.0001, 1e30), (1.01, 1e-30), (1.5, 1.0), (2.0, 300.5), (3.7, 0.9), (12.0, 17.3), (40.0, 39.0), (60.0, 0.5),
          (120.0, 100.0), (400.0, 1.7), (5000.0, 1.01)]
ORDERS = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]


@pytest.mark.sweep
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
def test_many_digits_agree_with_mpmath(s, q):
    with context.workdps(30):
        s, q = context.mpf(s), context.mpf(q)
        with context.workdps(90):  # mpmath's error is an absolute one
            true = [context.zeta(s, q, n) / context.factorial(n) for n in range(3)]
            by_q = context.diff(lambda t: context.zeta(s, t, 1), q)
        assert all(abs(a / b - 1) < 1e-26 for a, b in zip(by_sum(context, s, q, 3, 100), true)), (s, q)
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


@pytest.mark.sweep
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


@pytest.mark.sweep
def test_gradients_have_formulas_that_can_be_differentiated():
    s, q = tensor(2.5, requires_grad=True, symbol="s"), tensor(0.7, requires_grad=True, symbol="q")
    symgrad.special.zeta(s * q, q).backward()
    assert "s*zeta_derivative(q*s, q, 1)" in str(q.grad.expr) and str(s.grad.expr) == "q*zeta_derivative(q*s, q, 1)"
    assert symgrad.check(symgrad.special.zeta, 2.5, 0.7, order=1, points=2).verdict == "proved"


X, Y = sympy.symbols("x y", real=True)
KNOWN = {  # by the names of symgrad: SymPy's formula, points, and what the sources call
    "ellipkinc(x, y)*ellipe(y) + ellipeinc(x, y) + ellipk(y) + ellipkm1(x)": (
        sympy.elliptic_f(X, Y) * sympy.elliptic_e(Y) + sympy.elliptic_e(X, Y) + sympy.elliptic_k(Y) + sympy.elliptic_k(1 - X),
        [(1.1, 0.3), (4.0, 1e-12), (1.0, 0.0)],
        {**dict.fromkeys((symgrad.to_torch, symgrad.to_jax), ("_ellipk(", "_ellipe(", "_ellipkinc(", "_ellipeinc(", "_ellipk_derivative(")),
         symgrad.to_c: ("symgrad_ellipk(y)", "symgrad_ellipe(y)")}),
    "zeta(x, y)": (sympy.zeta(X, Y), [(2.0, 3.0)], {
        symgrad.to_python: ("scipy.special.zeta(x, y)",), symgrad.to_torch: ("torch.special.zeta(",),
        symgrad.to_jax: ("jax.scipy.special.zeta(x, y)",), symgrad.to_c: ("symgrad_zeta(x, y)",)}),
    "fresnel_s(x)*fresnel_c(x)": (sympy.fresnels(X) * sympy.fresnelc(X), [(2.0,)], {
        symgrad.to_python: ("scipy.special.fresnel(x)[0]",), symgrad.to_jax: ("jax.scipy.special.fresnel(x)[1]",),
        symgrad.to_c: ("symgrad_fresnel_s(x)", "sin(")}),
}


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", KNOWN)
def test_they_are_known_by_name(text):
    formula, points, sources = KNOWN[text]
    symbols = tuple(sorted(formula.free_symbols, key=str))
    function, namespace = symgrad.from_sympy(formula, symbols), {}
    assert symgrad.to_sympy(text) == formula == symgrad.to_sympy(function)
    exec(symgrad.to_python(formula, symbols=symbols, derivatives=1, name="f"), namespace)
    for at in points:
        value, gradient = namespace["f"](*at)
        np.testing.assert_allclose(value, function(*at).item(), rtol=1e-13)
        np.testing.assert_allclose(gradient, [g.item() for g in symgrad.func.grad(function, tuple(range(len(at))))(*at)], rtol=1e-11)
    for write, words in sources.items():
        assert all(word in write(formula, symbols=symbols, derivatives=1) for word in words)
