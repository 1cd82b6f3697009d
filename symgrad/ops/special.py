"""Special functions; values and derivatives are words of the carriers."""

from symgrad.graph.op import composite, elementwise
from symgrad.types.domains import POSITIVE, UNIT_OPEN, Domain, Interval

ZERO = ((0.0,), (-0.0,))
PROBABILITY = Domain("PROBABILITY", (Interval(1e-100, 1.0, open_high=True),))  # where the derivatives do not overflow
SCALED = Domain("SCALED", (Interval(low=-26.0),))

elementwise("erf", None, lambda xp, y, x: xp.erf_slope(x, 0), special=ZERO, doc="The error function. DLMF 7.2.1.")
elementwise("erfc", None, lambda xp, y, x: -xp.erf_slope(x, 0), special=ZERO, doc="1 - erf(input), accurate for large arguments. DLMF 7.2.2.")
elementwise("erf_slope", lambda xp, input, order: xp.erf_slope(input, order), lambda xp, y, x, order: xp.erf_slope(x, order + 1), special=ZERO,
            examples=((0,),), public=False, doc="2/√π exp(-input²), the derivative of erf, or its derivative of an order. DLMF 7.10.1.")
elementwise("erfcx", None, lambda xp, y, x: xp.erfcx_derivative(x, 1), domain=SCALED, special=ZERO, method=False, node_name="SpecialErfcx",
            doc="exp(input²) erfc(input). The value is SciPy's, within 5 ULP; the derivatives do not cancel for large arguments. DLMF 7.2.3.")
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

elementwise("logit", None, lambda xp, y, x: xp.logit_slope(x), domain=PROBABILITY, special=((0.5,),),
            prepare=lambda xp, input, eps=None: (input if eps is None else xp.clamp(input, eps, 1 - eps),),
            doc="log(input / (1 - input)), of the input clamped to [eps, 1 - eps] if `eps` is given.")
elementwise("logit_slope", None, lambda xp, y, x: xp.square(y) * (2 * x - 1), domain=PROBABILITY, special=((0.5,),), public=False,
            doc="1 / (input (1 - input)), the derivative of logit, whose own derivative keeps its digits next to 1/2.")


@composite("xlogy", arity=2, usage="symgrad.xlogy(x, x)", saved=("input other",) * 2)
def xlogy(xp, input, other):
    """input log(other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, 0) are 0."""
    pole = xp.logical_and(xp.eq(input, 0), xp.logical_or(xp.le(other, 0), xp.isinf(other)))
    return input * xp.log(xp.where(pole, 1, other))


@composite("xlog1py", arity=2, method=False, usage="symgrad.xlog1py(x, x)")
def xlog1py(xp, input, other):
    """input log(1 + other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, -1) are 0."""
    pole = xp.logical_and(xp.eq(input, 0), xp.logical_or(xp.le(other, -1), xp.isinf(other)))
    return input * xp.log1p(xp.where(pole, 0, other))


@composite("entr", method=False, usage="symgrad.entr(x)")
def entr(xp, input):
    """-input log(input), 0 at 0, and -inf below; the derivative at 0 is 0, as that of xlogy."""
    return xp.where(xp.lt(input, 0), -float("inf"), -input * xp.log(xp.where(xp.le(input, 0), 1, input)))


elementwise("lgamma", None, lambda xp, y, x: xp.digamma(x), domain=POSITIVE, special=((1.0,), (2.0,)), aliases=("gammaln",),
            doc="log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2.")
elementwise("digamma", None, lambda xp, y, x: xp.digamma_derivative(x, 1), domain=POSITIVE, aliases=("psi",),
            doc="The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2.")
elementwise("digamma_derivative", lambda xp, input, n: xp.digamma_derivative(input, n), lambda xp, y, x, n: xp.digamma_derivative(x, n + 1),
            domain=POSITIVE, examples=((1,), (2,)), public=False, node_name="Polygamma", doc="The derivatives of digamma.")


@composite("polygamma", arity=2, method=False, usage="symgrad.polygamma(1, x)")
def polygamma(xp, n, input):
    """The derivative of digamma(input) of order n. DLMF 5.15."""
    return xp.digamma_derivative(input, int(n)) if n else xp.digamma(input)


@composite("mvlgamma", usage="symgrad.mvlgamma(x + 2, 2)", aliases=("multigammaln",))
def mvlgamma(xp, input, p):
    """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    out = p * (p - 1) / 4 * 1.1447298858494002
    for i in range(p):
        out = xp.lgamma(input - i / 2) + out
    return out


@composite("betaln", arity=2, method=False, usage="symgrad.betaln(x, x)")
def betaln(xp, input, other):
    """The logarithm of the beta function, of positive numbers, from three values of lgamma, which cancel where one number is large. DLMF 5.12.1."""
    return xp.lgamma(input) + xp.lgamma(other) - xp.lgamma(input + other)


@composite("beta", arity=2, method=False, usage="symgrad.beta(x, x)")
def beta(xp, input, other):
    """The beta function Γ(input) Γ(other) / Γ(input + other) of positive numbers, by its logarithm. DLMF 5.12.1."""
    return xp.exp(betaln(xp, input, other))
