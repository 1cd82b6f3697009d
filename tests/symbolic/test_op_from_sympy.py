"""Ops from formulas: their accuracy in tails, at kinks and removable singularities, and their behaviour as ops."""

import builtins
import functools
import math
import pickle
import re
from collections import Counter

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Abs, Max, Piecewise, Symbol, cos, cosh, exp, floor, log, sign, sin, sqrt, tanh

import symgrad
from symgrad import autograd, func
from symgrad.carriers import numeric
from symgrad.graph.domains import POSITIVE, REAL
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import _unregister
from symgrad.symbolic.formula import OpFormula
from symgrad.symbolic.operations import op_from_sympy
from symgrad.symbolic.reading import evaluate_expression
from tests.support.lines import lines

x, y = sympy.symbols("x y", real=True)
p, q = sympy.symbols("p q", positive=True)
BOUND = 8  # units in the last place of the true value, by the size of a change that one unit in the last place of an argument makes

TAILS = (-700.0, -80.0, -36.5, -5.0, -1.0, -0.3, -1e-3, -1e-30, 1e-200, 1e-9, 1e-3, 0.05, 0.3, 0.45, 0.7, 1.0, 1.6, 2.5, 5.0, 19.5, 80.0,
         700.0)
POSITIVES = tuple(v for v in TAILS if v > 0)
FORMULAS = {
    "softsign": (x / (1 + Abs(x)), TAILS), "gaussian": (exp(-x**2 / 2), TAILS), "logistic": (log(1 + exp(-x)), TAILS),
    "swish": (x / (1 + exp(-x)), TAILS), "sinc_like": (sin(x) / x, TAILS), "exprel": ((exp(x) - 1) / x, TAILS),
    "one_minus_cos": ((1 - cos(x)) / x**2, TAILS),
    "log_ratio": (log(p) / (p - 1), (*(v for v in POSITIVES if v != 1), 1 - 1e-9, 1 + 1e-12, 1.02, 0.9)),
    "tanh_ratio": (tanh(x) / x, TAILS), "bose": (p / (exp(p) - 1), POSITIVES), "roots": (sqrt(p + 1) - sqrt(p), (*POSITIVES, 1e12)),
    "cubic_rest": (x - sin(x), TAILS), "log_cosh": (log(cosh(x)), TAILS), "pieces": (Piecewise((x, x > 0), (exp(x) - 1, True)), TAILS),
}


THRICE = ("softsign", "gaussian", "logistic", "sinc_like", "cubic_rest", "log_cosh", "pieces")


@functools.cache
def formula(name):
    """A formula of the table, with derivatives that are computed once for all tests."""
    expr, _ = FORMULAS[name]
    (symbol,) = expr.free_symbols
    return OpFormula(name, [symbol], expr, [POSITIVE if symbol.is_positive else REAL])


@functools.cache
def by_mpmath(name, order):
    expr, _ = FORMULAS[name]
    (symbol,) = expr.free_symbols
    return sympy.lambdify(symbol, sympy.diff(expr, symbol, order).replace(sympy.DiracDelta, lambda *args: sympy.S.Zero), "mpmath")


def truth(name, order, at):
    """The derivative at a point and its condition, from SymPy's own derivative with 2500 digits."""
    with mpmath.workdps(2500 if abs(at) < 1e-50 else 700):
        v, h = mpmath.mpf(at), mpmath.mpf("1e-30")
        true, moved = by_mpmath(name, order)(v), by_mpmath(name, order)(v * (1 + h))
        return true, float(abs(moved - true) / (h * abs(true))) if true else 0.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name, order", [(name, order) for name in FORMULAS for order in range(4 if name in THRICE else 3)])
def test_every_order_keeps_its_digits(name, order):
    _, points = FORMULAS[name]
    with np.errstate(all="ignore"):
        found = np.broadcast_to(formula(name).form((order,)).code(np.array(points)), len(points)).tolist()
    for at, got in zip(points, found):
        true, condition = truth(name, order, at)
        plain = float(true)
        if not 1e-290 < abs(plain) < 1e300:
            assert abs(got) <= 1e-280 if abs(plain) < 1 else not abs(got) < 1e290, (at, got, plain)
            continue
        with mpmath.workdps(40):
            error = float(abs(got - true)) / math.ulp(plain)
        assert error <= BOUND * (1 + condition), f"{name}, order {order}, at {at!r}: {got!r} is {error:.1f} ULP from {plain!r}"


AT_ZERO = {"sinc_like": (1, 0, -1 / 3, 0), "exprel": (1, 1 / 2, 1 / 3, 1 / 4), "one_minus_cos": (1 / 2, 0, -1 / 12, 0),
           "tanh_ratio": (1, 0, -2 / 3, 0), "cubic_rest": (0, 0, 0, 1), "softsign": (0, 1, 0, 0), "pieces": (0, 1, 1, 1)}


@pytest.mark.sweep
@pytest.mark.parametrize("name", AT_ZERO)
def test_at_the_singularity_itself(name):
    for order, true in enumerate(AT_ZERO[name]):
        with np.errstate(all="ignore"):
            got = float(formula(name).form((order,)).code(np.array([0.0]))[0])
            alone = float(formula(name).form((order,)).code(np.float64(0.0)))
        assert got == alone == pytest.approx(true, rel=1e-15, abs=0)


@pytest.mark.sweep
def test_the_logarithm_over_its_zero():
    one = np.array([1.0])
    assert [float(formula("log_ratio").form((k,)).code(one)[0]) for k in range(3)] == pytest.approx([1, -1 / 2, 2 / 3], rel=1e-15)


# An op like any other


def test_first_op(made):
    softsign = made("softsign_op", x / (1 + Abs(x)), check=True)
    t = symgrad.tensor([-3.0, 0.0, 1.0], requires_grad=True)
    out = softsign(t)
    assert out.tolist() == [-0.75, 0.0, 0.5] and out.grad_fn.name() == "SoftsignOpBackward0"
    g, = autograd.grad(out.sum(), t, create_graph=True)
    h, = autograd.grad(g.sum(), t, create_graph=True)
    k, = autograd.grad(h.sum(), t)
    assert g.tolist() == [1 / 16, 1.0, 1 / 4] and h.tolist() == [2 / 64, 0.0, -2 / 8] and k.tolist() == pytest.approx([6 / 256, 0.0, 6 / 16])
    assert softsign.op is REGISTRY["softsign_op"] and softsign.op.kind == "elementwise" and softsign.op.arity == 1
    assert "abs(x)" in softsign.code and softsign.report.verdict == "proved" and softsign.report.worst < 5
    assert softsign.proof.ok and "proved" in str(softsign.report) and [line.identity.verdict for line in softsign.report.lines] == ["proved"] * 2
    assert not hasattr(symgrad, "softsign_op") and not hasattr(symgrad.Tensor, "softsign_op")
    assert softsign(2.0).item() == 2 / 3 and softsign(np.array([1, 2])).tolist() == [0.5, 2 / 3]


@pytest.mark.sweep
def test_several_arguments_broadcast(made):
    planck = made("planck_op", lambda x, T: x**3 / (exp(x / T) - 1), domain=POSITIVE)
    assert str(planck.__signature__) == "(x, T)"
    a = symgrad.tensor([[0.5], [1.0]], requires_grad=True)
    b = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = planck(a, b)
    assert out.shape == (2, 3)
    out.sum().backward()
    assert a.grad.shape == (2, 1) and b.grad.shape == (3,)

    def plain(s, t):
        return s**3 / symgrad.expm1(s / t)

    others = autograd.grad(plain(a, b).sum(), (a, b))
    for ours, theirs in zip((a.grad, b.grad), others):
        assert np.allclose(ours.numpy(), theirs.numpy(), rtol=1e-13)
    ours, theirs = (func.hessian(lambda s, t, f=f: f(s, t).sum(), (0, 1))(a.detach(), b.detach()) for f in (planck, plain))
    for row, other in zip(ours, theirs):
        for m, n in zip(row, other):
            assert np.allclose(m.numpy(), n.numpy(), rtol=1e-11, atol=1e-12)
    assert planck(x=a, T=2.0).tolist() == planck(a, 2.0).tolist()


TWO = (p**3 / (exp(p / q) - 1), p**q, 3**p * q**sympy.Rational(1, 3), (p + q)**-q, Piecewise((p**q, p < q), (sympy.Rational(1, 3), True)),
       Max(p**sympy.Rational(5, 3), q), sympy.erf(p) * q**4, sympy.Integer(2)**sympy.Rational(1, 3), q**-3, 1 / floor(p - q))


@pytest.mark.parametrize("expr", TWO, ids=str)
def test_a_number_for_an_argument_is_an_array_of_it(expr):
    array, number = np.array([0.3, 2 / 3, 11.7]), 1 / 3
    for xs in ((number, array), (array, number), (np.float64(number), array)):
        expected = evaluate_expression(expr, (p, q), numeric, [np.full(3, x) if np.ndim(x) == 0 else x for x in xs])
        np.testing.assert_allclose(evaluate_expression(expr, (p, q), numeric, xs), expected, rtol=1e-14)
        assert expected.shape == (3,)
    assert evaluate_expression(1 / p, (p, q), numeric, (-0.0, array)).tolist() == [-math.inf] * 3


@pytest.mark.sweep
@pytest.mark.parametrize("expr", [TWO[0], TWO[2]], ids=str)
def test_second_derivatives_with_a_number_for_an_argument(made, expr):
    f = made("number_op", expr, domain=POSITIVE)
    t = symgrad.tensor([0.3, 2 / 3, 11.7])
    for order in ((0, 1), (1, 0)):
        def at(x, t=t, order=order):
            return func.hessian(lambda v: f(*[(v, x)[i] for i in order]).sum())(t).tolist()

        np.testing.assert_allclose(at(1 / 3), at(symgrad.full_like(t, 1 / 3)), rtol=1e-13)


@pytest.mark.sweep
def test_the_gradient_shares_common_subexpressions(made):
    bell = made("bell_op", exp(-x**2 / 2))
    assert "exp" not in bell._formula.gradient.source and "result" in bell._formula.gradient.source
    t = symgrad.tensor([0.5, -2.0], requires_grad=True)
    bell(t).sum().backward()
    truth = [-v * math.exp(-v**2 / 2) for v in (0.5, -2.0)]
    for found in (t.grad.numpy(), bell.derivative(1)(t).detach().numpy()):  # exp differs in the last place from one CPU to another
        np.testing.assert_array_max_ulp(found, np.array(truth), 1)
    heat = made("heat_op", y * exp(-x / q), (x, y, q))
    source = heat._formula.gradient.source
    assert source.count("exp(") == 1
    at = [symgrad.tensor(v, requires_grad=True) for v in ([0.5, -1.0], 2.0, [3.0, 4.0])]
    together = autograd.grad(heat(*at).sum(), at)
    for i, g in enumerate(together):
        alone, = autograd.grad(heat(*at).sum(), at[i])
        assert np.allclose(g.numpy(), alone.numpy(), rtol=1e-15)


def test_constant_and_linear_partials(made):
    f = made("affine_op", 3 * x + y * x)
    a, b = symgrad.tensor(2.0, requires_grad=True), symgrad.tensor([1.0, 4.0], requires_grad=True)
    g = autograd.grad(f(a, b).sum(), (a, b), create_graph=True)
    assert g[0].item() == 11.0 and g[1].tolist() == [2.0, 2.0]
    assert autograd.grad(g[0], b)[0].tolist() == [1.0, 1.0]
    assert func.hessian(lambda s: f(s, 2.0).sum())(symgrad.tensor([1.0, 2.0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.sweep
def test_formula_of_the_result(made):
    f = made("named_op", log(1 + exp(x)))
    u = symgrad.tensor(2.0, requires_grad=True, symbol="u")
    out = f(3 * u)
    assert str(out.expr) == "log(exp(3*u) + 1)"
    out.backward()
    real = Symbol("u", real=True)
    assert sympy.simplify(u.grad.expr - 3 / (1 + exp(-3 * real))) == 0
    assert out.assignments()[-1][1].has(exp)
    ratio = made("named_ratio", sin(x) / x)
    assert str(ratio(u * 0 + u).expr) == "sin(u)/u"


@pytest.mark.sweep
def test_dtypes(made):
    f = made("typed_op", (exp(x) - 1) / x)
    for dtype in (symgrad.float32, symgrad.float64):
        t = symgrad.tensor([0.0, 1e-3, 1.0], dtype=dtype, requires_grad=True)
        out = f(t)
        g, = autograd.grad(out.sum(), t, create_graph=True)
        assert out.dtype is g.dtype is dtype
        h, = autograd.grad(g.sum(), t)
        assert h.dtype is dtype
        eps = 1e-6 if dtype is symgrad.float32 else 1e-14
        assert h.tolist() == pytest.approx([1 / 3, *(float(truth("exprel", 2, v)[0]) for v in t.tolist()[1:])], rel=eps)
    assert f(symgrad.tensor([1, 2])).dtype is symgrad.float64
    assert f(symgrad.tensor(0.0)).shape == () and f(symgrad.zeros(0)).shape == (0,)
    assert math.isnan(f(math.nan).item()) and f(symgrad.tensor([math.nan, 0.0])).tolist()[1] == 1.0


@pytest.mark.sweep
def test_kinks_follow_the_conventions(made):
    a = made("kinked_a", Abs(x) + Max(x, y))
    s, t = symgrad.tensor(0.0, requires_grad=True), symgrad.tensor(0.0, requires_grad=True)
    assert [g.item() for g in autograd.grad(a(s, t), (s, t))] == [0.5, 0.5]
    b = made("kinked_b", floor(x) * x + sign(x))
    assert func.grad(b)(symgrad.tensor(2.5)).item() == 2.0 and func.grad(func.grad(b))(symgrad.tensor(2.5)).item() == 0.0
    three = made("kinked_c", Max(x, y, p))
    g = func.grad(three, (0, 1, 2))(*[symgrad.tensor(1.0)] * 3)
    assert sum(v.item() for v in g) == 1.0 and min(v.item() for v in g) > 0
    c = made("kinked_d", Piecewise((log(x), x > 1), (x - 1, True)))
    assert func.grad(c)(symgrad.tensor(-2.0)).item() == 1.0 and c(symgrad.tensor([-2.0, math.e])).tolist() == [-3.0, 1.0]


@pytest.mark.sweep
def test_derivative_functions(made):
    f = made("derived_op", x**3 * y**2)
    assert f.derivative(2, 1)(symgrad.tensor(2.0), symgrad.tensor(5.0)).item() == 6 * 2 * 2 * 5
    with pytest.raises(ValueError, match="give one order of differentiation for each of x, y"):
        f.derivative(1)


@pytest.mark.sweep
def test_quotients_of_several_arguments(made):
    f = made("sinc_of_product", sin(x * y) / (x * y))
    a, b = (symgrad.tensor(v, requires_grad=True) for v in ([0.0, 0.0, 1e-3, 1.0, 1e-9], [0.0, 2.0, 3.0, 4.0, 1.0]))
    u = (a * b).tolist()
    assert f(a, b).tolist() == pytest.approx([1.0, 1.0, *(math.sin(v) / v for v in u[2:])], rel=4e-16)
    first, second = ([0.0 if v == 0 and k == 1 else -1 / 3 if v == 0 else float(truth("sinc_like", k, v)[0]) for v in u] for k in (1, 2))
    f(a, b).sum().backward()
    assert a.grad.tolist() == pytest.approx([g * v for g, v in zip(first, b.tolist())], rel=2e-15, abs=0)
    assert f.derivative(2, 0)(a, b).tolist() == pytest.approx([h * v**2 for h, v in zip(second, b.tolist())], rel=3e-15, abs=0)
    planck = made("planck_from_zero", p**3 / (exp(p / q) - 1), (p, q), domain=((0, math.inf), POSITIVE))
    assert planck(0.0, 2.0).item() == 0 and func.grad(func.grad(planck))(symgrad.tensor(0.0), 2.0).item() == 4.0  # of T x² - x³/2 + ...


@pytest.mark.sweep
def test_a_series_ends_at_a_kink(made):
    f = made("kinked_near", Piecewise((sin(x) / x, x < sympy.Rational(3, 10)), (x**2, True)))
    assert f(symgrad.tensor([0.0, 0.29, 0.31, 2.0])).tolist() == pytest.approx([1.0, math.sin(0.29) / 0.29, 0.31**2, 4.0], rel=1e-15)
    assert func.vmap(func.grad(f))(symgrad.tensor([0.31, 2.0])).tolist() == [0.62, 4.0]
    g = made("written_out", Piecewise((sin(x) / x, sympy.Ne(x, 0)), (1, True)))
    assert func.grad(func.grad(g))(symgrad.tensor(1e-5)).item() == pytest.approx(float(truth("sinc_like", 2, 1e-5)[0]), rel=1e-15)


@pytest.mark.sweep
def test_spellings(made):
    by_text = made("texted_op", "x/(1 + abs(x)) + 0.1*y")
    by_function = made("called_op", lambda x, y: x / (1 + Abs(x)) + y / 10)
    by_expression = made("plain_op", Symbol("x") / (1 + Abs(Symbol("x"))) + Symbol("y") / 10, ("x", "y"))
    at = symgrad.tensor([0.5, -2.0]), symgrad.tensor([1.0, 3.0])
    assert by_text(*at).tolist() == by_function(*at).tolist() == by_expression(*at).tolist()
    assert by_text.expr == by_function.expr  # 0.1 is one tenth
    turned = made("turned_op", x - y, (y, x))
    assert turned(1.0, 5.0).item() == 4.0


@pytest.mark.sweep
def test_pickle(made):
    f = made("pickled_op", (1 - cos(x)) / x**2)
    assert pickle.loads(pickle.dumps(f)) is f
    blob = pickle.dumps(f)
    _unregister("pickled_op")
    from symgrad.symbolic.operations import _ops
    _ops.pop("pickled_op")
    again = pickle.loads(blob)
    assert again is not f and again(symgrad.tensor([0.0, 2.0])).tolist() == f(symgrad.tensor([0.0, 2.0])).tolist()


@pytest.mark.sweep
def test_declared_again(made):
    made("again_op", x**2, check=False)
    f = made("again_op", x**3, check=False)
    assert f(2.0).item() == 8.0


@pytest.mark.sweep
@settings(max_examples=25, deadline=None)
@given(st.floats(-50, 50), st.floats(-50, 50))
def test_two_arguments_against_digits(s, t):
    f = two_arguments()
    for k in ((0, 0), (1, 0), (0, 1), (1, 1)):
        form = f.form(k)
        got = float(form.code(*[np.array([(s, t)[i]]) for i in form.places])[0])
        true = form.reference([(s, t)[i] for i in form.places])
        assert abs(got - true) <= 1e-13 * abs(true) * (1 + abs(s * t)) or abs(true) < 1e-290


@functools.cache
def two_arguments():
    return OpFormula("two", [x, y], log(1 + exp(-x * y)), [REAL, REAL])


# Refusals


@pytest.mark.sampled(4)
@pytest.mark.parametrize("error, message, call", lines("refused_ops"))
def test_refused(error, message, call):
    before = set(REGISTRY)
    with pytest.raises(getattr(builtins, error), match=message):
        eval(call)
    assert set(REGISTRY) == before


@pytest.mark.sweep
def test_odd_symbols_are_renamed(made):
    odd = [Symbol("__import__('os')", real=True), Symbol("lambda", real=True), Symbol("exp", real=True), Symbol("a b", real=True)]
    f = made("odd_op", odd[0] * odd[1] + exp(odd[2]) * odd[3], odd)
    assert f(1.0, 2.0, 0.0, 4.0).item() == 6.0
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"#.*", "", f.code)))
    assert words <= {"def", "return", "exp", "x1", "x2", "x3", "x4", *(w for w in words if re.fullmatch(r"odd_op(_\d)*|t\d+", w))}
    assert "import" not in f.code


@pytest.mark.sweep
def test_creation_measures_few_forms(monkeypatch):
    """What takes the time of a creation: code for each different form, and values with many digits at the points where the forms are measured."""
    import symgrad.symbolic.forms as forms
    from symgrad.algebra.evaluating import Evaluator
    calls = Counter()

    def counted(name, function):
        def call(*args, **kwargs):
            calls[name] += 1
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(forms, "generate", counted("codes", forms.generate))
    monkeypatch.setattr(Evaluator, "at", counted("values", Evaluator.at))
    op_from_sympy("quick_op", x**2 * exp(-x), check=True)
    assert 1 < calls["codes"] <= 6 and 100 < calls["values"] <= 600  # measured: 6 and 482


@pytest.mark.sweep
def test_a_wrong_derivative_is_refused(monkeypatch):
    import symgrad.symbolic.formula as module
    right = module.partial
    monkeypatch.setattr(module, "partial", lambda e, s: right(e, s) * (1 + sympy.Rational(1, 10**9)))
    with pytest.raises(ValueError, match="is wrong: refuted"):
        op_from_sympy("wrong_op", x / (1 + x**2))
    assert "wrong_op" not in REGISTRY


def test_code_without_stable_forms_fails_the_bound():
    from symgrad.symbolic.generating import generate
    naive = generate("naive", [x], [(exp(x) - 1) / x])
    got = float(naive(np.array([1e-9]))[0])
    assert abs(got - float(truth("exprel", 0, 1e-9)[0])) > 1e6 * math.ulp(1.0)


@pytest.mark.parametrize("name, function", [("exp", sympy.exp), ("sin", sympy.sin), ("tanh", sympy.tanh), ("log", lambda t: sympy.log(1 + t**2)),
                                            ("root", lambda t: t ** sympy.Rational(1, 3))])
def test_means_are_computed_by_every_carrier(name, function):
    """A difference quotient is the mean of a derivative, which the carriers of Hessians and batches compute function by function."""
    a, b = sympy.symbols("a b", positive=True)
    quotient = (function(a) - function(b)) / (a - b)
    op = op_from_sympy(f"quotient_of_{name}", quotient, domain=(0.1, 10.0), check=False)
    at = {a: 1.5, b: 0.7}
    hessian = symgrad.func.hessian(lambda t: op(t, 0.7))(symgrad.tensor(1.5))
    np.testing.assert_allclose(hessian.item(), float(sympy.diff(quotient, a, 2).evalf(30, subs=at)), rtol=1e-11)
    batch = symgrad.vmap(op)(symgrad.tensor([1.5, 0.7]), symgrad.tensor([0.7, 1.5]))
    np.testing.assert_allclose(batch.numpy(), float(quotient.evalf(30, subs=at)), rtol=1e-14)
