"""Special functions; values and derivatives are words of the carriers."""

from symgrad.graph.op import elementwise

ZERO = ((0.0,), (-0.0,))

elementwise("erf", None, lambda xp, y, x: xp.erf_slope(x), special=ZERO, doc="The error function. DLMF 7.2.1.")
elementwise("erfc", None, lambda xp, y, x: -xp.erf_slope(x), special=ZERO, doc="1 - erf(input), accurate for large arguments. DLMF 7.2.2.")
elementwise("erf_slope", None, lambda xp, y, x: -2 * x * y, special=ZERO, public=False, doc="2/√π exp(-input²), the derivative of erf. DLMF 7.10.1.")
