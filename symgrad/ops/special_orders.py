"""Functions with an order that is a real number, differentiable by this, too: the incomplete gamma functions, Hurwitz's zeta function, and beta."""

from symgrad.graph.op import composite, elementwise
from symgrad.types.domains import Domain, Interval

GAMMA = Domain("GAMMA", (Interval(0.01, 40.0),))
ABOVE_ONE = Domain("ABOVE_ONE", (Interval(1.0, 20.0, open_low=True),))
SHIFT = Domain("SHIFT", (Interval(1e-2, 50.0),))


def _slope_of_density(xp, y, a, x, n):
    """By x: that of xᵃ⁻¹ e⁻ˣ is (a - 1 - x) / x times it. The difference is formed in the order that is exact next to its zero."""
    distance = xp.where(xp.lt(a, 2), (a - 1) - x, (a - x) - 1)
    slope = distance / x * y
    return slope + n / x * xp.gamma_density(a, x, n - 1) if n else slope


elementwise("gammainc", None, lambda xp, y, a, x: xp.gammainc_derivative(a, x, 1), lambda xp, y, a, x: xp.gamma_density(a, x, 0), domain=GAMMA,
            aliases=("igamma",), node_name="Igamma",
            doc="The regularized lower incomplete gamma function P(input, other), with derivatives by both. For numbers up to 10,000 the value is "
                "within 1 ULP; for larger ones it is SciPy's, whose error is up to 500 ULP below 1e-200. DLMF 8.2.4.")
elementwise("gammaincc", None, lambda xp, y, a, x: -xp.gammainc_derivative(a, x, 1), lambda xp, y, a, x: -xp.gamma_density(a, x, 0), domain=GAMMA,
            aliases=("igammac",), node_name="Igammac",
            doc="The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), with derivatives by both. DLMF 8.2.4.")
elementwise("gammainc_derivative", lambda xp, input, other, n: xp.gammainc_derivative(input, other, n),
            lambda xp, y, a, x, n: xp.gammainc_derivative(a, x, n + 1), lambda xp, y, a, x, n: xp.gamma_density(a, x, n), domain=GAMMA,
            examples=((1,),), public=False, method=False, doc="The derivative of gammainc by its first argument of an order.")
elementwise("gamma_density", lambda xp, input, other, n: xp.gamma_density(input, other, n), lambda xp, y, a, x, n: xp.gamma_density(a, x, n + 1),
            _slope_of_density, domain=GAMMA, examples=((0,), (1,)), public=False, method=False,
            doc="The derivative of otherᵃ⁻¹ exp(-other) / Γ(a) by a = input of an order.")


def _slope_of_zeta(xp, y, s, q, n=0, shift=0):
    """By q: that of ζ(s, q) is -s ζ(s + 1, q)."""
    slope = -(s + shift) * xp.zeta_derivative(s, q, n, shift + 1)
    return slope - n * xp.zeta_derivative(s, q, n - 1, shift + 1) if n else slope


elementwise("zeta", None, lambda xp, y, s, q: xp.zeta_derivative(s, q, 1, 0), _slope_of_zeta, domain=(ABOVE_ONE, SHIFT), method=False,
            node_name="SpecialZeta",
            doc="Hurwitz's zeta function, the sum of (other + k)^-input over k = 0, 1, ..., with derivatives by both for input > 1 and other > 0. "
                "DLMF 25.11.1.")
elementwise("zeta_derivative", lambda xp, input, other, n, shift: xp.zeta_derivative(input, other, n, shift),
            lambda xp, y, s, q, n, shift: xp.zeta_derivative(s, q, n + 1, shift), _slope_of_zeta, domain=(ABOVE_ONE, SHIFT),
            examples=((1, 0), (0, 1)), public=False, method=False, doc="The derivative of ζ(input + shift, other) by input of an order.")


@composite("betaln", arity=2, method=False, usage="symgrad.betaln(x, x)")
def betaln(xp, input, other):
    """The logarithm of the beta function, of positive numbers, from three values of lgamma, which cancel where one number is large. DLMF 5.12.1."""
    return xp.lgamma(input) + xp.lgamma(other) - xp.lgamma(input + other)


@composite("beta", arity=2, method=False, usage="symgrad.beta(x, x)")
def beta(xp, input, other):
    """The beta function Γ(input) Γ(other) / Γ(input + other) of positive numbers, by its logarithm. DLMF 5.12.1."""
    return xp.exp(betaln(xp, input, other))
