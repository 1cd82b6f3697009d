"""Orthogonal polynomials of a degree that is a whole number, differentiable by their argument."""

import operator

from symgrad.graph.op import composite, elementwise
from symgrad.types.domains import Domain, Interval

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
               doc=f"{title} of degree n, a whole number, at {'2 input - 1' if shifted else 'input'}; 0 for n < 0. DLMF 18.3.")
    def call(xp, input, n):
        if getattr(n, "requires_grad", False):
            raise TypeError(f"{name}: n is a degree, to which there is no derivative, and it requires grad; pass n.detach() or an int")
        try:
            degree = operator.index(n)
        except TypeError:
            raise TypeError(f"{name}: n must be one whole number, got {n!r}; call it for each degree") from None
        return xp.orthogonal_polynomial(input, family, degree, 0)


for family, name in enumerate(NAMES):
    _named(family, name)
