"""Bessel functions; each word of the carriers takes the order, so that derivatives of every order are words again (DLMF 10.6.1, 10.29.1)."""

from symgrad.graph.op import composite, elementwise
from symgrad.types.domains import Domain, Interval

AIRY = Domain("AIRY", (Interval(-20.0, 100.0),))
ORDERS = ((0,), (1,))
# Where values and derivatives have all digits: outside, those of J and Y are lost next to zeros.
OSCILLATING = Domain("OSCILLATING", (Interval(-25.0, 25.0),))
OSCILLATING_POSITIVE = Domain("OSCILLATING_POSITIVE", (Interval(0.0, 25.0, open_low=True),))
EXPONENTS = Domain("EXPONENTS", (Interval(-700.0, 700.0),))
POSITIVE_EXPONENTS = Domain("POSITIVE_EXPONENTS", (Interval(0.0, 700.0, open_low=True),))


def _half_sum(word, sign, outer=1):
    """The derivative outer/2 (f of order n-1, plus sign times f of order n+1); for n = 0 both are equal up to sign."""
    def partial(xp, y, x, order):
        f = getattr(xp, word)
        if order == 0:
            return outer * sign * f(x, 1)
        return outer * (f(x, order - 1) + sign * f(x, order + 1)) / 2

    return partial


elementwise("bessel_j", lambda xp, input, order: xp.bessel_j(input, order), _half_sum("bessel_j", -1), domain=OSCILLATING, examples=ORDERS,
            special=((0.0,),), method=False, public=False, doc="The Bessel function of the first kind of an order. DLMF 10.2.2.")
elementwise("bessel_y", lambda xp, input, order: xp.bessel_y(input, order), _half_sum("bessel_y", -1), domain=OSCILLATING_POSITIVE, examples=((0,),),
            method=False, public=False, doc="The Bessel function of the second kind of an order. DLMF 10.2.3.")
elementwise("bessel_i", lambda xp, input, order: xp.bessel_i(input, order), _half_sum("bessel_i", 1), domain=EXPONENTS, examples=ORDERS,
            special=((0.0,),), names=lambda node: {0: "I0Backward0", 1: "SpecialI1Backward0"}.get(node.args[1]), method=False, public=False,
            doc="The modified Bessel function of the first kind of an order. DLMF 10.25.2.")
elementwise("bessel_k", lambda xp, input, order: xp.bessel_k(input, order), _half_sum("bessel_k", 1, -1), domain=POSITIVE_EXPONENTS, examples=((0,),),
            method=False, public=False, doc="The modified Bessel function of the second kind of an order. DLMF 10.25.3.")
elementwise("bessel_i_moment", lambda xp, input, order: xp.bessel_i_moment(input, order),
            lambda xp, y, x, order: -xp.sign(x) * xp.bessel_i_moment(x, order + 1), domain=EXPONENTS, examples=((0,),), method=False, public=False,
            node_name="SpecialI0E", doc="The mean of (1 - cos t)ᵏ e^(-|input| (1 - cos t)) over a period. DLMF 10.32.1.")
elementwise("bessel_k_moment", lambda xp, input, order: xp.bessel_k_moment(input, order), lambda xp, y, x, order: -xp.bessel_k_moment(x, order + 1),
            domain=POSITIVE_EXPONENTS, examples=((0,),), method=False, public=False,
            doc="The integral of (cosh t - 1)ᵏ e^(-input (cosh t - 1)) from 0 to infinity. DLMF 10.32.9.")


elementwise("i1e_derivative", lambda xp, input, order: xp.i1e_derivative(input, order), lambda xp, y, x, order: xp.i1e_derivative(x, order + 1),
            domain=EXPONENTS, examples=((0,),), method=False, public=False, node_name="SpecialI1E",
            doc="The derivative of e^-|input| I₁(input) of any order.")
elementwise("scaled_modified_bessel_k1", lambda xp, input: xp.k1e(input), lambda xp, y, x: -xp.bessel_k_moment(x, 1) - xp.bessel_k_moment(x, 2),
            domain=POSITIVE_EXPONENTS, method=False, doc="e^input K₁(input), the scaled modified Bessel function. DLMF 10.25.3.")

elementwise("spherical_bessel_j0_derivative", lambda xp, input, order: xp.spherical_bessel_j0_derivative(input, order),
            lambda xp, y, x, order: xp.spherical_bessel_j0_derivative(x, order + 1), domain=EXPONENTS, examples=((0,),), special=((0.0,), (1e-5,)),
            method=False, public=False, doc="The derivative of sin(input)/input of an order. DLMF 10.49.3.")
elementwise("airy_ai", None, lambda xp, y, x: xp.airy_ai_slope(x), domain=AIRY, method=False, node_name="SpecialAiryAi",
            doc="Airy's function Ai. Below -20 the value is SciPy's, which loses digits next to zeros. DLMF 9.2.2.")
elementwise("airy_ai_slope", None, lambda xp, y, x: x * xp.airy_ai(x), domain=AIRY, method=False, public=False,
            doc="The derivative of Ai. DLMF 9.2.1.")


def _named(name, word, order, doc, **rest):
    """A public function of one order, by the word for all orders."""
    @composite(name, usage=f"symgrad.{name}(x)", doc=doc, **rest)
    def call(xp, input):
        return getattr(xp, word)(input, order)

    return call


for name, word, order, letter, where in (
        ("bessel_j0", "bessel_j", 0, "J₀", "10.2.2"), ("bessel_j1", "bessel_j", 1, "J₁", "10.2.2"), ("bessel_y0", "bessel_y", 0, "Y₀", "10.2.3"),
        ("bessel_y1", "bessel_y", 1, "Y₁", "10.2.3"), ("i0", "bessel_i", 0, "I₀", "10.25.2"), ("i1", "bessel_i", 1, "I₁", "10.25.2"),
        ("modified_bessel_i0", "bessel_i", 0, "I₀", "10.25.2"), ("modified_bessel_i1", "bessel_i", 1, "I₁", "10.25.2"),
        ("modified_bessel_k0", "bessel_k", 0, "K₀", "10.25.3"), ("modified_bessel_k1", "bessel_k", 1, "K₁", "10.25.3")):
    _named(name, word, order, f"The Bessel function {letter}, accurate in every derivative. DLMF {where}.", method=name == "i0")
_named("i0e", "bessel_i_moment", 0,
       "e^-|input| I₀(input), the scaled modified Bessel function; its derivative at 0 is 0. DLMF 10.25.2.", method=False)
_named("i1e", "i1e_derivative", 0, "e^-|input| I₁(input), the scaled modified Bessel function. DLMF 10.25.2.", method=False)
_named("spherical_bessel_j0", "spherical_bessel_j0_derivative", 0, "sin(input)/input, and 1 at 0, the spherical Bessel function j₀. DLMF 10.49.3.",
       method=False)
_named("scaled_modified_bessel_k0", "bessel_k_moment", 0, "e^input K₀(input), the scaled modified Bessel function. DLMF 10.25.3.", method=False)


def _of_real_order(name, word, doc):
    """A public function of any real order, with SciPy's name and arguments."""
    @composite(name, arity=2, usage=f"symgrad.{name}(0.5, x)", method=False, doc=doc)
    def call(xp, order, input):
        if getattr(order, "requires_grad", False):
            raise TypeError(f"{name}: order requires grad, and there is no derivative by the order; pass order.detach() or a number")
        try:
            number = float(order)
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(f"{name}: order must be one real number, got {order!r}; call it for each order") from None
        return getattr(xp, word)(input, int(number) if number.is_integer() else number)


_of_real_order("jv", "bessel_j", "The Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.2.2.")
_of_real_order("yv", "bessel_y", "The Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.2.3.")
_of_real_order("iv", "bessel_i", "The modified Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.25.2.")
_of_real_order("kv", "bessel_k", "The modified Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.25.3.")
