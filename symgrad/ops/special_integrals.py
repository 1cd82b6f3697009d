"""Exponential, sine and cosine integrals, and Lambert's W."""

from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import composite, elementwise

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
