"""Colourings: no two columns of one colour share a row, and every entry of a symmetric matrix is recovered from one product alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symgrad.func.patterns import SparsityPattern, _colour_in_rounds, _colour_sequentially, colour_columns, colour_symmetric

PATTERNS = st.integers(1, 14).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)))


def pattern_of(matrix):
    return SparsityPattern(*np.asarray(matrix).nonzero(), np.shape(matrix))


@given(PATTERNS)
def test_columns_of_one_colour_share_no_row(drawn):
    n, entries = drawn
    matrix = np.zeros((n, n), bool)
    for i, j in entries:
        matrix[i, j] = True
    for colours in (colour_columns(pattern_of(matrix)).colours, _colour_in_rounds(pattern_of(matrix)), _colour_sequentially(pattern_of(matrix))):
        for row in matrix:
            here = colours[row]
            assert len(set(here.tolist())) == len(here)


@given(PATTERNS, st.booleans())
def test_every_entry_of_a_symmetric_matrix_is_read_where_it_stands_alone(drawn, diagonal):
    n, entries = drawn
    rng = np.random.default_rng(0)
    matrix = np.zeros((n, n))
    for i, j in entries:
        matrix[i, j] = matrix[j, i] = rng.normal()
    if diagonal:
        matrix += np.diag(rng.uniform(1, 2, n))
    pattern = pattern_of(matrix)
    colouring = colour_symmetric(pattern)
    assert colouring.count <= n
    seeds = colouring.seeds()
    assert (seeds.sum(0) == 1).all() or colouring.count == 0
    found = (seeds @ matrix).reshape(-1)[colouring.places(pattern)]
    assert (found == matrix[pattern.rows, pattern.columns]).all()


def test_large_patterns_are_coloured_in_rounds():
    rng = np.random.default_rng(1)
    n, count = 30_000, 60_000
    i, j = rng.integers(0, n, (2, count))
    key = np.unique(np.concatenate([i * n + j, j * n + i, np.arange(n) * (n + 1)]))
    pattern = SparsityPattern(key // n, key % n, (n, n))
    assert pattern.nonzeros > 1 << 16
    colouring = colour_symmetric(pattern)
    used = pattern.rows * colouring.count + colouring.colours[pattern.columns]
    assert colouring.hubs is not None or len(np.unique(used)) == pattern.nonzeros
    assert pattern.most - 1 <= colouring.count <= 3 * pattern.most
