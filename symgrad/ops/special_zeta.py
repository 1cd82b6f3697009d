"""The zeta function of Hurwitz, differentiable by both arguments."""

from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import elementwise

ABOVE_ONE = Domain("ABOVE_ONE", (Interval(1.001, 1e4),))
FROM_ZERO = Domain("FROM_ZERO", (Interval(1e-60, 1e60),))

elementwise("zeta", lambda xp, input, other: xp.zeta(input, other), lambda xp, y, x, q: xp.zeta_derivative(x, q, 1, 0),
            lambda xp, y, x, q: xp.zeta_derivative(x, q, 0, 1), domain=(ABOVE_ONE, FROM_ZERO), method=False, node_name="SpecialZeta",
            doc="The zeta function of Hurwitz, the sum of (other + k)^-input over k >= 0, for input > 1. For other < 0, where input must be a whole "
                "number, value and derivatives by other are SciPy's, and those by input are NaN. DLMF 25.11.1.")
elementwise("zeta_derivative", lambda xp, input, other, n, m: xp.zeta_derivative(input, other, n, m),
            lambda xp, y, x, q, n, m: xp.zeta_derivative(x, q, n + 1, m), lambda xp, y, x, q, n, m: xp.zeta_derivative(x, q, n, m + 1),
            domain=(ABOVE_ONE, FROM_ZERO), examples=((1, 0),), method=False, public=False, node_name="SpecialZeta",
            doc="The derivative of zeta of order n by input and of order m by other.")
