"""Arrays of numbers inside a domain, with ties, and tuples of arrays that are equal in places."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.graph.domains import BOOLEAN, REAL, Domain
from symgrad.sampling.domain_reader import domain_of
from symgrad.sampling.floats import Floats
from symgrad.sampling.numbers import PAGE, PAGES, table
from symgrad.testing.strategies.needed import read_shape, require_hypothesis

__all__ = ["ARRANGEMENTS", "arrange", "arrays", "select_numbers", "tied_arrays"]

CODED = 64  # elements of an array with a byte each, which shrink separately; a key fills in the others
KEYS = 1 << 12
ARRANGEMENTS = ("", "ties", "rows", "equal", "zeros", "sorted", "reversed")


def code_size(count: int) -> int:
    """The number of bytes that encode so many elements: one for each, and one for the page of the table."""
    return min(count, CODED) + 1


def select_numbers(entries: np.ndarray, codes: bytes, count: int, key: int = 0) -> np.ndarray:
    """The numbers of a table that bytes select, in the page that the first byte selects; a key selects those without a byte."""
    columns = np.frombuffer(codes, np.uint8)
    out = entries[columns[0] % PAGES, columns[1:]]
    if count > CODED:
        place = np.arange(1, count - CODED + 1) * key * 40503
        out = np.concatenate([entries[(place >> 5) % PAGES, (place >> 12) % PAGE], out])
    return out


def arrange(x: np.ndarray, how: str, domain: Domain) -> np.ndarray:
    """The same elements in another arrangement: with ties, equal rows, zeros (where the domain has 0), sorted; see ARRANGEMENTS."""
    flat = x.ravel()
    if how == "ties":
        flat[1::2] = flat[:-1:2]
    elif how == "equal":
        flat[:] = flat[:1]
    elif how == "zeros" and 0.0 in domain:
        flat[::2] = 0
    elif how == "sorted":
        flat.sort()
    elif how == "reversed":
        flat[:] = np.sort(flat)[::-1]
    elif how == "rows" and x.ndim:
        return np.broadcast_to(x[:1], x.shape).copy()
    return flat.reshape(x.shape)


def arrays(domain: Any = REAL, shape: Any = (), dtype: Any = "float64") -> Any:
    """A strategy for arrays of numbers of a domain, weighted to its edges, some with ties, with equal rows, with zeros, sorted.

    `domain` and `dtype` are those of `numbers`, `shape` is a shape, a number, or a strategy for shapes. A boolean domain gives arrays of
    bool. They shrink to small whole numbers.

    Raises TypeError for an invalid domain, shape or floating-point type, ValueError for a domain without a number of the type and for a
    shape with a negative side, ImportError where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(arrays("nonzero", (3,)), lambda x: (x < 0).all())
    array([-1., -1., -1.])
    """
    Floats(dtype)
    found, kind, shape = domain_of(domain), numpy_dtype(dtype), read_shape(shape)
    return _arrays(found, shape, kind) if isinstance(shape, tuple) else shape.flatmap(lambda drawn: _arrays(found, drawn, kind))


@functools.lru_cache(maxsize=256)
def _arrays(domain: Domain, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The strategy for arrays of one shape."""
    st = require_hypothesis().strategies
    floats, count, kind = Floats(dtype), math.prod(shape), bool if domain == BOOLEAN else dtype
    entries = table(domain, floats.dtype.name)
    size = code_size(count)
    parts = st.binary(min_size=size, max_size=size)
    keys = st.integers(0, KEYS - 1) if count > CODED else st.just(0)

    def real(how: str, codes: bytes, key: int) -> np.ndarray:
        return arrange(select_numbers(entries, codes, count, key).reshape(shape), how, domain).astype(kind)

    def both(how: str, codes: bytes, imaginary: bytes, key: int) -> np.ndarray:
        return real(how, codes, key) + (1j * select_numbers(table(REAL, floats.dtype.name), imaginary, count, key).reshape(shape)).astype(kind)

    chosen = st.sampled_from(ARRANGEMENTS[:1] * 4 + ARRANGEMENTS[1:]) if count > 1 else st.just("")
    return st.builds(both, chosen, parts, parts, keys) if numpy_dtype(dtype).kind == "c" else st.builds(real, chosen, parts, keys)


def tied_arrays(domain: Any = REAL, count: int = 2, shape: Any = (), dtype: Any = "float64") -> Any:
    """A strategy for tuples of arrays of one shape that are equal at some places or at all: where maximum, hypot and the like have kinks.

    The arguments are those of `arrays`. They shrink to arrays that are equal everywhere.

    Raises what `arrays` raises, and ValueError for a count below 1.

    >>> import hypothesis
    >>> hypothesis.find(tied_arrays(count=2, shape=(2,)), lambda found: (found[0] == found[1]).any() and found[0][0] > 1)
    (array([2., 0.]), array([2., 0.]))
    """
    st = require_hypothesis().strategies
    shape = read_shape(shape)
    if count < 1:
        raise ValueError(f"tied_arrays: count is {count}; expected a number of arrays, such as 2")
    if not isinstance(shape, tuple):
        return shape.flatmap(lambda found: tied_arrays(domain, count, found, dtype))
    size = math.prod(shape) * (count - 1)

    def tie(code: bytes, first: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
        apart = np.frombuffer(code, np.uint8).reshape(count - 1, *shape) % 2 == 1
        return (first, *(np.where(mask, other, first) for mask, other in zip(apart, others)))

    return st.builds(tie, st.binary(min_size=size, max_size=size), *[arrays(domain, shape, dtype)] * count)
