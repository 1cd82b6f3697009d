"""Numbers inside a domain, weighted to its edges; arrays of them, with ties; shapes, and readable tangents."""

from __future__ import annotations

import functools
import math
from numbers import Integral
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.graph.domains import BOOLEAN, REAL, Domain
from symgrad.sampling.domain_reader import domain_of
from symgrad.sampling.floats import Floats
from symgrad.sampling.numbers import PAGE, PAGES, edge_numbers, parts_of, simple_numbers, table


def require_hypothesis() -> Any:
    """The package hypothesis with its strategies. Raises ImportError, which names the extra, if it is not installed."""
    try:
        import hypothesis
        import hypothesis.strategies
    except ImportError as error:
        raise ImportError("symgrad.testing.strategies are those of hypothesis: pip install 'symgrad[testing]'") from error
    return hypothesis


def read_shape(given: Any) -> Any:
    """A shape (a number is one axis), or a strategy of shapes, unchanged. Raises TypeError for other values, ValueError for negative sides.

    >>> read_shape(3), read_shape([2, 0])
    ((3,), (2, 0))
    """
    if hasattr(given, "flatmap"):
        return given
    sides = (given,) if isinstance(given, Integral) else given
    if not isinstance(sides, (tuple, list)) or not all(isinstance(n, Integral) for n in sides):
        raise TypeError(f"a shape is {given!r}; expected a tuple such as (2, 3), a number, or a strategy of shapes")
    if any(int(n) < 0 for n in sides):
        raise ValueError(f"a shape is {given!r}, with a negative side")
    return tuple(int(n) for n in sides)


Shape = tuple[int, ...]


def shapes(max_dims: int = 3, max_side: int = 3, *, min_dims: int = 0, min_side: int = 1) -> Any:
    """A strategy for shapes; with `min_side` 0 also those of empty arrays. They shrink to few dimensions of small sides.

    Raises ValueError for bounds that no shape fulfils, ImportError if hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(shapes(), lambda shape: len(shape) > 1)
    (1, 1)
    """
    st = require_hypothesis().strategies
    for what, low, high in (("dims", min_dims, max_dims), ("side", min_side, max_side)):
        if not 0 <= low <= high:
            raise ValueError(f"shapes: min_{what} is {low} and max_{what} is {high}; expected 0 <= min_{what} <= max_{what}")
    return st.integers(min_dims, max_dims).flatmap(lambda dims: st.tuples(*[st.integers(min_side, max_side)] * dims))


def broadcastable_shapes(count: int = 2, max_dims: int = 3, max_side: int = 3, *, min_side: int = 1) -> Any:
    """A strategy for tuples of shapes that broadcast: some without their leading axes, some with sides of 1, some ().

    With `min_side` 0 there are empty ones. They shrink to (), and where shapes must differ, to few dimensions of small sides.

    Raises ImportError where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(broadcastable_shapes(), lambda found: found[0] != found[1])
    ((), (1,))
    """
    st = require_hypothesis().strategies

    def one(common: Shape) -> Any:
        sides = st.tuples(*(st.sampled_from((1, side)) for side in common))
        return st.tuples(st.integers(0, 2 * len(common)), sides).map(lambda drawn: drawn[1][max(len(common) - drawn[0], 0):])

    return shapes(max_dims, max_side, min_side=min_side).flatmap(lambda common: st.tuples(*[one(common)] * count))


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
    st = require_hypothesis().strategies
    width = 32 if floats.dtype.kind == "V" else 8 * floats.dtype.itemsize
    drawn = st.floats(*part, width=width)
    return drawn.map(lambda x: float(floats.inside(x, [part], domain))) if domain.excluded or floats.dtype.kind == "V" else drawn


READABLE = np.array([1.0, -1.0, 2.0, 0.5, -3.0, 1.5, -0.5, 3.0, -2.0, 0.75, -1.25])  # all of them exact in every floating-point type


def readable(shape: tuple[int, ...], key: int = 0, dtype: Any = "float64") -> np.ndarray:
    """Numbers like 1, -1, 2, 0.5 and -3 in an array, in a different order for every key; the first for the key 0 is 1.

    Of a complex type they have such imaginary parts, too.

    >>> readable((2, 3))
    array([[ 1. , -1. ,  2. ],
           [ 0.5, -3. ,  1.5]])
    """
    count = math.prod(shape)
    real = _mixed_choice(count, key)
    dtype = numpy_dtype(dtype)
    if dtype.kind == "c":
        return (real + 1j * _mixed_choice(count, key + 7919)).astype(dtype).reshape(shape)
    return real.astype(dtype).reshape(shape)


def _mixed_choice(count: int, key: int) -> np.ndarray:
    """A choice by multiples of the golden ratio, mixed with a key: neighbours differ, and no rows repeat."""
    place = np.arange(count, dtype=np.uint64)
    if key:
        place = ((place + np.uint64(97 * key)) * np.uint64(11400714819323198485)) >> np.uint64(40)
    return READABLE[(place % np.uint64(READABLE.size)).astype(np.intp)]


def tangents(shape: Any = (), dtype: Any = "float64") -> Any:
    """A strategy for arrays of numbers like 1, -1, 2, 0.5 and -3: none is zero or near it. They shrink to ones.

    `shape` is a shape, a number, or a strategy for shapes; of a complex type the numbers have such imaginary parts, or none.

    Raises TypeError for what is no shape, ValueError for a negative side, ImportError where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(tangents((3,)), lambda t: (t < 0).all())
    array([-1., -1., -1.])
    """
    st = require_hypothesis().strategies
    shape = read_shape(shape)
    if not isinstance(shape, tuple):
        return shape.flatmap(lambda found: tangents(found, dtype))
    count, dtype = math.prod(shape), numpy_dtype(dtype)

    def array(codes: bytes) -> np.ndarray:
        place = np.frombuffer(codes, np.uint8)
        out = READABLE[place[:count] % READABLE.size]
        if dtype.kind == "c":
            out = out + 1j * np.array([0.0, *READABLE])[place[count:] % (READABLE.size + 1)]
        return out.astype(dtype).reshape(shape)

    size = count * (2 if dtype.kind == "c" else 1)
    return st.binary(min_size=size, max_size=size).map(array)


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
