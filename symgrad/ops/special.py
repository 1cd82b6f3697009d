"""Special functions; values and derivatives, for some by every argument and of every order, are words of the carriers."""

import operator

from symgrad.arguments import check_range
from symgrad.graph.domains import FIXED, NONNEGATIVE, POSITIVE, REAL, UNIT_OPEN, Domain, Interval
from symgrad.graph.op import composite, elementwise
from symgrad.ops.rules import as_floats, constant, in_one_dtype

ZERO = ((0.0,), (-0.0,))
PROBABILITY = Domain("PROBABILITY", (Interval(1e-100, 1.0, open_high=True),))  # where the derivatives do not overflow
MODERATE = Domain("MODERATE", (Interval(1e-3, 50.0),))  # where the formulas of beta functions keep their digits, as the rules do everywhere
FACTORIAL = Domain("FACTORIAL", (Interval(1e-70, 170.0),))  # where the derivatives do not overflow
SCALED = Domain("SCALED", (Interval(low=-26.0),))
ABOVE_MINUS_ONE = Domain("ABOVE_MINUS_ONE", (Interval(-1.0, open_low=True),))
ABOVE_ONE = Domain("ABOVE_ONE", (Interval(1.0, open_low=True),))

elementwise("erf", None, lambda xp, y, x: xp.erf_slope(x, 0), special=ZERO, doc="The error function. DLMF 7.2.1.")
elementwise("erfc", None, lambda xp, y, x: -xp.erf_slope(x, 0), special=ZERO, doc="1 - erf(input), accurate for large arguments. DLMF 7.2.2.")
elementwise("erf_slope", lambda xp, input, order: xp.erf_slope(input, order), lambda xp, y, x, order: xp.erf_slope(x, order + 1), special=ZERO,
            examples=((0,),), public=False, doc="2/√π exp(-input²), the derivative of erf, or its derivative of an order. DLMF 7.10.1.")
elementwise("erfcx", None, lambda xp, y, x: xp.erfcx_derivative(x, 1), domain=SCALED, special=ZERO, method=False, node_name="SpecialErfcx",
            doc="exp(input²) erfc(input). The value and the derivatives do not cancel for large arguments. DLMF 7.2.3.")
elementwise("erfcx_derivative", lambda xp, input, n: xp.erfcx_derivative(input, n), lambda xp, y, x, n: xp.erfcx_derivative(x, n + 1),
            domain=SCALED, examples=((1,),), special=ZERO, method=False, public=False, doc="The derivative of erfcx of an order. DLMF 7.18.4.")
elementwise("erfinv", None, lambda xp, y, x: xp.erfinv_slope(x), domain=UNIT_OPEN, special=ZERO,
            doc="The inverse of erf, on (-1, 1). The derivative is computed from the input, so that it is accurate next to the ends. DLMF 7.17.1.")
elementwise("erfinv_slope", None, lambda xp, y, x: 2 * xp.erfinv(x) * y * y, domain=UNIT_OPEN, special=ZERO, method=False, public=False,
            doc="√π/2 exp(erfinv(input)²), the derivative of erfinv.")
elementwise("ndtri", None, lambda xp, y, x: xp.ndtri_slope(x), domain=PROBABILITY, special=((0.5,),), method=False, node_name="SpecialNdtri",
            doc="The inverse of ndtr, on (0, 1): the quantile of the standard normal distribution. DLMF 7.20.1.")
elementwise("ndtri_slope", None, lambda xp, y, x: xp.ndtri(x) * y * y, domain=PROBABILITY, special=((0.5,),), method=False, public=False,
            doc="√(2π) exp(ndtri(input)²/2), the derivative of ndtri.")
elementwise("log_ndtr", None, lambda xp, y, x: xp.log_ndtr_derivative(x, 1), special=ZERO, method=False, node_name="SpecialLogNdtr",
            doc="log(ndtr(input)), accurate in both tails, and so are its derivatives. DLMF 7.20.1.")
elementwise("log_ndtr_derivative", lambda xp, input, n: xp.log_ndtr_derivative(input, n), lambda xp, y, x, n: xp.log_ndtr_derivative(x, n + 1),
            examples=((1,),), special=ZERO, method=False, public=False,
            doc="The derivative of log_ndtr of an order; the first is exp(-input²/2)/√(2π) / ndtr(input).")
elementwise("ndtr", None, lambda xp, y, x: xp.ndtr_slope(x, 0), special=ZERO, method=False,
            doc="The distribution function of the standard normal distribution, accurate in the lower tail. DLMF 7.20.")
elementwise("ndtr_slope", lambda xp, input, order: xp.ndtr_slope(input, order), lambda xp, y, x, order: xp.ndtr_slope(x, order + 1), special=ZERO,
            examples=((0,),), public=False, doc="exp(-input²/2)/√(2π), the derivative of ndtr, or its derivative of an order.")


def _logit_arguments(xp, input, eps=None):
    if eps is None:
        return (input,)
    if eps <= 0.5:
        return (xp.clamp(input, eps, 1 - eps),)
    return (xp.where(xp.lt(input, eps), xp.clamp(input, eps, eps), xp.clamp(input, 1 - eps, 1 - eps)),)  # bounds that cross: the lower one is first


elementwise("logit", None, lambda xp, y, x: xp.logit_slope(x), domain=PROBABILITY, special=((0.5,),), prepare=_logit_arguments,
            doc="log(input / (1 - input)), of the input clamped to [eps, 1 - eps] if `eps` is given.")
elementwise("logit_slope", None, lambda xp, y, x: xp.square(y) * (2 * x - 1), domain=PROBABILITY, special=((0.5,),), public=False,
            doc="1 / (input (1 - input)), the derivative of logit, whose own derivative keeps its digits next to 1/2.")


def _is_pole(xp, a, b, end):
    """Where 0 times a logarithm that is infinite or does not exist is taken for 0."""
    return xp.logical_and(xp.eq(a, 0), xp.logical_or(xp.le(b, end), xp.isinf(b)))


def _slope_by_other(xp, a, b, end):
    """a / (b - end), and 0 where the value is 0 for all b; by a it has no derivative there."""
    pole = _is_pole(xp, a, b, end)
    return xp.where(pole, xp.sqrt(xp.where(pole, a, 1)), a) / xp.where(pole, 1, b - end if end else b)


elementwise("times_log", lambda xp, input, other: input * xp.log(xp.where(_is_pole(xp, input, other, 0), 1, other)), lambda xp, y, a, b: xp.log(b),
            lambda xp, y, a, b: _slope_by_other(xp, a, b, 0), domain=(REAL, POSITIVE), public=False, refuses="c", node_name="Xlogy",
            doc="input log(other), whose slope is a quotient, finite for two subnormal numbers, of which the reciprocal is not.")
elementwise("times_log1p", lambda xp, input, other: input * xp.log1p(xp.where(_is_pole(xp, input, other, -1), 0, other)),
            lambda xp, y, a, b: xp.log1p(b), lambda xp, y, a, b: _slope_by_other(xp, a, b, -1), domain=(REAL, ABOVE_MINUS_ONE), public=False,
            refuses="c", node_name="SpecialXlog1Py", doc="input log(1 + other).")


@composite("xlogy", elementwise=True, kinks=((0.0, 0.0), (1.0, 0.0)), arity=2, domain=(REAL, POSITIVE), usage="symgrad.xlogy(x, x)",
           saved=("input other",) * 2)
def xlogy(xp, input, other):
    """input log(other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, 0) are -inf and 0."""
    if input is other:  # one function of one argument, whose second derivative 1/x is no sum of infinite ones where 1/x overflows
        return -xp.entropy_of_positive(as_floats(input))
    return xp.times_log(*in_one_dtype(input, other))


@composite("xlog1py", elementwise=True, kinks=((0.0, -1.0),), arity=2, domain=(REAL, ABOVE_MINUS_ONE), method=False, usage="symgrad.xlog1py(x, x)")
def xlog1py(xp, input, other):
    """input log(1 + other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, -1) are -inf and 0."""
    return xp.times_log1p(*in_one_dtype(input, other))


elementwise("entropy_of_positive", lambda xp, input: -input * xp.log(xp.where(xp.eq(input, 0), 1, input)), lambda xp, y, x: -1 - xp.log(x),
            domain=POSITIVE, public=False, refuses="c", node_name="SpecialEntr",
            doc="-input log(input), 0 at 0, whose derivative is finite for subnormal numbers, of which the reciprocal is not.")


@composite("entr", elementwise=True, kinks=((0.0,),), domain=NONNEGATIVE, method=False, usage="symgrad.entr(x)")
def entr(xp, input):
    """-input log(input), 0 at 0, where the derivative is infinite, and -inf below."""
    input = as_floats(input)
    return xp.where(xp.lt(input, 0), -float("inf"), xp.entropy_of_positive(input))


elementwise("gamma", None, lambda xp, y, x: y * xp.digamma(x), domain=FACTORIAL, special=((1.0,), (2.0,)), method=False,
            doc="The gamma function Γ(input), infinite above 171.6; the value is SciPy's, within 7 ULP. DLMF 5.2.1.")
elementwise("lgamma", None, lambda xp, y, x: xp.digamma(x), domain=POSITIVE, special=((1.0,), (2.0,)), aliases=("gammaln",),
            doc="log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2.")
elementwise("digamma", None, lambda xp, y, x: xp.digamma_derivative(x, 1), domain=POSITIVE, aliases=("psi",),
            doc="The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2.")
elementwise("digamma_derivative", lambda xp, input, n: xp.digamma_derivative(input, n), lambda xp, y, x, n: xp.digamma_derivative(x, n + 1),
            domain=POSITIVE, examples=((1,), (2,)), public=False, node_name="Polygamma", doc="The derivatives of digamma.")


@composite("polygamma", elementwise=True, arity=2, domain=(FIXED, POSITIVE), examples=((0,), (1,), (4,)), method=False,
           usage="symgrad.polygamma(1, x)")
def polygamma(xp, n, input):
    """The derivative of digamma(input) of order n. DLMF 5.15."""
    order = float(constant("polygamma", "n", n))
    if not order.is_integer():
        raise TypeError(f"polygamma: n must be an integer, not {order}")
    return xp.digamma_derivative(input, int(order)) if order else xp.digamma(input)


@composite("mvlgamma", elementwise=True, domain=ABOVE_ONE, examples=((1,), (3,)), usage="symgrad.mvlgamma(x + 2, 2)", aliases=("multigammaln",))
def mvlgamma(xp, input, p):
    """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
    p = operator.index(p)
    check_range("mvlgamma", "p", p, 1)
    out = p * (p - 1) / 4 * 1.1447298858494002
    for i in range(p):
        out = xp.lgamma(input - i / 2) + out
    return out


_BETA = "the beta function Γ(input) Γ(other) / Γ(input + other) of positive numbers, without cancellation where one is large. DLMF 5.12.1."
elementwise("betaln", None, lambda xp, y, a, b: xp.polygamma_difference(a, b, 0), lambda xp, y, a, b: xp.polygamma_difference(b, a, 0),
            domain=MODERATE, method=False, doc="The logarithm of " + _BETA)
elementwise("beta_derivative", lambda xp, input, other, m, n: xp.beta_derivative(input, other, m, n),
            lambda xp, y, a, b, m, n: xp.beta_derivative(a, b, m + 1, n), lambda xp, y, a, b, m, n: xp.beta_derivative(a, b, m, n + 1),
            domain=MODERATE, examples=((0, 1), (1, 1)), method=False, public=False,
            doc="The derivative of the beta function of order m by input and n by other.")
elementwise("beta", None, lambda xp, y, a, b: xp.beta_derivative(a, b, 1, 0), lambda xp, y, a, b: xp.beta_derivative(a, b, 0, 1),
            domain=MODERATE, method=False, doc="The " + _BETA[4:])
elementwise("polygamma_difference", lambda xp, input, other, n: xp.polygamma_difference(input, other, n),
            lambda xp, y, a, b, n: xp.polygamma_difference(a, b, n + 1), lambda xp, y, a, b, n: -xp.digamma_derivative(a + b, n + 1), domain=MODERATE,
            examples=((0,), (1,)), method=False, public=False, doc="The difference of polygamma of order n at input and at input + other.")


GAMMA = Domain("GAMMA", (Interval(0.01, 50.0),))


def _slope_of_density(xp, y, a, x, n):
    """By x: that of xᵃ⁻¹ e⁻ˣ is (a - 1 - x) / x times it. The difference is formed in the order that is exact next to its zero."""
    distance = xp.where(xp.lt(a, 2), (a - 1) - x, (a - x) - 1)
    slope = distance / x * y
    return slope + n / x * xp.gamma_density(a, x, n - 1) if n else slope


elementwise("gammainc", None, lambda xp, y, a, x: xp.gammainc_derivative(a, x, 1), lambda xp, y, a, x: xp.gamma_density(a, x, 0), domain=GAMMA,
            aliases=("igamma",), node_name="Igamma",
            doc="The regularized lower incomplete gamma function P(input, other), the integral of tᵃ⁻¹ exp(-t) / Γ(a) from 0 to other for a = input, "
                "with derivatives by both. Up to 10,000 the value and the first derivatives are within 4 ULP; SciPy's value, with errors up to "
                "30,000 ULP in the tails, is used for larger numbers only. DLMF 8.2.4.")
elementwise("gammaincc", None, lambda xp, y, a, x: -xp.gammainc_derivative(a, x, 1), lambda xp, y, a, x: -xp.gamma_density(a, x, 0), domain=GAMMA,
            aliases=("igammac",), node_name="Igammac",
            doc="The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), accurate in its tail, with derivatives by "
                "both; the errors are those of gammainc. DLMF 8.2.4.")
elementwise("gammainc_derivative", lambda xp, input, other, n: xp.gammainc_derivative(input, other, n),
            lambda xp, y, a, x, n: xp.gammainc_derivative(a, x, n + 1), lambda xp, y, a, x, n: xp.gamma_density(a, x, n), domain=GAMMA,
            examples=((1,),), public=False, method=False, doc="The derivative of gammainc by its first argument of an order.")
elementwise("gamma_density", lambda xp, input, other, n: xp.gamma_density(input, other, n), lambda xp, y, a, x, n: xp.gamma_density(a, x, n + 1),
            _slope_of_density, domain=GAMMA, examples=((1,),), public=False, method=False,
            doc="The derivative of otherᵃ⁻¹ exp(-other) / Γ(a) by a = input of an order.")


FROM_ONE = Domain("ABOVE_ONE", (Interval(1.001, 1e4),))
FROM_ZERO = Domain("FROM_ZERO", (Interval(1e-60, 1e60),))

elementwise("zeta", lambda xp, input, other: xp.zeta(input, other), lambda xp, y, x, q: xp.zeta_derivative(x, q, 1, 0),
            lambda xp, y, x, q: xp.zeta_derivative(x, q, 0, 1), domain=(FROM_ONE, FROM_ZERO), method=False, node_name="SpecialZeta",
            doc="The zeta function of Hurwitz, the sum of (other + k)^-input over k >= 0, for input > 1. For other < 0, where input must be a whole "
                "number, value and derivatives by other are SciPy's, and those by input are NaN. DLMF 25.11.1.")
elementwise("zeta_derivative", lambda xp, input, other, n, m: xp.zeta_derivative(input, other, n, m),
            lambda xp, y, x, q, n, m: xp.zeta_derivative(x, q, n + 1, m), lambda xp, y, x, q, n, m: xp.zeta_derivative(x, q, n, m + 1),
            domain=(FROM_ONE, FROM_ZERO), examples=((1, 0),), method=False, public=False, node_name="SpecialZeta",
            doc="The derivative of zeta of order n by input and of order m by other.")


AT_ZERO = Interval(0.0, 0.0)
BELOW_ONE = Domain("BELOW_ONE", (Interval(-1e30, -1e-30), AT_ZERO, Interval(1e-30, 0.999)))
COMPLEMENT = Domain("COMPLEMENT", (Interval(1e-60, 1e30),))
ANGLE = Domain("ANGLE", (Interval(-50.0, -1e-20), AT_ZERO, Interval(1e-20, 50.0)))
NARROW = Domain("NARROW", (Interval(-1e6, -1e-20), AT_ZERO, Interval(1e-20, 0.999)))


def _complete(name, domain, special, doc):
    """A complete integral, and its derivatives."""
    word = f"{name}_derivative"
    elementwise(name, None, lambda xp, y, m: getattr(xp, word)(m, 1), domain=domain, special=special, method=False, doc=doc)
    elementwise(word, lambda xp, input, n: getattr(xp, word)(input, n), lambda xp, y, m, n: getattr(xp, word)(m, n + 1), domain=domain,
                examples=((1,),), special=special, method=False, public=False, doc=f"The derivative of {name} of order n.")


def _incomplete(name, doc):
    """An incomplete integral, and its derivatives of order k by the angle and n by the parameter."""
    word = f"{name}_derivative"
    elementwise(name, lambda xp, phi, m: getattr(xp, name)(phi, m), lambda xp, y, phi, m: getattr(xp, word)(phi, m, 1, 0),
                lambda xp, y, phi, m: getattr(xp, word)(phi, m, 0, 1), domain=(ANGLE, NARROW), special=((0.0, 0.5), (1.0, 0.0)), method=False,
                doc=doc)
    elementwise(word, lambda xp, phi, m, k, n: getattr(xp, word)(phi, m, k, n), lambda xp, y, phi, m, k, n: getattr(xp, word)(phi, m, k + 1, n),
                lambda xp, y, phi, m, k, n: getattr(xp, word)(phi, m, k, n + 1), domain=(ANGLE, NARROW), examples=((0, 1),),
                special=((1.0, 0.0),), method=False, public=False, doc=f"The derivative of {name} of order k by phi and n by m.")


_complete("ellipk", BELOW_ONE, ((0.0,),), "The complete elliptic integral of the first kind, for m = input < 1. DLMF 19.2.8.")
_complete("ellipe", BELOW_ONE, ((0.0,),), "The complete elliptic integral of the second kind, for m = input <= 1. DLMF 19.2.8.")
_complete("ellipkm1", COMPLEMENT, ((1.0,),), "ellipk(1 - input), with all digits of small arguments. DLMF 19.2.8.")
_incomplete("ellipkinc", "The incomplete elliptic integral of the first kind from 0 to phi, for m <= 1. DLMF 19.2.4.")
_incomplete("ellipeinc", "The incomplete elliptic integral of the second kind from 0 to phi, for m <= 1. DLMF 19.2.5.")


EXPONENTS_BUT_ZERO = Domain("EXPONENTS_BUT_ZERO", (Interval(-700.0, 0.0, open_high=True), Interval(0.0, 700.0, open_low=True)))
POSITIVE_EXPONENTS = Domain("POSITIVE_EXPONENTS", (Interval(0.0, 700.0, open_low=True),))
OSCILLATING = Domain("OSCILLATING", (Interval(-30.0, 30.0),))
ABOVE_ZERO = Domain("ABOVE_ZERO", (Interval(0.0, 30.0, open_low=True),))
ABOVE_BRANCH_POINT = Domain("ABOVE_BRANCH_POINT", (Interval(-0.3, 1e100),))


def _slope_of_lambertw(xp, y, x):
    """W / (x (1 + W)) for large x, where eᵂ has an error of W roundings, and e⁻ᵂ / (1 + W) next to 0."""
    large = xp.gt(x, 1)
    return xp.where(large, y / xp.where(large, x, xp.ones_like(x)), xp.exp(-xp.where(large, xp.zeros_like(y), y))) / (1 + y)


elementwise("expi_derivative", lambda xp, input, order: xp.expi_derivative(input, order), lambda xp, y, x, order: xp.expi_derivative(x, order + 1),
            domain=EXPONENTS_BUT_ZERO, examples=((0,), (1,)), method=False, public=False, node_name="Expi",
            doc="The derivatives of exp(input) / input, next to its pole as well.")
elementwise("expi", None, lambda xp, y, x: xp.expi_derivative(x, 0), domain=EXPONENTS_BUT_ZERO, method=False,
            doc="The exponential integral Ei. DLMF 6.2.5.")
elementwise("exp1", None, lambda xp, y, x: -xp.exp(-x) / x, domain=POSITIVE_EXPONENTS, method=False, doc="The exponential integral E₁. DLMF 6.2.1.")
elementwise("lambertw", None, _slope_of_lambertw, domain=ABOVE_BRANCH_POINT, method=False,
            doc="The principal branch of Lambert's W, with W eᵂ = input, for input > -1/e; the "
                " derivative loses digits next to this end, 16 ULP at -0.36. DLMF 4.13.")


elementwise("sine_integral", None, lambda xp, y, x: xp.spherical_bessel_j0_derivative(x, 0), domain=OSCILLATING, special=((0.0,),), method=False,
            doc="The sine integral Si, the integral of sin(t)/t from 0 on. DLMF 6.2.9.")
elementwise("cosine_integral", None, lambda xp, y, x: xp.cos(x) / x, domain=ABOVE_ZERO, method=False,
            doc="The cosine integral Ci, of positive numbers. DLMF 6.2.11.")


@composite("sici", usage="symgrad.sici(x)", method=False)
def sici(xp, input):
    """The sine and the cosine integral, as SciPy returns them. DLMF 6.2."""
    return xp.sine_integral(input), xp.cosine_integral(input)


ORDERS = ((0,), (1,))
POWERS = Domain("POWERS", (Interval(-1e50, 1e50),))  # whose fifth powers do not overflow
elementwise("fresnel_s", None, lambda xp, y, x: xp.fresnel_sine(x, 0), domain=POWERS, special=((0.0,),), method=False,
            doc="Fresnel's integral S, the integral of sin(πt²/2) from 0 on. DLMF 7.2.8.")
elementwise("fresnel_c", None, lambda xp, y, x: xp.fresnel_cosine(x, 0), domain=POWERS, special=((0.0,),), method=False,
            doc="Fresnel's integral C, the integral of cos(πt²/2) from 0 on. DLMF 7.2.7.")
elementwise("fresnel_sine", lambda xp, input, order: xp.fresnel_sine(input, order), lambda xp, y, x, order: xp.fresnel_sine(x, order + 1),
            domain=POWERS, examples=ORDERS, special=((0.0,),), method=False, public=False,
            doc="sin(π input²/2), with all digits of large arguments, or its derivative.")
elementwise("fresnel_cosine", lambda xp, input, order: xp.fresnel_cosine(input, order), lambda xp, y, x, order: xp.fresnel_cosine(x, order + 1),
            domain=POWERS, examples=ORDERS, special=((0.0,),), method=False, public=False,
            doc="cos(π input²/2), with all digits of large arguments, or its derivative.")


@composite("fresnel", usage="symgrad.fresnel(x)", method=False)
def fresnel(xp, input):
    """Fresnel's integrals S and C, as SciPy returns them. DLMF 7.2."""
    return xp.fresnel_s(input), xp.fresnel_c(input)


CLASSICAL = ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
             "hermite_polynomial_he", "legendre_polynomial_p", "laguerre_polynomial_l")
NAMES = CLASSICAL + tuple(f"shifted_{name}" for name in CLASSICAL if name.startswith("chebyshev"))
WITHIN_100 = Domain("MODERATE", (Interval(-100.0, 100.0),))

elementwise("orthogonal_polynomial", lambda xp, input, family, degree, order: xp.orthogonal_polynomial(input, family, degree, order),
            lambda xp, y, x, family, degree, order: xp.orthogonal_polynomial(x, family, degree, order + 1), domain=WITHIN_100,
            examples=((0, 3, 0), (6, 4, 0), (7, 3, 0)), method=False, public=False,
            doc="The derivative of an order of the polynomial of a degree of a family. DLMF 18.9.")


def _named(family, name):
    shifted = name.startswith("shifted_")
    title = name.removeprefix("shifted_").replace("_polynomial_", " polynomial ").capitalize()

    @composite(name, elementwise=True, domain=WITHIN_100, examples=((3,), (8,)), usage=f"symgrad.{name}(x, 3)", method=False,
               doc=f"{title} of degree n, a whole number or a tensor of them, at {'2 input - 1' if shifted else 'input'}; 0 for n < 0. DLMF 18.3.")
    def call(xp, input, n):
        if getattr(n, "requires_grad", False) or not getattr(n, "ndim", 0):
            n = constant(name, "n", n)
            return xp.orthogonal_polynomial(input, family, _degree(name, n), 0)
        out = 0.0
        for degree in sorted({_degree(name, each) for each in n.reshape(-1).tolist()} or {0}):
            out = xp.where(n == degree, xp.orthogonal_polynomial(input, family, degree, 0), out)
        return out


def _degree(name, n):
    """A degree as an int."""
    try:
        number = n.item() if hasattr(n, "item") else n
        return int(number) if isinstance(number, float) and number.is_integer() else operator.index(number)
    except TypeError:
        raise TypeError(f"{name}: n must be a whole number, or a tensor of whole numbers, got {n!r}") from None


for family, name in enumerate(NAMES):
    _named(family, name)
