"""The incomplete gamma functions, differentiable by both arguments to every order."""

from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import elementwise

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
