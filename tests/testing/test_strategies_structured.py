"""Strategies for matrices, trees and indices: their structure, their coverage of all cases, and shrinking."""

import collections
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.testing import strategies
from symgrad.testing.strategies import (
    axes,
    degenerate,
    ill_conditioned,
    indices,
    low_rank,
    orthogonal,
    permutations,
    positive_definite,
    pytrees,
    singular,
    symmetric,
    triangular,
)
from symgrad.trees import flatten

SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
BATCHES = st.sampled_from([(), (2,), (2, 1), (0,)])
DTYPES = st.sampled_from(["float64", "float32", "complex128"])
EPSILON = np.finfo(np.float64).eps


def reached(strategy, condition):
    """Whether the strategy draws something for which the condition holds."""
    find(strategy, condition, settings=settings(database=None, max_examples=3000, phases=[Phase.generate]), random=random.Random(0))
    return True


def simplest(strategy, condition=lambda drawn: True):
    quick = settings(database=None, phases=[Phase.generate, Phase.shrink], max_examples=300)
    return find(strategy, condition, settings=quick, random=random.Random(0))


# Axes, permutations, indices


@pytest.mark.sweep
@given(st.data(), st.integers(0, 4))
def test_axes_are_valid_and_differ(data, ndim):
    assert ndim == 0 or data.draw(axes(ndim, several=False, negative=False)) in range(ndim)
    drawn = data.draw(axes(ndim))
    row = drawn if isinstance(drawn, tuple) else (drawn,)
    assert all(-ndim <= a < ndim for a in row) and len({a % ndim for a in row}) == len(row) and len(row) >= (ndim > 0)
    np.sum(np.zeros((2,) * ndim), drawn)
    order = data.draw(permutations(ndim, negative=True))
    assert sorted(a % ndim for a in order) == list(range(ndim)) and np.zeros((1,) * ndim).transpose(order).ndim == ndim


@pytest.mark.sweep
def test_axes_of_every_kind_are_reached():
    assert reached(axes(3), lambda a: a == -1) and reached(axes(3), lambda a: a == (2, 0)) and reached(axes(3), lambda a: a == (-1, 0, 1))
    assert reached(axes(2, empty=True), lambda a: a == ()) and reached(permutations(3, negative=True), lambda a: a == (-1, 0, -2))
    assert simplest(axes(3)) == 0 and simplest(permutations(3)) == (0, 1, 2) and simplest(axes(0)) == ()
    assert reached(axes(3, several=False, negative=False), lambda a: a == 2)
    for refused in (axes, permutations):
        with pytest.raises(ValueError, match="-1 dimensions"):
            refused(-1)


def mixed(index):
    """Whether an int stands beside arrays, where NumPy orders the axes of the result in its own way."""
    row = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, np.ndarray) for i in row) and any(isinstance(i, int) for i in row)


def tensors(index):
    """An index with tensors in place of arrays."""
    if isinstance(index, tuple):
        return tuple(map(tensors, index))
    return symgrad.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.sweep
@given(st.data(), SHAPES)
def test_every_index_is_valid_and_symgrad_reads_it_as_numpy_does(data, shape):
    index = data.draw(indices(shape))
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    expected = np.asarray(x[index])
    found = symgrad.tensor(x)[tensors(index)]
    assert found.numel() == expected.size
    assert mixed(index) or (found.shape == expected.shape and np.array_equal(found.numpy(), expected))


@pytest.mark.sweep
@given(st.data(), SHAPES)
def test_every_index_with_negative_steps_is_valid_in_numpy(data, shape):
    assert np.zeros(shape)[data.draw(indices(shape, negative_steps=True))].dtype == np.float64


def parts(index):
    return index if isinstance(index, tuple) else (index,)


INDEX_KINDS = {
    "an int": lambda i: isinstance(i, int), "a negative int": lambda i: isinstance(i, int) and i < 0,
    "a step": lambda i: isinstance(i, slice) and i.step == 2,
    "an end": lambda i: isinstance(i, slice) and i.stop == -1, "a new axis": lambda i: i is None, "an ellipsis": lambda i: i is ...,
    "an integer array": lambda i: isinstance(i, np.ndarray) and i.dtype == np.int64 and i.ndim == 2,
    "a mask": lambda i: isinstance(i, np.ndarray) and i.dtype == bool and i.shape == (2, 3) and i.any(),
    "a mask of one axis": lambda i: isinstance(i, np.ndarray) and i.dtype == bool and i.shape == (3,) and i.any(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", INDEX_KINDS)
def test_indices_of_every_kind_are_reached(kind):
    assert reached(indices((2, 3)), lambda index: any(map(INDEX_KINDS[kind], parts(index))))


@pytest.mark.sweep
def test_mixtures_of_indices_are_reached_and_they_shrink():
    assert reached(indices((2, 3, 2)), lambda index: len({type(i) for i in parts(index)}) >= 4)
    assert reached(indices((2, 3, 2)), lambda index: sum(isinstance(i, np.ndarray) for i in parts(index)) == 2)
    assert simplest(indices((2, 3))) is ... and simplest(indices(())) is ...
    assert simplest(indices((2, 3)), lambda i: i is not ... and np.zeros((2, 3))[i].shape == ()) == (0, 0)
    with pytest.raises(ValueError, match="is no shape"):
        indices((2, -1))


@given(indices((2, 3), advanced=False, new_axes=False))
def test_basic_indices_have_no_arrays_and_no_new_axes(index):
    assert not any(i is None or isinstance(i, np.ndarray) for i in parts(index))


# Matrices


def exact(matrix):
    """A matrix in fractions, row by row."""
    return [[Fraction(float(x)) for x in row] for row in np.asarray(matrix)]


def rank(matrix):
    """The rank by elimination in fractions."""
    rows, found = exact(matrix), 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column] / rows[found][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[found])]
        found += 1
    return found


def each(stack):
    return np.asarray(stack).reshape(-1, *np.shape(stack)[-2:])


@pytest.mark.sweep
@given(st.data(), BATCHES, DTYPES)
def test_shapes_and_dtypes_are_as_requested(data, batch, dtype):
    for strategy in (symmetric, positive_definite, orthogonal, triangular, low_rank, singular, degenerate):
        drawn = data.draw(strategy(3, batch=batch, dtype=dtype))
        assert drawn.shape == (*batch, 3, 3) and drawn.dtype == dtype and np.isfinite(drawn).all()
    drawn = data.draw(ill_conditioned(2, condition=100, batch=st.just(batch), dtype=dtype))
    assert drawn.shape == (*batch, 2, 2) and drawn.dtype == dtype
    assert data.draw(symmetric(st.integers(2, 3))).shape in ((2, 2), (3, 3)) and data.draw(low_rank((2, 4))).shape == (2, 4)
    assert data.draw(orthogonal(0)).shape == data.draw(symmetric(0)).shape == data.draw(singular(0)).shape == (0, 0)


@pytest.mark.sweep
@given(st.data(), DTYPES)
def test_structures_hold(data, dtype):
    adjoint = lambda a: np.conj(np.swapaxes(a, -1, -2))
    a = data.draw(symmetric(dtype=dtype))
    assert np.array_equal(a, adjoint(a))
    a = data.draw(positive_definite(dtype=dtype))
    assert np.array_equal(a, adjoint(a)) and np.linalg.eigvalsh(a).min() > 0.99
    q = data.draw(orthogonal(dtype=dtype))
    assert np.abs(q @ adjoint(q) - np.eye(len(q))).max() <= 8 * np.finfo(dtype).eps
    lower, upper = data.draw(triangular(dtype=dtype)), data.draw(triangular(dtype=dtype, lower=False, unit=True))
    assert np.array_equal(lower, np.tril(lower)) and np.diag(lower).all() and np.array_equal(upper, np.triu(upper)) and (np.diag(upper) == 1).all()


@pytest.mark.sweep
@given(st.data(), st.sampled_from([1, -1]))
def test_determinants_of_orthogonal_matrices(data, determinant):
    assert np.linalg.det(data.draw(orthogonal(st.integers(1, 4), determinant=determinant))) == pytest.approx(determinant)


@pytest.mark.sweep
@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_ranks_are_exact(data, rows, columns):
    most = min(rows, columns)
    asked = data.draw(st.integers(0, most))
    assert rank(data.draw(low_rank((rows, columns), asked))) == asked
    assert rank(data.draw(low_rank((rows, columns)))) in (range(1) if most == 1 else range(1, most))
    for a in each(data.draw(singular(rows, batch=(2,)))):
        assert rank(a) < rows
    assert rank(data.draw(triangular(rows))) == rank(data.draw(positive_definite(rows))) == rows


@pytest.mark.sweep
@given(st.data(), st.sampled_from([1, 3.5, 1e3, 1e8, 1e12]))
def test_condition_numbers_are_as_promised(data, condition):
    import mpmath

    drawn = data.draw(ill_conditioned(st.integers(2, 3), condition=condition))
    with mpmath.workdps(60):
        values = mpmath.svd_r(mpmath.matrix(drawn.tolist()), compute_uv=False)
        assert abs(max(values) / min(values) / condition - 1) < 8 * len(drawn) * condition**2 * EPSILON * (condition == 3.5) + mpmath.mpf(10) ** -20


@pytest.mark.sweep
@given(st.data(), st.booleans())
def test_repeated_values_are_exactly_repeated(data, plain):
    """A - λ, or A Aᵀ - σ², has a rank that is lower by two, in fractions."""
    n = data.draw(st.integers(2, 4))
    a = data.draw(degenerate(n, symmetric=plain))
    square = a if plain else a @ a.T
    assert plain is False or np.array_equal(a, a.T)
    candidates = {round(v) for v in np.linalg.eigvalsh(square)}
    assert any(rank(square - v * np.eye(n)) <= n - 2 for v in candidates)


@given(degenerate(4, multiplicity=3))
def test_multiplicities(a):
    assert any(rank(a - round(v) * np.eye(4)) <= 1 for v in np.linalg.eigvalsh(a))


@pytest.mark.sweep
def test_matrices_are_not_all_of_one_kind_and_they_shrink():
    assert reached(orthogonal(3), lambda q: len({abs(x) for x in q.ravel().tolist()}) > 3)
    assert reached(ill_conditioned(2, condition=1e6), lambda a: a.all() and not np.array_equal(a, a.T))
    assert reached(degenerate(3), lambda a: np.count_nonzero(a) > 6) and reached(degenerate(3, symmetric=False), lambda a: not np.array_equal(a, a.T))
    assert reached(orthogonal(2, dtype="complex128"), lambda q: (q.imag != 0).any() and (q.real != 0).any())
    assert reached(singular(3), lambda a: rank(a) == 2 and a.all())
    assert not simplest(symmetric(2)).any() and np.array_equal(simplest(positive_definite(2)), np.eye(2)) and not simplest(singular(2)).any()
    assert np.array_equal(np.abs(simplest(orthogonal(3))), np.eye(3)) and np.array_equal(simplest(triangular(3)), np.eye(3))


@pytest.mark.sweep
def test_large_matrices_shrink_and_are_not_all_zeros():
    quick = settings(database=None, max_examples=10, phases=[Phase.generate, Phase.shrink])
    assert not find(singular(40), lambda a: True, settings=quick, random=random.Random(0)).any()
    reached(symmetric(40), lambda a: np.count_nonzero(a) > 1000 and len(np.unique(a)) > 3)


@pytest.mark.sweep
def test_conditions_and_ranks_are_those_that_the_type_and_the_size_can_have():
    for dtype, condition in (("float64", 1e8), ("float32", 1e5), ("float16", 100.0)):
        a = find(ill_conditioned(2, dtype=dtype), lambda a: True)
        assert a.dtype == dtype and np.linalg.cond(a.astype(np.float64)) == pytest.approx(condition)
    assert find(low_rank(0), lambda a: True).shape == (0, 0) and not find(low_rank(1), lambda a: True).any()


def test_impossible_matrices_are_refused():
    for call, message in ((lambda: symmetric(-1), "no -1 rows"), (lambda: orthogonal(2, determinant=2), "determinant is 2"),
                          (lambda: orthogonal(2, determinant=1, dtype="complex128"), "determinant"),
                          (lambda: ill_conditioned(2, condition=0.5), "0.5"),
                          (lambda: ill_conditioned(2, condition=1e8, dtype="float32"), "less than 8.39e"), (lambda: ill_conditioned(1), "size 1"),
                          (lambda: degenerate(2, multiplicity=3), "3 times"), (lambda: degenerate(2, multiplicity=1), "from 2")):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="no rank 3"):
        simplest(low_rank(2, 3))


# Trees


@given(pytrees(st.integers(0, 9)), pytrees(st.just(1), max_leaves=3, empty=False))
def test_trees_are_flattened_and_rebuilt(tree, other):
    leaves, form = flatten(tree)
    assert all(type(leaf) is int for leaf in leaves) and form.unflatten(leaves) == tree
    assert flatten(other)[0]


def kinds(tree):
    """The types of all branches of a tree."""
    below = list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else \
        [tree.left, tree.right] if isinstance(tree, strategies.indexing.DrawnRecord) else []
    return {type(tree)}.union(*map(kinds, below))


@pytest.mark.parametrize("kind", [dict, list, tuple, collections.OrderedDict, type(None), strategies.indexing.Pair, strategies.indexing.DrawnRecord])
def test_trees_of_every_kind_are_reached(kind):
    assert reached(pytrees(st.integers(0, 1)), lambda tree: kind in kinds(tree) and len(kinds(tree)) > 2)


def test_trees_shrink_to_a_leaf():
    assert simplest(pytrees(st.integers(0, 9), empty=False)) == 0 and simplest(pytrees(st.just(7))) == 7
    with pytest.raises(ValueError, match="max_leaves is 0"):
        pytrees(st.just(1), 0)
