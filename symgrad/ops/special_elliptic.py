"""Elliptic integrals by SciPy's names, of the parameter m = k²; derivatives of every order are words of the carriers (DLMF chapter 19)."""

from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import elementwise

ZERO = Interval(0.0, 0.0)
BELOW_ONE = Domain("BELOW_ONE", (Interval(-1e30, -1e-30), ZERO, Interval(1e-30, 0.999)))
COMPLEMENT = Domain("COMPLEMENT", (Interval(1e-60, 1e30),))
ANGLE = Domain("ANGLE", (Interval(-50.0, -1e-20), ZERO, Interval(1e-20, 50.0)))
NARROW = Domain("NARROW", (Interval(-1e6, -1e-20), ZERO, Interval(1e-20, 0.999)))


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
