"""Special functions in formulas that are texts, and in ops that are made of expressions."""

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.engine.traced import FUNCTIONS
from symgrad.formulas.parsing import ParseError, parse
from symgrad.types.domains import POSITIVE

x, y = sympy.symbols("x y")
EXPRESSIONS = {
    "error": (sympy.erf(x), None), "tail": (sympy.exp(-x) * sympy.erfc(x), None), "gamma_function": (sympy.gamma(x), POSITIVE),
    "log_gamma": (sympy.loggamma(x), POSITIVE),
    "digamma": (sympy.polygamma(0, x), POSITIVE), "tetragamma": (sympy.polygamma(2, x), POSITIVE), "bessel": (sympy.besselj(0, x), None),
    "damped": (sympy.exp(-x / 5) * sympy.bessely(1, x), POSITIVE),
    "exponential_integral": (sympy.Ei(x), POSITIVE), "airy": (sympy.airyai(x), None),
    "fresnel": (sympy.fresnels(x), None), "lambert": (sympy.LambertW(x), POSITIVE),
}
POINTS = np.array([0.3, 1.7])


def exact(e, values):
    with mpmath.workdps(40):
        return float(sympy.re(e.evalf(30, subs=values)))


@pytest.mark.sampled(2)
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


def test_an_op_of_a_bessel_function_does_not_call_that_of_mpmath(made, monkeypatch):
    def slow(*args):
        raise AssertionError("at a whole order it is a limit of others, and slower than the series")

    monkeypatch.setattr(mpmath.ctx_mp.MPContext, "bessely", slow)
    made("my_fast", sympy.exp(-x / 5) * sympy.bessely(1, x), domain=POSITIVE)


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
