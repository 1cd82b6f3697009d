"""Special functions; values and derivatives are words of the carriers."""

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
