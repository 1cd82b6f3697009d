"""Orthogonal polynomials of a degree that is a whole number, differentiable by their argument."""

import operator

from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import composite, elementwise
from symgrad.ops.rules import constant

CLASSICAL = ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
             "hermite_polynomial_he", "legendre_polynomial_p", "laguerre_polynomial_l")
NAMES = CLASSICAL + tuple(f"shifted_{name}" for name in CLASSICAL if name.startswith("chebyshev"))
MODERATE = Domain("MODERATE", (Interval(-100.0, 100.0),))

elementwise("orthogonal_polynomial", lambda xp, input, family, degree, order: xp.orthogonal_polynomial(input, family, degree, order),
            lambda xp, y, x, family, degree, order: xp.orthogonal_polynomial(x, family, degree, order + 1), domain=MODERATE,
            examples=((0, 3, 0), (6, 4, 0), (7, 3, 0)), method=False, public=False,
            doc="The derivative of an order of the polynomial of a degree of a family. DLMF 18.9.")


def _named(family, name):
    shifted = name.startswith("shifted_")
    title = name.removeprefix("shifted_").replace("_polynomial_", " polynomial ").capitalize()

    @composite(name, elementwise=True, domain=MODERATE, examples=((3,), (8,)), usage=f"symgrad.{name}(x, 3)", method=False,
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
