"""The gamma function, its logarithm, and the derivatives of that (DLMF chapter 5)."""

from __future__ import annotations

from functools import cache, lru_cache
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import BERNOULLI, EULER, Pieces, piecewise
from symgrad.carriers.special.printed import TEMPLATES
from symgrad.system.restoring import workprec

FARTHEST = 10_000  # to the left
LONGEST = 4096  # bits, for which mpmath computes hundreds of Bernoulli numbers
NEAR = 36  # terms of the series next to the zeros at 1 and 2, where |z| is at most 1/2


@cache
def _pieces() -> Pieces:
    """log Γ from 1/2 to 5/2, by log Γ(2 + z) = (1 - γ) z + Σ (ζ(k) - 1) (-z)ᵏ / k (DLMF 5.7.3)."""
    import mpmath  # takes long to import

    coefficients = [np.longdouble(mpmath.nstr((mpmath.zeta(k) - 1) / k, 25)) for k in range(2, NEAR)]

    def exact(x: Any) -> Any:
        low = x < 1.5
        z = x - np.where(low, 1, 2)
        terms = 0 * z
        for c in reversed(coefficients):
            terms = c - z * terms
        return (1 - EULER) * z + z * z * terms - np.where(low, np.log1p(z), 0)

    return Pieces(exact, lambda mp, x: mp.loggamma(x), 0.5, 2.5, 64)


def _lgamma(special: Any, x: Any) -> Any:
    """log|Γ(x)|, with all digits next to its zeros at 1 and 2."""
    if np.iscomplexobj(x):
        return special.gammaln(x)
    return piecewise(x, [(x >= 0.5) & (x <= 2.5), np.abs(x) < 1e-20],
                     [lambda x: _pieces()(x.astype(np.float64)).astype(x.dtype), lambda x: -np.log(np.abs(x)), special.gammaln])[()]


def _real(x: Any) -> Any:
    if np.iscomplexobj(x):
        raise TypeError("Γ and the derivatives of log Γ are computed for real numbers only; take the real part")
    return x


def _polygamma(special: Any, x: Any, n: int) -> Any:
    _real(x)
    y = (-1) ** (n + 1) * factorial(n) * special.zeta(n + 1, np.asarray(x, np.float64))
    return np.asarray(y).astype(np.result_type(x))[()]


def _digits(function: Any) -> Any:
    """A function of many digits at one of few precisions, since mpmath computes the Bernoulli numbers again for every other one.

    Derivatives of products ask for the same numbers many times.
    """
    @lru_cache(4096)
    def computed(mp: Any, precision: int, x: Any, order: tuple[int, ...]) -> Any:
        if precision > LONGEST:
            from symgrad.carriers.digits import Undecided  # imports mpmath, which is loaded on first use

            raise Undecided("more digits of a gamma function than can be computed in a second")
        with workprec(mp, precision):
            return function(mp, *order, x)

    return lambda mp, x, *order: +computed(mp, -(-mp.prec // 512) * 512, x, order)


def _next_to_pole(mp: Any, x: Any, n: int) -> Any:
    """The derivative of log Γ of order n + 1 by its series at 0, for n >= -1: mpmath takes long there. DLMF 5.7.3.

    A term with the power k of x has so many digits less that it needs.
    """
    total = (-1) ** (n + 1) * mp.factorial(n) * (x ** (-n - 1) + (mp.zeta(n + 1) if n else mp.euler)) if n >= 0 else -mp.log(x) - mp.euler * x
    size, bits = -mp.mag(x), mp.prec + 20
    for k in range(n + 2 if n >= 0 else 2, 3 + n + bits // size):
        with workprec(mp, max(30, bits - (k - 1) * size)):
            term = (-1) ** k * mp.zeta(k) * (mp.ff(k - 1, n) if n >= 0 else 1 / mp.mpf(k))
        total += term * x ** (k - 1 - n)
    return total


def _near_pole(mp: Any, x: Any) -> bool:
    return isinstance(x, mp.mpf) and 0 < x < 1e-15 and mp.prec < -50 * mp.mag(x)


_loggamma, _gamma, _psi = map(_digits, (lambda mp, x: mp.loggamma(x), lambda mp, x: mp.gamma(x), lambda mp, n, x: mp.psi(n, x)))


def lgamma_digits(mp: Any, x: Any) -> Any:
    """log Γ(x) of a number of many digits."""
    return _next_to_pole(mp, x, -1) if _near_pole(mp, x) else _loggamma(mp, x)


def _gamma_digits(mp: Any, x: Any) -> Any:
    return mp.nan if mp.isint(x) and x <= 0 else _gamma(mp, x)


def psi_digits(mp: Any, x: Any, n: int) -> Any:
    """The derivative of digamma of order n of a number of many digits. Raises Undecided for n >= 1 far to the left, where mpmath counts the poles."""
    if n and isinstance(x, mp.mpf) and x < -FARTHEST:
        from symgrad.carriers.digits import Undecided  # imports mpmath, which is loaded on first use

        raise Undecided("a polygamma function of a large negative number")
    return _next_to_pole(mp, x, n) if _near_pole(mp, x) else _psi(mp, x, n)


ROOT = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, a sum of two floats
NUMBERS = [float(b) for b in BERNOULLI[:8]]


def _in_c(declared: str, lines: list[str]) -> str:
    """A helper in C."""
    return f"\nstatic double symgrad_{declared}\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def _digamma_in_c() -> str:
    """The difference from the value at the root, which is 0, term by term, so that no terms cancel. DLMF 5.7.6, 5.11.2."""
    lines = [f"double d = x - {ROOT[0]!r} - {ROOT[1]!r};", f"double total = log1p(d / {ROOT[0] + 10!r});", "for (int k = 0; k < 10; k++)",
             f"    total = total + d / ((x + k) * ({ROOT[0]!r} + k));", "double u = 1.0 / (x + 10.0);", f"double v = {1 / (ROOT[0] + 10)!r};",
             "double first = -d * u * v;", "total = total - first / 2.0;", "first = first * (u + v);", "double difference = first;",
             "double power = 1.0;"]
    for k, b in enumerate(NUMBERS, 1):
        lines += [f"total = total - difference * {b / (2 * k)!r};", "power = power * v * v;", "difference = u * u * difference + power * first;"]
    return _in_c("digamma(double x)", [*lines, "return x > 1e15 ? log(x) : total;"])


def _polygamma_in_c() -> str:
    """The sum of powers, and the formula of Euler and Maclaurin. DLMF 5.15.1, 5.11.2."""
    lines = ["double total = 0.0;", "for (int k = 0; k < 16; k++)", "    total = total + pow(x + k, -n - 1.0);", "double u = x + 16.0;",
             "double term = pow(u, -n);", "total = total + term / n + term / u / 2.0;", "term = term / (u * u) * (n + 1.0) / 2.0;"]
    for k, b in enumerate(NUMBERS, 1):
        m = 2.0 * k
        lines += [f"total = total + term * {b!r};", f"term = term / (u * u) * ((n + {m}) * (n + {m + 1})) / {(m + 1) * (m + 2)!r};"]
    lines.append("return (fmod(n, 2.0) == 0.0 ? -1.0 : 1.0) * tgamma(n + 1.0) * total;")
    return _in_c("digamma_derivative(double x, double n)", lines)


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "gamma": (lambda special, x: special.gamma(_real(x)), _gamma_digits, lambda sp, x: sp.gamma(x), lambda x: x.gamma(), 1,
              {"NumPy": "scipy.special.gamma", **{language: TEMPLATES["GAMMA"].replace("{log}", log) for language, log in (
                  ("Torch", "torch.special.gammaln"), ("Jax", "jax.scipy.special.gammaln"))}, "C": "tgamma"}),
    "lgamma": (_lgamma, lambda mp, x: mp.re(lgamma_digits(mp, x)), lambda sp, x: sp.log(sp.Abs(sp.gamma(x))) if x.is_negative else sp.loggamma(x),
               lambda x: x.lgamma(), 1,
               {"NumPy": "scipy.special.gammaln", "Torch": "torch.special.gammaln", "Jax": "jax.scipy.special.gammaln", "C": "lgamma"}),
    "digamma": (lambda special, x: special.psi(_real(x)), lambda mp, x: psi_digits(mp, x, 0), lambda sp, x: sp.polygamma(0, x),
                lambda x: x.digamma(), 1,
                {"NumPy": "scipy.special.psi", "Torch": "torch.special.digamma", "Jax": "jax.scipy.special.digamma",
                 "C": _digamma_in_c()}),
    "digamma_derivative": (_polygamma, psi_digits, lambda sp, x, n: sp.polygamma(n, x),
                           lambda x, n: (-1) ** (n + 1) * factorial(n) * type(x)(n + 1).zeta(x), 1,  # DLMF 25.11.12, of positive numbers
                           {"NumPy": "9 scipy.special.polygamma({1}, {0})",
                            "Torch": "5 (-1.0)**({1} + 1) * math.factorial({1}) * torch.special.zeta({1} + 1, {0})",
                            "Jax": "9 jax.scipy.special.polygamma({1}, {0})", "C": _polygamma_in_c()}),
}
