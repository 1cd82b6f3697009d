"""Numbers inside a domain, weighted to its edges."""

from __future__ import annotations

from typing import Any

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.graph.domains import REAL, Domain
from symgrad.sampling.domain_reader import domain_of
from symgrad.sampling.floats import Floats
from symgrad.sampling.numbers import PAGE, PAGES, edge_numbers, parts_of, simple_numbers, table
from symgrad.testing.strategies.needed import require_hypothesis

__all__ = ["edges", "numbers"]


def edges(domain: Any = REAL, dtype: Any = "float64") -> list[float]:
    """The numbers of a domain where functions often fail, as floats of the type, the simplest first.

    They are ±0 and its neighbours, small integers, subnormals, every size up to the largest number, and each end of the domain and each
    excluded point with their neighbours. `domain` has any form that `symgrad.check` takes; for a complex type the numbers are the parts.

    Raises TypeError for an invalid domain or floating-point type, ValueError for a domain without a number of the type.

    >>> edges("(0, 1]", "float16")[:4], 5e-324 in edges("positive"), 5e-324 in edges("positive", "float32")
    ([0.5, 1.0, 0.0625, 0.9375], True, False)
    """
    return list(edge_numbers(domain_of(domain), Floats(dtype).dtype.name))


def numbers(domain: Any = REAL, dtype: Any = "float64") -> Any:
    """A strategy for numbers of a domain: simple ones, ordinary ones, ones of every size, and the edges.

    All of them are constructed inside the domain, without filtering, and they shrink to small integers and halves. `domain` has any form
    that `symgrad.check` takes: a `Domain`, a pair, a SymPy set, a name, or text such as "(0, 1]". They are Python's floats that the
    floating-point type has, whole ones of a domain of whole numbers; of a complex type Python's complex numbers, with a real part in the domain.

    Raises TypeError for an invalid domain or floating-point type, ValueError for a domain without a number of the type, ImportError
    where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(numbers("positive"), lambda x: x > 2.5)
    3.0
    """
    st = require_hypothesis().strategies
    found, floats = domain_of(domain), Floats(dtype)
    entries, simple = table(found, floats.dtype.name), simple_numbers(found, floats.dtype.name)
    # hypothesis' shrinker tries the branches before the one drawn from, a few times each; in another order each leads to other numbers.
    middle = len(simple) // 2
    branches = [st.sampled_from(order) for order in (simple, simple[::-1], simple[middle:] + simple[:middle])]
    branches += [st.integers(0, PAGES * PAGE - 1).map(lambda k: float(entries[k // PAGE, k % PAGE]))] * 3
    if not found.integer:
        branches += [_floats(found, floats, part) for part in parts_of(found, floats)]
    real = st.one_of(*branches)
    return st.builds(complex, real, st.just(0.0) | numbers(REAL, floats.dtype)) if numpy_dtype(dtype).kind == "c" else real


def _floats(domain: Domain, floats: Floats, part: tuple[float, float]) -> Any:
    """Any number of the type in one part of a domain."""
    st = require_hypothesis().strategies
    width = 32 if floats.dtype.kind == "V" else 8 * floats.dtype.itemsize
    drawn = st.floats(*part, width=width)
    return drawn.map(lambda x: float(floats.inside(x, [part], domain))) if domain.excluded or floats.dtype.kind == "V" else drawn
