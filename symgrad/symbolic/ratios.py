"""The code of quotients that are 0/0 at a point, as functions of one inner argument: they are formulas themselves."""

from __future__ import annotations

import functools
from typing import Any

from symgrad.algebra.stable_heads import log1p
from symgrad.algebra.stable_ratios import FORMULAS, VANISHING, VARIABLE
from symgrad.domains import REAL, Domain, Interval
from symgrad.symbolic.formula import Formula
from symgrad.symbolic.generating import Code

__all__ = ["ratio_code"]

ABOVE_MINUS_ONE = Domain("ABOVE_MINUS_ONE", (Interval(-1.0, open_low=True),))


@functools.cache
def _formula(which: int) -> Formula:
    domain: Any = ABOVE_MINUS_ONE if VANISHING[which // 2] is log1p else REAL
    return Formula(f"ratio_{which}", [VARIABLE], FORMULAS[which], [domain])


def ratio_code(which: int, order: int) -> Code:
    """The code of a derivative of one of the quotients.

    >>> import numpy as np
    >>> ratio_code(0, 2)(np.array([0.0]))
    array([-0.33333333])
    """
    return _formula(which).form((order,)).code
