"""Strategies for matrices with a structure. Their entries are small integers, so that the structure is exact.

A size is a number or a strategy; where it is None, 1 to 4 rows are drawn. With `batch`, a shape or a strategy of shapes, there are that many
matrices in the leading dimensions. Entries of complex dtypes are complex, and there "symmetric" means Hermitian and "orthogonal" unitary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.testing.strategies.arrays import require_hypothesis

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Draw = Callable[[Any], Any]
Matrices = Any  # a strategy of arrays; hypothesis may be missing, so that the type cannot be named
ENTRIES = 3  # the largest absolute value of an integer entry
DRAWN, KEYS = 64, 1 << 12  # entries drawn one by one, and the entries a key selects from for the others
MAX_ROWS = 4  # rows of a matrix whose size is not given
# Vectors v for which |v|² - 2 v vᵀ, which is |v|² times a reflection, has small entries.
MIRRORS = ((1, 1), (1, 2), (1, -1), (2, 1), (1, 3), (1, 1, 1), (1, 1, 1, 1), (2, 1, 1), (1, 2, 2), (2, -1, 1))


def _batches_of(one: Callable[[Draw, Any], np.ndarray], size: Any, batch: Any, dtype: Any, least: int = 1) -> Matrices:
    """Matrices from a function of `draw` and the size, stacked to a batch of one size."""
    st = require_hypothesis().strategies
    batches = st.just(tuple(batch)) if isinstance(batch, (tuple, list)) else batch
    if isinstance(size, int) and size < 0:
        raise ValueError(f"a matrix has no {size} rows")
    sizes = st.integers(least, MAX_ROWS) if size is None else st.just(size) if isinstance(size, int) else size

    @st.composite
    def drawn(draw: Any) -> np.ndarray:
        n, leading = draw(sizes), draw(batches)
        count = math.prod(leading)
        found = [one(draw, n) for _ in range(max(count, 1))]
        return np.array(found[:count]).reshape(*leading, *found[0].shape).astype(dtype)

    return drawn()


def _entries(draw: Draw, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Integers, Gaussian ones for a complex dtype. Of very many only the first are drawn one by one and shrink separately."""
    st = require_hypothesis().strategies
    count = math.prod(shape)

    def row() -> np.ndarray:
        some = min(count, DRAWN)
        first = draw(st.lists(st.integers(-ENTRIES, ENTRIES), min_size=some, max_size=some))
        key = draw(st.integers(0, KEYS)) if count > some else 0
        rest = (np.arange(1, count - some + 1) * key * 40503 >> 7) % (2 * ENTRIES + 1) - ENTRIES if key else np.zeros(count - some)
        return np.concatenate([first, rest]).astype(np.int64).reshape(shape)

    return row() + 1j * row() if np.dtype(dtype).kind == "c" else row()


def _strictly_lower(draw: Draw, n: int, dtype: Any) -> np.ndarray:
    out = np.zeros((n, n), np.complex128 if np.dtype(dtype).kind == "c" else np.int64)
    out[np.tril_indices(n, -1)] = _entries(draw, (n * (n - 1) // 2,), dtype)
    return out


def _scaled_orthogonal(draw: Draw, n: int, dtype: Any, mirrors: int = 2) -> tuple[np.ndarray, int]:
    """An integer multiple of an orthogonal matrix, and the factor: a signed permutation times up to so many reflections."""
    st = require_hypothesis().strategies
    units = (1, -1, 1j, -1j) if np.dtype(dtype).kind == "c" else (1, -1)
    out = np.zeros((n, n), np.complex128 if len(units) == 4 else np.int64)
    for i, k in enumerate(draw(st.permutations(range(n)))):
        out[i, k] = draw(st.sampled_from(units))
    scale = 1
    for mirror in draw(st.lists(st.sampled_from([m for m in MIRRORS if len(m) <= n]), max_size=mirrors)) if n > 1 else []:
        v = np.zeros(n, out.dtype)
        v[list(draw(st.permutations(range(n))))[:len(mirror)]] = mirror
        if len(units) == 4:
            v = v * np.array([draw(st.sampled_from((1, 1j))) for _ in range(n)])
        square = int(np.vdot(v, v).real)
        out = out @ (square * np.eye(n, dtype=out.dtype) - 2 * np.outer(v, v.conj()))
        common = math.gcd(square, *(int(part) for x in out.ravel() for part in (x.real, x.imag)))
        out, scale = out // common if out.dtype.kind == "i" else out / common, scale * square // common
    return out, scale


def symmetric(size: int | SearchStrategy[int] | None = None, *, dtype: Any = "float64", batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Symmetric matrices of small whole numbers (Hermitian ones of a complex dtype); they shrink to zeros.

    >>> from hypothesis import find
    >>> a = find(symmetric(2), lambda a: a[0, 1] > 1)
    >>> bool(a[0, 1] == a[1, 0] and a[0, 1] in (2, 3))
    True
    """
    def one(draw: Draw, n: int) -> np.ndarray:
        lower = _strictly_lower(draw, n, dtype)
        return lower + lower.conj().T + np.diag(_entries(draw, (n,), "float64"))

    return _batches_of(one, size, batch, dtype)


def positive_definite(size: int | SearchStrategy[int] | None = None, *, dtype: Any = "float64", batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Symmetric matrices of whole numbers whose eigenvalues are at least 1: 1 + B Bᵀ; they shrink to the unit matrix.

    >>> from hypothesis import find
    >>> bool((np.linalg.eigvalsh(find(positive_definite(2), lambda a: a[0, 1] != 0)) > 0.99).all())
    True
    """
    def one(draw: Draw, n: int) -> np.ndarray:
        b = _strictly_lower(draw, n, dtype) + np.diag(_entries(draw, (n,), "float64"))
        return np.eye(n, dtype=np.int64) + b @ b.conj().T

    return _batches_of(one, size, batch, dtype)


def orthogonal(size: int | SearchStrategy[int] | None = None, *, determinant: int | None = None, dtype: Any = "float64",
               batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Orthogonal matrices (unitary ones of a complex dtype): signed permutations times reflections of whole vectors.

    Every entry is the float next to a fraction of small integers, so that Q Qᵀ is the unit matrix up to a rounding of each entry. With
    `determinant` 1 or -1 only those of real matrices are drawn. They shrink to the unit matrix, or to one like it.

    Raises ValueError for another determinant, or for one of complex matrices.

    >>> from hypothesis import find
    >>> q = find(orthogonal(2), lambda q: 0 < q[0, 0] < 1)  # 0.6 and 0.8, with signs
    >>> bool(np.allclose(q @ q.T, np.eye(2), 0, 1e-15))
    True
    """
    if determinant is not None and (determinant not in (1, -1) or np.dtype(dtype).kind == "c"):
        raise ValueError(f"orthogonal: determinant is {determinant!r}; expected 1, -1 or None, and None for complex matrices")

    def one(draw: Draw, n: int) -> np.ndarray:
        q, scale = _scaled_orthogonal(draw, n, dtype)
        if determinant is not None and n and np.sign(np.linalg.det(q)) != determinant:
            q[0] = -q[0]
        return q / scale

    return _batches_of(one, size, batch, dtype)


def triangular(size: int | SearchStrategy[int] | None = None, *, lower: bool = True, unit: bool = False, dtype: Any = "float64",
               batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Triangular matrices of small whole numbers with an inverse: no number on the diagonal is 0, and where `unit` all are 1.

    Without `lower` they are upper triangular. They shrink to the unit matrix.

    >>> from hypothesis import find
    >>> a = find(triangular(2), lambda a: a[1, 0] != 0)
    >>> bool(a[0, 1] == 0 and np.linalg.det(a) != 0)
    True
    """
    st = require_hypothesis().strategies

    def one(draw: Draw, n: int) -> np.ndarray:
        below = _strictly_lower(draw, n, dtype)
        diagonal = [1] * n if unit else [draw(st.sampled_from((1, -1, 2, -2, 3))) for _ in range(n)]
        found = below + np.diag(np.array(diagonal, np.int64))
        return found if lower else found.T

    return _batches_of(one, size, batch, dtype)


def low_rank(size: int | tuple[int, int] | SearchStrategy[Any] | None = None, rank: int | SearchStrategy[int] | None = None, *,
             dtype: Any = "float64", batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Matrices of whole numbers of exactly a rank, as the product of two that have it; a size is a number, or a pair (rows, columns).

    Without `rank` it is drawn from 1 to one less than the full rank; it is 0 if the full rank is 1 or less.

    Raises ValueError, when drawn, for a rank that a matrix of the size cannot have.

    >>> from hypothesis import find
    >>> int(np.linalg.matrix_rank(find(low_rank((2, 3), rank=1), lambda a: a.all())))
    1
    """
    st = require_hypothesis().strategies

    def full(draw: Draw, rows: int, r: int) -> np.ndarray:
        """A matrix of r columns, r of whose rows are those of a unit triangular matrix."""
        top = _strictly_lower(draw, r, dtype) + np.eye(r, dtype=np.int64)
        return np.concatenate([top, _entries(draw, (rows - r, r), dtype)])[list(draw(st.permutations(range(rows))))]

    def one(draw: Draw, n: Any) -> np.ndarray:
        rows, columns = (n, n) if isinstance(n, int) else n
        most = min(rows, columns)
        drawn = max(0, most - 1) if most < 2 else draw(st.integers(1, most - 1))
        r = drawn if rank is None else rank if isinstance(rank, int) else draw(rank)
        if not 0 <= r <= most:
            raise ValueError(f"low_rank: a matrix of {rows} by {columns} has no rank {r}")
        return full(draw, rows, r) @ full(draw, columns, r).T

    return _batches_of(one, st.just(size) if isinstance(size, tuple) else size, batch, dtype)


def singular(size: int | SearchStrategy[int] | None = None, *, dtype: Any = "float64", batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Square matrices of whole numbers without an inverse: of a rank from 0 to one less than their size. They shrink to zeros.

    >>> from hypothesis import find
    >>> a = find(singular(2), lambda a: a.all())
    >>> bool(a[0, 0] * a[1, 1] == a[0, 1] * a[1, 0])
    True
    """
    st = require_hypothesis().strategies

    def one(draw: Draw, n: int) -> np.ndarray:
        if n < 2:
            return np.zeros((n, n))
        others = _entries(draw, (n - 1, n), dtype)
        return np.insert(others, draw(st.integers(0, n - 1)), _entries(draw, (n - 1,), "float64") @ others, 0)

    return _batches_of(one, size, batch, dtype)


def ill_conditioned(size: int | SearchStrategy[int] | None = None, *, condition: float | None = None, dtype: Any = "float64",
                    batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Square matrices whose condition number (the largest singular value through the smallest) is `condition`: 1e8, less for a smaller dtype.

    A = U diag(σ) Vᵀ with whole multiples U, V of orthogonal matrices, so that up to conditions of 1e12 nothing is rounded in
    float64; beyond, the condition is met up to condition² times the precision of the dtype.
    A matrix of one number has the condition 1, so that sizes begin with 2.

    Raises ValueError for a condition below 1, or one that the dtype cannot hold: 1 through its precision or larger.

    >>> from hypothesis import find
    >>> round(np.linalg.cond(find(ill_conditioned(3, condition=1000), lambda a: a.all())))
    1000
    """
    st = require_hypothesis().strategies
    limit = 1 / np.finfo(dtype).eps
    condition = min(1e8, 10.0 ** math.floor(math.log10(limit / 10))) if condition is None else condition
    if not 1 <= condition < limit:
        raise ValueError(f"ill_conditioned: condition is {condition}; expected a number from 1 to less than {limit:.3g}")
    if isinstance(size, int) and size < 2:
        raise ValueError(f"ill_conditioned: a matrix of size {size} has the condition 1")

    def one(draw: Draw, n: int) -> np.ndarray:
        between = st.sampled_from(sorted({1.0, float(round(math.sqrt(condition))), float(condition)}, reverse=True))
        values = [float(condition), *(draw(between) for _ in range(n - 2)), 1.0]
        u, v = (_scaled_orthogonal(draw, n, dtype, 1)[0] for _ in range(2))
        return u @ np.diag(values) @ v.conj().T

    return _batches_of(one, size, batch, dtype, 2)


def degenerate(size: int | SearchStrategy[int] | None = None, *, symmetric: bool = True, multiplicity: int = 2, dtype: Any = "float64",
               batch: Any = ()) -> SearchStrategy[np.ndarray]:
    """Matrices with a repeated eigenvalue (where `symmetric`) or a repeated singular value: Q diag(λ) Qᵀ, or U diag(σ) Vᵀ.

    The value occurs `multiplicity` times or more, exactly, since all are integers. The others may be 0, repeated or of the other sign.

    Raises ValueError for a size that is less than the multiplicity, or a multiplicity below 2.

    >>> from hypothesis import find
    >>> first, second, third = np.linalg.eigvalsh(find(degenerate(3), lambda a: a[0, 1] != 0))
    >>> bool(np.isclose(first, second) or np.isclose(second, third))
    True
    """
    st = require_hypothesis().strategies
    if multiplicity < 2 or isinstance(size, int) and size < multiplicity:
        raise ValueError(f"degenerate: a matrix of size {size} has no value {multiplicity} times; the multiplicity is from 2 to the size")

    def one(draw: Draw, n: int) -> np.ndarray:
        repeated = draw(st.integers(1, ENTRIES))
        others = st.integers(-ENTRIES, ENTRIES) if symmetric else st.integers(0, ENTRIES)
        values = [repeated] * multiplicity + [draw(others) for _ in range(n - multiplicity)]
        u, _ = _scaled_orthogonal(draw, n, dtype, 1)
        v = u if symmetric else _scaled_orthogonal(draw, n, dtype, 1)[0]
        return u @ np.diag(values) @ v.conj().T

    return _batches_of(one, size, batch, dtype, multiplicity)
