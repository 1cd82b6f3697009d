"""The logarithm of the gamma function and its derivatives (DLMF chapter 5)."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

__all__ = ["ROWS"]

NEAR = 27  # terms of the series next to the zeros at 1 and 2, where |z| is at most 1/2


def _lgamma(special: Any, x: Any) -> Any:
    """log|Γ(x)|, with all digits next to its zeros at 1 and 2: log Γ(2 + z) = (1 - γ) z + Σ (ζ(k) - 1) (-z)ᵏ / k (DLMF 5.7.3)."""
    y = np.asarray(np.where(np.abs(x) < 1e-20, -np.log(np.abs(x)), special.gammaln(x)))
    near = (x >= 0.5) & (x <= 2.5)
    if np.any(near):
        u = np.asarray(x, np.float64)[near]
        low = u < 1.5
        z = u - np.where(low, 1.0, 2.0)
        terms = 0 * z
        for k in range(NEAR, 1, -1):
            terms = special.zetac(float(k)) / k - z * terms
        y[near] = (1 - np.euler_gamma) * z + z * z * terms - np.where(low, np.log1p(z), 0.0)
    return y[()]


def _real(x: Any) -> Any:
    if np.iscomplexobj(x):
        raise TypeError("the derivatives of log Γ are computed for real numbers only; take the real part")
    return x


def _polygamma(special: Any, x: Any, n: int) -> Any:
    _real(x)
    y = (-1) ** (n + 1) * factorial(n) * special.zeta(n + 1, np.asarray(x, np.float64))
    return np.asarray(y).astype(np.result_type(x))[()]


def _digits(function: Any) -> Any:
    """A function of many digits at one of few precisions, since mpmath computes the Bernoulli numbers again for every other one."""
    def call(mp: Any, x: Any, *order: int) -> Any:
        with mp.workprec(-(-mp.prec // 512) * 512):
            y = function(mp, *order, x)
        return +y

    return call


@_digits
def _psi_digits(mp: Any, n: int, x: Any) -> Any:
    """The derivative of digamma of order n; next to the pole by its Laurent series, since mpmath takes long there. DLMF 5.7.4."""
    if not (isinstance(x, mp.mpf) and 0 < x < 1e-50):
        return mp.psi(n, x)
    total = (-1) ** (n + 1) * mp.factorial(n) * (x ** (-n - 1) + (mp.zeta(n + 1) if n else mp.euler))
    for k in range(n + 2, mp.prec):
        term = (-1) ** k * mp.zeta(k) * mp.ff(k - 1, n) * x ** (k - 1 - n)
        total += term
        if mp.mag(term) < mp.mag(total) - mp.prec:
            break
    return total


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "lgamma": (_lgamma, _digits(lambda mp, x: mp.re(mp.loggamma(x))), lambda sp, x: sp.log(sp.Abs(sp.gamma(x))) if x.is_negative else sp.loggamma(x),
               lambda x: x.lgamma(), 1,
               {"NumPy": "scipy.special.gammaln", "Torch": "torch.special.gammaln", "Jax": "jax.scipy.special.gammaln", "C": "lgamma"}),
    "digamma": (lambda special, x: special.psi(_real(x)), lambda mp, x: _psi_digits(mp, x, 0), lambda sp, x: sp.polygamma(0, x),
                lambda x: x.digamma(), 1,
                {"NumPy": "scipy.special.psi", "Torch": "torch.special.digamma", "Jax": "jax.scipy.special.digamma"}),
    "digamma_derivative": (_polygamma, _psi_digits, lambda sp, x, n: sp.polygamma(n, x),
                           lambda x, n: (-1) ** (n + 1) * factorial(n) * type(x)(n + 1).zeta(x), 1,  # DLMF 25.11.12, of positive numbers
                           {"NumPy": "9 scipy.special.polygamma({1}, {0})",
                            "Torch": "5 (-1.0)**({1} + 1) * math.factorial({1}) * torch.special.zeta({1} + 1, {0})",
                            "Jax": "9 jax.scipy.special.polygamma({1}, {0})"}),
}
