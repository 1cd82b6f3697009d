"""Activations whose obvious formulas cancel: φ is the density and Φ the distribution function of the standard normal distribution."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.errors import bell, hermite
from symgrad.types.indices import check_ordered

__all__ = ["ROWS"]

ROOT, REST_OF_ROOT = -0.7517915246935645, 1.4956759177009883e-17  # where the derivative of x Φ(x) is 0


def _in_double(function: Any) -> Any:
    """A function of real numbers of double precision for arrays of less, which is rounded at the end."""
    def call(special: Any, x: Any, *order: int) -> Any:
        check_ordered(x)
        return np.asarray(function(special, np.asarray(x, np.float64), *order)).astype(np.asarray(x).dtype)[()]

    return call


def _density(x: Any, factor: Any = 1) -> Any:
    return bell(np.clip(x, -40, 40), 1, factor / np.sqrt(2 * np.pi))


def _below(special: Any, x: Any) -> Any:
    """The integral of the density up to x."""
    tail = _density(x, special.erfcx(np.maximum(-x, 0) / np.sqrt(2)) * np.sqrt(np.pi / 2))
    return np.where(x < -1, tail, special.erfc(-x / np.sqrt(2)) / 2)


@_in_double
def _gelu(special: Any, x: Any) -> Any:
    return np.where(x == -np.inf, 0.0, x * _below(special, x))


@_in_double
def _slope(special: Any, x: Any) -> Any:
    """Φ + x φ, and its Taylor series next to its root, where the two terms cancel."""
    step = (x - ROOT) - REST_OF_ROOT
    near = np.abs(step) < 0.3
    series = np.polynomial.polynomial.polyval(np.where(near, step, 0.0), _coefficients_at_root())
    return np.where(near, series, _below(special, x) + _density(x, np.clip(x, -40, 40)))


def _polynomial(x: Any, order: int) -> Any:
    """The derivative of x Φ(x) of order 2 or more, x φ⁽ⁿ⁻¹⁾ + n φ⁽ⁿ⁻²⁾, divided by φ(x)."""
    return x * hermite(x, order - 1, 1) + order * hermite(x, order - 2, 1)


@_in_double
def _derivative(special: Any, x: Any, order: int) -> Any:
    return _density(x, _polynomial(np.clip(x, -40, 40), order))


@cache
def _coefficients_at_root() -> list[float]:
    """Those of the Taylor series of Φ + x φ."""
    density = math.exp(-ROOT * ROOT / 2) / math.sqrt(2 * math.pi)
    return [0.0, *(_polynomial(ROOT, k + 1) * density / math.factorial(k) for k in range(1, 22))]


def _density_of(library: Any, x: Any) -> Any:
    return library.exp(-x * x / 2) / library.sqrt(2 * library.pi)


def _density_of_ball(x: Any) -> Any:
    return (-x * x / 2).exp() / (2 * type(x).pi()).sqrt()


def _below_of_ball(x: Any) -> Any:
    return (-x / type(x)(2).sqrt()).erfc() / 2


def _sources(text: str) -> dict[str, str]:
    """A format for every language, from one with `erfc` and `exp`."""
    names = {"NumPy": ("scipy.special.erfc", "np.exp"), "Torch": ("torch.special.erfc", "torch.exp"),
             "Jax": ("jax.scipy.special.erfc", "jnp.exp"), "C": ("erfc", "exp")}
    return {language: text.replace("erfc", erfc).replace("exp", exp) for language, (erfc, exp) in names.items()}


BELOW = f"0.5 * erfc({-math.sqrt(0.5)!r} * {{0:6}})"
ROWS: dict[str, tuple[Any, ...]] = {
    "softsign": (lambda special, x: x / (1 + np.abs(check_ordered(x))), lambda mp, x: x / (1 + abs(x)), lambda sp, x: x / (1 + sp.Abs(x)),
                 lambda x: x / (1 + abs(x)), 1, {"Python": "5 {0:6} / (1 + abs({0}))", "C": "5 {0:6} / (1.0 + fabs({0}))"}),
    "gelu_exact": (_gelu, lambda mp, x: x * mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
                   lambda x: x * _below_of_ball(x), 1, _sources(f"5 {{0:6}} * {BELOW}")),
    "gelu_slope": (_slope, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2 + x * _density_of(mp, x),
                   lambda sp, x: (1 + sp.erf(x / sp.sqrt(2))) / 2 + x * _density_of(sp, x), lambda x: _below_of_ball(x) + x * _density_of_ball(x),
                   1, _sources(f"4 {BELOW} + {1 / math.sqrt(2 * math.pi)!r} * {{0:6}} * exp(-0.5 * {{0:6}} * {{0:6}})")),
    "gelu_derivative": (_derivative, lambda mp, x, n: _polynomial(x, n) * _density_of(mp, x), lambda sp, x, n: _polynomial(x, n) * _density_of(sp, x),
                        lambda x, n: _polynomial(x, n) * _density_of_ball(x)),
}
