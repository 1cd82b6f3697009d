"""The normal distribution function, and the inverse of the logistic function."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.erfcx import scaled
from symgrad.carriers.special.errors import bell, bell_in_python, hermite
from symgrad.carriers.special.pieces import Pieces, piecewise
from symgrad.system.numpy_internals import clip

__all__ = ["ROWS", "above", "ndtr"]

LOWEST, HIGHEST = -10.0, 9.0  # between which Φ is a polynomial in each cell
HALF_ROOT, ROOT = np.sqrt(0.5), np.sqrt(np.pi)


@cache
def _pieces() -> Pieces:
    """Φ from -10 to 9, and at larger numbers 1."""
    def exact(x: Any) -> Any:
        size = np.abs(x)
        tail = scaled(size * np.sqrt(np.longdouble(0.5)), 0) * np.exp(-(size**2) / 2) / 2
        return np.where(x < 0, tail, 1 - tail)

    return Pieces(exact, None, LOWEST, HIGHEST, 304)


def ndtr(special: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return special.ndtr(x)

    def tail(x: Any) -> Any:
        return bell(np.maximum(x, -40), 1, special.erfcx(-x * HALF_ROOT) / 2)

    wide = np.asarray(x, np.float64)
    return piecewise(wide, [~(wide < LOWEST)], [_pieces(), tail]).astype(x.dtype, copy=False)[()]


def above(special: Any, x: Any) -> Any:
    """The integral of the density from x on."""
    return ndtr(special, -x)


def _ndtr_slope(special: Any, x: Any, order: int) -> Any:
    x = clip(x, -40, 40)
    factor = x.dtype.type(HALF_ROOT / ROOT)
    return bell(x, 1, factor * hermite(x, order, 1) if order else factor)


def _exact_logit(mp: Any, x: Any) -> Any:
    with mp.extraprec(10 + abs(int(mp.mag(2 * x - 1))) if x != 0.5 else 10):
        return mp.log(x / (1 - x))


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ndtr": (ndtr, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
             lambda x: (-x / type(x)(2).sqrt()).erfc() / 2, 1,
             {"NumPy": "scipy.special.ndtr", "Torch": "torch.special.ndtr", "Jax": "jax.scipy.special.ndtr",
              "C": "5 0.5 * erfc({0:5} * -0.7071067811865476)"}),
    "ndtr_slope": (_ndtr_slope, lambda mp, x, n: mp.zero if mp.isinf(x) else mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * hermite(x, n, 1),
                   lambda sp, x, n: sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi) * hermite(x, n, 1),
                   lambda x, n: (-x * x / 2).exp() * hermite(x, n, 1) / (2 * type(x).pi()).sqrt(), 1,
                   {"Python": bell_in_python("ndtr_slope", 0.3989422804014327, 1)}),
    "logit": ("logit", _exact_logit, lambda sp, x: sp.log(x / (1 - x)), lambda x: (x / (1 - x)).log(), 1,
              {"Torch": "torch.special.logit", "Jax": "jax.scipy.special.logit", "C": "9 log({0} / (1.0 - {0:5}))"}),
    "logit_slope": (lambda special, x: 1 / (x * (1 - x)), lambda mp, x: 1 / (x * (1 - x)), lambda sp, x: 1 / (x * (1 - x)),
                    lambda x: 1 / (x * (1 - x)), 1, {"Python": "7 1 / ({0:5} * (1 - {0:5}))", "C": "7 1.0 / ({0:5} * (1.0 - {0:5}))"}),
}
