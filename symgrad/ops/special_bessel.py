"""Bessel functions; each word of the carriers takes the order, so that derivatives of every order are words again (DLMF 10.6.1, 10.29.1)."""

from symgrad.graph.domains import FIXED, POSITIVE, REAL, Domain, Interval
from symgrad.graph.op import REGISTRY, composite, elementwise
from symgrad.ops.rules import constant

AIRY = Domain("AIRY", (Interval(-20.0, 100.0),))
ORDERS = ((0,), (1,))
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


def _define_oscillating(word, domain, letter, kind, where):
    """J or Y, whose derivatives are words, so that they have digits next to their zeros; those of the order 0 are of the order 1."""
    def slope(xp, y, x, order):
        return -getattr(xp, word)(x, 1) if order == 0 else getattr(xp, f"{word}_derivative")(x, order, 1)

    elementwise(word, lambda xp, input, order: getattr(xp, word)(input, order), slope, domain=domain, examples=ORDERS, special=ORIGIN[word],
                method=False, public=False, doc=f"The Bessel function of the {kind} kind of an order. DLMF {where}.")
    elementwise(f"{word}_derivative", lambda xp, input, order, times: getattr(xp, f"{word}_derivative")(input, order, times),
                lambda xp, y, x, order, times: getattr(xp, f"{word}_derivative")(x, order, times + 1), domain=domain, examples=((1, 1),),
                method=False, public=False, node_name=word.title().replace("_", ""),
                doc=f"The derivatives of {letter} of an order. DLMF 10.6.7.")


ORIGIN = {"bessel_j": ((0.0,),), "bessel_y": ()}
_define_oscillating("bessel_j", REAL, "J", "first", "10.2.2")
_define_oscillating("bessel_y", POSITIVE, "Y", "second", "10.2.3")
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
elementwise("scaled_modified_bessel_k1", None, lambda xp, y, x: -xp.bessel_k_moment(x, 1) - xp.bessel_k_moment(x, 2),
            domain=POSITIVE_EXPONENTS, method=False, doc="e^input K₁(input), the scaled modified Bessel function. DLMF 10.25.3.")

elementwise("spherical_bessel_j0_derivative", lambda xp, input, order: xp.spherical_bessel_j0_derivative(input, order),
            lambda xp, y, x, order: xp.spherical_bessel_j0_derivative(x, order + 1), domain=EXPONENTS, examples=((0,),), special=((0.0,), (1e-5,)),
            method=False, public=False, doc="The derivative of sin(input)/input of an order. DLMF 10.49.3.")
elementwise("airy_ai", None, lambda xp, y, x: xp.airy_ai_prime(x), domain=AIRY, method=False, node_name="SpecialAiryAi",
            doc="Airy's function Ai. Below -20 the value is SciPy's, which is 24,000 ULP off at -1,000. DLMF 9.2.2.")
elementwise("airy_ai_prime", None, lambda xp, y, x: x * xp.airy_ai(x), domain=AIRY, method=False,
            doc="The derivative Ai′ of Airy's function. Below -20 the value is SciPy's, which is 31,000 ULP off at -1,000. DLMF 9.2.1.")


def _named(name, word, order, doc, **rest):
    """A public function of one order, by the word for all orders, with its domain."""
    @composite(name, elementwise=True, domain=REGISTRY[word].domain, usage=f"symgrad.{name}(x)", doc=doc, **rest)
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
       "e^-|input| I₀(input), the scaled modified Bessel function; its derivative at 0 is 0. DLMF 10.25.2.", method=False, kinks=((0.0,),))
_named("i1e", "i1e_derivative", 0, "e^-|input| I₁(input), the scaled modified Bessel function. DLMF 10.25.2.", method=False)
_named("spherical_bessel_j0", "spherical_bessel_j0_derivative", 0, "sin(input)/input, and 1 at 0, the spherical Bessel function j₀. DLMF 10.49.3.",
       method=False)
_named("scaled_modified_bessel_k0", "bessel_k_moment", 0, "e^input K₀(input), the scaled modified Bessel function. DLMF 10.25.3.", method=False)


def _of_real_order(name, word, domain, doc):
    """A public function of any real order, with SciPy's name and arguments."""
    @composite(name, elementwise=True, arity=2, domain=(FIXED, domain), examples=((0,), (1,), (0.5,), (4.25,)), usage=f"symgrad.{name}(0.5, x)",
               method=False, doc=doc)
    def call(xp, order, input):
        try:
            number = float(constant(name, "order", order))
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(f"{name}: order must be one real number that does not require grad, not {order!r}; call it for each order") from None
        return getattr(xp, word)(input, int(number) if number.is_integer() else number)


_of_real_order("jv", "bessel_j", POSITIVE, "The Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.2.2.")
_of_real_order("yv", "bessel_y", POSITIVE, "The Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.2.3.")
_of_real_order("iv", "bessel_i", POSITIVE_EXPONENTS,
               "The modified Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.25.2.")
_of_real_order("kv", "bessel_k", POSITIVE_EXPONENTS,
               "The modified Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.25.3.")
