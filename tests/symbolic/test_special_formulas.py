"""Special functions in formulas that are texts, and in ops that are made of expressions."""

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.algebra import values
from symgrad.carriers.special.table import SPECIAL
from symgrad.engine.recording import core
from symgrad.engine.traced import FUNCTIONS
from symgrad.formulas.parsing import ParseError, parse
from symgrad.graph.domains import POSITIVE
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.carrier_function import CarrierFunction, written_out
from symgrad.symbolic.reading import fold_special
from tests.support.special_sources import CASES, points

x, y = sympy.symbols("x y")
EXPRESSIONS = {
    "error": (sympy.erf(x), None), "tail": (sympy.exp(-x) * sympy.erfc(x), None), "tetragamma": (sympy.polygamma(2, x), POSITIVE),
    "damped": (sympy.exp(-x / 5) * sympy.bessely(1, x), POSITIVE),
}
POINTS = np.array([0.3, 1.7])


def exact(e, values):
    with mpmath.workdps(40):
        return float(sympy.re(e.evalf(30, subs=values)))


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:.*loses its value:RuntimeWarning")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_ops_are_made_of_special_functions(name, made):
    e, domain = EXPRESSIONS[name]
    op = made(f"my_{name}", e, **({"domain": domain} if domain else {}))
    symbols = sorted(e.free_symbols, key=str)
    leaves = [symgrad.tensor(POINTS + i, requires_grad=True) for i in range(len(symbols))]
    value = op(*leaves)
    slope = symgrad.autograd.grad(value.sum(), leaves[-1], create_graph=True)[0]
    curvature = symgrad.autograd.grad(slope.sum(), leaves[-1])[0]
    for k, found in enumerate((value, slope, curvature)):
        formula = sympy.diff(e, symbols[-1], k)
        expected = [exact(formula, {s: p + i for i, s in enumerate(symbols)}) for p in POINTS]
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=3e-14)
    np.testing.assert_allclose(np.diagonal(symgrad.func.hessian(lambda t: op(t).sum())(symgrad.tensor(POINTS)).numpy()), expected, rtol=3e-14)


@pytest.mark.sweep
def test_an_op_of_a_bessel_function_does_not_call_that_of_mpmath(made, monkeypatch):
    def slow(*args):
        raise AssertionError("at a whole order it is a limit of others, and slower than the series")

    monkeypatch.setattr(mpmath.ctx_mp.MPContext, "bessely", slow)
    made("my_fast", sympy.exp(-x / 5) * sympy.bessely(1, x), domain=POSITIVE)


OF_AN_ORDER = ("bessel_i", "bessel_j", "bessel_k", "bessel_y", "digamma_derivative")  # by which SymPy's functions differ
PARAMETERS = {name: parameters for name, parameters in reversed(CASES)}  # the first ones of every row


def formula_of(name):
    """The formula of a row of the table, and its symbols."""
    symbols = sympy.symbols("x y", real=True)[:SPECIAL[name].arity]
    whole = [int(p) if p == int(p) else p for p in PARAMETERS[name]]
    return SPECIAL[name].formula(sympy, *symbols, *whole), symbols


def derivatives(function, xs):
    """The value, and the first derivative by every argument; the second ones are in the test above."""
    leaves = [symgrad.tensor(x, requires_grad=True) for x in xs]
    out = function(*leaves)
    return [t.detach().numpy() for t in (out, *symgrad.autograd.grad(out.sum(), leaves))]


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:.* at .*write it in another form:RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in SPECIAL if REGISTRY[name].surface.public or name in OF_AN_ORDER])
def test_every_special_function_is_known_by_its_formula(name, made):
    """The op of the formula of a row computes what the op of its name does, and the formula comes back from the op."""
    expr, symbols = formula_of(name)
    op = REGISTRY[name]
    own = made(f"my_{name}", expr, symbols, domain=op.domain if len(op.domain) == len(symbols) else op.domain[0], check=True)
    xs = points(name, 5)
    for ours, theirs in zip(derivatives(own, xs), derivatives(lambda *ts: core(op)(*ts, *PARAMETERS[name]), xs)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14 * np.abs(theirs).max())  # next to a zero the argument's rounding is larger
    assert symgrad.to_sympy(symgrad.from_sympy(expr)) == expr
    if op.surface.public and not PARAMETERS[name]:
        assert symgrad.to_sympy(f"{name}({', '.join(map(str, symbols))})") == expr


a, t = sympy.symbols("a t", real=True)
TWO = {"lower": (sympy.lowergamma(a, t), lambda u, v: mpmath.gammainc(u, 0, v)), "upper": (sympy.uppergamma(a, t), mpmath.gammainc),
       "complement": (sympy.uppergamma(a, t) / sympy.gamma(a), lambda u, v: mpmath.gammainc(u, v, regularized=True)),
       "of_multiples": (sympy.exp(-a) * sympy.lowergamma(2 * a, 3 * t) / sympy.gamma(2 * a),
                        lambda u, v: mpmath.exp(-u) * mpmath.gammainc(2 * u, 0, 3 * v, regularized=True)),
       "euler": (sympy.beta(a, t), mpmath.beta)}


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:.* at .*write it in another form:RuntimeWarning")
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arguments_have_derivatives_by_both(name, made):
    expr, function = TWO[name]
    found, traced = (derivatives(f, (2.5, 1.3)) for f in (made(f"my_{name}", expr, (a, t), domain=POSITIVE), symgrad.from_sympy(expr)))
    for ours, others, order in zip(found, traced, ((0, 0), (1, 0), (0, 1))):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(function, (2.5, 1.3), order) if any(order) else function(2.5, 1.3))
        np.testing.assert_allclose([ours, others], expected, rtol=3e-14)


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("formula", ["gammaincc(a, t)", sympy.uppergamma(a, t) / sympy.gamma(a)], ids=str)
def test_a_function_is_checked_against_a_formula_with_an_incomplete_gamma_function(formula):
    report = symgrad.check(lambda a, t: symgrad.special.gammaincc(a, t), 2.5, 1.3, formula=formula, order=1, points=4, domain=(0.5, 9))
    assert report.verdict == "verified"


@pytest.mark.sweep
def test_a_value_takes_no_digits_for_the_size_of_its_argument(monkeypatch, made):
    """At 1e300 ψ is one function of the argument: a sum inside another function needs hundreds of digits there, this one does not."""
    asked, own = [], values.Arithmetic.set_digits
    monkeypatch.setattr(values.Arithmetic, "set_digits", lambda self, digits: asked.append(digits) or own(self, digits))
    made("my_psi", sympy.digamma(x), domain=POSITIVE)
    assert len(asked) > 100 and max(asked) <= 130
    assert float(values.accurate_value((x - y) * sympy.gamma(y), [x, y])([1 + 2**-52, 1.0])) == 2**-52 and max(asked) <= 130
    assert float(values.accurate_value(sympy.log(1 + x**2) / x**2, [x])([1e-300])) == 1.0 and max(asked) > 600


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:.* at .*write it in another form:RuntimeWarning")
def test_a_gamma_function_beyond_the_range_of_floats_is_a_factor(made):
    """Γ(228) overflows; the error is that of the exponent, below the condition number of a number of this size."""
    found = made("my_lower", sympy.lowergamma(a, t), (a, t), domain=POSITIVE)(228.0, 14.0)
    assert found.item() == pytest.approx(float(mpmath.gammainc(228, 0, 14)), rel=2e-13)


def test_special_functions_are_kept_whole():
    lower, upper = sympy.lowergamma(a, 2 * t), sympy.uppergamma(a, t)
    assert str(fold_special(1 - lower / sympy.gamma(a))) == "1 - gammainc(a, 2*t)" and str(fold_special(t * upper)) == "t*gamma(a)*gammaincc(a, t)"
    for e in (sympy.exp(-t**2), sympy.Heaviside(t), sympy.Function("f")(t), sympy.besselj(sympy.Rational(1, 3), t), sympy.S(2), t):
        assert fold_special(e) is e  # elementary, unknown, or with a parameter that no float equals
    for e in (sympy.erf(t), sympy.besselj(2, t), sympy.exp(t**2) * sympy.erfc(t), upper / sympy.gamma(a)):
        assert isinstance(fold_special(e), CarrierFunction) and written_out(fold_special(e)) == e and isinstance(fold_special(e).diff(t), sympy.Expr)


FORMULAS = """
bessel_j0(x) bessel_y1(x) i0(x) i0e(x) i1e(x) modified_bessel_k0(x) spherical_bessel_j0(x) jv(0.5,x) kv(2,x) polygamma(1,x) mvlgamma(x+2,2) beta(x,y)
betaln(x,y) gamma(x) erf(x)*lgamma(y) gammainc(x,y) zeta(x+1,y) ellipkinc(x,y/9) chebyshev_polynomial_t(x,3) hermite_polynomial_h(x,2)
legendre_polynomial_p(x,4)
laguerre_polynomial_l(x,2) deg2rad(x) heaviside(x,y) copysign(x,-1) fmax(x,y) fmin(x,y) logaddexp2(x,y) float_power(x,2) clamp_min(x,1) lerp(x,y,0.25)
""".split()


@pytest.mark.parametrize("text", FORMULAS)
def test_special_functions_stand_in_formulas(text):
    formula = parse(text)
    given = dict(zip("xy", (0.7, 1.9)))
    names = [n for n in "xy" if n in formula.names]
    leaves = {n: symgrad.tensor(given[n], requires_grad=True) for n in names}
    value = formula(**leaves)
    function = eval("lambda x, y: " + text, {"__builtins__": {}, **FUNCTIONS})
    direct = function(*(leaves.get(n, 1.0) for n in "xy"))
    assert value.item() == direct.item() == formula(**{n: given[n] for n in names})
    for a, b in zip(*(symgrad.autograd.grad(v, leaves.values(), allow_unused=True) for v in (value, direct))):
        assert (a is None and b is None) or a.item() == b.item()


@pytest.mark.parametrize("text, words", [
    ("polygamma(x, x)", "polygamma"), ("polygamma(1.5, x)", "polygamma"), ("jv(x)", "jv takes 2 arguments, not 1"),
    ("mvlgamma(x)", "mvlgamma takes 2 arguments, not 1"), ("beta(x)", "beta takes 2 arguments, not 1")])
def test_wrong_arguments_are_refused(text, words):
    with pytest.raises((ParseError, TypeError, RuntimeError), match=words):
        parse(text)(x=symgrad.tensor(0.5))
