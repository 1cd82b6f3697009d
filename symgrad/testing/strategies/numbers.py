"""Numbers inside a domain, weighted to its edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.domains import REAL, Domain

__all__ = ["edges", "numbers"]


def edges(domain: Domain = REAL, dtype: Any = "float64") -> list[float]:
    """The numbers of a domain where functions go wrong, all of them floats of the dtype."""
    from symgrad.checking.foreign.drawing import SPECIAL, _ends

    return list(dict.fromkeys(x for x in (*SPECIAL, *_ends(domain)) if x in domain))


def numbers(domain: Domain = REAL, dtype: Any = "float64") -> Any:
    """Numbers of a domain: ordinary ones, and edges."""
    from hypothesis import strategies as st

    from symgrad.checking.foreign.drawing import _numbers, _ordinary, _wild

    return st.one_of(_numbers(domain, _ordinary), _numbers(domain, _wild), st.sampled_from(edges(domain)))
