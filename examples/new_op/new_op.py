"""log(1 - exp(-x)) for x > 0: the logarithm of the probability that something with rate 1 has happened by the time x."""

import symgrad
from symgrad.graph.domains import POSITIVE

log1mexp = symgrad.elementwise(
    "log1mexp",
    lambda xp, x: xp.where(x < 0.69, xp.log(-xp.expm1(-x)), xp.log1p(-xp.exp(-x))),  # neither form alone keeps its digits everywhere
    lambda xp, y, x: -xp.exp(-x) / xp.expm1(-x),  # the derivative
    domain=POSITIVE,
)
